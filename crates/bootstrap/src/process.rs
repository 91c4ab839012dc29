//! Starting and stopping a server. Only a process that is known for certain gets a signal.

use std::ffi::OsString;
use std::fs::{OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::pidfile::Identity;
use crate::seed;

/// How often to look whether something has happened.
const LOOK: Duration = Duration::from_millis(25);

/// How a server is started.
#[derive(Clone)]
pub struct Launch {
    /// The program.
    pub binary: PathBuf,
    /// What it is told.
    pub arguments: Vec<OsString>,
    /// Variables, passwords among them.
    pub env: Vec<(String, String)>,
    /// Where what it says goes; nothing: where ours does.
    pub log: Option<PathBuf>,
    /// A file that it has locked for as long as it runs, whoever started it: two servers on the same folder would destroy it.
    pub lock: Option<PathBuf>,
    /// Whether it goes on when the terminal is interrupted.
    pub is_detached: bool,
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch")
            .field("binary", &self.binary)
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

impl Launch {
    /// Starts it, and nothing else.
    pub fn start(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.binary);
        command.args(&self.arguments).envs(self.env.iter().map(|(name, value)| (name, value)));
        let open = |path: &Path| OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        if let Some(log) = &self.log {
            let file = open(log)?;
            command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        }
        if let Some(path) = &self.lock {
            let file = open(path)?;
            file.try_lock().map_err(|error| match error {
                TryLockError::WouldBlock => {
                    let why = format!(
                        "a nats-server that runs has {}: two on the same folder would destroy it",
                        path.display()
                    );
                    io::Error::new(io::ErrorKind::ResourceBusy, why)
                }
                TryLockError::Error(error) => error,
            })?;
            // It reads nothing from there, and keeps the lock by holding the file.
            command.stdin(file);
        }
        if self.is_detached {
            command.process_group(0);
        }
        command.spawn()
    }
}

/// The last lines of a log, to say why a server has ended.
pub fn last_words(log: &Path) -> Option<String> {
    let text = std::fs::read_to_string(log).ok()?;
    let told =
        |line: &&str| line.contains("[FTL]") || line.contains("[ERR]") || line.starts_with("nats-server:");
    let line = text.lines().rev().take(50).find(told).or_else(|| text.lines().last())?;
    // The time and the number of the process are in front.
    Some(line.rsplit_once("] ").map_or(line, |(_, words)| words).chars().take(300).collect())
}

/// Why a server that was started cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// It has ended.
    #[error("nats-server ended ({0})")]
    Ended(String),
    /// It does not answer.
    #[error("nats-server does not answer at {0}")]
    Silent(String),
}

