//! Packages that are compared with: installed, pinned, into a folder of `target`, and again only when the pins have changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::Failure;
use crate::process::Process;

const PYTHON_PINS: &str = "requirements.txt";
const NODE_PINS: [&str; 3] = ["package-lock.json", "package.json", ".npmrc"];
/// Where there is no network, a package manager tries for long.
const PATIENCE: Duration = Duration::from_secs(300);

/// Those that `requirements.txt` in `pins` names, into `venv`.
pub(crate) async fn of_python(python: &Path, pins: &Path, venv: &Path, logs: &Path) -> Result<(), Failure> {
    let wanted = pins.join(PYTHON_PINS);
    if is_current(&wanted, venv)? {
        return Ok(());
    }
    let mut command = Command::new(python);
    command.args(["-m", "venv", "--clear"]).arg(venv);
    finish("venv", command, logs).await?;
    let mut command = Command::new(venv.join("bin/python"));
    command.args(["-m", "pip", "install", "--disable-pip-version-check", "-r"]).arg(&wanted);
    finish("pip", command, logs).await?;
    keep(&wanted, venv)
}

/// Those that `package.json` in `pins` names, if there is one, into `folder`; by the npm that is installed in `venv`.
pub(crate) async fn of_node(pins: &Path, venv: &Path, folder: &Path, logs: &Path) -> Result<(), Failure> {
    let [lock, ..] = NODE_PINS;
    let lock = pins.join(lock);
    if !lock.exists() || is_current(&lock, venv)? {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    for name in NODE_PINS {
        fs::copy(pins.join(name), folder.join(name))?;
    }
    let mut command = Command::new(venv.join("bin/npm"));
    command.args(["install", "--ignore-scripts"]).env("PATH", path_with(venv)?).current_dir(folder);
    finish("npm", command, logs).await?;
    keep(&lock, venv)
}

/// The PATH, with the programs of `venv` first.
pub(crate) fn path_with(venv: &Path) -> Result<std::ffi::OsString, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = [venv.join("bin")].into_iter().chain(std::env::split_paths(&path));
    Ok(std::env::join_paths(all.collect::<Vec<PathBuf>>())?)
}

async fn finish(name: &str, mut command: Command, logs: &Path) -> Result<(), Failure> {
    let process = Process::start(name, &mut command, logs)?;
    timeout(PATIENCE, process.finish())
        .await
        .map_err(|_| format!("{name} was not done after {PATIENCE:?}"))?
}

/// Whether these pins are what `venv` was installed by: a copy of them is left in it when all was done.
fn is_current(wanted: &Path, venv: &Path) -> Result<bool, Failure> {
    let installed = wanted.file_name().map(|name| venv.join(name)).ok_or("pins without a name")?;
    Ok(fs::read(installed).ok() == Some(fs::read(wanted)?))
}

fn keep(wanted: &Path, venv: &Path) -> Result<(), Failure> {
    let name = wanted.file_name().ok_or("pins without a name")?;
    fs::copy(wanted, venv.join(name))?;
    Ok(())
}
