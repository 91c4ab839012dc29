//! What an operator chooses about wheels: where they are kept, who may upload them, and whether workers install them.

use std::path::PathBuf;
use std::time::Duration;

use pyoco_core::access::Role;

use super::settings::Settings;

/// The settings of wheels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelsConfig {
    /// The bucket of the shelf in NATS (`PYOCO_WHEEL_OBJECT_STORE_BUCKET`).
    pub bucket: String,
    /// The longest wheel, and all of them together in NATS; zero: as long as there is room (`PYOCO_WHEEL_MAX_BYTES`).
    pub max_bytes: u64,
    /// The smallest role that may change the shelf (`PYOCO_WHEEL_UPLOAD_ROLE`).
    pub upload_role: Role,
    /// The bucket of the history in NATS (`PYOCO_WHEEL_HISTORY_KV_BUCKET`).
    pub history_bucket: String,
    /// How long the history is kept; zero: for ever (`PYOCO_WHEEL_HISTORY_TTL_SEC`).
    pub history_ttl: Duration,
    /// Whether a worker installs wheels; nothing when nobody has said (`PYOCO_WHEEL_SYNC_ENABLED`).
    pub sync: Option<bool>,
    /// Where a worker keeps them; nothing when nobody has said (`PYOCO_WHEEL_SYNC_DIR`).
    pub sync_dir: Option<PathBuf>,
    /// How often it looks for changes that it has not heard of (`PYOCO_WHEEL_SYNC_INTERVAL_SEC`).
    pub sync_every: Duration,
    /// How long an installation may take (`PYOCO_WHEEL_INSTALL_TIMEOUT_SEC`).
    pub install_timeout: Duration,
}

impl WheelsConfig {
    /// Where `pyoco-worker` keeps wheels when nobody says where.
    pub const SYNC_DIR: &'static str = ".pyoco/wheels";

    pub(super) fn read(from: &mut Settings) -> Self {
        let is_said = |from: &Settings, name: &str| from.found(name).is_some();
        let sync = from.flag("PYOCO_WHEEL_SYNC_ENABLED");
        let sync_dir = PathBuf::from(from.text("PYOCO_WHEEL_SYNC_DIR"));
        Self {
            bucket: from.text("PYOCO_WHEEL_OBJECT_STORE_BUCKET"),
            max_bytes: from.number("PYOCO_WHEEL_MAX_BYTES"),
            upload_role: from.choice(
                "PYOCO_WHEEL_UPLOAD_ROLE",
                &[("submit", Role::Submit), ("admin", Role::Admin)],
                Role::Admin,
            ),
            history_bucket: from.text("PYOCO_WHEEL_HISTORY_KV_BUCKET"),
            history_ttl: from.seconds("PYOCO_WHEEL_HISTORY_TTL_SEC"),
            sync: is_said(from, "PYOCO_WHEEL_SYNC_ENABLED").then_some(sync),
            sync_dir: is_said(from, "PYOCO_WHEEL_SYNC_DIR").then_some(sync_dir),
            sync_every: from.seconds("PYOCO_WHEEL_SYNC_INTERVAL_SEC"),
            install_timeout: from.seconds("PYOCO_WHEEL_INSTALL_TIMEOUT_SEC"),
        }
    }
}
