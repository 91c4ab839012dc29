//! How long lists of jobs and of labels take with many executions and labels:
//! `cargo run --release -p pyoco-store-sqlite --example jobs [executions] [labels] [folder]`. A folder that
//! has executions is asked as it is; a new one is filled first, which takes some minutes.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for a person")]

use std::path::PathBuf;

use pyoco_core::ids::{ExecutionId, Tag, TenantId, Version};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{IndexRow, JobFilter, LabelFilter, RunIndex};
use pyoco_store_sqlite::{Options, SqliteStore};
use tokio::time::Instant;

const ROUNDS: usize = 500;
const WRITERS: usize = 200;

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    let rows: usize = words.next().map_or(1_000_000, |word| word.parse().unwrap());
    let labels: usize = words.next().map_or(50_000, |word| word.parse().unwrap());
    let folder = words.next().map_or_else(|| PathBuf::from("target/jobs"), PathBuf::from);
    let store = SqliteStore::open(&folder, Options::default()).unwrap();
    if store.counts(None).await.unwrap().is_empty() {
        let start = Instant::now();
        let writers: Vec<_> =
            (0..WRITERS).map(|first| tokio::spawn(fill(store.clone(), first, rows, labels))).collect();
        for writer in writers {
            writer.await.unwrap();
        }
        println!("filled in {:.1} s", start.elapsed().as_secs_f64());
    }
    let there: u64 = store.counts(None).await.unwrap().iter().map(|(_, runs)| runs).sum();
    println!("{there} executions");
    let all = JobFilter::default();
    let all_of = |labels: Vec<String>| JobFilter { all_labels: labels, ..JobFilter::default() };
    let any_of = |labels: Vec<String>| JobFilter { any_labels: labels, ..JobFilter::default() };
    let failed = |filter| JobFilter { statuses: vec![RunStatus::Failed], ..filter };
    let cancelled = |filter| JobFilter { statuses: vec![RunStatus::Cancelled], ..filter };
    let text = |text: &str| text.to_owned();
    let rare = move |round: usize| format!("rare-{}", round * 7_919 % labels);
    ask(&store, "newest", |_| all.clone()).await;
    ask(&store, "newest of a tenant", |_| JobFilter { tenant: team(), ..all.clone() }).await;
    ask(&store, "in the middle", |round| JobFilter {
        created_before: Some(at(rows / 2 + round)),
        ..all.clone()
    })
    .await;
    ask(&store, "the label of most", |_| all_of(vec![text("cpu")])).await;
    ask(&store, "the label of most, of a tenant", |_| JobFilter {
        tenant: team(),
        ..all_of(vec![text("cpu")])
    })
    .await;
    ask(&store, "a rare label", |round| all_of(vec![rare(round)])).await;
    ask(&store, "two common labels with few in common", |_| all_of(vec![text("even"), text("odd")])).await;
    ask(&store, "a common and a rare label", |round| all_of(vec![text("cpu"), rare(round)])).await;
    ask(&store, "any of 16 rare labels", |round| any_of((0..16).map(|n| rare(round * 16 + n)).collect()))
        .await;
    ask(&store, "any of 16 labels, common ones too", |round| {
        any_of((0..14).map(|n| rare(round * 16 + n)).chain([text("even"), text("odd")]).collect())
    })
    .await;
    ask(&store, "a common label, and any of 16", |round| JobFilter {
        any_labels: (0..16).map(|n| rare(round * 16 + n)).collect(),
        ..all_of(vec![text("even")])
    })
    .await;
    ask(&store, "a status of few, old ones", |_| cancelled(all.clone())).await;
    ask(&store, "the label of most, a status of few", |_| cancelled(all_of(vec![text("cpu")]))).await;
    ask(&store, "a rare and old status: the walk that is left", |_| failed(all.clone())).await;
    ask(&store, "the label of most, a rare and old status: the walk that is left", |_| {
        failed(all_of(vec![text("cpu")]))
    })
    .await;
    ask(&store, "a rare label and a rare status", |round| failed(all_of(vec![rare(round)]))).await;
    ask(&store, "any of 16 labels, a rare and old status: the walk that is left", |round| {
        failed(any_of((0..14).map(|n| rare(round * 16 + n)).chain([text("even"), text("odd")]).collect()))
    })
    .await;
    for (what, filter) in [
        ("first", LabelFilter::default()),
        ("of a tenant", LabelFilter { tenant: team(), ..LabelFilter::default() }),
        ("with a prefix", LabelFilter { prefix: Some(text("rare-4")), ..LabelFilter::default() }),
    ] {
        let mut times = Vec::new();
        let mut found = 0;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            found = store.labels(&filter, 100).await.unwrap().labels.len();
            times.push(start.elapsed().as_micros());
        }
        say(&format!("labels {what} ({found} shown)"), times);
    }
    store.close().await.unwrap();
}

