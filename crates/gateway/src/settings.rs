//! What an operator chooses about the gateway. Time-outs and sizes of connections are `ServerLimits`.

use std::path::PathBuf;
use std::time::Duration;

use axum::http::HeaderName;
use pyoco_core::access::Role;
use pyoco_core::ids::Tag;
use pyoco_core::time::Millis;

use crate::page::PageFile;

/// How the gateway behaves. The default is the contract's.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The tag of a run that names none (`PYOCO_DEFAULT_TAG`).
    pub default_tag: Tag,
    /// The flow of a job that names none (`PYOCO_JOBS_FLOW`).
    pub jobs_flow: String,
    /// The longest flow.yaml (`PYOCO_WORKFLOW_YAML_MAX_BYTES`).
    pub workflow_yaml_max_bytes: usize,
    /// A snapshot that would be longer is shown without its task records (`PYOCO_MAX_RUN_SNAPSHOT_BYTES`).
    pub max_run_snapshot_bytes: usize,
    /// A worker that was not heard for longer is gone (`PYOCO_WORKER_DISCONNECT_TIMEOUT_SEC`); zero: never.
    pub worker_disconnect_timeout: Millis,
    /// Whether a command needs an idempotency key of its caller (`PYOCO_IDEMPOTENCY_KEY_REQUIRED`).
    pub idempotency_key_required: bool,
    /// How many watches, streams of events and lines, and WebSockets may be open at once.
    pub max_watches: usize,
    /// A watch says that it is alive when it had nothing to say for this long. Clients of the original give up after 5 s.
    pub watch_heartbeat: Duration,
    /// The header of an API key (`PYOCO_HTTP_API_KEY_HEADER`); `Authorization: Bearer` means the same.
    pub api_key_header: HeaderName,
    /// How often the key of whoever has a stream or a WebSocket open is looked at again.
    pub key_recheck: Duration,
    /// How often a WebSocket is asked for a sign of life. After four that nobody answered it is closed.
    pub socket_ping: Duration,
    /// How wheels are taken in.
    pub wheels: WheelSettings,
    /// The page that operators look at.
    pub dashboard: DashboardSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_tag: Tag::default(),
            jobs_flow: "analysis".to_owned(),
            workflow_yaml_max_bytes: 262_144,
            max_run_snapshot_bytes: 262_144,
            worker_disconnect_timeout: Millis(20_000),
            idempotency_key_required: true,
            max_watches: 1_000,
            watch_heartbeat: Duration::from_millis(2_500),
            api_key_header: HeaderName::from_static("x-api-key"),
            key_recheck: Duration::from_secs(1),
            socket_ping: Duration::from_secs(15),
            wheels: WheelSettings::default(),
            dashboard: DashboardSettings::default(),
        }
    }
}

/// What an operator chooses about wheels.
#[derive(Debug, Clone)]
pub struct WheelSettings {
    /// What the place is called that they are kept in (`PYOCO_WHEEL_OBJECT_STORE_BUCKET`). Answers name it.
    pub bucket: String,
    /// The longest wheel (`PYOCO_WHEEL_MAX_BYTES`); zero: there is none.
    pub max_bytes: u64,
    /// The smallest role that may change what is there (`PYOCO_WHEEL_UPLOAD_ROLE`).
    pub upload_role: Role,
    /// The folder for what is on its way in. It needs room for the longest wheel, several times.
    pub folder: PathBuf,
}

impl Default for WheelSettings {
    fn default() -> Self {
        Self {
            bucket: "pyoco_wheels".to_owned(),
            max_bytes: 512 << 20,
            upload_role: Role::Submit,
            folder: std::env::temp_dir(),
        }
    }
}

/// What an operator chooses about the dashboard, and what it is made of.
#[derive(Debug, Clone, Default)]
pub struct DashboardSettings {
    /// Its files; without `index.html` there is no dashboard.
    pub files: Vec<PageFile>,
    /// The language that it begins with (`PYOCO_DASHBOARD_LANG`).
    pub language: Language,
    /// Whether it offers to cancel, retry, answer and hide (`PYOCO_DASHBOARD_ACTIONS`). The API does so in any case.
    pub has_actions: bool,
}

/// A language of the dashboard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Japanese.
    Japanese,
}

impl Language {
    /// As ISO 639 abbreviates it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Japanese => "ja",
        }
    }
}
