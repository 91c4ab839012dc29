//! The events of an execution as they happen, as server-sent events.
//!
//! Every event comes once, in order and without a gap: whoever comes back says with `Last-Event-ID` what they saw last.

use std::fmt::Write as _;
use std::pin::Pin;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pyoco_api::Location;
use pyoco_core::ids::{EventSeq, ExecutionId};
use pyoco_core::notice::Notice;
use pyoco_core::state::State as Folded;
use pyoco_engine::{Follower, NumberedEvent};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Duration, Sleep};
use tokio_util::sync::CancellationToken;

use super::ExecutionPath;
use super::events::Shown;
use crate::caller::{Guest, Viewer};
use crate::docs::{Denied, Found, ServerSentEvent};
use crate::error::{Denial, Refusal};
use crate::query::{Query, whole_number};
use crate::server::Hosting;
use crate::validation::Inputs;
use crate::{App, sse};

const LAST_SEEN: &str = "Last-Event-ID";

/// Events as they happen. The `id` of each is its number; `event: end` says that nothing more will come.
#[utoipa::path(get, operation_id = "streamEvents", tag = "executions", path = "/executions/{executionId}/events/stream", params(
    ("executionId" = String, Path), ("after" = Option<u64>, Query, description = "only events behind this number"),
    ("Last-Event-ID" = Option<u64>, Header, description = "the same; it wins")
), responses(
    (status = 200, description = "The events; the data of each are an `ExecutionEvent`, those of the end are empty.", body = ServerSentEvent, content_type = "text/event-stream"),
    (status = 204, description = "Everything was told; there is nothing to come back for."), Found, Denied
))]
pub(crate) async fn stream(
    State(app): State<App>,
    Viewer(caller): Viewer,
    ExecutionPath(execution): ExecutionPath,
    query: Query,
    hosting: Hosting,
    headers: HeaderMap,
) -> Result<Response, Denial> {
    let mut inputs = Inputs::default();
    let mut after = query.seq(&mut inputs, "after");
    let mut place: [Location; 2] = ["query".into(), "after".into()];
    if let Some(text) = headers.get("last-event-id").filter(|text| !text.is_empty()) {
        place = ["header".into(), LAST_SEEN.into()];
        after = text.to_str().ok().and_then(whole_number).map(EventSeq);
        if after.is_none() {
            let rule = "it must be the number of an event";
            inputs.wrong("value_error", place.clone(), rule, Value::Null, None);
        }
    }
    inputs.finish(Notice::InvalidRequest)?;
    let after = after.unwrap_or_default();
    let last = app.seen(&caller, &execution, Folded::last_event).await?;
    if after > last {
        let mut inputs = Inputs::default();
        let rule = format!("there is no such event yet; the last one is {last}");
        inputs.wrong("value_error", place, rule, after.0.into(), None);
        return Err(inputs.refusal(Notice::InvalidRequest).of_run(execution.as_str()).into());
    }
    let Ok(permit) = app.watches.clone().try_acquire_owned() else {
        return Err(Refusal::too_many_watches(execution.as_str()).into());
    };
    let follower = app.engine.follow(&execution, after).await?;
    let follower = follower.ok_or_else(|| Refusal::run_not_found(execution.as_str()))?;
    if follower.is_over() && headers.contains_key("last-event-id") {
        // A browser that comes back after the end is told not to.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let heartbeat = app.settings.watch_heartbeat;
    let guest = Guest::new(caller, &headers, app);
    let feed = Feed {
        follower,
        execution,
        heartbeat,
        pulse: Box::pin(tokio::time::sleep(heartbeat)),
        closing: hosting.closing,
        is_over: false,
        _permit: permit,
    };
    let events = futures_util::stream::unfold(feed, |mut feed| async move {
        let events = feed.events().await?;
        Some((events, feed))
    });
    Ok(sse::answer(guest, events))
}

/// One open stream.
struct Feed {
    follower: Follower,
    execution: ExecutionId,
    heartbeat: Duration,
    pulse: Pin<Box<Sleep>>,
    closing: CancellationToken,
    is_over: bool,
    _permit: OwnedSemaphorePermit,
}

impl Feed {
    /// What is to be sent next; `None` when the stream is over.
    async fn events(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let next = tokio::select! {
            biased;
            () = self.closing.cancelled() => return None,
            next = self.follower.next() => next,
            () = &mut self.pulse => {
                self.rest();
                // Somebody may have written and died before anybody was told.
                self.follower.look_again().await;
                return Some(Bytes::from_static(b": keep-alive\n\n"));
            }
        };
        self.rest();
        match next {
            Ok(Some(events)) => Some(told(&events)),
            Ok(None) => {
                self.is_over = true;
                Some(Bytes::from_static(b"event: end\ndata: {}\n\n"))
            }
            Err(error) => {
                // A stream has no status left to say it with: it ends, and the client comes back.
                tracing::warn!(run_id = %self.execution, reason = %error, "a stream of events ends");
                None
            }
        }
    }

    /// The next sign of life is due so long from now.
    fn rest(&mut self) {
        self.pulse.as_mut().reset(tokio::time::Instant::now() + self.heartbeat);
    }
}

/// JSON has its line breaks escaped, so each event is one line of data.
fn told(events: &[NumberedEvent]) -> Bytes {
    let mut text = String::new();
    for shown in events.iter().filter_map(Shown::of) {
        let seq = shown.seq();
        let data = serde_json::to_string(&shown).unwrap_or_default();
        // Writing to a text does not fail.
        let _ = write!(text, "id: {seq}\nevent: {}\ndata: {data}\n\n", shown.kind());
    }
    text.into()
}
