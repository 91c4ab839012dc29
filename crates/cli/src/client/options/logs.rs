//! `logs`: what the tasks of a run write, and how lines are shown.

use clap::Args;

#[derive(Debug, Args)]
pub(in crate::client) struct Logs {
    /// The run, or the job
    #[arg(long)]
    pub(in crate::client) run_id: String,
    /// Go on until the run has ended
    #[arg(long)]
    pub(in crate::client) follow: bool,
    /// Only lines of this task; in a loop its name or its path, e.g. retry/2/fetch
    #[arg(long)]
    pub(in crate::client) task: Option<String>,
    /// Only lines of this stream
    #[arg(long, value_parser = ["stdout", "stderr", "engine"])]
    pub(in crate::client) stream: Option<String>,
    /// Only lines behind this `nextToken`
    #[arg(long, value_name = "TOKEN")]
    pub(in crate::client) since: Option<String>,
    #[command(flatten)]
    pub(in crate::client) form: LinesForm,
}

/// How lines are shown.
#[derive(Debug, Args)]
pub(in crate::client) struct LinesForm {
    /// Each line as a JSON object
    #[arg(long)]
    pub(in crate::client) json: bool,
    /// Without the time of each line
    #[arg(long, conflicts_with = "json")]
    pub(in crate::client) no_timestamps: bool,
}
