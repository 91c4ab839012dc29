//! Submitting a flow with its text, as a form with a file.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{FromRequest as _, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::BytesMut;
use pyoco_api::{ErrorBody, Submitted};
use pyoco_core::command::Workflow;
use pyoco_core::digest::Digest;
use pyoco_core::ids::Tag;
use pyoco_core::notice::Notice;
use pyoco_flow::{FlowError, Limits};
use serde_json::{Map, Value, json};

use super::checked::Defaults;
use super::key;
use super::submit::{Answer, Wanted};
use crate::App;
use crate::body::{Intake, Trouble};
use crate::caller::Caller;
use crate::docs::{Always, Bodied, Writing};
use crate::error::Refusal;
use crate::server::Hosting;
use crate::trace::{TraceHeader, traceparent};
use crate::unhurried::to_its_end;
use crate::validation::Inputs;

/// Room for the form around the file, and for its other fields.
const FORM_BYTES: usize = 64 << 10;
/// The longest text of a field that is not the file.
const TEXT_BYTES: usize = 8 << 10;
const PART_HEADER_BYTES: usize = 8 << 10;
const MOST_PARTS: usize = 16;
/// What is said of a file where a text belongs.
const NO_TEXT: &str = "Input should be a valid string";

/// The form of `POST /runs/yaml`.
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "describes the form for OpenAPI; it is read part by part")]
pub(crate) struct SubmitYamlForm {
    /// The flow.yaml.
    #[schema(value_type = String, format = Binary, example = "version: 1\nflow: {graph: 'flow >> hello'}\ntasks: {hello: {callable: 'hello:greet'}}\n")]
    workflow: Vec<u8>,
    /// What to call the flow.
    #[schema(min_length = 1, example = "main")]
    flow_name: String,
    /// Which workers may run it.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,128}$", example = "default")]
    tag: Option<String>,
}

/// Submits a run of a flow.yaml. Its parameters are the flow's defaults.
#[utoipa::path(post, operation_id = "submitWorkflow", tag = "runs", path = "/runs/yaml", request_body(content = SubmitYamlForm, content_type = "multipart/form-data"),
    params(("X-Idempotency-Key" = Option<String>, Header, description = "a repeat under the same key makes no second run"), TraceHeader),
    responses(
    (status = 200, description = "It is kept, and will be run.", body = Submitted),
    (status = 409, description = "The key was used with another request.", body = ErrorBody),
    (status = 422, description = "A part is missing, or the flow.yaml is invalid: `errors` says where.", body = ErrorBody),
    Bodied, Writing, Always
))]
pub(crate) async fn submit_yaml(
    State(app): State<App>,
    caller: Caller,
    hosting: Hosting,
    request: Request,
) -> Result<Answer, Refusal> {
    let (key, traceparent) = (key(request.headers()), traceparent(request.headers()));
    let max_bytes = app.settings.workflow_yaml_max_bytes;
    let form = Form::read(request, max_bytes, hosting.limits.body_timeout).await?;
    let (bytes, flow_name, tag) = form.fields()?;
    let tag = read_tag(tag, &app.settings.default_tag)?;
    if form.is_too_large {
        return Err(too_large().of_flow(&flow_name, tag.as_str()));
    }
    let digest = Digest::of_bytes(&bytes);
    let defaults = match app.checked.get(&digest) {
        Some(defaults) => defaults,
        None => {
            // A large document takes a while; other requests go on meanwhile.
            let document = bytes.clone();
            let checked = tokio::task::spawn_blocking(move || check(&document, max_bytes));
            let defaults = to_its_end(checked)
                .await?
                .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?
                .map_err(|error| invalid(&error).of_flow(&flow_name, tag.as_str()))?;
            app.checked.remember(digest, &defaults);
            defaults
        }
    };
    let params = Map::clone(&defaults);
    let flow_name = flow_name.trim().to_owned();
    if flow_name.is_empty() {
        return Err(refused("missing flow_name"));
    }
    let tags = vec![tag.as_str().to_owned()];
    // What was parsed is UTF-8.
    let text = String::from_utf8_lossy(&bytes).into();
    let workflow = Some(Workflow { text, sha256: digest.to_string() });
    let wanted = Wanted { flow_name, params, tag, tags, workflow, traceparent };
    app.submit(&caller, "POST /runs/yaml", key?, wanted).await
}

/// Checks a flow.yaml with its graph, and gives its defaults.
fn check(bytes: &[u8], max_bytes: usize) -> Result<Defaults, FlowError> {
    let workflow = pyoco_flow::parse(bytes, Limits { max_bytes })?;
    Ok(Arc::new(workflow.defaults().clone()))
}

fn read_tag(given: Option<&str>, default_tag: &Tag) -> Result<Tag, Refusal> {
    match given.map(str::trim).filter(|tag| !tag.is_empty()) {
        None => Ok(default_tag.clone()),
        Some(text) => Tag::new(text).map_err(|_| refused("invalid tag")),
    }
}

fn refused(detail: &str) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail).noticed(Notice::InvalidRequest)
}

fn too_large() -> Refusal {
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "workflow too large").noticed(Notice::WorkflowTooLarge)
}

fn malformed(detail: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, detail).noticed(Notice::InvalidRequest)
}

fn invalid(error: &FlowError) -> Refusal {
    refused("invalid workflow yaml").flawed(error)
}

