//! `exec`: executions as a whole.

use clap::{Args, Subcommand};

use super::command::{Input, Sending, Why};
use super::form::{Page, RowsOutput, ViewOutput};

#[derive(Debug, Subcommand)]
pub(in crate::client) enum ExecCommand {
    /// Create an execution of a graph; it runs when it is started
    #[command(after_help = "Examples:
  pyoco-client exec create approval --param amount=120
  pyoco-client exec create approval --input '{\"amount\": 120}' --tags finance --start
  pyoco-client exec create approval --graph-version 2 --idempotency-key order-77

A value of --param is JSON when it can be read as JSON, otherwise text.
Later sources win: --input-file, then --input, then --param.")]
    Create(Create),
    /// Let an execution run
    #[command(after_help = "Example:
  pyoco-client exec start EXECUTION_ID")]
    Start(Start),
    /// Cancel an execution
    #[command(after_help = "Example:
  pyoco-client exec cancel EXECUTION_ID --reason 'no longer needed'")]
    Cancel(End),
    /// Put an execution away that has ended
    #[command(after_help = "Example:
  pyoco-client exec archive EXECUTION_ID --reason 'kept long enough'")]
    Archive(End),
    /// Show an execution with its nodes
    #[command(after_help = "Examples:
  pyoco-client exec get EXECUTION_ID
  pyoco-client exec get EXECUTION_ID --at 12 --json

With --at it is shown as it was when that event had happened.")]
    Get(Get),
    /// List executions, newest change first
    #[command(after_help = "Examples:
  pyoco-client exec list --status ACTIVE --graph approval
  pyoco-client exec list --updated-after 2026-01-31T00:00:00Z --json

A terminal gets a table, a pipe gets lines of execution, status, graph, tags and last change,
separated by tabs.")]
    List(List),
    /// Show what happened to an execution, and with --follow what happens
    #[command(after_help = "Examples:
  pyoco-client exec events EXECUTION_ID
  pyoco-client exec events EXECUTION_ID --after 12 --json
  pyoco-client exec events EXECUTION_ID --follow

A terminal gets a table, a pipe gets lines of number, time, type, node and actor, separated by tabs;
with --json each event is a line.

--follow goes on until the execution has ended, also over broken connections. Its exit code tells how
it ended: 0 COMPLETED, 1 FAILED, 130 CANCELED.")]
    Events(Events),
    /// Repeat an execution that has ended: what succeeded is kept, the rest runs
    #[command(after_help = "Examples:
  pyoco-client exec retry EXECUTION_ID
  pyoco-client exec retry EXECUTION_ID --from-node publish --input '{\"amount\": 90}'

The answer names the new execution. An input that is given replaces the whole first one.")]
    Retry(Retry),
}

#[derive(Debug, Args)]
pub(in crate::client) struct Create {
    /// The graph: a registered name
    #[arg(value_name = "GRAPH")]
    pub(in crate::client) graph: String,
    #[command(flatten)]
    pub(in crate::client) input: Input,
    /// Which version of the graph [default: the newest]
    #[arg(long, value_name = "N")]
    pub(in crate::client) graph_version: Option<u64>,
    /// Which workers may run it [default: the gateway's]
    #[arg(long)]
    pub(in crate::client) tag: Option<String>,
    /// Labels, separated by commas
    #[arg(long)]
    pub(in crate::client) tags: Option<String>,
    /// Start it too, under the same key
    #[arg(long)]
    pub(in crate::client) start: bool,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Start {
    /// The execution
    pub(in crate::client) execution_id: String,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}

#[derive(Debug, Args)]
pub(in crate::client) struct End {
    /// The execution
    pub(in crate::client) execution_id: String,
    #[command(flatten)]
    pub(in crate::client) why: Why,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Get {
    /// The execution
    pub(in crate::client) execution_id: String,
    /// As it was when this event had happened
    #[arg(long, value_name = "SEQ")]
    pub(in crate::client) at: Option<u64>,
    #[command(flatten)]
    pub(in crate::client) output: ViewOutput,
}

#[derive(Debug, Args)]
pub(in crate::client) struct List {
    /// Only executions of this status
    #[arg(long, value_parser = ["ACTIVE", "COMPLETED", "FAILED", "CANCELED"])]
    pub(in crate::client) status: Option<String>,
    /// Only executions of this graph
    #[arg(long, value_name = "NAME")]
    pub(in crate::client) graph: Option<String>,
    /// Only executions with this label
    #[arg(long)]
    pub(in crate::client) tag: Option<String>,
    /// Only those created after this moment, e.g. 2026-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(in crate::client) created_after: Option<String>,
    /// Only those created before this moment
    #[arg(long, value_name = "TIME")]
    pub(in crate::client) created_before: Option<String>,
    /// Only those that changed after this moment
    #[arg(long, value_name = "TIME")]
    pub(in crate::client) updated_after: Option<String>,
    /// Only those that changed before this moment
    #[arg(long, value_name = "TIME")]
    pub(in crate::client) updated_before: Option<String>,
    #[command(flatten)]
    pub(in crate::client) page: Page,
    #[command(flatten)]
    pub(in crate::client) output: RowsOutput,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Events {
    /// The execution
    pub(in crate::client) execution_id: String,
    /// Only events behind this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(in crate::client) after: u64,
    /// At most so many [default: all]
    #[arg(long, value_name = "N", conflicts_with = "follow", value_parser = clap::value_parser!(u64).range(1..))]
    pub(in crate::client) limit: Option<u64>,
    /// Go on until the execution has ended
    #[arg(long)]
    pub(in crate::client) follow: bool,
    #[command(flatten)]
    pub(in crate::client) output: RowsOutput,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Retry {
    /// The execution that has ended
    pub(in crate::client) execution_id: String,
    #[command(flatten)]
    pub(in crate::client) input: Input,
    /// From here on everything runs again, also what succeeded
    #[arg(long, value_name = "NODE_ID")]
    pub(in crate::client) from_node: Option<String>,
    #[command(flatten)]
    pub(in crate::client) sending: Sending,
}
