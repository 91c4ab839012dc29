//! `node`: the nodes of an execution, driven from outside.

use clap::{Args, Subcommand};

use super::command::{Sending, Why};

#[derive(Debug, Subcommand)]
pub(in crate::client) enum NodeCommand {
    /// Begin an attempt of a node
    #[command(after_help = "Example:
  pyoco-client node start EXECUTION_ID NODE_ID --worker-id me")]
    Start(Start),
    /// Say how far an attempt is
    #[command(after_help = "Example:
  pyoco-client node progress EXECUTION_ID NODE_ID --progress 42 --message 'half of it'")]
    Progress(Progress),
    /// Let a running node wait for somebody
    #[command(after_help = "Example:
  pyoco-client node wait EXECUTION_ID NODE_ID --key approval-123 --prompt '{\"text\": \"Pay?\"}'")]
    Wait(Wait),
    /// Answer a node that waits
    #[command(after_help = "Example:
  pyoco-client node resume EXECUTION_ID NODE_ID --key approval-123 --output '{\"approved\": true}'

pyoco-client waits shows the keys.")]
    Resume(Resume),
    /// Say that a node ended well
    #[command(after_help = "Example:
  pyoco-client node success EXECUTION_ID NODE_ID --output '{\"rows\": 3}'")]
    Success(Success),
    /// Say that an attempt failed
    #[command(after_help = "Example:
  pyoco-client node fail EXECUTION_ID NODE_ID --code ERR_TIMEOUT --message 'no answer'")]
    Fail(Fail),
    /// Cancel one node; the rest goes on without it
    #[command(after_help = "Example:
  pyoco-client node cancel EXECUTION_ID NODE_ID --reason 'not this one'")]
    Cancel(Cancel),
}

/// Which node.
#[derive(Debug, Args)]
pub(in crate::client) struct Place {
    /// The execution
    pub(in crate::client) execution_id: String,
    /// The node; in a loop its path, e.g. retry/2/fetch
    pub(in crate::client) node_id: String,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Start {
    #[command(flatten)]
    pub(in crate::client) place: Place,
    /// Which attempt, from 1 [default: the next]
    #[arg(long, value_name = "N")]
    pub(in crate::client) attempt: Option<u32>,
    /// Who runs it
    #[arg(long, value_name = "ID")]
    pub(in crate::client) worker_id: Option<String>,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Progress {
    #[command(flatten)]
    pub(in crate::client) place: Place,
    /// In percent, 0 to 100
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    pub(in crate::client) progress: Option<f64>,
    /// For people
    #[arg(long, value_name = "TEXT")]
    pub(in crate::client) message: Option<String>,
    /// For machines, a JSON object
    #[arg(long, value_name = "JSON")]
    pub(in crate::client) metrics: Option<String>,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Wait {
    #[command(flatten)]
    pub(in crate::client) place: Place,
    /// What a resume must name
    #[arg(long)]
    pub(in crate::client) key: Option<String>,
    /// A hint for the person who is asked, a JSON object
    #[arg(long, value_name = "JSON")]
    pub(in crate::client) prompt: Option<String>,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Resume {
    #[command(flatten)]
    pub(in crate::client) place: Place,
    /// The key of the wait
    #[arg(long)]
    pub(in crate::client) key: Option<String>,
    /// The answer, any JSON
    #[arg(long, value_name = "JSON")]
    pub(in crate::client) output: Option<String>,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Success {
    #[command(flatten)]
    pub(in crate::client) place: Place,
    /// What it produced, any JSON
    #[arg(long, value_name = "JSON")]
    pub(in crate::client) output: Option<String>,
    /// Which attempt [default: the running one]
    #[arg(long, value_name = "N")]
    pub(in crate::client) attempt: Option<u32>,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Fail {
    #[command(flatten)]
    pub(in crate::client) place: Place,
    /// A stable word for the kind of failure
    #[arg(long)]
    pub(in crate::client) code: Option<String>,
    /// What happened, for people
    #[arg(long, value_name = "TEXT")]
    pub(in crate::client) message: Option<String>,
    /// Whatever else is known, a JSON object
    #[arg(long, value_name = "JSON")]
    pub(in crate::client) detail: Option<String>,
    /// Which attempt [default: the running one]
    #[arg(long, value_name = "N")]
    pub(in crate::client) attempt: Option<u32>,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Cancel {
    #[command(flatten)]
    pub(in crate::client) place: Place,
    #[command(flatten)]
    pub(in crate::client) why: Why,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}