/// What the parts of a form say.
#[derive(Default)]
struct Form {
    workflow: Option<Part>,
    flow_name: Option<Part>,
    tag: Option<Part>,
    /// The file went over its limit; the rest was not read.
    is_too_large: bool,
}

enum Part {
    File(Bytes),
    Text(String),
}

impl Form {
    async fn read(
        request: Request,
        max_bytes: usize,
        patience: std::time::Duration,
    ) -> Result<Self, Refusal> {
        if !is_form(request.headers()) {
            // There is no such form; what it would have to have is missing.
            return Ok(Self::default());
        }
        let (parts, body) = request.into_parts();
        let intake = Intake::new(body, max_bytes.saturating_add(FORM_BYTES), patience);
        let trouble = intake.trouble();
        let request = Request::from_parts(parts, Body::from_stream(intake));
        let form = match Multipart::from_request(request, &()).await {
            Ok(form) => form,
            Err(_) => return Err(malformed("Missing boundary in multipart.")),
        };
        let mut read = Self::default();
        match read.parts(form, max_bytes).await {
            Ok(()) => Ok(read),
            Err(problem) => Err(match (trouble.get(), problem) {
                (Some(Trouble::TooLarge), _) => too_large(),
                (Some(trouble @ (Trouble::TooSlow | Trouble::Broken)), _) => trouble.refusal(),
                (None, Problem::Refused(refusal)) => refusal,
                (None, Problem::Form(error)) => {
                    malformed("Invalid multipart data.").because(error.body_text())
                }
            }),
        }
    }

    async fn parts(&mut self, mut form: Multipart, max_bytes: usize) -> Result<(), Problem> {
        let mut count = 0;
        while let Some(mut field) = form.next_field().await? {
            count += 1;
            if count > MOST_PARTS {
                return Err(malformed("too many parts").into());
            }
            if header_bytes(field.headers()) > PART_HEADER_BYTES {
                return Err(malformed("the header of a part is too long").into());
            }
            let name = field.name().unwrap_or_default().to_owned();
            let is_file = field.file_name().is_some();
            let slot = match name.as_str() {
                "workflow" => &mut self.workflow,
                "flow_name" => &mut self.flow_name,
                "tag" => &mut self.tag,
                // Read over: the form itself is bounded.
                _ => continue,
            };
            if slot.is_some() {
                return Err(malformed("a part is given twice").into());
            }
            if !is_file {
                let limit = if name == "workflow" { max_bytes } else { TEXT_BYTES };
                *slot = Some(Part::Text(limited_text(&mut field, limit).await?));
                continue;
            }
            let (bytes, is_whole) = file(&mut field, max_bytes).await?;
            *slot = Some(Part::File(bytes));
            if !is_whole {
                self.is_too_large = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// The file, the name and the tag, each of its kind. When the file was too large to be read on, what may have come
    /// after it is not missed.
    fn fields(&self) -> Result<(Bytes, String, Option<&str>), Refusal> {
        let mut inputs = Inputs::default();
        let place = |name: &'static str| ["body".into(), name.into()];
        let workflow = match &self.workflow {
            Some(Part::File(bytes)) => bytes.clone(),
            Some(Part::Text(text)) => {
                let rule = "Value error, Expected UploadFile, received: <class 'str'>";
                inputs.wrong("value_error", place("workflow"), rule, json!(text), Some(json!({"error": {}})));
                Bytes::new()
            }
            None => {
                inputs.missing(place("workflow"), Value::Null);
                Bytes::new()
            }
        };
        let flow_name = match &self.flow_name {
            Some(Part::Text(name)) if !name.is_empty() => name.clone(),
            Some(Part::File(_)) => {
                inputs.wrong("string_type", place("flow_name"), NO_TEXT, Value::Null, None);
                String::new()
            }
            None if self.is_too_large => String::new(),
            Some(Part::Text(_)) | None => {
                inputs.missing(place("flow_name"), Value::Null);
                String::new()
            }
        };
        let tag = match &self.tag {
            Some(Part::Text(tag)) => Some(tag.as_str()),
            Some(Part::File(_)) => {
                // Left out, it would send the run to workers that nobody named.
                inputs.wrong("string_type", place("tag"), NO_TEXT, Value::Null, None);
                None
            }
            None => None,
        };
        inputs.finish(Notice::InvalidRequest)?;
        Ok((workflow, flow_name, tag))
    }
}

/// Why a form was not read to its end.
enum Problem {
    Refused(Refusal),
    Form(MultipartError),
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<MultipartError> for Problem {
    fn from(error: MultipartError) -> Self {
        Self::Form(error)
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.trim_start().to_ascii_lowercase().starts_with("multipart/form-data")
}

fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

async fn limited_text(field: &mut Field<'_>, limit: usize) -> Result<String, Problem> {
    let (bytes, is_whole) = file(field, limit).await?;
    if !is_whole {
        return Err(malformed("a field of the form is too long").into());
    }
    match String::from_utf8(bytes.to_vec()) {
        Ok(text) => Ok(text),
        Err(_) => Err(malformed("a field of the form is not UTF-8").into()),
    }
}

/// Reads a part up to a limit, and says whether that was all of it.
async fn file(field: &mut Field<'_>, limit: usize) -> Result<(Bytes, bool), Problem> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = field.chunk().await? {
        if bytes.len().saturating_add(chunk.len()) > limit {
            return Ok((bytes.freeze(), false));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes.freeze(), true))
}
