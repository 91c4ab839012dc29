//! The configuration: every `PYOCO_*` setting with its default, read once at the start. Flags of a command line are laid
//! over it by whoever has them.

mod dashboard;
mod dotenv;
mod nats;
mod reference;
mod settings;
mod survey;
pub mod table;
mod traces;
mod unknown;
mod variable;
mod wheels;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use pyoco_access::Pepper;
use pyoco_core::ids::Tag;
use pyoco_gateway::HeaderName;

pub use dashboard::DashboardConfig;
pub use nats::{Durability, NatsAccess, NatsNames};
pub use reference::{markdown, names_read_by};
use settings::Settings;
pub use settings::Source;
pub use survey::{Shown, Survey};
pub use traces::{TraceProtocol, TracesConfig};
pub use unknown::Unknown;
pub use variable::{Group, Kind, Origin, Program, Variable, without_secrets};
pub use wheels::WheelsConfig;

/// Everything an operator can set.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where NATS is; without it the store is embedded (`PYOCO_NATS_URL`).
    pub nats_url: Option<String>,
    /// The folder of the embedded store (`PYOCO_DATA_DIR`).
    pub data_dir: PathBuf,
    /// The tag of runs that name none (`PYOCO_DEFAULT_TAG`).
    pub default_tag: Tag,
    /// Largest flow.yaml that is accepted (`PYOCO_WORKFLOW_YAML_MAX_BYTES`).
    pub workflow_yaml_max_bytes: usize,
    /// Largest snapshot; task records are left out beyond (`PYOCO_MAX_RUN_SNAPSHOT_BYTES`).
    pub max_run_snapshot_bytes: usize,
    /// The longest log of a run; what follows is not stored (`PYOCO_RUN_LOG_MAX_BYTES`).
    pub run_log_max_bytes: u64,
    /// The flow of a job that names none (`PYOCO_JOBS_FLOW`).
    pub jobs_flow: String,
    /// Whether a command to an execution needs an idempotency key (`PYOCO_IDEMPOTENCY_KEY_REQUIRED`).
    pub idempotency_key_required: bool,
    /// How long a task may take to stop by itself (`PYOCO_CANCEL_GRACE_PERIOD_SEC`).
    pub cancel_grace: Duration,
    /// How often a running run is said to be alive (`PYOCO_RUN_HEARTBEAT_INTERVAL_SEC`).
    pub run_heartbeat: Duration,
    /// How often a worker reports (`PYOCO_WORKER_HEARTBEAT_INTERVAL_SEC`).
    pub worker_heartbeat: Duration,
    /// A worker unheard for so long is disconnected (`PYOCO_WORKER_DISCONNECT_TIMEOUT_SEC`).
    pub worker_disconnect: Duration,
    /// How long a job is a worker's own without a word (`PYOCO_CONSUMER_ACK_WAIT_SEC`).
    pub ack_wait: Duration,
    /// How often a worker says that it still works on a job (`PYOCO_ACK_PROGRESS_INTERVAL_SEC`).
    pub ack_progress: Duration,
    /// How often queues are compared with what should be in them (`PYOCO_SWEEP_INTERVAL_SEC`).
    pub sweep_every: Duration,
    /// How long running tasks may go on after a worker was told to stop (`PYOCO_DRAIN_TIMEOUT_SEC`).
    pub drain_timeout: Duration,
    /// How long a finished run is kept; nothing: for ever (`PYOCO_RUNS_RETENTION_SEC`).
    pub runs_retention: Option<Duration>,
    /// How long entries of the audit are kept; nothing: for ever (`PYOCO_AUDIT_RETENTION_SEC`).
    pub audit_retention: Option<Duration>,
    /// How many bytes of the audit NATS keeps (`PYOCO_AUDIT_MAX_BYTES`).
    pub audit_max_bytes: i64,
    /// How long the idempotency key of a removed run is remembered (`PYOCO_TOMBSTONE_RETENTION_SEC`).
    pub tombstone_retention: Duration,
    /// Whether runs are removed that no gateway of ours has created (`PYOCO_RETENTION_FOREIGN`).
    pub retention_foreign: bool,
    /// How often it is looked for what has been kept for long enough (`PYOCO_RETENTION_INTERVAL_SEC`).
    pub retention_every: Duration,
    /// Whether a failed run leaves a dead letter (`PYOCO_DLQ_PUBLISH_EXECUTION_ERROR`).
    pub dlq_execution_error: bool,
    /// The Python that runs tasks (`PYOCO_PYTHON`).
    pub python: PathBuf,
    /// How requests are authenticated (`PYOCO_HTTP_AUTH_MODE`).
    pub auth_mode: AuthMode,
    /// The header with the key (`PYOCO_HTTP_API_KEY_HEADER`).
    pub api_key_header: HeaderName,
    /// What is hashed along with the secret of every key (`PYOCO_AUTH_PEPPER`).
    pub auth_pepper: Option<Pepper>,
    /// The names of what stands in NATS.
    pub nats: NatsNames,
    /// How NATS is reached, and what is asked of it.
    pub nats_access: NatsAccess,
    /// How the program talks to its operator.
    pub log: LogConfig,
    /// Where a worker tells its figures, `HOST:PORT` (`PYOCO_WORKER_METRICS_ADDR`).
    pub worker_metrics_addr: Option<String>,
    /// Where traces go.
    pub traces: TracesConfig,
    /// The shelf of wheels, and whether workers install them.
    pub wheels: WheelsConfig,
    /// The page that operators look at.
    pub dashboard: DashboardConfig,
    /// `PYOCO_*` names that mean nothing to this version: probably misspelt.
    pub unknown: Vec<Unknown>,
}

