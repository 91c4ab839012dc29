//! A server on which every operation can be done: graphs, and for each command an execution in the state that it needs.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyoco_client::WorkerFilter;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use crate::explorer::Given;
use crate::support::{PATIENCE, Running};

const GRAPH: &str = "version: 2\nflow: {graph: 'x >> a'}\ntasks: {x: {}, a: {}}\n";

const CREATED: &[&str] = &[];
const STARTED: &[&str] = &["start", "nodes/x/start", "nodes/x/success"];
const RUNNING: &[&str] = &["start", "nodes/x/start", "nodes/x/success", "nodes/a/start"];
const WAITING: &[&str] = &["start", "nodes/x/start", "nodes/x/success", "nodes/a/start", "nodes/a/wait"];
const ENDED: &[&str] = &["start", "nodes/x/start", "cancel"];

/// Commands, what happened before to the execution that each is given, and what it leaves there.
const COMMANDS: [(&str, &[&str], &str); 11] = [
    ("/executions/{executionId}/start", CREATED, "EXECUTION_STARTED"),
    ("/executions/{executionId}/cancel", RUNNING, "EXECUTION_CANCEL_REQUESTED"),
    ("/executions/{executionId}/archive", ENDED, "EXECUTION_ARCHIVED"),
    ("/executions/{executionId}/nodes/{nodeId}/start", STARTED, "NODE_STARTED"),
    ("/executions/{executionId}/nodes/{nodeId}/progress", RUNNING, "NODE_PROGRESS_REPORTED"),
    ("/executions/{executionId}/nodes/{nodeId}/wait", RUNNING, "NODE_WAITING"),
    ("/executions/{executionId}/nodes/{nodeId}/resume", WAITING, "NODE_RESUMED"),
    ("/executions/{executionId}/nodes/{nodeId}/success", RUNNING, "NODE_SUCCEEDED"),
    ("/executions/{executionId}/nodes/{nodeId}/fail", RUNNING, "NODE_FAIL_REPORTED"),
    ("/executions/{executionId}/nodes/{nodeId}/cancel", RUNNING, "NODE_CANCEL_REQUESTED"),
    ("/runs/{run_id}/cancel", RUNNING, "EXECUTION_CANCEL_REQUESTED"),
];

/// Looks at what has ended, so that streams end as well.
const LOOKS: [&str; 14] = [
    "/executions/{executionId}",
    "/executions/{executionId}/events",
    "/executions/{executionId}/events/stream",
    "/runs/{run_id}",
    "/runs/{run_id}/tasks",
    "/runs/{run_id}/plan",
    "/runs/{run_id}/explain",
    "/runs/{run_id}/watch",
    "/runs/{run_id}/logs",
    "/runs/{run_id}/logs/stream",
    "/jobs/{id}",
    "/jobs/{id}/logs",
    "/jobs/{id}/logs/stream",
    "/jobs/{id}/tags",
];

/// What is there, and which operation is given it.
pub(crate) struct Scene<'a> {
    pub(crate) given: Vec<Given>,
    http: reqwest::Client,
    server: &'a Running,
    sent: AtomicUsize,
}

impl<'a> Scene<'a> {
    pub(crate) async fn set(server: &'a Running) -> Self {
        let given = Vec::new();
        let mut scene = Self { given, http: reqwest::Client::new(), server, sent: AtomicUsize::new(0) };
        // The description's own example of a graph, one that is going to be deleted, and one that is going to be replaced.
        for graph in ["approval", "doomed", "changing"] {
            scene.put(graph).await;
        }
        for (path, steps, _) in COMMANDS {
            let execution = scene.execution(steps).await;
            scene.give("POST", path, &execution);
        }
        for path in LOOKS {
            let execution = scene.execution(ENDED).await;
            scene.give("GET", path, &execution);
        }
        scene.given.push(("GET", "/runs/watch", vec![("timeout_sec", "1".to_owned())]));
        for (method, path) in
            [("POST", "/jobs/{id}/tags"), ("DELETE", "/jobs/{id}/tags/{tag}"), ("DELETE", "/jobs/{id}")]
        {
            let execution = scene.execution(ENDED).await;
            scene.give(method, path, &execution);
        }
        let retried = scene.execution(ENDED).await;
        scene.give("POST", "/executions/{executionId}/retry", &retried);
        for (method, graph) in [("GET", "approval"), ("PUT", "changing"), ("DELETE", "doomed")] {
            scene.given.push((method, "/graphs/{graphId}", vec![("graphId", graph.to_owned())]));
        }
        let worker = scene.worker().await;
        scene.given.push(("PATCH", "/workers/{worker_id}", vec![("worker_id", worker)]));
        for (method, package) in [("GET", "kept"), ("DELETE", "doomed")] {
            let name = scene.wheel(package).await;
            scene.given.push((method, "/wheels/{wheel_name}", vec![("wheel_name", name)]));
        }
        scene
    }

