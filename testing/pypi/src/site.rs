//! A server of ours in this process, with a store, flows and usually a worker, and the client of PyPI beside it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use pyoco_server::{Config, Functions, Server, ServerOptions, Worker, WorkerOptions};
use serde_json::Value;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::Said;

/// What the worker calls itself.
pub const WORKER: &str = "anna";
/// How long anything may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with everything it needs. Tests end it with [`Site::stop`].
#[derive(Debug)]
pub struct Site {
    folder: tempfile::TempDir,
    server: Server,
}

impl Site {
    /// With a worker that takes what is tagged `default` or `blue`.
    pub async fn start() -> Self {
        Self::with(|_| (), true).await
    }

    /// Without a worker: runs wait.
    pub async fn without_worker() -> Self {
        Self::with(|_| (), false).await
    }

    /// With a worker or without, and a configuration of its own.
    pub async fn with(change: impl FnOnce(&mut Config), has_worker: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::new();
        config.data_dir = folder.path().join("data");
        config.python = python();
        change(&mut config);
        let worker = has_worker.then(worker_options);
        let options = ServerOptions { port: 0, worker, ..ServerOptions::default() };
        let server = Server::start(config, options, Functions::new()).await.unwrap();
        Self { folder, server }
    }

    /// Another worker on the same store.
    pub fn worker(&self) -> Worker {
        Worker::on(self.server.backend(), Functions::new(), worker_options()).unwrap()
    }

    /// Where the server is.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The path of a file that vanishes with the site.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes such a file, and says where it is.
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// One command line of the client of PyPI.
    pub async fn client(&self, arguments: &[&str]) -> Said {
        client(&self.url(), arguments).await
    }

    /// A Python program with PyPI's client at hand.
    pub async fn python(&self, program: &Path, arguments: &[&str]) -> Said {
        said(Command::new(python()).arg(program).args(arguments)).await
    }

    /// Submits a run with the client; its id.
    pub async fn submit(&self, flow: &str, rest: &[&str]) -> String {
        let arguments = [&["submit", "--flow-name", flow], rest].concat();
        run_id(&self.client(&arguments).await.json())
    }

    /// Watches a run with the client until it ends, and gets it with its records.
    pub async fn ended(&self, run: &str) -> Value {
        self.client(&["watch", run, "--until-terminal", "--timeout-sec", "50"]).await.text();
        self.client(&["get", run, "--records"]).await.json()
    }

    /// Submits a run whose task goes on until it is released, and waits until the task runs. Once a site.
    pub async fn hold(&self, flow: &str) -> Held {
        let [started, release] = ["started", "release"].map(|name| self.path(name));
        assert!(!started.exists(), "a site holds one run");
        let params = serde_json::json!({"started": started, "release": release}).to_string();
        let run = self.submit(flow, &["--params", &params]).await;
        let appears = async {
            while !started.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, appears).await.expect("the task starts");
        Held { run, release }
    }

    /// Ends the server; tasks that still run are ended with it.
    pub async fn stop(self) {
        let hurry = CancellationToken::new();
        hurry.cancel();
        self.server.stop_or_hurry(hurry).await.unwrap();
    }
}

/// A run whose task is held.
#[derive(Debug)]
pub struct Held {
    /// The run.
    pub run: String,
    release: PathBuf,
}

impl Held {
    /// Lets the task end.
    pub fn release(&self) {
        std::fs::write(&self.release, "").unwrap();
    }
}

/// One command line of the client of PyPI, to a server that may not be there.
pub async fn client(url: &str, arguments: &[&str]) -> Said {
    let program = python().with_file_name("pyoco-client");
    said(Command::new(program).args(["--server", url]).args(arguments)).await
}

async fn said(command: &mut Command) -> Said {
    // A proxy of the person's has no business here, and what is said is UTF-8.
    command.env("NO_PROXY", "*").env("PYTHONUTF8", "1").stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends in time");
    Said::of(output.expect("PyPI's pyoco-server is installed; `make test` does so"))
}

/// The id of the run that an answer is about.
fn run_id(answer: &Value) -> String {
    answer["run_id"].as_str().unwrap().to_owned()
}

fn worker_options() -> WorkerOptions {
    let flows = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/flows");
    // Callables of a flow.yaml that is sent along are found as Python finds modules.
    let modules = flows.join("sum").to_str().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap();
    WorkerOptions {
        id: WORKER.to_owned(),
        tags: vec!["default".to_owned(), "blue".to_owned()],
        flows: Some(flows),
        env: HashMap::from([("PATH".to_owned(), path), ("PYTHONPATH".to_owned(), modules)]),
        ..WorkerOptions::default()
    }
}

/// The interpreter that has the packages of PyPI: `PYOCO_TEST_PYTHON`, else the project's `.venv`.
fn python() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    std::env::var("PYOCO_TEST_PYTHON").map_or_else(|_| own(), PathBuf::from)
}
