//! The spans of one execution: one for the whole, one for each attempt of a task. They are made from its log, so that whoever makes
//! them again makes the same.

use std::collections::HashMap;

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use pyoco_core::event::{ErrorInfo, Event, EventEnvelope};
use pyoco_core::ids::{Attempt, EventSeq, ExecutionId, NodeId, WorkerId};
use pyoco_core::state::{Phase, State};
use pyoco_core::time::Timestamp;
use pyoco_core::trace::TraceContext;
use pyoco_engine::{Engine, EngineError};

/// So many events are read at a time.
const PAGE: usize = 1_000;
/// More attempts of one execution are not told of one by one.
const MOST_ATTEMPTS: usize = 10_000;
/// So much of an error's message is told.
const MESSAGE_CHARACTERS: usize = 1_024;
/// Beside the flags of the trace: whether the parent is another program's is known, and it is.
const PARENT_KNOWN: u32 = 0x100;
const PARENT_REMOTE: u32 = 0x200;

/// The spans of an execution that has ended; none if its caller wants none kept.
pub(super) async fn of(engine: &Engine, execution: &ExecutionId) -> Result<Vec<Span>, EngineError> {
    let whole = engine.look(execution, |state| (state.traced_by(), Whole::of(state))).await?;
    let Some((caller, Some(whole))) = whole else { return Ok(Vec::new()) };
    let context = TraceContext::of_execution(execution, caller);
    if !context.is_sampled() {
        return Ok(Vec::new());
    }
    let mut attempts = Attempts { execution, context, known: HashMap::new(), spans: Vec::new(), left_out: 0 };
    let mut after = EventSeq(0);
    while let Some(page) = engine.events(execution, after, PAGE).await? {
        let Some(last) = page.events.last() else { break };
        after = last.seq;
        page.events.iter().filter_map(|event| event.envelope()).for_each(|event| attempts.take(event));
        if after >= page.last {
            break;
        }
    }
    attempts.finish(&whole);
    let repeated = match &whole.retry_of {
        Some(repeated) => {
            let caller = engine.look(repeated, State::traced_by).await?;
            caller.map(|caller| TraceContext::of_execution(repeated, caller))
        }
        None => None,
    };
    let root = whole.span(caller, context, repeated, attempts.left_out);
    let mut spans = attempts.spans;
    spans.insert(0, root);
    Ok(spans)
}

/// What is told of an execution as a whole.
struct Whole {
    started_at: Timestamp,
    ended_at: Timestamp,
    phase: Phase,
    error: Option<ErrorInfo>,
    flow: String,
    attributes: Vec<KeyValue>,
    retry_of: Option<ExecutionId>,
}

impl Whole {
    /// `None` if it has not ended.
    fn of(state: &State) -> Option<Self> {
        let origin = state.origin.as_deref()?;
        let mut attributes =
            vec![text("pyoco.run.id", state.id.as_str()), text("pyoco.flow.name", &origin.flow)];
        let mut add = |name, value: Option<&str>| attributes.extend(value.map(|value| text(name, value)));
        add("pyoco.tag", origin.tag.as_ref().map(|tag| tag.as_str()));
        add("pyoco.tenant.id", origin.tenant.as_ref().map(|tenant| tenant.as_str()));
        add("pyoco.run.retry_of", origin.retry_of.as_ref().map(|repeated| repeated.as_str()));
        add("pyoco.run.status", Some(&state.phase.status().to_string()));
        attributes.extend(origin.graph_version.map(|version| number("pyoco.flow.version", version)));
        let failure = state.failure.as_ref().filter(|_| state.phase == Phase::Failed);
        Some(Self {
            started_at: state.started_at.unwrap_or(origin.at),
            ended_at: state.ended_at?,
            phase: state.phase,
            error: failure.map(|failure| failure.error.clone()),
            flow: origin.flow.clone(),
            attributes,
            retry_of: origin.retry_of.clone(),
        })
    }

