//! A folder in which `nats-bootstrap` is called as an operator calls it. No server that was started there outlives the test.

#![allow(dead_code, reason = "each test uses some of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{PATIENCE, is_alive, processes_with};

pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::Builder::new().prefix("nats-bootstrap-").tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The tool, with the nats-server of the tests.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nats-bootstrap"));
        command.args(arguments).current_dir(self.folder.path()).env("HOME", self.folder.path());
        command.env("NATS_SERVER_PATH", pyoco_testing_nats::nats_server());
        command
            .env("PYOCO_LOAD_DOTENV", "0")
            .env_remove("PYOCO_NATS_URL")
            .env_remove("PYOCO_NATS_MONITOR_URL");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Does it, and gives what it says on standard output.
    #[track_caller]
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let output = self.command(&arguments).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {}", said(&output)))
    }

    /// Does not do it, and gives all it says.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        said(&output)
    }

    /// The processes that were started in this folder.
    pub(crate) fn processes(&self) -> Vec<i32> {
        processes_with(self.folder.path().to_str().unwrap())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for pid in self.processes() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

pub(crate) fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The ports and the folder of a server in the background.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) client: u16,
    pub(crate) http: u16,
    pub(crate) cluster: u16,
}

impl Node {
    pub(crate) fn new(name: &str) -> Self {
        let port = pyoco_testing_nats::free_port;
        Self { name: name.to_owned(), client: port(), http: port(), cluster: port() }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.client)
    }

    pub(crate) fn http(&self) -> String {
        format!("http://127.0.0.1:{}", self.http)
    }

    pub(crate) fn seed(&self) -> String {
        format!("nats://127.0.0.1:{}", self.cluster)
    }

    pub(crate) fn pid_file(&self) -> String {
        format!("{}.pid", self.name)
    }

    /// `up` or `join` with its ports and folder, and what else is wanted.
    pub(crate) fn arguments(&self, command: &str, more: &[&str]) -> Vec<String> {
        let (client, http, cluster) =
            (self.client.to_string(), self.http.to_string(), self.cluster.to_string());
        let pid_file = self.pid_file();
        let own = [
            command,
            "--background",
            "--server-name",
            &self.name,
            "--datafolder",
            &self.name,
            "--pid-file",
            &pid_file,
            "--client-port",
            &client,
            "--http-port",
            &http,
            "--cluster-port",
            &cluster,
        ];
        own.iter().chain(more).map(|word| (*word).to_owned()).collect()
    }

    #[track_caller]
    pub(crate) fn start(&self, home: &Home, command: &str, more: &[&str]) -> String {
        let arguments = self.arguments(command, more);
        home.done(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[track_caller]
    pub(crate) fn refused(&self, home: &Home, code: i32, command: &str, more: &[&str]) -> String {
        let arguments = self.arguments(command, more);
        home.refused(code, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(crate) fn pid(&self, home: &Home) -> i32 {
        pid_in(&home.path(&self.pid_file()))
    }

    pub(crate) fn kill(&self, home: &Home) {
        let pid = self.pid(home);
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        until("the end of a nats-server", || (!is_alive(pid)).then_some(()));
    }
}

pub(crate) fn pid_in(path: &Path) -> i32 {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().next().unwrap().parse().unwrap()
}

/// Looks again and again until there is something to see.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(since.elapsed() < PATIENCE, "{what} takes longer than {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The findings of a doctor that are worse than good.
pub(crate) fn troubles(report: &Value) -> Vec<(String, String)> {
    let findings = report["findings"].as_array().unwrap().iter().filter(|one| one["severity"] != "ok");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    findings.map(|one| (text(&one["id"]), text(&one["what"]))).collect()
}
