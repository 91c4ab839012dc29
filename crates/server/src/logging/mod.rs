//! What the operator reads: one line an event on standard output, as JSON or as text, in the contract's fields.
//!
//! Which lines there are is said where things happen (`tracing`); here is only their form.

mod event;
mod line;

use std::io::Write;
use std::sync::Mutex;

use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{LogConfig, LogFormat};
use event::LogEvent;

/// From here on everything that is said goes to standard output. Only the first call counts.
pub fn start(config: &LogConfig) {
    let lines = Lines::new(config.clone(), std::io::stdout());
    // What libraries say is shown only when it is serious.
    let filter = Targets::new()
        .with_default(LevelFilter::WARN.min(LevelFilter::from_level(config.level)))
        .with_target("pyoco", LevelFilter::from_level(config.level));
    let started = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
    // A program that embeds us may have a subscriber of its own; then that one is told.
    drop(started);
}

/// Writes events as lines.
struct Lines<W> {
    config: LogConfig,
    out: Mutex<W>,
}

impl<W: Write + Send> Lines<W> {
    const fn new(config: LogConfig, out: W) -> Self {
        Self { config, out: Mutex::new(out) }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>, W: Write + Send + 'static> Layer<S> for Lines<W> {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        let event = LogEvent::of(event);
        let mut text = match self.config.format {
            LogFormat::Json => line::json(&event, &self.config),
            LogFormat::Text => line::text(&event, &self.config),
        };
        text.push('\n');
        let mut out = self.out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A closed pipe at the other end is no reason to stop working.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn said(config: LogConfig, say: impl FnOnce()) -> String {
        let out = Shared::default();
        let subscriber = tracing_subscriber::registry().with(Lines::new(config, out.clone()));
        tracing::subscriber::with_default(subscriber, say);
        let bytes = out.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn config(format: LogFormat) -> LogConfig {
        LogConfig { level: tracing::Level::INFO, format, utc: true, traceback: true }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the disk is full")]
    struct DiskFull(#[source] std::io::Error);

    fn full() -> DiskFull {
        DiskFull(std::io::Error::other("no space left"))
    }

    #[test]
    fn a_line_is_one_json_object_with_the_contracts_fields() {
        let text = said(config(LogFormat::Json), || {
            let error = full();
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::error!(target: "pyoco_worker::handle", err_id = "ERR-PYOCO-0003", run_id = %"r-1", tries = 3, error, "two\nlines");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["service"], "pyoco-server:worker");
        assert_eq!(line["logger"], "pyoco_server.worker");
        assert_eq!((&line["level"], &line["message"]), (&Value::from("ERROR"), &Value::from("two\nlines")));
        assert_eq!((&line["err_id"], &line["run_id"]), (&Value::from("ERR-PYOCO-0003"), &Value::from("r-1")));
        assert_eq!(line["tries"], 3);
        assert_eq!(line["exc_type"], "DiskFull");
        assert_eq!(line["exc_message"], "the disk is full");
        assert!(line["exc_traceback"].as_str().unwrap().contains("no space left"));
        for field in ["ts", "pathname", "lineno", "func", "process", "thread"] {
            assert!(!line[field].is_null(), "{field} is missing: {text}");
        }
        assert!(line["exc_origin"]["file"].is_string());
        assert!(line["ts"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn the_error_of_a_task_is_told_with_its_own_place() {
        let text = said(config(LogFormat::Json), || {
            let traceback = "Traceback (most recent call last):\n  File \"jobs.py\", line 7, in fetch\n    boom()\nValueError: no rows\n";
            tracing::error!(target: "pyoco_worker", reason = "no rows", traceback, "failed");
        });
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&line["exc_type"], &line["exc_message"]),
            (&Value::from("ValueError"), &Value::from("no rows"))
        );
        assert_eq!(line["exc_origin"], serde_json::json!({"file": "jobs.py", "line": 7, "func": "fetch"}));
        assert!(line["exc_traceback"].as_str().unwrap().starts_with("Traceback"));
    }

    #[test]
    fn the_gateway_is_another_service() {
        let text = said(config(LogFormat::Json), || tracing::info!(target: "pyoco_gateway::runs", "hello"));
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["service"], "pyoco-server:http");
        assert_eq!(line["logger"], "pyoco_server.http_api");
        assert!(line.get("exc_type").is_none());
    }

    #[test]
    fn text_is_for_people() {
        let text = said(config(LogFormat::Text), || {
            let error = full();
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::warn!(target: "pyoco_worker", run_id = "r-1", error, "it waits");
        });
        assert!(text.starts_with("WARNING pyoco-server:worker pyoco_server.worker "), "{text}");
        assert!(text.contains(" - it waits (run_id=r-1)"), "{text}");
        assert!(text.contains("caused by: no space left"), "{text}");
    }

    #[test]
    fn without_tracebacks_the_causes_are_left_out() {
        let quiet = LogConfig { traceback: false, ..config(LogFormat::Json) };
        let text = said(quiet, || {
            let error = full();
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::error!(error, "x");
        });
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["exc_message"], "the disk is full");
        assert!(line.get("exc_traceback").is_none() && line.get("exc_origin").is_none(), "{text}");
    }
}
