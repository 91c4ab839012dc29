//! What a process counts, asked for over HTTP as Prometheus does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::time::Duration;

use pyoco_client::api::SubmitRequest;
use pyoco_server::{
    Backend, Client, Config, Functions, Role, RustFlow, Server, ServerOptions, StartError, Worker,
    WorkerOptions,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn config(folder: &tempfile::TempDir) -> Config {
    Config { data_dir: folder.path().join("data"), ..Config::new() }
}

/// What stands at a path, with the head of the answer.
async fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// A flow that succeeds, and one whose task fails once before it does.
fn functions() -> Functions {
    let once = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let retries = serde_json::json!({"retries": 1}).as_object().unwrap().clone();
    let flaky = RustFlow::new("b").task_with("b", retries, move |_| {
        let fails = once.swap(false, std::sync::atomic::Ordering::Relaxed);
        async move { if fails { Err("not yet".into()) } else { Ok(serde_json::json!(1)) } }
    });
    let fine = RustFlow::new("a").task("a", |_| async { Ok(serde_json::json!(1)) });
    Functions::new().flow("fine", fine).unwrap().flow("flaky", flaky).unwrap()
}

/// Waits until the figures have a line.
async fn until(address: std::net::SocketAddr, line: &str) -> String {
    let told = async {
        loop {
            let text = get(address, "/metrics").await;
            if text.lines().any(|told| told == line) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match tokio::time::timeout(Duration::from_secs(30), told).await {
        Ok(text) => text,
        Err(_) => panic!("no {line}: {}", get(address, "/metrics").await),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_counts_what_it_and_its_worker_do() {
    let folder = tempfile::tempdir().unwrap();
    let options = ServerOptions { port: 0, ..ServerOptions::default() };
    let server = Server::start(config(&folder), options, functions()).await.unwrap();
    let address = server.address();
    let client = Client::new(format!("http://{address}")).unwrap();
    for flow in ["fine", "fine", "flaky", "nobodys"] {
        let request = SubmitRequest { flow_name: flow.to_owned(), ..SubmitRequest::default() };
        client.submit_run(&request).await.unwrap();
    }
    until(address, "pyoco_runs_ended_total{flow=\"fine\",status=\"COMPLETED\"} 2").await;
    until(address, "pyoco_runs_ended_total{flow=\"flaky\",status=\"COMPLETED\"} 1").await;
    let text = until(address, "pyoco_runs_ended_total{flow=\"nobodys\",status=\"FAILED\"} 1").await;
    for line in [
        "pyoco_submit_duration_seconds_count{outcome=\"accepted\"} 4",
        "pyoco_tasks_ended_total{flow=\"fine\",outcome=\"succeeded\"} 2",
        "pyoco_tasks_ended_total{flow=\"flaky\",outcome=\"failed\"} 1",
        "pyoco_tasks_ended_total{flow=\"flaky\",outcome=\"succeeded\"} 1",
        "pyoco_task_retries_total{flow=\"flaky\"} 1",
        "pyoco_task_duration_seconds_count{flow=\"flaky\"} 2",
        "pyoco_task_duration_seconds_count{flow=\"fine\"} 2",
        "pyoco_run_duration_seconds_count{flow=\"fine\"} 2",
        "pyoco_dlq_letters_total{reason=\"flow_not_found\"} 1",
        "pyoco_dlq_messages_total 1",
        "pyoco_claims_lost_total 0",
        concat!("pyoco_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\",store=\"embedded\"} 1"),
    ] {
        assert!(text.lines().any(|told| told == line), "{line}: {text}");
    }
    for begun in [
        "pyoco_store_commit_duration_seconds_count{file=\"main\"} ",
        "pyoco_store_commit_commands_sum{file=\"lines\"} ",
        "pyoco_store_append_duration_seconds_count{outcome=\"accepted\"} ",
        "process_resident_memory_bytes ",
    ] {
        assert!(text.lines().any(|told| told.starts_with(begun)), "{begun}: {text}");
    }
    assert_eq!(
        client.get_metrics().await.unwrap().lines().next(),
        text.lines().find(|line| line.starts_with("# HELP"))
    );
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_tells_its_figures_until_it_is_closed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let backend = Backend::open_as(config(&folder), Role::Worker("w".to_owned())).await.unwrap();
    let address = backend.tell_figures("127.0.0.1:0").await.unwrap();
    let worker = Worker::on(&backend, functions(), WorkerOptions::default()).unwrap();
    worker.run_once(Duration::from_millis(1)).await.unwrap();
    assert!(get(address, "/health").await.ends_with("{\"status\":\"ok\"}"));
    let text = get(address, "/metrics").await;
    assert!(
        text.starts_with("HTTP/1.1 200") && text.contains("content-type: text/plain; version=0.0.4"),
        "{text}"
    );
    assert!(text.contains("\npyoco_claims_lost_total 0\n") && text.contains("\nprocess_open_fds "), "{text}");
    for path in ["/runs", "/audit", "/docs", "/"] {
        assert!(get(address, path).await.starts_with("HTTP/1.1 404"), "{path}");
    }
    // Somebody listens there already.
    let refused = backend.tell_figures(&address.to_string()).await.unwrap_err();
    assert!(matches!(refused, StartError::Worker(_)), "{refused}");
    assert!(refused.to_string().contains("--metrics-addr"), "{refused}");
    worker.close().await.unwrap();
    backend.close().await.unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
