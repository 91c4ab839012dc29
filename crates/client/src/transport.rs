//! One request, one answer: addresses, headers, time limits, size limits, and what went wrong.

use std::error::Error as _;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url, redirect};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answer::Answer;
use crate::error::{Call, Error, StatusError};

/// As much of an error's body is kept.
const MOST_ERROR_BYTES: usize = 16_384;

/// Talks to one gateway. Cheap to clone; clones share their connections.
///
/// ```no_run
/// # async fn example() -> Result<(), pyoco_client::Error> {
/// let client = pyoco_client::Client::new("http://127.0.0.1:8000")?;
/// let run = client.get_run("5f0c9c1e-3c0b-4a35-9a34-0d8a6f1f2b11").await?;
/// assert_eq!(run.json()["status"], "COMPLETED");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    limits: Limits,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) request: Duration,
    pub(crate) silence: Duration,
    pub(crate) answer_bytes: usize,
}

/// Says how a [`Client`] talks to its gateway.
#[derive(Debug, Clone)]
pub struct Builder {
    base_url: String,
    api_key: Option<String>,
    api_key_header: String,
    connect: Duration,
    limits: Limits,
}

impl Builder {
    fn new(base_url: impl Into<String>) -> Self {
        let limits = Limits {
            request: Duration::from_secs(30),
            // The reference sends a heartbeat after five quiet seconds.
            silence: Duration::from_secs(15),
            answer_bytes: 64 << 20,
        };
        Self {
            base_url: base_url.into(),
            api_key: None,
            api_key_header: "X-API-Key".to_owned(),
            connect: Duration::from_secs(5),
            limits,
        }
    }

    /// The key that is sent with every request. An empty one is none.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into()).filter(|key| !key.is_empty());
        self
    }

    /// The header that carries the key; `X-API-Key` unless told otherwise.
    #[must_use]
    pub fn api_key_header(mut self, name: impl Into<String>) -> Self {
        self.api_key_header = name.into();
        self
    }

    /// How long a connection may take to be made; 5 s unless told otherwise.
    #[must_use]
    pub const fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect = limit;
        self
    }

    /// How long a whole answer may take; 30 s unless told otherwise. Does not bound a watch.
    #[must_use]
    pub const fn request_timeout(mut self, limit: Duration) -> Self {
        self.limits.request = limit;
        self
    }

    /// How long a watch may be silent before its connection counts as broken; 15 s unless told otherwise.
    #[must_use]
    pub const fn watch_silence(mut self, limit: Duration) -> Self {
        self.limits.silence = limit;
        self
    }

    /// The largest answer, or event of a watch, that is read; 64 MiB unless told otherwise.
    #[must_use]
    pub const fn max_answer_bytes(mut self, limit: usize) -> Self {
        self.limits.answer_bytes = limit;
        self
    }

    /// Checks it all. Nothing is sent yet.
    pub fn build(self) -> Result<Client, Error> {
        let base = base_url(&self.base_url)?;
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.api_key {
            let name = HeaderName::from_bytes(self.api_key_header.as_bytes()).map_err(|_| {
                refuse("the API key header", format!("'{}' is no header name", self.api_key_header))
            })?;
            let mut value = HeaderValue::from_str(key)
                .map_err(|_| refuse("the API key", "has characters that a header cannot carry"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let http = reqwest::Client::builder()
            .user_agent(concat!("pyoco-client/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(self.connect)
            // A key must not follow a redirect to somebody else.
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| refuse("the HTTP client", root_cause(&error)))?;
        Ok(Client { http, base, limits: self.limits })
    }
}

impl Client {
    /// A client of the gateway at `base_url`, e.g. `http://127.0.0.1:8000`, without a key.
    pub fn new(base_url: impl Into<String>) -> Result<Self, Error> {
        Self::builder(base_url).build()
    }

    /// A client whose key, time limits and sizes are chosen.
    pub fn builder(base_url: impl Into<String>) -> Builder {
        Builder::new(base_url)
    }

    pub(crate) const fn limits(&self) -> Limits {
        self.limits
    }

    /// The same for a request whose caller sees to the time that it takes.
    pub(crate) const fn unhurried(mut self) -> Self {
        self.limits.request = Duration::MAX;
        self
    }

    /// A request to the path made of `segments`, each of which may hold any character.
    pub(crate) fn request(&self, method: &Method, segments: &[&str]) -> Result<Outgoing, Error> {
        if let Some(odd) = segments.iter().find(|segment| matches!(**segment, "" | "." | "..")) {
            return Err(refuse("the id", format!("'{odd}' is no id")));
        }
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut path) => path.pop_if_empty().extend(segments),
            Err(()) => return Err(refuse("the server URL", "has no path")),
        };
        let call = Call { method: method.to_string(), path: url.path().to_owned() };
        Ok(Outgoing { request: self.http.request(method.clone(), url), call })
    }

    /// Sends, and reads a JSON answer.
    pub(crate) async fn json<T: DeserializeOwned>(&self, outgoing: Outgoing) -> Result<Answer<T>, Error> {
        let (json, call) = self.value(outgoing).await?;
        Answer::read(json).map_err(|error| bad_answer(&call, format!("the answer has another form: {error}")))
    }

    /// Sends, and reads an answer of any JSON.
    pub(crate) async fn value(&self, outgoing: Outgoing) -> Result<(Value, Call), Error> {
        let call = outgoing.call.clone();
        let body = self.body(outgoing).await?;
        match serde_json::from_slice(&body) {
            Ok(json) => Ok((json, call)),
            Err(error) => Err(bad_answer(&call, format!("the answer is no JSON: {error}"))),
        }
    }

    /// Sends, and reads the bytes of a successful answer.
    pub(crate) async fn body(&self, outgoing: Outgoing) -> Result<Bytes, Error> {
        let limit = self.limits.request;
        let call = outgoing.call.clone();
        let whole = async {
            let response = open(outgoing).await?;
            read(response, &call, self.limits.answer_bytes).await
        };
        match tokio::time::timeout(limit, whole).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout { call, limit }),
        }
    }
}

