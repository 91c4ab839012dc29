//! The arguments of `pyoco-server` and `pyoco-worker`, and how they are laid over the configuration.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use pyoco_server::config::{LogConfig, Program, Survey, WheelsConfig, names_read_by};
use pyoco_server::{Config, Language, ServerOptions, WorkerOptions};

use super::check::CheckArguments;
use super::doctor::DoctorArguments;
use super::settings::SettingsArguments;
use super::status::StatusArguments;

/// Runs workflows: the HTTP gateway, and without NATS also the store and a worker.
#[derive(Debug, Parser)]
#[command(
    name = "pyoco-server",
    version,
    about = "Runs workflows: the HTTP gateway, an embedded store and a worker in one process",
    after_help = "Examples:\n  pyoco-server up\n  pyoco-server up --port 9000 --flows ./flows --data-dir /var/lib/pyoco\n  pyoco-server status\n  pyoco-server doctor\n\nSettings are also read from PYOCO_* variables and a .env file; a flag wins over both.",
    disable_help_subcommand = true
)]
pub struct ServerArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: ServerCommand,
}

/// What `pyoco-server` does.
#[derive(Debug, Subcommand)]
pub enum ServerCommand {
    /// Starts the server and stays up until it is told to stop
    #[command(
        after_help = format!("{}\n\nExamples:\n  pyoco-server up --flows ./flows\n  pyoco-server up --nats-url nats://127.0.0.1:4222\n  PYOCO_HTTP_AUTH_MODE=api_key pyoco-server up --host 0.0.0.0\n  pyoco-server up --host 0.0.0.0 --check-config\n\nThen, in another terminal:\n  pyoco-client submit --flow-name NAME", names_read_by(Program::Server))
    )]
    Up(Box<UpArguments>),
    /// Shows how a server does: whether it is up, what waits, who works
    #[command(after_help = "Examples:
  pyoco-server status
  pyoco-server status --url http://gateway:8000 --json

Exit codes: 0 it is up, 1 it is not, or its store does not answer.")]
    Status(StatusArguments),
    /// Looks for what is wrong, or soon will be, and says what to do; changes nothing
    #[command(after_help = "Examples:
  pyoco-server doctor
  pyoco-server doctor --data-dir /var/lib/pyoco --deep
  pyoco-server doctor --nats-url nats://127.0.0.1:4222 --json

Exit codes: 0 nothing is wrong (warnings may be there), 1 something is.")]
    Doctor(DoctorArguments),
    /// Checks the settings, shows them with where each comes from, and starts nothing
    #[command(after_help = "Examples:
  pyoco-server check-config
  PYOCO_ENV_FILE=production.env pyoco-server check-config --json

With the flags of a start: pyoco-server up … --check-config, or pyoco-worker … --check-config.
Exit codes: 0 a server would start with them, 1 it would not.")]
    CheckConfig(CheckArguments),
    /// Explains every setting
    #[command(after_help = "Examples:
  pyoco-server config
  pyoco-server config PYOCO_DATA_DIR
  pyoco-server config --markdown > docs/reference/configuration.md")]
    Config(SettingsArguments),
}

/// The arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArguments {
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// The port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// The least important log lines to show: trace, debug, info, warning, error, critical [env: PYOCO_LOG_LEVEL]
    #[arg(long, value_parser = level)]
    pub log_level: Option<tracing::Level>,
    /// The folder of the embedded store [default: ./.pyoco] [env: PYOCO_DATA_DIR]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where NATS is, several servers separated by commas; without it the embedded store is used [env: PYOCO_NATS_URL]
    #[arg(long, value_name = "URL")]
    pub nats_url: Option<String>,
    /// The language that the dashboard begins with [default: auto] [env: PYOCO_DASHBOARD_LANG]
    #[arg(long, value_name = "LANG", ignore_case = true)]
    pub dashboard_lang: Option<DashboardLanguage>,
    /// Start a nats-server too, with its data in the data folder; it is stopped with this process
    #[arg(long)]
    pub with_nats_bootstrap: bool,
    /// The address of that nats-server
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub nats_listen_host: String,
    /// The port of that nats-server
    #[arg(long, value_name = "PORT", default_value_t = 4222, value_parser = clap::value_parser!(u16).range(1..))]
    pub nats_client_port: u16,
    /// The port where that nats-server tells about itself, on loopback
    #[arg(long, value_name = "PORT", default_value_t = 8222, value_parser = clap::value_parser!(u16).range(1..))]
    pub nats_http_port: u16,
    /// Listen without API keys also on an address that others can reach; everybody who does may run code here
    #[arg(long)]
    pub allow_unauthenticated: bool,
    /// Run no worker in this process; with NATS there is none unless --with-worker is given
    #[arg(long, conflicts_with = "with_worker")]
    pub no_worker: bool,
    /// Run a worker in this process, also with NATS
    #[arg(long)]
    pub with_worker: bool,
    /// Check the settings and these flags, show them, and start nothing
    #[arg(long)]
    pub check_config: bool,
    /// The worker in this process
    #[command(flatten, next_help_heading = "Worker")]
    pub worker: WorkerArguments,
    /// The wheels of the worker in this process
    #[command(flatten, next_help_heading = "Wheels of the worker")]
    pub wheels: WheelArguments,
}

