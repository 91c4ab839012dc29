//! The bytes of a wheel. They are sent as they are read, and never held as a whole.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use pyoco_core::notice::Notice;
use pyoco_ports::{ErrorKind, StoreError, WheelBytes, WheelRecord};

use super::{Named, not_found};
use crate::App;
use crate::caller::Caller;
use crate::conditions;
use crate::docs::{Always, PartHeaders, Reading, WheelFile, WheelRead};
use crate::error::Refusal;
use crate::range::Wanted;

const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
    // It is what somebody uploaded: no browser is to take it for a page.
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
];

/// A wheel. Its entity tag is the SHA-256 of its bytes.
#[utoipa::path(get, operation_id = "downloadWheel", tag = "wheels", path = "/wheels/{wheel_name}", params(("wheel_name" = String, Path), PartHeaders), responses(
    (status = 200, description = "All of it.", body = WheelFile, content_type = "application/octet-stream",
        headers(("ETag" = String, description = "the SHA-256 of all of it, in hexadecimal digits"), ("Accept-Ranges" = String), ("Content-Disposition" = String))),
    WheelRead, Reading, Always
))]
pub(crate) async fn download(
    State(app): State<App>,
    _caller: Caller,
    Named(name): Named,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let gone = || not_found(name.as_str());
    let record = app.engine.store().wheel(&name).await?.ok_or_else(gone)?;
    let mark = text(&format!("\"{}\"", record.sha256));
    let mut response = if conditions::is_known(&headers, &mark) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let (status, from, until) = wanted(&record, &method, &headers, &mark)?;
        let body = if method == Method::HEAD {
            Body::empty()
        } else {
            body(&app, record.clone(), from, until).await?.ok_or_else(gone)?
        };
        let mut response = (status, HEADERS, body).into_response();
        let to = response.headers_mut();
        to.insert(header::CONTENT_LENGTH, HeaderValue::from(until - from));
        // The characters of a wheel's name need no quoting.
        to.insert(header::CONTENT_DISPOSITION, text(&format!("attachment; filename=\"{name}\"")));
        if status == StatusCode::PARTIAL_CONTENT {
            let place = format!("bytes {from}-{}/{}", until - 1, record.size_bytes);
            to.insert(header::CONTENT_RANGE, text(&place));
        }
        response
    };
    response.headers_mut().insert(header::ETAG, mark);
    Ok(response)
}

/// Which bytes are wanted, and how that is called.
fn wanted(
    record: &WheelRecord,
    method: &Method,
    headers: &HeaderMap,
    mark: &HeaderValue,
) -> Result<(StatusCode, u64, u64), Refusal> {
    let size = record.size_bytes;
    // Parts are for those who get: a look at the head is about the whole.
    let is_part = method == Method::GET && conditions::may_be_continued(headers, mark);
    match if is_part { Wanted::of(headers, size) } else { Wanted::All } {
        Wanted::All => Ok((StatusCode::OK, 0, size)),
        Wanted::Part { first, last } => Ok((StatusCode::PARTIAL_CONTENT, first, last + 1)),
        Wanted::Nothing => {
            let refusal =
                Refusal::new(StatusCode::RANGE_NOT_SATISFIABLE, format!("the wheel has {size} bytes"));
            let refusal = refusal.noticed(Notice::InvalidRequest).of_wheel(record.name.as_str());
            Err(refusal.with_header(header::CONTENT_RANGE, text(&format!("bytes */{size}"))))
        }
    }
}

/// The bytes from one place to another; nothing if the wheel is not there any more.
async fn body(app: &App, record: WheelRecord, from: u64, until: u64) -> Result<Option<Body>, StoreError> {
    let Some(bytes) = app.engine.store().read_wheel(&record, from).await? else { return Ok(None) };
    let mut pieces = Pieces { bytes, left: until - from };
    // What cannot be read at all is told while there is somebody to tell it to.
    let first = pieces.next().await?;
    let rest = stream::try_unfold(pieces, |mut pieces| async move {
        Ok::<_, StoreError>(pieces.next().await?.map(|piece| (piece, pieces)))
    });
    let all = stream::iter(first.map(Ok)).chain(rest);
    Ok(Some(Body::from_stream(all.inspect_err(move |error| {
        // The answer has begun: it ends too early, which the client sees.
        tracing::error!(wheel_name = %record.name, reason = %error, "a wheel breaks off while it is sent");
    }))))
}

/// As many bytes as are wanted, and no more.
struct Pieces {
    bytes: Box<dyn WheelBytes>,
    left: u64,
}

impl Pieces {
    async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(piece) = self.bytes.next().await? else {
            return Err(StoreError::plain(ErrorKind::Corrupt, "read_wheel"));
        };
        let mut piece = Bytes::from(piece);
        piece.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= piece.len() as u64;
        Ok(Some(piece))
    }
}

fn text(text: &str) -> HeaderValue {
    // Digits and names of wheels can always be a header.
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}
