//! What the tests stand on: a store on a real server, and a second pair of eyes on the same server.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use pyoco_core::ids::{Attempt, ExecutionId, NodeId, Version};
use pyoco_core::time::Timestamp;
use pyoco_ports::{
    Append, AppendError, Appended, ErrorKind, EventLog as _, LogLine, LogStream, LogTerms, TaskLogs as _,
    Written,
};
use pyoco_store_nats::{NatsStore, Settings};
use pyoco_testing_nats::{NatsServer, Options};
use serde_json::Value;

pub(crate) fn server() -> NatsServer {
    NatsServer::start(&Options::default())
}

pub(crate) fn server_with(conf: &str) -> NatsServer {
    NatsServer::start(&Options { conf: conf.to_owned(), ..Options::default() })
}

pub(crate) fn settings(server: &NatsServer) -> Settings {
    Settings::new(&[&server.url()])
}

pub(crate) async fn open(server: &NatsServer) -> Arc<NatsStore> {
    NatsStore::open(settings(server), None).await.unwrap()
}

pub(crate) fn execution(name: &str) -> ExecutionId {
    ExecutionId::new(name).unwrap()
}

pub(crate) async fn append(
    store: &NatsStore,
    name: &str,
    expected: u64,
    bytes: impl Into<Vec<u8>>,
) -> Result<Appended, AppendError> {
    store.append(Append::new(execution(name), Version(expected), bytes.into())).await
}

/// A line that a task wrote.
pub(crate) fn line(text: impl Into<String>) -> LogLine {
    LogLine {
        node: Some(NodeId::new("n").unwrap()),
        attempt: Attempt(1),
        stream: LogStream::Stdout,
        at: Timestamp::from_micros(1),
        text: text.into(),
    }
}

/// No limit, and more may follow.
pub(crate) const OPEN: LogTerms = LogTerms { max_bytes: u64::MAX, closes: false };

pub(crate) async fn write(store: &NatsStore, name: &str, lines: Vec<LogLine>) -> Written {
    store.write_lines(&execution(name), lines, OPEN).await.unwrap()
}

/// All lines of a log, page by page.
pub(crate) async fn lines(store: &NatsStore, name: &str) -> Vec<(u64, LogLine)> {
    let mut lines: Vec<(u64, LogLine)> = Vec::new();
    loop {
        let after = lines.last().map_or(0, |(number, _)| *number);
        let page = store.read_lines(&execution(name), after, usize::MAX).await.unwrap();
        if page.is_empty() {
            return lines;
        }
        lines.extend(page);
    }
}

/// The records of an execution as text.
pub(crate) async fn texts(store: &NatsStore, name: &str) -> Vec<String> {
    let records = store.read(&execution(name), Version(0)).await.unwrap();
    assert!(records.iter().map(|record| record.version.0).eq(1..=records.len() as u64));
    records.into_iter().map(|record| String::from_utf8(record.bytes).unwrap()).collect()
}

#[track_caller]
pub(crate) fn kind(result: Result<Appended, AppendError>) -> ErrorKind {
    match result {
        Err(AppendError::Store(error)) => error.kind,
        other => panic!("{other:?} is not a failure of the store"),
    }
}

/// Waits until something is so, which it must be within ten seconds.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How long something takes, and what it gives.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let since = Instant::now();
    let given = work.await;
    (given, since.elapsed())
}

/// Somebody else on the same server.
pub(crate) struct Other(pub(crate) async_nats::Client);

impl Other {
    pub(crate) async fn connect(server: &NatsServer) -> Self {
        Self(async_nats::connect(server.url()).await.unwrap())
    }

    /// Asks JetStream.
    pub(crate) async fn api(&self, subject: &str, body: &Value) -> Value {
        // Some questions must have no body at all.
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.0.request(format!("$JS.API.{subject}"), body.into()).await.unwrap();
        serde_json::from_slice(&answer.payload).unwrap()
    }

    /// How a stream was made.
    pub(crate) async fn config(&self, stream: &str) -> Value {
        self.api(&format!("STREAM.INFO.{stream}"), &Value::Null).await["config"].clone()
    }

    /// How many messages a stream holds.
    pub(crate) async fn messages(&self, stream: &str) -> u64 {
        self.api(&format!("STREAM.INFO.{stream}"), &Value::Null).await["state"]["messages"].as_u64().unwrap()
    }

    /// Stores a message, with whatever headers.
    pub(crate) async fn publish(&self, subject: &str, headers: &[(&str, &str)], body: &str) {
        let mut map = async_nats::HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, *value);
        }
        let answer =
            self.0.request_with_headers(subject.to_owned(), map, body.to_owned().into()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
        assert!(answer["seq"].is_u64(), "{answer}");
    }
    /// All messages of a subject, with their numbers.
    pub(crate) async fn all(&self, stream: &str, subject: &str) -> Vec<(u64, Vec<u8>)> {
        let (mut found, mut from) = (Vec::new(), 1);
        loop {
            let which = serde_json::json!({"seq": from, "next_by_subj": subject});
            let answer = self.api(&format!("STREAM.MSG.GET.{stream}"), &which).await;
            let Some(sequence) = answer["message"]["seq"].as_u64() else { return found };
            let body = answer["message"]["data"].as_str().unwrap_or_default();
            found.push((sequence, base64::engine::general_purpose::STANDARD.decode(body).unwrap()));
            from = sequence + 1;
        }
    }

    /// Flips a bit in the last piece of an object, which stands there anew.
    pub(crate) async fn spoil(&self, bucket: &str, nuid: &str) {
        let (stream, subject) = (format!("OBJ_{bucket}"), format!("$O.{bucket}.C.{nuid}"));
        let mut pieces = self.all(&stream, &subject).await;
        *pieces.last_mut().unwrap().1.last_mut().unwrap() ^= 1;
        self.api(&format!("STREAM.PURGE.{stream}"), &serde_json::json!({"filter": subject})).await;
        for (_, piece) in pieces {
            let answer = self.0.request(subject.clone(), piece.into()).await.unwrap();
            let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
            assert!(answer["seq"].is_u64(), "{answer}");
        }
    }
}