/// The language of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DashboardLanguage {
    /// The system's.
    Auto,
    /// Japanese.
    Ja,
    /// English.
    En,
}

impl DashboardLanguage {
    /// As a setting has it.
    const fn as_str(self) -> &'static str {
        match self.chosen() {
            Some(language) => language.as_str(),
            None => "auto",
        }
    }

    /// The language, unless it is the system's.
    const fn chosen(self) -> Option<Language> {
        match self {
            Self::Auto => None,
            Self::Ja => Some(Language::Japanese),
            Self::En => Some(Language::English),
        }
    }
}

/// Takes runs from a queue and runs their tasks.
#[derive(Debug, Parser)]
#[command(
    name = "pyoco-worker",
    version,
    about = "Takes runs from the queue and runs their tasks",
    after_help = format!("Settings are also read from PYOCO_* variables and a .env file; a flag wins over both.\n{}\n\nExamples:\n  pyoco-worker --flows ./flows\n  pyoco-worker --nats-url nats://127.0.0.1:4222 --tags default,gpu --flow-resolver flows.py:resolve\n  pyoco-worker --data-dir ./.pyoco --run-once", names_read_by(Program::Worker))
)]
pub struct StandaloneWorkerArguments {
    /// Where NATS is [default: nats://127.0.0.1:4222] [env: PYOCO_NATS_URL]
    #[arg(long, value_name = "URL", conflicts_with = "data_dir")]
    pub nats_url: Option<String>,
    /// Work on the embedded store in this folder instead; no server may be using it
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// How long one look for a run may take, in seconds
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", value_parser = seconds)]
    pub poll_timeout: f64,
    /// Look for one run, see it through, and end
    #[arg(long)]
    pub run_once: bool,
    /// Answer /metrics and /health here; nobody is asked for a key, so use a loopback address [env: PYOCO_WORKER_METRICS_ADDR]
    #[arg(long, value_name = "HOST:PORT")]
    pub metrics_addr: Option<String>,
    /// Check the settings and these flags, show them, and start nothing
    #[arg(long)]
    pub check_config: bool,
    /// The least important log lines to show [env: PYOCO_LOG_LEVEL]
    #[arg(long, value_parser = level)]
    pub log_level: Option<tracing::Level>,
    /// The worker
    #[command(flatten, next_help_heading = "Worker")]
    pub worker: WorkerArguments,
    /// Its wheels
    #[command(flatten, next_help_heading = "Wheels")]
    pub wheels: WheelArguments,
}

/// What both have to say about wheels.
#[derive(Debug, Args)]
pub struct WheelArguments {
    /// Install the wheels that are for this worker [default: pyoco-server up does, pyoco-worker does not] [env: PYOCO_WHEEL_SYNC_ENABLED]
    #[arg(long, overrides_with = "no_wheel_sync")]
    pub wheel_sync: bool,
    /// Install no wheels
    #[arg(long, overrides_with = "wheel_sync")]
    pub no_wheel_sync: bool,
    /// Where installed wheels are kept [default: .pyoco/wheels; pyoco-server up: wheels in its data folder] [env: PYOCO_WHEEL_SYNC_DIR]
    #[arg(long, value_name = "DIR")]
    pub wheel_sync_dir: Option<PathBuf>,
    /// How often to look for wheels that were not heard of [default: 10] [env: PYOCO_WHEEL_SYNC_INTERVAL_SEC]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub wheel_sync_interval_sec: Option<f64>,
    /// How long an installation may take [default: 180] [env: PYOCO_WHEEL_INSTALL_TIMEOUT_SEC]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub wheel_install_timeout_sec: Option<f64>,
}