/// Waits until a server answers where clients come.
pub async fn answers(child: &mut Child, address: &str, patience: Duration) -> Result<(), NotReady> {
    let end = Instant::now() + patience;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(NotReady::Ended(status.to_string()));
        }
        if seed::introduction(address).await.is_ok() {
            return Ok(());
        }
        if Instant::now() >= end {
            return Err(NotReady::Silent(address.to_owned()));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Where a server that was told to says that it listens.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub struct Listening {
    /// Where clients come, `nats://host:port` each.
    pub nats: Vec<String>,
    /// Where it tells about itself, `http://host:port` each.
    pub monitoring: Vec<String>,
}

/// The argument that has a server write into a folder where it listens.
pub fn telling(folder: &Path) -> [OsString; 2] {
    ["--ports_file_dir".into(), folder.into()]
}

/// Waits until a server has written into a folder where it listens.
pub async fn listening(child: &mut Child, folder: &Path, patience: Duration) -> Result<Listening, NotReady> {
    let end = Instant::now() + patience;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(NotReady::Ended(status.to_string()));
        }
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut texts = files.filter_map(|path| std::fs::read(path).ok());
        // One that is being written is not whole yet.
        if let Some(told) = texts.find_map(|text| serde_json::from_slice(&text).ok()) {
            return Ok(told);
        }
        if Instant::now() >= end {
            return Err(NotReady::Silent("the address that it was told".to_owned()));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How a process was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// When it was asked to.
    Asked,
    /// It did not end in time, and was killed.
    Killed,
    /// It had ended by itself.
    Already,
}

/// Asks a process to end, and kills it if it does not in time. A signal reaches exactly this process: its number may be another's by
/// the time it is sent, what is held here may not.
pub async fn stop(process: &Identity, patience: Duration) -> io::Result<Stopped> {
    let Some(pid) = Pid::from_raw(process.pid) else { return Ok(Stopped::Already) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(Stopped::Already),
        Err(error) => return Err(error.into()),
    };
    // Looked at after it is held: so it is the same.
    if !process.is_alive() {
        return Ok(Stopped::Already);
    }
    for (signal, patience, stopped) in
        [(Signal::TERM, patience, Stopped::Asked), (Signal::KILL, Duration::from_secs(5), Stopped::Killed)]
    {
        match pidfd_send_signal(&handle, signal) {
            Ok(()) => {}
            Err(rustix::io::Errno::SRCH) => return Ok(stopped),
            Err(error) => return Err(error.into()),
        }
        if ended(process, patience).await {
            return Ok(stopped);
        }
    }
    Err(io::Error::other(format!("{process} does not end")))
}

async fn ended(process: &Identity, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    while process.is_alive() {
        if Instant::now() >= end {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(text: &str) -> (Child, Identity) {
        let home = tempfile::tempdir().unwrap();
        let (log, ready) = (home.path().join("log"), home.path().join("ready"));
        let script = text.replace("READY", &format!("touch {}", ready.display()));
        let launch = Launch {
            binary: PathBuf::from("/bin/sh"),
            arguments: vec!["-c".into(), script.into()],
            env: Vec::new(),
            log: Some(log),
            lock: None,
            is_detached: true,
        };
        let child = launch.start().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while !ready.exists() {
            assert!(Instant::now() < end, "the shell does not start");
            tokio::time::sleep(LOOK).await;
        }
        let identity = Identity::of(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
        (child, identity)
    }

    #[tokio::test]
    async fn a_process_is_asked_first_and_killed_only_if_it_does_not_end() {
        let (mut child, meek) = shell("READY; while true; do sleep 0.05; done").await;
        let reaped = tokio::spawn(async move { child.wait().await });
        assert_eq!(stop(&meek, Duration::from_secs(60)).await.unwrap(), Stopped::Asked);
        reaped.await.unwrap().unwrap();
        assert_eq!(stop(&meek, Duration::from_secs(60)).await.unwrap(), Stopped::Already);
        let (mut child, stubborn) = shell("trap '' TERM; READY; while true; do sleep 0.05; done").await;
        let reaped = tokio::spawn(async move { child.wait().await });
        assert_eq!(stop(&stubborn, Duration::from_millis(200)).await.unwrap(), Stopped::Killed);
        reaped.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_process_that_only_has_the_number_is_left_alone() {
        let (mut child, identity) = shell("READY; while true; do sleep 0.05; done").await;
        let another = Identity { started: identity.started + 1, ..identity };
        assert_eq!(stop(&another, Duration::from_secs(1)).await.unwrap(), Stopped::Already);
        assert!(child.try_wait().unwrap().is_none());
        child.kill().await.unwrap();
    }

    #[tokio::test]
    async fn a_folder_has_one_server_for_as_long_as_that_runs() {
        let home = tempfile::tempdir().unwrap();
        let launch = Launch {
            binary: PathBuf::from("/bin/sh"),
            arguments: vec!["-c".into(), "while true; do sleep 0.05; done".into()],
            env: Vec::new(),
            log: Some(home.path().join("log")),
            lock: Some(home.path().join("lock")),
            is_detached: true,
        };
        let mut first = launch.start().unwrap();
        let refused = launch.start().unwrap_err().to_string();
        assert!(refused.contains("two on the same folder"), "{refused}");
        first.kill().await.unwrap();
        // Its children may hold on to the file for as long as they sleep.
        let end = Instant::now() + Duration::from_secs(60);
        let mut second = loop {
            match launch.start() {
                Ok(second) => break second,
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
            tokio::time::sleep(LOOK).await;
        };
        second.kill().await.unwrap();
    }

    #[test]
    fn the_reason_of_an_end_is_found_in_the_log() {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("log");
        std::fs::write(
            &log,
            "[1] 2026/01/01 00:00:00.1 [INF] up\n[1] 2026/01/01 00:00:00.2 [FTL] no room\n[1] x [INF] bye\n",
        )
        .unwrap();
        assert_eq!(last_words(&log).as_deref(), Some("no room"));
    }
}
