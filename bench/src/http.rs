//! One keep-alive connection of HTTP/1.1 to a server on this machine, and the requests that the bench sends.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Failure;

/// The original's list of 20,000 runs takes seconds; nothing takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Where a server listens.
pub(crate) type Address = SocketAddr;

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The JSON of an answer with status 200.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        if self.status != StatusCode::OK {
            return Err(self.problem());
        }
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// That it is not the answer that was wanted.
    pub(crate) fn problem(&self) -> Failure {
        format!("answered {}: {}", self.status, String::from_utf8_lossy(&self.body)).into()
    }
}

/// A connection that is kept for many requests, one after the other.
pub(crate) struct Connection {
    address: Address,
    sender: SendRequest<String>,
}

impl Connection {
    pub(crate) async fn open(address: Address) -> Result<Self, Failure> {
        Ok(Self { address, sender: connect(address).await? })
    }

    /// Sends one request and reads its answer. A connection that the server closed is opened again first.
    pub(crate) async fn send(&mut self, request: Request<String>) -> Result<Answer, Failure> {
        timeout(PATIENCE, self.exchange(request)).await?
    }

    async fn exchange(&mut self, request: Request<String>) -> Result<Answer, Failure> {
        let (head, mut incoming) = self.start(request).await?.into_parts();
        let mut body = Vec::new();
        while let Some(piece) = next_piece(&mut incoming).await? {
            body.extend_from_slice(&piece);
        }
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// Sends one request and leaves the body to the caller.
    pub(crate) async fn start(
        &mut self,
        mut request: Request<String>,
    ) -> Result<Response<Incoming>, Failure> {
        if self.sender.ready().await.is_err() {
            self.sender = connect(self.address).await?;
        }
        request.headers_mut().insert(HOST, self.address.to_string().parse()?);
        Ok(self.sender.send_request(request).await?)
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer, Failure> {
        self.send(get(path)?).await
    }
}

async fn connect(address: Address) -> Result<SendRequest<String>, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // Its error is told to the request that was in flight.
    tokio::spawn(connection);
    Ok(sender)
}

/// The next bytes of a body; nothing at its end.
pub(crate) async fn next_piece(body: &mut Incoming) -> Result<Option<Bytes>, Failure> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(piece) = frame?.into_data() {
                    return Ok(Some(piece));
                }
            }
        }
    }
}

pub(crate) fn get(path: &str) -> Result<Request<String>, Failure> {
    Ok(Request::builder().uri(path).body(String::new())?)
}

/// A GET with one header of its own.
pub(crate) fn get_with(path: &str, name: HeaderName, value: &str) -> Result<Request<String>, Failure> {
    Ok(Request::builder().uri(path).header(name, value).body(String::new())?)
}

/// `POST /runs`.
pub(crate) fn submit(flow: &str, tag: &str) -> Result<Request<String>, Failure> {
    submit_with(flow, tag, &json!({"n": 1}))
}

/// `POST /runs` with parameters.
pub(crate) fn submit_with(flow: &str, tag: &str, params: &Value) -> Result<Request<String>, Failure> {
    let body = format!(r#"{{"flow_name":"{flow}","params":{params},"tag":"{tag}"}}"#);
    let request = Request::builder().method(Method::POST).uri("/runs");
    Ok(request.header(CONTENT_TYPE, "application/json").body(body)?)
}

/// `POST /runs/ID/cancel`.
pub(crate) fn cancel(id: &str) -> Result<Request<String>, Failure> {
    Ok(Request::builder().method(Method::POST).uri(format!("/runs/{id}/cancel")).body(String::new())?)
}

/// `POST /runs/yaml`.
pub(crate) fn submit_yaml(flow: &str, tag: &str, workflow: &str) -> Result<Request<String>, Failure> {
    const BOUNDARY: &str = "pyoco-bench-boundary";
    let field = |name, value| {
        format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let body = format!(
        "{}{}--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"workflow\"; filename=\"flow.yaml\"\r\n\
         content-type: application/yaml\r\n\r\n{workflow}\r\n--{BOUNDARY}--\r\n",
        field("flow_name", flow),
        field("tag", tag),
    );
    let request = Request::builder().method(Method::POST).uri("/runs/yaml");
    Ok(request.header(CONTENT_TYPE, format!("multipart/form-data; boundary={BOUNDARY}")).body(body)?)
}
