//! What `pyoco-server-admin` can be asked, as clap understands it. Every help ends with an example that works.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use pyoco_core::access::Role;
use pyoco_core::time::Timestamp;
use pyoco_server::Config;
use pyoco_server::config::{Program, names_read_by};

use super::expiry;
use crate::past;

/// Look after a server: its API keys, backups and dead letters.
#[derive(Debug, Parser)]
#[command(
    name = "pyoco-server-admin",
    version,
    infer_long_args = true,
    args_override_self = true,
    disable_help_subcommand = true,
    after_help = format!(
        "Without NATS it works on the embedded store: through its server while that runs, else on the store itself.
Settings are also read from PYOCO_* variables and a .env file; a flag wins over both.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 no such key or dead letter, or bad arguments.

{}

Examples:
  pyoco-server-admin api-key create --tenant team-a --name 'Ada, laptop'
  pyoco-server-admin --data-dir /var/lib/pyoco api-key list
  pyoco-server-admin --nats-url nats://127.0.0.1:4222 api-key revoke --key-id KEY_ID
  pyoco-server-admin backup --out /backups/monday.tar
  pyoco-server-admin dlq list",
        names_read_by(Program::Admin)
    )
)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Where the store is.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// Where NATS is, several servers separated by commas [env: PYOCO_NATS_URL]
    #[arg(long, value_name = "URL", global = true, conflicts_with = "data_dir", help_heading = "Store")]
    nats_url: Option<String>,
    /// The folder of the embedded store [default: ./.pyoco] [env: PYOCO_DATA_DIR]
    #[arg(long, value_name = "DIR", global = true, help_heading = "Store")]
    data_dir: Option<PathBuf>,
}

