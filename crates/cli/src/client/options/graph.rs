//! `graph`: registered graphs.

use clap::{Args, Subcommand};

use super::form::{Page, RowsOutput};

#[derive(Debug, Subcommand)]
pub(in crate::client) enum GraphCommand {
    /// Keep a flow under a name; another text is a new version
    #[command(after_help = "Examples:
  pyoco-client graph put approval flow.yaml
  make-flow | pyoco-client graph put approval -

A file is JSON or YAML by its ending; where that does not tell, by what it holds.")]
    Put(Put),
    /// Show a graph
    #[command(after_help = "Examples:
  pyoco-client graph get approval
  pyoco-client graph get approval --version 2 --source > flow.yaml")]
    Get(Get),
    /// List graphs by name
    #[command(after_help = "Example:
  pyoco-client graph list --json

A terminal gets a table, a pipe gets lines of graph, version and time, separated by tabs.")]
    List(List),
    /// Delete a graph; executions keep what they were created with
    #[command(after_help = "Example:
  pyoco-client graph delete approval")]
    Delete(Delete),
}

#[derive(Debug, Args)]
pub(in crate::client) struct Put {
    /// The graph
    pub(in crate::client) name: String,
    /// The flow, YAML or JSON; - for standard input
    pub(in crate::client) file: String,
    #[command(flatten)]
    pub(in crate::client) expected: Expected,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Get {
    /// The graph
    pub(in crate::client) name: String,
    /// Which version [default: the newest]
    #[arg(long, value_name = "N")]
    pub(in crate::client) version: Option<u64>,
    /// Only its text, as it was put
    #[arg(long)]
    pub(in crate::client) source: bool,
}

#[derive(Debug, Args)]
pub(in crate::client) struct List {
    #[command(flatten)]
    pub(in crate::client) page: Page,
    #[command(flatten)]
    pub(in crate::client) output: RowsOutput,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Delete {
    /// The graph
    pub(in crate::client) name: String,
    #[command(flatten)]
    pub(in crate::client) expected: Expected,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Expected {
    /// Only if this is its newest version
    #[arg(long, value_name = "N")]
    pub(in crate::client) if_version: Option<u64>,
}
