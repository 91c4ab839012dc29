//! Whoever submits runs, and remembers what was promised.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyoco_client::Client;
use pyoco_client::api::SubmitRequest;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A submission of a flow of the ledger's.
pub(crate) fn request(flow: &str, tag: Option<&str>, params: &Value) -> SubmitRequest {
    SubmitRequest {
        flow_name: flow.to_owned(),
        params: params.as_object().unwrap().clone().into_iter().collect(),
        tag: tag.map(str::to_owned),
        ..SubmitRequest::default()
    }
}

/// An answer of 200: from here on the run is owed.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) run: String,
    /// What the ledger calls it.
    pub(crate) id: String,
    pub(crate) at: Instant,
}

/// Several who submit at once, until told to stop.
pub(crate) struct Load {
    submitters: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    accepted: Arc<Mutex<Vec<Accepted>>>,
}

impl Load {
    /// One submitter for each of the gateways' addresses, with a pause between two submissions.
    pub(crate) fn start(gateways: &[String], ledger: &str, pause: Duration) -> Self {
        let (stop, asked, accepted): (Arc<AtomicBool>, Arc<AtomicU64>, Arc<Mutex<Vec<Accepted>>>) =
            Default::default();
        let submitter = |url: &String| {
            let client = Client::new(url).unwrap();
            let (stop, asked, accepted) = (stop.clone(), asked.clone(), accepted.clone());
            let ledger = ledger.to_owned();
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    let id = format!("load-{}", asked.fetch_add(1, Ordering::SeqCst));
                    let request = request("quick", None, &json!({"id": id, "ledger": ledger}));
                    // A refused or broken submission promises nothing; only an answer does.
                    if let Ok(answer) = client.submit_run(&request).await {
                        let accept = Accepted { run: answer.run_id.clone(), id, at: Instant::now() };
                        accepted.lock().unwrap().push(accept);
                    }
                    tokio::time::sleep(pause).await;
                }
            })
        };
        let submitters = gateways.iter().map(submitter).collect();
        Self { submitters, stop, asked, accepted }
    }

    pub(crate) fn accepted(&self) -> Vec<Accepted> {
        self.accepted.lock().unwrap().clone()
    }

    /// How many were asked for, whatever came of it.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    /// Ends when every submission has its answer.
    pub(crate) async fn stop(&mut self) -> Vec<Accepted> {
        self.stop.store(true, Ordering::SeqCst);
        for submitter in self.submitters.drain(..) {
            submitter.await.unwrap();
        }
        self.accepted()
    }
}
