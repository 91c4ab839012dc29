//! What a flow needs of Python before it has a plan: which callables can be imported, which tasks are discovered, and
//! the description of a flow that a resolver builds.

use std::time::Duration;

use indexmap::IndexMap;
use pyoco_core::ids::ExecutionId;
use pyoco_core::plan::{Runner, TaskSpec};
use pyoco_core::time::Timestamp;
use pyoco_flow::Loaded;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::Said;
use super::attempt::{Heard, Stopping};
use super::host::Place;
use super::{OF_PLUGIN, PythonRuntime, wire};
use crate::process::{TaskLines, how_it_ended};
use crate::wheels::WheelFolder;

/// Importing the modules of a flow may take so long.
const PATIENCE: Duration = Duration::from_secs(120);
/// A process that serves old code is replaced.
const RELOADS: u32 = 5;

/// What was found when the callables of a flow were imported.
#[derive(Debug, Deserialize)]
pub(super) struct LoadedAnswer {
    errors: IndexMap<String, String>,
    discovered: Vec<Value>,
    warnings: Vec<String>,
}

/// What a resolver said.
#[derive(Debug, Deserialize)]
pub(super) struct FlowAnswer {
    #[serde(default)]
    ir: Option<Value>,
    #[serde(default)]
    unknown: Option<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    traceback: Option<String>,
}

/// A flow of a resolver.
#[derive(Debug)]
pub(crate) enum Described {
    /// As data.
    Ir(Value),
    /// The resolver does not know it.
    Unknown,
}

impl PythonRuntime {
    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether flows may come from a resolver.
    pub(crate) fn has_resolver(&self) -> bool {
        self.options.flow_resolver.is_some()
    }

    /// The folder of named flows.
    pub(crate) fn flows_dir(&self) -> Option<&std::path::Path> {
        self.options.flows_dir.as_deref()
    }

    /// Starts the processes that are kept warm, so that the first task need not wait for one. An error says why none can
    /// be.
    pub async fn warm_up(&self, wheels: Option<&WheelFolder>) -> Result<(), String> {
        let request = wire::encode(&json!({"op": "load", "callables": [], "discovery": ""}), &[]);
        let request = request.map_err(|error| error.to_string())?;
        let lines = self.import_lines("nothing");
        let mut leases = Vec::new();
        let place = Place { wheels: wheels.map(|wheels| wheels.path().to_owned()), ..Place::default() };
        for _ in 0..self.options.keep_warm.min(self.options.hosts) {
            leases.push(self.pool.take(&place).await?);
        }
        // They start side by side; the first answer of each says that it is ready.
        for mut lease in leases {
            match self.converse(&mut lease, None, &lines, &request, &mut Stopping::never()).await {
                (Heard::Answer(..), _) => lease.give_back(),
                (Heard::Gone(_) | Heard::Broken(_), last_words) => return Err(last_words),
            }
        }
        Ok(())
    }

    /// Imports callables, in this order, where the flow's tasks will run. What cannot be imported is said, and so is what
    /// went wrong beside it.
    pub(crate) async fn load<'a>(
        &self,
        flow: &str,
        wheels: Option<&WheelFolder>,
        exposed: Option<&[String]>,
        callables: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<(Loaded, Vec<String>), String> {
        let callables: Vec<_> = callables.collect();
        let discovery = self.options.env.get("PYOCO_DISCOVERY_MODULES").map_or("", String::as_str);
        let request = json!({"op": "load", "callables": callables, "discovery": discovery});
        match self.ask(flow, wheels, exposed, &request).await? {
            Said::Loaded(found) => {
                let loaded = Loaded { missing: found.errors, discovered: discovered(found.discovered)? };
                Ok((loaded, found.warnings))
            }
            Said::Need(_) | Said::Stale { .. } | Said::Done(_) | Said::Flow(_) => {
                Err("the task process answered another question".to_owned())
            }
        }
    }

    /// Imports the resolver, if there is one. An error says why there is none.
    pub(crate) async fn check_resolver(&self, wheels: Option<&WheelFolder>) -> Result<(), String> {
        if !self.has_resolver() {
            return Ok(());
        }
        match self.ask("the flow resolver", wheels, None, &json!({"op": "resolver"})).await? {
            Said::Flow(answer) => answer.error.map_or(Ok(()), Err),
            Said::Need(_) | Said::Stale { .. } | Said::Done(_) | Said::Loaded(_) => {
                Err("the task process answered another question".to_owned())
            }
        }
    }

