//! `job` and `tags`: jobs, and the labels by which they are found again.

use clap::{Args, Subcommand};

use super::Repeat;
use super::form::{RowsOutput, ViewOutput};
use super::logs::LinesForm;

#[derive(Debug, Subcommand)]
pub(in crate::client) enum JobCommand {
    /// Submit a job
    #[command(after_help = "Examples:
  pyoco-client job submit --param input=data.csv --tag urgent --tag 'Q3 report'
  pyoco-client job submit --flow analysis --params-file params.yaml --follow
  pyoco-client job submit --param input=data.csv --idempotency-key nightly-2026-01-31

A value of --param is JSON when it can be read as JSON, otherwise text.
Later sources win: --params-file, then --params, then --param.

With --follow the id is shown on standard error and the log on standard output, as by pyoco-client
logs. The exit code then tells how the job ended: 0 completed, 1 failed, 130 canceled.")]
    Submit(Submit),
    /// Show a job
    #[command(after_help = "Example:
  pyoco-client job get JOB_ID")]
    Get(Get),
    /// List jobs, newest first
    #[command(after_help = "Examples:
  pyoco-client job list --tag urgent --tag 'Q3 report' --status running
  pyoco-client job list --any-tag urgent --any-tag later --all
  pyoco-client job list --created-after 2026-01-31T00:00:00Z --json

A job must have every --tag, and one of --any-tag if there are any. A terminal gets a table, a pipe
gets lines of job, status, tags, time of creation and time of its end, separated by tabs. With --all
--json each job is a line.")]
    List(List),
    /// Cancel a job that goes on; hide one that has ended
    #[command(after_help = "Example:
  pyoco-client job delete JOB_ID

What happened stays readable: pyoco-client exec events JOB_ID.")]
    Delete(Which),
    /// Show the labels of a job
    #[command(after_help = "Example:
  pyoco-client job tags JOB_ID")]
    Tags(Tags),
    /// Give a job labels
    #[command(after_help = "Example:
  pyoco-client job tag JOB_ID urgent 'Q3 report' 売上

A label is any text of 1 to 128 characters.")]
    Tag(Tag),
    /// Take labels from a job
    #[command(after_help = "Example:
  pyoco-client job untag JOB_ID urgent 'Q3 report'")]
    Untag(Untag),
}

#[derive(Debug, Args)]
pub(in crate::client) struct Submit {
    /// Flow to run [default: the gateway's, which is analysis unless it was told otherwise]
    #[arg(long, value_name = "NAME")]
    pub(in crate::client) flow: Option<String>,
    /// Parameters, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(in crate::client) params: Option<String>,
    /// File with parameters, a JSON or YAML object
    #[arg(long, value_name = "FILE")]
    pub(in crate::client) params_file: Option<String>,
    /// One parameter; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(in crate::client) param: Vec<String>,
    /// A label; may be repeated
    #[arg(long, value_name = "LABEL")]
    pub(in crate::client) tag: Vec<String>,
    /// Which workers may run it [default: the gateway's]
    #[arg(long, value_name = "TAG")]
    pub(in crate::client) routing_tag: Option<String>,
    #[command(flatten)]
    pub(in crate::client) repeat: Repeat,
    /// Show its log until it has ended
    #[arg(long)]
    pub(in crate::client) follow: bool,
    #[command(flatten)]
    pub(in crate::client) form: LinesForm,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Which {
    /// The job
    pub(in crate::client) job_id: String,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Get {
    /// The job
    pub(in crate::client) job_id: String,
    #[command(flatten)]
    pub(in crate::client) output: ViewOutput,
}

#[derive(Debug, Args)]
pub(in crate::client) struct List {
    /// Only jobs with this label; may be repeated: with each of them
    #[arg(long, value_name = "LABEL")]
    pub(in crate::client) tag: Vec<String>,
    /// Only jobs with one of these labels; may be repeated
    #[arg(long, value_name = "LABEL")]
    pub(in crate::client) any_tag: Vec<String>,
    /// Only jobs in this state; may be repeated: in one of them
    #[arg(long, value_parser = ["pending", "running", "completed", "failed", "canceled"])]
    pub(in crate::client) status: Vec<String>,
    /// Only jobs of this flow
    #[arg(long, value_name = "NAME")]
    pub(in crate::client) flow: Option<String>,
    /// Only those created after this moment, e.g. 2026-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(in crate::client) created_after: Option<String>,
    /// Only those created before this moment
    #[arg(long, value_name = "TIME")]
    pub(in crate::client) created_before: Option<String>,
    /// At most so many, 1 to 200
    #[arg(long, value_name = "N", default_value_t = 50, allow_negative_numbers = true)]
    pub(in crate::client) limit: i64,
    #[command(flatten)]
    pub(in crate::client) rest: Rest,
    #[command(flatten)]
    pub(in crate::client) output: RowsOutput,
}

/// Where a list goes on, and where it ends.
#[derive(Debug, Args)]
pub(in crate::client) struct Rest {
    /// Go on after this `nextToken`
    #[arg(long, value_name = "TOKEN")]
    pub(in crate::client) next_token: Option<String>,
    /// All of them, however many
    #[arg(long, conflicts_with = "limit")]
    pub(in crate::client) all: bool,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Tags {
    /// The job
    pub(in crate::client) job_id: String,
    #[command(flatten)]
    pub(in crate::client) output: RowsOutput,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Tag {
    /// The job
    pub(in crate::client) job_id: String,
    /// The labels
    #[arg(value_name = "LABEL", required = true)]
    pub(in crate::client) labels: Vec<String>,
    #[command(flatten)]
    pub(in crate::client) output: RowsOutput,
}

#[derive(Debug, Args)]
pub(in crate::client) struct Untag {
    /// The job
    pub(in crate::client) job_id: String,
    /// The labels
    #[arg(value_name = "LABEL", required = true)]
    pub(in crate::client) labels: Vec<String>,
}

/// `tags`: the labels that are in use.
#[derive(Debug, Args)]
pub(in crate::client) struct Labels {
    /// Only labels that begin with this text
    #[arg(long, value_name = "TEXT")]
    pub(in crate::client) prefix: Option<String>,
    /// At most so many, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 100, allow_negative_numbers = true)]
    pub(in crate::client) limit: i64,
    #[command(flatten)]
    pub(in crate::client) rest: Rest,
    #[command(flatten)]
    pub(in crate::client) output: RowsOutput,
}
