//! What waits for a person, over all executions.

use axum::Json;
use axum::extract::State;
use futures_util::{StreamExt as _, TryStreamExt as _};
use pyoco_api::{Extra, Location, Wait, WaitPage};
use pyoco_core::ids::NodeId;
use pyoco_core::notice::Notice;
use pyoco_core::state::{NodeStatus, State as Folded};
use pyoco_core::time::Timestamp;
use pyoco_engine::EngineError;
use pyoco_ports::{WaitFilter, WaitPlace};
use serde_json::{Value, json};

use crate::caller::Viewer;
use crate::docs::{Denied, Listed};
use crate::error::Denial;
use crate::query::Query;
use crate::validation::Inputs;
use crate::{App, opaque};

/// The longest age that can be asked for: a hundred years.
const OLDEST: f64 = 3.2e9;
/// So many executions are looked at side by side.
const LOOKS: usize = 16;

/// Nodes that wait for somebody, newest first. `POST …/resume` answers one.
#[utoipa::path(get, operation_id = "listWaits", tag = "waits", path = "/waits", params(
    ("tag" = Option<String>, Query, description = "of executions with this label"),
    ("olderThanSec" = Option<f64>, Query, minimum = 0, description = "that have waited for so long"),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 200), ("cursor" = Option<String>, Query)
), responses((status = 200, description = "The waits.", body = WaitPage), Listed, Denied))]
pub(crate) async fn list(
    State(app): State<App>,
    Viewer(caller): Viewer,
    query: Query,
) -> Result<Json<WaitPage>, Denial> {
    let mut inputs = Inputs::default();
    let limit = query.integer(&mut inputs, "limit", 1..=200, 50);
    let age = age(&mut inputs, &query);
    let cursor = query.cursor(&mut inputs, opaque::decode);
    inputs.finish(Notice::InvalidListQuery)?;
    let filter = WaitFilter {
        tenant: caller.tenant.clone(),
        label: query.filled("tag").map(str::to_owned),
        since_before: age.map(|age| before(app.clock.now(), age)),
        cursor,
    };
    let page = app.engine.store().waits(&filter, limit as usize).await?;
    let next_cursor = page.next.as_ref().map(opaque::encode);
    let looks = page.waits.into_iter().map(|place| look(app.clone(), place));
    let shown: Vec<Option<Wait>> = futures_util::stream::iter(looks).buffered(LOOKS).try_collect().await?;
    let items = shown.into_iter().flatten().collect();
    Ok(Json(WaitPage { items, next_cursor }))
}

/// The wait as it stands now; nothing if it was answered since.
async fn look(app: App, place: WaitPlace) -> Result<Option<Wait>, EngineError> {
    match app.engine.look(&place.execution, |state| shown(state, &place.node)).await {
        // One that cannot be read keeps nobody from seeing the others.
        Err(error) if error.is_hopeless() => {
            tracing::warn!(run_id = %place.execution, reason = %error, "a wait cannot be shown");
            Ok(None)
        }
        seen => Ok(seen?.flatten()),
    }
}

fn age(inputs: &mut Inputs, query: &Query) -> Option<f64> {
    let age = query.number(inputs, "olderThanSec")?;
    if (0.0..=OLDEST).contains(&age) {
        return Some(age);
    }
    let place: [Location; 2] = ["query".into(), "olderThanSec".into()];
    inputs.wrong("value_error", place, "it must be a number of seconds, 0 or more", json!(age), None);
    None
}

fn before(now: Timestamp, seconds: f64) -> Timestamp {
    #[expect(clippy::cast_possible_truncation, reason = "bounded by a hundred years")]
    let micros = (seconds * 1e6) as i64;
    Timestamp::from_micros(now.as_micros().saturating_sub(micros))
}

fn shown(state: &Folded, node_id: &NodeId) -> Option<Wait> {
    let node = state.nodes.get(node_id).filter(|node| node.status == NodeStatus::Waiting)?;
    let (waiting, origin) = (node.waiting.as_ref()?, state.origin.as_ref()?);
    Some(Wait {
        execution_id: state.id.to_string(),
        graph_id: origin.flow.clone(),
        node_id: node_id.to_string(),
        wait_key: waiting.key.clone(),
        prompt: waiting.prompt.as_ref().map_or(Value::Null, |prompt| prompt.0.clone()),
        since: waiting.since,
        tags: state.labels.clone(),
        extra: Extra::new(),
    })
}

#[cfg(test)]
mod tests {
    use pyoco_core::ids::ExecutionId;

    use super::*;

    #[test]
    fn a_cursor_survives_its_text_form() {
        let place = WaitPlace {
            since: Timestamp::from_micros(1_700_000_000_123_456),
            execution: ExecutionId::new("e-1").unwrap(),
            node: NodeId::new("retry/2/frage?").unwrap(),
        };
        assert_eq!(opaque::decode(&opaque::encode(&place)), Some(place));
    }
}
