//! A nats-server and a folder with flows, and how the processes of both makes are started there.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use pyoco_client::Client;
use pyoco_client::api::SubmitRequest;
use pyoco_testing_nats::{NatsServer, Options};
use serde_json::{Value, json};

use super::{Process, Role, Wire, until};

/// Who has made a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    PyPI,
}

/// The names that our programs find their settings under, for all processes.
const SETTINGS: [(&str, &str); 3] =
    [("PYOCO_LOAD_DOTENV", "0"), ("PYTHONUTF8", "1"), ("PYTHONDONTWRITEBYTECODE", "1")];

/// One nats-server, and the folder that all processes run in.
#[derive(Debug)]
pub(crate) struct Site {
    folder: tempfile::TempDir,
    nats: NatsServer,
    pub(crate) wire: Wire,
    /// So many processes were started.
    started: AtomicUsize,
    pub(crate) settings: Vec<(&'static str, &'static str)>,
}

impl Site {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("interop_flows.py"), include_str!("interop_flows.py")).unwrap();
        let nats = NatsServer::start(&Options::default());
        let wire = Wire::connect(&nats.url()).await;
        Self { folder, nats, wire, started: AtomicUsize::new(0), settings: SETTINGS.to_vec() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn process(&self, whose: Whose, role: Role, arguments: &[&str]) -> Process {
        let ours = match role {
            Role::Gateway => env!("CARGO_BIN_EXE_pyoco-server"),
            Role::Worker => env!("CARGO_BIN_EXE_pyoco-worker"),
        };
        let mut command = Command::new(program(whose, ours));
        if role == Role::Gateway {
            command.arg("up");
        }
        self.start(command, whose, role, arguments)
    }

    fn start(&self, mut command: Command, whose: Whose, role: Role, arguments: &[&str]) -> Process {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        command.args(["--nats-url", &self.nats.url()]).args(arguments);
        command.env("PYTHONPATH", self.folder.path()).envs(self.settings.iter().copied());
        command.current_dir(self.folder.path());
        Process::start(&mut command, &self.path(&format!("{number}-{whose:?}-{role:?}.log")))
    }

    /// Starts a gateway and waits until it answers.
    pub(crate) async fn gateway(&self, whose: Whose) -> Gateway {
        loop {
            // Only ours can choose a port and say which.
            let port = match whose {
                Whose::Ours => 0,
                Whose::PyPI => crate::support::free_port(),
            };
            let url = format!("http://127.0.0.1:{port}");
            let arguments = ["--host", "127.0.0.1", "--port", &port.to_string()];
            let mut process = self.process(whose, Role::Gateway, &arguments);
            let url = until("the start of a gateway", async || {
                let said = process.said();
                if process.has_ended() {
                    assert!(said.contains("address already in use"), "the gateway has ended: {said}");
                    return Ok(None);
                }
                match whose {
                    Whose::Ours => said.split_once("is up: ").and_then(|(_, url)| url.split_once('\n')),
                    // It says nothing unless something is wrong.
                    Whose::PyPI => {
                        TcpStream::connect(("127.0.0.1", port)).is_ok().then_some((url.as_str(), ""))
                    }
                }
                .map(|(url, _)| Some(url.to_owned()))
                .ok_or(said)
            })
            .await;
            if let Some(url) = url {
                return Gateway { client: Client::new(&url).unwrap(), url, whose, process };
            }
        }
    }

    /// Runs the tool that looks after keys, to its end.
    pub(crate) fn admin(&self, whose: Whose, arguments: &[&str]) -> Output {
        let ours = env!("CARGO_BIN_EXE_pyoco-server-admin");
        let mut command = Command::new(program(whose, ours));
        command.args(["--nats-url", &self.nats.url()]).args(arguments);
        command.envs(self.settings.iter().copied()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Starts a worker for what is tagged `default` and waits until it is registered.
    pub(crate) async fn worker(&self, whose: Whose, name: &str) -> Process {
        let python = python();
        let mut arguments = vec!["--worker-id", name, "--flow-resolver", "interop_flows:get_flow"];
        if whose == Whose::Ours {
            arguments.extend(["--python", python.to_str().unwrap()]);
        }
        self.registered(self.process(whose, Role::Worker, &arguments), name).await
    }

    /// Starts a worker that installs wheels, on a Python that nobody else uses: the one of PyPI installs into it.
    pub(crate) async fn worker_with_wheels(&self, whose: Whose, name: &str, python: &Path) -> Process {
        let (folder, every) = (self.path(&format!("wheels-of-{name}")), "0.2");
        let mut arguments = vec!["--worker-id", name, "--wheel-sync", "--wheel-sync-interval-sec", every];
        arguments.extend(["--wheel-sync-dir", folder.to_str().unwrap()]);
        let process = match whose {
            Whose::Ours => {
                arguments.extend(["--python", python.to_str().unwrap()]);
                self.process(whose, Role::Worker, &arguments)
            }
            Whose::PyPI => {
                let mut command = Command::new(python);
                command.args(["-c", "from pyoco_server.worker_cli import main; main()"]);
                arguments.extend(["--flow-resolver", "interop_flows:get_flow"]);
                self.start(command, whose, Role::Worker, &arguments)
            }
        };
        self.registered(process, name).await
    }

    async fn registered(&self, mut process: Process, name: &str) -> Process {
        until("the start of a worker", async || {
            assert!(!process.has_ended(), "the worker has ended");
            self.wire.worker(name).await.ok_or("not registered")
        })
        .await;
        process
    }

    /// A Python of its own that finds the packages of PyPI as well.
    pub(crate) fn own_python(&self) -> PathBuf {
        let (folder, of_all) = (self.path("python"), python());
        let made = Command::new(&of_all).args(["-m", "venv"]).arg(&folder).status().unwrap();
        assert!(made.success(), "no environment was made");
        let own = folder.join("bin/python");
        let site = |python: &Path| {
            let asked = ["-c", "import sysconfig; print(sysconfig.get_path('purelib'), end='')"];
            String::from_utf8(Command::new(python).args(asked).output().unwrap().stdout).unwrap()
        };
        std::fs::write(Path::new(&site(&own)).join("of_all.pth"), site(&of_all)).unwrap();
        own
    }
}

/// A gateway that answers.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) whose: Whose,
    pub(crate) process: Process,
}

impl Gateway {
    /// Submits a flow that the workers know by its name.
    pub(crate) async fn submit(&self, flow: &str, params: Value) -> String {
        let Value::Object(params) = params else { panic!("{params}") };
        let request = SubmitRequest {
            flow_name: flow.to_owned(),
            params,
            tag: None,
            tags: vec!["blue".to_owned(), "ünï".to_owned()],
        };
        let answer = self.client.submit_run(&request).await.unwrap();
        assert_eq!(answer.json()["status"], "PENDING");
        answer.into_value().run_id
    }

    /// Submits a flow that comes along.
    pub(crate) async fn submit_yaml(&self, name: &str, yaml: &str) -> String {
        let answer = self.client.submit_run_yaml(yaml, name, "default").await.unwrap();
        assert_eq!(answer.json()["status"], "PENDING");
        answer.into_value().run_id
    }

    pub(crate) async fn run(&self, run: &str) -> Value {
        self.client.get_run_with_records(run).await.unwrap().into_json()
    }

    pub(crate) async fn tasks(&self, run: &str) -> Value {
        self.client.get_tasks(run).await.unwrap().into_json()
    }

    pub(crate) async fn cancel(&self, run: &str) -> Value {
        self.client.cancel_run(run, None).await.unwrap().into_json()
    }

    /// All runs that it lists, by their ids. The gateway of PyPI fails at a list now and then: of those that it makes one
    /// more is asked for.
    pub(crate) async fn list(&self, filter: &pyoco_client::RunFilter) -> Vec<Value> {
        let list = until("a list of runs", async || match self.client.list_runs(filter).await {
            Err(error) if self.whose == Whose::PyPI && error.status() == Some(503) => Err(error),
            answer => Ok(answer.unwrap().into_json()),
        });
        list.await.as_array().unwrap().clone()
    }

    /// All workers that it lists.
    pub(crate) async fn workers(&self) -> Vec<Value> {
        let filter = pyoco_client::WorkerFilter { scope: Some("all".to_owned()), ..Default::default() };
        let list = until("a list of workers", async || match self.client.get_workers(&filter).await {
            Err(error) if self.whose == Whose::PyPI && error.status() == Some(503) => Err(error),
            answer => Ok(answer.unwrap().into_json()),
        });
        list.await.as_array().unwrap().clone()
    }
}

/// Our program, or the one of that name from PyPI.
fn program(whose: Whose, ours: &str) -> PathBuf {
    match whose {
        Whose::Ours => PathBuf::from(ours),
        Whose::PyPI => python().with_file_name(Path::new(ours).file_name().unwrap()),
    }
}

/// The interpreter that has the packages of PyPI: `PYOCO_TEST_PYTHON`, else the project's `.venv`.
fn python() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    std::env::var("PYOCO_TEST_PYTHON").map_or_else(|_| own(), PathBuf::from)
}

/// Whether the worker of PyPI hangs after a few runs with that interpreter.
pub(crate) fn is_python_old() -> bool {
    let program = "import sys; sys.exit(sys.version_info >= (3, 12))";
    let status = Command::new(python()).args(["-c", program]).status();
    status.expect("a Python with the packages of PyPI; `make test` installs them").success()
}

/// A flow.yaml of tasks that follow each other, each of them a function of the flows' module.
pub(crate) fn yaml(tasks: &[&str], defaults: &Value) -> String {
    let flow = json!({"graph": tasks.join(" >> "), "defaults": defaults});
    let described: serde_json::Map<String, Value> = tasks
        .iter()
        .map(|task| ((*task).to_owned(), json!({"callable": format!("interop_flows:{task}")})))
        .collect();
    // JSON is YAML, too.
    json!({"version": 1, "flow": flow, "tasks": described}).to_string()
}