/// How requests are authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// Not at all.
    None,
    /// By a key in a header.
    ApiKey,
}

/// How the program talks to its operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// The least important level that is shown (`PYOCO_LOG_LEVEL`).
    pub level: tracing::Level,
    /// JSON lines or text (`PYOCO_LOG_FORMAT`).
    pub format: LogFormat,
    /// UTC or local time (`PYOCO_LOG_UTC`).
    pub utc: bool,
    /// With the chain of causes (`PYOCO_LOG_INCLUDE_TRACEBACK`).
    pub traceback: bool,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// A line for people.
    Text,
}

/// The configuration makes no sense. Every mistake is named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the configuration is not valid: {}", .0.join("; "))]
pub struct InvalidConfig(pub Vec<String>);

impl Config {
    /// The defaults.
    pub fn new() -> Self {
        Self::read(&mut Settings::new(HashMap::new(), HashMap::new()))
    }

    /// From the environment of the process and the `.env` file that it names.
    pub fn from_env() -> Result<Self, InvalidConfig> {
        Self::from_vars(environment())
    }

    /// From the given variables and the `.env` file that they name.
    pub fn from_vars(env: HashMap<String, String>) -> Result<Self, InvalidConfig> {
        let survey = Survey::of(env);
        if survey.mistakes.is_empty() { Ok(survey.config) } else { Err(InvalidConfig(survey.mistakes)) }
    }

    /// Says which names are set that mean nothing, in the log.
    pub fn warn_of_unknown(&self) {
        for unknown in &self.unknown {
            tracing::warn!("{unknown}");
        }
    }

    fn read(from: &mut Settings) -> Self {
        let mut config = Self {
            nats_url: from.given("PYOCO_NATS_URL"),
            data_dir: PathBuf::from(from.text("PYOCO_DATA_DIR")),
            default_tag: from.tag("PYOCO_DEFAULT_TAG"),
            workflow_yaml_max_bytes: from.number("PYOCO_WORKFLOW_YAML_MAX_BYTES"),
            max_run_snapshot_bytes: from.number("PYOCO_MAX_RUN_SNAPSHOT_BYTES"),
            run_log_max_bytes: from.number("PYOCO_RUN_LOG_MAX_BYTES"),
            jobs_flow: from.text("PYOCO_JOBS_FLOW"),
            idempotency_key_required: from.flag("PYOCO_IDEMPOTENCY_KEY_REQUIRED"),
            cancel_grace: from.seconds("PYOCO_CANCEL_GRACE_PERIOD_SEC"),
            run_heartbeat: from.seconds("PYOCO_RUN_HEARTBEAT_INTERVAL_SEC"),
            worker_heartbeat: from.seconds("PYOCO_WORKER_HEARTBEAT_INTERVAL_SEC"),
            worker_disconnect: from.seconds("PYOCO_WORKER_DISCONNECT_TIMEOUT_SEC"),
            ack_wait: from.seconds("PYOCO_CONSUMER_ACK_WAIT_SEC"),
            ack_progress: from.seconds("PYOCO_ACK_PROGRESS_INTERVAL_SEC"),
            sweep_every: from.seconds("PYOCO_SWEEP_INTERVAL_SEC"),
            drain_timeout: from.seconds("PYOCO_DRAIN_TIMEOUT_SEC"),
            runs_retention: some(from.seconds("PYOCO_RUNS_RETENTION_SEC")),
            audit_retention: some(from.seconds("PYOCO_AUDIT_RETENTION_SEC")),
            audit_max_bytes: from.number("PYOCO_AUDIT_MAX_BYTES"),
            tombstone_retention: from.seconds("PYOCO_TOMBSTONE_RETENTION_SEC"),
            retention_foreign: from.flag("PYOCO_RETENTION_FOREIGN"),
            retention_every: from.seconds("PYOCO_RETENTION_INTERVAL_SEC"),
            dlq_execution_error: from.flag("PYOCO_DLQ_PUBLISH_EXECUTION_ERROR"),
            python: PathBuf::from(from.text("PYOCO_PYTHON")),
            auth_mode: from.choice(
                "PYOCO_HTTP_AUTH_MODE",
                &[("none", AuthMode::None), ("api_key", AuthMode::ApiKey)],
                AuthMode::ApiKey,
            ),
            api_key_header: from.header("PYOCO_HTTP_API_KEY_HEADER"),
            auth_pepper: from.verbatim("PYOCO_AUTH_PEPPER").and_then(|text| Pepper::new(&text)),
            nats: NatsNames::read(from),
            nats_access: NatsAccess::read(from),
            log: LogConfig::read(from),
            worker_metrics_addr: from.given("PYOCO_WORKER_METRICS_ADDR"),
            traces: TracesConfig::read(from),
            wheels: WheelsConfig::read(from),
            dashboard: DashboardConfig::read(from),
            unknown: from.unknown(),
        };
        // Of those that are read elsewhere a bad one is as bad.
        from.check_rest(|row| !row.is_read_by(Program::Client));
        config.adjust();
        config
    }

