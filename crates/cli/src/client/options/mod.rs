//! What `pyoco-client` can be asked, as clap understands it. Every help ends with an example that works.

pub(super) mod bulk;
pub(super) mod command;
pub(super) mod exec;
pub(super) mod form;
pub(super) mod graph;
pub(super) mod job;
pub(super) mod logs;
pub(super) mod node;
pub(super) mod wheels;

use clap::{Args, Parser, Subcommand, ValueEnum};

use pyoco_core::time::Timestamp;

use self::exec::ExecCommand;
use self::graph::GraphCommand;
use self::job::JobCommand;
use self::node::NodeCommand;
use crate::past;

/// The gateway that is asked when nobody says which.
pub(super) const DEFAULT_SERVER: &str = "http://127.0.0.1:8000";

/// Submit runs and jobs to a gateway, look at them, watch them, read their logs, cancel them; drive executions and answer what waits.
#[derive(Debug, Parser)]
#[command(
    name = "pyoco-client",
    version,
    infer_long_args = true,
    args_override_self = true,
    after_help = "Examples:
  pyoco-client submit-yaml --workflow-file flow.yaml --flow-name main --tag default
  pyoco-client watch RUN_ID --until-terminal --output status
  pyoco-client logs --run-id RUN_ID --follow
  pyoco-client --server http://gateway:8000 list --output table
  pyoco-client waits
  pyoco-client node resume EXECUTION_ID NODE_ID --key KEY --output '{\"approved\": true}'

Exit codes: 0 done, 1 failed (the reason is on standard error), 130 interrupted."
)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) server: Server,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Where the gateway is, and who asks.
#[derive(Debug, Args)]
pub(super) struct Server {
    /// Address of the gateway [default: http://127.0.0.1:8000]
    #[arg(long, value_name = "URL", global = true, env = "PYOCO_SERVER_URL", help_heading = "Gateway")]
    server: Option<String>,
    /// Key to send with every request
    #[arg(
        long,
        value_name = "KEY",
        global = true,
        env = "PYOCO_API_KEY",
        hide_env_values = true,
        help_heading = "Gateway"
    )]
    api_key: Option<String>,
    /// Header that carries the key
    #[arg(long, value_name = "NAME", global = true, default_value = "X-API-Key", help_heading = "Gateway")]
    pub(super) api_key_header: String,
}

impl Server {
    pub(super) fn url(&self) -> &str {
        self.server.as_deref().filter(|url| !url.is_empty()).unwrap_or(DEFAULT_SERVER)
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.api_key.as_deref().filter(|key| !key.is_empty())
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Submit a run of a flow that the workers know
    #[command(after_help = "Examples:
  pyoco-client submit --flow-name main --param x=1 --param name=alice --tag default
  pyoco-client submit --params-file params.yaml --params '{\"x\": 2}'
  pyoco-client submit --flow-name main --idempotency-key nightly-2026-01-31

A value of --param is JSON when it can be read as JSON, otherwise text.
Later sources win: --params-file, then --params, then --param.")]
    Submit(Submit),
    /// Submit a run of a flow.yaml
    #[command(after_help = "Example:
  pyoco-client submit-yaml --workflow-file flow.yaml --flow-name main --tag default")]
    SubmitYaml(SubmitYaml),
    /// Show a run
    #[command(after_help = "Example:
  pyoco-client get RUN_ID --records")]
    Get(Get),
    /// Show the tasks of a run and their records
    #[command(after_help = "Example:
  pyoco-client tasks RUN_ID")]
    Tasks(Tasks),
    /// List runs, newest change first
    #[command(after_help = "Example:
  pyoco-client list --status RUNNING --limit 20 --output table")]
    List(List),
    /// List runs page by page, or only what changed
    #[command(after_help = "Examples:
  pyoco-client list-vnext --limit 50 --output table
  pyoco-client list-vnext --limit 50 --cursor NEXT_CURSOR
  pyoco-client list-vnext --updated-after 1767225600")]
    ListVnext(ListVnext),
    /// Watch a run while it changes
    #[command(after_help = "Examples:
  pyoco-client watch RUN_ID --until-terminal
  pyoco-client watch RUN_ID --until-terminal --output status

With --output status a terminal shows progress; a pipe gets lines of time, event, status and run,
separated by tabs.")]
    Watch(Watch),
    /// Cancel a run, or every execution that fits
    #[command(
        override_usage = "pyoco-client cancel [OPTIONS] --run-id <RUN_ID>
       pyoco-client cancel [OPTIONS] --where <NAME=VALUE>...",
        after_help = "Examples:
  pyoco-client cancel --run-id RUN_ID --wait --timeout-sec 60
  pyoco-client cancel --where status=PENDING --where flow=report --where created-before=2h --dry-run
  pyoco-client cancel --where label=nightly --yes

Many are canceled page by page. A terminal is asked before; elsewhere --yes is needed. Those that have
ended are passed over."
    )]
    Cancel(Box<bulk::Cancel>),
    /// Repeat a run that failed or was canceled, or every execution that fits
    #[command(
        override_usage = "pyoco-client retry [OPTIONS] --run-id <RUN_ID>
       pyoco-client retry [OPTIONS] --where <NAME=VALUE>...",
        after_help = "Examples:
  pyoco-client retry --run-id RUN_ID
  pyoco-client retry --where status=FAILED --where flow=report --where updated-after=1d --dry-run
  pyoco-client retry --where label=nightly --yes