impl Place {
    /// Lays the flags over a configuration. Whoever names a folder does not mean NATS.
    pub(super) fn apply(self, config: &mut Config) {
        if let Some(folder) = self.data_dir {
            config.data_dir = folder;
            config.nats_url = None;
        }
        if let Some(url) = self.nats_url.filter(|url| !url.is_empty()) {
            config.nats_url = Some(url);
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Manage the API keys that open the HTTP gateway
    #[command(subcommand)]
    ApiKey(KeyCommand),
    /// Copy everything, while the server works
    #[command(after_help = "Examples:
  pyoco-server-admin backup --out /backups/monday.tar
  pyoco-server-admin --nats-url nats://127.0.0.1:4222 backup --out /backups/monday

A name that ends in .tar becomes one file, any other a folder. It has its name when it is whole. It holds what users sent: keep it safe.")]
    Backup(Backup),
    /// Make a store of a backup, where there is none
    #[command(after_help = "Examples:
  pyoco-server-admin --data-dir /var/lib/pyoco-new restore --from /backups/monday.tar
  pyoco-server-admin --nats-url nats://127.0.0.1:4222 restore --from /backups/monday

Nothing that exists is written over. Start servers and workers when it is done.")]
    Restore(Restore),
    /// Look after dead letters: jobs that could not be run
    #[command(subcommand)]
    Dlq(LetterCommand),
    /// Remove runs that ended long ago, with their events, logs and values
    #[command(after_help = "Examples:
  pyoco-server-admin prune --before 7d --dry-run
  pyoco-server-admin prune --before 2026-01-31T00:00:00Z --limit 10000 --json

A server does this by itself every minute (PYOCO_RUNS_RETENTION_SEC). Archived runs stay, and so do those of other programs on the same
NATS. What is removed cannot be brought back; a repeated submission of it is still recognised.")]
    Prune(Prune),
}

#[derive(Debug, Args)]
pub(super) struct Backup {
    /// Where it is to stand; nothing may be there yet
    #[arg(long, value_name = "FILE.tar|DIR")]
    pub(super) out: PathBuf,
    /// JSON, also on a terminal
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Restore {
    /// The backup
    #[arg(long, value_name = "FILE.tar|DIR")]
    pub(super) from: PathBuf,
    /// Do not look at every execution before it is done. In NATS that look also shows again what was accepted while the backup was made
    #[arg(long)]
    pub(super) no_check: bool,
    /// JSON, also on a terminal
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Prune {
    /// Those that ended before: an instant like 2026-01-31T00:00:00Z, or how long ago, like 30d [default: as the server keeps them]
    #[arg(long, value_name = "WHEN", value_parser = past::parse)]
    pub(super) before: Option<Timestamp>,
    /// Only say how many
    #[arg(long)]
    pub(super) dry_run: bool,
    /// How many at most; the longest ended first [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) limit: Option<u32>,
    /// JSON, also on a terminal
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum LetterCommand {
    /// List dead letters, newest first
    #[command(after_help = "Examples:
  pyoco-server-admin dlq list
  pyoco-server-admin dlq list --reason flow_not_found --limit 1000 --json

A terminal gets a table, a pipe gets JSON.")]
    List(Letters),
    /// Show a dead letter with all that is in it
    #[command(after_help = "Example:
  pyoco-server-admin dlq show KEY")]
    Show(Letter),
    /// Run the runs of dead letters again, each as a new run, and remove the letters
    #[command(after_help = "Examples:
  pyoco-server-admin dlq redrive KEY
  pyoco-server-admin dlq redrive --reason flow_not_found --dry-run
  pyoco-server-admin dlq redrive --all

What cannot be redriven stays, and the answer says why. To order it again redrives nothing twice.")]
    Redrive(Redrive),
    /// Throw dead letters away
    #[command(after_help = "Examples:
  pyoco-server-admin dlq purge --before 30d
  pyoco-server-admin dlq purge --yes

Their runs stay as they are.")]
    Purge(Purge),
}

#[derive(Debug, Args)]
pub(super) struct Letters {
    /// Only those for this reason: invalid_job, flow_not_found or execution_error
    #[arg(long, value_name = "REASON")]
    pub(super) reason: Option<String>,
    /// Only those of this tag
    #[arg(long, value_name = "TAG")]
    pub(super) tag: Option<String>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) limit: u32,
    /// JSON, also on a terminal
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Letter {
    /// The key that `list` shows
    #[arg(value_name = "KEY")]
    pub(super) key: String,
}

#[derive(Debug, Args)]
pub(super) struct Redrive {
    #[command(flatten)]
    pub(super) which: Redriven,
    /// Only say what would be done
    #[arg(long)]
    pub(super) dry_run: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Redriven {
    /// The key that `list` shows
    #[arg(value_name = "KEY")]
    pub(super) key: Option<String>,
    /// All with this reason
    #[arg(long, value_name = "REASON")]
    pub(super) reason: Option<String>,
    /// All of them
    #[arg(long)]
    pub(super) all: bool,
}

#[derive(Debug, Args)]
pub(super) struct Purge {
    /// Only those from before: an instant like 2026-01-31T00:00:00Z, or how long ago, like 30d [default: all]
    #[arg(long, value_name = "WHEN", value_parser = past::parse)]
    pub(super) before: Option<Timestamp>,
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Create a key; its secret is shown this once
    #[command(after_help = "Examples:
  pyoco-server-admin api-key create --tenant team-a
  pyoco-server-admin api-key create --tenant team-a --role read --expires 30d --name dashboard

The member api_key of the answer is the key: send it in the header X-API-Key, or as Authorization: Bearer.")]
    Create(Create),
    /// List keys, newest first; no secrets
    #[command(after_help = "Examples:
  pyoco-server-admin api-key list
  pyoco-server-admin api-key list --json

A terminal gets a table of the keys that are good, and with --all of all. A pipe gets all of them as JSON.")]
    List(List),
    /// Revoke a key; every gateway refuses it within two seconds
    #[command(after_help = "Example:
  pyoco-server-admin api-key revoke --key-id KEY_ID")]
    Revoke(Which),
    /// Replace a key by a new one of the same tenant, role, expiry and name, and revoke it
    #[command(after_help = "Example:
  pyoco-server-admin api-key rotate --key-id KEY_ID")]
    Rotate(Which),
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Whose runs the key opens: letters, digits, '_' and '-'
    #[arg(long, value_name = "TENANT")]
    pub(super) tenant: String,
    /// read: look; submit: also submit, cancel, retry; admin: also see who did what
    #[arg(long, value_name = "ROLE", default_value_t, value_parser = role)]
    pub(super) role: Role,
    /// When it ceases to be good: an instant like 2027-01-31T00:00:00Z, or a time from now like 30d or 12h [default: never]
    #[arg(long, value_name = "WHEN", value_parser = expiry::parse)]
    pub(super) expires: Option<Timestamp>,
    /// What people call it, e.g. who has it
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Also those that are revoked or have expired
    #[arg(long)]
    pub(super) all: bool,
    /// JSON, also on a terminal
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Which {
    /// The key_id that `list` shows
    #[arg(long, value_name = "KEY_ID")]
    pub(super) key_id: String,
}

fn role(name: &str) -> Result<Role, String> {
    name.parse().map_err(|error: pyoco_core::access::NoRole| error.to_string())
}
