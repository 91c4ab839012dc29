//! A second pair of eyes on NATS, without a line of the product's: what really stands there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use pyoco_core::record::Record;
use serde_json::{Value, json};

use crate::ground::until;

/// A connection of the test's own.
pub(crate) struct Wire(async_nats::Client);

/// The records of every execution, in order.
pub(crate) type Log = BTreeMap<String, Vec<Record>>;

impl Wire {
    pub(crate) async fn connect(urls: &str) -> Self {
        let servers: Vec<async_nats::ServerAddr> = urls.split(',').map(|url| url.parse().unwrap()).collect();
        Self(async_nats::connect(servers).await.unwrap())
    }

    /// Asks JetStream, which may be electing somebody.
    pub(crate) async fn api(&self, subject: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let asked = format!("$JS.API.{subject}");
        let answer = until("an answer of JetStream", async || {
            self.0.request(asked.clone(), body.clone().into()).await.ok()
        });
        serde_json::from_slice(&answer.await.payload).unwrap()
    }

    /// Waits until somebody leads everything that a run needs, and says so; that is the servers' own affair.
    pub(crate) async fn led(&self) {
        for asked in [
            "STREAM.INFO.PYOCO_EVENTS",
            "STREAM.INFO.KV_pyoco_runs",
            "STREAM.INFO.PYOCO_WORK",
            "CONSUMER.INFO.PYOCO_WORK.pyoco_workers_default",
        ] {
            until("the election of a leader", async || {
                let answer = self.0.request(format!("$JS.API.{asked}"), "".into());
                let answer = tokio::time::timeout(Duration::from_millis(250), answer).await.ok()?.ok()?;
                let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
                (answer["error"].is_null() && !answer["cluster"]["leader"].is_null()).then_some(())
            })
            .await;
        }
    }

    /// Sees to it that a server leads none of the streams.
    pub(crate) async fn spare(&self, server: &str, instead: &str) {
        let named = self.api("STREAM.NAMES", &Value::Null).await;
        for stream in named["streams"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()) {
            until("another leader", async || {
                let found = self.api(&format!("STREAM.INFO.{stream}"), &Value::Null).await;
                match found["cluster"]["leader"].as_str() {
                    Some(leader) if leader != server => return Some(()),
                    Some(_) => {
                        let wish = json!({"placement": {"preferred": instead}});
                        self.api(&format!("STREAM.LEADER.STEPDOWN.{stream}"), &wish).await;
                    }
                    None => {}
                }
                None
            })
            .await;
        }
    }

    /// The first message of a stream at or after a sequence, on any of the subjects.
    async fn next(&self, stream: &str, subjects: &str, from: u64) -> Option<Value> {
        let asked = json!({"seq": from, "next_by_subj": subjects});
        let answer = self.api(&format!("STREAM.MSG.GET.{stream}"), &asked).await;
        match answer["error"]["err_code"].as_u64() {
            Some(10_037) => None,
            Some(_) => panic!("{answer}"),
            None => Some(answer["message"].clone()),
        }
    }

    async fn all(&self, stream: &str, subjects: &str) -> Vec<(String, Vec<u8>)> {
        let (mut found, mut from) = (Vec::new(), 1);
        while let Some(message) = self.next(stream, subjects, from).await {
            from = message["seq"].as_u64().unwrap() + 1;
            let data = STANDARD.decode(message["data"].as_str().unwrap_or_default()).unwrap();
            found.push((message["subject"].as_str().unwrap().to_owned(), data));
        }
        found
    }

    /// The whole log.
    pub(crate) async fn log(&self) -> Log {
        let mut log = Log::new();
        for (subject, data) in self.all("PYOCO_EVENTS", "pyoco.events.>").await {
            let execution = subject.strip_prefix("pyoco.events.").unwrap().to_owned();
            log.entry(execution).or_default().push(serde_json::from_slice(&data).unwrap());
        }
        log
    }

    /// Whether gateways have looked through all records for runs that were begun and never shown.
    pub(crate) async fn is_looked_through(&self) -> bool {
        let events = self.api("STREAM.INFO.PYOCO_EVENTS", &Value::Null).await;
        let place = self.all("PYOCO_RETENTION", "pyoco.uses.=looked.events").await;
        let place: Value =
            place.last().map_or(Value::Null, |(_, data)| serde_json::from_slice(data).unwrap());
        place["sequence"] == events["state"]["last_seq"]
    }

    /// The log of one execution.
    pub(crate) async fn records(&self, execution: &str) -> Vec<Record> {
        let found = self.all("PYOCO_EVENTS", &format!("pyoco.events.{execution}")).await;
        found.iter().map(|(_, data)| serde_json::from_slice(data).unwrap()).collect()
    }

    /// The snapshots of all runs that have one.
    pub(crate) async fn snapshots(&self) -> BTreeMap<String, Value> {
        let found = self.all("KV_pyoco_runs", "$KV.pyoco_runs.>").await;
        let snapshot = |(subject, data): (String, Vec<u8>)| {
            let value = serde_json::from_slice(&data).ok()?;
            Some((subject.strip_prefix("$KV.pyoco_runs.").unwrap().to_owned(), value))
        };
        found.into_iter().filter_map(snapshot).collect()
    }

    /// The consumers of a stream, by name.
    pub(crate) async fn consumers(&self, stream: &str) -> BTreeMap<String, Value> {
        let answer = self.api(&format!("CONSUMER.LIST.{stream}"), &json!({"offset": 0})).await;
        let consumers = answer["consumers"].as_array().unwrap_or_else(|| panic!("{answer}"));
        consumers.iter().map(|info| (info["name"].as_str().unwrap().to_owned(), info.clone())).collect()
    }

    /// Listens to what workers say to the queue from here on.
    pub(crate) async fn answers(&self) -> Answers {
        let mut heard = self.0.subscribe("$JS.ACK.PYOCO_WORK.>").await.unwrap();
        self.0.flush().await.unwrap();
        let answers: Answers = Answers::default();
        let kept = answers.0.clone();
        tokio::spawn(async move {
            while let Some(message) = heard.next().await {
                let word = String::from_utf8_lossy(&message.payload).into_owned();
                kept.lock().unwrap().push(Answer::of(&message.subject, word));
            }
        });
        answers
    }
}

/// What workers have said to the queue.
#[derive(Default)]
pub(crate) struct Answers(Arc<Mutex<Vec<Answer>>>);

impl Answers {
    pub(crate) fn heard(&self) -> Vec<Answer> {
        self.0.lock().unwrap().clone()
    }
}

/// One answer: to which delivery of which message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) delivery: u64,
    pub(crate) sequence: u64,
    /// `+ACK`, `+WPI`, `-NAK …` or `+TERM`.
    pub(crate) word: String,
}

impl Answer {
    /// `$JS.ACK.<stream>.<consumer>.<delivery>.<sequence>…`; newer servers put a domain and an account before the stream.
    fn of(subject: &str, word: String) -> Self {
        let tokens: Vec<&str> = subject.split('.').collect();
        let at = if tokens.len() > 9 { 6 } else { 4 };
        Self { delivery: tokens[at].parse().unwrap(), sequence: tokens[at + 1].parse().unwrap(), word }
    }
}