What succeeded is kept, the rest runs, in a new execution. Of many, those that were retried before are
passed over. pyoco-client exec retry can begin at a node, and change the input."
    )]
    Retry(Box<bulk::Retry>),
    /// List workers
    #[command(after_help = "Example:
  pyoco-client workers --scope all --output table")]
    Workers(Workers),
    /// Show the figures of the system, for Prometheus
    #[command(after_help = "Example:
  pyoco-client metrics")]
    Metrics,
    /// Create and drive executions, look at them and at what happened to them
    #[command(
        subcommand,
        after_help = "Examples:
  pyoco-client exec create approval --param amount=120 --start
  pyoco-client exec events EXECUTION_ID --follow"
    )]
    Exec(ExecCommand),
    /// Drive the nodes of an execution from outside, and answer those that wait
    #[command(
        subcommand,
        after_help = "Examples:
  pyoco-client node start EXECUTION_ID NODE_ID --worker-id me
  pyoco-client node success EXECUTION_ID NODE_ID --output '{\"rows\": 3}'"
    )]
    Node(NodeCommand),
    /// Keep flows under names, in numbered versions
    #[command(
        subcommand,
        after_help = "Examples:
  pyoco-client graph put approval flow.yaml
  pyoco-client graph list"
    )]
    Graph(GraphCommand),
    /// List what waits for a person, newest first
    #[command(after_help = "Examples:
  pyoco-client waits
  pyoco-client waits --tag finance --older-than-sec 3600 --json

A terminal gets a table, a pipe gets lines of execution, node, key, since, graph and prompt, separated
by tabs.")]
    Waits(Waits),
    /// List who did what, newest first; needs a key of the role admin
    #[command(after_help = "Examples:
  pyoco-client audit --since 1h
  pyoco-client audit --action runs.cancel --since 2026-01-31T00:00:00Z --all --json
  pyoco-client audit --target RUN_ID

A terminal gets a table, a pipe gets lines of time, action, outcome, status, key, tenant, source, target
and details, separated by tabs.")]
    Audit(Audit),
    /// Show the log of a run or a job, and with --follow what is written to it
    #[command(after_help = "Examples:
  pyoco-client logs --run-id RUN_ID --follow
  pyoco-client logs --run-id RUN_ID --task load --stream stderr
  pyoco-client logs --run-id RUN_ID --since NEXT_TOKEN --json

Each line is: time task stream | text. A terminal gets colours (NO_COLOR=1 turns them off), a pipe
the text as the gateway keeps it. Without --follow the token from which to go on later is shown on
standard error.

--follow goes on until the run has ended, also over broken connections and a restart of the gateway.
Its exit code tells how the run ended: 0 COMPLETED, 1 FAILED, 130 CANCELLED.")]
    Logs(logs::Logs),
    /// Submit jobs, find them again by their labels
    #[command(
        subcommand,
        after_help = "Examples:
  pyoco-client job submit --param input=data.csv --tag urgent --follow
  pyoco-client job list --tag urgent"
    )]
    Job(JobCommand),
    /// List the labels of jobs, with how many jobs have them
    #[command(after_help = "Examples:
  pyoco-client tags
  pyoco-client tags --prefix Q3 --json

