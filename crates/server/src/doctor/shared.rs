//! A look at a store in NATS: the servers first, then what stands there.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pyoco_api::WorkerRecord;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::time::Timestamp;
use pyoco_ports::{
    DeadLetters as _, ErrorKind, EventLog as _, Filter, Heard, IndexRow, Retention as _, RunIndex,
    StoreError, WorkQueue as _, WorkerRegistry as _,
};
use pyoco_store_nats::{Listener, NatsHealth, NatsStore};
use pyoco_store_sqlite::SqliteStore;

use super::logs::{Logs, Verdict};
use super::{Depth, Finding, Severity, overdue_before, some};
use crate::config::{Config, Durability};
use crate::storage::{Role, nats_settings};
use crate::{StartError, durability};

/// So many executions are looked at, unless all are.
const SAMPLE: usize = 200;
/// So many at a time.
const PAGE: usize = 500;
/// So many that are stuck are looked for, of each tag.
const STUCK: usize = 100;
/// Hearing of every run takes a while; who has time says so.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lists hear of a record after it was stored; by then they have.
const HEARD: Duration = Duration::from_secs(1);
/// Clocks that are further apart show times that make no sense.
const CLOCK_SLACK_SECONDS: f64 = 2.0;
/// Of 100.
const NEARLY_FULL: u64 = 80;

pub(super) async fn examine(config: &Config, depth: Depth, now: Timestamp) -> Vec<Finding> {
    let health = match NatsStore::examine(nats_settings(config, &Role::Admin)).await {
        Ok(health) => health,
        Err(error) => {
            return vec![
                Finding::error("nats", error.to_string())
                    .advice("check PYOCO_NATS_URL and PYOCO_NATS_*, and that the servers run with JetStream"),
            ];
        }
    };
    let mut findings = servers(config, &health, now);
    findings.push(durable(config).await);
    findings.extend(streams(config, &health));
    findings.extend(consumers(&health));
    let is_whole = health.streams.iter().all(|stream| stream.is_there && stream.flaw.is_none());
    if !is_whole {
        return findings;
    }
    let looked = inside(config, depth, now);
    let looked = if depth.is_deep {
        looked.await
    } else {
        match tokio::time::timeout(PATIENCE, looked).await {
            Ok(looked) => looked,
            Err(_) => Ok(vec![
                Finding::warn("runs", "there are more than can be looked at in a minute")
                    .advice("run this with --deep"),
            ]),
        }
    };
    findings.extend(looked.unwrap_or_else(|error| vec![Finding::error("nats", error.to_string())]));
    findings
}

fn servers(config: &Config, health: &NatsHealth, now: Timestamp) -> Vec<Finding> {
    let place =
        health.cluster.as_ref().map_or_else(|| "on its own".to_owned(), |name| format!("in cluster {name}"));
    let mut findings = vec![Finding::ok("nats", format!("nats-server {} {place}", health.version))];
    if health.cluster.is_none() && config.nats_access.replicas > 1 {
        findings.push(
            Finding::error(
                "replicas",
                format!(
                    "PYOCO_NATS_REPLICAS={}, and the server is in no cluster",
                    config.nats_access.replicas
                ),
            )
            .advice("nothing that is missing can be made: run three servers as a cluster, or set it to 1"),
        );
    }
    if let Some(time) = health.time {
        let apart = (now.as_unix_seconds() - time.as_unix_seconds()).abs();
        findings.push(if apart > CLOCK_SLACK_SECONDS {
            Finding::warn("clock", format!("it is {apart:.0} s away from the server's"))
                .advice("let every machine keep its time (chrony, systemd-timesyncd): leases and timers compare clocks")
        } else {
            Finding::ok("clock", "it agrees with the server's")
        });
    }
    if let Some((limit, used)) = health.storage {
        let percent = used.saturating_mul(100).checked_div(limit).unwrap_or(0);
        let seen = format!("{percent} % of what JetStream may store is used");
        findings.push(if percent >= NEARLY_FULL {
            Finding::warn("disk", seen).advice(
                "raise the limit (max_file_store), or remove finished runs with pyoco-server-admin prune",
            )
        } else {
            Finding::ok("disk", seen)
        });
    }
    findings
}

async fn durable(config: &Config) -> Finding {
    const ABOUT: &str = "durability";
    match (durability::missing(&config.nats_access).await, config.nats_access.durability) {
        (None, _) => Finding::ok(ABOUT, "the server syncs before it answers"),
        (Some(missing), Durability::Strict) => {
            Finding::error(ABOUT, missing).advice("PYOCO_DURABILITY=strict refuses to start with it")
        }
        (Some(missing), Durability::Relaxed) => Finding::warn(ABOUT, missing)
            .advice("an accepted run may be lost if all servers lose power at once"),
    }
}

