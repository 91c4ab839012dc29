//! What holds for all paths: 404, 405, 307, failures of the store, the description, the log.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pyoco_gateway::{ServerLimits, Settings};
use pyoco_ports::EventLog as _;
use pyoco_store_sqlite::SqliteStore;
use serde_json::{Map, Value, json};

use crate::support::{Answer, Server, logged};

#[tokio::test]
async fn health_is_told_without_looking_at_anything() {
    let server = Server::start().await;
    let answer = server.get("/health").await;
    assert_eq!((answer.status, answer.json), (200, json!({"status": "ok"})));
}

#[tokio::test]
async fn paths_and_methods_that_do_not_exist_are_told_so() {
    let server = Server::start().await;
    for path in ["/nothing", "/runs/a/b", "/runs/a/tasks/c", "//runs", "/Runs", "/workers/a/b"] {
        let answer = server.get(path).await;
        assert_eq!(answer.detail(404), "Not Found", "{path}");
    }
    for (method, path, allowed) in [
        ("PUT", "/runs", ["GET", "POST"]),
        ("DELETE", "/runs/a", ["GET", "GET"]),
        ("GET", "/runs/a/cancel", ["POST", "POST"]),
        ("POST", "/health", ["GET", "GET"]),
        ("GET", "/workers/a", ["PATCH", "PATCH"]),
    ] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let answer = Answer::of(server.client.request(method, server.url(path)).send().await.unwrap()).await;
        assert_eq!(answer.detail(405), "Method Not Allowed", "{path}");
        let allow = answer.headers["allow"].to_str().unwrap();
        assert!(allowed.iter().all(|method| allow.contains(method)), "{path}: {allow}");
    }
}

#[tokio::test]
async fn a_slash_at_the_end_leads_to_the_path_without_it() {
    let server = Server::start().await;
    for (path, target) in
        [("/runs/", "/runs"), ("/runs/?limit=3&tag=a", "/runs?limit=3&tag=a"), ("/workers/", "/workers")]
    {
        let response = server.client.get(server.url(path)).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), response.headers()["location"].to_str().unwrap()),
            (307, target)
        );
    }
    let response =
        server.client.post(server.url("/runs/")).json(&json!({"flow_name": "m"})).send().await.unwrap();
    assert_eq!(response.status(), 307);
}

#[tokio::test]
async fn the_description_is_served_without_a_network() {
    let server = Server::start().await;
    let description = server.get("/openapi.json").await.json;
    assert_eq!(description["info"]["title"], "pyoco-server (HTTP gateway)");
    assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
    let schema = &description["components"]["schemas"]["SubmitRequest"];
    assert_eq!(schema["required"], json!(["flow_name"]), "{schema}");
    for path in ["/docs", "/docs/", "/redoc"] {
        let page = server.client.get(server.url(path)).send().await.unwrap();
        assert_eq!(page.status(), 200, "{path}");
        let text = page.text().await.unwrap();
        assert!(text.contains("<base href=\"/docs/\">") && !text.contains("https://"), "{path}: {text}");
        // Every part that the page names is served here.
        for part in text.split(['"']).filter(|word| word.starts_with("./")) {
            let part = server.client.get(server.url(&part.replacen("./", "/docs/", 1))).send().await.unwrap();
            assert_eq!(part.status(), 200, "{}", part.url());
        }
        assert!(text.contains("./swagger-initializer.js"));
    }
    let start = server.client.get(server.url("/docs/swagger-initializer.js")).send().await.unwrap();
    assert!(start.text().await.unwrap().contains("/openapi.json"));
    assert_eq!(server.get("/docs/nothing.js").await.detail(404), "Not Found");
}

