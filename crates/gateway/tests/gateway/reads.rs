//! `GET /runs`, `GET /runs/{id}`, `/tasks` and `POST /cancel`.

use std::collections::BTreeSet;
use std::sync::Arc;

use pyoco_core::ids::{ExecutionId, WorkerId};
use pyoco_core::time::Timestamp;
use pyoco_engine::Clock as _;
use pyoco_gateway::{ServerLimits, Settings};
use pyoco_ports::WorkerRecord;
use pyoco_store_sqlite::SqliteStore;
use pyoco_testkit::{confirm_stopped, fail, start_node, worker};
use serde_json::{Value, json};

use crate::support::{Answer, START, Server};

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect()
}

async fn on_sqlite() -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path(), Default::default()).unwrap();
    (Server::on(Arc::new(store), Settings::default(), ServerLimits::default()).await, folder)
}

#[tokio::test]
async fn a_run_is_shown_with_every_field_of_the_contract() {
    let server = Server::start().await;
    let run = server.submit().await;
    let shown = server.get(&format!("/runs/{run}")).await.json;
    for name in [
        "run_id",
        "flow_name",
        "tag",
        "tags",
        "tenant_id",
        "api_key_id",
        "status",
        "params",
        "tasks",
        "start_time",
        "end_time",
        "heartbeat_at",
        "updated_at",
        "error",
    ] {
        assert!(shown.get(name).is_some(), "{name} is missing: {shown}");
    }
    assert!(shown["tenant_id"].is_null() && shown["api_key_id"].is_null() && shown["start_time"].is_null());
    assert!(shown["updated_at"].is_f64() && shown["heartbeat_at"] == shown["updated_at"]);
    for name in ["task_records", "task_records_truncated", "worker_id", "worker_alive"] {
        assert!(shown.get(name).is_none(), "{name}: {shown}");
    }
}

#[tokio::test]
async fn task_records_are_shown_when_they_are_asked_for() {
    let server = Server::start().await;
    let run = server.submit().await;
    server.claim(&run).await;
    server.run_task(&run, "a", json!({"n": 1})).await;
    for include in ["records", "task_records", "full", "all"] {
        let shown = server.get(&format!("/runs/{run}?include=x&include={include}")).await.json;
        let record = &shown["task_records"]["a"];
        for name in [
            "state",
            "started_at",
            "ended_at",
            "duration_ms",
            "error",
            "traceback",
            "inputs",
            "output",
            "artifacts",
        ] {
            assert!(record.get(name).is_some(), "{name}: {record}");
        }
        assert_eq!((&record["state"], &record["output"]), (&json!("SUCCEEDED"), &json!({"n": 1})));
    }
    for query in ["", "?include=", "?include=nothing", "?include=RECORDS"] {
        let shown = server.get(&format!("/runs/{run}{query}")).await.json;
        assert_eq!(shown.get("task_records"), None, "{query}");
        assert_eq!(shown["tasks"], json!({"a": "SUCCEEDED", "b": "PENDING"}));
    }
    let tasks = server.get(&format!("/runs/{run}/tasks")).await.json;
    let wanted = ["run_id", "flow_name", "status", "tasks", "task_records", "task_records_truncated"];
    assert_eq!(keys(&tasks), BTreeSet::from(wanted));
    assert_eq!(tasks["task_records_truncated"], false);
}

#[tokio::test]
async fn records_that_are_too_large_are_left_out_and_that_is_said() {
    let settings = Settings { max_run_snapshot_bytes: 4_000, ..Settings::default() };
    let server = Server::with(settings, ServerLimits::default()).await;
    let run = server.submit().await;
    server.claim(&run).await;
    server.run_task(&run, "a", json!("x".repeat(5_000))).await;
    let shown = server.get(&format!("/runs/{run}?include=full")).await.json;
    assert_eq!((&shown["task_records"], &shown["task_records_truncated"]), (&json!({}), &json!(true)));
    assert_eq!(shown["tasks"]["a"], "SUCCEEDED");
    let tasks = server.get(&format!("/runs/{run}/tasks")).await.json;
    assert_eq!((&tasks["task_records"], &tasks["task_records_truncated"]), (&json!({}), &json!(true)));
    let brief = server.get(&format!("/runs/{run}")).await.json;
    assert_eq!(brief.get("task_records_truncated"), None);
}

