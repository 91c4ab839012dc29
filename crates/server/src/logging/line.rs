//! An event as a line: JSON for machines, text for people.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::event::{Cause, LogEvent};
use crate::config::LogConfig;

pub(super) fn json(event: &LogEvent, config: &LogConfig) -> String {
    let mut members = Map::new();
    members.insert("ts".to_owned(), json!(now(config.utc)));
    members.insert("service".to_owned(), json!(event.service));
    members.insert("level".to_owned(), json!(event.level));
    members.insert("logger".to_owned(), json!(event.logger));
    members.insert("message".to_owned(), json!(event.message));
    members.insert("pathname".to_owned(), json!(event.file));
    members.insert("lineno".to_owned(), json!(event.line));
    members.insert("func".to_owned(), json!(event.function));
    members.insert("process".to_owned(), json!(std::process::id()));
    members.insert("thread".to_owned(), json!(std::thread::current().name().unwrap_or("unnamed")));
    for (name, value) in &event.fields {
        members.entry(name.as_str()).or_insert_with(|| value.clone());
    }
    if let Some(cause) = &event.cause {
        members.insert("exc_type".to_owned(), json!(cause.kind));
        members.insert("exc_message".to_owned(), json!(cause.message));
        if config.traceback {
            members.insert("exc_traceback".to_owned(), json!(traceback(cause)));
            let here = || json!({"file": event.file, "line": event.line, "func": event.function});
            members.insert("exc_origin".to_owned(), cause.origin.clone().unwrap_or_else(here));
        }
    }
    Value::Object(members).to_string()
}

pub(super) fn text(event: &LogEvent, config: &LogConfig) -> String {
    let LogEvent { level, service, logger, message, file, line, function, fields, cause } = event;
    let mut text = format!("{level} {service} {logger} {file}:{line} {function} - {message}");
    if !fields.is_empty() {
        let shown: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
        let _ = write!(text, " ({})", shown.join(", "));
    }
    if let Some(cause) = cause {
        let _ = write!(text, "\n{}: {}", cause.kind, cause.message);
        if config.traceback && !cause.chain.is_empty() {
            let _ = write!(text, "\n{}", traceback(cause));
        }
    }
    text
}

fn traceback(cause: &Cause) -> String {
    match cause.chain.as_slice() {
        // A text of many lines is a traceback already.
        [whole] if whole.contains('\n') => whole.clone(),
        chain => {
            let causes: Vec<String> = chain.iter().map(|cause| format!("caused by: {cause}")).collect();
            std::iter::once(cause.message.clone()).chain(causes).collect::<Vec<_>>().join("\n")
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn now(utc: bool) -> String {
    let now = Timestamp::now();
    if utc {
        return now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    }
    now.to_zoned(TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}
