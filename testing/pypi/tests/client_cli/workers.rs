//! `workers` and `metrics`.

use std::time::Duration;

use pyoco_pypi::{Site, WORKER};
use serde_json::{Value, json};

use crate::keys;

const FIELDS: [&str; 17] = [
    "worker_id",
    "instance_id",
    "state",
    "hidden",
    "tags",
    "last_seen_at",
    "last_heartbeat_at",
    "heartbeat_at",
    "current_run_id",
    "last_run_id",
    "last_run_status",
    "last_run_started_at",
    "last_run_finished_at",
    "stopped_at",
    "stop_reason",
    "updated_at",
    "wheel_sync",
];

fn names(workers: &Value) -> Vec<&str> {
    workers.as_array().unwrap().iter().map(|worker| worker["worker_id"].as_str().unwrap()).collect()
}

/// Asks until the only worker is in a state. Its record is written when it can be, not when its run is.
async fn until(site: &Site, state: &str) -> Value {
    let asked = async {
        loop {
            let found = site.client(&["workers", "--scope", "all", "--state", state]).await.json();
            if !names(&found).is_empty() {
                return found[0].clone();
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asked).await.expect(state)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_listed_with_what_it_does() {
    let site = Site::start().await;
    let idle = until(&site, "IDLE").await;
    assert!(keys(&idle).is_superset(&FIELDS.into()), "{idle}");
    assert_eq!((&idle["worker_id"], &idle["hidden"]), (&json!(WORKER), &json!(false)));
    assert_eq!(idle["tags"], json!(["default", "blue"]));
    assert_eq!((&idle["current_run_id"], &idle["last_run_id"]), (&Value::Null, &Value::Null));
    assert!(
        ["last_seen_at", "last_heartbeat_at", "heartbeat_at", "updated_at"]
            .iter()
            .all(|name| idle[name].is_f64())
    );
    assert_eq!(
        (&idle["wheel_sync"]["enabled"], &idle["wheel_sync"]["last_result"]),
        (&json!(false), &json!("disabled"))
    );

    let table = site.client(&["workers", "--output", "table"]).await.table();
    assert_eq!(table[0], ["worker_id", "state", "tags", "plugins", "plugin_preview"]);
    assert_eq!(table[1..], [[WORKER, "IDLE", "default,blue", "0", "-"]]);
    let plugins = site.client(&["workers", "--output", "plugins"]).await.table();
    assert_eq!(plugins[0], ["worker_id", "state", "tags", "package", "version", "wheel_name"]);
    assert_eq!(plugins[1..], [[WORKER, "IDLE", "default,blue", "-", "-", "-"]]);

    let held = site.hold("hold").await;
    let running = until(&site, "RUNNING").await;
    assert_eq!(running["current_run_id"], json!(held.run));
    assert!(running["last_run_started_at"].is_f64());
    for (filter, wanted) in [
        (&[][..], &[WORKER][..]),
        (&["--scope", "all"], &[WORKER]),
        (&["--state", "IDLE"], &[]),
        (&["--state", "DISCONNECTED"], &[]),
        (&["--limit", "1", "--include-hidden"], &[WORKER]),
    ] {
        assert_eq!(names(&site.client(&[&["workers"], filter].concat()).await.json()), wanted, "{filter:?}");
    }
    let ours = pyoco_server::Client::new(site.url()).unwrap();
    ours.patch_worker_hidden(WORKER, true).await.unwrap();
    assert_eq!(site.client(&["workers"]).await.json(), json!([]));
    assert_eq!(site.client(&["workers", "--include-hidden"]).await.json()[0]["hidden"], true);
    ours.patch_worker_hidden(WORKER, false).await.unwrap();
    held.release();
    site.ended(&held.run).await;
    let idle = until(&site, "IDLE").await;
    assert_eq!((&idle["last_run_id"], &idle["last_run_status"]), (&json!(held.run), &json!("COMPLETED")));
    assert!(idle["last_run_finished_at"].is_f64() && idle["current_run_id"].is_null());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stopped_is_listed_among_all_and_told_from_one_that_is_lost() {
    let site = Site::without_worker().await;
    assert_eq!(site.client(&["workers"]).await.json(), json!([]));
    for output in ["table", "plugins"] {
        assert_eq!(site.client(&["workers", "--output", output]).await.text(), "(no items)\n");
    }
    let worker = site.worker();
    worker.run_once(Duration::from_millis(1)).await.unwrap();
    worker.close().await.unwrap();
    let stopped = until(&site, "STOPPED_GRACEFUL").await;
    assert_eq!(stopped["stop_reason"], "graceful_shutdown");
    assert!(stopped["stopped_at"].is_f64());
    assert_eq!(site.client(&["workers"]).await.json(), json!([]), "it is not active");
    site.stop().await;

    let unheard = |config: &mut pyoco_server::Config| {
        config.worker_heartbeat = Duration::from_secs(60);
        config.worker_disconnect = Duration::from_millis(200);
    };
    let site = Site::with(unheard, true).await;
    let lost = until(&site, "DISCONNECTED").await;
    assert_eq!((&lost["worker_id"], &lost["stopped_at"]), (&json!(WORKER), &Value::Null));
    assert_eq!(site.client(&["workers"]).await.json(), json!([]));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_runs_workers_and_dead_letters() {
    let site = Site::start().await;
    until(&site, "IDLE").await;
    for flow in ["sum", "sum", "broken"] {
        let run = site.submit(flow, &[]).await;
        site.ended(&run).await;
    }
    site.submit("sum", &["--tag", "nobodys"]).await;
    let wanted = "\
# HELP pyoco_runs_total Count of runs by status (best-effort from KV).
# TYPE pyoco_runs_total gauge
pyoco_runs_total{status=\"COMPLETED\"} 2
pyoco_runs_total{status=\"FAILED\"} 1
pyoco_runs_total{status=\"PENDING\"} 1
# HELP pyoco_runs_today_total Count of runs updated today by status (best-effort from KV).
# TYPE pyoco_runs_today_total gauge
# HELP pyoco_workers_alive_total Count of workers present in TTL KV (best-effort).
# TYPE pyoco_workers_alive_total gauge
pyoco_workers_alive_total 1
# HELP pyoco_dlq_messages_total Total DLQ messages in the DLQ stream (best-effort).
# TYPE pyoco_dlq_messages_total gauge
pyoco_dlq_messages_total 1
";
    let said = site.client(&["metrics"]).await;
    // Which day it is may change meanwhile.
    let is_of_today = |line: &&str| line.starts_with("pyoco_runs_today_total{");
    let lines: String = said.text().split_inclusive('\n').filter(|line| !is_of_today(line)).collect();
    // What follows is not in the contract.
    assert_eq!(lines.get(..wanted.len()), Some(wanted), "{lines}");
    assert!(lines.contains("pyoco_runs_ended_total{flow=\"sum\",status=\"COMPLETED\"} 2\n"), "{lines}");
    site.stop().await;
}
