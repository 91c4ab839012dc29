//! An event with its fields taken apart.

use std::error::Error;
use std::fmt::Debug;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};

/// What was said, where, and what came with it.
pub(super) struct LogEvent {
    pub(super) level: &'static str,
    pub(super) service: &'static str,
    pub(super) logger: String,
    pub(super) message: String,
    pub(super) file: &'static str,
    pub(super) line: u32,
    pub(super) function: &'static str,
    pub(super) fields: Map<String, Value>,
    pub(super) cause: Option<Cause>,
}

/// The place that the last line of a Python traceback names.
fn origin(traceback: &str) -> Option<Value> {
    let line = traceback.lines().rev().find(|line| line.trim_start().starts_with("File \""))?;
    let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let (number, function) = rest.split_once(", in ").unwrap_or((rest, ""));
    Some(json!({"file": file, "line": number.trim().parse::<u64>().ok()?, "func": function.trim()}))
}

/// An error that came with an event.
pub(super) struct Cause {
    pub(super) kind: String,
    pub(super) message: String,
    /// What it came from, outermost first.
    pub(super) chain: Vec<String>,
    /// Where it was raised, if it was elsewhere than where it is told.
    pub(super) origin: Option<Value>,
}

impl LogEvent {
    pub(super) fn of(event: &tracing::Event<'_>) -> Self {
        let metadata = event.metadata();
        let (service, logger) = names(metadata.target());
        let mut fields = Fields::default();
        event.record(&mut fields);
        // A task's own traceback comes as text; it says more than ours would.
        let traceback = match fields.members.shift_remove("traceback") {
            Some(Value::String(text)) => Some(text),
            Some(_) | None => None,
        };
        let cause = fields.cause.or_else(|| traceback_cause(traceback, &fields.members));
        Self {
            level: level(*metadata.level()),
            service,
            logger,
            message: fields.message,
            file: metadata.file().unwrap_or_default(),
            line: metadata.line().unwrap_or_default(),
            function: metadata.module_path().unwrap_or_default(),
            fields: fields.members,
            cause,
        }
    }
}

fn traceback_cause(traceback: Option<String>, fields: &Map<String, Value>) -> Option<Cause> {
    let text = traceback?;
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    let kind = last.split(':').next().unwrap_or_default().to_owned();
    let message = fields.get("reason").and_then(Value::as_str).unwrap_or(last).to_owned();
    let origin = origin(&text);
    Some(Cause { kind, message, chain: vec![text], origin })
}

/// Python's names, because operators' filters know them.
const fn level(level: tracing::Level) -> &'static str {
    match level {
        tracing::Level::ERROR => "ERROR",
        tracing::Level::WARN => "WARNING",
        tracing::Level::INFO => "INFO",
        tracing::Level::DEBUG => "DEBUG",
        tracing::Level::TRACE => "TRACE",
    }
}

/// The service and the logger, as the contract calls them.
fn names(target: &str) -> (&'static str, String) {
    let is = |prefix: &str| {
        target == prefix || target.strip_prefix(prefix).is_some_and(|rest| rest.starts_with("::"))
    };
    if is("pyoco_worker") {
        return ("pyoco-server:worker", "pyoco_server.worker".to_owned());
    }
    if is("pyoco_gateway") {
        return ("pyoco-server:http", "pyoco_server.http_api".to_owned());
    }
    let service = if target == "pyoco_server.task" { "pyoco-server:worker" } else { "pyoco-server:http" };
    (service, target.replace("::", "."))
}

#[derive(Default)]
struct Fields {
    message: String,
    members: Map<String, Value>,
    cause: Option<Cause>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.members.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.put(field, json!(format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = value.to_owned();
        } else {
            self.put(field, json!(value));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, json!(value));
    }

    fn record_error(&mut self, _field: &Field, error: &(dyn Error + 'static)) {
        // The first word of the debug form is the name of the type or of its variant.
        let debug = format!("{error:?}");
        let kind: String =
            debug.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        let mut chain = Vec::new();
        let mut cause = error.source();
        while let Some(inner) = cause {
            chain.push(inner.to_string());
            cause = inner.source();
        }
        self.cause = Some(Cause { kind, message: error.to_string(), chain, origin: None });
    }
}
