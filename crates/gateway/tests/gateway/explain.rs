//! `GET /runs/{id}/plan` and `/explain`: the graph of a run, and why it is where it is.

use pyoco_core::ids::WorkerId;
use pyoco_core::time::Timestamp;
use pyoco_engine::Clock as _;
use pyoco_ports::WorkerRecord;
use pyoco_testkit::{fail, start_node, worker, worker_id};
use serde_json::{Value, json};

use crate::support::Server;

async fn report(server: &Server, name: &WorkerId, more: &Value, seconds_ago: i64) {
    let seen_at = Timestamp::from_micros(server.hands.now().as_micros() - seconds_ago * 1_000_000);
    let mut body =
        json!({"state": "RUNNING", "tags": ["default"], "last_seen_at": seen_at.as_unix_seconds()});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let body = serde_json::to_vec(&body).unwrap();
    server.store.report(WorkerRecord { worker: name.clone(), seen_at, hidden: false, body }).await.unwrap();
}

async fn explained(server: &Server, run: &str) -> Value {
    let answer = server.get(&format!("/runs/{run}/explain")).await;
    assert_eq!(answer.status, 200, "{}", answer.json);
    answer.json
}

/// Its reasons by their names.
fn codes(explained: &Value) -> Vec<&str> {
    explained["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_run_in_the_queue_says_what_it_lacks() {
    let server = Server::start().await;
    let run = server.submit().await;
    let lonely = explained(&server, &run).await;
    assert_eq!((codes(&lonely), &lonely["status"]), (vec!["no_worker"], &json!("PENDING")));
    assert_eq!(lonely["summary"], "no live worker takes runs with tag 'default'");
    assert_eq!(lonely["hint"], "start a worker with --tags default");
    assert!(lonely["reasons"][0]["since"].is_f64());

    let one = worker_id("one");
    report(&server, &one, &json!({"current_run_ids": ["other"], "concurrency": 1}), 0).await;
    let busy = explained(&server, &run).await;
    assert_eq!(
        (codes(&busy), &busy["summary"]),
        (vec!["workers_busy"], &json!("the only worker for tag 'default' is busy"))
    );
    report(&server, &worker_id("two"), &json!({"current_run_id": "another"}), 0).await;
    assert_eq!(explained(&server, &run).await["summary"], "all 2 workers for tag 'default' are busy");
    report(&server, &one, &json!({"current_run_ids": ["other"], "concurrency": 2}), 0).await;
    let queued = explained(&server, &run).await;
    assert_eq!((codes(&queued), &queued["hint"]), (vec!["queued"], &Value::Null));
}

#[tokio::test]
async fn a_run_in_hand_says_what_runs_and_whether_its_worker_is_still_there() {
    let server = Server::start().await;
    let run = server.submit().await;
    server.claim(&run).await;
    server.ask(&run, &worker(1), start_node("a")).await;
    assert_eq!(codes(&explained(&server, &run).await), ["stale", "running"], "nobody has heard of it");
    let owner = server.get(&format!("/runs/{run}")).await.json["worker_id"].as_str().unwrap().to_owned();
    report(&server, &worker_id(&owner), &json!({}), 0).await;
    let running = explained(&server, &run).await;
    assert_eq!((codes(&running), &running["reasons"][0]["node_id"]), (vec!["running"], &json!("a")));
    server.hands.forward(100);
    let stale = explained(&server, &run).await;
    assert_eq!((codes(&stale), &stale["status"]), (vec!["stale", "running"], &json!("RUNNING")));
    assert!(stale["summary"].as_str().unwrap().contains(&owner), "{stale}");
    server.ask(&run, &worker(1), fail("a", "boom")).await;
    let failed = explained(&server, &run).await;
    assert_eq!((codes(&failed), &failed["reasons"][0]["node_id"]), (vec!["failed"], &json!("a")));
    assert!(failed["summary"].as_str().unwrap().contains("boom"), "{failed}");
}

#[tokio::test]
async fn the_plan_of_a_run_is_there_as_soon_as_a_worker_has_taken_it() {
    let server = Server::start().await;
    let run = server.submit().await;
    let path = format!("/runs/{run}/plan");
    let before = server.get(&path).await;
    assert_eq!((before.status, &before.json["nodes"], &before.json["edges"]), (200, &json!([]), &json!([])));
    server.claim(&run).await;
    server.run_task(&run, "a", json!(1)).await;
    let plan = server.get(&path).await.json;
    let node = |index: usize, name: &str| plan["nodes"][index][name].clone();
    assert_eq!((&plan["run_id"], &plan["flow_name"]), (&json!(run), &json!("main")));
    assert_eq!([node(0, "id"), node(0, "kind"), node(0, "status")], ["a", "Task", "SUCCEEDED"]);
    assert_eq!([node(1, "id"), node(1, "status")], ["b", "READY"]);
    assert_eq!((&plan["edges"], &plan["is_truncated"]), (&json!([{"from": "a", "to": "b"}]), &json!(false)));
    let shown = server.get(&format!("/runs/{run}")).await.json;
    assert_eq!(plan["version"], shown["version"]);
}

#[tokio::test]
async fn what_is_no_run_has_neither() {
    let server = Server::start().await;
    for path in ["/runs/nobody/plan", "/runs/nobody/explain", "/runs/a%20b/plan", "/runs/a%20b/explain"] {
        assert_eq!(server.get(path).await.detail(404), "run not found", "{path}");
    }
}
