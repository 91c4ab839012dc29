//! What holds for every request: it passes the door, a change leaves an entry in the audit trail, no body is compressed, no panic goes
//! further than its request, and the operator hears of every refusal.

use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use pyoco_core::notice::Notice;
use pyoco_figures::Stopwatch;

use crate::audit::{Deed, Told};
use crate::error::{Note, Refusal};
use crate::{App, audit, body, door, idempotency, metrics};

/// Wraps every request.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let watch = Stopwatch::start();
    let route = door::place(&request).map(str::to_owned);
    let method = request.method().clone();
    // The path as it was written: percent-encoded, so it cannot break a log line.
    let path: String = request.uri().path().chars().take(256).collect();
    // Whoever follows a thread finds it in refusals too.
    let thread = idempotency::correlation(request.headers()).ok().flatten();
    let request = request.map(body::lingering);
    // Who sends it comes first: nothing else of it is anybody's business before.
    let answer = async {
        let mut request = request;
        if let Err(refusal) = app.door.pass(&mut request).await {
            audit::refused(&app, audit::source(request.extensions()), refusal.status());
            return refusal.at(&path);
        }
        let deed = Deed::begun(&app, &mut request, thread.as_deref()).await;
        let response = match is_readable(&request) {
            Ok(()) => next.run(request).await,
            Err(refusal) => refusal.at(&path),
        };
        if let Some(deed) = deed {
            deed.ended(response.status(), Told::of(&response)).await;
        }
        response
    };
    let answer = AssertUnwindSafe(answer).catch_unwind().await;
    let mut response = answer.unwrap_or_else(|_| internal_error());
    if let Some(Ok(thread)) = thread.map(HeaderValue::try_from) {
        response.headers_mut().entry(idempotency::CORRELATION).or_insert(thread);
    }
    tell(&method, &path, &response);
    metrics::answered(app.engine.figures(), route.as_deref(), &method, response.status(), watch.seconds());
    response
}

/// Whether the body of a request is one that can be read.
fn is_readable(request: &Request) -> Result<(), Refusal> {
    if is_encoded(request) {
        let detail = "a request body must not be compressed";
        let refusal = Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail);
        return Err(refusal.noticed(Notice::InvalidRequest));
    }
    Ok(())
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
                wheel_name = note.wheel_name,
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
