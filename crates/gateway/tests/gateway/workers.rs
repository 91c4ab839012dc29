//! `/workers`, and the figures of `/metrics`.

use pyoco_core::ids::WorkerId;
use pyoco_core::time::Timestamp;
use pyoco_ports::{DeadLetterRecord, WorkerRecord};
use serde_json::{Value, json};

use crate::support::{Answer, START, Server};

async fn report(server: &Server, name: &str, seconds: i64, body: Value) {
    let seen_at = Timestamp::from_micros(START + seconds * 1_000_000);
    let body = serde_json::to_vec(&body).unwrap();
    let worker = WorkerId::new(name).unwrap();
    server.store.report(WorkerRecord { worker, seen_at, hidden: false, body }).await.unwrap();
}

fn at(seconds: i64) -> f64 {
    Timestamp::from_micros(START + seconds * 1_000_000).as_unix_seconds()
}

/// Workers of every kind, an hour after the beginning.
async fn with_workers() -> Server {
    let server = Server::start().await;
    report(
        &server,
        "busy",
        3_600,
        json!({"worker_id": "busy", "state": "RUNNING", "last_seen_at": at(3_600), "tags": ["a"], "x": 1}),
    )
    .await;
    report(&server, "old", 3_595, json!({"heartbeat_at": at(3_595)})).await;
    report(&server, "hidden", 3_598, json!({"state": "IDLE", "last_seen_at": at(3_598)})).await;
    report(&server, "lost", 3_000, json!({"state": "RUNNING", "last_seen_at": at(3_000)})).await;
    report(
        &server,
        "stopped",
        10,
        json!({"state": "STOPPED_GRACEFUL", "last_seen_at": at(10), "stop_reason": "graceful_shutdown"}),
    )
    .await;
    report(&server, "unreadable", 3_600, json!("?")).await;
    server.hands.forward(3_601);
    server.store.hide(&WorkerId::new("hidden").unwrap(), true).await.unwrap();
    server
}

