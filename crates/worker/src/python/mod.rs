//! Python tasks: warm processes that import what a flow names and run its tasks, one at a time each.
//!
//! `host.py` and its neighbours are what runs in such a process; `host` is one process as the worker holds it, `pool`
//! keeps them warm, `attempt` runs a task in one, `values` says what travels and `answer` what came back. Which flows
//! there are stands in `flows`.

mod answer;
mod attempt;
mod host;
mod interpreter;
mod load;
mod options;
mod pool;
mod values;
mod wire;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyoco_core::plan::Runner;
use pyoco_engine::{Clock, Lines};
use pyoco_ports::Blobs;

pub use interpreter::{Interpreter, identify};
pub(crate) use load::Described;
pub use options::PythonOptions;

use crate::flows::flow_folder;
use crate::wheels::WheelFolder;
use host::Place;
use pool::Pool;

/// A task of a resolver's flow is registered under its name behind this.
pub(crate) const OF_FLOW: &str = "flow:";
/// A task of a plugin is registered under its name behind this.
pub(crate) const OF_PLUGIN: &str = "plugin:";

/// Parameter names by the callable, and by where it is imported.
type Signatures = HashMap<(Place, String), Arc<Vec<String>>>;

/// Runs Python tasks in warm processes.
pub struct PythonRuntime {
    options: Arc<PythonOptions>,
    pool: Arc<Pool>,
    logs: Lines,
    blobs: Arc<dyn Blobs>,
    clock: Arc<dyn Clock>,
    /// The parameter names of callables, as a process said them: their values are sent along the next time.
    signatures: Mutex<Signatures>,
}

impl std::fmt::Debug for PythonRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PythonRuntime({})", self.options.python.display())
    }
}

impl PythonRuntime {
    /// Nothing is started before it is needed.
    pub fn new(options: PythonOptions, logs: Lines, blobs: Arc<dyn Blobs>, clock: Arc<dyn Clock>) -> Self {
        let options = Arc::new(options);
        let pool = Pool::new(options.clone());
        Self { options, pool, logs, blobs, clock, signatures: Mutex::new(HashMap::new()) }
    }

    /// Ends every process that runs no task, and starts none any more. Running attempts end with their futures.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Where the tasks of a flow run. Only its name, its wheels and the worker's own settings decide, so that another worker,
    /// or this one after a restart, decides the same.
    fn place(&self, flow: &str, wheels: Option<&WheelFolder>, exposed: Option<&[String]>) -> Place {
        let folder = self.options.flows_dir.as_deref().and_then(|dir| flow_folder(dir, flow));
        let exposed = exposed.map(|names| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names.dedup();
            names
        });
        Place { folder, wheels: wheels.map(|wheels| wheels.path().to_owned()), exposed }
    }

    fn signature(&self, place: &Place, runner: &Runner) -> Option<Arc<Vec<String>>> {
        let signatures = self.signatures.lock().unwrap_or_else(PoisonError::into_inner);
        signatures.get(&(place.clone(), address(runner))).cloned()
    }

    fn remember(&self, place: &Place, runner: &Runner, names: Vec<String>) {
        let mut signatures = self.signatures.lock().unwrap_or_else(PoisonError::into_inner);
        // It only saves a question, so forgetting everything is a fine way to stay small.
        if signatures.len() >= 10_000 {
            signatures.clear();
        }
        signatures.insert((place.clone(), address(runner)), Arc::new(names));
    }
}

fn address(runner: &Runner) -> String {
    match runner {
        Runner::Callable(address) | Runner::Registered(address) => address.clone(),
        Runner::Command(_) | Runner::Wait { .. } | Runner::External => String::new(),
    }
}
