//! A request for every route. One without a sample here fails the walk.

use reqwest::RequestBuilder;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use pyoco_testing_executions::Site;

use crate::Scene;
use crate::scene::MARK;

/// What somebody of another tenant is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// There is no such thing.
    Hidden,
    /// 204, whether it is there or not; nothing happens.
    Silent,
    /// A list with nothing in it.
    Empty,
    /// What everybody is answered: it belongs to no tenant.
    Shared,
    /// They make something of their own.
    Own,
    /// What they did themselves, and what is nobody's.
    Apart,
    /// That there is nothing of theirs to do it with; nothing happens.
    Unmoved,
}

/// A request that its owner is answered well.
#[derive(Debug)]
pub struct Sample {
    /// The method.
    pub method: &'static str,
    /// The route, as the table has it.
    pub route: &'static str,
    /// The path.
    pub path: String,
    /// What the owner is answered.
    pub owner: u16,
    /// What others are answered.
    pub others: Others,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Nothing,
    Json(Value),
    Yaml,
    Form,
    Wheel,
}

const FLOW: &str = "version: 1\nflow: {graph: 'flow >> hello'}\ntasks: {hello: {callable: 'hello:greet'}}\n";
const GRAPH: &str = "version: 2\nflow: {graph: 'a >> b'}\ntasks: {a: {}, b: {}}\n";

impl Sample {
    fn new(method: &'static str, route: &'static str, path: impl Into<String>) -> Self {
        Self { method, route, path: path.into(), owner: 200, others: Others::Hidden, body: Body::Nothing }
    }

    fn answered(self, owner: u16) -> Self {
        Self { owner, ..self }
    }

    fn for_others(self, others: Others) -> Self {
        Self { others, ..self }
    }

    fn json(self, body: Value) -> Self {
        Self { body: Body::Json(body), ..self }
    }

    /// The request, without a key.
    pub fn request(&self, site: &Site) -> RequestBuilder {
        let method = self.method.parse().unwrap();
        let request = site.client.request(method, site.url(&self.path));
        let request = request.header("x-idempotency-key", uuid::Uuid::new_v4().to_string());
        match &self.body {
            Body::Nothing => request,
            Body::Json(body) => request.json(body),
            Body::Yaml => request.header("content-type", "application/yaml").body(GRAPH),
            Body::Form => {
                let file = Part::bytes(FLOW.as_bytes()).file_name("flow.yaml");
                request.multipart(Form::new().part("workflow", file).text("flow_name", "main"))
            }
            Body::Wheel => {
                // A package is taken once in a version, whoever sends it.
                let package = format!("demo-{}", uuid::Uuid::new_v4().simple());
                let (name, bytes) = pyoco_testkit::wheel(&package, "1", &[]);
                request.multipart(Form::new().part("wheel", Part::bytes(bytes).file_name(name)))
            }
        }
    }
}

/// One for each route and method.
pub fn samples(scene: &Scene) -> Vec<Sample> {
    let mut all = vec![
        // First: others have done nothing yet that it could show.
        Sample::new("GET", "/audit", "/audit").for_others(Others::Apart),
        Sample::new("GET", "/", "/").for_others(Others::Shared),
        Sample::new("GET", "/static/{*path}", "/static/app.0a1B_-c2.js").for_others(Others::Shared),
        Sample::new("GET", "/health", "/health").for_others(Others::Shared),
        Sample::new("GET", "/metrics", "/metrics").for_others(Others::Shared),
        Sample::new("GET", "/openapi.json", "/openapi.json").for_others(Others::Shared),
        Sample::new("GET", "/docs", "/docs").for_others(Others::Shared),
        Sample::new("GET", "/docs/", "/docs/").for_others(Others::Shared),
        Sample::new("GET", "/docs/{*path}", "/docs/swagger-ui.css").for_others(Others::Shared),
        Sample::new("GET", "/redoc", "/redoc").for_others(Others::Shared),
        Sample::new("GET", "/workers", "/workers").for_others(Others::Shared),
        Sample::new("PATCH", "/workers/{worker_id}", format!("/workers/{}", scene.worker))
            .json(json!({"hidden": false}))
            .for_others(Others::Shared),
    ];
    all.extend(wheels(scene));
    all.extend(runs(scene));
    all.extend(jobs(scene));
    all.extend(graphs());
    all.extend(executions(scene));
    all.extend(nodes(scene));
    // Last, as nothing of hers goes on behind it.
    all.push(
        Sample::new("POST", "/executions/bulk", "/executions/bulk")
            .json(json!({"action": "cancel", "all": true}))
            .for_others(Others::Unmoved),
    );
    all
}

/// Wheels are everybody's, as the workers are that install them.
fn wheels(scene: &Scene) -> Vec<Sample> {
    let at = |name: &str| format!("/wheels/{name}");
    vec![
        Sample::new("GET", "/wheels", "/wheels").for_others(Others::Shared),
        Sample { body: Body::Wheel, ..Sample::new("POST", "/wheels", "/wheels") }.for_others(Others::Own),
        Sample::new("GET", "/wheels/history", "/wheels/history").for_others(Others::Shared),
        Sample::new("GET", "/wheels/{wheel_name}", at(&scene.wheel)).for_others(Others::Shared),
        // One that is not there: whoever may could delete it but once.
        Sample::new("DELETE", "/wheels/{wheel_name}", at("none-1-py3-none-any.whl"))
            .answered(404)
            .for_others(Others::Shared),
    ]
}

