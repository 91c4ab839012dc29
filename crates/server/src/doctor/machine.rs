//! What a process needs around it.

use std::time::Duration;

use pyoco_worker::python::{PythonOptions, identify};

use super::Finding;
use crate::Config;
use crate::config::task_environment;

/// A Python that takes longer to say who it is cannot run tasks.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let version = format!("pyoco-server {}", env!("CARGO_PKG_VERSION"));
    vec![Finding::ok("version", version), python(config).await]
}

async fn python(config: &Config) -> Finding {
    const ABOUT: &str = "python";
    let Ok(folder) = std::env::current_dir() else {
        return Finding::warn(ABOUT, "the folder that this runs in is gone")
            .advice("run it in another folder");
    };
    let options =
        PythonOptions { python: config.python.clone(), ..PythonOptions::new(folder, task_environment()) };
    match tokio::time::timeout(PATIENCE, identify(&options)).await {
        Ok(Ok(found)) => {
            let (major, minor) = found.version;
            Finding::ok(ABOUT, format!("Python {major}.{minor} at {}", found.executable.display()))
        }
        Ok(Err(reason)) => Finding::warn(ABOUT, format!("no Python task can run here: {reason}"))
            .advice("commands and tasks in Rust need none; otherwise install Python 3.9 or later"),
        Err(_) => Finding::warn(ABOUT, format!("'{}' does not say who it is", config.python.display()))
            .advice("choose another with --python or PYOCO_PYTHON"),
    }
}