fn streams(config: &Config, health: &NatsHealth) -> Vec<Finding> {
    const ABOUT: &str = "streams";
    let mut findings = Vec::new();
    let (there, missing): (Vec<_>, Vec<_>) = health.streams.iter().partition(|stream| stream.is_there);
    if there.is_empty() {
        findings.push(
            Finding::warn(ABOUT, "there are none yet; the first start makes them")
                .advice("check --nats-url if there should be some"),
        );
        return findings;
    }
    let names: Vec<&str> = missing.iter().map(|stream| stream.name.as_str()).collect();
    if !names.is_empty() {
        let is_truth = missing.iter().any(|stream| stream.is_truth);
        let finding = Finding::new(
            if is_truth { Severity::Error } else { Severity::Warn },
            ABOUT,
            format!("missing: {}", some(&names)),
        );
        findings.push(finding.advice(
            "the next start makes them anew, empty; if somebody deleted them, restore a backup first",
        ));
    }
    for stream in &there {
        let name = &stream.name;
        if let Some(flaw) = &stream.flaw {
            findings.push(
                Finding::error(ABOUT, format!("{name} cannot be used: {flaw}"))
                    .advice("no process starts with it; see `nats stream edit`"),
            );
        }
        for drift in &stream.drift {
            findings.push(
                Finding::warn(ABOUT, format!("{name}: {drift}"))
                    .advice("what exists is never changed from here; `nats stream edit` does, or set the variable to what there is"),
            );
        }
        if !stream.behind.is_empty() {
            findings.push(
                Finding::warn(ABOUT, format!("{name} is behind: {}", some(&stream.behind)))
                    .advice("a server is away or catches up; another that goes may stop the stream"),
            );
        }
        if stream.is_truth
            && stream.replicas == 1
            && health.cluster.is_some()
            && config.nats_access.replicas == 1
        {
            findings.push(
                Finding::warn("replicas", format!("{name} stands on one server of a cluster"))
                    .advice("set PYOCO_NATS_REPLICAS=3 and `nats stream edit --replicas 3`, so that any one server may die"),
            );
        }
        if let Some(percent) = stream.percent_full.filter(|percent| *percent >= NEARLY_FULL) {
            findings.push(
                Finding::warn("disk", format!("{name} is {percent} % full, and refuses more when it is"))
                    .advice("raise its max_bytes"),
            );
        }
    }
    if findings.is_empty() {
        findings
            .push(Finding::ok(ABOUT, format!("{} streams and buckets, as they would be made", there.len())));
    }
    findings
}

fn consumers(health: &NatsHealth) -> Vec<Finding> {
    const ABOUT: &str = "consumers";
    let mut findings = Vec::new();
    for consumer in &health.consumers {
        let name = &consumer.name;
        for drift in &consumer.drift {
            findings.push(Finding::warn(ABOUT, format!("{name}: {drift}")).advice(
                "give every worker the same PYOCO_CONSUMER_* and change it with `nats consumer edit`",
            ));
        }
        let limit = u64::try_from(consumer.most_in_hand).unwrap_or(u64::MAX);
        if consumer.pending > 0 && consumer.in_hand >= limit {
            findings.push(
                Finding::warn(
                    ABOUT,
                    format!(
                        "{name}: {} jobs wait, and {} are in hand, as many as may be",
                        consumer.pending, consumer.in_hand
                    ),
                )
                .advice("raise PYOCO_CONSUMER_MAX_ACK_PENDING and the consumer's max_ack_pending"),
            );
        }
    }
    if findings.is_empty() {
        findings
            .push(Finding::ok(ABOUT, format!("{} of jobs, as they would be made", health.consumers.len())));
    }
    findings
}

/// What the runs say, through an index of this process's own. Nothing is missing, so nothing is made.
async fn inside(config: &Config, depth: Depth, now: Timestamp) -> Result<Vec<Finding>, StartError> {
    let index = tokio::task::spawn_blocking(|| SqliteStore::scratch(&std::env::temp_dir()));
    let index: Arc<dyn RunIndex> = Arc::new(index.await.map_err(StartError::other)??);
    let store = NatsStore::open(nats_settings(config, &Role::Gateway), Some(index)).await?;
    let looked = async {
        store.follow(Arc::new(Deaf)).map_err(StartError::other)?.caught_up().await;
        look(&store, config, depth, now).await.map_err(StartError::other)
    };
    let looked = looked.await;
    store.close().await;
    looked
}

/// The index is told before anybody else, and that is enough.
struct Deaf;

#[async_trait]
impl Listener for Deaf {
    async fn heard(&self, _heard: Heard) {}
}

async fn look(
    store: &NatsStore,
    config: &Config,
    depth: Depth,
    now: Timestamp,
) -> Result<Vec<Finding>, StoreError> {
    let mut findings = logs(store, depth).await?;
    findings.extend(stuck(store, config, now).await?);
    findings.extend(workers(store).await?);
    let letters = store.count_letters().await?;
    if letters > 0 {
        findings.push(Finding::warn("dead letters", format!("there are {letters}")).advice(
            "pyoco-server-admin dlq list shows them, dlq redrive runs them again, dlq purge removes them",
        ));
    }
    Ok(findings)
}

