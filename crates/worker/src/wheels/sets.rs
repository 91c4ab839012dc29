//! A set of wheels as it is installed: a folder named by what is in it and by the Python it is for.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use pyoco_core::digest::Digest;
use pyoco_core::wheels::UsedWheel;
use pyoco_wheels::WheelSet;

use super::interpreter::Interpreter;

/// What a folder holds, beside what an installer put there. The name is none that Python could import.
const DESCRIPTION: &str = ".pyoco-wheels.json";

/// A set of wheels that is installed here. It is not removed as long as somebody holds this.
#[derive(Debug)]
pub struct WheelFolder {
    path: PathBuf,
    _lock: File,
}

impl WheelFolder {
    pub(super) const fn new(path: PathBuf, lock: File) -> Self {
        Self { path, _lock: lock }
    }

    /// Where its modules are; its programs are in `bin` there.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The name of the folder of a set. Programs in it begin with the path of their Python, so each has its own.
pub(super) fn key(set: &WheelSet, interpreter: &Interpreter) -> String {
    let text = format!("{}\n{}\n{}\n", set.digest(), interpreter.tag(), interpreter.executable().display());
    Digest::of_bytes(text.as_bytes()).to_string()
}

/// Writes down what a folder holds.
pub(super) fn describe(folder: &Path, used: &[UsedWheel]) -> io::Result<()> {
    fs::write(folder.join(DESCRIPTION), serde_json::to_vec(used)?)
}

/// The hashes of the wheels that a folder was made of; none if it does not say.
pub(super) fn files_of(folder: &Path) -> Vec<String> {
    let text = fs::read(folder.join(DESCRIPTION)).unwrap_or_default();
    let used: Vec<UsedWheel> = serde_json::from_slice(&text).unwrap_or_default();
    used.into_iter().map(|wheel| wheel.sha256).collect()
}
