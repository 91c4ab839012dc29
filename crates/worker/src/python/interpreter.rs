//! Which Python runs tasks: asked once, so that a missing or too old one is said in plain words.

use std::path::PathBuf;
use std::process::Stdio;

use serde::Deserialize;
use tokio::process::Command;

use super::PythonOptions;

/// What an interpreter says about itself. A wrapper on the path is slow to start; what is behind it is not.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Interpreter {
    /// The program itself.
    pub executable: PathBuf,
    /// Its version, the first two numbers.
    pub version: (u32, u32),
}

const QUESTION: &str =
    "import json, sys; print(json.dumps({'executable': sys.executable, 'version': sys.version_info[:2]}))";

/// The oldest one that runs the host.
const OLDEST: (u32, u32) = (3, 9);

/// Finds the interpreter itself.
pub(super) async fn find(options: &PythonOptions) -> Result<PathBuf, String> {
    identify(options).await.map(|interpreter| interpreter.executable)
}

/// Asks the Python of some options who it is; the reason why no task can run in it, for people, if none can.
pub async fn identify(options: &PythonOptions) -> Result<Interpreter, String> {
    let python = options.python.display();
    let hint = "choose one with --python or PYOCO_PYTHON";
    // A path is meant from where the worker was started; a name is looked up.
    let is_path = options.python.components().count() > 1;
    let given = if is_path { std::path::absolute(&options.python).ok() } else { None };
    let given = given.unwrap_or_else(|| options.python.clone());
    let asked = Command::new(&given)
        .args(["-I", "-c", QUESTION])
        .env_clear()
        .envs(&options.env)
        .current_dir(&options.folder)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    let output = asked.map_err(|error| format!("Python ('{python}') cannot be started: {error}; {hint}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        return Err(format!("Python ('{python}') cannot be started: {}: {said}; {hint}", output.status));
    }
    let mut identity: Interpreter = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("'{python}' does not seem to be Python; {hint}"))?;
    if identity.version < OLDEST {
        let (major, minor) = identity.version;
        return Err(format!("'{python}' is Python {major}.{minor}, 3.9 or later is needed; {hint}"));
    }
    if identity.executable.as_os_str().is_empty() {
        identity.executable = given;
    }
    Ok(identity)
}