async fn logs(store: &NatsStore, depth: Depth) -> Result<Vec<Finding>, StoreError> {
    let mut logs = Logs::default();
    let mut late: Vec<(ExecutionId, Version)> = Vec::new();
    let mut filter = Filter::default();
    let mut left = if depth.is_deep { usize::MAX } else { SAMPLE };
    loop {
        let page = store.list(&filter, left.min(PAGE)).await?;
        for row in &page.rows {
            match verdict(store, row).await? {
                Some(Verdict::Late(version)) => late.push((row.execution.clone(), version)),
                Some(verdict @ (Verdict::Whole | Verdict::Broken(_) | Verdict::Lost)) => {
                    logs.add(&row.execution, verdict);
                }
                None => {}
            }
        }
        left = left.saturating_sub(page.rows.len());
        filter.cursor = page.next;
        if filter.cursor.is_none() || left == 0 {
            break;
        }
    }
    if !late.is_empty() {
        tokio::time::sleep(HEARD).await;
    }
    for (execution, version) in late {
        let is_late = store.get(&execution).await?.is_some_and(|row| row.version < version);
        logs.add(&execution, if is_late { Verdict::Late(version) } else { Verdict::Whole });
    }
    Ok(logs.findings(filter.cursor.is_some()))
}

/// Nothing if there is no log, as with another implementation, or if it is being removed.
async fn verdict(store: &NatsStore, row: &IndexRow) -> Result<Option<Verdict>, StoreError> {
    let verdict = match store.read(&row.execution, Version(0)).await {
        Ok(records) if records.is_empty() => return Ok(None),
        Ok(records) => {
            Verdict::of(&row.execution, row.version, records.iter().map(|record| record.bytes.as_slice()))
        }
        Err(error) if error.kind == ErrorKind::Corrupt => Verdict::Broken(error.to_string()),
        Err(error) => return Err(error),
    };
    let is_whole = matches!(verdict, Verdict::Whole | Verdict::Late(_));
    let is_kept = is_whole || store.tombstone(&row.execution).await?.is_none();
    Ok(is_kept.then_some(verdict))
}

async fn stuck(store: &NatsStore, config: &Config, now: Timestamp) -> Result<Vec<Finding>, StoreError> {
    const ABOUT: &str = "stuck runs";
    let before = overdue_before(config, now);
    let mut lost: Vec<ExecutionId> = Vec::new();
    for tag in store.runnable_tags().await? {
        // Those that wait longest come first.
        let waiting = store.runnable(&tag, STUCK).await?;
        let queued = store.queued(&tag).await?;
        for execution in waiting.into_iter().filter(|execution| !queued.contains(execution)) {
            let row = store.get(&execution).await?;
            if row.is_some_and(|row| row.wants_job && row.updated_at < before) {
                lost.push(execution);
            }
        }
    }
    let due = store.due(before, STUCK).await?;
    let advice = "a gateway of this product fires timers and puts lost jobs back: start one, or see its log";
    let mut findings = Vec::new();
    if !lost.is_empty() {
        findings.push(
            Finding::error(ABOUT, format!("want a worker and stand in no queue: {}", some(&lost)))
                .advice(advice),
        );
    }
    if !due.is_empty() {
        findings.push(
            Finding::error(ABOUT, format!("something is long due and does not happen: {}", some(&due)))
                .advice(advice),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::ok(ABOUT, "none"));
    }
    Ok(findings)
}

/// A record that is there is one of a worker that was heard a moment ago: the others have vanished.
async fn workers(store: &NatsStore) -> Result<Vec<Finding>, StoreError> {
    const ABOUT: &str = "workers";
    let records = store.workers().await?;
    let read = records.iter().filter_map(|record| serde_json::from_slice::<WorkerRecord>(&record.body).ok());
    let alive: Vec<WorkerRecord> =
        read.filter(|worker| !matches!(worker.state.as_str(), "STOPPED_GRACEFUL" | "DISCONNECTED")).collect();
    let waiting = store.runnable_tags().await?;
    let unserved: Vec<String> = waiting
        .iter()
        .map(ToString::to_string)
        .filter(|tag| !alive.iter().any(|worker| worker.tags.contains(tag)))
        .collect();
    Ok(vec![if unserved.is_empty() {
        Finding::ok(ABOUT, format!("{} are alive, and every tag with runs that wait has one", alive.len()))
    } else {
        Finding::warn(ABOUT, format!("runs wait for tags that nobody serves: {}", some(&unserved)))
            .advice("start a pyoco-worker with --tags that name them")
    }])
}