    fn span(
        self,
        caller: Option<TraceContext>,
        context: TraceContext,
        repeated: Option<TraceContext>,
        left_out: u64,
    ) -> Span {
        let mut attributes = self.attributes;
        if left_out > 0 {
            attributes.push(number("pyoco.attempts.left_out", left_out));
        }
        let link = |repeated: TraceContext| Link {
            trace_id: repeated.trace.to_vec(),
            span_id: repeated.span.to_vec(),
            attributes: vec![text("pyoco.link", "retry_of")],
            flags: u32::from(repeated.flags()),
            ..Link::default()
        };
        let remote = if caller.is_some() { PARENT_KNOWN | PARENT_REMOTE } else { PARENT_KNOWN };
        let status = match self.phase {
            Phase::Failed => failed(self.error.as_ref(), &mut attributes),
            // A cancel is what somebody wanted.
            Phase::Completed | Phase::Canceled => Status::default(),
            Phase::Absent | Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => {
                Status::default()
            }
        };
        Span {
            trace_id: context.trace.to_vec(),
            span_id: context.span.to_vec(),
            parent_span_id: caller.map(|caller| caller.span.to_vec()).unwrap_or_default(),
            flags: u32::from(context.flags()) | remote,
            name: self.flow,
            // Whoever asked for it does not wait for it.
            kind: SpanKind::Consumer.into(),
            start_time_unix_nano: nanos(self.started_at),
            end_time_unix_nano: nanos(self.ended_at.max(self.started_at)),
            attributes,
            links: repeated.map(link).into_iter().collect(),
            status: Some(status),
            ..Span::default()
        }
    }
}

/// The attempts of an execution, as its events tell of them.
struct Attempts<'a> {
    execution: &'a ExecutionId,
    context: TraceContext,
    /// Tasks that were reached, with the attempt that was made last.
    known: HashMap<NodeId, Tried>,
    spans: Vec<Span>,
    left_out: u64,
}

#[derive(Default)]
struct Tried {
    last: Attempt,
    running: Option<Running>,
}

/// An attempt that has not ended.
struct Running {
    attempt: Attempt,
    since: Timestamp,
    worker: Option<WorkerId>,
}

/// How an attempt ended.
enum Outcome<'a> {
    Succeeded,
    Failed(Option<&'a ErrorInfo>),
    Canceled,
    /// With its worker.
    Lost,
}

impl Outcome<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed(_) => "failed",
            Self::Canceled => "canceled",
            Self::Lost => "lost",
        }
    }
}