fn runs(scene: &Scene) -> Vec<Sample> {
    let at = |rest: &str| format!("/runs/{}{rest}", scene.run);
    vec![
        Sample::new("GET", "/runs", "/runs").for_others(Others::Empty),
        Sample::new("POST", "/runs", "/runs").json(json!({"flow_name": "main"})).for_others(Others::Own),
        Sample { body: Body::Form, ..Sample::new("POST", "/runs/yaml", "/runs/yaml") }
            .for_others(Others::Own),
        // A run of that name; there is none.
        Sample::new("GET", "/runs/yaml", "/runs/yaml").answered(404),
        Sample::new("GET", "/runs/watch", "/runs/watch?timeout_sec=1").for_others(Others::Shared),
        Sample::new("GET", "/runs/{run_id}", at("")),
        Sample::new("GET", "/runs/{run_id}/tasks", at("/tasks")),
        Sample::new("GET", "/runs/{run_id}/plan", at("/plan")),
        Sample::new("GET", "/runs/{run_id}/explain", at("/explain")),
        Sample::new("GET", "/runs/{run_id}/watch", at("/watch")),
        Sample::new("GET", "/runs/{run_id}/logs", at("/logs")),
        Sample::new("GET", "/runs/{run_id}/logs/stream", at("/logs/stream")),
        Sample::new("POST", "/runs/{run_id}/cancel", at("/cancel")),
    ]
}

fn jobs(scene: &Scene) -> Vec<Sample> {
    let at = |rest: &str| format!("/jobs/{}{rest}", scene.job);
    vec![
        Sample::new("GET", "/jobs", "/jobs").for_others(Others::Empty),
        Sample::new("GET", "/tags", "/tags").for_others(Others::Empty),
        Sample::new("POST", "/jobs", "/jobs")
            .json(json!({"parameters": {}}))
            .answered(201)
            .for_others(Others::Own),
        Sample::new("GET", "/jobs/{id}", at("")),
        Sample::new("GET", "/jobs/{id}/logs", at("/logs")),
        Sample::new("GET", "/jobs/{id}/logs/stream", at("/logs/stream")),
        // Not asked for as a WebSocket.
        Sample::new("GET", "/jobs/{id}/ws", at("/ws")).answered(426),
        Sample::new("GET", "/jobs/{id}/tags", at("/tags")),
        Sample::new("POST", "/jobs/{id}/tags", at("/tags")).json(json!({"tag": "more"})),
        Sample::new("DELETE", "/jobs/{id}/tags/{tag}", at(&format!("/tags/{MARK}")))
            .answered(204)
            .for_others(Others::Silent),
        Sample::new("DELETE", "/jobs/{id}", format!("/jobs/{}", scene.doomed_job))
            .answered(204)
            .for_others(Others::Silent),
    ]
}

fn graphs() -> Vec<Sample> {
    vec![
        Sample::new("GET", "/graphs", "/graphs").for_others(Others::Empty),
        Sample::new("GET", "/graphs/{graphId}", "/graphs/flow"),
        Sample::new("DELETE", "/graphs/{graphId}", "/graphs/doomed").answered(204),
        // Under the same name: what others put there is theirs.
        Sample { body: Body::Yaml, ..Sample::new("PUT", "/graphs/{graphId}", "/graphs/flow") }
            .for_others(Others::Own),
    ]
}

fn executions(scene: &Scene) -> Vec<Sample> {
    let at = |execution: &str, rest: &str| format!("/executions/{execution}{rest}");
    let command = |route, path| Sample::new("POST", route, path).json(json!({})).answered(202);
    vec![
        Sample::new("GET", "/executions", "/executions").for_others(Others::Empty),
        Sample::new("GET", "/waits", "/waits").for_others(Others::Empty),
        // Of a graph that only she has.
        command("/executions", "/executions".to_owned()).json(json!({"graphId": "private"})),
        Sample::new("GET", "/executions/{executionId}", at(&scene.waiting, "")),
        Sample::new("GET", "/executions/{executionId}/events", at(&scene.waiting, "/events")),
        Sample::new("GET", "/executions/{executionId}/events/stream", at(&scene.waiting, "/events/stream")),
        command("/executions/{executionId}/start", at(&scene.created, "/start")),
        command("/executions/{executionId}/cancel", at(&scene.ready[0], "/cancel")),
        command("/executions/{executionId}/archive", at(&scene.failed[0], "/archive")),
        command("/executions/{executionId}/retry", at(&scene.failed[1], "/retry")),
    ]
}

fn nodes(scene: &Scene) -> Vec<Sample> {
    let command = |route, execution: &str, rest: &str| {
        let path = format!("/executions/{execution}/nodes/{rest}");
        Sample::new("POST", route, path).json(json!({})).answered(202)
    };
    vec![
        command("/executions/{executionId}/nodes/{nodeId}/start", &scene.ready[1], "a/start"),
        command("/executions/{executionId}/nodes/{nodeId}/progress", &scene.running[0], "a/progress"),
        command("/executions/{executionId}/nodes/{nodeId}/wait", &scene.running[1], "a/wait"),
        command("/executions/{executionId}/nodes/{nodeId}/resume", &scene.waiting, "ask/resume")
            .json(json!({"resumeKey": MARK})),
        command("/executions/{executionId}/nodes/{nodeId}/success", &scene.running[2], "a/success"),
        command("/executions/{executionId}/nodes/{nodeId}/fail", &scene.running[3], "a/fail"),
        command("/executions/{executionId}/nodes/{nodeId}/cancel", &scene.ready[2], "a/cancel"),
    ]
}