#[tokio::test]
async fn the_description_names_every_answer() {
    let server = Server::start().await;
    let description = server.get("/openapi.json").await.json;
    let read = ["400", "401", "403", "415", "429", "500", "503"];
    let write = ["400", "401", "403", "408", "413", "415", "429", "500", "503", "507"];
    let change = ["400", "401", "403", "415", "429", "500", "503", "507"];
    let cases: [(&str, &str, &[&str], &[&str]); 21] = [
        ("/health", "get", &[], &["415", "500"]),
        ("/metrics", "get", &[], &read),
        ("/runs", "get", &["422"], &read),
        ("/runs", "post", &["409", "422"], &write),
        ("/runs/yaml", "post", &["409", "422"], &write),
        ("/runs/{run_id}", "get", &["404"], &read),
        ("/runs/{run_id}/tasks", "get", &["404"], &read),
        ("/runs/{run_id}/plan", "get", &["404"], &read),
        ("/runs/{run_id}/explain", "get", &["404"], &read),
        ("/runs/{run_id}/watch", "get", &["400", "404", "422"], &read),
        ("/runs/watch", "get", &["422"], &read),
        ("/runs/{run_id}/cancel", "post", &["404"], &write),
        ("/runs/{run_id}/logs", "get", &["206", "304", "400", "404", "406", "416", "422"], &read),
        ("/runs/{run_id}/logs/stream", "get", &["204", "400", "404", "422"], &read),
        ("/workers", "get", &["422"], &read),
        ("/workers/{worker_id}", "patch", &["404", "422"], &write),
        ("/wheels", "get", &[], &read),
        ("/wheels", "post", &["409", "422"], &write),
        ("/wheels/history", "get", &["422"], &read),
        ("/wheels/{wheel_name}", "get", &["206", "304", "404", "416"], &read),
        ("/wheels/{wheel_name}", "delete", &["404"], &change),
    ];
    for (path, method, own, shared) in cases {
        let answers = description["paths"][path][method]["responses"].as_object().unwrap();
        let wanted: BTreeSet<&str> = ["200"].iter().chain(own).chain(shared).copied().collect();
        assert_answers(&format!("{method} {path}"), answers, &wanted, "ErrorBody");
    }
    let coded = coded_answers();
    for (path, method, answered) in &coded {
        let answers = description["paths"][path][method]["responses"].as_object().unwrap();
        let always = ["400", "401", "403", "415", "429", "500", "503"];
        let wanted = always.iter().chain(*answered).copied().collect();
        assert_answers(&format!("{method} {path}"), answers, &wanted, "DenialBody");
    }
    let named = description["paths"].as_object().unwrap().values();
    let named: usize = named.map(|operations| operations.as_object().unwrap().len()).sum();
    assert_eq!(named, cases.len() + coded.len());
}

