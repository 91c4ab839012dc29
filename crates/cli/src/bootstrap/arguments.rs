//! What `nats-bootstrap` can be asked, as clap understands it: the commands and flags of the original, and some more. Every help ends
//! with an example that works.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use pyoco_bootstrap::pidfile;
use pyoco_bootstrap::seed::Seed;

/// NATS from the first server to a cluster, for people who are not experts of it.
#[derive(Debug, Parser)]
#[command(
    name = "nats-bootstrap",
    version,
    args_override_self = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  nats-bootstrap up                                          # one server, in the foreground
  nats-bootstrap up --cluster demo --background              # the first of several
  nats-bootstrap join --seed nats://127.0.0.1:6222 --background \\
    --client-port 4223 --http-port 8223 --cluster-port 6223 --datafolder n2 --pid-file n2.pid
  nats-bootstrap doctor
  nats-bootstrap backup --output /backups/monday

Settings of NATS are also read from PYOCO_NATS_* variables and a .env file; a flag wins over both.
Exit codes: 0 done, 1 failed, 2 bad arguments, a missing --confirm, or something that is not there; 130 interrupted."
)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What every command understands, before or after its name.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// A JSON file that may say where nats-server is [default: ./nats-config.json, else ~/.nats-bootstrap/nats-config.json]
    #[arg(long, value_name = "FILE", global = true)]
    pub(super) config: Option<PathBuf>,
    /// The program nats-server [env: NATS_SERVER_PATH]
    #[arg(long, value_name = "PATH", global = true)]
    pub(super) nats_server_path: Option<PathBuf>,
    /// The file that names the process that `up` has started
    #[arg(long, value_name = "FILE", global = true, default_value_os_t = PathBuf::from(".").join(pidfile::NAME))]
    pub(super) pid_file: PathBuf,
    /// JSON instead of lines for people
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start a server, on its own or as the first of a cluster
    #[command(after_help = "Examples:
  nats-bootstrap up
  nats-bootstrap up --with-users --tls-cert server.pem --tls-key server.key --listen 0.0.0.0
  nats-bootstrap up -- -js -a 127.0.0.1 -p 4222 -m 8222

Without a mode it writes DATAFOLDER/nats-bootstrap.conf, with sync_interval: always. A configuration that somebody changed is kept.
With only arguments after -- nats-server gets those and no configuration.")]
    Up(Box<Up>),
    /// Start another server of a cluster
    #[command(after_help = "Example:
  nats-bootstrap join --seed nats://n1:6222 --seed nats://n2:6222 --listen 0.0.0.0 --with-users

Name every server that is there, so that any two find each other. With --with-users copy credentials.env from the first server into the
data folder before.")]
    Join(Box<Join>),
    /// The old name of `up`
    #[command(hide = true)]
    Start(Box<Up>),
    /// Show which nats-server there is, and how the running ones stand
    #[command(after_help = "Examples:
  nats-bootstrap status
  nats-bootstrap status --http-url http://n1:8222,http://n2:8222 --json")]
    Status(Status),
    /// Look for what is wrong, or soon will be, and say what to do; changes nothing
    #[command(after_help = "Examples:
  nats-bootstrap doctor
  nats-bootstrap doctor --nats-url nats://n1:4222 --http-url http://n1:8222

Exit codes: 0 nothing is wrong (warnings may be there), 1 something is, 2 there is no nats-server.")]
    Doctor(Doctor),
    /// Have existing streams stand on more servers
    #[command(after_help = "Example:
  nats-bootstrap raise --replicas 3")]
    Raise(Raise),
    /// Copy everything of this product, or one stream
    #[command(after_help = "Examples:
  nats-bootstrap backup --output /backups/monday
  nats-bootstrap backup --stream PYOCO_EVENTS --output /backups/events

The first is what `pyoco-server-admin backup` writes, the second what `nats stream backup` does. Nothing that exists is written over.")]
    Backup(Backup),
    /// Make streams of a backup, where there are none
    #[command(after_help = "Example:
  nats-bootstrap restore --input /backups/monday --confirm")]
    Restore(Restore),
    /// Take this server out of its cluster, through a controller, and stop it
    #[command(after_help = "Example:
  nats-bootstrap leave --controller http://n1:8223 --confirm")]
    Leave(Leave),
    /// Stop the server that `up` has started
    #[command(after_help = "Example:
  nats-bootstrap down --confirm")]
    Down(Down),
    /// Keep a server running with systemd
    #[command(subcommand)]
    Service(Service),
    /// Take servers out of the cluster for others
    #[command(subcommand)]
    Controller(ControllerCommand),
}

