//! A run on a terminal: how far it is, what runs now, and in the end how it went.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pyoco_client::api::{RunSnapshot, RunStatus};

use crate::output::{may_colour, one_line};

/// So many names of running tasks fit.
const NAMED: usize = 4;

/// A line that moves while a run goes on. It vanishes when it is dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    has_colours: bool,
}

impl Progress {
    pub(super) fn start() -> Self {
        let has_colours = may_colour();
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style(has_colours, 0));
        bar.set_message("…");
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, has_colours }
    }

    pub(super) fn show(&self, run: &RunSnapshot) {
        self.bar.set_length(run.tasks.len() as u64);
        self.bar.set_position(ended(run) as u64);
        // After its figures: the line may be drawn at any moment.
        self.bar.set_style(style(self.has_colours, run.tasks.len()));
        self.bar.set_prefix(run.status.to_string());
        self.bar.set_message(lack(run).unwrap_or_else(|| running(run)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How far it is can be shown when its tasks are known. Until a worker has read the flow they are not, and nothing of nothing
/// would look like all of it.
fn style(has_colours: bool, tasks: usize) -> ProgressStyle {
    let template = match (tasks, has_colours) {
        (0, true) => "{spinner:.cyan} {prefix:.bold} {wide_msg} {elapsed:.dim}",
        (0, false) => "{spinner} {prefix} {wide_msg} {elapsed}",
        (1.., true) => {
            "{spinner:.cyan} {prefix:.bold} [{bar:24.cyan}] {pos}/{len} tasks  {wide_msg} {elapsed:.dim}"
        }
        (1.., false) => "{spinner} {prefix} [{bar:24}] {pos}/{len} tasks  {wide_msg} {elapsed}",
    };
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

fn ended(run: &RunSnapshot) -> usize {
    run.tasks.values().filter(|state| !matches!(state.as_str(), "PENDING" | "RUNNING")).count()
}

/// Why nobody runs it, if the gateway knows.
fn lack(run: &RunSnapshot) -> Option<String> {
    let messages = run.waiting.iter().filter(|waiting| waiting["reason"] == "no_worker");
    messages.filter_map(|waiting| waiting["message"].as_str()).map(one_line).next()
}

fn running(run: &RunSnapshot) -> String {
    let names: Vec<&String> =
        run.tasks.iter().filter(|(_, state)| *state == "RUNNING").map(|(name, _)| name).collect();
    let mut shown: Vec<String> = names.iter().take(NAMED).map(|name| one_line(name)).collect();
    if names.len() > NAMED {
        shown.push(format!("+{}", names.len() - NAMED));
    }
    shown.join(", ")
}

/// One line on how a run went, or how far it is, and a second one on what went wrong.
pub(super) fn summary(run: &RunSnapshot, has_colours: bool) -> String {
    let (sign, colour) = match run.status {
        RunStatus::Completed => ('✔', "32"),
        RunStatus::Failed => ('✘', "31"),
        RunStatus::Cancelled => ('■', "33"),
        RunStatus::Pending | RunStatus::Running | RunStatus::Cancelling => ('…', "36"),
    };
    let status = format!("{sign} {}", run.status);
    let status = if has_colours { format!("\u{1b}[{colour}m{status}\u{1b}[0m") } else { status };
    let mut parts =
        vec![status, one_line(&run.flow_name), format!("{}/{} tasks", ended(run), run.tasks.len())];
    parts.extend(run.start_time.zip(run.end_time).map(|(start, end)| format!("{:.2} s", end - start)));
    parts.push(one_line(&run.run_id));
    let error = run.error.as_deref().filter(|error| !error.is_empty());
    parts.join("  ") + &error.map(|error| format!("\n  {}", one_line(error))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(value: serde_json::Value) -> RunSnapshot {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_summary_tells_how_it_went() {
        let failed = run(json!({
            "run_id": "r-1", "flow_name": "main", "status": "FAILED", "start_time": 10.0, "end_time": 11.5,
            "tasks": {"a": "SUCCEEDED", "b": "FAILED", "c": "PENDING"}, "error": "no\nluck",
        }));
        assert_eq!(summary(&failed, false), "✘ FAILED  main  2/3 tasks  1.50 s  r-1\n  no\\nluck");
        assert!(summary(&failed, true).starts_with("\u{1b}[31m✘ FAILED\u{1b}[0m  main"));
    }

    #[test]
    fn a_run_that_no_worker_takes_says_why_it_waits() {
        let waiting =
            json!([{"node_id": "n", "message": "?"}, {"reason": "no_worker", "message": "no\tworker"}]);
        let waits = run(json!({"run_id": "r", "status": "PENDING", "waiting": waiting}));
        assert_eq!(lack(&waits).as_deref(), Some("no\\tworker"));
        let odd = json!([1, null, {"reason": "no_worker", "message": 1}]);
        assert_eq!(lack(&run(json!({"run_id": "r", "status": "PENDING", "waiting": odd}))), None);
    }

    #[test]
    fn only_some_running_tasks_are_named() {
        let busy = run(json!({
            "run_id": "r", "status": "RUNNING",
            "tasks": {"a": "RUNNING", "b": "RUNNING", "x": "PENDING", "c": "RUNNING", "d": "RUNNING", "e": "RUNNING"},
        }));
        assert_eq!(running(&busy), "a, b, c, d, +1");
        assert_eq!(ended(&busy), 0);
    }
}