/// What is answered on the surfaces with codes, beside what all of them answer.
fn coded_answers() -> Vec<(String, &'static str, &'static [&'static str])> {
    const COMMAND: &[&str] = &["200", "202", "400", "404", "408", "409", "413", "422", "507"];
    let mut cases: Vec<(String, &str, &[&str])> = vec![
        ("/executions".to_owned(), "get", &["200", "422"]),
        ("/executions".to_owned(), "post", COMMAND),
        ("/executions/bulk".to_owned(), "post", &["200", "400", "408", "413", "422", "507"]),
        ("/executions/{executionId}".to_owned(), "get", &["200", "404", "422"]),
        ("/executions/{executionId}/events".to_owned(), "get", &["200", "404", "422"]),
        ("/executions/{executionId}/events/stream".to_owned(), "get", &["200", "204", "404", "422"]),
        ("/graphs".to_owned(), "get", &["200", "422"]),
        ("/graphs/{graphId}".to_owned(), "get", &["200", "404", "422"]),
        ("/graphs/{graphId}".to_owned(), "put", &["200", "201", "400", "408", "412", "413", "422", "507"]),
        ("/graphs/{graphId}".to_owned(), "delete", &["204", "404", "412", "507"]),
        ("/waits".to_owned(), "get", &["200", "422"]),
        ("/audit".to_owned(), "get", &["200", "422"]),
        ("/jobs".to_owned(), "get", &["200", "400", "422"]),
        ("/jobs".to_owned(), "post", &["200", "201", "400", "404", "408", "409", "413", "422", "507"]),
        ("/jobs/{id}".to_owned(), "get", &["200", "404"]),
        ("/jobs/{id}".to_owned(), "delete", &["204", "507"]),
        ("/jobs/{id}/logs".to_owned(), "get", &["200", "206", "304", "400", "404", "406", "416", "422"]),
        ("/jobs/{id}/logs/stream".to_owned(), "get", &["200", "204", "400", "404", "422"]),
        ("/jobs/{id}/ws".to_owned(), "get", &["101", "400", "404", "405", "426"]),
        ("/jobs/{id}/tags".to_owned(), "get", &["200", "404"]),
        ("/jobs/{id}/tags".to_owned(), "post", &["200", "400", "404", "408", "413", "422", "507"]),
        ("/jobs/{id}/tags/{tag}".to_owned(), "delete", &["204", "507"]),
        ("/tags".to_owned(), "get", &["200", "400", "422"]),
    ];
    for command in ["start", "cancel", "archive", "retry"] {
        cases.push((format!("/executions/{{executionId}}/{command}"), "post", COMMAND));
    }
    for command in ["start", "progress", "wait", "resume", "success", "fail", "cancel"] {
        cases.push((format!("/executions/{{executionId}}/nodes/{{nodeId}}/{command}"), "post", COMMAND));
    }
    cases
}

#[track_caller]
fn assert_answers(what: &str, answers: &Map<String, Value>, wanted: &BTreeSet<&str>, refusal: &str) {
    let named: BTreeSet<&str> = answers.keys().map(String::as_str).collect();
    assert_eq!(named, *wanted, "{what}");
    for (status, answer) in answers {
        assert_ne!(answer["description"], "", "{what} {status}");
        if status.starts_with(['4', '5']) {
            let body = &answer["content"]["application/json"]["schema"]["$ref"];
            assert_eq!(body, &format!("#/components/schemas/{refusal}"), "{what} {status}");
        }
    }
}

#[tokio::test]
async fn the_description_names_every_member_and_nothing_that_is_not_there() {
    let server = Server::start().await;
    let description = server.get("/openapi.json").await.json;
    let schemas = &description["components"]["schemas"];
    // What a snapshot has is described.
    let run = server.submit().await;
    server.claim(&run).await;
    let shown = server.get(&format!("/runs/{run}?include=full")).await.json;
    for name in shown.as_object().unwrap().keys() {
        assert!(schemas["RunSnapshot"]["properties"].get(name).is_some(), "{name}");
    }
    for (schema, name) in [
        ("RunSnapshot", "waiting"),
        ("NoWorker", "reason"),
        ("NoWorker", "tag"),
        ("NoWorker", "message"),
        ("WaitingNode", "wait_key"),
        ("WorkerRecord", "current_run_ids"),
        ("WorkerRecord", "concurrency"),
        ("RunSnapshot", "wheels"),
        ("Execution", "wheels"),
        ("UsedWheel", "sha256"),
        ("WheelArtifact", "sha256_hex"),
        ("WheelHistoryEvent", "actor"),
        ("WheelHistorySource", "x_forwarded_for"),
    ] {
        assert!(schemas[schema]["properties"].get(name).is_some(), "{schema}.{name}: {}", schemas[schema]);
    }
    // A list is of summaries or of whole snapshots, in either form.
    let entry = json!({"$ref": "#/components/schemas/RunEntry"});
    assert_eq!(schemas["RunPage"]["properties"]["items"]["items"], entry);
    assert_eq!(schemas["RunList"]["oneOf"][0]["items"], entry);
    // Any of them, not one of them: a whole snapshot fits a summary, too.
    let of: Vec<&str> = schemas["RunEntry"]["anyOf"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["$ref"].as_str())
        .collect();
    assert_eq!(of, ["#/components/schemas/RunSummary", "#/components/schemas/RunSnapshot"]);
    // Whatever is named is there.
    let text = description.to_string();
    for name in text.split("#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(schemas.get(name).is_some(), "{name}");
    }
}

#[tokio::test]
async fn a_store_that_is_closed_is_told_soon_and_in_the_originals_words() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path(), Default::default()).unwrap());
    let server = Server::on(store.clone(), Settings::default(), ServerLimits::default()).await;
    let run = server.submit().await;
    store.close().await.unwrap();
    for (method, path) in [
        ("POST", "/runs".to_owned()),
        ("GET", "/runs".to_owned()),
        ("GET", format!("/runs/{run}")),
        ("GET", "/workers".to_owned()),
        ("GET", "/metrics".to_owned()),
    ] {
        let begun = std::time::Instant::now();
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = server.client.request(method, server.url(&path)).json(&json!({"flow_name": "m"}));
        let answer = Answer::of(request.send().await.unwrap()).await;
        let detail = answer.detail(503).as_str().unwrap();
        assert!(detail.starts_with("nats unavailable: "), "{path}: {detail}");
        assert_eq!(
            (&answer.json["err_id"], &answer.json["msg_id"]),
            (&json!("ERR-PYOCO-0003"), &json!("MSG-PYOCO-0003"))
        );
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
    assert_eq!(server.get("/health").await.status, 200);
    assert!(
        store
            .read(&pyoco_core::ids::ExecutionId::new(&run).unwrap(), pyoco_core::ids::Version(0))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_handler_that_breaks_breaks_alone() {
    let server = Server::start().await;
    let run = server.submit().await;
    server.hands.break_down(true);
    for (method, path) in [("GET", "/workers"), ("POST", "/runs")] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = server.client.request(method, server.url(path)).json(&json!({"flow_name": "m"}));
        let response = request.send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["connection"]),
            (500, &"close".parse().unwrap())
        );
        assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/plain"));
        assert_eq!(response.text().await.unwrap(), "Internal Server Error");
    }
    server.hands.break_down(false);
    assert_eq!(server.get(&format!("/runs/{run}")).await.status, 200);
    assert_eq!(server.stored().await.0.len(), 1);
    server.submit().await;
}