/// How a server is to be.
#[derive(Debug, Args)]
pub(super) struct Form {
    /// Where the server keeps its things [default: ./nats-bootstrap-data]
    #[arg(long, value_name = "DIR")]
    pub(super) datafolder: Option<PathBuf>,
    /// Its name; no other server of the cluster has it [default: the host's name, with the port if that is not 4222]
    #[arg(long, value_name = "NAME")]
    pub(super) server_name: Option<String>,
    /// Where clients come [default: 4222]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) client_port: Option<u16>,
    /// Where it tells about itself, on loopback [default: 8222]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) http_port: Option<u16>,
    /// Where other servers come [default: 6222]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) cluster_port: Option<u16>,
    /// The address that clients and servers reach it at [default: 127.0.0.1]
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(super) listen: Option<String>,
    /// Let clients and servers in without a password also where others can reach it
    #[arg(long)]
    pub(super) allow_unauthenticated: bool,
    /// A user for gateways, workers and admins, each with the rights it needs; passwords go to DATAFOLDER/credentials.env
    #[arg(long)]
    pub(super) with_users: bool,
    /// The certificate for TLS with clients
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    /// Clients must show a certificate of this authority
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_ca: Option<PathBuf>,
    /// How many MiB JetStream may store in files [default: as before, else three quarters of the room]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub(super) max_file_mib: Option<u64>,
    /// A bootstrap.yaml
    #[arg(long, value_name = "FILE", conflicts_with_all = ["with_users", "nats_config"])]
    pub(super) bootstrap_config: Option<PathBuf>,
    /// A configuration of nats-server, used as it is
    #[arg(long, value_name = "FILE")]
    pub(super) nats_config: Option<PathBuf>,
    /// Do not wait for its end
    #[arg(long)]
    pub(super) background: bool,
    /// How long it may take to find the others of its cluster, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 45)]
    pub(super) wait_sec: u64,
    /// Keep it running with systemd instead (see `service`)
    #[arg(long)]
    pub(super) service: bool,
    /// The name of that service
    #[arg(long, value_name = "NAME", default_value = "nats-server")]
    pub(super) service_name: String,
    /// Start a version that has lost data all the same
    #[arg(long)]
    pub(super) allow_known_bad: bool,
    /// More arguments for nats-server
    #[arg(last = true, value_name = "ARGS")]
    pub(super) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct Up {
    /// The name of the cluster; without it the server is on its own
    #[arg(long, value_name = "NAME")]
    pub(super) cluster: Option<String>,
    #[command(flatten)]
    pub(super) form: Form,
}

#[derive(Debug, Args)]
pub(super) struct Join {
    /// A server of the cluster, `nats://HOST:CLUSTER_PORT`; several are better
    #[arg(long, value_name = "URL")]
    pub(super) seed: Vec<Seed>,
    /// The name of the cluster; it must be the seed's [default: the seed's]
    #[arg(long, value_name = "NAME")]
    pub(super) cluster: Option<String>,
    /// When it has joined, have existing streams stand on so many servers
    #[arg(long, value_name = "N", value_parser = ["3", "5"], requires = "background")]
    pub(super) raise_replicas: Option<String>,
    #[command(flatten)]
    pub(super) form: Form,
}

/// Where NATS is, and who we are there.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// Where NATS is, several servers separated by commas [default: nats://127.0.0.1:4222] [env: PYOCO_NATS_URL]
    #[arg(long, value_name = "URL")]
    pub(super) nats_url: Option<String>,
    /// A credentials file [env: PYOCO_NATS_CREDS]
    #[arg(long, value_name = "FILE")]
    pub(super) creds: Option<PathBuf>,
    /// A context of the `nats` tool
    #[arg(long, value_name = "NAME", conflicts_with_all = ["nats_url", "creds"])]
    pub(super) context: Option<String>,
    /// The folder whose passwords are used if nothing else says who we are [default: ./nats-bootstrap-data]
    #[arg(long = "credentials-of", value_name = "DIR")]
    pub(super) credentials_of: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    pub(super) place: Place,
    /// Where servers tell about themselves, separated by commas [default: http://127.0.0.1:8222] [env: PYOCO_NATS_MONITOR_URL]
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    pub(super) http_url: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct Doctor {
    #[command(flatten)]
    pub(super) status: Status,
    /// A controller to ask whether it is there
    #[arg(long, value_name = "URL")]
    pub(super) controller: Vec<String>,
    /// The service to look at
    #[arg(long, value_name = "NAME")]
    pub(super) service_name: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Raise {
    #[command(flatten)]
    pub(super) place: Place,
    /// On how many servers
    #[arg(long, value_name = "N", value_parser = ["3", "5"])]
    pub(super) replicas: String,
    /// How long to wait until every copy is whole, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(super) wait_sec: u64,
}

#[derive(Debug, Args)]
pub(super) struct Backup {
    #[command(flatten)]
    pub(super) place: Place,
    /// One stream only
    #[arg(long, value_name = "STREAM")]
    pub(super) stream: Option<String>,
    /// Where it is to stand; nothing may be there yet
    #[arg(long, value_name = "DIR")]
    pub(super) output: PathBuf,
    /// Not needed any more
    #[arg(long, value_name = "PATH", hide = true)]
    pub(super) nats_cli_path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Restore {
    #[command(flatten)]
    pub(super) place: Place,
    /// The backup
    #[arg(long, value_name = "DIR")]
    pub(super) input: PathBuf,
    /// Yes, make streams of it
    #[arg(long)]
    pub(super) confirm: bool,
    /// On how many servers the stream is to stand, of a backup of one [default: as it stood]
    #[arg(long, value_name = "N", value_parser = ["1", "3", "5"])]
    pub(super) replicas: Option<String>,
    /// Not needed any more
    #[arg(long, value_name = "PATH", hide = true)]
    pub(super) nats_cli_path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Leave {
    /// Yes, take it out and stop it
    #[arg(long)]
    pub(super) confirm: bool,
    /// A controller; the first that answers is asked
    #[arg(long, value_name = "URL")]
    pub(super) controller: Vec<String>,
    /// To say it again without doing it again [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(super) request_id: Option<String>,
    /// The server [default: the one of this folder, else the host's name]
    #[arg(long, value_name = "NAME")]
    pub(super) server_name: Option<String>,
    /// Passed on to the controller
    #[arg(long, value_name = "URL")]
    pub(super) nats_url: Option<String>,
    /// Succeed also when no controller answers; nothing is stopped then
    #[arg(long)]
    pub(super) stop_anyway: bool,
    /// Where the server keeps its things [default: ./nats-bootstrap-data]
    #[arg(long, value_name = "DIR")]
    pub(super) datafolder: Option<PathBuf>,
    /// How long to wait until its copies are elsewhere, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(super) wait_sec: u64,
}

#[derive(Debug, Args)]
pub(super) struct Down {
    /// Yes, stop it
    #[arg(long)]
    pub(super) confirm: bool,
    /// How long it may take before it is killed, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(super) wait_sec: u64,
}

#[derive(Debug, Subcommand)]
pub(super) enum Service {
    /// Print the unit
    #[command(after_help = "Example:
  nats-bootstrap service print -- --datafolder /var/lib/nats --cluster demo")]
    Print(Unit),
    /// Write the unit to /etc/systemd/system, or without root to ~/.config/systemd/user
    #[command(after_help = "Example:
  nats-bootstrap service install --now -- --datafolder /var/lib/nats")]
    Install(Unit),
    /// Remove the unit
    Uninstall(Unit),
}

#[derive(Debug, Args)]
pub(super) struct Unit {
    /// The name of the service
    #[arg(long, value_name = "NAME", default_value = "nats-server")]
    pub(super) service_name: String,
    /// The folder of the program nats-bootstrap [default: where this one is]
    #[arg(long, value_name = "DIR")]
    pub(super) bin_dir: Option<PathBuf>,
    /// A configuration of nats-server, used as it is
    #[arg(long, value_name = "FILE")]
    pub(super) nats_config: Option<PathBuf>,
    /// Also tell systemd: start it now, or stop it
    #[arg(long)]
    pub(super) now: bool,
    /// What the service runs: the arguments of `up`, or `join` and its arguments
    #[arg(last = true, value_name = "ARGS")]
    pub(super) arguments: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ControllerCommand {
    /// Answer until it is told to stop
    #[command(after_help = "Example:
  nats-bootstrap controller start --nats-url nats://127.0.0.1:4222 \\
    --sys-user sys --sys-password-env NATS_BOOTSTRAP_SYSTEM_PASSWORD")]
    Start(Controller),
}

#[derive(Debug, Args)]
pub(super) struct Controller {
    /// Where NATS is
    #[arg(long, value_name = "URL")]
    pub(super) nats_url: String,
    /// A credentials file of the system account
    #[arg(long, value_name = "FILE", required_unless_present_any = ["sys_user", "credentials_of"])]
    pub(super) sys_creds: Option<PathBuf>,
    /// A user of the system account
    #[arg(long, value_name = "USER", requires = "sys_password_env", conflicts_with = "sys_creds")]
    pub(super) sys_user: Option<String>,
    /// The variable of that user's password
    #[arg(long, value_name = "NAME", requires = "sys_user")]
    pub(super) sys_password_env: Option<String>,
    /// The data folder of a server, whose credentials.env has the password
    #[arg(long, value_name = "DIR", conflicts_with_all = ["sys_creds", "sys_user"])]
    pub(super) credentials_of: Option<PathBuf>,
    /// Where to listen
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8222")]
    pub(super) listen: String,
    /// Where to remember what was asked [default: ~/.nats-bootstrap/controller]
    #[arg(long, value_name = "DIR")]
    pub(super) state_dir: Option<PathBuf>,
}