    /// What one value alone cannot tell.
    fn adjust(&mut self) {
        if self.ack_progress >= self.ack_wait || self.ack_progress.is_zero() {
            // Half of it, so that a lease never runs out under a healthy worker.
            self.ack_progress = self.ack_wait / 2;
        }
        let often = [
            &mut self.sweep_every,
            &mut self.retention_every,
            &mut self.worker_heartbeat,
            &mut self.run_heartbeat,
        ];
        for value in often {
            *value = (*value).max(Duration::from_millis(100));
        }
    }
}

/// A time of 0 stands for no end.
fn some(time: Duration) -> Option<Duration> {
    (!time.is_zero()).then_some(time)
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl LogConfig {
    /// The names of the levels, Python's among them.
    pub const LEVELS: [(&'static str, tracing::Level); 7] = [
        ("TRACE", tracing::Level::TRACE),
        ("DEBUG", tracing::Level::DEBUG),
        ("INFO", tracing::Level::INFO),
        ("WARNING", tracing::Level::WARN),
        ("WARN", tracing::Level::WARN),
        ("ERROR", tracing::Level::ERROR),
        ("CRITICAL", tracing::Level::ERROR),
    ];

    fn read(from: &mut Settings) -> Self {
        let formats = [("json", LogFormat::Json), ("text", LogFormat::Text)];
        Self {
            level: from.choice("PYOCO_LOG_LEVEL", &Self::LEVELS, tracing::Level::INFO),
            format: from.choice("PYOCO_LOG_FORMAT", &formats, LogFormat::Json),
            utc: from.flag("PYOCO_LOG_UTC"),
            traceback: from.flag("PYOCO_LOG_INCLUDE_TRACEBACK"),
        }
    }
}

/// The environment of the process; names and values that are no text are left out. Nobody else reads it.
pub fn environment() -> HashMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The environment that tasks see: without secrets of the server's own, which they have no use for.
pub fn task_environment() -> HashMap<String, String> {
    let mut env = environment();
    env.retain(|name, _| {
        table::variable(name).is_none_or(|row| !row.is_secret() || row.is_read_by(Program::Task))
    });
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(vars: &[(&str, &str)]) -> Result<Config, InvalidConfig> {
        let quiet = [("PYOCO_LOAD_DOTENV", "0")];
        Config::from_vars(
            quiet.iter().chain(vars).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        )
    }

    #[test]
    fn nothing_set_means_the_defaults_of_the_contract() {
        let config = from(&[]).unwrap();
        assert_eq!(config, Config::new());
        assert_eq!(config.nats_url, None);
        assert_eq!(config.workflow_yaml_max_bytes, 262_144);
        assert!(config.idempotency_key_required);
        assert_eq!(config.cancel_grace, Duration::from_secs(30));
        assert_eq!(config.nats.dlq_max_bytes, 536_870_912);
    }

    #[test]
    fn every_setting_that_is_read_is_in_the_table_with_a_default_of_its_kind() {
        let mut settings = Settings::new(HashMap::new(), HashMap::new());
        let _ = Config::read(&mut settings);
        assert_eq!(settings.mistakes, Vec::<String>::new());
        let mut names = std::collections::BTreeSet::new();
        for row in table::TABLE {
            assert!(names.insert(row.name), "{} stands there twice", row.name);
            assert!(row.default.is_empty() || row.kind.accepts(row.default), "{}", row.name);
            assert!(!row.readers.is_empty() && !row.help.is_empty(), "{}", row.name);
            assert!(row.default.is_empty() || !row.is_secret(), "{}", row.name);
        }
    }

    #[test]
    fn the_reference_is_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == markdown(),
            "docs/reference/configuration.md is old: pyoco-server config --markdown > docs/reference/configuration.md"
        );
    }

    #[test]
    fn a_setting_that_is_read_elsewhere_is_looked_at_all_the_same() {
        let error = from(&[("PYOCO_LOAD_DOTENV", "perhaps")]).unwrap_err();
        let InvalidConfig(mistakes) = error;
        assert_eq!(
            mistakes,
            ["PYOCO_LOAD_DOTENV must be one of 1, true, yes, on, 0, false, no, off; or leave it out for 1",]
        );
    }

    #[test]
    fn tasks_see_no_secret_of_the_server() {
        let secrets = table::TABLE.iter().filter(|row| row.is_secret());
        let kept: Vec<&str> =
            secrets.filter(|row| row.is_read_by(Program::Task)).map(|row| row.name).collect();
        assert_eq!(kept, ["OTEL_EXPORTER_OTLP_HEADERS", "PYOCO_API_KEY"]);
    }

    #[test]
    fn values_are_read_and_an_empty_one_is_none() {
        let config = from(&[
            ("PYOCO_NATS_URL", ""),
            ("PYOCO_DEFAULT_TAG", "gpu"),
            ("PYOCO_IDEMPOTENCY_KEY_REQUIRED", "false"),
            ("PYOCO_CANCEL_GRACE_PERIOD_SEC", "0.5"),
            ("PYOCO_LOG_LEVEL", "warning"),
            ("PYOCO_LOG_UTC", "off"),
        ])
        .unwrap();
        assert_eq!(config.nats_url, None);
        assert_eq!(config.default_tag.as_str(), "gpu");
        assert!(!config.idempotency_key_required);
        assert_eq!(config.cancel_grace, Duration::from_millis(500));
        assert_eq!((config.log.level, config.log.utc), (tracing::Level::WARN, false));
    }

    #[test]
    fn every_mistake_is_named_and_no_value_is_shown() {
        let error = from(&[
            ("PYOCO_HTTP_AUTH_MODE", "s3cret"),
            ("PYOCO_DEFAULT_TAG", "a.b"),
            ("PYOCO_CONSUMER_ACK_WAIT_SEC", "-1"),
            ("PYOCO_WORKFLOW_YAML_MAX_BYTES", "many"),
        ])
        .unwrap_err();
        let text = error.to_string();
        for name in [
            "PYOCO_HTTP_AUTH_MODE",
            "PYOCO_DEFAULT_TAG",
            "PYOCO_CONSUMER_ACK_WAIT_SEC",
            "PYOCO_WORKFLOW_YAML_MAX_BYTES",
        ] {
            assert!(text.contains(name), "{text}");
        }
        assert!(!text.contains("s3cret"), "{text}");
    }

    #[test]
    fn a_pepper_is_taken_as_it_stands_and_never_shown() {
        let of = |pepper| from(&[("PYOCO_AUTH_PEPPER", pepper)]).unwrap();
        assert_eq!(of("").auth_pepper, None);
        assert_eq!(of("  ").auth_pepper, None);
        assert_ne!(of(" s3cret").auth_pepper, of("s3cret").auth_pepper);
        let config = of(" s3cret");
        assert!(config.auth_pepper.is_some() && config.unknown.is_empty());
        assert!(!format!("{config:?}").contains("s3cret"), "{config:?}");
    }

    #[test]
    fn a_header_has_the_name_of_a_header() {
        let of = |name| from(&[("PYOCO_HTTP_API_KEY_HEADER", name)]).map(|config| config.api_key_header);
        assert_eq!(of("").unwrap(), "X-API-Key");
        assert_eq!(of("X-Team-Key").unwrap(), "X-Team-Key");
        for name in ["X Team", "clé", "a:b"] {
            assert!(of(name).unwrap_err().to_string().contains("PYOCO_HTTP_API_KEY_HEADER"), "{name}");
        }
    }

    #[test]
    fn a_misspelt_name_is_found() {
        let unknown = from(&[("PYOCO_DATADIR", "x")]).unwrap().unknown;
        let unknown: Vec<String> = unknown.iter().map(ToString::to_string).collect();
        assert_eq!(
            unknown,
            ["PYOCO_DATADIR is set, but this version knows no such setting; did you mean PYOCO_DATA_DIR?"]
        );
    }

    #[test]
    fn the_file_fills_in_what_the_environment_leaves_open() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.env");
        std::fs::write(&file, "PYOCO_DEFAULT_TAG=from_file\nPYOCO_PYTHON=py\n").unwrap();
        let vars = [("PYOCO_ENV_FILE", file.to_str().unwrap()), ("PYOCO_PYTHON", "mine")];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = Config::from_vars(vars.into_iter().collect()).unwrap();
        assert_eq!(config.default_tag.as_str(), "from_file");
        assert_eq!(config.python, std::path::Path::new("mine"));
    }
}