    /// Asks the resolver for a flow.
    pub(crate) async fn describe(
        &self,
        execution: &ExecutionId,
        flow: &str,
        wheels: Option<&WheelFolder>,
    ) -> Result<Described, String> {
        match self.ask(flow, wheels, None, &json!({"op": "flow", "name": flow})).await? {
            Said::Flow(answer) => match *answer {
                FlowAnswer { ir: Some(ir), .. } => Ok(Described::Ir(ir)),
                FlowAnswer { unknown: Some(_), .. } => Ok(Described::Unknown),
                FlowAnswer { error, traceback, .. } => {
                    let traceback = traceback.unwrap_or_default();
                    tracing::error!(run_id = %execution, flow, "the flow resolver failed:\n{traceback}");
                    Err(error.unwrap_or_else(|| "the flow resolver failed".to_owned()))
                }
            },
            Said::Need(_) | Said::Stale { .. } | Said::Done(_) | Said::Loaded(_) => {
                Err("the task process answered another question".to_owned())
            }
        }
    }

    async fn ask(
        &self,
        flow: &str,
        wheels: Option<&WheelFolder>,
        exposed: Option<&[String]>,
        request: &impl Serialize,
    ) -> Result<Said, String> {
        let asked = self.ask_until_fresh_about(flow, wheels, exposed, request);
        let too_long = || format!("importing the tasks of '{flow}' took longer than {PATIENCE:?}");
        tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(too_long()))
    }

    async fn ask_until_fresh_about(
        &self,
        flow: &str,
        wheels: Option<&WheelFolder>,
        exposed: Option<&[String]>,
        request: &impl Serialize,
    ) -> Result<Said, String> {
        let place = self.place(flow, wheels, exposed);
        let request = wire::encode(request, &[]).map_err(|error| error.to_string())?;
        let lines = self.import_lines(flow);
        for _ in 0..RELOADS {
            let mut lease = self.pool.take(&place).await?;
            let (heard, last_words) =
                self.converse(&mut lease, None, &lines, &request, &mut Stopping::never()).await;
            match heard {
                Heard::Answer(Said::Stale { .. }, _) => drop(lease),
                Heard::Answer(said, _) => {
                    lease.give_back();
                    return Ok(said);
                }
                Heard::Gone(status) => {
                    let how = status.map_or_else(|| "is gone".to_owned(), how_it_ended);
                    return Err(format!("the process that imports the tasks {how}\n{last_words}")
                        .trim_end()
                        .to_owned());
                }
                Heard::Broken(message) => return Err(message),
            }
        }
        Err("the modules of the flow change faster than they can be imported".to_owned())
    }
}

impl PythonRuntime {
    /// What modules print while they are imported is told to the operator.
    fn import_lines(&self, flow: &str) -> TaskLines {
        let (logs, clock) = (self.logs.clone(), self.clock.clone());
        TaskLines { logs, clock, task: format!("import of {flow}"), attempt: None }
    }
}

/// Tasks that modules and plugins offer. They are described like the tasks of a flow whose tasks depend on nothing.
fn discovered(mut tasks: Vec<Value>) -> Result<Vec<TaskSpec>, String> {
    if tasks.is_empty() {
        return Ok(Vec::new());
    }
    for task in &mut tasks {
        if let Some(task) = task.as_object_mut() {
            // Links between module-level tasks are of the run that made them.
            task.insert("deps".to_owned(), json!([]));
            task.shift_remove("deps_outside_flow");
        }
    }
    let flow = json!({"ir": 1, "flow": "discovered", "mode": "dag", "tasks": tasks, "program": null});
    let mut plan = pyoco_flow::ir::compile(&flow).map_err(|error| error.to_string())?;
    for spec in &mut plan.tasks {
        let described = tasks.iter().find(|task| task["name"] == spec.name);
        spec.runner = match described.and_then(|task| task["callable"].as_str()) {
            Some(address) => Runner::Callable(address.to_owned()),
            None => Runner::Registered(format!("{OF_PLUGIN}{}", spec.name)),
        };
    }
    Ok(plan.tasks)
}
