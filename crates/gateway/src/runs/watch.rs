//! Watching a run: a snapshot for each change, as it happens, and a sign of life in between.
//!
//! Nothing is asked again and again: the engine tells when the run changed. The stream makes its next event when the
//! connection takes it, so a slow reader gets the newest snapshot and misses only what lay between. A snapshot is written once for all
//! who watch the run (`latest`).

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use pyoco_api::ErrorBody;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::notice::Notice;
use pyoco_engine::Watcher;
use serde::Serialize;
use serde_json::json;
use serde_json::ser::Formatter;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use super::RunId;
use super::latest::{Shelf, Written};
use super::snapshot::{Room, Shown, wants_records, with_lack_of_worker};
use crate::caller::{Caller, Guest};
use crate::docs::{Always, Reading, ServerSentEvent};
use crate::error::Refusal;
use crate::query::Query;
use crate::server::Hosting;
use crate::validation::Inputs;
use crate::{App, sse};

/// Snapshots of a run as server-sent events, the first at once. `Last-Event-ID` goes on behind what was seen.
#[utoipa::path(get, operation_id = "watchRun", tag = "runs", path = "/runs/{run_id}/watch", params(
    ("run_id" = String, Path), ("include" = Option<Vec<String>>, Query, description = "`records`, `full` or `all`: with task records"),
    ("since" = Option<f64>, Query, description = "only snapshots that changed then or later"),
    ("timeout_sec" = Option<u32>, Query, minimum = 1, maximum = 600),
    ("Last-Event-ID" = Option<u64>, Header)
), responses(
    (status = 200, description = "The events; the data of each are a `WatchData`.", body = ServerSentEvent, content_type = "text/event-stream"),
    (status = 400, description = "`Last-Event-ID` is not the number of an event of this run.", body = ErrorBody),
    (status = 404, description = "There is no such run.", body = ErrorBody),
    (status = 422, description = "The query cannot be read.", body = ErrorBody), Reading, Always
))]
pub(crate) async fn watch(
    State(app): State<App>,
    caller: Caller,
    RunId(run): RunId,
    query: Query,
    hosting: Hosting,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let mut inputs = Inputs::default();
    let timeout = query.integer(&mut inputs, "timeout_sec", 1..=600, 60);
    let since = query.number(&mut inputs, "since");
    inputs.finish(Notice::InvalidRequest)?;
    let seen_event = last_event_id(&headers)?;
    // Before it is watched: what is not there leaves no trace.
    app.run_seen(&caller, &run, |_| ()).await?;
    let Ok(permit) = app.watches.clone().try_acquire_owned() else {
        return Err(Refusal::too_many_watches(run.as_str()));
    };
    let watcher = app.engine.watch(&run);
    let with_records = wants_records(&query);
    let mut first = app.shown(&caller, &run, with_records).await?;
    // Only here: a run that somebody takes changes, and the next snapshot says so.
    with_lack_of_worker(&app, &mut first).await;
    if seen_event.is_some_and(|seen| seen > first.event) {
        return Err(bad_last_event_id("there is no such event yet").of_run(run.as_str()));
    }
    let is_new = seen_event.is_none_or(|seen| first.event > seen);
    let guest = Guest::new(caller.clone(), &headers, app.clone());
    let mut room = Room::new(&app);
    let feed = Feed {
        latest: app.latest.of(&run),
        run,
        caller,
        with_records,
        since,
        watcher,
        shown_version: first.version,
        next: is_new.then(|| Arc::new(Written::of(first, &mut room))),
        room,
        pulse: Box::pin(tokio::time::sleep(app.settings.watch_heartbeat)),
        end: Box::pin(tokio::time::sleep(std::time::Duration::from_secs(timeout.into()))),
        closing: hosting.closing,
        _permit: permit,
        app,
    };
    let events = futures_util::stream::unfold(feed, |mut feed| async move {
        let event = feed.event().await?;
        Some((event, feed))
    });
    Ok(sse::answer(guest, events))
}

/// The event that a client saw last.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get("last-event-id").filter(|value| !value.is_empty()) else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    match text.and_then(|text| text.parse().ok()) {
        Some(event) => Ok(Some(event)),
        None => Err(bad_last_event_id("it is not the number of an event")),
    }
}

