//! A real server process in a folder of its own, started and ended as an operator would.

#![allow(dead_code, reason = "each test uses some of it")]

pub(crate) mod client;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pyoco_client::Client;
use pyoco_client::api::{RunSnapshot, RunStatus, SubmitRequest};
use serde_json::{Value, json};

/// How long anything may take before the test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a store and flows, and how a server on it is started.
pub(crate) struct Site {
    folder: tempfile::TempDir,
    pub(crate) env: HashMap<String, String>,
    pub(crate) arguments: Vec<String>,
}

impl Site {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("flows")).unwrap();
        let env = HashMap::from([("PYOCO_LOAD_DOTENV".to_owned(), "0".to_owned())]);
        Self { folder, env, arguments: Vec::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[must_use]
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    #[must_use]
    pub(crate) fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Puts a flow with its Python module into the folder of flows.
    #[must_use]
    pub(crate) fn flow(self, name: &str, flow: &str, module: &str) -> Self {
        let folder = self.path("flows").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("flow.yaml"), flow).unwrap();
        std::fs::write(folder.join(format!("{name}_tasks.py")), module).unwrap();
        self
    }

    pub(crate) fn command(&self, port: u16) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pyoco-server"));
        command.args(["up", "--port", &port.to_string()]);
        command.arg("--data-dir").arg(self.path("data")).arg("--flows").arg(self.path("flows"));
        command.args(&self.arguments).envs(&self.env).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts a server and waits until it says where it is.
    pub(crate) fn start(&self) -> Running {
        self.start_on(0)
    }

    pub(crate) fn start_on(&self, port: u16) -> Running {
        self.start_with(self.command(port))
    }

    /// Starts a server by a command that a test has changed.
    pub(crate) fn start_with(&self, mut command: Command) -> Running {
        let mut child = command.spawn().unwrap();
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let (stdout, kept) = (child.stdout.take().unwrap(), log.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                kept.lock().unwrap().push(line);
            }
        });
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let url = loop {
            let mut line = String::new();
            if stderr.read_line(&mut line).unwrap() == 0 {
                let status = child.wait().unwrap();
                panic!("the server ended with {status}: {said}");
            }
            said.push_str(&line);
            if let Some((_, url)) = line.split_once("is up: ") {
                break url.trim().to_owned();
            }
        };
        // Whatever it says later must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Running { child, client: Client::new(&url).unwrap(), url, log }
    }
}

/// A server process.
pub(crate) struct Running {
    child: Child,
    pub(crate) client: Client,
    pub(crate) url: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Ends the process without a word, as a power switch would.
    pub(crate) fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().unwrap();
    }

    /// Asks it to stop and waits.
    pub(crate) fn stop(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.wait()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What it has written to standard output so far, a JSON object a line.
    pub(crate) fn log(&self) -> Vec<Value> {
        let lines = self.log.lock().unwrap().clone();
        lines.iter().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// Waits until a line of the log is as wanted: what happens and what is said of it reach us on two ways.
    pub(crate) async fn logged(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            if let Some(line) = self.log().into_iter().find(&wanted) {
                return line;
            }
            assert!(since.elapsed() < PATIENCE, "no such line: {:#?}", self.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn submit(&self, flow: &str, params: Value) -> String {
        let request = SubmitRequest {
            flow_name: flow.to_owned(),
            params: params.as_object().cloned().unwrap_or_default().into_iter().collect(),
            ..SubmitRequest::default()
        };
        self.client.submit_run(&request).await.unwrap().run_id.clone()
    }

    /// Waits until a run is as wanted.
    pub(crate) async fn until(&self, run: &str, wanted: impl Fn(&RunSnapshot) -> bool) -> RunSnapshot {
        let since = Instant::now();
        loop {
            let snapshot = self.client.get_run_with_records(run).await.unwrap().into_value();
            if wanted(&snapshot) {
                return snapshot;
            }
            assert!(since.elapsed() < PATIENCE, "it stays {snapshot:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn until_ended(&self, run: &str) -> RunSnapshot {
        self.until(run, |snapshot| is_terminal(snapshot.status)).await
    }

    pub(crate) async fn workers(&self) -> Value {
        let filter = pyoco_client::WorkerFilter { scope: Some("all".to_owned()), ..Default::default() };
        self.client.get_workers(&filter).await.unwrap().into_json()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn is_terminal(status: RunStatus) -> bool {
    pyoco_client::is_terminal(status)
}

/// The processes whose command line mentions something, e.g. a folder of this test.
pub(crate) fn processes_with(text: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let mut line = Vec::new();
        if let Ok(mut file) = std::fs::File::open(entry.path().join("cmdline")) {
            let _ = file.read_to_end(&mut line);
        }
        if String::from_utf8_lossy(&line).contains(text) {
            found.push(pid);
        }
    }
    found
}

pub(crate) fn is_alive(pid: i32) -> bool {
    // A zombie has ended; it only waits to be counted.
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(')').next().and_then(|rest| rest.trim().chars().next()).is_some_and(|state| state != 'Z')
}

/// Waits until a file holds something, and gives it.
pub(crate) fn until_written(path: &Path) -> String {
    let since = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(path)
            && text.ends_with('\n')
        {
            return text;
        }
        assert!(since.elapsed() < PATIENCE, "nothing is written to {}", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A port that is free now.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub(crate) fn empty() -> Value {
    json!({})
}
