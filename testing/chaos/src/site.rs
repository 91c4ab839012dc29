//! A folder, and the processes that are started in it as an operator would start them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{PATIENCE, flows};

/// Where the programs are.
#[derive(Debug, Clone)]
pub enum Programs {
    /// This one, which is also a server and a worker, with places to fail at.
    Own(PathBuf),
    /// Those in a folder, as they are shipped.
    Shipped(PathBuf),
}

impl Programs {
    fn command(&self, role: &str) -> Command {
        match self {
            Self::Own(program) => {
                let mut command = Command::new(program);
                command.arg(role);
                command
            }
            Self::Shipped(folder) => Command::new(folder.join(format!("pyoco-{role}"))),
        }
    }
}

/// A folder with flows, a ledger and the logs of processes.
#[derive(Debug)]
pub struct Site {
    folder: tempfile::TempDir,
    programs: Programs,
    /// What every process finds in its environment.
    pub env: BTreeMap<String, String>,
    /// What a program is started by, if not directly.
    pub by: Vec<String>,
}

/// What every process of a site has in its environment, and so have its children: that is how they are found.
const MARK: &str = "CHAOS_SITE";

impl Site {
    /// Lays one out.
    pub fn new(programs: Programs) -> Self {
        let folder = tempfile::Builder::new().prefix("pyoco-chaos-").tempdir().unwrap();
        flows::lay_out(folder.path());
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        // Short, so that nobody waits long for what they are there for.
        let env = [
            ("PYOCO_LOAD_DOTENV", "0".to_owned()),
            ("PYOCO_CONSUMER_ACK_WAIT_SEC", "3".to_owned()),
            ("PYOCO_SWEEP_INTERVAL_SEC", "2".to_owned()),
            ("PYOCO_WORKER_DISCONNECT_TIMEOUT_SEC", "10".to_owned()),
            ("PYOCO_CANCEL_GRACE_PERIOD_SEC", "2".to_owned()),
            ("CHAOS_LEDGER", path("ledger")),
            ("PYOCO_FAULT_CLOCK", path("clock")),
            ("PYOCO_FAULTS_SEEN", path("seen")),
            (MARK, path("")),
        ];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { folder, programs, env, by: Vec::new() }
    }

    /// Something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Keeps the folder for a person to look at, and says where it is.
    pub fn keep(&mut self) -> &Path {
        self.folder.disable_cleanup(true);
        self.folder.path()
    }

    /// Starts a program; what it says goes to the end of a file.
    pub fn start(&self, role: &str, name: &str, arguments: &[String], more: &[(&str, &str)]) -> Process {
        let log =
            || File::options().create(true).append(true).open(self.path(&format!("{name}.log"))).unwrap();
        let mut command = self.programs.command(role);
        if let [first, rest @ ..] = &self.by[..] {
            let plain = std::mem::replace(&mut command, Command::new(first));
            command.args(rest).arg(self.folder.path()).arg(plain.get_program()).args(plain.get_args());
        }
        command.args(arguments).envs(&self.env).envs(more.iter().copied()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(log()).stderr(log());
        Process { child: command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")) }
    }

    /// What a process has said last.
    pub fn last_words(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default();
        text.lines()
            .rev()
            .take(20)
            .map(|line| format!("{line}\n"))
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect()
    }

    /// The processes that belong to this site and live, whoever started them, with their command lines.
    pub fn processes(&self) -> Vec<(i32, String)> {
        let mark = format!("{MARK}={}\0", self.env[MARK]);
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            // Those that have ended have no environment any more.
            if read("environ").windows(mark.len()).any(|window| window == mark.as_bytes()) {
                let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
                found.push((pid, line.chars().take(120).collect()));
            }
        }
        found
    }

    /// The Python processes of its workers.
    pub fn hosts(&self) -> Vec<i32> {
        let processes = self.processes().into_iter();
        processes.filter(|(_, line)| line.contains("python")).map(|(pid, _)| pid).collect()
    }
}

/// A process. It ends with this value, without a word.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Its number.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Sends a signal, unless it has ended.
    pub fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.pid()), signal);
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Asks it to stop and waits; `None` if it does not.
    pub fn stop(&mut self) -> Option<ExitStatus> {
        self.signal(Signal::SIGCONT);
        self.signal(Signal::SIGTERM);
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
