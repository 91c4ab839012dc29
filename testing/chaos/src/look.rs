//! What is there when all is quiet: as everybody sees it over HTTP, and as it stands in the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use pyoco_core::event::{ActorKind, Event};
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::record;
use pyoco_engine::{Engine, Settings};
use pyoco_ports::{Heard, IndexRow, Store};
use pyoco_server::{RandomIds, SystemClock};
use pyoco_store_nats::{Listener, NatsStore};
use pyoco_store_sqlite::SqliteStore;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::check::{End, Happened, Record, Run};
use crate::fleet::{Fleet, Kind};
use crate::load::Board;

/// Waits until everything has ended; as long as it takes, if only there is progress. How long it took, or what is left.
pub async fn quiet(
    fleet: &mut Fleet,
    board: &Board,
    random: &mut ChaCha8Rng,
    patience: Duration,
) -> Result<Duration, String> {
    let http = reqwest::Client::builder().timeout(Duration::from_secs(10)).build().unwrap();
    let url = format!("{}/metrics", fleet.urls()[0]);
    let (began, mut since, mut left) = (Instant::now(), Instant::now(), u64::MAX);
    loop {
        let waits = board.answer_waits(random).await;
        let open = open(&http, &url).await;
        if (open, waits) == (Some(0), Some(0)) {
            return Ok(began.elapsed());
        }
        if open.is_some_and(|open| open < left) {
            (left, since) = (open.unwrap_or(left), Instant::now());
        }
        if since.elapsed() > patience {
            return Err(format!("{open:?} runs do not end, and {waits:?} wait"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How many runs have not ended, as a gateway counts them.
async fn open(http: &reqwest::Client, url: &str) -> Option<u64> {
    let text = http.get(url).send().await.ok()?.text().await.ok()?;
    let of = |status: &str| {
        let wanted = format!("pyoco_runs_total{{status=\"{status}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&wanted)).map_or(0, |count| count.parse().unwrap_or(0))
    };
    Some(["PENDING", "RUNNING", "CANCELLING"].into_iter().map(of).sum())
}

/// What everybody sees: the runs of lists, each looked at by itself as well, also those that lists do not have.
pub async fn over_http(urls: &[String], accepted: &BTreeSet<String>) -> BTreeMap<String, Run> {
    let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap();
    let mut runs: BTreeMap<String, Run> = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let query = [("limit", "200"), ("cursor", &cursor)];
        let answer =
            http.get(format!("{}/runs", urls[0])).query(&query).send().await.expect("a list of runs");
        let page: Value = answer.json().await.expect("a list of runs");
        for item in page["items"].as_array().expect("items") {
            let run = runs.entry(item["run_id"].as_str().unwrap().to_owned()).or_default();
            run.listed = item["status"].as_str().map(str::to_owned);
        }
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    for run in accepted {
        runs.entry(run.clone()).or_default();
    }
    // Whichever gateway is asked.
    for ((id, run), url) in runs.iter_mut().zip(urls.iter().cycle()) {
        let answer = http.get(format!("{url}/runs/{id}")).send().await.expect("an answer");
        if answer.status().is_success() {
            let shown: Value = answer.json().await.expect("a run");
            run.shown = shown["status"].as_str().map(str::to_owned);
        }
    }
    // What is neither shown nor listed is not there.
    runs.retain(|_, run| run.shown.is_some() || run.listed.is_some());
    runs
}

/// The wheels that are there, with what their bytes hash to.
pub async fn wheels(url: &str) -> BTreeMap<String, String> {
    let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().unwrap();
    let answer = http.get(format!("{url}/wheels")).send().await.expect("a list of wheels");
    let listed: Value = answer.json().await.expect("a list of wheels");
    let mut wheels = BTreeMap::new();
    for wheel in listed.as_array().or_else(|| listed["items"].as_array()).into_iter().flatten() {
        let name = wheel["name"].as_str().unwrap().to_owned();
        let answer = http.get(format!("{url}/wheels/{name}")).send().await.expect("a wheel");
        let bytes = answer.bytes().await.expect("a whole wheel");
        let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        wheels.insert(name, hash);
    }
    wheels
}

struct Nobody;

#[async_trait]
impl Listener for Nobody {
    async fn heard(&self, _: Heard) {}
}

/// The executions that have a log and that nobody sees. In the embedded store both are one step.
pub async fn unseen(fleet: &Fleet) -> Vec<ExecutionId> {
    if fleet.kind == Kind::Sqlite {
        return Vec::new();
    }
    let store = NatsStore::open(settings(fleet), None).await.expect("a store");
    let unseen = store.unseen().await.expect("all subjects");
    store.close().await;
    unseen
}

fn settings(fleet: &Fleet) -> pyoco_store_nats::Settings {
    let urls = fleet.nats_urls();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let mut settings = pyoco_store_nats::Settings::new(&urls);
    settings.replicas = urls.len();
    settings
}

/// An engine of our own on the store, beside nobody.
pub async fn engine(fleet: &Fleet) -> Result<Engine, String> {
    let store: Arc<dyn Store> = match fleet.kind {
        Kind::Sqlite => {
            let store = SqliteStore::open(&fleet.data(), Default::default());
            Arc::new(store.map_err(|error| error.to_string())?)
        }
        Kind::Nats | Kind::Nats3 => {
            let index = SqliteStore::scratch(&std::env::temp_dir()).map_err(|error| error.to_string())?;
            let store = NatsStore::open(settings(fleet), Some(Arc::new(index))).await;
            let store = store.map_err(|error| error.to_string())?;
            store.follow(Arc::new(Nobody)).map_err(|error| error.to_string())?.caught_up().await;
            store
        }
    };
    Ok(Engine::new(store, Arc::new(SystemClock), Arc::new(RandomIds), Settings::default()))
}

/// Adds what stands in the store.
pub async fn in_store(engine: &Engine, runs: &mut BTreeMap<String, Run>) {
    let letters = letters(engine).await;
    for (id, run) in runs {
        let execution = ExecutionId::new(id).expect("an id");
        match engine.store().read(&execution, Version(0)).await {
            Ok(stored) => {
                for bytes in stored.iter().map(|record| &record.bytes) {
                    match record::Record::decode(bytes) {
                        Ok(record) => {
                            run.label = run.label.take().or_else(|| label(&record));
                            run.log.push(seen(&record));
                        }
                        Err(error) => run.findings.push(format!("a record cannot be read: {error}")),
                    }
                }
            }
            Err(error) => run.findings.push(format!("the log cannot be read: {error}")),
        }
        let before = row(engine, &execution).await;
        match engine.audit(&execution).await {
            Ok(audit) => run.findings.extend(audit.findings.iter().map(|finding| format!("{finding:?}"))),
            Err(error) => run.findings.push(format!("it cannot be audited: {error}")),
        }
        if run.findings.last().is_some_and(|last| last.contains("Repaired")) {
            let after = row(engine, &execution).await;
            run.findings.pop();
            if before != after {
                run.findings.push(format!("RowRepaired from {before:?} to {after:?}"));
            }
        }
        run.has_letter = letters.contains(id);
    }
}

/// The row of an execution, without the last sign of life of its worker, which no log has.
async fn row(engine: &Engine, execution: &ExecutionId) -> Option<IndexRow> {
    let mut row = engine.store().get(execution).await.ok().flatten()?;
    row.summary.heartbeat_at = None;
    Some(row)
}

/// The runs that dead letters tell of.
async fn letters(engine: &Engine) -> BTreeSet<String> {
    let (mut runs, mut behind) = (BTreeSet::new(), None);
    loop {
        let page = engine.store().letter_page(behind, 500).await.expect("dead letters");
        for letter in &page.letters {
            let body: Value = serde_json::from_slice(&letter.body).unwrap_or_default();
            runs.extend(body["run_id"].as_str().map(str::to_owned));
        }
        match page.next {
            Some(next) => behind = Some(next),
            None => return runs,
        }
    }
}

fn label(record: &record::Record) -> Option<String> {
    record.events.iter().find_map(|envelope| {
        let Event::ExecutionCreated(created) = &envelope.event else { return None };
        let created = serde_json::to_value(created).ok()?;
        created["input"]["label"].as_str().map(str::to_owned)
    })
}

/// A record, as far as the rules care.
pub fn seen(record: &record::Record) -> Record {
    let happened = |event: &Event| match event {
        Event::ExecutionCreated(_) => Happened::Created,
        Event::ExecutionCancelRequested(_) => Happened::CancelRequested,
        Event::NodeStarted(event) => Happened::Started(event.node_id.to_string()),
        Event::NodeSucceeded(event) => Happened::Succeeded(event.node_id.to_string()),
        Event::ExecutionCompleted(_) => Happened::Ended(End::Completed),
        Event::ExecutionFailed(_) => Happened::Ended(End::Failed),
        Event::ExecutionCanceled(_) => Happened::Ended(End::Canceled),
        _ => Happened::Other,
    };
    let by_worker = record.actor.kind == ActorKind::System;
    Record {
        seq: record.seq.0,
        first_event: record.first_event.0,
        epoch: record.epoch.0,
        worker: record.actor.id.clone().filter(|_| by_worker),
        claim: record.claim.as_ref().map(|claim| (claim.epoch.0, claim.worker.to_string())),
        at: record.at.as_micros(),
        events: record.events.iter().map(|envelope| happened(&envelope.event)).collect(),
    }
}
