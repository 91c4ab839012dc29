//! What goes over the wire and what stands in the streams, seen by a third party.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::until;

/// A connection of the test's own. It makes no consumers and no streams.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    client: async_nats::Client,
}

/// What was published on a subject since somebody listens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Letters(Arc<Mutex<Vec<Value>>>);

impl Letters {
    /// Those of a run, in their order.
    pub(crate) fn of(&self, run: &str) -> Vec<Value> {
        self.0.lock().unwrap().iter().filter(|letter| letter["run_id"] == run).cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }
}

impl Wire {
    pub(crate) async fn connect(url: &str) -> Self {
        Self { client: async_nats::connect(url).await.unwrap() }
    }

    /// Keeps every JSON that is published on a subject from now on.
    pub(crate) async fn listen(&self, subject: &'static str) -> Letters {
        let mut heard = self.client.subscribe(subject).await.unwrap();
        // The server has it once it has answered what was sent after it.
        self.client.flush().await.unwrap();
        let letters = Letters::default();
        let kept = letters.clone();
        tokio::spawn(async move {
            while let Some(message) = heard.next().await {
                if let Ok(letter) = serde_json::from_slice(&message.payload) {
                    kept.0.lock().unwrap().push(letter);
                }
            }
        });
        letters
    }

    /// Publishes into a stream, and waits until it is stored.
    pub(crate) async fn publish(&self, subject: &str, payload: Vec<u8>) -> u64 {
        let stored = self.client.request(subject.to_owned(), payload.into()).await.unwrap();
        let stored: Value = serde_json::from_slice(&stored.payload).unwrap();
        stored["seq"].as_u64().unwrap_or_else(|| panic!("not stored: {stored}"))
    }

    async fn ask(&self, what: &str, request: &Value) -> Value {
        let payload = serde_json::to_vec(request).unwrap();
        let answer = self.client.request(format!("$JS.API.{what}"), payload.into()).await.unwrap();
        serde_json::from_slice(&answer.payload).unwrap()
    }

    /// The messages of a stream, as JSON where they are.
    pub(crate) async fn messages(&self, stream: &str) -> Vec<Value> {
        let mut found = Vec::new();
        let mut from = 1;
        loop {
            let request = json!({"seq": from, "next_by_subj": ">"});
            let answer = self.ask(&format!("STREAM.MSG.GET.{stream}"), &request).await;
            let Some(message) = answer.get("message") else { return found };
            from = message["seq"].as_u64().unwrap() + 1;
            found.push(json_of(message));
        }
    }

    /// The last message of a subject.
    pub(crate) async fn last(&self, stream: &str, subject: &str) -> Option<Value> {
        let request = json!({"last_by_subj": subject});
        let answer = self.ask(&format!("STREAM.MSG.GET.{stream}"), &request).await;
        answer.get("message").map(json_of)
    }

    /// The snapshot of a run, as it stands in the bucket.
    pub(crate) async fn snapshot(&self, run: &str) -> Option<Value> {
        self.last("KV_pyoco_runs", &format!("$KV.pyoco_runs.{run}")).await
    }

    /// The record of a worker, as it stands in the bucket.
    pub(crate) async fn worker(&self, name: &str) -> Option<Value> {
        self.last("KV_pyoco_workers", &format!("$KV.pyoco_workers.{name}")).await
    }

    /// The settings of all streams.
    pub(crate) async fn streams(&self) -> BTreeMap<String, Value> {
        let answer = self.ask("STREAM.LIST", &json!({})).await;
        let streams = answer["streams"].as_array().unwrap().iter();
        streams.map(|stream| (text(&stream["config"]["name"]), stream["config"].clone())).collect()
    }

    /// The settings of the consumers of a stream that outlive whoever made them.
    pub(crate) async fn durables(&self, stream: &str) -> BTreeMap<String, Value> {
        let answer = self.ask(&format!("CONSUMER.LIST.{stream}"), &json!({})).await;
        let consumers = answer["consumers"].as_array().unwrap().iter();
        let durable = consumers.filter(|consumer| consumer["config"]["durable_name"].is_string());
        durable.map(|consumer| (text(&consumer["name"]), consumer["config"].clone())).collect()
    }

    /// All subjects that a stream has messages of.
    pub(crate) async fn subjects(&self, stream: &str) -> Vec<String> {
        let answer = self.ask(&format!("STREAM.INFO.{stream}"), &json!({"subjects_filter": ">"})).await;
        answer["state"]["subjects"]
            .as_object()
            .map(|subjects| subjects.keys().cloned().collect())
            .unwrap_or_default()
    }

    /// Changes the settings of a stream, as an operator would.
    pub(crate) async fn change_stream(&self, name: &str, changes: &Value) {
        let config = with(&self.streams().await[name], changes);
        let answer = self.ask(&format!("STREAM.UPDATE.{name}"), &config).await;
        assert_eq!(answer.get("error"), None, "{name}");
    }

    /// Changes the settings of a consumer, as an operator would.
    pub(crate) async fn change_consumer(&self, stream: &str, name: &str, changes: &Value) {
        let config = with(&self.durables(stream).await[name], changes);
        let request = json!({"stream_name": stream, "config": config, "action": "update"});
        let answer = self.ask(&format!("CONSUMER.DURABLE.CREATE.{stream}.{name}"), &request).await;
        assert_eq!(answer.get("error"), None, "{name}");
    }

    /// Waits until nobody has a job any more, neither in hand nor waiting.
    pub(crate) async fn until_no_jobs(&self) {
        until("the last answer to a job", async || {
            let jobs = self.messages("PYOCO_WORK").await;
            if jobs.is_empty() { Ok(()) } else { Err(jobs) }
        })
        .await;
    }
}

fn json_of(message: &Value) -> Value {
    let data = message.get("data").and_then(Value::as_str).unwrap_or_default();
    let data = BASE64_STANDARD.decode(data).unwrap();
    serde_json::from_slice(&data).unwrap_or_else(|_| json!(String::from_utf8_lossy(&data)))
}

fn with(config: &Value, changes: &Value) -> Value {
    let mut config = config.clone();
    config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    config
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