A terminal gets a table, a pipe gets lines of label and count, separated by a tab. With --all --json
each label is a line.")]
    Tags(job::Labels),
    /// List the wheels that workers install
    #[command(after_help = "Example:
  pyoco-client wheels --output table")]
    Wheels(wheels::Wheels),
    /// Upload a wheel: workers that install wheels run it from their next run on
    #[command(after_help = "Examples:
  pyoco-client wheel-upload --wheel-file dist/my_tasks-1.0-py3-none-any.whl --tags gpu,linux
  pyoco-client wheel-upload --wheel-file dist/my_tasks-1.1-py3-none-any.whl --preflight warn

Before anything is sent, the file is looked at as the gateway will look at it, and the gateway is asked
what is there: what would be refused is named. Beside that a wheel should say what it is for, in a
description of 80 characters or a Project-URL with its documentation, and have entry points;
--allow-missing-usage-doc and --allow-no-entry-points take one that does not. --preflight warn only warns,
off does not look.

A terminal shows progress; a pipe gets a line now and then, on standard error.")]
    WheelUpload(wheels::WheelUpload),
    /// List who uploaded and deleted wheels, newest first
    #[command(after_help = "Examples:
  pyoco-client wheel-history --limit 20 --output table
  pyoco-client wheel-history --wheel-name my_tasks-1.0-py3-none-any.whl --action upload")]
    WheelHistory(wheels::WheelHistory),
    /// Delete a wheel; runs that have begun with it keep it
    #[command(after_help = "Example:
  pyoco-client wheel-delete --name my_tasks-1.0-py3-none-any.whl")]
    WheelDelete(wheels::WheelDelete),
    /// Fetch a wheel into a file, and check that it is what was uploaded
    #[command(after_help = "Examples:
  pyoco-client wheel-download --name my_tasks-1.0-py3-none-any.whl
  pyoco-client wheel-download --name my_tasks-1.0-py3-none-any.whl --output wheels/

The file has its name when all of it is there, and not before.")]
    WheelDownload(wheels::WheelDownload),
}

#[derive(Debug, Args)]
pub(super) struct Submit {
    /// Flow to run
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(super) flow_name: String,
    /// Parameters, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(super) params: Option<String>,
    /// File with parameters, a JSON or YAML object
    #[arg(long, value_name = "FILE")]
    pub(super) params_file: Option<String>,
    /// One parameter; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) param: Vec<String>,
    /// Which workers may run it [default: the gateway's]
    #[arg(long)]
    pub(super) tag: Option<String>,
    /// Labels, separated by commas
    #[arg(long)]
    pub(super) tags: Option<String>,
    #[command(flatten)]
    pub(super) repeat: Repeat,
}

#[derive(Debug, Args)]
pub(super) struct SubmitYaml {
    /// The flow.yaml
    #[arg(long, value_name = "FILE")]
    pub(super) workflow_file: String,
    /// Name of the flow
    #[arg(long, value_name = "NAME")]
    pub(super) flow_name: String,
    /// Which workers may run it
    #[arg(long)]
    pub(super) tag: String,
    #[command(flatten)]
    pub(super) repeat: Repeat,
}

/// How a submission may be repeated.
#[derive(Debug, Args)]
pub(super) struct Repeat {
    /// Sent as X-Idempotency-Key: a repeat under the same key makes no second run
    #[arg(long, value_name = "KEY")]
    pub(super) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Get {
    /// The run
    pub(super) run_id: String,
    /// With the records of its tasks
    #[arg(long)]
    pub(super) records: bool,
}

#[derive(Debug, Args)]
pub(super) struct Tasks {
    /// The run
    pub(super) run_id: String,
}

#[derive(Debug, Args)]
pub(super) struct Filter {
    /// Only runs of this status, e.g. RUNNING
    #[arg(long)]
    pub(super) status: Option<String>,
    /// Only runs of this flow
    #[arg(long, value_name = "NAME")]
    pub(super) flow: Option<String>,
    /// Only runs with this routing tag
    #[arg(long)]
    pub(super) tag: Option<String>,
    /// Whole snapshots instead of summaries
    #[arg(long)]
    pub(super) full: bool,
    /// At most so many, 1 to 200 [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) limit: Option<i64>,
}

#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) filter: Filter,
    #[command(flatten)]
    pub(super) output: ListOutput,
}

