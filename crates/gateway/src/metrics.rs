//! Figures for an operator, in Prometheus' text form.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use pyoco_core::time::Timestamp;
use pyoco_core::view::RunStatus;

use crate::App;
use crate::caller::Caller;
use crate::docs::{Always, Reading};
use crate::error::Refusal;

/// Counts of runs, workers and dead letters.
#[utoipa::path(get, operation_id = "metrics", tag = "service", path = "/metrics", responses(
    (status = 200, description = "The figures.", content_type = "text/plain", body = String), Reading, Always
))]
pub(crate) async fn metrics(State(app): State<App>, _caller: Caller) -> Result<impl IntoResponse, Refusal> {
    let store = app.engine.store();
    let all = store.counts(None).await?;
    let today = store.counts_since(None, start_of_day(app.clock.now())).await?;
    let alive = app.worker_views().await?.iter().filter(|worker| worker.state.is_alive()).count();
    let letters = match store.count_letters().await {
        Ok(letters) => Some(letters),
        Err(error) => {
            tracing::warn!(reason = %error, "the dead letters cannot be counted");
            None
        }
    };
    Ok((
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text(&all, &today, alive, letters),
    ))
}

/// The first instant of the day, in UTC.
fn start_of_day(now: Timestamp) -> Timestamp {
    const DAY: i64 = 86_400_000_000;
    Timestamp::from_micros(now.as_micros().div_euclid(DAY) * DAY)
}

fn text(all: &[(RunStatus, u64)], today: &[(RunStatus, u64)], alive: usize, letters: Option<u64>) -> String {
    let mut text = String::new();
    head(&mut text, "pyoco_runs_total", "Count of runs by status (best-effort from KV).");
    by_status(&mut text, "pyoco_runs_total", all);
    head(&mut text, "pyoco_runs_today_total", "Count of runs updated today by status (best-effort from KV).");
    by_status(&mut text, "pyoco_runs_today_total", today);
    head(&mut text, "pyoco_workers_alive_total", "Count of workers present in TTL KV (best-effort).");
    line(&mut text, &format!("pyoco_workers_alive_total {alive}"));
    head(&mut text, "pyoco_dlq_messages_total", "Total DLQ messages in the DLQ stream (best-effort).");
    if let Some(letters) = letters {
        line(&mut text, &format!("pyoco_dlq_messages_total {letters}"));
    }
    text
}

fn head(text: &mut String, name: &str, help: &str) {
    line(text, &format!("# HELP {name} {help}\n# TYPE {name} gauge"));
}

fn by_status(text: &mut String, name: &str, counts: &[(RunStatus, u64)]) {
    let mut counts: Vec<(String, u64)> =
        counts.iter().map(|(status, runs)| (status.to_string(), *runs)).collect();
    counts.sort();
    for (status, runs) in counts {
        line(text, &format!("{name}{{status=\"{status}\"}} {runs}"));
    }
}

fn line(text: &mut String, line: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight() {
        let day = start_of_day(Timestamp::from_unix_seconds(1_700_000_000.5).unwrap());
        assert_eq!(day.to_string(), "2023-11-14T00:00:00.000000Z");
    }

    #[test]
    fn the_line_of_the_dead_letters_is_left_out_when_nobody_knows() {
        assert!(text(&[], &[], 0, Some(3)).ends_with("pyoco_dlq_messages_total 3\n"));
        assert!(text(&[], &[], 0, None).ends_with("# TYPE pyoco_dlq_messages_total gauge\n"));
    }
}
