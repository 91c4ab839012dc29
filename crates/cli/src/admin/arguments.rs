//! What `pyoco-server-admin` can be asked, as clap understands it. Every help ends with an example that works.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use pyoco_core::access::Role;
use pyoco_core::time::Timestamp;
use pyoco_server::Config;

use super::expiry;

/// Look after the API keys of a server.
#[derive(Debug, Parser)]
#[command(
    name = "pyoco-server-admin",
    version,
    infer_long_args = true,
    args_override_self = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  pyoco-server-admin api-key create --tenant team-a --name 'Ada, laptop'
  pyoco-server-admin --data-dir /var/lib/pyoco api-key list
  pyoco-server-admin --nats-url nats://127.0.0.1:4222 api-key revoke --key-id KEY_ID

Without NATS it works on the embedded store: through its server while that runs, else on the store itself.
Settings are also read from PYOCO_* variables and a .env file; a flag wins over both.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 no such key, or bad arguments."
)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Where the keys are.
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