/// A request that has not been sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) request: RequestBuilder,
    pub(crate) call: Call,
}

impl Outgoing {
    pub(crate) fn with(self, change: impl FnOnce(RequestBuilder) -> RequestBuilder) -> Self {
        Self { request: change(self.request), call: self.call }
    }
}

/// Sends, and waits for the beginning of a successful answer.
pub(crate) async fn open(outgoing: Outgoing) -> Result<Response, Error> {
    let call = outgoing.call;
    let mut response = outgoing.request.send().await.map_err(|error| broken(&call, &error))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status().as_u16();
    let mut body = BytesMut::new();
    // What can be read of the explanation is enough.
    while let Ok(Some(part)) = response.chunk().await {
        body.extend_from_slice(&part);
        if body.len() >= MOST_ERROR_BYTES {
            body.truncate(MOST_ERROR_BYTES);
            break;
        }
    }
    let body = String::from_utf8_lossy(&body).into_owned();
    Err(Error::Status(Box::new(StatusError::new(status, call, body))))
}

async fn read(mut response: Response, call: &Call, most_bytes: usize) -> Result<Bytes, Error> {
    let too_large = || bad_answer(call, format!("the answer has more than {most_bytes} bytes"));
    if response.content_length().is_some_and(|length| length > most_bytes as u64) {
        return Err(too_large());
    }
    let mut body = BytesMut::new();
    while let Some(part) = response.chunk().await.map_err(|error| broken(call, &error))? {
        if body.len() + part.len() > most_bytes {
            return Err(too_large());
        }
        body.extend_from_slice(&part);
    }
    Ok(body.freeze())
}

pub(crate) fn broken(call: &Call, error: &reqwest::Error) -> Error {
    Error::Connection { call: call.clone(), problem: root_cause(error) }
}

pub(crate) fn bad_answer(call: &Call, problem: impl Into<String>) -> Error {
    Error::BadAnswer { call: call.clone(), problem: problem.into() }
}

pub(crate) fn refuse(what: &'static str, problem: impl Into<String>) -> Error {
    Error::InvalidArgument { what, problem: problem.into() }
}

/// The innermost reason: outer ones only say that a request failed.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let host = error.url().map(|url| url.authority().rsplit('@').next().unwrap_or_default().to_owned());
    match host {
        Some(host) if error.source().is_some() => format!("{cause} ({host})"),
        Some(_) | None => cause.to_string(),
    }
}

fn base_url(text: &str) -> Result<Url, Error> {
    let what = "the server URL";
    let url = Url::parse(text).map_err(|error| refuse(what, format!("'{text}' is not valid: {error}")))?;
    match url.scheme() {
        "http" => {}
        "https" => return Err(refuse(what, "begins with https, but this build speaks plain http only")),
        _ => return Err(refuse(what, format!("'{text}' does not begin with http://"))),
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse(what, format!("'{text}' has a query or a fragment")));
    }
    Ok(url)
}
