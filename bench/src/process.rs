//! Processes that are measured: started in a group of their own, and gone with everything they started when the bench is
//! done with them, also when it fails or is interrupted.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::http::{Address, Connection};
use crate::stats::ms;
use crate::{Failure, clock};

/// How long a process may take until it answers, and until it has gone after it was asked to.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much of a log is shown when its process failed.
const TAIL: usize = 2_000;

/// A process with its group.
pub(crate) struct Process {
    name: String,
    child: Child,
    id: i32,
    log: PathBuf,
}

impl Process {
    /// Starts `command`; what it prints goes to `NAME.log` in `logs`.
    pub(crate) fn start(name: &str, command: &mut Command, logs: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(logs)?;
        let log = logs.join(format!("{name}.log"));
        let file = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        for setting in settings() {
            command.env_remove(setting);
        }
        let child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        let id = child.id().ok_or("a process without a number")?;
        Ok(Self { name: name.to_owned(), child, id: i32::try_from(id)?, log })
    }

    /// Waits until the process ends by itself.
    pub(crate) async fn finish(mut self) -> Result<(), Failure> {
        let status = self.child.wait().await?;
        if status.success() { Ok(()) } else { Err(self.problem(&format!("ended with {status}"))) }
    }

    /// Waits until something listens at `address`.
    pub(crate) async fn wait_for_port(&mut self, address: Address) -> Result<(), Failure> {
        self.wait("did not listen", async || TcpStream::connect(address).await.is_ok()).await
    }

    /// Waits for the first good answer of `GET /health`.
    pub(crate) async fn wait_for_health(&mut self, address: Address) -> Result<(), Failure> {
        let healthy = async || {
            let Ok(mut connection) = Connection::open(address).await else { return false };
            connection.get("/health").await.is_ok_and(|answer| answer.status.is_success())
        };
        self.wait("did not answer GET /health", healthy).await
    }

    async fn wait(&mut self, problem: &str, is_ready: impl AsyncFn() -> bool) -> Result<(), Failure> {
        let deadline = clock::now() + PATIENCE;
        while !is_ready().await {
            if let Some(status) = self.child.try_wait()? {
                return Err(self.problem(&format!("{problem}: ended with {status}")));
            }
            if clock::now() > deadline {
                return Err(self.problem(problem));
            }
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    fn problem(&self, what: &str) -> Failure {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let from = log.len().saturating_sub(TAIL);
        let tail = log.get(from..).unwrap_or(&log);
        format!("{} {what}; its log ends with:\n{tail}", self.name).into()
    }

    /// Resident memory of this process alone, in MiB.
    pub(crate) fn memory(&self) -> Option<f64> {
        resident(self.id)
    }

    /// Resident memory of this process and all it started. Pages that they share are counted in each.
    pub(crate) fn memory_of_family(&self) -> Option<f64> {
        let others = family(self.id).into_iter().filter_map(|(id, _)| resident(id)).sum::<f64>();
        Some(resident(self.id)? + others)
    }

    /// Asks the process to end, and ends it when it does not.
    pub(crate) async fn stop(mut self) {
        let _ = killpg(Pid::from_raw(self.id), Signal::SIGTERM);
        let _ = timeout(PATIENCE / 4, self.child.wait()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let family = family(self.id);
        let _ = killpg(Pid::from_raw(self.id), Signal::SIGKILL);
        // What has left the group; the time of its start tells it from a later process with the same number.
        for (id, started) in family {
            if stat(id).is_some_and(|now| now.started == started) {
                let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
            }
        }
    }
}

/// Settings of the person's own servers, which must not reach the measured ones.
fn settings() -> impl Iterator<Item = OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| name.to_string_lossy().starts_with("PYOCO_"))
}

/// An address on this machine that nobody listens at.
pub(crate) async fn free_address() -> Result<Address, Failure> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    Ok(listener.local_addr()?)
}

/// How long `start` takes until the process it gives answers `GET /health`, in ms.
pub(crate) async fn timed_start(
    address: Address,
    start: impl FnOnce() -> Result<Process, Failure>,
) -> Result<(Process, f64), Failure> {
    let begin = clock::now();
    let mut process = start()?;
    process.wait_for_health(address).await?;
    Ok((process, ms(begin.elapsed())))
}

struct Stat {
    parent: i32,
    started: u64,
}

/// The fields of `/proc/ID/stat` that are needed here. The name, in parentheses, may hold anything.
fn stat(id: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    Some(Stat { parent: fields.get(1)?.parse().ok()?, started: fields.get(19)?.parse().ok()? })
}

/// All that `id` started, and what those started, with the time of their start. Empty where there is no /proc.
fn family(id: i32) -> Vec<(i32, u64)> {
    let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let all: BTreeMap<i32, Stat> = ids.filter_map(|id| Some((id, stat(id)?))).collect();
    let mut found: Vec<(i32, u64)> = Vec::new();
    let mut parents = vec![id];
    while let Some(parent) = parents.pop() {
        for (child, stat) in all.iter().filter(|(_, stat)| stat.parent == parent) {
            found.push((*child, stat.started));
            parents.push(*child);
        }
    }
    found
}

fn resident(id: i32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_process_started_goes_with_it() {
        let logs = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        command.args(["-c", "setsid sleep 60 & sleep 60"]);
        let process = Process::start("parent", &mut command, logs.path()).expect("started");
        let children = loop {
            let children = family(process.id);
            if children.len() == 2 {
                break children;
            }
            sleep(Duration::from_millis(5)).await;
        };
        drop(process);
        let is_gone = |id: i32| {
            fs::read_to_string(format!("/proc/{id}/stat")).map_or(true, |text| text.contains(") Z "))
        };
        let deadline = clock::now() + PATIENCE;
        while !children.iter().all(|(id, _)| is_gone(*id)) {
            assert!(clock::now() < deadline, "a child outlived its parent");
            sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_process_that_ends_early_is_told_with_its_log() {
        let logs = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such flag; exit 3"]);
        let mut process = Process::start("early", &mut command, logs.path()).expect("started");
        let address = free_address().await.expect("an address");
        let problem = process.wait_for_health(address).await.expect_err("it never answers").to_string();
        assert!(problem.contains("early") && problem.contains("no such flag"), "{problem}");
    }
}