impl Attempts<'_> {
    fn take(&mut self, envelope: &EventEnvelope) {
        let at = envelope.occurred_at;
        match &envelope.event {
            Event::NodeCreated(node) if matches!(node.node_type.as_str(), "Task" | "Wait") => {
                self.known.entry(node.node_id.clone()).or_default();
            }
            Event::NodeStarted(started) => {
                let Some(tried) = self.known.get_mut(&started.node_id) else { return };
                tried.last = started.attempt;
                let (attempt, worker) = (started.attempt, started.worker_id.clone());
                let before = tried.running.replace(Running { attempt, since: at, worker });
                if let Some(before) = before {
                    self.ended(&started.node_id, &before, at, &Outcome::Lost);
                }
            }
            Event::NodeWaiting(waiting) => {
                let Some(tried) = self.known.get_mut(&waiting.node_id) else { return };
                // A wait begins without a start; a task that waits goes on with its attempt.
                if tried.running.is_none() {
                    tried.last = tried.last.next();
                    tried.running = Some(Running { attempt: tried.last, since: at, worker: None });
                }
            }
            Event::NodeSucceeded(node) => self.end(&node.node_id, at, &Outcome::Succeeded),
            Event::NodeFailReported(node) => {
                self.end(&node.node_id, at, &Outcome::Failed(node.error.as_ref()));
            }
            Event::NodeFailed(node) => self.end(&node.node_id, at, &Outcome::Failed(node.error.as_ref())),
            Event::NodeCanceled(node) => self.end(&node.node_id, at, &Outcome::Canceled),
            Event::NodeCreated(_) | Event::NodeReady(_) | Event::NodeProgressReported(_) => {}
            Event::NodeResumed(_) | Event::NodeResumeRequested(_) | Event::NodeInterruptRequested(_) => {}
            Event::NodeCancelRequested(_) | Event::ForkOpened(_) | Event::JoinGateUpdated(_) => {}
            Event::JoinPassed(_) | Event::ExecutionCreated(_) | Event::ExecutionStarted(_) => {}
            Event::ExecutionCompleted(_) | Event::ExecutionArchived(_) | Event::ExecutionCanceled(_) => {}
            Event::ExecutionCancelRequested(_) | Event::ExecutionFailRequested(_) => {}
            Event::ExecutionFailed(_) => {}
        }
    }

    /// What runs when the execution ends is ended with it.
    fn finish(&mut self, whole: &Whole) {
        let open: Vec<_> = self
            .known
            .iter_mut()
            .filter_map(|(node, tried)| tried.running.take().map(|running| (node.clone(), running)))
            .collect();
        let outcome = if whole.phase == Phase::Canceled { Outcome::Canceled } else { Outcome::Lost };
        for (node, running) in open {
            self.ended(&node, &running, whole.ended_at, &outcome);
        }
        self.spans.sort_by_key(|span| span.start_time_unix_nano);
    }

    fn end(&mut self, node: &NodeId, at: Timestamp, outcome: &Outcome<'_>) {
        if let Some(running) = self.known.get_mut(node).and_then(|tried| tried.running.take()) {
            self.ended(node, &running, at, outcome);
        }
    }

    fn ended(&mut self, node: &NodeId, running: &Running, at: Timestamp, outcome: &Outcome<'_>) {
        if self.spans.len() >= MOST_ATTEMPTS {
            self.left_out += 1;
            return;
        }
        let mut attributes = vec![
            text("pyoco.run.id", self.execution.as_str()),
            text("pyoco.node.id", node.as_str()),
            number("pyoco.attempt", running.attempt.0.into()),
            text("pyoco.outcome", outcome.name()),
        ];
        attributes.extend(running.worker.as_ref().map(|worker| text("pyoco.worker.id", worker.as_str())));
        let status = match outcome {
            Outcome::Failed(error) => failed(*error, &mut attributes),
            Outcome::Lost => {
                let message = "its worker was lost".to_owned();
                attributes.push(text("error.type", "LOST"));
                Status { message, code: StatusCode::Error.into() }
            }
            Outcome::Succeeded | Outcome::Canceled => Status::default(),
        };
        let context = self.context.of_attempt(self.execution, node, running.attempt);
        self.spans.push(Span {
            trace_id: context.trace.to_vec(),
            span_id: context.span.to_vec(),
            parent_span_id: self.context.span.to_vec(),
            flags: u32::from(context.flags()) | PARENT_KNOWN,
            name: node.as_str().to_owned(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: nanos(running.since),
            end_time_unix_nano: nanos(at.max(running.since)),
            attributes,
            status: Some(status),
            ..Span::default()
        });
    }
}

/// The status of what failed; which kind of failure it was is an attribute.
fn failed(error: Option<&ErrorInfo>, attributes: &mut Vec<KeyValue>) -> Status {
    let code = error.and_then(|error| error.code.as_deref()).unwrap_or("FAILED");
    attributes.push(text("error.type", code));
    let message = error.map(ErrorInfo::text).unwrap_or_default();
    Status { message: message.chars().take(MESSAGE_CHARACTERS).collect(), code: StatusCode::Error.into() }
}

/// An attribute that is a text.
pub(super) fn text(name: &str, value: &str) -> KeyValue {
    attribute(name, Value::StringValue(value.to_owned()))
}

fn number(name: &str, value: u64) -> KeyValue {
    attribute(name, Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn attribute(name: &str, value: Value) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// Nanoseconds since 1970; before that there was nothing to trace.
fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.as_micros()).unwrap_or_default().saturating_mul(1_000)
}
