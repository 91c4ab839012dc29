//! The way to a collector: one request with spans, as OTLP writes it over HTTP.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use hyper::{Response, body::Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

use super::spans::text;
use super::target::Target;
use crate::StartError;
use crate::config::TraceProtocol;

/// How long one request may take, as the specification has it.
const PATIENCE: Duration = Duration::from_secs(10);
/// So much of an answer is read.
const ANSWER_BYTES: usize = 64 << 10;
/// An unused connection is kept for so long.
const IDLE: Duration = Duration::from_secs(30);

/// A collector.
pub(super) struct Collector {
    way: Way,
    address: Uri,
    headers: HeaderMap,
    protocol: TraceProtocol,
    resource: Resource,
}

enum Way {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

/// Why spans did not arrive.
#[derive(Debug)]
pub(super) enum Unsent {
    /// Later they may.
    ForNow {
        /// When the collector wants to be asked again, if it says so.
        after: Option<Duration>,
        /// What happened.
        reason: String,
    },
    /// They never will.
    ForEver(String),
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForNow { reason, .. } | Self::ForEver(reason) => f.write_str(reason),
        }
    }
}

impl Unsent {
    const fn for_now(reason: String) -> Self {
        Self::ForNow { after: None, reason }
    }
}

impl Collector {
    /// A collector. Nobody is called yet.
    pub(super) fn new(target: Target) -> Result<Self, StartError> {
        let Target { address, mut headers, protocol, resource } = target;
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_idle_timeout(IDLE).pool_timer(TokioTimer::new());
        let way = if address.scheme_str() == Some("https") {
            let provider = rustls::crypto::ring::default_provider();
            let tls = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider);
            Way::Tls(builder.build(tls.map_err(StartError::other)?.https_only().enable_http1().build()))
        } else {
            Way::Plain(builder.build_http())
        };
        let kind = match protocol {
            TraceProtocol::Protobuf => "application/x-protobuf",
            TraceProtocol::Json => "application/json",
        };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let agent = concat!("pyoco-server/", env!("CARGO_PKG_VERSION"));
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(agent));
        let attributes = resource.iter().map(|(name, value)| text(name, value)).collect();
        let resource = Resource { attributes, ..Resource::default() };
        Ok(Self { way, address, headers, protocol, resource })
    }

    /// The message with some spans.
    pub(super) fn message(&self, spans: Vec<Span>) -> Bytes {
        let scope = InstrumentationScope {
            name: "pyoco".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let spans = ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() };
        let spans = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![spans],
            ..ResourceSpans::default()
        };
        let message = ExportTraceServiceRequest { resource_spans: vec![spans] };
        match self.protocol {
            TraceProtocol::Protobuf => message.encode_to_vec().into(),
            // Made of texts, numbers and lists, it has a JSON form.
            TraceProtocol::Json => serde_json::to_vec(&message).unwrap_or_default().into(),
        }
    }

    /// Sends a message once.
    pub(super) async fn send(&self, message: Bytes) -> Result<(), Unsent> {
        let mut request = Request::new(Full::new(message));
        *request.method_mut() = Method::POST;
        request.uri_mut().clone_from(&self.address);
        request.headers_mut().clone_from(&self.headers);
        match tokio::time::timeout(PATIENCE, self.ask(request)).await {
            Ok(answered) => answered,
            Err(_) => Err(Unsent::for_now("the collector did not answer in time".to_owned())),
        }
    }

    async fn ask(&self, request: Request<Full<Bytes>>) -> Result<(), Unsent> {
        let asked = match &self.way {
            Way::Plain(client) => client.request(request).await,
            Way::Tls(client) => client.request(request).await,
        };
        let response = asked.map_err(|error| Unsent::for_now(causes(&error)))?;
        let status = response.status();
        let reason = || format!("the collector answered {status}");
        match status {
            _ if status.is_success() => {
                self.heed(response).await;
                Ok(())
            }
            // Those that OTLP calls passing.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let after = response.headers().get(header::RETRY_AFTER);
                let seconds = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
                Err(Unsent::ForNow { after: seconds.map(Duration::from_secs), reason: reason() })
            }
            _ => Err(Unsent::ForEver(reason())),
        }
    }

    /// A collector may take a part and say what was wrong with the rest.
    async fn heed(&self, response: Response<Incoming>) {
        let Ok(body) = Limited::new(response.into_body(), ANSWER_BYTES).collect().await else { return };
        let body = body.to_bytes();
        let answer = match self.protocol {
            TraceProtocol::Protobuf => ExportTraceServiceResponse::decode(body).ok(),
            TraceProtocol::Json => serde_json::from_slice(&body).ok(),
        };
        let refused = answer.and_then(|answer| answer.partial_success).filter(|part| part.rejected_spans > 0);
        if let Some(part) = refused {
            let (spans, reason) = (part.rejected_spans, part.error_message);
            tracing::warn!(spans, reason, "the collector of traces has refused some spans");
        }
    }
}

/// What the client says: the cause of it is what helps.
fn causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