impl WheelArguments {
    /// Whether to install wheels, if a flag says so.
    const fn sync(&self) -> Option<bool> {
        match (self.wheel_sync, self.no_wheel_sync) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }

    fn note(&self, survey: &mut Survey) {
        survey.flag("PYOCO_WHEEL_SYNC_ENABLED", self.sync().map(|sync| u8::from(sync).to_string()));
        survey.flag("PYOCO_WHEEL_SYNC_DIR", shown(self.wheel_sync_dir.as_ref()));
        let seconds = |seconds: Option<f64>| seconds.map(|seconds| seconds.to_string());
        survey.flag("PYOCO_WHEEL_SYNC_INTERVAL_SEC", seconds(self.wheel_sync_interval_sec));
        survey.flag("PYOCO_WHEEL_INSTALL_TIMEOUT_SEC", seconds(self.wheel_install_timeout_sec));
    }

    fn apply(&self, wheels: &mut WheelsConfig) {
        wheels.sync = self.sync().or(wheels.sync);
        wheels.sync_dir = self.wheel_sync_dir.clone().or_else(|| wheels.sync_dir.take());
        if let Some(seconds) = self.wheel_sync_interval_sec {
            wheels.sync_every = Duration::from_secs_f64(seconds);
        }
        if let Some(seconds) = self.wheel_install_timeout_sec {
            wheels.install_timeout = Duration::from_secs_f64(seconds);
        }
    }
}

/// What both have to say about a worker.
#[derive(Debug, Args)]
pub struct WorkerArguments {
    /// The tags whose runs it takes, separated by commas [default: PYOCO_DEFAULT_TAG or "default"]
    #[arg(long, value_name = "TAGS", value_parser = tags)]
    pub tags: Option<Tags>,
    /// Its name in the list of workers
    #[arg(long, default_value = "worker", value_name = "NAME")]
    pub worker_id: String,
    /// A folder of named flows: DIR/NAME.yaml or DIR/NAME/flow.yaml
    #[arg(long, value_name = "DIR")]
    pub flows: Option<PathBuf>,
    /// A Python function that builds flows with the pyoco package
    #[arg(long, value_name = "MODULE:FUNCTION|FILE.py:FUNCTION")]
    pub flow_resolver: Option<String>,
    /// The Python that runs tasks [default: python3] [env: PYOCO_PYTHON]
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// Runs at once [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub concurrency: Option<NonZeroUsize>,
    /// Tasks of one run at once
    #[arg(long, value_name = "N", default_value = "8")]
    pub task_slots: NonZeroUsize,
}

/// Tags in one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tags(pub Vec<String>);

fn tags(text: &str) -> Result<Tags, String> {
    let tags: Vec<String> =
        text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
    if tags.is_empty() {
        return Err("name at least one tag, e.g. --tags default".to_owned());
    }
    Ok(Tags(tags))
}

