//! Watching all runs: told at once that lists have changed, so that nobody has to ask again and again. What has changed is in the list.

use std::pin::Pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use pyoco_api::ErrorBody;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::notice::Notice;
use pyoco_engine::Changes;
use pyoco_ports::{Filter, StoreError};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use crate::caller::{Caller, Guest};
use crate::docs::{Always, Reading, ServerSentEvent};
use crate::error::Refusal;
use crate::query::Query;
use crate::server::Hosting;
use crate::validation::Inputs;
use crate::{App, sse};

/// Changes that come faster than this are told together.
const CALM: Duration = Duration::from_millis(50);

/// Says that runs have changed: an event `changed` at the beginning, and one after every change, at most twenty a second. What has changed
/// is what `GET /runs?updated_after=` shows.
#[utoipa::path(get, operation_id = "watchRuns", tag = "runs", path = "/runs/watch", params(
    ("timeout_sec" = Option<u32>, Query, minimum = 1, maximum = 600)
), responses(
    (status = 200, description = "The events: `changed`, or `heartbeat` when nothing has; the data of each have the time, `ts`.", body = ServerSentEvent, content_type = "text/event-stream"),
    (status = 422, description = "The query cannot be read.", body = ErrorBody), Reading, Always
))]
pub(crate) async fn watch(
    State(app): State<App>,
    caller: Caller,
    query: Query,
    hosting: Hosting,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let mut inputs = Inputs::default();
    let timeout = query.integer(&mut inputs, "timeout_sec", 1..=600, 60);
    inputs.finish(Notice::InvalidRequest)?;
    let Ok(permit) = app.watches.clone().try_acquire_owned() else {
        return Err(Refusal::too_many_watches("all"));
    };
    let guest = Guest::new(caller.clone(), &headers, app.clone());
    let feed = Feed {
        changes: app.engine.changes(),
        caller,
        newest: None,
        is_new: true,
        pulse: Box::pin(tokio::time::sleep(app.settings.watch_heartbeat)),
        end: Box::pin(tokio::time::sleep(Duration::from_secs(timeout.into()))),
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

/// One open watch.
struct Feed {
    app: App,
    caller: Caller,
    changes: Changes,
    /// The newest run of the caller's tenant that was told of.
    newest: Option<(ExecutionId, Version)>,
    /// Nothing was told yet.
    is_new: bool,
    pulse: Pin<Box<Sleep>>,
    end: Pin<Box<Sleep>>,
    closing: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Feed {
    /// The next event; `None` when the watch is over.
    async fn event(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_new) {
            // Whoever has looked at a list before may have missed something.
            let _ = self.is_news().await;
            return Some(self.say("changed"));
        }
        loop {
            tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                () = &mut self.end => return None,
                // Before what others do all the time.
                () = &mut self.pulse => return Some(self.say("heartbeat")),
                () = self.changes.next() => {}
            }
            // What comes meanwhile is told with it, and once more.
            tokio::time::sleep(CALM).await;
            match self.is_news().await {
                Ok(true) => return Some(self.say("changed")),
                Ok(false) => {}
                Err(reason) => {
                    // A stream has no status left to say it with: it ends, and the client comes back.
                    tracing::warn!(%reason, "a watch of all runs ends");
                    return None;
                }
            }
        }
    }

    /// Whether a change is the caller's: what other tenants do is not told.
    async fn is_news(&mut self) -> Result<bool, StoreError> {
        if self.caller.tenant.is_none() {
            return Ok(true);
        }
        let filter = Filter { tenant: self.caller.tenant.clone(), ..Filter::default() };
        let page = self.app.engine.store().list(&filter, 1).await?;
        let newest = page.rows.into_iter().next().map(|row| (row.execution, row.version));
        let is_news = newest != self.newest;
        self.newest = newest;
        Ok(is_news)
    }

    fn say(&mut self, event: &str) -> Bytes {
        self.pulse.as_mut().reset(tokio::time::Instant::now() + self.app.settings.watch_heartbeat);
        let data = json!({"ts": self.app.clock.now().as_unix_seconds()});
        format!("event: {event}\ndata: {data}\n\n").into()
    }
}
