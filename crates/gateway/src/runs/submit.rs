//! Submitting a flow by name.

use axum::extract::{Request, State};
use axum::{Extension, Json};
use pyoco_api::{ErrorBody, SubmitRequest, Submitted};
use pyoco_core::command::{CreateExecution, Workflow};
use pyoco_core::ids::{CommandId, Tag};
use pyoco_core::json::Object;
use pyoco_core::notice::Notice;
use pyoco_core::outcome::{Reason, Rejection};
use pyoco_core::view::RunStatus;
use pyoco_engine::{EngineError, Flow, Submission};
use serde_json::{Map, Value, json};

use super::key;
use crate::audit::Told;
use crate::caller::Caller;
use crate::docs::{Always, Bodied, Writing};
use crate::error::Refusal;
use crate::server::Hosting;
use crate::trace::{TraceHeader, traceparent};
use crate::unhurried::to_its_end;
use crate::validation::{self, Inputs};
use crate::{App, Shared};

/// What a submission is answered, and what the audit trail is told.
pub(super) type Answer = (Extension<Told>, Json<Submitted>);

/// What is to be run.
pub(super) struct Wanted {
    pub(super) flow_name: String,
    pub(super) params: Map<String, Value>,
    pub(super) tag: Tag,
    pub(super) tags: Vec<String>,
    pub(super) workflow: Option<Workflow>,
    /// The trace that the caller is in.
    pub(super) traceparent: Option<String>,
}

/// Submits a run of a flow that workers know by name.
#[utoipa::path(post, operation_id = "submitRun", tag = "runs", path = "/runs", request_body = SubmitRequest, params(
    ("X-Idempotency-Key" = Option<String>, Header, description = "a repeat under the same key makes no second run"), TraceHeader
), responses(
    (status = 200, description = "It is kept, and will be run.", body = Submitted),
    (status = 409, description = "The key was used with another request.", body = ErrorBody),
    (status = 422, description = "The body is no JSON, or no submission.", body = ErrorBody), Bodied, Writing, Always
))]
pub(crate) async fn submit(
    State(app): State<App>,
    caller: Caller,
    hosting: Hosting,
    request: Request,
) -> Result<Answer, Refusal> {
    let (key, traceparent) = (key(request.headers()), traceparent(request.headers()));
    let members = validation::object(request, hosting.limits.body_timeout, Notice::InvalidRequest).await?;
    let wanted = Wanted { traceparent, ..read(members, &app.settings.default_tag)? };
    app.submit(&caller, "POST /runs", key?, wanted).await
}

/// Parameters may hold secrets, and errors end up in logs: what holds a text is not repeated.
fn unconfidential(params: Value) -> Value {
    fn holds_text(value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(_) => true,
            Value::Array(items) => items.iter().any(holds_text),
            Value::Object(members) => members.values().any(holds_text),
        }
    }
    if holds_text(&params) { Value::Null } else { params }
}

/// Checks the members of a submission, all of them before it is refused.
fn read(mut members: Map<String, Value>, default_tag: &Tag) -> Result<Wanted, Refusal> {
    let mut inputs = Inputs::default();
    let whole = || {
        let mut members = members.clone();
        if let Some(params) = members.get_mut("params") {
            *params = unconfidential(params.take());
        }
        Value::Object(members)
    };
    let mut flow_name = String::new();
    match members.get("flow_name") {
        None => inputs.missing(body(["flow_name".into()]), whole()),
        Some(Value::String(name)) if !name.is_empty() => flow_name.clone_from(name),
        Some(Value::String(_)) => {
            let (rule, ctx) = ("String should have at least 1 character", json!({"min_length": 1}));
            inputs.wrong("string_too_short", body(["flow_name".into()]), rule, json!(""), Some(ctx));
        }
        Some(other) => not_a_string(&mut inputs, body(["flow_name".into()]), other),
    }
    let params = match members.get_mut("params").map(Value::take) {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(other) => {
            let rule = "Input should be a valid dictionary";
            inputs.wrong("dict_type", body(["params".into()]), rule, unconfidential(other), None);
            Map::new()
        }
    };
    let tag = match members.get("tag") {
        None | Some(Value::Null) => default_tag.clone(),
        Some(Value::String(text)) => read_tag(&mut inputs, text).unwrap_or_else(|| default_tag.clone()),
        Some(other) => {
            not_a_string(&mut inputs, body(["tag".into()]), other);
            default_tag.clone()
        }
    };
    let tags = read_tags(&mut inputs, members.get("tags"));
    inputs.finish(Notice::InvalidRequest)?;
    let tags = if tags.is_empty() { vec![tag.as_str().to_owned()] } else { tags };
    Ok(Wanted { flow_name, params, tag, tags, workflow: None, traceparent: None })
}