fn level(text: &str) -> Result<tracing::Level, String> {
    let found = LogConfig::LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    found
        .map(|(_, level)| *level)
        .ok_or_else(|| "use trace, debug, info, warning, error or critical".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds is wanted".to_owned())?;
    if (0.0..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("0 to 3600 seconds are allowed".to_owned())
    }
}

/// Where a worker looks for NATS when nobody says where it is.
const USUAL_NATS: &str = "nats://127.0.0.1:4222";

/// Where the worker inside a server keeps installed wheels, in the data folder.
const WHEELS_DIR: &str = "wheels";

impl UpArguments {
    /// Notes in a survey what the flags say instead.
    pub fn note(&self, survey: &mut Survey) {
        survey.flag("PYOCO_NATS_URL", self.nats_url.clone());
        survey.flag("PYOCO_DATA_DIR", shown(self.data_dir.as_ref()));
        let data_dir = self.data_dir.as_ref().unwrap_or(&survey.config.data_dir);
        let wheels_dir = data_dir.join(WHEELS_DIR).display().to_string();
        let language = self.dashboard_lang.map(|language| language.as_str().to_owned());
        survey.flag("PYOCO_DASHBOARD_LANG", language);
        survey.assume("PYOCO_WHEEL_SYNC_ENABLED", "1");
        survey.assume("PYOCO_WHEEL_SYNC_DIR", &wheels_dir);
        self.wheels.note(survey);
        note_common(survey, self.log_level, &self.worker);
    }

    /// Lays the flags over a configuration.
    pub fn apply(&self, config: &mut Config) {
        config.nats_url = self.nats_url.clone().or_else(|| config.nats_url.take());
        if let Some(folder) = &self.data_dir {
            config.data_dir.clone_from(folder);
        }
        if let Some(language) = self.dashboard_lang {
            config.dashboard.chosen = language.chosen();
        }
        self.wheels.apply(&mut config.wheels);
        // Alone on a machine it is one program: what is uploaded to it is there for its runs.
        config.wheels.sync.get_or_insert(true);
        config.wheels.sync_dir.get_or_insert_with(|| config.data_dir.join(WHEELS_DIR));
        apply_common(config, self.log_level, &self.worker);
    }

    /// What the server is started with. Beside others it answers requests only; alone it has to do everything.
    pub fn options(&self, config: &Config, env: HashMap<String, String>) -> ServerOptions {
        let has_worker = self.with_worker || (config.nats_url.is_none() && !self.no_worker);
        let worker = has_worker.then(|| self.worker.options(env));
        ServerOptions {
            host: self.host.clone(),
            port: self.port,
            allow_unauthenticated: self.allow_unauthenticated,
            worker,
        }
    }
}

impl StandaloneWorkerArguments {
    /// Notes in a survey what the flags say instead.
    pub fn note(&self, survey: &mut Survey) {
        match &self.data_dir {
            Some(folder) => {
                survey.flag("PYOCO_DATA_DIR", shown(Some(folder)));
                survey.leave_out("PYOCO_NATS_URL");
            }
            None => {
                survey.assume("PYOCO_NATS_URL", USUAL_NATS);
                survey.flag("PYOCO_NATS_URL", self.nats_url.clone());
            }
        }
        survey.flag("PYOCO_WORKER_METRICS_ADDR", self.metrics_addr.clone());
        self.wheels.note(survey);
        note_common(survey, self.log_level, &self.worker);
    }

    /// Lays the flags over a configuration. Without a folder NATS is meant, wherever it is.
    pub fn apply(&self, config: &mut Config) {
        match &self.data_dir {
            Some(folder) => {
                config.data_dir.clone_from(folder);
                config.nats_url = None;
            }
            None => {
                let url = self.nats_url.clone().or_else(|| config.nats_url.take());
                config.nats_url = Some(url.unwrap_or_else(|| USUAL_NATS.to_owned()));
            }
        }
        if self.metrics_addr.is_some() {
            config.worker_metrics_addr.clone_from(&self.metrics_addr);
        }
        self.wheels.apply(&mut config.wheels);
        apply_common(config, self.log_level, &self.worker);
    }
}

fn shown(path: Option<&PathBuf>) -> Option<String> {
    path.map(|path| path.display().to_string())
}

fn note_common(survey: &mut Survey, level: Option<tracing::Level>, worker: &WorkerArguments) {
    survey.flag("PYOCO_LOG_LEVEL", level.map(|level| level.to_string()));
    survey.flag("PYOCO_PYTHON", shown(worker.python.as_ref()));
}

fn apply_common(config: &mut Config, level: Option<tracing::Level>, worker: &WorkerArguments) {
    if let Some(level) = level {
        config.log.level = level;
    }
    if let Some(python) = &worker.python {
        config.python.clone_from(python);
    }
}

impl WorkerArguments {
    /// What a worker is started with.
    pub fn options(&self, env: HashMap<String, String>) -> WorkerOptions {
        WorkerOptions {
            id: self.worker_id.clone(),
            tags: self.tags.clone().map(|tags| tags.0).unwrap_or_default(),
            concurrency: self.concurrency,
            task_slots: self.task_slots,
            flows: self.flows.clone(),
            flow_resolver: self.flow_resolver.clone(),
            env,
        }
    }
}
