//! Installing wheels into a folder, with uv where there is one and pip otherwise: exactly these files, nothing from elsewhere.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::Signal;
use pyoco_wheels::WheelSet;
use tokio::process::Command;

use super::WheelOptions;
use super::error::WheelError;
use super::folders::Making;
use super::interpreter::Interpreter;
use crate::process::{Group, how_it_ended};

/// So much of what an installer says at the end is quoted.
const QUOTED: u64 = 1_500;

/// Installs the wheels of a set, which are in `files` by their names, into `target`. Everything that it starts is ended with it,
/// also when this worker is killed.
pub(super) async fn install(
    options: &WheelOptions,
    interpreter: &Interpreter,
    making: &Making,
    files: &Path,
    set: &WheelSet,
    target: &Path,
) -> Result<(), WheelError> {
    let python = interpreter.executable();
    let uv = on_path(&options.python.env, "uv");
    let log = making.path().join("install.log");
    let cannot = || WheelError::disk("cannot write", &log);
    let said = fs::File::create(&log).map_err(cannot())?;
    let temporary = making.subfolder("tmp")?;
    let mut command = match &uv {
        Some(uv) => {
            let mut command = Command::new(uv);
            // Copies: a file that is also in its cache could be changed there.
            command.args(["pip", "install", "--no-config", "--no-cache", "--offline", "--link-mode", "copy"]);
            command.args(["--compile-bytecode", "--no-deps", "--no-index"]);
            command.arg("--python").arg(python);
            command
        }
        None => {
            let mut command = Command::new(python);
            command.args(["-m", "pip", "--isolated", "--disable-pip-version-check", "--no-input", "install"]);
            command.args(["--no-warn-script-location", "--no-cache-dir", "--no-deps", "--no-index"]);
            command
        }
    };
    command
        .arg("--target")
        .arg(target)
        .args(set.wheels().iter().map(|wheel| files.join(wheel.name.as_str())))
        // Not where the worker was started: what is there could be taken for pip.
        .current_dir(&temporary)
        .env_clear()
        .envs(environment(&options.python.env))
        .env("TMPDIR", &temporary)
        .stdin(Stdio::null())
        .stdout(said.try_clone().map_err(cannot())?)
        .stderr(said);
    let name = if uv.is_some() { "uv" } else { "pip" };
    let mut group = Group::start_guarded(&mut command)
        .map_err(|error| WheelError::Install(format!("{name} cannot be started: {error}")))?;
    let Ok(ended) = tokio::time::timeout(options.install_timeout, group.ended()).await else {
        group.tell(Signal::SIGKILL);
        group.ended().await;
        let limit = options.install_timeout;
        return Err(WheelError::Install(format!(
            "{name} took longer than {limit:?} (PYOCO_WHEEL_INSTALL_TIMEOUT_SEC) and was ended: {}",
            last_words(&log)
        )));
    };
    if ended.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let how = ended.map_or_else(|| "is gone".to_owned(), how_it_ended);
    let words = last_words(&log);
    let hint = match words.contains("No module named pip") {
        true => "; install uv, or pip for this Python",
        false => "",
    };
    Err(WheelError::Install(format!("{name} {how}: {words}{hint}")))
}

/// What an operator tells uv and pip for other occasions does not count here.
fn environment(env: &HashMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    env.iter().filter(|(name, _)| !name.starts_with("PIP_") && !name.starts_with("UV_"))
}

/// A program on the path, if it is there.
fn on_path(env: &HashMap<String, String>, name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(env.get("PATH")?).map(|folder| folder.join(name)).find(is_program)
}

/// The end of what an installer wrote.
fn last_words(log: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = fs::File::open(log)?;
        let start = file.metadata()?.len().saturating_sub(QUOTED);
        file.seek(SeekFrom::Start(start))?;
        let mut end = Vec::new();
        file.take(QUOTED).read_to_end(&mut end)?;
        Ok(end)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).trim().to_owned()
}
