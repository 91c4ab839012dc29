//! Traces end to end: what a caller says about its trace, what tasks see of it, and what a real collector over HTTP is sent.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at the first surprise"
)]

mod collector;

use std::time::Duration;

use collector::{Collector, Mood, attribute};
use opentelemetry_proto::tonic::trace::v1::Span;
use pyoco_core::ids::{Attempt, ExecutionId, NodeId};
use pyoco_core::trace::TraceContext;
use pyoco_server::config::{TraceProtocol, TracesConfig};
use pyoco_server::{Config, Functions, Server, ServerOptions, Worker, WorkerOptions};
use pyoco_testing_nats::{NatsServer, Options};
use serde_json::{Value, json};

const GIVEN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-1bf7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01";
const UNKEPT: &str = "00-2cf7651916cd43dd8448eb211c80319c-d7ad6b7169203331-00";

/// A Python task that fails the first time, and a command behind it; both tell their span.
const FLOW: &str = "\
version: 2
flow: {graph: 'shaky >> after'}
tasks:
  shaky: {callable: 'shaky_task:tell', retries: 1, retry_delay_sec: 0.01}
  after: {command: [sh, -c, 'printf %s \"$TRACEPARENT\"']}
";
const SHAKY: &str = "\
import os


def tell(ctx):
    seen = ctx.scratch.get('seen', [])
    ctx.scratch['seen'] = seen + [os.environ.get('TRACEPARENT')]
    if not seen:
        raise ConnectionError('nobody there')
    return ctx.scratch['seen']
";
const BROKEN: &str = "version: 2\nflow: {graph: 'a'}\ntasks:\n  a: {command: [sh, -c, 'exit 3']}\n";

/// A server with a worker, and a client of it.
struct Site {
    _folder: tempfile::TempDir,
    server: Server,
    http: reqwest::Client,
}

impl Site {
    async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flows = folder.path().join("flows");
        std::fs::create_dir_all(flows.join("told")).unwrap();
        std::fs::write(flows.join("told/flow.yaml"), FLOW).unwrap();
        std::fs::write(flows.join("told/shaky_task.py"), SHAKY).unwrap();
        std::fs::create_dir_all(flows.join("broken")).unwrap();
        std::fs::write(flows.join("broken/flow.yaml"), BROKEN).unwrap();
        let mut config = Config { data_dir: folder.path().join("data"), ..Config::new() };
        change(&mut config);
        let worker = WorkerOptions { flows: Some(flows), ..WorkerOptions::default() };
        let options = ServerOptions { port: 0, worker: Some(worker), ..ServerOptions::default() };
        let server = Server::start(config, options, Functions::new()).await.unwrap();
        Self { _folder: folder, server, http: reqwest::Client::new() }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    async fn post(&self, path: &str, trace: Option<&str>, key: &str, body: &Value) -> Value {
        let mut request = self.http.post(self.url(path)).header("X-Idempotency-Key", key).json(body);
        if let Some(trace) = trace {
            request = request.header("traceparent", trace);
        }
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Submits a run and waits for its end.
    async fn run(&self, flow: &str, trace: Option<&str>) -> ExecutionId {
        let key = uuid::Uuid::new_v4().to_string();
        let answer = self.post("/runs", trace, &key, &json!({"flow_name": flow})).await;
        let run = ExecutionId::new(answer["run_id"].as_str().unwrap()).unwrap();
        self.ended(&run).await;
        run
    }

    async fn ended(&self, run: &ExecutionId) {
        let mut events =
            self.server.backend().engine().follow(run, Default::default()).await.unwrap().unwrap();
        let over = async { while events.next().await.unwrap().is_some() {} };
        tokio::time::timeout(Duration::from_secs(60), over).await.expect("the run ends");
    }

    /// What is shown of the trace of an execution.
    async fn traceparent(&self, id: &str) -> Value {
        self.get(&format!("/executions/{id}")).await["traceparent"].clone()
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.http.get(self.url(path)).send().await.unwrap();
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }
}

fn traced(collector: &Collector, protocol: TraceProtocol) -> TracesConfig {
    let mut traces = Config::new().traces;
    traces.endpoint = Some(collector.url());
    traces.protocol = protocol;
    traces.headers = Some("authorization=Bearer%20s3cret".to_owned());
    traces.service_name = "the-service".to_owned();
    traces.resource_attributes = Some("deployment.environment.name=test".to_owned());
    traces
}

fn whole_and_attempts(spans: Vec<Span>) -> (Span, Vec<Span>) {
    let (mut wholes, attempts): (Vec<_>, Vec<_>) =
        spans.into_iter().partition(|span| attribute(span, "pyoco.run.status").is_some());
    assert_eq!(wholes.len(), 1);
    (wholes.remove(0), attempts)
}

fn context_of(span: &Span) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id))
}