#[derive(Debug, Args)]
pub(super) struct ListVnext {
    #[command(flatten)]
    pub(super) filter: Filter,
    /// Only runs that changed after this moment, in unix seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(super) updated_after: Option<f64>,
    /// Go on after this `next_cursor`
    #[arg(long)]
    pub(super) cursor: Option<String>,
    /// Only runs of the flow.yaml with this SHA-256
    #[arg(long, value_name = "HEX")]
    pub(super) workflow_yaml_sha256: Option<String>,
    #[command(flatten)]
    pub(super) output: ListOutput,
}

#[derive(Debug, Args)]
pub(super) struct Watch {
    /// The run
    pub(super) run_id: String,
    /// With the records of its tasks
    #[arg(long)]
    pub(super) records: bool,
    /// Only changes at or after this moment, in unix seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(super) since: Option<f64>,
    /// How long to watch, 1 to 600 [default: 60]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(super) timeout_sec: Option<u32>,
    /// Stop after so many events; 0 means unlimited
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub(super) max_events: i64,
    /// Stop when the run has ended
    #[arg(long)]
    pub(super) until_terminal: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = WatchForm::Json)]
    output: WatchForm,
    /// The same as --output json
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

impl Watch {
    pub(super) const fn form(&self) -> WatchForm {
        self.output
    }
}

#[derive(Debug, Args)]
pub(super) struct Workers {
    /// Which workers
    #[arg(long, default_value = "active", value_parser = ["active", "all"])]
    pub(super) scope: String,
    /// Only workers in this state
    #[arg(long, value_parser = ["RUNNING", "IDLE", "STOPPED_GRACEFUL", "DISCONNECTED"])]
    pub(super) state: Option<String>,
    /// Hidden ones too
    #[arg(long)]
    pub(super) include_hidden: bool,
    /// At most so many, 1 to 500 [default: 100]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) limit: Option<i64>,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = WorkersForm::Json)]
    pub(super) output: WorkersForm,
    /// The same as --output json
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Waits {
    /// Only of executions with this label
    #[arg(long)]
    pub(super) tag: Option<String>,
    /// Only what has waited for so long
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(super) older_than_sec: Option<f64>,
    #[command(flatten)]
    pub(super) page: form::Page,
    #[command(flatten)]
    pub(super) output: form::RowsOutput,
}

#[derive(Debug, Args)]
pub(super) struct Audit {
    /// Only of this kind: a whole name, e.g. runs.submit, or its part before a dot
    #[arg(long, value_name = "NAME")]
    pub(super) action: Option<String>,
    /// Only about this run, graph, worker or key
    #[arg(long, value_name = "ID")]
    pub(super) target: Option<String>,
    /// Only since then: a time ago, e.g. 1h or 7d, or a moment, e.g. 2026-01-31T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = past::parse)]
    pub(super) since: Option<Timestamp>,
    /// Only before then, said in the same ways
    #[arg(long, value_name = "TIME", value_parser = past::parse)]
    pub(super) until: Option<Timestamp>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=1_000))]
    pub(super) limit: i64,
    /// Go on after this `nextCursor`
    #[arg(long)]
    pub(super) cursor: Option<String>,
    /// All of them, however many
    #[arg(long, conflicts_with = "limit")]
    pub(super) all: bool,
    #[command(flatten)]
    pub(super) output: form::RowsOutput,
}

/// JSON or a table.
#[derive(Debug, Args)]
pub(super) struct ListOutput {
    /// Form of the output
    #[arg(long, value_enum, default_value_t = ListForm::Json)]
    output: ListForm,
    /// The same as --output json
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

impl ListOutput {
    pub(super) const fn form(&self) -> ListForm {
        self.output
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ListForm {
    Json,
    Table,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WatchForm {
    Json,
    Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WorkersForm {
    Json,
    Table,
    Plugins,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definitions_do_not_contradict_each_other() {
        Options::command().debug_assert();
    }
}
