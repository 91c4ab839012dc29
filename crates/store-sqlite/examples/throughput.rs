//! How many appends a second this machine's disk allows: `cargo run -p pyoco-store-sqlite --example throughput [tasks] [folder]`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for a person")]

use std::path::PathBuf;

use pyoco_core::ids::{ExecutionId, Tag, Version};
use pyoco_core::time::Timestamp;
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{Append, Durability, EventLog, IndexRow};
use pyoco_store_sqlite::{Options, SqliteStore};
use tokio::time::Instant;

const EACH: u64 = 1_000;

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    let tasks: usize = words.next().map_or(16, |word| word.parse().unwrap());
    let folder = words.next().map_or_else(|| PathBuf::from("target/throughput"), PathBuf::from);
    let store = SqliteStore::open(&folder, Options::default()).unwrap();
    for (name, durability, with_row) in [
        ("Full, record only", Durability::Full, false),
        ("Full, record and row", Durability::Full, true),
        ("Process, record only", Durability::Process, false),
        ("Process, record and row", Durability::Process, true),
    ] {
        let start = Instant::now();
        let running: Vec<_> = (0..tasks)
            .map(|task| tokio::spawn(write(store.clone(), name, task, durability, with_row)))
            .collect();
        let mut waits = Vec::new();
        for task in running {
            waits.extend(task.await.unwrap());
        }
        let seconds = start.elapsed().as_secs_f64();
        waits.sort_unstable();
        let (half, most) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
        let count = waits.len();
        let rate = count as f64 / seconds;
        println!("{name}: {tasks} tasks, {count} appends, {rate:.0}/s, p50 {half} us, p99 {most} us");
    }
    store.close().await.unwrap();
}

/// Appends to an execution of its own, and gives how long each took in microseconds.
async fn write(
    store: SqliteStore,
    name: &str,
    task: usize,
    durability: Durability,
    with_row: bool,
) -> Vec<u128> {
    let digest = pyoco_core::digest::Digest::of_bytes(name.as_bytes()).to_string();
    let execution = ExecutionId::new(&format!("{}-{task}-{}", &digest[..8], std::process::id())).unwrap();
    let mut waits = Vec::new();
    for version in 0..EACH {
        let mut append = Append::new(execution.clone(), Version(version), vec![b'x'; 512]);
        append.durability = durability;
        append.row = with_row.then(|| row(&execution, version + 1));
        let start = Instant::now();
        store.append(append).await.unwrap();
        waits.push(start.elapsed().as_micros());
    }
    waits
}

fn row(execution: &ExecutionId, version: u64) -> IndexRow {
    let at = Timestamp::from_micros(i64::try_from(version).unwrap());
    IndexRow {
        execution: execution.clone(),
        version: Version(version),
        summary: RunSummary {
            run_id: execution.to_string(),
            flow_name: "flow".to_owned(),
            tag: Some(Tag::new("tag").unwrap()),
            tags: vec!["tag".to_owned()],
            tenant_id: None,
            api_key_id: None,
            status: RunStatus::Running,
            updated_at: None,
            heartbeat_at: None,
            worker_id: None,
            error: None,
        },
        created_at: Timestamp::from_micros(0),
        updated_at: at,
        started_at: None,
        ended_at: None,
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
