//! What Ann has: something of every kind, in a state in which every request about it can be followed.

use async_trait::async_trait;
use pyoco_core::ids::WorkerId;
use pyoco_engine::Clock as _;
use pyoco_ports::{NewWheel, StoreError, WheelBytes, WorkerRecord};
use pyoco_testing_executions::Site;
use pyoco_testing_jobs::{submitted_with, write};
use pyoco_wheels::{Sha256Digest, WheelName};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A word that stands in what she has, and nowhere else.
pub(crate) const MARK: &str = "anns-own";

const ASKING: &str = "flow: {graph: 'a >> ask'}\ntasks: {a: {}, ask: {wait: {key: anns-own}}}\n";

/// Ann's things, by their ids.
#[derive(Debug)]
pub struct Scene {
    /// A job with a tag and a line in its log.
    pub job: String,
    /// A job that may be deleted.
    pub doomed_job: String,
    /// A run that may be cancelled.
    pub run: String,
    /// An execution that was not started.
    pub created: String,
    /// Started ones, whose first node waits to be started.
    pub ready: [String; 3],
    /// Ones whose first node runs.
    pub running: [String; 4],
    /// One that waits for an answer.
    pub waiting: String,
    /// Ones that have failed.
    pub failed: [String; 2],
    /// A worker.
    pub worker: &'static str,
    /// A wheel.
    pub wheel: String,
}

impl Scene {
    /// Makes it all, as Ann.
    pub async fn set(ann: &Site) -> Self {
        for name in ["flow", "doomed", "private"] {
            ann.graph(name, ASKING).await;
        }
        let body = json!({"graphId": "flow", "input": {"word": MARK}, "tags": [MARK]});
        let job = json!({"parameters": {"word": MARK}, "tags": [MARK]});
        let made = Self {
            job: submitted_with(ann, &job).await,
            doomed_job: submitted_with(ann, &job).await,
            run: submitted_with(ann, &job).await,
            created: ann.created_with(&body).await,
            ready: [ready(ann, &body).await, ready(ann, &body).await, ready(ann, &body).await],
            running: [
                running(ann, &body).await,
                running(ann, &body).await,
                running(ann, &body).await,
                running(ann, &body).await,
            ],
            waiting: waiting(ann, &body).await,
            failed: [failed(ann, &body).await, failed(ann, &body).await],
            worker: "shared-worker",
            wheel: wheel(ann).await,
        };
        write(ann, &made.job, &[MARK]).await;
        let worker = WorkerId::new(made.worker).unwrap();
        let seen_at = ann.hands.now();
        let said =
            json!({"worker_id": made.worker, "state": "IDLE", "last_seen_at": seen_at.as_unix_seconds()});
        let record =
            WorkerRecord { worker, seen_at, hidden: false, body: serde_json::to_vec(&said).unwrap() };
        ann.engine.store().report(record).await.unwrap();
        made
    }

    /// Everything that could have changed, as Ann sees it.
    pub async fn state(&self, ann: &Site) -> Value {
        let mut state = Vec::new();
        let several = self.ready.iter().chain(&self.running).chain(&self.failed);
        let single = [&self.job, &self.doomed_job, &self.run, &self.created, &self.waiting];
        for execution in several.chain(single) {
            state.push(json!(ann.events(execution).await));
        }
        let lists = ["/runs?limit=200", "/jobs", "/executions", "/graphs", "/waits", "/tags", "/workers"];
        for path in lists.map(str::to_owned).into_iter().chain([format!("/jobs/{}/logs", self.job)]) {
            state.push(ann.shown(&path).await);
        }
        json!(state)
    }
}

/// Puts a wheel on the shelf. Nobody did, so its history names nobody.
async fn wheel(ann: &Site) -> String {
    let (name, bytes) = pyoco_testkit::wheel("shared", "1", &[]);
    let wheel = NewWheel {
        name: WheelName::parse(&name).unwrap(),
        size_bytes: bytes.len() as u64,
        sha256: Sha256Digest::of_bytes(Sha256::digest(&bytes).into()),
        at: ann.hands.now(),
        tags: Vec::new(),
        content_type: "application/octet-stream".to_owned(),
    };
    ann.engine.store().put_wheel(wheel, &mut Once(Some(bytes))).await.unwrap().unwrap();
    name
}

/// Bytes in one piece.
struct Once(Option<Vec<u8>>);

#[async_trait]
impl WheelBytes for Once {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.take())
    }
}

async fn ready(ann: &Site, body: &Value) -> String {
    ann.started_with(body).await
}

async fn running(ann: &Site, body: &Value) -> String {
    let execution = ready(ann, body).await;
    ann.node(&execution, "a", "start", json!({})).await;
    execution
}

async fn waiting(ann: &Site, body: &Value) -> String {
    let execution = ready(ann, body).await;
    ann.run(&execution, "a").await;
    execution
}

async fn failed(ann: &Site, body: &Value) -> String {
    let execution = running(ann, body).await;
    ann.node(&execution, "a", "fail", json!({"error": {"message": MARK}})).await;
    execution
}
