//! What holds for all paths: 404, 405, 307, failures of the store, the description, the log.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyoco_gateway::{ServerLimits, Settings};
use pyoco_ports::EventLog as _;
use pyoco_store_sqlite::SqliteStore;
use serde_json::json;

use crate::support::{Answer, Server};

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
    for path in [
        "/runs",
        "/runs/yaml",
        "/runs/{run_id}",
        "/runs/{run_id}/tasks",
        "/runs/{run_id}/watch",
        "/runs/{run_id}/cancel",
        "/workers",
        "/workers/{worker_id}",
        "/metrics",
        "/health",
    ] {
        assert!(description["paths"].get(path).is_some(), "{path}");
    }
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

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "current_thread")]
async fn each_refusal_is_logged_with_its_numbers_and_never_with_what_a_run_was_given() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = Server::start().await;
    server.get("/runs/nobody").await;
    server.post("/runs", &json!({"flow_name": 1, "params": {"password": "hunter2"}})).await;
    server.get("/runs?cursor=%0A%1b[31m").await;
    server.get("/workers?scope=x").await;
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
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
