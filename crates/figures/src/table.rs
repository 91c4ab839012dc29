//! Every figure there is. The registry, the reference for people and the tests of the examples read this one table.

use std::fmt::Write as _;

/// What kind of figure it is, as Prometheus says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only ever grows, until the process ends.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How many fell below each bound.
    Histogram,
}

impl Kind {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    /// What it is called.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// What it is told apart by.
    pub labels: &'static [&'static str],
    /// What it means: a sentence without its full stop.
    pub help: &'static str,
}

impl Figure {
    const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: Kind::Counter, labels, help }
    }

    const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: Kind::Gauge, labels, help }
    }

    const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Self {
        Self { name, kind: Kind::Histogram, labels, help }
    }
}

macro_rules! table {
    ($($constant:ident = $kind:ident($($what:expr),* $(,)?);)*) => {
        $(#[doc = "A line of the table."]
        pub const $constant: Figure = Figure::$kind($($what),*);)*

        /// Every figure, in the order in which people read of them.
        pub const TABLE: &[Figure] = &[$($constant),*];
    };
}

table! {
    RUNS = gauge("pyoco_runs_total", &["status"], "Count of runs by status (best-effort from KV)");
    RUNS_TODAY = gauge("pyoco_runs_today_total", &["status"], "Count of runs updated today by status (best-effort from KV)");
    WORKERS_ALIVE = gauge("pyoco_workers_alive_total", &[], "Count of workers present in TTL KV (best-effort)");
    LETTERS_KEPT = gauge("pyoco_dlq_messages_total", &[], "Total DLQ messages in the DLQ stream (best-effort)");
    QUEUE_DEPTH = gauge("pyoco_queue_depth", &["tag"], "Runs that want a worker and that nobody holds");
    QUEUE_OLDEST = gauge("pyoco_queue_oldest_age_seconds", &["tag"], "How long the run that waits longest for a worker has not changed");
    BUILD = gauge("pyoco_build_info", &["version", "store"], "Always 1; its labels say what runs");
    HTTP = histogram("pyoco_http_request_duration_seconds", &["route", "method", "status"], "From a request to the head of its answer");
    SSE = gauge("pyoco_sse_clients", &[], "Open streams of server-sent events");
    SOCKETS = gauge("pyoco_websocket_clients", &[], "Open WebSockets");
    AUTHENTICATIONS = counter("pyoco_authentications_total", &["result"], "Requests whose key was looked at");
    SUBMITS = histogram("pyoco_submit_duration_seconds", &["outcome"], "From a submission to its answer");
    COMMANDS = histogram("pyoco_command_duration_seconds", &["command", "outcome"], "From a command to its answer, whoever sent it; what a worker tells of its tasks is counted as appends alone");
    APPENDS = histogram("pyoco_store_append_duration_seconds", &["outcome"], "Appending one record to the log of a run");
    COMMITS = histogram("pyoco_store_commit_duration_seconds", &["file"], "One transaction of the embedded store, with the disk");
    COMMIT_SIZES = histogram("pyoco_store_commit_commands", &["file"], "Writes that shared one transaction of the embedded store");
    RUNS_ENDED = counter("pyoco_runs_ended_total", &["flow", "status"], "Runs whose end this process recorded");
    RUN_DURATIONS = histogram("pyoco_run_duration_seconds", &["flow"], "From the first start of a run to its end");
    TASKS_ENDED = counter("pyoco_tasks_ended_total", &["flow", "outcome"], "Attempts of tasks whose end this process recorded");
    TASK_DURATIONS = histogram("pyoco_task_duration_seconds", &["flow"], "One attempt of a task that this process ran");
    RETRIES = counter("pyoco_task_retries_total", &["flow"], "Attempts of tasks after the first");
    CLAIMS_LOST = counter("pyoco_claims_lost_total", &[], "Runs that a worker of this process lost to another");
    LETTERS = counter("pyoco_dlq_letters_total", &["reason"], "Dead letters that this process wrote");
    LINES = counter("pyoco_log_lines_written_total", &[], "Lines of the logs of runs that were stored");
    LINES_DROPPED = counter("pyoco_log_lines_dropped_total", &[], "Lines that were not stored: the store was away, or the log was full or had ended");
    SWEEPS = histogram("pyoco_sweep_duration_seconds", &[], "One sweep over what is due, overdue or forgotten");
    PRUNED = counter("pyoco_pruned_runs_total", &[], "Runs that were removed because they ended long ago");
    AUDIT_DROPPED = counter("pyoco_audit_entries_dropped_total", &[], "Entries of the audit trail that could not be kept");
    TRACES_DROPPED = counter("pyoco_traces_dropped_total", &[], "Runs whose spans were not sent to the collector of traces");
    CPU = counter("process_cpu_seconds_total", &[], "Time that the process kept processors busy");
    MEMORY = gauge("process_resident_memory_bytes", &[], "Memory that the process has in RAM");
    VIRTUAL_MEMORY = gauge("process_virtual_memory_bytes", &[], "Address space of the process");
    FILES = gauge("process_open_fds", &[], "Files and sockets that the process has open");
    MOST_FILES = gauge("process_max_fds", &[], "Files and sockets that the process may have open");
    STARTED = gauge("process_start_time_seconds", &[], "When the process was started, in seconds since 1970");
}

/// The table as Markdown.
pub fn markdown() -> String {
    let mut text = "| name | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for Figure { name, kind, labels, help } in TABLE {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "| `{name}` | {} | {} | {help} |", kind.as_str(), labels.join(", "));
    }
    text
}
