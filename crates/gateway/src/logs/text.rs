//! A log as text: bytes that only ever grow, so that a download can go on where it was left. It is sent as it is read, and never held as
//! a whole.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, TryStreamExt as _, stream};
use pyoco_core::ids::ExecutionId;
use pyoco_core::notice::Notice;
use pyoco_engine::{Engine, EngineError, LineFilter};

use super::Answering;
use crate::error::Refusal;
use crate::{conditions, range};

/// So many lines are read at once.
const LINES: usize = 1_000;

const HEADERS: [(HeaderName, HeaderValue); 2] = [
    (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
    // It is what tasks wrote: no browser is to take it for a page.
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

/// The text, or the bytes of it that are wanted.
pub(super) fn answer(
    about: &Answering<'_>,
    method: &Method,
    headers: &HeaderMap,
    mark: &HeaderValue,
) -> Result<Response, Refusal> {
    let Answering { engine, execution, end, wanted } = about;
    if !wanted.is_all() {
        let lines = Lines {
            engine: (*engine).clone(),
            execution: (*execution).clone(),
            filter: wanted.filter.clone(),
            after: wanted.since.unwrap_or(0),
            until: end.lines,
            left: wanted.limit.unwrap_or(usize::MAX),
        };
        let ranges = [(header::ACCEPT_RANGES, HeaderValue::from_static("none"))];
        // A body that nobody asks for reads nothing.
        return Ok((HEADERS, ranges, Body::from_stream(told(execution, lines.read()))).into_response());
    }
    // Parts are for those who get: a look at the head is about the whole.
    let is_part = method == Method::GET && conditions::may_be_continued(headers, mark);
    let wanted = if is_part { range::Wanted::of(headers, end.bytes) } else { range::Wanted::All };
    let (status, from, until) = match wanted {
        range::Wanted::All => (StatusCode::OK, 0, end.bytes),
        range::Wanted::Part { first, last } => (StatusCode::PARTIAL_CONTENT, first, last + 1),
        range::Wanted::Nothing => {
            let detail = format!("the log has {} bytes", end.bytes);
            let refusal = Refusal::new(StatusCode::RANGE_NOT_SATISFIABLE, detail);
            let length = text(&format!("bytes */{}", end.bytes));
            return Err(refusal.noticed(Notice::InvalidRequest).with_header(header::CONTENT_RANGE, length));
        }
    };
    let bytes = engine.log_text(execution, from, until).map_ok(Bytes::from);
    let mut response = (status, HEADERS, Body::from_stream(told(execution, bytes))).into_response();
    let to = response.headers_mut();
    to.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    to.insert(header::CONTENT_LENGTH, HeaderValue::from(until - from));
    if status == StatusCode::PARTIAL_CONTENT {
        let place = format!("bytes {from}-{}/{}", until - 1, end.bytes);
        to.insert(header::CONTENT_RANGE, text(&place));
    }
    Ok(response)
}

fn text(text: &str) -> HeaderValue {
    // Digits and what stands between them can always be a header.
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The same bytes; the operator hears when they break off.
fn told(
    execution: &ExecutionId,
    bytes: impl Stream<Item = Result<Bytes, EngineError>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, EngineError>> + Send + 'static {
    let run_id = execution.to_string();
    bytes.inspect_err(move |error| {
        // The answer has begun: it ends too early, which the client sees.
        tracing::warn!(run_id, reason = %error, "the text of a log breaks off");
    })
}

/// Some lines of a log, as they are read.
struct Lines {
    engine: Engine,
    execution: ExecutionId,
    filter: LineFilter,
    after: u64,
    until: u64,
    left: usize,
}

impl Lines {
    fn read(self) -> impl Stream<Item = Result<Bytes, EngineError>> + Send + 'static {
        stream::try_unfold(
            self,
            |mut lines| async move { Ok(lines.next().await?.map(|bytes| (bytes, lines))) },
        )
    }

    /// The text of some more lines; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        while self.after < self.until && self.left > 0 {
            let limit = self.left.min(LINES);
            let page = self.engine.log_page(&self.execution, self.after, limit, &self.filter).await?;
            if page.reached <= self.after {
                return Ok(None);
            }
            self.after = page.reached;
            let mut text = String::new();
            for (_, line) in page.lines.iter().take_while(|(number, _)| *number <= self.until) {
                line.write_to(&mut text);
                self.left = self.left.saturating_sub(1);
            }
            if !text.is_empty() {
                return Ok(Some(text.into()));
            }
        }
        Ok(None)
    }
}