#[tokio::test(flavor = "current_thread")]
async fn records_that_are_left_out_are_logged_once_an_answer() {
    let (lines, _guard) = logged();
    let settings = Settings { max_run_snapshot_bytes: 4_000, ..Settings::default() };
    let server = Server::with(settings, ServerLimits::default()).await;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let run = server.submit().await;
        server.claim(&run).await;
        server.run_task(&run, "a", json!("hunter2".repeat(1_000))).await;
        runs.push(run);
    }
    let told = || {
        let text = lines.take();
        text.lines().filter(|line| line.contains("ERR-PYOCO-0010")).map(str::to_owned).collect::<Vec<_>>()
    };
    server.get(&format!("/runs/{}", runs[0])).await;
    assert_eq!(told(), Vec::<String>::new());
    for path in [format!("/runs/{}?include=full", runs[0]), format!("/runs/{}/tasks", runs[0])] {
        server.get(&path).await;
        let told = told();
        assert_eq!(told.len(), 1, "{path}: {told:?}");
        for wanted in [" WARN ", "MSG-PYOCO-0010", "max_bytes=4000", "スナップショットが大きすぎます"]
        {
            assert!(told[0].contains(wanted), "{wanted}: {told:?}");
        }
        assert!(told[0].contains(&format!("run_id=\"{}\"", runs[0])), "{told:?}");
        let bytes = told[0].split(" bytes=").nth(1).unwrap().split(' ').next().unwrap();
        assert!(bytes.parse::<usize>().unwrap() > 7_000, "{told:?}");
        assert!(!told[0].contains("hunter2"), "{told:?}");
    }
    assert_eq!(server.get("/runs?include=full").await.json.as_array().unwrap().len(), 2);
    assert_eq!(told().len(), 1);
    let path = format!("/runs/{}/watch?include=full", runs[1]);
    let mut watch = server.client.get(server.url(&path)).send().await.unwrap();
    let mut text = String::from_utf8_lossy(&watch.chunk().await.unwrap().unwrap()).into_owned();
    server.run_task(&runs[1], "b", json!(1)).await;
    while !text.contains("COMPLETED") {
        text.push_str(&String::from_utf8_lossy(&watch.chunk().await.unwrap().unwrap()));
    }
    assert!(text.matches("\"task_records_truncated\":true").count() > 1, "{text}");
    assert_eq!(told().len(), 1);
}

#[tokio::test(flavor = "current_thread")]
async fn each_refusal_is_logged_with_its_numbers_and_never_with_what_a_run_was_given() {
    let (lines, _guard) = logged();
    let server = Server::start().await;
    server.get("/runs/nobody").await;
    server.post("/runs", &json!({"flow_name": 1, "params": {"password": "hunter2"}})).await;
    server.get("/runs?cursor=%0A%1b[31m").await;
    server.get("/workers?scope=x").await;
    let text = lines.take();
    for wanted in [
        "ERR-PYOCO-0005",
        "MSG-PYOCO-0005",
        "run_id=\"nobody\"",
        "runが見つかりません",
        "ERR-PYOCO-0002",
        "body.flow_name string_type",
        "ERR-PYOCO-0017",
        "ERR-PYOCO-0019",
        "status=422",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!text.contains("hunter2") && !text.contains('\u{1b}'), "{text}");
    assert_eq!(text.lines().count(), 4, "{text}");
}
