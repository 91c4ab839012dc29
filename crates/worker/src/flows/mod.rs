//! Where plans come from: the text in the job, a Python resolver, or a folder of named flows, in this order.
//!
//! The plan is fixed by the first claim, and a later worker has nothing else. So every task says in itself where its
//! function is: `module:attribute`, or the name it is registered under in a resolver's flow or by a plugin; the flow's
//! name, which is in the plan too, says which folder is searched for modules and what the resolver is asked for.

mod folder;
mod recent;

use std::sync::Arc;

use async_trait::async_trait;
use pyoco_core::digest::Digest;
use pyoco_core::json::Object;
use pyoco_core::plan::{Plan, Runner};
use pyoco_flow::{Limits, parse};

pub(crate) use folder::flow_folder;
pub use folder::read_flow;
use recent::Recent;

use crate::JobMessage;
use crate::python::{Described, OF_FLOW, PythonRuntime};
use crate::runtime::{Flows, LoadError};
use crate::wheels::WheelFolder;

/// Where a text came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// With the submission, which has taken its defaults as parameters.
    Job,
    /// From the folder of flows; its defaults fill in what a submission leaves out.
    Folder,
}

impl Source {
    fn digest(self, text: &[u8]) -> Digest {
        let mark: &[u8] = match self {
            Self::Job => b"job\n",
            Self::Folder => b"folder\n",
        };
        Digest::of_bytes(&[mark, text].concat())
    }
}

/// The flows of a worker that runs Python tasks.
#[derive(Debug, Clone)]
pub struct FlowSources {
    python: Arc<PythonRuntime>,
    recent: Arc<Recent>,
}

impl FlowSources {
    /// Flows whose callables are imported by `python`, with its resolver and its folder.
    pub fn new(python: Arc<PythonRuntime>) -> Self {
        Self { python, recent: Arc::default() }
    }

    /// The text of a flow: parsed again, its callables imported, compiled.
    async fn compile_text(
        &self,
        job: &JobMessage,
        text: &[u8],
        source: Source,
        wheels: Option<&WheelFolder>,
    ) -> Result<Arc<Plan>, LoadError> {
        let name = job.flow_name.as_str();
        let key = recent::Key::new(name, source.digest(text), wheels);
        if let Some(plan) = self.recent.get(&key, self.python.now()) {
            return Ok(plan);
        }
        let failed = |error: &dyn std::fmt::Display| LoadError::Failed(error.to_string());
        // How large a text may be was decided when it was submitted, or by whoever put it into the folder.
        let limits = Limits { max_bytes: text.len().max(Limits::default().max_bytes) };
        let workflow = parse(text, limits).map_err(|error| failed(&error))?;
        let loaded = self.python.load(name, wheels, workflow.expose_env(), workflow.callables()).await;
        let (loaded, problems) = loaded.map_err(|error| failed(&error))?;
        let mut plan = workflow.compile(name, &loaded).map_err(|error| failed(&error))?;
        plan.warnings.extend(problems);
        if source == Source::Folder {
            plan.defaults = Object(workflow.defaults().clone());
        }
        let plan = Arc::new(plan);
        if loaded.missing.is_empty() && loaded.discovered.is_empty() && plan.warnings.is_empty() {
            self.recent.keep(key, &plan, self.python.now());
        }
        Ok(plan)
    }

    /// A flow of the resolver; its tasks are found by their names there.
    async fn ask_resolver(
        &self,
        job: &JobMessage,
        wheels: Option<&WheelFolder>,
    ) -> Result<Option<Plan>, LoadError> {
        let described = self.python.describe(&job.run_id, &job.flow_name, wheels).await;
        let described = described.map_err(LoadError::Failed)?;
        let Described::Ir(mut ir) = described else { return Ok(None) };
        // What the resolver is asked for again; what the flow calls itself may differ.
        ir["flow"] = serde_json::Value::String(job.flow_name.clone());
        let mut plan = pyoco_flow::ir::compile(&ir).map_err(|error| LoadError::Failed(error.to_string()))?;
        for spec in &mut plan.tasks {
            spec.runner = Runner::Registered(format!("{OF_FLOW}{}", spec.name));
        }
        Ok(Some(plan))
    }
}

#[async_trait]
impl Flows for FlowSources {
    async fn plan(&self, job: &JobMessage, wheels: Option<&WheelFolder>) -> Result<Arc<Plan>, LoadError> {
        let plan = match job.workflow_yaml.as_deref().filter(|text| !text.trim().is_empty()) {
            Some(text) => self.compile_text(job, text.as_bytes(), Source::Job, wheels).await?,
            None => match self.named(job, wheels).await? {
                Some(plan) => plan,
                None => return Err(LoadError::NotFound(job.flow_name.clone())),
            },
        };
        for warning in &plan.warnings {
            tracing::warn!(run_id = %job.run_id, flow_name = job.flow_name, "{warning}");
        }
        Ok(plan)
    }
}

impl FlowSources {
    async fn named(
        &self,
        job: &JobMessage,
        wheels: Option<&WheelFolder>,
    ) -> Result<Option<Arc<Plan>>, LoadError> {
        if self.python.has_resolver()
            && let Some(plan) = self.ask_resolver(job, wheels).await?
        {
            return Ok(Some(Arc::new(plan)));
        }
        let Some(dir) = self.python.flows_dir() else { return Ok(None) };
        match read_flow(dir, &job.flow_name) {
            Ok(Some(text)) => self.compile_text(job, &text, Source::Folder, wheels).await.map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(LoadError::Failed(format!("flow '{}' cannot be read: {error}", job.flow_name))),
        }
    }
}
