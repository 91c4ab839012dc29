//! What holds for every request: it passes the door, it brings no compressed body, no panic goes further than its request, and the
//! operator hears of every refusal.

use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use pyoco_core::notice::Notice;

use crate::error::{Note, Refusal};
use crate::{App, body, idempotency};

/// Wraps every request.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    // The path as it was written: percent-encoded, so it cannot break a log line.
    let path: String = request.uri().path().chars().take(256).collect();
    // Whoever follows a thread finds it in refusals too.
    let thread = idempotency::correlation(request.headers()).ok().flatten();
    let request = request.map(body::lingering);
    let answer = async {
        match admitted(&app, request).await {
            Ok(request) => next.run(request).await,
            Err(refusal) => refusal.at(&path),
        }
    };
    let answer = AssertUnwindSafe(answer).catch_unwind().await;
    let mut response = answer.unwrap_or_else(|_| internal_error());
    if let Some(Ok(thread)) = thread.map(HeaderValue::try_from) {
        response.headers_mut().entry(idempotency::CORRELATION).or_insert(thread);
    }
    tell(&method, &path, &response);
    response
}

/// The request, if it may go on. Who sends it comes first: nothing else of it is anybody's business before.
async fn admitted(app: &App, mut request: Request) -> Result<Request, Refusal> {
    app.door.pass(&mut request).await?;
    if is_encoded(&request) {
        let detail = "a request body must not be compressed";
        let refusal = Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail);
        return Err(refusal.noticed(Notice::InvalidRequest));
    }
    Ok(request)
}

/// A small body may unpack into a large one.
fn is_encoded(request: &Request) -> bool {
    let encodings = request.headers().get_all(header::CONTENT_ENCODING);
    encodings.iter().any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// As the original answers when a handler breaks: plain text, and the connection is closed.
fn internal_error() -> Response {
    let mut response = (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error").into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    let note = Note { reason: "a handler panicked".to_owned(), ..Note::default() };
    response.extensions_mut().insert(note);
    response
}

/// One log line for each answer from 400 up.
fn tell(method: &Method, path: &str, response: &Response) {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return;
    }
    let unnoted = Note::default();
    let note = response.extensions().get::<Note>().unwrap_or(&unnoted);
    let err_id = note.notice.map(Notice::err_id);
    let msg_id = note.notice.map(Notice::msg_id);
    let text = note.notice.map_or("request refused", Notice::text);
    macro_rules! tell {
        ($level:ident) => {
            tracing::$level!(
                err_id,
                msg_id,
                run_id = note.run_id,
                flow_name = note.flow_name,
                tag = note.tag,
                reason = note.reason,
                status = status.as_u16(),
                %method,
                path,
                "{text}"
            )
        };
    }
    if status.is_server_error() {
        tell!(error);
    } else {
        tell!(warn);
    }
}