#[tokio::test]
async fn a_run_becomes_spans_in_its_callers_trace_and_its_tasks_have_seen_theirs() {
    let collector = Collector::start().await;
    let site = Site::start(|config| config.traces = traced(&collector, TraceProtocol::Protobuf)).await;
    let run = site.run("told", Some(GIVEN)).await;
    let (whole, attempts) = whole_and_attempts(collector.spans_of(&run).await);

    let caller = TraceContext::parse(GIVEN).unwrap();
    let context = TraceContext::of_execution(&run, Some(caller));
    assert_eq!((&whole.trace_id[..], &whole.span_id[..]), (&caller.trace[..], &context.span[..]));
    assert_eq!((&whole.parent_span_id[..], whole.name.as_str()), (&caller.span[..], "told"));
    for (name, value) in [
        ("pyoco.run.id", run.as_str()),
        ("pyoco.flow.name", "told"),
        ("pyoco.tag", "default"),
        ("pyoco.run.status", "COMPLETED"),
    ] {
        assert_eq!(attribute(&whole, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(whole.status.as_ref().unwrap().code, 0);

    let told: Vec<_> = attempts
        .iter()
        .map(|span| {
            let of = |name| attribute(span, name).unwrap_or_default();
            (of("pyoco.node.id"), of("pyoco.attempt"), of("pyoco.outcome"), of("error.type"))
        })
        .collect();
    let told: Vec<_> =
        told.iter().map(|(a, b, c, d)| (a.as_str(), b.as_str(), c.as_str(), d.as_str())).collect();
    assert_eq!(
        told,
        [
            ("shaky", "1", "failed", "ConnectionError"),
            ("shaky", "2", "succeeded", ""),
            ("after", "1", "succeeded", "")
        ]
    );
    assert_eq!(attempts[0].status.as_ref().unwrap().message, "nobody there");
    for span in &attempts {
        assert_eq!((&span.trace_id, &span.parent_span_id), (&whole.trace_id, &whole.span_id));
        assert!(span.start_time_unix_nano >= whole.start_time_unix_nano);
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
        assert!(span.end_time_unix_nano <= whole.end_time_unix_nano);
    }

    // What the tasks saw is what was sent of them.
    let shown = site.get(&format!("/runs/{run}/tasks")).await.to_string();
    for span in &attempts {
        assert!(shown.contains(&context_of(span)), "{} in {shown}", context_of(span));
    }

    let (headers, resource) = collector.heard();
    assert_eq!(headers["authorization"], "Bearer s3cret");
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert!(resource.contains(&("service.name".to_owned(), "the-service".to_owned())), "{resource:?}");
    assert!(resource.contains(&("deployment.environment.name".to_owned(), "test".to_owned())));
    site.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_run_without_a_trace_has_one_of_its_own_and_a_retry_is_linked_to_what_it_repeats() {
    let collector = Collector::start().await;
    let site = Site::start(|config| config.traces = traced(&collector, TraceProtocol::Json)).await;
    let run = site.run("broken", None).await;
    let (whole, attempts) = whole_and_attempts(collector.spans_of(&run).await);
    let context = TraceContext::of_execution(&run, None);
    assert_eq!(context_of(&whole), context.to_string());
    assert!(whole.parent_span_id.is_empty());
    assert_eq!(attribute(&whole, "pyoco.run.status").as_deref(), Some("FAILED"));
    assert_eq!(attribute(&whole, "error.type").as_deref(), Some("COMMAND_FAILED"));
    assert_eq!(whole.status.as_ref().unwrap().code, 2);
    let attempt = context.of_attempt(&run, &NodeId::new("a").unwrap(), Attempt(1));
    assert_eq!(attempts.iter().map(context_of).collect::<Vec<_>>(), [attempt.to_string()]);

    let path = format!("/executions/{run}/retry");
    let answer = site.post(&path, Some(GIVEN), "r", &json!({})).await;
    let again = ExecutionId::new(answer["executionId"].as_str().unwrap()).unwrap();
    site.ended(&again).await;
    let (whole, _) = whole_and_attempts(collector.spans_of(&again).await);
    assert_eq!(whole.parent_span_id, TraceContext::parse(GIVEN).unwrap().span);
    let [link] = &whole.links[..] else { panic!("{:?}", whole.links) };
    assert_eq!((&link.trace_id[..], &link.span_id[..]), (&context.trace[..], &context.span[..]));
    assert_eq!(attribute(&whole, "pyoco.run.retry_of").as_deref(), Some(run.as_str()));
    assert_eq!(collector.heard().0["content-type"], "application/json");
    site.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_trace_that_its_caller_does_not_keep_is_handed_on_and_not_sent() {
    let collector = Collector::start().await;
    let site = Site::start(|config| config.traces = traced(&collector, TraceProtocol::Protobuf)).await;
    let unkept = site.run("told", Some(UNKEPT)).await;
    let kept = site.run("told", None).await;
    collector.spans_of(&kept).await;
    assert_eq!(collector.now_of(&unkept), []);
    let caller = TraceContext::parse(UNKEPT).unwrap();
    let of_after = TraceContext::of_execution(&unkept, Some(caller));
    let of_after = of_after.of_attempt(&unkept, &NodeId::new("after").unwrap(), Attempt(1)).to_string();
    let shown = site.get(&format!("/runs/{unkept}/tasks")).await.to_string();
    assert!(of_after.ends_with("-00") && shown.contains(&of_after), "{shown}");
    site.server.stop().await.unwrap();
}

#[tokio::test]
async fn a_collector_that_is_away_delays_nothing_and_gets_its_spans_when_it_is_back() {
    let collector = Collector::start().await;
    collector.is_in(Mood::Away);
    let site = Site::start(|config| config.traces = traced(&collector, TraceProtocol::Protobuf)).await;
    let run = site.run("told", Some(GIVEN)).await;
    collector.was_asked().await;
    collector.is_in(Mood::Well);
    collector.spans_of(&run).await;

    collector.is_in(Mood::Silent);
    site.run("told", Some(GIVEN)).await;
    collector.was_asked().await;
    site.run("told", Some(OTHER)).await;
    let stopped = tokio::time::timeout(Duration::from_secs(30), site.server.stop()).await;
    stopped.expect("a stop does not wait for a collector").unwrap();
}

#[tokio::test]
async fn what_waits_when_the_server_stops_is_sent_first() {
    let collector = Collector::start().await;
    let site = Site::start(|config| config.traces = traced(&collector, TraceProtocol::Protobuf)).await;
    let run = site.run("told", None).await;
    site.server.stop().await.unwrap();
    assert_eq!(collector.now_of(&run).len(), 4);
}

#[tokio::test]
async fn every_door_takes_a_trace_and_a_repeat_may_come_in_another() {
    let site = Site::start(|_| {}).await;
    let yaml = "version: 2\nflow: {graph: 'a'}\ntasks:\n  a: {command: ['true']}\n";
    let put = site.http.put(site.url("/graphs/registered")).header("content-type", "application/yaml");
    assert!(put.header("X-Idempotency-Key", "g").body(yaml).send().await.unwrap().status().is_success());
    let doors = [
        ("/runs", json!({"flow_name": "told"}), "run_id"),
        ("/jobs", json!({"parameters": {}, "flow": "told"}), "id"),
        ("/executions", json!({"graphId": "registered"}), "executionId"),
    ];
    for (path, body, id) in &doors {
        let first = site.post(path, Some(GIVEN), "k", body).await[id].as_str().unwrap().to_owned();
        let again = site.post(path, Some(OTHER), "k", body).await[id].as_str().unwrap().to_owned();
        let bare = site.post(path, None, "k", body).await[id].as_str().unwrap().to_owned();
        assert_eq!((&again, &bare), (&first, &first), "{path}");
        assert_eq!(site.traceparent(&first).await, json!(GIVEN), "{path}");
        let wrong = site.post(path, Some("00-nonsense"), "w", body).await[id].as_str().unwrap().to_owned();
        assert_eq!(site.traceparent(&wrong).await, Value::Null, "{path}");
    }
    let form = reqwest::multipart::Form::new()
        .text("flow_name", "told")
        .part("workflow", reqwest::multipart::Part::bytes(yaml.as_bytes()).file_name("flow.yaml"));
    let sent =
        site.http.post(site.url("/runs/yaml")).header("traceparent", GIVEN).multipart(form).send().await;
    let answer: Value = serde_json::from_str(&sent.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(site.traceparent(answer["run_id"].as_str().unwrap()).await, json!(GIVEN));
}

#[tokio::test]
async fn beside_nats_the_worker_that_ended_a_run_sends_its_spans() {
    let nats = NatsServer::start(&Options::default());
    let collector = Collector::start().await;
    let on_nats = |config: &mut Config| {
        config.nats_url = Some(nats.url());
        config.traces = traced(&collector, TraceProtocol::Protobuf);
    };
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config { data_dir: folder.path().join("data"), ..Config::new() };
    on_nats(&mut config);
    let gateway = Config { traces: Config::new().traces, ..config.clone() };
    let options = ServerOptions { port: 0, worker: None, ..ServerOptions::default() };
    let server = Server::start(gateway, options, Functions::new()).await.unwrap();
    let functions = Functions::new()
        .flow(
            "rusty",
            pyoco_server::RustFlow::new("a")
                .task("a", |task| async move { Ok(json!(task.call().trace.map(|trace| trace.to_string()))) }),
        )
        .unwrap();
    let worker = Worker::connect(config, functions, "w", &["default"]).await.unwrap();
    let http = reqwest::Client::new();
    let request = http.post(format!("http://{}/runs", server.address())).header("traceparent", GIVEN);
    let answer = request.json(&json!({"flow_name": "rusty"})).send().await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let run = ExecutionId::new(answer["run_id"].as_str().unwrap()).unwrap();
    assert_eq!(worker.run_once(Duration::from_secs(30)).await.unwrap(), Some(run.to_string()));
    let (whole, attempts) = whole_and_attempts(collector.spans_of(&run).await);
    assert_eq!(whole.trace_id, TraceContext::parse(GIVEN).unwrap().trace);
    let seen = server
        .backend()
        .engine()
        .look(&run, |state| state.context.root(pyoco_core::state::Root::Results)["a"].clone());
    assert_eq!(seen.await.unwrap(), Some(json!(context_of(&attempts[0]))));
    worker.close().await.unwrap();
    server.stop().await.unwrap();
}
