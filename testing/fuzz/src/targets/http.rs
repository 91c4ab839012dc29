//! Requests, as text: a line, headers, an empty line, a body. `{run}` and `{wheel}` stand for what is there.
//!
//! Whatever is sent is answered without a server error, and what says that it is JSON is JSON.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use pyoco_gateway::Gateway;
use serde_json::Value;
use tower::ServiceExt as _;

use super::scene::{WHEEL, block_on, form, scene};

/// So long a stream is listened to. Time is virtual.
const LISTENS: Duration = Duration::from_secs(4);
/// More of an answer is not looked at.
const MOST_BYTES: usize = 256 << 10;

/// One request for each route, with what most of them want.
pub(super) fn every_route() -> Vec<Vec<u8>> {
    let routes = Gateway::routes().into_iter();
    let mut all: Vec<Vec<u8>> = routes
        .map(|route| {
            let path = route.path.replace("{run_id}", "{run}").replace("{executionId}", "{run}");
            let path = path.replace("{id}", "{run}").replace("{wheel_name}", "{wheel}");
            let path = path.replace("{nodeId}", "b").replace("{graphId}", "flow");
            let path = path.replace("{tag}", "t").replace("{worker_id}", "w1").replace("{*path}", "x");
            let body = "content-type: application/json\nx-idempotency-key: k\n\n{\"graphId\":\"flow\",\"flow_name\":\"main\"}";
            format!("{} {path}\n{body}", route.method).into_bytes()
        })
        .collect();
    let head = b"POST /wheels\ncontent-type: multipart/form-data; boundary=x\nx-idempotency-key: w\n\n";
    all.push([head.as_slice(), &form()].concat());
    all
}

pub(super) fn request(bytes: &[u8]) -> bool {
    let scene = scene();
    let Some(request) = read(bytes, scene.run.as_str()) else { return false };
    block_on(async move {
        let said = format!("{} {}", request.method(), request.uri());
        let answer = scene.router.oneshot(request).await.unwrap();
        let status = answer.status();
        // What is not there yet may be said; that something went wrong may not.
        let is_fault = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
        assert!(!is_fault, "{said}: {status}");
        let is_json =
            answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
        let body = listen(answer.into_body()).await;
        if is_json && let Some(body) = body {
            assert!(body.is_empty() || serde_json::from_slice::<Value>(&body).is_ok(), "{said}: {body:?}");
        }
        status.is_success()
    })
}

/// The body, if it ends before long.
async fn listen(mut body: Body) -> Option<Vec<u8>> {
    let mut heard = Vec::new();
    let listening = async {
        while heard.len() < MOST_BYTES {
            match body.frame().await {
                Some(Ok(frame)) => heard.extend(frame.into_data().unwrap_or_default()),
                Some(Err(_)) => return false,
                None => return true,
            }
        }
        false
    };
    let is_whole = tokio::time::timeout(LISTENS, listening).await.unwrap_or(false);
    is_whole.then_some(heard)
}

/// A request, if hyper would let it in.
fn read(bytes: &[u8], run: &str) -> Option<Request<Body>> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 2..]));
    let head = String::from_utf8_lossy(head).replace("{run}", run).replace("{wheel}", WHEEL);
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let uri: Uri = target.parse().ok().filter(|uri: &Uri| uri.path().starts_with('/'))?;
    let mut request = Request::builder().method(Method::from_bytes(method.as_bytes()).ok()?).uri(uri);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        request = request.header(name, value.trim());
    }
    request.body(Body::from(body.to_vec())).ok()
}