async fn names(server: &Server, query: &str) -> Vec<String> {
    let answer = server.get(&format!("/workers?{query}")).await;
    let items = answer.json.as_array().unwrap_or_else(|| panic!("{query}: {}", answer.json)).clone();
    items.iter().map(|item| item["worker_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn workers_are_listed_by_scope_state_and_visibility() {
    let server = with_workers().await;
    assert_eq!(names(&server, "").await, ["busy", "old"]);
    assert_eq!(names(&server, "scope=%20Active%20&state=").await, ["busy", "old"]);
    assert_eq!(names(&server, "include_hidden=yes").await, ["busy", "hidden", "old"]);
    assert_eq!(names(&server, "scope=ALL").await, ["busy", "old", "lost", "stopped"]);
    assert_eq!(names(&server, "scope=all&state=disconnected").await, ["lost"]);
    assert_eq!(names(&server, "scope=all&state=Stopped_Graceful").await, ["stopped"]);
    assert_eq!(names(&server, "state=DISCONNECTED").await, Vec::<String>::new());
    assert_eq!(names(&server, "scope=all&limit=1").await, ["busy"]);
    let all = server.get("/workers?scope=all").await.json;
    assert_eq!((&all[0]["x"], &all[0]["state"]), (&json!(1), &json!("RUNNING")));
    assert_eq!((&all[1]["instance_id"], &all[1]["state"]), (&json!("old"), &json!("IDLE")));
    assert_eq!(all[2]["state"], "DISCONNECTED");
    assert_eq!(all[3]["stop_reason"], "graceful_shutdown");
}

#[tokio::test]
async fn questions_about_workers_that_make_no_sense_are_named() {
    let server = Server::start().await;
    assert_eq!(server.get("/workers").await.json, json!([]));
    for query in ["scope=some", "state=LAZY"] {
        let answer = server.get(&format!("/workers?{query}")).await;
        assert_eq!(answer.detail(422), "invalid workers request", "{query}");
        assert_eq!(answer.json["err_id"], "ERR-PYOCO-0019");
    }
    for (query, kind) in [
        ("limit=0", "greater_than_equal"),
        ("limit=501", "less_than_equal"),
        ("limit=x", "int_parsing"),
        ("include_hidden=maybe", "bool_parsing"),
        ("include_hidden=", "bool_parsing"),
    ] {
        assert_eq!(server.get(&format!("/workers?{query}")).await.problem()["type"], kind, "{query}");
    }
}

async fn patch(server: &Server, worker: &str, body: &str) -> Answer {
    let request = server.client.patch(server.url(&format!("/workers/{worker}")));
    let request = request.header("content-type", "application/json").body(body.to_owned());
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn a_worker_is_hidden_and_shown_again() {
    let server = with_workers().await;
    for (word, hidden) in [
        ("true", true),
        ("0", false),
        ("1", true),
        ("\"no\"", false),
        ("\"ON\"", true),
        ("\"f\"", false),
        ("1.0", true),
        ("false", false),
    ] {
        let answer = patch(&server, "busy", &format!("{{\"hidden\":{word},\"new\":1}}")).await;
        assert_eq!(answer.status, 200, "{word}: {}", answer.json);
        assert_eq!((&answer.json["worker_id"], &answer.json["hidden"]), (&json!("busy"), &json!(hidden)));
        assert!(answer.json["updated_at"].is_f64());
        assert_eq!(answer.json.as_object().unwrap().len(), 3);
        assert_eq!(names(&server, "").await.contains(&"busy".to_owned()), !hidden);
    }
}

#[tokio::test]
async fn a_patch_that_makes_no_sense_is_named_and_changes_nothing() {
    let server = with_workers().await;
    for (body, kind) in [
        ("{}", "missing"),
        ("{\"hidden\":\"maybe\"}", "bool_parsing"),
        ("{\"hidden\":2}", "bool_parsing"),
        ("{\"hidden\":0.5}", "bool_type"),
        ("{\"hidden\":null}", "bool_type"),
        ("{\"hidden\":[]}", "bool_type"),
        ("[]", "model_attributes_type"),
        ("{", "json_invalid"),
    ] {
        let answer = patch(&server, "busy", body).await;
        assert_eq!(answer.problem()["type"], kind, "{body}");
        assert_eq!(answer.json["err_id"], "ERR-PYOCO-0019");
    }
    for worker in ["nobody", "%00", "%ff", "a%0Ab"] {
        let answer = patch(&server, worker, "{\"hidden\":true}").await;
        assert_eq!(answer.detail(404), "worker not found", "{worker}");
        assert_eq!(answer.json["err_id"], "ERR-PYOCO-0020");
    }
    assert_eq!(names(&server, "").await, ["busy", "old"]);
}

async fn metrics(server: &Server) -> String {
    let response = server.client.get(server.url("/metrics")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    response.text().await.unwrap()
}

#[tokio::test]
async fn figures_are_written_as_the_contract_writes_them() {
    let server = with_workers().await;
    let yesterday = server.submit().await;
    server.claim(&yesterday).await;
    // Midnight is 6,400 s after the beginning.
    server.hands.forward(6_400);
    let cancelled = server.submit().await;
    server.post(&format!("/runs/{cancelled}/cancel"), &json!({})).await;
    server.submit().await;
    let letter = DeadLetterRecord {
        key: "k".to_owned(),
        tag: "t".to_owned(),
        at: Timestamp::from_micros(0),
        body: b"{}".to_vec(),
    };
    server.store.publish(letter).await.unwrap();
    report(&server, "busy", 10_001, json!({"state": "RUNNING", "last_seen_at": at(10_001)})).await;
    report(&server, "hidden", 10_001, json!({"state": "IDLE", "last_seen_at": at(10_001)})).await;
    let wanted = "\
# HELP pyoco_runs_total Count of runs by status (best-effort from KV).
# TYPE pyoco_runs_total gauge
pyoco_runs_total{status=\"CANCELLED\"} 1
pyoco_runs_total{status=\"PENDING\"} 1
pyoco_runs_total{status=\"RUNNING\"} 1
# HELP pyoco_runs_today_total Count of runs updated today by status (best-effort from KV).
# TYPE pyoco_runs_today_total gauge
pyoco_runs_today_total{status=\"CANCELLED\"} 1
pyoco_runs_today_total{status=\"PENDING\"} 1
# HELP pyoco_workers_alive_total Count of workers present in TTL KV (best-effort).
# TYPE pyoco_workers_alive_total gauge
pyoco_workers_alive_total 2
# HELP pyoco_dlq_messages_total Total DLQ messages in the DLQ stream (best-effort).
# TYPE pyoco_dlq_messages_total gauge
pyoco_dlq_messages_total 1
";
    let text = metrics(&server).await;
    let (contract, ours) = text.split_at_checked(wanted.len()).unwrap();
    assert_eq!(contract, wanted);
    // What follows is ours.
    let queues = "\
# HELP pyoco_queue_depth Runs that want a worker and that nobody holds.
# TYPE pyoco_queue_depth gauge
pyoco_queue_depth{tag=\"default\"} 1
# HELP pyoco_queue_oldest_age_seconds How long the run that waits longest for a worker has not changed.
# TYPE pyoco_queue_oldest_age_seconds gauge
pyoco_queue_oldest_age_seconds{tag=\"default\"} 0.00";
    assert!(ours.starts_with(queues), "{ours}");
    for counted in [
        "pyoco_http_request_duration_seconds_count{route=\"/runs\",method=\"POST\",status=\"2xx\"} 3",
        "pyoco_http_request_duration_seconds_count{route=\"/runs/{run_id}/cancel\",method=\"POST\",status=\"2xx\"} 1",
        "pyoco_submit_duration_seconds_count{outcome=\"accepted\"} 3",
        "pyoco_command_duration_seconds_count{command=\"CancelExecution\",outcome=\"accepted\"} 1",
        "pyoco_runs_ended_total{flow=\"main\",status=\"CANCELLED\"} 1",
        "pyoco_sse_clients 0",
    ] {
        assert!(ours.lines().any(|line| line == counted), "{counted}: {ours}");
    }
}

#[tokio::test]
async fn no_name_that_somebody_chose_breaks_the_figures() {
    let server = Server::start().await;
    let body = json!({"flow_name": "a\"b\\c\nd", "params": {"secret": "s3cret"}});
    let run = server.post("/runs", &body).await.json["run_id"].as_str().unwrap().to_owned();
    server.post(&format!("/runs/{run}/cancel"), &json!({})).await;
    server.get("/nowhere/s3cret").await;
    let text = metrics(&server).await;
    assert!(text.contains(r#"pyoco_runs_ended_total{flow="a\"b\\c\nd",status="CANCELLED"} 1"#), "{text}");
    assert!(text.contains(r#"_count{route="other",method="GET",status="4xx"} 1"#), "{text}");
    assert!(!text.contains("s3cret") && !text.contains(&run), "{text}");
}

#[tokio::test]
async fn whoever_follows_something_is_counted_until_they_go() {
    let server = Server::start().await;
    let run = server.submit().await;
    let watch = server.client.get(server.url(&format!("/runs/{run}/watch"))).send().await.unwrap();
    assert!(metrics(&server).await.contains("\npyoco_sse_clients 1\n"));
    drop(watch);
    while !metrics(&server).await.contains("\npyoco_sse_clients 0\n") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_empty_store_has_figures_too() {
    let server = Server::start().await;
    let text = metrics(&server).await;
    assert!(text.contains("pyoco_workers_alive_total 0\n") && text.contains("pyoco_dlq_messages_total 0\n"));
    assert!(!text.contains("pyoco_runs_total{") && !text.contains("tag="), "{text}");
}
