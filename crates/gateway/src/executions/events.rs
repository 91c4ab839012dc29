//! The events of an execution, page by page.

use axum::Json;
use axum::extract::State;
use pyoco_api::EventPage;
use pyoco_core::event::EventEnvelope;
use pyoco_core::ids::{EventSeq, ExecutionId};
use pyoco_core::notice::Notice;
use pyoco_engine::NumberedEvent;
use serde::{Serialize, Serializer};

use super::ExecutionPath;
use crate::App;
use crate::caller::Viewer;
use crate::docs::{Denied, Found};
use crate::error::{Denial, Refusal};
use crate::query::Query;
use crate::validation::Inputs;

/// An envelope with its number, as it is shown.
#[derive(Serialize)]
pub(super) struct Shown<'a> {
    seq: EventSeq,
    #[serde(flatten)]
    envelope: &'a EventEnvelope,
}

impl<'a> Shown<'a> {
    pub(super) fn of(event: &'a NumberedEvent) -> Option<Self> {
        Some(Self { seq: event.seq, envelope: event.envelope()? })
    }

    pub(super) const fn seq(&self) -> EventSeq {
        self.seq
    }

    pub(super) const fn kind(&self) -> &'static str {
        self.envelope.event.event_type().as_str()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    execution_id: ExecutionId,
    #[serde(serialize_with = "shown")]
    events: Vec<NumberedEvent>,
    last_seq: EventSeq,
    next: Option<EventSeq>,
}

/// What happened to an execution, oldest first.
#[utoipa::path(get, operation_id = "listEvents", tag = "executions", path = "/executions/{executionId}/events", params(
    ("executionId" = String, Path), ("after" = Option<u64>, Query, description = "only events behind this number"),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 1_000)
), responses((status = 200, description = "The events.", body = EventPage), Found, Denied))]
pub(crate) async fn events(
    State(app): State<App>,
    Viewer(caller): Viewer,
    ExecutionPath(execution): ExecutionPath,
    query: Query,
) -> Result<Json<Page>, Denial> {
    let mut inputs = Inputs::default();
    let after = query.seq(&mut inputs, "after").unwrap_or_default();
    let limit = query.integer(&mut inputs, "limit", 1..=1_000, 100);
    inputs.finish(Notice::InvalidRequest)?;
    app.must_be_seen(&caller, &execution).await?;
    let page = app.engine.events(&execution, after, limit as usize).await?;
    let page = page.ok_or_else(|| Refusal::run_not_found(execution.as_str()))?;
    let seen = page.events.last().map(|event| event.seq);
    let next = seen.filter(|seen| *seen < page.last);
    Ok(Json(Page { execution_id: execution, events: page.events, last_seq: page.last, next }))
}

fn shown<S: Serializer>(events: &[NumberedEvent], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(events.iter().filter_map(Shown::of))
}
