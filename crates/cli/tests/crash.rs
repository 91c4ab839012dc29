//! The process is killed again and again, at random moments, under load. Nothing that was accepted is lost, every run ends
//! once, and a task that has succeeded is not run again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyoco_client::Client;
use pyoco_client::api::{RunStatus, SubmitRequest};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use support::{PATIENCE, Site, free_port};

const KILLS: usize = 50;
const SUBMITTERS: usize = 4;

const FLOW: &str = "\
version: 2
flow:
  graph: |
    first >> (left & right) >> last
tasks:
  first: {callable: 'ledger_tasks:first'}
  left: {callable: 'ledger_tasks:left'}
  right: {callable: 'ledger_tasks:right'}
  last: {callable: 'ledger_tasks:last'}
";

/// Each task writes a line to a file outside the system before it returns.
const MODULE: &str = r#"
import os

def note(ctx, task):
    ledger = os.open(ctx.params["ledger"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, f"{ctx.params['id']} {task}\n".encode())
    os.close(ledger)
    return task

def first(ctx): return note(ctx, "first")
def left(ctx): return note(ctx, "left")
def right(ctx): return note(ctx, "right")
def last(ctx): return note(ctx, "last")
"#;

/// Submits runs until told to stop, and remembers what was accepted.
async fn submit(
    client: Client,
    ledger: String,
    next: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    accepted: Accepted,
) {
    while !stop.load(Ordering::SeqCst) {
        let id = next.fetch_add(1, Ordering::SeqCst).to_string();
        let params = json!({"id": id, "ledger": ledger});
        let request = SubmitRequest {
            flow_name: "ledger".to_owned(),
            params: params.as_object().unwrap().clone().into_iter().collect(),
            ..SubmitRequest::default()
        };
        // A refused or broken submission promises nothing; only an answer does.
        if let Ok(answer) = client.submit_run(&request).await {
            accepted.lock().unwrap().push((answer.run_id.clone(), id));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until more runs have completed than are in work at once.
async fn progress(client: &Client) {
    let before = completed(client).await;
    let some = async {
        while completed(client).await < before + 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, some).await.expect("progress");
}

async fn completed(client: &Client) -> u64 {
    let metrics = client.get_metrics().await.unwrap();
    let counted =
        metrics.lines().find_map(|line| line.strip_prefix("pyoco_runs_total{status=\"COMPLETED\"} "));
    counted.map_or(0, |count| count.parse().unwrap())
}

type Accepted = Arc<Mutex<Vec<(String, String)>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_accepted_is_lost_when_the_process_is_killed_fifty_times() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2026);
    eprintln!("SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let site = Site::new().flow("ledger", FLOW, MODULE);
    let ledger = site.path("ledger.txt");
    let port = free_port();
    let (accepted, stop): (Accepted, Arc<AtomicBool>) = Default::default();
    let next = Arc::new(AtomicU64::new(0));
    let client = Client::new(format!("http://127.0.0.1:{port}")).unwrap();
    let submitters: Vec<_> = (0..SUBMITTERS)
        .map(|_| {
            let ledger = ledger.to_str().unwrap().to_owned();
            tokio::spawn(submit(client.clone(), ledger, next.clone(), stop.clone(), accepted.clone()))
        })
        .collect();
    for kill in 0..KILLS {
        let running = site.start_on(port);
        // Every fourth time it hardly gets up. Otherwise it gets something done first: a run whose worker is lost five times
        // in a row without any progress is failed on purpose, and that is another test's matter.
        if kill % 4 > 0 {
            progress(&running.client).await;
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(0..200))).await;
        running.kill();
    }
    stop.store(true, Ordering::SeqCst);
    for submitter in submitters {
        submitter.await.unwrap();
    }
    let running = site.start_on(port);
    let accepted = accepted.lock().unwrap().clone();
    eprintln!("{} runs were accepted of {} submitted", accepted.len(), next.load(Ordering::SeqCst));
    assert!(accepted.len() > KILLS, "there was load");

    let mut made: HashMap<String, u64> = HashMap::new();
    let mut records: HashMap<String, Value> = HashMap::new();
    for (run, id) in &accepted {
        let ended = tokio::time::timeout(PATIENCE, running.until_ended(run)).await.expect("an end");
        assert_eq!(ended.status, RunStatus::Completed, "{run}: {:?}", ended.error);
        for (task, record) in ended.task_records.unwrap() {
            assert_eq!(record.state, "SUCCEEDED", "{run} {task}");
            let record = serde_json::to_value(&record).unwrap();
            records.insert(format!("{id} {task}"), record);
        }
    }
    for line in std::fs::read_to_string(&ledger).unwrap().lines() {
        *made.entry(line.to_owned()).or_default() += 1;
    }
    let mut lost = 0;
    for (key, record) in &records {
        let attempts = record["attempts"].as_array().unwrap();
        let succeeded = attempts.iter().filter(|attempt| attempt["state"] == "SUCCEEDED").count();
        assert_eq!(succeeded, 1, "{key} succeeded once: {record}");
        let made = made.get(key).copied().unwrap_or_default();
        assert!(made >= 1, "{key} was really run");
        assert!(
            made <= attempts.len() as u64,
            "{key} was run {made} times, the log knows of {}",
            attempts.len()
        );
        lost += attempts.len() - 1;
    }
    eprintln!("{lost} attempts were lost with their process and made again");
    // Runs whose answer never arrived are whole as well: they are there and end, or were never there.
    let since = std::time::Instant::now();
    let counts = loop {
        let counts = running.client.get_metrics().await.unwrap();
        let of = |status: &str| counts.contains(&format!("pyoco_runs_total{{status=\"{status}\"}} "));
        if !of("PENDING") && !of("RUNNING") {
            break counts;
        }
        assert!(since.elapsed() < PATIENCE, "{counts}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    for status in ["FAILED", "CANCELLING", "CANCELLED"] {
        assert!(!counts.contains(&format!("pyoco_runs_total{{status=\"{status}\"}} ")), "{counts}");
    }
    assert!(running.stop(nix::sys::signal::Signal::SIGTERM).success());
}
