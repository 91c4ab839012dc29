//! A real server with its worker in a folder of its own, and a vector's way through it: written down, submitted over
//! HTTP, watched to its end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pyoco_client::api::SubmitRequest;
use pyoco_client::{Client, Error};
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::state::State;
use pyoco_server::{Config, Functions, Server, ServerOptions, WorkerOptions};
use tempfile::TempDir;

use crate::calls::Calls;
use crate::submission::{Source, flow_yaml};
use crate::vector::{Cancel, Loader, Vector};
use crate::{Broken, Run};

/// Says the calls of a module; goes into the folder of each flow.
const ANNOUNCE: &str = include_str!("../python/announce.py");
/// What a module of a vector gets at its end.
const ANNOUNCED: &str = "\n\nimport announce\n\nannounce.calls_of(__file__)\n";
/// The resolver that builds Flow objects from descriptions.
const BUILD: &str = include_str!("../python/build.py");

/// A run that takes longer hangs. Generous: the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
/// More lines than any vector writes.
const LINES: usize = 100_000;
/// The default tag.
const TAG: &str = "";

/// What came of a vector.
#[derive(Debug)]
pub enum Outcome {
    /// It was refused with 422 when it was submitted, for this reason.
    Refused(String),
    /// It was run to its end.
    Ran(Box<Run>),
}

/// A server that vectors are submitted to.
#[derive(Debug)]
pub struct Stage {
    server: Server,
    client: Client,
    folder: PathBuf,
    _kept: TempDir,
}

/// Runs a vector on a server of its own.
pub async fn run_alone(vector: &Vector) -> Result<Outcome, Broken> {
    let stage = Stage::start_for(vector, Source::Own).await?;
    let outcome = stage.run(vector, Source::Own).await;
    stage.stop().await?;
    outcome
}

/// Whether a vector asks for something that is the worker's: its own resolver, or more environment.
pub(crate) fn needs_own(vector: &Vector, source: Source) -> bool {
    has_own_resolver(vector, source) || !vector.env.is_empty()
}

fn has_own_resolver(vector: &Vector, source: Source) -> bool {
    source == Source::Own && vector.loader == Loader::FlowObject
}

impl Stage {
    /// A server for many vectors; so many at once.
    pub async fn start(at_once: NonZeroUsize) -> Result<Self, Broken> {
        let (kept, folder) = new_folder()?;
        let resolver = builder(&folder)?;
        Self::open(kept, folder, resolver, at_once, std::env::vars().collect()).await
    }

    /// A server for one vector: with its environment, and with its own module as the resolver where it has one.
    pub async fn start_for(vector: &Vector, source: Source) -> Result<Self, Broken> {
        let (kept, folder) = new_folder()?;
        let resolver = if has_own_resolver(vector, source) {
            let flow = flow_folder(&folder, vector, source);
            // The server imports its resolver when it starts.
            write_flow(&flow, vector, source)?;
            format!("{}:resolve_flow", flow.join("vflow.py").display())
        } else {
            builder(&folder)?
        };
        let env = std::env::vars().chain(vector.env.clone()).collect();
        Self::open(kept, folder, resolver, NonZeroUsize::MIN, env).await
    }

    async fn open(
        kept: TempDir,
        folder: PathBuf,
        resolver: String,
        at_once: NonZeroUsize,
        env: HashMap<String, String>,
    ) -> Result<Self, Broken> {
        let config = Config { data_dir: folder.join("data"), python: python(), ..Config::new() };
        std::fs::create_dir_all(folder.join("flows")).map_err(|error| error.to_string())?;
        let worker = WorkerOptions {
            concurrency: Some(at_once),
            flows: Some(folder.join("flows")),
            flow_resolver: Some(resolver),
            env,
            ..WorkerOptions::default()
        };
        let options = ServerOptions { port: 0, worker: Some(worker), ..ServerOptions::default() };
        let server =
            Server::start(config, options, Functions::new()).await.map_err(|error| error.to_string())?;
        let client =
            Client::new(format!("http://{}", server.address())).map_err(|error| error.to_string())?;
        Ok(Self { server, client, folder, _kept: kept })
    }

    /// Stops it in good order.
    pub async fn stop(self) -> Result<(), Broken> {
        self.server.stop().await.map_err(|error| error.to_string())
    }

