//! Which wheels a worker's Python can run, as it says itself.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use pyoco_wheels::{SupportedTags, TagSet};
use serde::Deserialize;
use tokio::process::Command;

use super::error::WheelError;
use crate::python::{PythonOptions, identify};

const QUESTION: &str = include_str!("tags.py");

/// A Python and what it supports.
#[derive(Debug)]
pub(super) struct Interpreter {
    executable: PathBuf,
    tag: String,
    supported: SupportedTags,
}

#[derive(Deserialize)]
struct Said {
    tags: Vec<String>,
}

impl Interpreter {
    /// The program itself.
    pub(super) fn executable(&self) -> &Path {
        &self.executable
    }

    /// The best tag that it supports: which Python, on which system.
    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    pub(super) const fn supported(&self) -> &SupportedTags {
        &self.supported
    }
}

/// Asks a worker's Python.
pub(super) async fn ask(options: &PythonOptions) -> Result<Interpreter, WheelError> {
    let executable = identify(options).await.map_err(WheelError::Python)?.executable;
    let asked = Command::new(&executable)
        .args(["-I", "-c", QUESTION])
        .env_clear()
        .envs(&options.env)
        .current_dir(&options.folder)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    let cannot = |why: &str| {
        WheelError::Python(format!(
            "Python ('{}') does not say which wheels it runs: {why}",
            executable.display()
        ))
    };
    let output = asked.map_err(|error| cannot(&error.to_string()))?;
    if !output.status.success() {
        return Err(cannot(String::from_utf8_lossy(&output.stderr).trim()));
    }
    let said: Said = serde_json::from_slice(&output.stdout).map_err(|error| cannot(&error.to_string()))?;
    // A tag that is none of ours to understand is none that a wheel on the shelf can have.
    let tags: Vec<String> = said.tags.into_iter().filter(|tag| TagSet::parse(tag).is_ok()).collect();
    let tag = tags.first().cloned().ok_or_else(|| cannot("it names none"))?;
    let supported = SupportedTags::new(&tags).map_err(|error| cannot(&error.to_string()))?;
    Ok(Interpreter { executable, tag, supported })
}
