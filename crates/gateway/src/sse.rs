//! The form of an answer that is a stream of server-sent events. What is sent is each surface's own affair.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::header::{self, HeaderName};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream as Events, StreamExt as _};
use pyoco_figures::Stream;

use crate::caller::Guest;

/// An answer whose events come as they happen, for as long as its reader may stay; no proxy on the way keeps them back.
pub(crate) fn answer(guest: Guest, events: impl Events<Item = Bytes> + Send + 'static) -> Response {
    let open = guest.stays(Stream::Sse);
    let events = events.take_until(guest.outstays());
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
        (header::CONNECTION, "keep-alive"),
    ];
    let events = events.map(move |event| {
        // It is open for as long as there is this closure.
        let _ = &open;
        Ok::<Bytes, Infallible>(event)
    });
    (headers, Body::from_stream(events)).into_response()
}