#[tokio::test]
async fn a_run_says_how_its_worker_is() {
    let server = Server::start().await;
    let run = server.submit().await;
    server.claim(&run).await;
    let path = format!("/runs/{run}");
    let shown = server.get(&path).await.json;
    let worker = |shown: &Value| {
        let names = [
            "worker_id",
            "worker_alive",
            "worker_state",
            "worker_heartbeat_at",
            "worker_hidden",
            "worker_tags",
        ];
        names.map(|name| shown.get(name).cloned())
    };
    let gone =
        [Some(json!("w1")), Some(json!(false)), Some(json!("DISCONNECTED")), Some(Value::Null), None, None];
    assert_eq!((shown["status"].clone(), worker(&shown)), (json!("RUNNING"), gone));

    let seen_at = Timestamp::from_micros(START + 10_000_000);
    let body = json!({"state": "RUNNING", "tags": ["gpu"], "last_seen_at": seen_at.as_unix_seconds(), "last_heartbeat_at": 7.5});
    let record = WorkerRecord {
        worker: WorkerId::new("w1").unwrap(),
        seen_at,
        hidden: false,
        body: serde_json::to_vec(&body).unwrap(),
    };
    server.store.report(record).await.unwrap();
    let shown = server.get(&path).await.json;
    let here =
        ["w1".into(), true.into(), "RUNNING".into(), json!(7.5), false.into(), json!(["gpu"])].map(Some);
    assert_eq!(worker(&shown), here);
    // The run is heard through its worker while that holds it.
    assert_eq!(shown["heartbeat_at"], json!(seen_at.as_unix_seconds()));
    assert!(shown["updated_at"].as_f64() < shown["heartbeat_at"].as_f64());
    assert_eq!(server.get("/runs").await.json[0]["heartbeat_at"], shown["heartbeat_at"]);
    server.hands.forward(60);
    assert_eq!(server.get(&path).await.json["worker_state"], "DISCONNECTED");
}

#[tokio::test]
async fn a_run_that_no_worker_takes_says_so() {
    let server = Server::start().await;
    let answer = server.post("/runs", &json!({"flow_name": "main", "tag": "gpu"})).await;
    let path = format!("/runs/{}", answer.json["run_id"].as_str().unwrap());
    let lack = json!([{
        "reason": "no_worker",
        "tag": "gpu",
        "message": "no live worker takes runs with tag 'gpu'; start one with --tags gpu",
    }]);
    let report = |name: &'static str, state: &'static str, tags: Value, seconds_ago: i64| {
        let seen_at = Timestamp::from_micros(server.hands.now().as_micros() - seconds_ago * 1_000_000);
        let body = json!({"state": state, "tags": tags, "last_seen_at": seen_at.as_unix_seconds()});
        let record = WorkerRecord {
            worker: WorkerId::new(name).unwrap(),
            seen_at,
            hidden: false,
            body: serde_json::to_vec(&body).unwrap(),
        };
        async { server.store.report(record).await.unwrap() }
    };
    assert_eq!(server.get(&path).await.json["waiting"], lack);
    // Neither one of another tag, nor one that is gone, nor one that stopped, nor one that says nothing readable.
    report("other", "IDLE", json!(["cpu", "GPU", "gpu2"]), 0).await;
    report("gone", "RUNNING", json!(["gpu"]), 21).await;
    report("stopped", "STOPPED_GRACEFUL", json!(["gpu"]), 0).await;
    report("odd", "IDLE", json!("gpu"), 0).await;
    assert_eq!(server.get(&path).await.json["waiting"], lack);
    for state in ["RUNNING", "IDLE"] {
        report("mine", state, json!(["cpu", "gpu"]), 0).await;
        assert_eq!(server.get(&path).await.json.get("waiting"), None, "{state}");
    }
    // It takes runs also when somebody does not want to see it.
    server.store.hide(&WorkerId::new("mine").unwrap(), true).await.unwrap();
    assert_eq!(server.get(&path).await.json.get("waiting"), None);
    server.hands.forward(60);
    assert_eq!(server.get(&path).await.json["waiting"], lack);
}

#[tokio::test]
async fn a_run_that_was_taken_or_has_ended_does_not_wait_for_a_worker() {
    let server = Server::start().await;
    let (taken, ended) = (server.submit().await, server.submit().await);
    server.claim(&taken).await;
    server.post(&format!("/runs/{ended}/cancel"), &json!({})).await;
    for (run, status) in [(taken, "RUNNING"), (ended, "CANCELLED")] {
        let shown = server.get(&format!("/runs/{run}")).await.json;
        assert_eq!((&shown["status"], shown.get("waiting")), (&json!(status), None));
    }
}

