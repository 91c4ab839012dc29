//! How many lines of tasks a second this machine takes, and what a flood of them does to commands:
//! `cargo run --release -p pyoco-store-sqlite --example lines [folder]`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for a person")]

use std::path::PathBuf;
use std::time::Duration;

use pyoco_core::ids::{Attempt, ExecutionId, NodeId, Version};
use pyoco_core::time::Timestamp;
use pyoco_ports::{Append, Durability, EventLog, LogLine, LogStream, LogTerms, TaskLogs};
use pyoco_store_sqlite::{Options, SqliteStore};
use tokio::time::Instant;

const OPEN: LogTerms = LogTerms { max_bytes: u64::MAX, closes: false };
const LONG: Duration = Duration::from_secs(4);

#[tokio::main]
async fn main() {
    let folder = std::env::args().nth(1).map_or_else(|| PathBuf::from("target/lines"), PathBuf::from);
    let store = SqliteStore::open(&folder, Options::default()).unwrap();
    for writers in [1, 16] {
        for size in [1, 20, 1000] {
            let start = Instant::now();
            let lines = flood(&store, writers, size, start + LONG).await;
            let rate = lines as f64 / start.elapsed().as_secs_f64();
            println!("{writers} writers, batches of {size}: {rate:.0} lines/s");
        }
    }
    let bytes = std::fs::metadata(folder.join("pyoco-logs.db")).unwrap().len();
    println!("pyoco-logs.db has {} MB", bytes / 1_000_000);
    let reader = ExecutionId::new(&name(1000, 0)).unwrap();
    let start = Instant::now();
    let page = store.read_lines(&reader, 10_000, 1_000).await.unwrap();
    println!("{} lines from the middle are read in {} us", page.len(), start.elapsed().as_micros());
    for durability in [Durability::Full, Durability::Process] {
        let quiet = appends(&store, durability, "quiet").await;
        let flooding = flood(&store, 8, 1000, Instant::now() + LONG);
        let (_, flooded) = tokio::join!(flooding, appends(&store, durability, "flooded"));
        for (what, (half, most, count)) in [("alone", quiet), ("beside a flood", flooded)] {
            println!("{durability:?} appends {what}: {count}, p50 {half} us, p99 {most} us");
        }
    }
    store.close().await.unwrap();
}

fn name(size: usize, writer: usize) -> String {
    format!("lines-{size}-{writer}-{}", std::process::id())
}

/// Writes batches until a moment, each writer for an execution of its own, and gives how many lines it were.
async fn flood(store: &SqliteStore, writers: usize, size: usize, end: Instant) -> usize {
    let running: Vec<_> = (0..writers)
        .map(|writer| {
            let store = store.clone();
            let execution = ExecutionId::new(&name(size, writer)).unwrap();
            tokio::spawn(async move {
                let mut lines = 0;
                while Instant::now() < end {
                    store.write_lines(&execution, batch(size), OPEN).await.unwrap();
                    lines += size;
                }
                lines
            })
        })
        .collect();
    let mut lines = 0;
    for writer in running {
        lines += writer.await.unwrap();
    }
    lines
}

fn batch(size: usize) -> Vec<LogLine> {
    let line = LogLine {
        node: Some(NodeId::new("process[17].train").unwrap()),
        attempt: Attempt(1),
        stream: LogStream::Stdout,
        at: Timestamp::from_micros(1_700_000_000_000_000),
        text: "2023-11-14 22:13:20,000 INFO epoch 12 step 3400 loss=0.03417 lr=0.0003 samples/s=1931"
            .to_owned(),
    };
    vec![line; size]
}

/// One appends after the other: half of them took at most the first number of microseconds, 99 % the second.
async fn appends(store: &SqliteStore, durability: Durability, what: &str) -> (u128, u128, usize) {
    let execution = ExecutionId::new(&format!("{what}-{durability:?}-{}", std::process::id())).unwrap();
    let end = Instant::now() + LONG;
    let mut waits = Vec::new();
    while Instant::now() < end {
        let version = Version(waits.len() as u64);
        let mut append = Append::new(execution.clone(), version, vec![b'x'; 512]);
        append.durability = durability;
        let start = Instant::now();
        store.append(append).await.unwrap();
        waits.push(start.elapsed().as_micros());
    }
    waits.sort_unstable();
    (waits[waits.len() / 2], waits[waits.len() * 99 / 100], waits.len())
}