async fn ask(store: &SqliteStore, what: &str, filter: impl Fn(usize) -> JobFilter) {
    let mut times = Vec::new();
    let (mut found, mut is_last) = (0, false);
    for round in 0..ROUNDS {
        let filter = filter(round);
        let start = Instant::now();
        let page = store.jobs(&filter, 50).await.unwrap();
        times.push(start.elapsed().as_micros());
        (found, is_last) = (page.rows.len(), page.next.is_none());
    }
    let more = if is_last { "all" } else { "and more" };
    say(&format!("jobs {what} ({found} shown, {more})"), times);
}

fn say(what: &str, mut times: Vec<u128>) {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("{what}: p50 {} us, p99 {} us, most {} us", at(50), at(99), at(100));
}

fn team() -> Option<TenantId> {
    Some(TenantId::new("team-3").unwrap())
}

fn at(number: usize) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000).after(Millis(number as u64))
}

/// Puts every so-many-th row.
async fn fill(store: SqliteStore, first: usize, rows: usize, labels: usize) {
    for number in (first..rows).step_by(WRITERS) {
        store.put(row(number, labels)).await.unwrap();
    }
}

fn row(number: usize, labels: usize) -> IndexRow {
    // Ids as they are in life: in no order.
    let digest = pyoco_core::digest::Digest::of_bytes(&number.to_le_bytes()).to_string();
    let execution = ExecutionId::new(&digest[..32]).unwrap();
    // Those that did not succeed are the oldest, so that a walk from the newest is long.
    let status = match number {
        0..5_000 => RunStatus::Failed,
        5_000..5_100 => RunStatus::Cancelled,
        _ => RunStatus::Completed,
    };
    let mut tags = vec!["cpu".to_owned(), format!("rare-{}", number % labels)];
    // Halves of all, with a few in common.
    if number.is_multiple_of(2) || number.is_multiple_of(20_001) {
        tags.push("even".to_owned());
    }
    if !number.is_multiple_of(2) {
        tags.push("odd".to_owned());
    }
    IndexRow {
        summary: RunSummary {
            run_id: execution.to_string(),
            flow_name: "analysis".to_owned(),
            tag: Some(Tag::new("cpu").unwrap()),
            tags,
            tenant_id: Some(TenantId::new(&format!("team-{}", number % 7)).unwrap()),
            api_key_id: None,
            status,
            updated_at: Some(at(number).as_unix_seconds()),
            heartbeat_at: None,
            worker_id: None,
            error: None,
        },
        execution,
        version: Version(1),
        created_at: at(number),
        updated_at: at(number + 5_000),
        started_at: Some(at(number + 100)),
        ended_at: Some(at(number + 5_000)),
        cancel_requested_at: None,
        workflow_sha256: None,
        hidden: false,
        next_timer: None,
        wants_job: false,
        waits: Vec::new(),
        has_waited: false,
        is_archived: false,
        is_foreign: false,
    }
}