fn bad_last_event_id(reason: &str) -> Refusal {
    let detail = format!("invalid Last-Event-ID: {reason}");
    Refusal::new(StatusCode::BAD_REQUEST, detail).noticed(Notice::InvalidRequest)
}

/// One open watch.
struct Feed {
    app: App,
    caller: Caller,
    run: ExecutionId,
    with_records: bool,
    room: Room,
    since: Option<f64>,
    watcher: Watcher,
    /// The newest record that was shown, or that the client has seen.
    shown_version: Version,
    next: Option<Arc<Written>>,
    /// What others who watch the same run have written already.
    latest: Arc<Shelf>,
    pulse: Pin<Box<Sleep>>,
    end: Pin<Box<Sleep>>,
    closing: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Feed {
    /// The next event; `None` when the watch is over.
    async fn event(&mut self) -> Option<Bytes> {
        loop {
            if let Some(written) = self.next.take()
                && self.since.is_none_or(|since| written.updated_at.is_some_and(|at| at >= since))
            {
                self.rest();
                return Some(self.snapshot(&written));
            }
            tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                () = &mut self.end => return None,
                _ = self.watcher.changed() => {}
                () = &mut self.pulse => {
                    self.rest();
                    return Some(self.heartbeat());
                }
            }
            let written = match self.look().await {
                Ok(written) => written,
                Err(refusal) => {
                    // A stream has no status left to say it with: it ends, and the client comes back.
                    tracing::warn!(run_id = %self.run, reason = ?refusal, "a watch ends");
                    return None;
                }
            };
            if written.version > self.shown_version {
                self.shown_version = written.version;
                self.next = Some(written);
            }
        }
    }

    /// The run as it is now. Whoever looks first writes it down for all.
    async fn look(&mut self) -> Result<Arc<Written>, Refusal> {
        let (latest, with_records) = (&self.latest, self.with_records);
        let seen = self.app.run_seen(&self.caller, &self.run, |state| {
            latest.get(state, with_records).ok_or_else(|| Box::new(Shown::of(state, with_records)))
        });
        let shown = match seen.await? {
            Ok(written) => return Ok(written),
            Err(shown) => self.app.with_foreign(&self.run, *shown).await?,
        };
        let is_of_the_log = !shown.may_be_foreign;
        let written = Arc::new(Written::of(shown, &mut self.room));
        if is_of_the_log {
            self.latest.put(written.clone(), with_records);
        }
        Ok(written)
    }

    /// The next sign of life is due so long from now.
    fn rest(&mut self) {
        self.pulse.as_mut().reset(tokio::time::Instant::now() + self.app.settings.watch_heartbeat);
    }

    fn now(&self) -> f64 {
        self.app.clock.now().as_unix_seconds()
    }

    fn snapshot(&self, written: &Written) -> Bytes {
        let (run, ts, event) = (ascii(&self.run), ascii(&self.now()), written.event.to_string());
        // In one piece: a snapshot may be long, and each who watches gets a copy.
        let head = "event: snapshot\ndata: {\"run_id\":";
        let (snapshot, tail) = (written.text.as_str(), "}\nid: ");
        [head, &run, ",\"snapshot\":", snapshot, ",\"ts\":", &ts, tail, &event, "\n\n"].concat().into()
    }

    fn heartbeat(&self) -> Bytes {
        let data = json!({"run_id": self.run, "ts": self.now()});
        format!("event: heartbeat\ndata: {}\n\n", ascii(&data)).into()
    }
}

/// JSON in ASCII, on one line.
pub(super) fn ascii(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    // What is shown has a JSON form, and writing to memory does not fail.
    let _ = value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Ascii));
    String::from_utf8(bytes).unwrap_or_default()
}

/// Writes what is not ASCII as `\uXXXX`.
struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(|character: char| !character.is_ascii()) {
            let (plain, other) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let mut characters = other.chars();
            if let Some(character) = characters.next() {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn data_is_ascii_on_one_line_and_reads_back_as_it_was() {
        let value = json!({"é": "日本\n\u{1F600} plain \"q\"", "n": [1.5, null]});
        let text = ascii(&value);
        assert!(text.is_ascii() && !text.contains('\n'), "{text}");
        assert!(text.contains("\\u00e9") && text.contains("\\ud83d\\ude00"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
