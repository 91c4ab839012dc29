//! A collector of traces for tests: it listens on a real port, reads what OTLP writes, and has moods.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use pyoco_core::ids::ExecutionId;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It takes everything.
    Well,
    /// It says that it is away for now.
    Away,
    /// It says nothing at all.
    Silent,
}

#[derive(Default)]
struct Heard {
    requests: Vec<(HeaderMap, ExportTraceServiceRequest)>,
}

struct Shared {
    mood: Mutex<Mood>,
    heard: Mutex<Heard>,
    /// How many requests came since the mood changed.
    asked: watch::Sender<u64>,
}

/// A collector that runs until the test ends.
pub(crate) struct Collector {
    port: u16,
    shared: Arc<Shared>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared {
            mood: Mutex::new(Mood::Well),
            heard: Mutex::default(),
            asked: watch::Sender::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let app = Router::new().route("/v1/traces", post(take)).with_state(shared.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { port, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn is_in(&self, mood: Mood) {
        *self.shared.mood.lock().unwrap() = mood;
        self.shared.asked.send_replace(0);
    }

    /// Waits until somebody has come in this mood.
    pub(crate) async fn was_asked(&self) {
        let mut asked = self.shared.asked.subscribe();
        let came = asked.wait_for(|asked| *asked > 0);
        tokio::time::timeout(Duration::from_secs(30), came).await.expect("somebody comes").unwrap();
    }

    /// The spans of a run, as soon as they are here.
    pub(crate) async fn spans_of(&self, run: &ExecutionId) -> Vec<Span> {
        let mut asked = self.shared.asked.subscribe();
        let came = async {
            loop {
                let found = self.now_of(run);
                if !found.is_empty() {
                    return found;
                }
                asked.changed().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(30), came).await.expect("the spans come")
    }

    /// The spans of a run that are here now, in the order in which they came.
    pub(crate) fn now_of(&self, run: &ExecutionId) -> Vec<Span> {
        let heard = self.shared.heard.lock().unwrap();
        let resources = heard.requests.iter().flat_map(|(_, request)| &request.resource_spans);
        let spans = resources.flat_map(|spans| &spans.scope_spans).flat_map(|spans| &spans.spans);
        let is_of_run = |span: &&Span| attribute(span, "pyoco.run.id").as_deref() == Some(run.as_str());
        spans.filter(is_of_run).cloned().collect()
    }

    /// The headers of the last request, and what it said about its sender.
    pub(crate) fn heard(&self) -> (HeaderMap, Vec<(String, String)>) {
        let heard = self.shared.heard.lock().unwrap();
        let (headers, request) = heard.requests.last().unwrap();
        let resource = request.resource_spans[0].resource.as_ref().unwrap();
        let attributes = resource.attributes.iter().map(|pair| (pair.key.clone(), shown(pair)));
        (headers.clone(), attributes.collect())
    }
}

async fn take(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> (StatusCode, HeaderMap) {
    let mood = *shared.mood.lock().unwrap();
    let status = match mood {
        Mood::Well => {
            let request = match headers[header::CONTENT_TYPE].to_str().unwrap() {
                "application/json" => serde_json::from_slice(&body).unwrap(),
                _ => ExportTraceServiceRequest::decode(body).unwrap(),
            };
            shared.heard.lock().unwrap().requests.push((headers, request));
            StatusCode::OK
        }
        Mood::Away => StatusCode::SERVICE_UNAVAILABLE,
        Mood::Silent => {
            shared.asked.send_modify(|asked| *asked += 1);
            std::future::pending().await
        }
    };
    shared.asked.send_modify(|asked| *asked += 1);
    (status, HeaderMap::from_iter([(header::RETRY_AFTER, "1".parse().unwrap())]))
}

/// What a span says under a name.
pub(crate) fn attribute(span: &Span, name: &str) -> Option<String> {
    span.attributes.iter().find(|pair| pair.key == name).map(shown)
}

fn shown(pair: &KeyValue) -> String {
    match &pair.value {
        Some(AnyValue { value: Some(Value::StringValue(text)) }) => text.clone(),
        Some(AnyValue { value: Some(Value::IntValue(number)) }) => number.to_string(),
        other => panic!("{other:?}"),
    }
}