#[tokio::test]
async fn a_path_that_names_no_run_is_not_found() {
    let server = Server::start().await;
    server.submit().await;
    let before = server.stored().await;
    let long = "x".repeat(4_000);
    for id in [
        "nobody",
        ".",
        "%2e%2e",
        "..",
        "a.b",
        "*",
        "%3E",
        "a.%3E",
        "%00",
        "a%00b",
        "%20",
        "a%20b",
        "%ff",
        "%2Fetc%2Fpasswd",
        "a%0d%0ab",
        "\u{e9}",
        "-",
        "yaml",
        long.as_str(),
    ] {
        for suffix in ["", "/tasks", "/watch", "/cancel"] {
            // As it stands: a client would tidy `..` away.
            let method = if suffix == "/cancel" { "POST" } else { "GET" };
            let request = format!(
                "{method} /runs/{id}{suffix} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            );
            let answer = server.raw(request.as_bytes()).await;
            let head = answer.lines().next().unwrap_or_default().to_owned();
            assert!(
                head.contains(" 404 ") || (id == "\u{e9}" && head.contains(" 400 ")),
                "{id:.40}{suffix}: {head}"
            );
        }
    }
    let answer = server.get("/runs/nobody").await;
    assert_eq!(
        answer.json,
        json!({"detail": "run not found", "err_id": "ERR-PYOCO-0005", "msg_id": "MSG-PYOCO-0005"})
    );
    assert_eq!(server.stored().await, before);
}

#[tokio::test]
async fn cancelling_a_run_that_nobody_has_taken_ends_it_at_once() {
    let server = Server::start().await;
    let run = server.submit().await;
    let path = format!("/runs/{run}/cancel");
    for body in [&b""[..], b"{not json", b"\xff\xfe", br#"{"reason":"r"}"#] {
        let answer = server.post_bytes(&path, body.to_vec()).await;
        assert_eq!((answer.status, &answer.json["status"]), (200, &json!("CANCELLED")), "{}", answer.json);
        assert!(answer.json["cancel_requested_at"].is_f64() && answer.json["cancel_requested_by"].is_null());
        assert_eq!(answer.json.get("task_records"), None);
    }
    // Its job is gone: no worker will look at it.
    assert_eq!(server.stored().await.1, 0);
    assert_eq!(server.get(&format!("/runs/{run}")).await.json["status"], "CANCELLED");
}

#[tokio::test]
async fn cancelling_a_run_that_a_worker_has_asks_the_worker() {
    let server = Server::start().await;
    let run = server.submit().await;
    server.claim(&run).await;
    server.ask(&run, &worker(1), start_node("a")).await;
    let path = format!("/runs/{run}/cancel");
    let first = server.post(&path, &json!({})).await.json;
    assert_eq!(first["status"], "CANCELLING");
    let again = server.post(&path, &json!({})).await.json;
    assert_eq!(again["cancel_requested_at"], first["cancel_requested_at"]);
    server.ask(&run, &worker(1), confirm_stopped("a")).await;
    assert_eq!(server.post(&path, &json!({})).await.json["status"], "CANCELLED");
}

#[tokio::test]
async fn a_run_that_has_ended_is_not_changed_by_a_cancel() {
    let server = Server::start().await;
    let (good, bad) = (server.submit().await, server.submit().await);
    for run in [&good, &bad] {
        server.claim(run).await;
    }
    server.run_task(&good, "a", json!(1)).await;
    server.run_task(&good, "b", json!(2)).await;
    server.ask(&bad, &worker(1), start_node("a")).await;
    server.ask(&bad, &worker(1), fail("a", "boom")).await;
    for (run, status, error) in [(&good, "COMPLETED", Value::Null), (&bad, "FAILED", json!("boom"))] {
        let before = server.get(&format!("/runs/{run}?include=full")).await.json;
        assert_eq!((&before["status"], &before["error"]), (&json!(status), &error));
        let answer = server.post(&format!("/runs/{run}/cancel"), &json!({})).await;
        assert_eq!((answer.status, &answer.json["status"]), (200, &json!(status)));
        assert_eq!(server.get(&format!("/runs/{run}?include=full")).await.json, before);
    }
}

#[tokio::test]
async fn an_empty_store_lists_nothing() {
    let server = Server::start().await;
    for query in ["", "?workflow_yaml_sha256="] {
        assert_eq!(server.get(&format!("/runs{query}")).await.json, json!([]));
    }
    for query in ["cursor=", "updated_after=0", "workflow_yaml_sha256=abc"] {
        let answer = server.get(&format!("/runs?{query}")).await;
        assert_eq!((answer.status, answer.json), (200, json!({"items": [], "next_cursor": null})), "{query}");
    }
}

#[tokio::test]
async fn a_summary_has_exactly_the_contracts_keys() {
    let server = Server::start().await;
    let run = server.submit().await;
    let wanted = [
        "run_id",
        "flow_name",
        "tag",
        "tags",
        "tenant_id",
        "api_key_id",
        "status",
        "updated_at",
        "heartbeat_at",
        "error",
    ];
    let listed = server.get("/runs?include=records").await.json;
    assert_eq!(keys(&listed[0]), BTreeSet::from(wanted));
    server.claim(&run).await;
    let listed = server.get("/runs").await.json;
    assert_eq!(keys(&listed[0]), wanted.into_iter().chain(["worker_id"]).collect());
    server.run_task(&run, "a", json!(1)).await;
    for include in ["full", "all"] {
        let full = server.get(&format!("/runs?include={include}")).await.json;
        let shown = server.get(&format!("/runs/{run}?include=full")).await.json;
        assert_eq!(full[0]["task_records"], shown["task_records"]);
        assert_eq!(full[0]["params"], json!({"x": 1}));
        assert_eq!(full[0].get("worker_alive"), None);
    }
}

#[tokio::test]
async fn filters_are_exact() {
    let server = Server::start().await;
    let mut runs = Vec::new();
    for (flow, tag) in [("main", "cpu"), ("Main", "cpu"), ("main", "gpu")] {
        let answer = server.post("/runs", &json!({"flow_name": flow, "tag": tag})).await;
        runs.push(answer.json["run_id"].as_str().unwrap().to_owned());
    }
    server.claim(&runs[2]).await;
    let listed = |query: &str| {
        let path = format!("/runs?{query}");
        let server = &server;
        async move {
            let answer = server.get(&path).await;
            let items = answer.json.as_array().unwrap_or_else(|| panic!("{}", answer.json)).clone();
            items.iter().map(|item| item["run_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        }
    };
    let all = vec![runs[2].clone(), runs[1].clone(), runs[0].clone()];
    assert_eq!(listed("").await, all);
    assert_eq!(listed("status=&flow=&tag=").await, all);
    assert_eq!(listed("status=RUNNING").await, [runs[2].clone()]);
    assert_eq!(listed("status=running").await, Vec::<String>::new());
    assert_eq!(listed("status=NONSENSE").await, Vec::<String>::new());
    assert_eq!(listed("flow=main").await, [runs[2].clone(), runs[0].clone()]);
    assert_eq!(listed("flow=main&tag=cpu").await, [runs[0].clone()]);
    assert_eq!(listed("tag=CPU").await, Vec::<String>::new());
    assert_eq!(listed("limit=1").await, [runs[2].clone()]);
    assert_eq!(listed("tag=gpu&tag=cpu&limit=1").await, [runs[1].clone()]);
    assert_eq!(listed("flow=%27%20OR%201%3D1%20--").await, Vec::<String>::new());
    let at = server.get(&format!("/runs/{}", runs[1])).await.json["updated_at"].as_f64().unwrap();
    let later = server.get(&format!("/runs?updated_after={at}")).await.json;
    assert_eq!(later["items"].as_array().unwrap().len(), 1);
    assert_eq!(later["items"][0]["run_id"], json!(runs[2]));
    assert_eq!(server.get("/runs?updated_after=-1e300").await.json["items"].as_array().unwrap().len(), 3);
    assert_eq!(server.get("/runs?updated_after=1e300").await.json["items"], json!([]));
}

#[tokio::test]
async fn list_queries_that_make_no_sense_are_named() {
    let server = Server::start().await;
    server.submit().await;
    let cases = [
        ("limit=0", "greater_than_equal", json!({"ge": 1})),
        ("limit=-1", "greater_than_equal", json!({"ge": 1})),
        ("limit=201", "less_than_equal", json!({"le": 200})),
        ("limit=1e9", "int_parsing", Value::Null),
        ("limit=abc", "int_parsing", Value::Null),
        ("updated_after=abc", "float_parsing", Value::Null),
        ("updated_after=", "float_parsing", Value::Null),
        ("updated_after=nan", "finite_number", Value::Null),
    ];
    for (query, kind, ctx) in cases {
        let answer = server.get(&format!("/runs?{query}")).await;
        let (name, value) = query.split_once('=').unwrap();
        let problem = answer.problem();
        assert_eq!(
            (&problem["type"], &problem["ctx"], &problem["input"]),
            (&json!(kind), &ctx, &json!(value)),
            "{query}"
        );
        assert_eq!(problem["loc"], json!(["query", name]));
        assert_eq!(answer.json["err_id"], "ERR-PYOCO-0017");
    }
    let long = "A".repeat(10_000);
    for cursor in ["abc", "!!!", "e30", "eyJ1IjoieCIsInIiOiJhIn0", "%00", long.as_str()] {
        let answer = server.get(&format!("/runs?cursor={cursor}")).await;
        assert_eq!(answer.detail(422), "invalid list query", "{cursor:.20}");
        assert_eq!(answer.json["msg_id"], "MSG-PYOCO-0017");
    }
    // One of the original's own, {"u":1700000000.5,"r":"abc"}, is understood.
    assert_eq!(server.get("/runs?cursor=eyJ1IjoxNzAwMDAwMDAwLjUsInIiOiJhYmMifQ").await.status, 200);
}

#[tokio::test]
async fn a_thousand_runs_are_paged_without_repeating_or_leaving_out_one() {
    let (server, _folder) = on_sqlite().await;
    let mut submitted = BTreeSet::new();
    for batch in 0..20 {
        let posts = (0..50).map(|number| {
            let body = json!({"flow_name": format!("f{}", (batch + number) % 3)});
            let request = server.client.post(server.url("/runs")).json(&body);
            async move { Answer::of(request.send().await.unwrap()).await }
        });
        for answer in futures_util::future::join_all(posts).await {
            assert_eq!(answer.status, 200);
            submitted.insert(answer.json["run_id"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(submitted.len(), 1_000);
    let mut seen: Vec<(f64, String)> = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("/runs?limit=37&cursor={cursor}")).await.json;
        for item in page["items"].as_array().unwrap() {
            seen.push((item["updated_at"].as_f64().unwrap(), item["run_id"].as_str().unwrap().to_owned()));
        }
        // What comes in between is newer than the cursor and disturbs nothing.
        server.submit().await;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    let mut sorted = seen.clone();
    sorted.sort_by(|one, other| other.partial_cmp(one).unwrap());
    assert_eq!(seen, sorted);
    assert_eq!(seen.into_iter().map(|(_, run)| run).collect::<BTreeSet<_>>(), submitted);
    let exact = server.get("/runs?limit=200&cursor=&flow=f0&updated_after=0").await.json;
    assert_eq!(exact["items"].as_array().unwrap().len(), 200);
}

#[tokio::test]
async fn a_page_that_ends_with_the_list_has_no_cursor() {
    let server = Server::start().await;
    for _ in 0..3 {
        server.submit().await;
    }
    assert!(server.get("/runs?cursor=&limit=3").await.json["next_cursor"].is_null());
    assert!(server.get("/runs?cursor=&limit=2").await.json["next_cursor"].is_string());
}

#[tokio::test]
async fn what_was_answered_is_there_when_the_file_is_opened_again() {
    let (server, folder) = on_sqlite().await;
    let run = server.submit().await;
    let shown = server.get(&format!("/runs/{run}?include=full")).await.json;
    server.shutdown.cancel();
    drop(server);
    let store = loop {
        match SqliteStore::open(folder.path(), Default::default()) {
            Ok(store) => break store,
            // The connection of the first server is still letting go.
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let server = Server::on(Arc::new(store), Settings::default(), ServerLimits::default()).await;
    assert_eq!(server.get(&format!("/runs/{run}?include=full")).await.json, shown);
    assert_eq!(server.stored().await.1, 1);
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_an_error_of_that_run_only() {
    let server = Server::start().await;
    let (good, bad) = (server.submit().await, "broken");
    let record =
        pyoco_ports::Append::new(ExecutionId::new(bad).unwrap(), pyoco_core::ids::Version(0), b"{}".to_vec());
    server.store.append(record).await.unwrap();
    let answer = server.get(&format!("/runs/{bad}")).await;
    assert_eq!(answer.detail(500), "what is stored of this run cannot be read");
    assert_eq!(server.get(&format!("/runs/{good}")).await.status, 200);
}
