//! The process is killed while it writes: what was acknowledged is there, without a gap.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use pyoco_core::ids::{Attempt, ExecutionId, NodeId, Tag, Version};
use pyoco_core::time::Timestamp;
use pyoco_core::view::{RunStatus, RunSummary};
use pyoco_ports::{
    Append, Durability, EventLog, Filter, IndexRow, Job, LogLine, LogStream, LogTerms, RunIndex, TaskLogs,
    WorkQueue,
};
use pyoco_store_sqlite::{Options, SqliteStore};

const FOLDER: &str = "PYOCO_CRASH_TEST_FOLDER";
const WRITERS: usize = 6;
const ROUNDS: usize = 12;
const LINES: usize = 3;

fn bytes(execution: &str, version: u64) -> Vec<u8> {
    format!("{execution}:{version}:").repeat(40).into_bytes()
}

/// Not a test of its own: the process that the other test kills. Without its folder it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_one_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = SqliteStore::open(Path::new(&folder), Options::default()).unwrap();
    let writers: Vec<_> = (0..WRITERS).map(|number| tokio::spawn(write(store.clone(), number))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

/// Appends for ever, and says so only afterwards.
async fn write(store: SqliteStore, number: usize) {
    let name = format!("e{number}");
    let execution = ExecutionId::new(&name).unwrap();
    let records = EventLog::read(&store, &execution, Version(0)).await.unwrap();
    let mut version = records.last().map_or(0, |record| record.version.0);
    loop {
        let mut append = Append::new(execution.clone(), Version(version), bytes(&name, version + 1));
        // Killing the process must lose neither kind.
        append.durability = if number.is_multiple_of(2) { Durability::Full } else { Durability::Process };
        append.enqueue = Some(job(&execution));
        append.row = Some(row(&execution, version + 1));
        // The lines first, so that there are never fewer of them than records.
        store.write_lines(&execution, lines(&name, version + 1), OPEN).await.unwrap();
        store.append(append).await.unwrap();
        version += 1;
        let mut out = std::io::stdout().lock();
        writeln!(out, "ack {name} {version}").unwrap();
        out.flush().unwrap();
    }
}

const OPEN: LogTerms = LogTerms { max_bytes: 1_000_000_000, closes: false };

/// What is written before a record.
fn lines(execution: &str, version: u64) -> Vec<LogLine> {
    let line = |number| LogLine {
        node: Some(NodeId::new("node").unwrap()),
        attempt: Attempt(1),
        stream: LogStream::Stdout,
        at: Timestamp::from_micros(7),
        text: format!("{execution}:{version}:{number}"),
    };
    (0..LINES).map(line).collect()
}

fn row(execution: &ExecutionId, version: u64) -> IndexRow {
    let at = Timestamp::from_micros(7);
    IndexRow {
        execution: execution.clone(),
        version: Version(version),
        summary: RunSummary {
            run_id: execution.to_string(),
            flow_name: "flow".to_owned(),
            tag: Some(Tag::new("t").unwrap()),
            tags: vec!["t".to_owned()],
            tenant_id: None,
            api_key_id: None,
            status: RunStatus::Running,
            updated_at: None,
            heartbeat_at: None,
            worker_id: None,
            error: None,
        },
        created_at: at,
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

fn job(execution: &ExecutionId) -> Job {
    Job { execution: execution.clone(), tag: Tag::new("t").unwrap(), body: Vec::new() }
}

#[tokio::test]
async fn what_was_acknowledged_survives_the_kill_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    // For each writer the last version that must be there: acknowledged, or seen after an earlier kill.
    let mut known: BTreeMap<String, u64> = (0..WRITERS).map(|number| (format!("e{number}"), 0)).collect();
    for round in 0..ROUNDS {
        let wanted = 1 + RandomState::new().hash_one(round) % 400;
        run_and_kill(folder.path(), wanted, &mut known);
        let store = SqliteStore::open(folder.path(), Options::default()).unwrap();
        let mut written = 0;
        for (name, version) in &mut known {
            let records = EventLog::read(&store, &ExecutionId::new(name).unwrap(), Version(0)).await.unwrap();
            let there = records.len() as u64;
            assert!(there >= *version, "round {round}: {name} has {there}, {version} was acknowledged");
            // One more was perhaps on its way.
            assert!(there <= *version + 1, "round {round}: {name} has {there}, {version} was acknowledged");
            for (record, number) in records.iter().zip(1..) {
                assert_eq!(record.version.0, number, "round {round}: {name}");
                assert_eq!(record.bytes, bytes(name, number), "round {round}: {name}");
            }
            *version = there;
            written += there;
            let id = ExecutionId::new(name).unwrap();
            let row = store.get(&id).await.unwrap();
            assert_eq!(row.map_or(0, |row| row.version.0), there, "round {round}: the row of {name}");
            let texts = store.read_lines(&id, 0, usize::MAX).await.unwrap();
            // Those of the last batches may have come without their record; each is there as a whole.
            assert!(texts.len() >= records.len() * LINES, "round {round}: {name} has {} lines", texts.len());
            assert_eq!(texts.len() % LINES, 0, "round {round}: {name}");
            for ((number, line), index) in texts.iter().zip(0_u64..) {
                assert_eq!(*number, index + 1, "round {round}: {name}");
                assert!(line.text.starts_with(&format!("{name}:")), "round {round}: {line:?}");
            }
            // The end of the log is kept with its lines.
            let end = store.log_end(&id).await.unwrap();
            let bytes: u64 = texts.iter().map(|(_, line)| line.text_bytes()).sum();
            assert_eq!((end.lines, end.bytes), (texts.len() as u64, bytes), "round {round}: {name}");
        }
        let begun = known.values().filter(|version| **version > 0).count();
        assert_eq!(store.list(&Filter::default(), 100).await.unwrap().rows.len(), begun, "round {round}");
        // A record and its job are one step.
        assert_eq!(store.depth(&Tag::new("t").unwrap()).await.unwrap(), written, "round {round}");
    }
}

/// Starts a process that appends, and kills it after it has acknowledged so many records.
fn run_and_kill(folder: &Path, wanted: u64, known: &mut BTreeMap<String, u64>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_one_that_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let (mut seen, mut line) = (0, String::new());
    // What it had said before it died counts too, so this reads to the end.
    while out.read_line(&mut line).unwrap() > 0 {
        // Its last line may be cut.
        if let Some(ack) = line.strip_prefix("ack ").and_then(|line| line.strip_suffix('\n')) {
            let (name, version) = ack.split_once(' ').unwrap();
            known.insert(name.to_owned(), version.parse().unwrap());
            seen += 1;
            if seen == wanted {
                child.kill().unwrap();
            }
        }
        line.clear();
    }
    assert!(seen >= wanted, "the process ended by itself after {seen} records");
    child.wait().unwrap();
}