    /// Submits a vector and sees it through.
    pub async fn run(&self, vector: &Vector, source: Source) -> Result<Outcome, Broken> {
        let folder = flow_folder(&self.folder, vector, source);
        write_flow(&folder, vector, source)?;
        let calls = Calls::listen(&folder)?;
        let submitted = if source.is_by_name(vector) {
            let params = vector.params.clone().unwrap_or_default().into_iter().collect();
            let flow_name = flow_name(vector, source).to_owned();
            self.client.submit_run(&SubmitRequest { flow_name, params, ..SubmitRequest::default() }).await
        } else {
            let text = flow_yaml(vector)?;
            self.client.submit_run_yaml(text, flow_name(vector, source), TAG).await
        };
        let run_id = match submitted {
            Ok(submitted) => submitted.run_id.clone(),
            Err(Error::Status(refusal)) if refusal.status == 422 => {
                let reasons = refusal.workflow_problems().iter().flat_map(|problem| {
                    [Some(problem.reason.clone()), problem.message.clone()].into_iter().flatten()
                });
                return Ok(Outcome::Refused(reasons.collect::<Vec<_>>().join("\n")));
            }
            Err(error) => return Err(error.to_string()),
        };
        tokio::select! {
            ended = self.client.wait_for_end(&run_id, PATIENCE, |_| {}) => drop(ended.map_err(|error| error.to_string())?),
            Err(error) = self.cancel(&run_id, vector.cancel.as_ref(), &calls) => return Err(error),
        }
        let mut run = self.look_at(&run_id).await?;
        run.heard = calls.all();
        Ok(Outcome::Ran(Box::new(run)))
    }

    /// Cancels a run when its moment has come. Never done, but it may fail.
    async fn cancel(
        &self,
        run_id: &str,
        cancel: Option<&Cancel>,
        calls: &Calls,
    ) -> Result<Infallible, Broken> {
        if let Some(cancel) = cancel {
            calls.called(&cancel.on_start, cancel.nth).await;
            tokio::time::sleep(Duration::from_secs_f64(cancel.delay)).await;
            self.client.cancel_run(run_id, None).await.map_err(|error| error.to_string())?;
        }
        std::future::pending().await
    }

    /// Everything there is to know of a run that has ended.
    async fn look_at(&self, run_id: &str) -> Result<Run, Broken> {
        let text = |error: Error| error.to_string();
        let snapshot = self.client.get_run_with_records(run_id).await.map_err(text)?.into_json();
        let tasks = self.client.get_tasks(run_id).await.map_err(text)?.into_json();
        if tasks["task_records"] != snapshot["task_records"] || tasks["tasks"] != snapshot["tasks"] {
            return Err(format!("the run is shown as {snapshot}, and its tasks as {tasks}"));
        }
        let id = ExecutionId::new(run_id).map_err(|error| error.to_string())?;
        let engine = self.server.backend().engine();
        let audit = engine.audit(&id).await.map_err(|error| error.to_string())?;
        if !audit.findings.is_empty() {
            return Err(format!("the audit found {:?}", audit.findings));
        }
        let state = engine.state(&id).await.map_err(|error| error.to_string())?;
        let (mut folded, mut events) = (State::absent(id.clone()), Vec::new());
        for record in engine.store().read(&id, Version(0)).await.map_err(|error| error.to_string())? {
            events.extend(folded.fold(&record.bytes).map_err(|error| error.to_string())?.events);
        }
        if folded != state {
            return Err("the log folds to another state than the engine shows".to_owned());
        }
        let mut lines = Vec::new();
        loop {
            let after = lines.len() as u64;
            let page =
                engine.store().read_lines(&id, after, LINES).await.map_err(|error| error.to_string())?;
            if page.is_empty() {
                break;
            }
            lines.extend(page.into_iter().map(|(_, line)| line));
        }
        let mut run = Run::new(snapshot, state);
        run.read_artifacts(&self.folder.join("data/artifacts").join(run_id));
        run.read_events(&events);
        run.read_lines(&lines);
        Ok(run)
    }
}

fn new_folder() -> Result<(TempDir, PathBuf), Broken> {
    let kept = tempfile::tempdir().map_err(|error| error.to_string())?;
    // Tasks report real paths, so ours must not lead through a link.
    let folder = kept.path().canonicalize().map_err(|error| error.to_string())?;
    Ok((kept, folder))
}

/// The resolver that builds what is described.
fn builder(stage: &Path) -> Result<String, Broken> {
    let module = stage.join("build.py");
    write(&module, BUILD)?;
    Ok(format!("{}:resolve", module.display()))
}

/// The name that a vector is submitted under. Flow objects are asked for the name that the original asked them for; the
/// others are told apart by their names, because the name says which folder has the modules.
pub(crate) fn flow_name(vector: &Vector, source: Source) -> &str {
    if has_own_resolver(vector, source) { "main" } else { &vector.name }
}

fn flow_folder(stage: &Path, vector: &Vector, source: Source) -> PathBuf {
    stage.join("flows").join(flow_name(vector, source))
}

/// The files of a flow: its text, by which the worker knows its folder; its modules; its description.
fn write_flow(folder: &Path, vector: &Vector, source: Source) -> Result<(), Broken> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    write(&folder.join("announce.py"), ANNOUNCE)?;
    for (file, module) in [("vt.py", &vector.tasks_py), ("vflow.py", &vector.flow_py)] {
        if let Some(module) = module {
            write(&folder.join(file), &format!("{module}{ANNOUNCED}"))?;
        }
    }
    if let Some(text) = &vector.flow_yaml {
        write(&folder.join("flow.yaml"), text)?;
    }
    if source == Source::Ir {
        let ir = vector.ir.as_ref().ok_or("no ir")?;
        write(&folder.join("ir.json"), &ir.to_string())?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Broken> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
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
