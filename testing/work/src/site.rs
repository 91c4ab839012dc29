//! The product in this process, without sockets: what a client would take is not counted.

use std::cell::Cell;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use futures_util::future::join_all;
use http_body_util::BodyExt as _;
use pyoco_gateway::Router;
use pyoco_server::{Backend, Config, Functions, RustFlow, Worker, WorkerOptions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;

use crate::Counts;

/// Nothing here takes as long, on whatever machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The tag that the worker takes runs of.
const WORKED: &str = "worked";
/// A tag of which nobody takes any.
const UNWORKED: &str = "unworked";

/// A store in a folder, the router before it and a worker behind it.
#[derive(Debug)]
pub struct Site {
    backend: Backend,
    router: Router,
    worker: Worker,
    /// How many requests were sent, each under a key of its own.
    requests: Cell<usize>,
    /// Goes with the site.
    _folder: TempDir,
}

impl Site {
    /// A new one. The worker knows the flow `one`, which has one task, `chain`, which has so many in a row, and for each of the widths
    /// a flow `wide-WIDTH`, which has so many side by side. None does anything.
    pub async fn open(chain: usize, widths: &[usize]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Nothing of the person's environment, and no Python that would be warmed up.
        let defaults = Config::from_vars(HashMap::new()).unwrap();
        let config = Config { data_dir: folder.path().to_owned(), ..defaults };
        let backend = Backend::open(config).await.unwrap();
        let options = WorkerOptions {
            tags: vec![WORKED.to_owned()],
            concurrency: Some(NonZeroUsize::MIN),
            env: HashMap::new(),
            ..WorkerOptions::default()
        };
        let names: Vec<String> = (0..chain).map(|number| format!("s{number}")).collect();
        let functions = Functions::new().flow("one", flow(&["tick".to_owned()])).unwrap();
        let functions = functions.flow("chain", flow(&names)).unwrap();
        let functions = widths.iter().fold(functions, |functions, width| {
            functions.flow(&format!("wide-{width}"), wide(*width)).unwrap()
        });
        let worker = Worker::on(&backend, functions, options).unwrap();
        Self { router: backend.router(), worker, backend, requests: Cell::new(0), _folder: folder }
    }

    /// Counts what some requests make, for each of `units`, with what they leave to be written a little later.
    pub async fn count<T>(&self, units: usize, work: impl Future<Output = T>) -> (Counts, T) {
        self.settle().await;
        let before = Counts::at_begin(&self.backend);
        let done = work.await;
        self.settle().await;
        (Counts::at_end(&self.backend).since(&before, units), done)
    }

    /// Writes what would be written a little later: lines of logs, and the audit trail.
    async fn settle(&self) {
        let engine = self.backend.engine();
        tokio::join!(engine.lines().flush(), engine.trail().flush());
    }

    async fn send(&self, method: Method, path: &str, body: String) -> Response {
        let key = self.requests.replace(self.requests.get() + 1);
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = request.header("x-idempotency-key", format!("work-{key}"));
        let request = request.body(Body::from(body)).unwrap();
        let answer = tokio::time::timeout(PATIENCE, self.router.clone().oneshot(request));
        answer.await.expect("an answer in time").unwrap()
    }

    async fn answer(&self, method: Method, path: &str, body: String, status: StatusCode) -> Bytes {
        let answer = self.send(method, path, body).await;
        let seen = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(seen, status, "{path}: {}", String::from_utf8_lossy(&bytes));
        bytes
    }

    /// Gets what is at a path.
    pub async fn get(&self, path: &str) -> Bytes {
        self.answer(Method::GET, path, String::new(), StatusCode::OK).await
    }

    async fn submit_as(&self, flow: &str, tag: &str) -> String {
        let body = json!({"flow_name": flow, "params": {"name": "Ada"}, "tag": tag}).to_string();
        let answer = self.answer(Method::POST, "/runs", body, StatusCode::OK).await;
        text_of(&answer, "run_id")
    }

    /// Submits a run that nobody takes.
    pub async fn submit(&self) -> String {
        self.submit_as("one", UNWORKED).await
    }

    /// Submits as many at once.
    pub async fn submit_at_once(&self, count: usize) -> Vec<String> {
        join_all((0..count).map(|_| self.submit())).await
    }

    /// Submits a run and sees it through.
    pub async fn run(&self, flow: &str) -> String {
        let run = self.submit_as(flow, WORKED).await;
        let ran = self.worker.run_once(PATIENCE).await.unwrap();
        assert_eq!(ran.as_deref(), Some(run.as_str()), "the worker took another run, or none");
        run
    }

    /// Cancels a run.
    pub async fn cancel(&self, run: &str) {
        self.answer(Method::POST, &format!("/runs/{run}/cancel"), String::new(), StatusCode::OK).await;
    }

    /// An execution with one node that has been started, to be driven from outside.
    pub async fn execution(&self) -> String {
        let graph = json!({"version": 2, "flow": {"graph": "n"}, "tasks": {"n": {}}}).to_string();
        let put = self.send(Method::PUT, "/graphs/work", graph).await;
        assert!(put.status().is_success(), "{}", put.status());
        let created = self.command("/executions", &json!({"graphId": "work"})).await;
        let execution = text_of(&created, "executionId");
        self.command(&format!("/executions/{execution}/start"), &json!({})).await;
        self.command(&format!("/executions/{execution}/nodes/n/start"), &json!({})).await;
        execution
    }

    /// Reports progress of its node.
    pub async fn report(&self, execution: &str, progress: usize) {
        let body = json!({"progress": progress % 100, "message": format!("row {progress}")});
        self.command(&format!("/executions/{execution}/nodes/n/progress"), &body).await;
    }

    async fn command(&self, path: &str, body: &Value) -> Bytes {
        self.answer(Method::POST, path, body.to_string(), StatusCode::ACCEPTED).await
    }

    /// Follows a stream of server-sent events.
    pub async fn follow(&self, path: &str) -> Stream {
        let answer = self.send(Method::GET, path, String::new()).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        Stream { body: answer.into_body(), rest: String::new() }
    }

    /// Stops everything.
    pub async fn close(self) {
        self.worker.close().await.unwrap();
        drop(self.router);
        self.backend.close().await.unwrap();
    }
}

fn flow(tasks: &[String]) -> RustFlow {
    let flow = RustFlow::new(&tasks.join(" >> "));
    tasks.iter().fold(flow, |flow, task| flow.task(task, |_| async { Ok(json!(1)) }))
}

/// Some of them take longer than others, so that there is always one that has not ended when another one does.
fn wide(width: usize) -> RustFlow {
    let names: Vec<String> = (0..width).map(|number| format!("f{number}")).collect();
    let flow = RustFlow::new(&format!("first >> [{}] >> last", names.join(", ")));
    let ends = ["first".to_owned(), "last".to_owned()];
    names.iter().chain(&ends).enumerate().fold(flow, |flow, (number, task)| {
        flow.task(task, move |_| async move {
            for _ in 0..number % 5 {
                tokio::task::yield_now().await;
            }
            Ok(json!(1))
        })
    })
}

fn text_of(answer: &Bytes, member: &str) -> String {
    let answer: Value = serde_json::from_slice(answer).unwrap();
    answer[member].as_str().unwrap_or_else(|| panic!("no {member} in {answer}")).to_owned()
}

/// A stream of server-sent events that is open.
#[derive(Debug)]
pub struct Stream {
    body: Body,
    rest: String,
}

impl Stream {
    /// Reads until a piece of text has arrived.
    pub async fn until(&mut self, wanted: &str) {
        let arrived = async {
            while !self.rest.contains(wanted) {
                let frame = self.body.frame().await.expect("the stream goes on").unwrap();
                if let Ok(data) = frame.into_data() {
                    self.rest.push_str(std::str::from_utf8(&data).unwrap());
                }
            }
        };
        tokio::time::timeout(PATIENCE, arrived).await.unwrap_or_else(|_| panic!("{wanted} did not arrive"));
        self.rest.clear();
    }
}
