//! What targets stand on that need more than bytes: a runtime whose time is virtual, and a gateway with something behind it.

use std::cell::RefCell;

use axum::Router;
use pyoco_core::ids::{ExecutionId, Tag};
use pyoco_core::state::State;
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunSummary;
use pyoco_engine::{Engine, Flow, Submission};
use pyoco_gateway::{Gateway, Settings, WheelSettings};
use pyoco_ports::{IndexRow, LogLine, LogStream, LogTerms, TaskLogs as _};
use pyoco_testing_deployment::Deployment;
use pyoco_testkit::{caller, create, key, wheel};
use tower::ServiceExt as _;

thread_local! {
    static RUNTIME: tokio::runtime::Runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
}

/// Runs something to its end; what it waits for comes at once.
pub(super) fn block_on<T>(work: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| runtime.block_on(work))
}

/// The row that shows a state.
pub(super) fn row(state: &State) -> Option<IndexRow> {
    let origin = state.origin.as_ref()?;
    let mut summary = RunSummary::of(state, None);
    summary.tag = Some(Tag::default());
    Some(IndexRow {
        execution: state.id.clone(),
        version: state.version,
        summary,
        created_at: origin.at,
        updated_at: state.updated_at?,
        started_at: state.active_since,
        ended_at: state.ended_at,
        cancel_requested_at: state.cancel.as_ref().map(|cancel| cancel.at),
        workflow_sha256: None,
        hidden: state.hidden,
        next_timer: state.next_timer(),
        wants_job: state.claim.is_none() && state.wants_worker(),
        waits: Vec::new(),
        has_waited: state.has_waited,
        is_archived: state.archived_at.is_some(),
        is_foreign: false,
    })
}

/// A gateway, with a run, a graph and a wheel behind it.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) router: Router,
    /// The run: it has events and lines.
    pub(super) run: ExecutionId,
}

/// After so many requests there is a new one, so that what they leave behind stays little.
const MOST_REQUESTS: u32 = 400;
/// The name of the wheel.
pub(super) const WHEEL: &str = "demo-1-py3-none-any.whl";

thread_local! {
    static SCENE: RefCell<Option<(Scene, u32)>> = const { RefCell::new(None) };
}

pub(super) fn scene() -> Scene {
    let known = SCENE.take().filter(|(_, asked)| *asked < MOST_REQUESTS);
    let (scene, asked) = known.unwrap_or_else(|| (block_on(set()), 0));
    SCENE.set(Some((scene.clone(), asked + 1)));
    scene
}

async fn set() -> Scene {
    let deployment = Deployment::new();
    let engine = deployment.engine();
    let wheels = WheelSettings { folder: std::env::temp_dir(), ..WheelSettings::default() };
    let settings = Settings { wheels, ..Settings::default() };
    let router = Gateway::new(engine.clone(), deployment.hands.clone(), settings).router();
    let run = submit(&engine).await;
    let line = |number: u32| LogLine {
        node: None,
        attempt: Default::default(),
        stream: LogStream::Stdout,
        at: Timestamp::from_micros(1_700_000_000_000_000),
        text: format!("line {number}"),
    };
    let terms = LogTerms { max_bytes: 1 << 20, closes: true };
    deployment.store.write_lines(&run, (0..9).map(line).collect(), terms).await.unwrap();
    let graph = "version: 2\nflow: {graph: 'a >> b'}\ntasks: {a: {}, b: {wait: {key: k}}}\n";
    for (path, head, body) in [
        ("/graphs/flow", "application/yaml", graph.as_bytes().to_vec()),
        ("/wheels", "multipart/form-data; boundary=x", form()),
    ] {
        let request = axum::http::Request::builder()
            .method(if path == "/wheels" { "POST" } else { "PUT" })
            .uri(path)
            .header("content-type", head)
            .header("x-idempotency-key", "scene");
        let answer = router.clone().oneshot(request.body(axum::body::Body::from(body)).unwrap()).await;
        let answer = answer.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
    }
    Scene { router, run }
}

async fn submit(engine: &Engine) -> ExecutionId {
    let mut command = create();
    command.start = true;
    let submission = Submission {
        command,
        flow: Flow::Given,
        issuer: caller(),
        endpoint: "POST /runs".into(),
        key: Some(key("scene")),
        is_key_made_up: false,
        digest: None,
        correlation_id: None,
    };
    engine.submit(submission).await.unwrap().execution
}

/// A form with a wheel in it.
pub(super) fn form() -> Vec<u8> {
    let (name, bytes) = wheel("demo", "1", &[]);
    let head = format!("--x\r\ncontent-disposition: form-data; name=\"wheel\"; filename=\"{name}\"\r\n\r\n");
    [head.as_bytes(), &bytes, b"\r\n--x--\r\n"].concat()
}
