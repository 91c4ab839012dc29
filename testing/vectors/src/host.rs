//! The Python process that holds the tasks of one run. Here is only the line to it; what is asked and what
//! the answers mean stands in `load` and `task`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::Broken;
use crate::folder::Folder;

/// How long a load or a description may take. Generous: the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running task host.
#[derive(Debug)]
pub(crate) struct Host {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<Value>,
    last_id: u64,
    folder: Arc<Folder>,
}

impl Host {
    /// Starts a host in a folder of its own, with this much more environment.
    pub(crate) fn start(env: &IndexMap<String, String>) -> Result<Self, Broken> {
        let folder = Folder::new()?;
        let program = python();
        let mut child = Command::new(&program)
            .arg("-B")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("host.py"))
            .current_dir(folder.path())
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let requests = child.stdin.take().ok_or("the host has no input")?;
        let output = child.stdout.take().ok_or("the host has no output")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(answer) = serde_json::from_str(&line) else { return };
                if sender.send(answer).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, requests, answers, last_id: 0, folder: Arc::new(folder) })
    }

    /// Where the host runs.
    pub(crate) fn folder(&self) -> Arc<Folder> {
        self.folder.clone()
    }

    /// Asks something; the answer will carry the number that is returned.
    pub(crate) fn send(&mut self, op: &str, mut body: Map<String, Value>) -> Result<u64, Broken> {
        self.last_id += 1;
        body.insert("id".to_owned(), json!(self.last_id));
        body.insert("op".to_owned(), json!(op));
        let line = format!("{}\n", Value::Object(body));
        self.requests.write_all(line.as_bytes()).map_err(|error| format!("the host is gone: {error}"))?;
        Ok(self.last_id)
    }

    /// The next thing the host says; `None` when it says nothing for so long.
    pub(crate) fn receive(&self, patience: Duration) -> Result<Option<Value>, Broken> {
        match self.answers.recv_timeout(patience) {
            Ok(answer) => match answer.get("broken") {
                Some(problem) => Err(format!("the host broke: {problem}\n{}", answer["traceback"])),
                None => Ok(Some(answer)),
            },
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err("the host ended".to_owned()),
        }
    }

    /// Asks something and waits for the answer. Only while no task runs.
    fn ask(&mut self, op: &str, body: Value) -> Result<Value, Broken> {
        let Value::Object(body) = body else { return Err("a request is an object".to_owned()) };
        self.send(op, body)?;
        self.receive(PATIENCE)?.ok_or_else(|| format!("no answer to {op}"))
    }

    /// Imports the module `vt` and the callables; answers which could not be imported, and why.
    pub(crate) fn load<'a>(
        &mut self,
        source: Option<&str>,
        callables: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<IndexMap<String, String>, Broken> {
        let callables: Map<String, Value> =
            callables.map(|(task, path)| (task.to_owned(), json!(path))).collect();
        let answer = self.ask("load", json!({"module": "vt", "source": source, "callables": callables}))?;
        serde_json::from_value(answer["errors"].clone()).map_err(|error| error.to_string())
    }

    /// Builds a Flow object and describes it.
    pub(crate) fn describe(&mut self, source: &str, flow: &str) -> Result<Value, Broken> {
        let mut answer = self.ask("describe", json!({"module": "vflow", "source": source, "flow": flow}))?;
        Ok(answer["ir"].take())
    }

    /// Lets every task see that a cancel was requested.
    pub(crate) fn cancel(&mut self) -> Result<(), Broken> {
        self.send("cancel", Map::new()).map(drop)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Attempts that were given up may still run; they end with their process.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The interpreter that has pyoco: `PYOCO_TEST_PYTHON`, else the project's `.venv`, else `python3`.
#[expect(clippy::disallowed_methods, reason = "a test fixture, told by the Makefile which Python to use")]
fn python() -> PathBuf {
    if let Ok(given) = std::env::var("PYOCO_TEST_PYTHON") {
        return given.into();
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    if own.exists() { own } else { "python3".into() }
}