    fn give(&mut self, method: &'static str, path: &'static str, execution: &str) {
        let mut values = Vec::new();
        let ids = [("executionId", execution), ("run_id", execution), ("id", execution), ("nodeId", "a")];
        for (name, value) in ids.into_iter().chain([("tag", "default")]) {
            if path.contains(&format!("{{{name}}}")) {
                values.push((name, value.to_owned()));
            }
        }
        if path.ends_with("/watch") {
            // It lasts for as long as its caller says.
            values.push(("timeout_sec", "1".to_owned()));
        }
        self.given.push((method, path, values));
    }

    /// Whether it is one whose traces are looked for.
    pub(crate) fn is_command(&self, name: &str) -> bool {
        COMMANDS.iter().any(|(path, ..)| name == format!("POST {path}"))
    }

    /// The commands that have left nothing, though they were given what they need.
    pub(crate) async fn untouched(&self) -> Vec<&'static str> {
        let mut untouched = Vec::new();
        for (path, _, trace) in COMMANDS {
            let (.., values) = self.given.iter().find(|(_, other, _)| *other == path).unwrap();
            let history = self.get(&format!("/executions/{}/events?limit=1000", values[0].1)).await;
            let is_trace = |event: &Value| {
                event["type"] == trace && (!path.contains("{nodeId}") || event["payload"]["nodeId"] == "a")
            };
            if !history["events"].as_array().unwrap().iter().any(is_trace) {
                untouched.push(path);
            }
        }
        untouched
    }

    async fn put(&self, graph: &str) {
        let request = self.http.put(format!("{}/graphs/{graph}", self.server.url));
        let answer = request.header("content-type", "application/yaml").body(GRAPH).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap());
    }

    async fn wheel(&self, package: &str) -> String {
        let (name, bytes) = pyoco_testkit::wheel(package, "1", &[]);
        let file = Part::bytes(bytes).file_name(name.clone());
        let request = self.http.post(format!("{}/wheels", self.server.url));
        let answer = request.multipart(Form::new().part("wheel", file)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
        name
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.http.get(format!("{}{path}", self.server.url)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.json().await.unwrap()
    }

    async fn command(&self, path: &str, body: &Value) -> Value {
        let key = format!("scene {}", self.sent.fetch_add(1, Ordering::Relaxed));
        let request = self.http.post(format!("{}{path}", self.server.url));
        let answer = request.header("x-idempotency-key", key).json(body).send().await.unwrap();
        assert_eq!(answer.status(), 202, "{path}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }

    /// An execution to which this has happened.
    async fn execution(&self, steps: &[&str]) -> String {
        let created = self.command("/executions", &json!({"graphId": "approval"})).await;
        let execution = created["executionId"].as_str().unwrap().to_owned();
        for step in steps {
            self.command(&format!("/executions/{execution}/{step}"), &json!({})).await;
        }
        execution
    }

    /// The server's own worker, once it has said that it is there.
    async fn worker(&self) -> String {
        let filter = WorkerFilter { scope: Some("all".to_owned()), ..WorkerFilter::default() };
        let since = std::time::Instant::now();
        loop {
            let workers = self.server.client.get_workers(&filter).await.unwrap().into_json();
            if let Some(id) = workers[0]["worker_id"].as_str() {
                return id.to_owned();
            }
            assert!(since.elapsed() < PATIENCE, "no worker: {workers}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}