fn read_tag(inputs: &mut Inputs, text: &str) -> Option<Tag> {
    const PATTERN: &str = "^[A-Za-z0-9_-]+$";
    const LONGEST: usize = 128;
    let is_tag =
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    match Tag::new(text) {
        Ok(tag) => return Some(tag),
        Err(_) if is_tag => {
            let rule = format!("String should have at most {LONGEST} characters");
            let ctx = json!({"max_length": LONGEST});
            inputs.wrong("string_too_long", body(["tag".into()]), rule, json!(text), Some(ctx));
        }
        Err(_) => {
            let rule = format!("String should match pattern '{PATTERN}'");
            let ctx = json!({"pattern": PATTERN});
            inputs.wrong("string_pattern_mismatch", body(["tag".into()]), rule, json!(text), Some(ctx));
        }
    }
    None
}

fn read_tags(inputs: &mut Inputs, given: Option<&Value>) -> Vec<String> {
    let items = match given {
        None => return Vec::new(),
        Some(Value::Array(items)) => items,
        Some(other) => {
            let rule = "Input should be a valid list";
            inputs.wrong("list_type", body(["tags".into()]), rule, other.clone(), None);
            return Vec::new();
        }
    };
    let mut tags = Vec::with_capacity(items.len());
    for (position, item) in (0_u64..).zip(items) {
        if let Some(tag) = item.as_str() {
            tags.push(tag.to_owned());
        } else {
            let place = pyoco_api::Location::Position(position);
            not_a_string(inputs, body(["tags".into(), place]), item);
        }
    }
    tags
}

fn not_a_string(inputs: &mut Inputs, loc: Vec<pyoco_api::Location>, given: &Value) {
    inputs.wrong("string_type", loc, "Input should be a valid string", given.clone(), None);
}

fn body<const N: usize>(way: [pyoco_api::Location; N]) -> Vec<pyoco_api::Location> {
    std::iter::once("body".into()).chain(way).collect()
}

impl Shared {
    /// Creates and starts a run; answers when that is written down and queued, and not before.
    pub(super) async fn submit(
        &self,
        caller: &Caller,
        endpoint: &'static str,
        key: Option<CommandId>,
        wanted: Wanted,
    ) -> Result<Answer, Refusal> {
        let (flow_name, tag) = (wanted.flow_name.clone(), wanted.tag.clone());
        // A name may be that of a registered graph; a text is what it is.
        let flow = if wanted.workflow.is_some() { Flow::Given } else { Flow::Named };
        let command = CreateExecution {
            graph_id: wanted.flow_name,
            input: Object(wanted.params),
            tag: Some(wanted.tag),
            labels: wanted.tags,
            tenant_id: caller.tenant.clone(),
            api_key_id: caller.key.clone(),
            workflow: wanted.workflow,
            graph_version: None,
            plan: None,
            retry_of: None,
            keep: None,
            traceparent: wanted.traceparent,
            start: true,
        };
        let submission = Submission {
            command,
            flow,
            issuer: caller.issuer(),
            endpoint: endpoint.into(),
            key,
            digest: None,
            is_key_made_up: false,
            correlation_id: None,
        };
        let engine = self.engine.clone();
        let submitted = to_its_end(async move { engine.submit(submission).await }).await?;
        let submitted = submitted.map_err(|error| refused(error).of_flow(&flow_name, tag.as_str()))?;
        let run_id = submitted.execution.to_string();
        // A repeat is answered what the first asking was answered.
        let told = Extension(Told::made(&submitted.execution));
        Ok((told, Json(Submitted { run_id, status: RunStatus::Pending, extra: Map::new() })))
    }
}

fn refused(error: EngineError) -> Refusal {
    match error {
        EngineError::Rejected(Rejection { reason: Reason::KeyReused, .. }) => {
            let detail = "this idempotency key was used with another request";
            Refusal::new(axum::http::StatusCode::CONFLICT, detail).noticed(Notice::InvalidRequest)
        }
        EngineError::Rejected(_) | EngineError::Store(_) | EngineError::Unfollowed(_) => error.into(),
        EngineError::Log { .. } | EngineError::Busy(_) => error.into(),
        EngineError::UnknownGraph(_) | EngineError::UnusableGraph { .. } => error.into(),
    }
}
