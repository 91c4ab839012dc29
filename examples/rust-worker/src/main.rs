//! A flow whose tasks are Rust functions, in a program of your own: no Python, no second process.
//!
//! `cargo run -p rust-worker -- FOLDER` opens a store in FOLDER, submits one run, works it off and prints its result.
//! A program that also wants the HTTP surface starts a `pyoco_server::Server` with the same functions instead.

#![allow(clippy::print_stdout, reason = "an example shows what it did")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use pyoco_server::{Backend, Config, Functions, RustFlow, Server, ServerOptions, Worker, WorkerOptions};
use serde_json::json;

fn flow() -> RustFlow {
    let retried = json!({"retries": 2, "retry_delay_sec": 0.1}).as_object().cloned().unwrap_or_default();
    RustFlow::new("fetch >> (count & shout) >> report")
        .task("fetch", |task| async move {
            let name = task.param("name");
            Ok(json!(["hello", name]))
        })
        .task("count", |task| async move { Ok(json!(task.result("fetch").as_array().map_or(0, Vec::len))) })
        .task_with("shout", retried, |task| async move {
            if task.call().attempt.0 == 1 {
                return Err("not loud enough; try again".to_owned());
            }
            let words = task.result("fetch");
            let words = words.as_array().into_iter().flatten().filter_map(|word| word.as_str());
            Ok(json!(words.map(str::to_uppercase).collect::<Vec<_>>().join(" ")))
        })
        .task("report", |task| async move {
            Ok(json!(format!(
                "{} ({} words)",
                task.result("shout").as_str().unwrap_or(""),
                task.result("count")
            )))
        })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from(".pyoco-rust"), PathBuf::from);
    let config = Config { data_dir: folder, ..Config::from_env()? };
    let functions = Functions::new().flow("rust-hello", flow())?;

    // Over HTTP: everything in one process, on a port that is free.
    let options = ServerOptions { port: 0, ..ServerOptions::default() };
    let server = Server::start(config.clone(), options, functions.clone()).await?;
    let client = pyoco_client::Client::new(format!("http://{}", server.address()))?;
    let request = pyoco_client::api::SubmitRequest {
        flow_name: "rust-hello".to_owned(),
        params: json!({"name": "Ferris"}).as_object().cloned().unwrap_or_default().into_iter().collect(),
        ..Default::default()
    };
    let run = client.submit_run(&request).await?.run_id.clone();
    let ended = client.wait_for_end(&run, Duration::from_secs(30), |_| {}).await?;
    println!("over HTTP: {} {:?}", ended.run_id, ended.status);
    let records = client.get_tasks(&run).await?;
    println!("{}", records.json()["task_records"]["report"]["output"]);
    server.stop().await?;

    // Without HTTP: a worker that takes what is in the queue, one run at a time.
    let backend = Backend::open(config).await?;
    let worker = Worker::on(&backend, functions, WorkerOptions::default())?;
    let next = worker.run_once(Duration::from_millis(50)).await?;
    println!("left in the queue: {next:?}");
    worker.close().await?;
    backend.close().await?;
    Ok(())
}
