//! The lines of a log as they are written, as server-sent events.
//!
//! Every line comes once, in order and without a gap: whoever comes back says with `Last-Event-ID` which one they saw last. The stream
//! makes its next event when the connection takes it, so a slow reader holds up nobody but itself.

use std::fmt::Write as _;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use pyoco_core::ids::ExecutionId;
use pyoco_core::notice::Notice;
use pyoco_engine::{LineFilter, LogFollower};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use super::{Log, View, entry, filter, since, token};
use crate::caller::{Caller, Guest};
use crate::error::Refusal;
use crate::query::{Query, whole_number};
use crate::validation::Inputs;
use crate::{App, sse};

/// What a request for a stream brings along.
pub(crate) struct Following<'a> {
    pub(crate) query: &'a Query,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) closing: CancellationToken,
}

/// Follows a log.
pub(crate) async fn follow(app: App, log: Log<'_>, following: Following<'_>) -> Result<Response, Refusal> {
    let Following { query, headers, closing } = following;
    let mut inputs = Inputs::default();
    let filter = filter(&mut inputs, query);
    inputs.finish(Notice::InvalidRequest)?;
    let last_event = last_event(headers)?;
    let since = since(query, log.execution)?;
    app.log_of(&log, |_| ()).await?;
    let end = app.engine.log_end(log.execution).await?;
    let after = last_event.or(since).unwrap_or(0);
    if after > end.lines {
        return Err(match last_event {
            Some(_) => bad_last_event("there is no such line yet"),
            None => token::beyond_the_end(),
        });
    }
    let Ok(permit) = app.watches.clone().try_acquire_owned() else {
        return Err(Refusal::too_many_watches(log.execution.as_str()));
    };
    let mut follower = app.engine.follow_log(log.execution, after).await?;
    if last_event.is_some() && follower.is_over().await? {
        // A browser that comes back after the end is told not to.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let guest = Guest::new(log.caller.clone(), headers, app.clone());
    let feed = Feed {
        follower,
        caller: log.caller.clone(),
        execution: log.execution.clone(),
        view: log.view,
        filter,
        seen: after,
        pulse: Box::pin(tokio::time::sleep(app.settings.watch_heartbeat)),
        closing,
        is_over: false,
        _permit: permit,
        app,
    };
    let events = futures_util::stream::unfold(feed, |mut feed| async move {
        let events = feed.events().await?;
        Some((events, feed))
    });
    Ok(sse::answer(guest, events))
}

/// The line that a client saw last.
fn last_event(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get("last-event-id").filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.to_str().ok().and_then(whole_number) {
        Some(line) => Ok(Some(line)),
        None => Err(bad_last_event("it is not the number of a line")),
    }
}

fn bad_last_event(reason: &str) -> Refusal {
    let detail = format!("invalid Last-Event-ID: {reason}");
    Refusal::new(StatusCode::BAD_REQUEST, detail).noticed(Notice::InvalidRequest)
}

/// One open stream.
struct Feed {
    app: App,
    follower: LogFollower,
    caller: Caller,
    execution: ExecutionId,
    view: View,
    filter: LineFilter,
    /// The last line that was looked at.
    seen: u64,
    pulse: Pin<Box<Sleep>>,
    closing: CancellationToken,
    is_over: bool,
    _permit: OwnedSemaphorePermit,
}

impl Feed {
    /// What is to be sent next; `None` when the stream is over.
    async fn events(&mut self) -> Option<Bytes> {
        while !self.is_over {
            let next = tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                // Also while a filter leaves out one line after the other.
                () = &mut self.pulse => {
                    self.rest();
                    // Somebody may have written and died before anybody was told. What cannot be read now is, before it is missed.
                    let _ = self.follower.look_again().await;
                    return Some(Bytes::from_static(b": alive\n\n"));
                }
                next = self.follower.next() => next,
            };
            let told = match next {
                Ok(Some(lines)) => {
                    self.seen = lines.last().map_or(self.seen, |(number, _)| *number);
                    self.told(&lines)
                }
                Ok(None) => {
                    self.is_over = true;
                    self.last_word().await?
                }
                Err(error) => {
                    // A stream has no status left to say it with: it ends, and the client comes back.
                    tracing::warn!(run_id = %self.execution, reason = %error, "a stream of lines ends");
                    return None;
                }
            };
            if !told.is_empty() {
                self.rest();
                return Some(told.into());
            }
        }
        None
    }

    /// JSON has its line breaks escaped, so each line is one line of data.
    fn told(&self, lines: &[pyoco_engine::NumberedLine]) -> String {
        let mut text = String::new();
        for (number, line) in lines.iter().filter(|(_, line)| self.filter.wants(line)) {
            let data = serde_json::to_string(&entry(*number, line)).unwrap_or_default();
            // Writing to a text does not fail.
            let _ = write!(text, "event: logEntry\nid: {number}\ndata: {data}\n\n");
        }
        text
    }

    /// How it ended. It has the number of the last line, so that whoever comes back with it is told that all was told.
    async fn last_word(&self) -> Option<String> {
        let log = Log { caller: &self.caller, execution: &self.execution, view: self.view };
        match self.app.log_of(&log, |state| log.view.last_word(state)).await {
            Ok(data) => Some(format!("event: status\nid: {}\ndata: {data}\n\n", self.seen)),
            Err(refusal) => {
                tracing::warn!(run_id = %self.execution, reason = ?refusal, "a stream of lines ends without a word");
                None
            }
        }
    }

    /// The next sign of life is due so long from now.
    fn rest(&mut self) {
        let heartbeat: Duration = self.app.settings.watch_heartbeat;
        self.pulse.as_mut().reset(tokio::time::Instant::now() + heartbeat);
    }
}
