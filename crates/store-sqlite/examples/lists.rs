//! How long lists, counts and depths take with many runs and jobs:
//! `cargo run --release -p pyoco-store-sqlite --example lists [rows] [folder]`. The folder has to be a new one.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for a person")]

use std::path::PathBuf;

use pyoco_core::ids::{ExecutionId, Tag, TenantId, Version, WorkerId};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{Append, Durability, EventLog, Filter, IndexRow, Job, RunIndex, WorkQueue};
use pyoco_store_sqlite::{Options, SqliteStore};
use tokio::time::Instant;

const ROUNDS: usize = 51;
const WRITERS: usize = 200;

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    let rows: usize = words.next().map_or(100_000, |word| word.parse().unwrap());
    let folder = words.next().map_or_else(|| PathBuf::from("target/lists"), PathBuf::from);
    let store = SqliteStore::open(&folder, Options::default()).unwrap();
    let start = Instant::now();
    let writers: Vec<_> = (0..WRITERS).map(|first| tokio::spawn(fill(store.clone(), first, rows))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    println!("{rows} rows and jobs in {:.1} s", start.elapsed().as_secs_f64());
    for (what, filter) in filters(rows) {
        let mut times = Vec::new();
        let mut found = 0;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            found = store.list(&filter, 50).await.unwrap().rows.len();
            times.push(start.elapsed().as_micros());
        }
        say(&format!("list {what} ({found} shown)"), times);
    }
    let (day, team) = (at(rows - rows / 10), TenantId::new("team-3").unwrap());
    let (cpu, worker) = (Tag::new("cpu").unwrap(), WorkerId::new("w").unwrap());
    let (mut counts, mut since, mut since_team, mut depth, mut take) =
        (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        store.counts(None).await.unwrap();
        counts.push(start.elapsed().as_micros());
        let start = Instant::now();
        store.counts_since(None, day).await.unwrap();
        since.push(start.elapsed().as_micros());
        let start = Instant::now();
        store.counts_since(Some(&team), day).await.unwrap();
        since_team.push(start.elapsed().as_micros());
        let start = Instant::now();
        store.depth(&cpu).await.unwrap();
        depth.push(start.elapsed().as_micros());
        let start = Instant::now();
        store.take(std::slice::from_ref(&cpu), &worker, 4, Millis(30_000), at(0)).await.unwrap();
        take.push(start.elapsed().as_micros());
    }
    say("counts", counts);
    say("counts since, a tenth of the rows", since);
    say("counts since, of a tenant", since_team);
    say(&format!("depth ({})", store.depth(&cpu).await.unwrap()), depth);
    say("take 4", take);
    store.close().await.unwrap();
}

fn say(what: &str, mut times: Vec<u128>) {
    times.sort_unstable();
    println!("{what}: p50 {} us, most {} us", times[times.len() / 2], times[times.len() - 1]);
}

fn at(number: usize) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000).after(Millis(number as u64))
}

/// Filters that find much, little and nothing.
fn filters(rows: usize) -> Vec<(&'static str, Filter)> {
    let all = Filter::default();
    let big = || Some("big".to_owned());
    vec![
        ("newest", all.clone()),
        ("completed", Filter { statuses: vec![RunStatus::Completed], ..all.clone() }),
        ("failed, rare and old", Filter { statuses: vec![RunStatus::Failed], ..all.clone() }),
        ("cancelling, none", Filter { statuses: vec![RunStatus::Cancelling], ..all.clone() }),
        ("the flow of most", Filter { flow: big(), ..all.clone() }),
        ("a flow of few", Filter { flow: Some("flow-8".to_owned()), ..all.clone() }),
        ("tag", Filter { tag: Some("cpu".to_owned()), ..all.clone() }),
        (
            "the flow of most, completed",
            Filter { flow: big(), statuses: vec![RunStatus::Completed], ..all.clone() },
        ),
        (
            "the flow of most, failed",
            Filter { flow: big(), statuses: vec![RunStatus::Failed], ..all.clone() },
        ),
        (
            "the flow of most, cancelling",
            Filter { flow: big(), statuses: vec![RunStatus::Cancelling], ..all.clone() },
        ),
        (
            "tag, failed",
            Filter { tag: Some("cpu".to_owned()), statuses: vec![RunStatus::Failed], ..all.clone() },
        ),
        // The label of all: of most it is the tag.
        ("label", Filter { label: Some("cpu".to_owned()), ..all.clone() }),
        (
            "label, failed",
            Filter { label: Some("cpu".to_owned()), statuses: vec![RunStatus::Failed], ..all.clone() },
        ),
        ("a label of none that is a tag", Filter { label: Some("gpu".to_owned()), ..all.clone() }),
        ("submitted text", Filter { workflow_sha256: Some("w3".to_owned()), ..all.clone() }),
        ("changed after", Filter { updated_after: Some(at(rows / 2)), ..all.clone() }),
        ("flow, changed after", Filter { flow: big(), updated_after: Some(at(rows - 20)), ..all.clone() }),
        (
            "tenant, flow, failed",
            Filter {
                tenant: Some(TenantId::new("team-3").unwrap()),
                flow: big(),
                statuses: vec![RunStatus::Failed],
                ..all.clone()
            },
        ),
        (
            "flow and a tag it never has: the walk that is left",
            Filter { flow: big(), tag: Some("none".to_owned()), ..all },
        ),
    ]
}

/// Appends a record with its row and its job for every so-many-th run.
async fn fill(store: SqliteStore, first: usize, rows: usize) {
    for number in (first..rows).step_by(WRITERS) {
        let execution = ExecutionId::new(&format!("6f9619ff-8b86-4d01-b42d-{number:012}")).unwrap();
        let mut append = Append::new(execution.clone(), Version(0), vec![b'x'; 300]);
        append.durability = Durability::Process;
        let tag = Tag::new(if number.is_multiple_of(10) { "gpu" } else { "cpu" }).unwrap();
        append.enqueue = Some(Job { execution: execution.clone(), tag: tag.clone(), body: vec![b'j'; 200] });
        append.row = Some(row(execution, number, tag));
        store.append(append).await.unwrap();
    }
}

fn row(execution: ExecutionId, number: usize, tag: Tag) -> IndexRow {
    // The few that failed are the oldest, so that a walk from the newest would be long.
    let status = match number {
        0..100 => RunStatus::Failed,
        _ if number.is_multiple_of(50) => RunStatus::Running,
        _ => RunStatus::Completed,
    };
    let flow_name = if number % 10 < 8 { "big".to_owned() } else { format!("flow-{}", number % 40) };
    IndexRow {
        summary: RunSummary {
            run_id: execution.to_string(),
            flow_name,
            tag: Some(tag),
            tags: vec!["cpu".to_owned()],
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
        updated_at: at(number),
        started_at: None,
        ended_at: None,
        cancel_requested_at: None,
        workflow_sha256: Some(format!("w{}", number % 300)),
        hidden: false,
        next_timer: None,
        wants_job: false,
        waits: Vec::new(),
        has_waited: false,
        is_archived: false,
        is_foreign: false,
    }
}
