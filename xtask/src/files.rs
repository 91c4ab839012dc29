//! Files stay small, and every module says what lives in it.

use std::fs;
use std::path::{Path, PathBuf};

/// Nobody reads further.
const MOST_LINES: usize = 800;

/// Files that have grown too long, and modules that open without a word.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut sources = Vec::new();
    for folder in ["bench", "crates", "examples", "testing", "xtask"] {
        collect(&root.join(folder), &mut sources);
    }
    sources.iter().flat_map(|path| check_file(root, path)).collect()
}

fn collect(folder: &Path, sources: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
}

fn check_file(root: &Path, path: &Path) -> Vec<String> {
    let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
    let shown = path.strip_prefix(root).unwrap_or(path).display();
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > MOST_LINES {
        findings.push(format!("{shown} has {lines} lines, more than {MOST_LINES}"));
    }
    if !text.starts_with("//!") {
        findings.push(format!("{shown} does not open with what lives there (//!)"));
    }
    findings
}
