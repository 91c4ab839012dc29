//! The registry of workers on a real server, beside a real worker of PyPI.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures time"
)]

mod ground;
mod site;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyoco_core::ids::WorkerId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{WorkerRecord, WorkerRegistry as _};
use serde_json::{Value, json};

use site::{Site, until};

fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).unwrap()
}

fn report(name: &str, seconds: f64) -> WorkerRecord {
    let body = json!({"worker_id": name, "state": "IDLE", "hidden": false, "last_seen_at": seconds, "tags": ["日本"]});
    WorkerRecord {
        worker: worker(name),
        seen_at: Timestamp::from_unix_seconds(seconds).unwrap(),
        hidden: false,
        body: serde_json::to_vec(&body).unwrap(),
    }
}

fn body(record: &WorkerRecord) -> Value {
    serde_json::from_slice(&record.body).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_survives_every_report_that_comes_at_the_same_time() {
    let site = Site::new().await;
    let (reporting, gateway) = (site.store().await, site.store().await);
    reporting.report(report("w", 1.0)).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let busy = {
        let (store, is_over) = (reporting.clone(), is_over.clone());
        tokio::spawn(async move {
            let mut written = 0;
            while !is_over.load(Ordering::Relaxed) {
                written += 1;
                store.report(report("w", f64::from(written) + 1.0)).await.unwrap();
                // A thousand times as often as any worker does.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            written
        })
    };
    for round in 0..40 {
        let hidden = round % 2 == 0;
        let marked = gateway.hide(&worker("w"), hidden).await.unwrap().unwrap();
        assert_eq!((marked.hidden, &body(&marked)["hidden"]), (hidden, &json!(hidden)));
        // Two reports later it is still there.
        let mut reports = BTreeSet::from([marked.seen_at]);
        while reports.len() < 3 {
            let record = gateway.worker(&worker("w")).await.unwrap().unwrap();
            assert_eq!((record.hidden, &body(&record)["hidden"]), (hidden, &json!(hidden)), "round {round}");
            reports.insert(record.seen_at);
        }
    }
    is_over.store(true, Ordering::Relaxed);
    let written = busy.await.unwrap();
    let last = gateway.worker(&worker("w")).await.unwrap().unwrap();
    assert_eq!(
        last.seen_at,
        Timestamp::from_unix_seconds(f64::from(written) + 1.0).unwrap(),
        "no report was lost"
    );
    assert!(!last.hidden);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_record_has_vanished_is_remembered_by_those_who_saw_it() {
    let site = Site::new().await;
    let store = site.store_with(|settings| settings.workers_ttl = Duration::from_secs(1)).await;
    store.report(report("gone", 5.0)).await.unwrap();
    store.report(report("also.gone", 7.0)).await.unwrap();
    until("the records vanish", || async {
        site.other.api("STREAM.INFO.KV_pyoco_workers", &Value::Null).await["state"]["messages"] == json!(0)
    })
    .await;
    let known: Vec<_> = store.workers().await.unwrap().into_iter().map(|record| record.worker).collect();
    assert_eq!(known, [worker("also.gone"), worker("gone")]);
    assert_eq!(store.worker(&worker("gone")).await.unwrap().unwrap().seen_at, report("gone", 5.0).seen_at);
    // A mark on it reaches others.
    let other = site.store().await;
    assert_eq!(other.worker(&worker("gone")).await.unwrap(), None, "never heard of");
    assert!(store.hide(&worker("gone"), true).await.unwrap().unwrap().hidden);
    assert!(other.worker(&worker("gone")).await.unwrap().unwrap().hidden);
    // It comes back, with its mark.
    store.report(report("gone", 9.0)).await.unwrap();
    assert!(other.worker(&worker("gone")).await.unwrap().unwrap().hidden);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_was_deleted_is_made_again() {
    let site = Site::new().await;
    let store = site.store().await;
    store.report(report("w", 1.0)).await.unwrap();
    site.delete_stream("KV_pyoco_workers").await;
    let other = site.store_with(|settings| settings.workers_bucket = "elsewhere".to_owned()).await;
    assert_eq!(other.worker(&worker("w")).await.unwrap(), None);
    store.report(report("w", 2.0)).await.unwrap();
    let info = site.other.api("STREAM.INFO.KV_pyoco_workers", &Value::Null).await;
    assert_eq!(
        (&info["state"]["messages"], &info["config"]["max_age"]),
        (&json!(1), &json!(15_000_000_000_u64))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_worker_writes_is_not_a_worker() {
    let site = Site::new().await;
    let store = site.store().await;
    store.report(report("good", 1.0)).await.unwrap();
    let client = &site.other.0;
    let bad = [
        ("nonsense", "{"),
        ("list", "[]"),
        ("nameless", "{}"),
        ("number", r#"{"worker_id": 7}"#),
        ("liar", r#"{"worker_id": "good", "last_seen_at": 99}"#),
        ("control", "{\"worker_id\": \"a\\u0000\"}"),
    ];
    for (key, text) in bad {
        client.request(format!("$KV.pyoco_workers.{key}"), text.into()).await.unwrap();
    }
    // Odd but harmless: what is missing or wrong in it is left out.
    let odd = r#"{"worker_id": "odd", "last_seen_at": "soon", "hidden": "yes"}"#;
    client.request("$KV.pyoco_workers.odd", odd.into()).await.unwrap();
    let known: Vec<_> = store.workers().await.unwrap().into_iter().map(|r| (r.worker, r.hidden)).collect();
    assert_eq!(known, [(worker("odd"), false), (worker("good"), false)]);
    for (key, _) in bad {
        assert_eq!(store.worker(&worker(key)).await.unwrap(), None, "{key}");
    }
}

/// A worker of pyoco-server 0.5.1, which ends with its test.
struct Original(Child);

impl Original {
    fn start(url: &str, name: &str, folder: &Path) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/pyoco-worker");
        assert!(program.is_file(), "there is no pyoco-worker in .venv; `make test` installs it");
        std::fs::write(folder.join("flows.py"), "def resolve(name):\n    raise KeyError(name)\n").unwrap();
        let child = Command::new(program)
            .args([
                "--nats-url",
                url,
                "--worker-id",
                name,
                "--tags",
                "default",
                "--flow-resolver",
                "flows.py:resolve",
            ])
            .env("PYOCO_WORKER_HEARTBEAT_INTERVAL_SEC", "0.2")
            .env("PYOCO_LOAD_DOTENV", "0")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Original {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_pypi_is_read_and_keeps_the_mark_it_is_given() {
    let site = Site::new().await;
    let store = site.store().await;
    let folder = tempfile::tempdir().unwrap();
    let _original = Original::start(&site.server.url(), "host.example-1", folder.path());
    let name = worker("host.example-1");
    until("it reports", || async { store.worker(&name).await.unwrap().is_some() }).await;
    let first = store.worker(&name).await.unwrap().unwrap();
    assert_eq!(first.worker, name);
    assert_eq!((&body(&first)["state"], &body(&first)["tags"]), (&json!("IDLE"), &json!(["default"])));
    let seen = body(&first)["last_seen_at"].as_f64().unwrap();
    assert_eq!(first.seen_at, Timestamp::from_unix_seconds(seen).unwrap());
    assert_eq!(store.workers().await.unwrap().len(), 1);
    // It reads and writes without comparing, so that a mark can be lost between the two: then it is given again.
    until("the mark stays over a few reports", || async {
        let marked = store.hide(&name, true).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(700)).await;
        let later = store.worker(&name).await.unwrap().unwrap();
        later.hidden && later.seen_at > marked.seen_at
    })
    .await;
}
