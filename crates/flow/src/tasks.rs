//! Which tasks a flow has: those of the file, those a worker discovered, copies, and those that could not
//! be imported.

use std::collections::HashMap;

use indexmap::IndexMap;
use pyoco_core::plan::{JoinPolicy, Policy, Runner, TaskSpec};
use pyoco_core::time::Millis;

use crate::diagnostic::Diagnostic;
use crate::document::{Document, TaskEntry};
use crate::inputs;

/// The pause before a retry where nobody says otherwise: the reference's.
pub(crate) const RETRY_DELAY: Millis = Millis(100);

/// What a worker found when it loaded the tasks.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// Tasks whose callable could not be imported, with the error.
    pub missing: IndexMap<String, String>,
    /// Tasks that the worker offers although the file need not mention them.
    pub discovered: Vec<TaskSpec>,
}

/// A task that exists.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) spec: TaskSpec,
    /// Its author chose what a failure does.
    pub(crate) explicit_fail: bool,
    pub(crate) join: Option<JoinPolicy>,
}

/// All tasks of a flow, by name.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pub(crate) known: IndexMap<String, Known>,
    /// Tasks of the file that do not exist, and why.
    pub(crate) absent: HashMap<String, String>,
    pub(crate) warnings: Vec<String>,
}

impl Tasks {
    /// Collects them in the order of the file, discovered ones last.
    pub(crate) fn collect(document: &Document, loaded: &Loaded) -> Result<Self, Diagnostic> {
        let mut tasks = Self::default();
        let discovered: HashMap<&str, &TaskSpec> =
            loaded.discovered.iter().map(|spec| (spec.name.as_str(), spec)).collect();
        for name in document.tasks.keys() {
            tasks.resolve(name, document, loaded, &discovered)?;
        }
        for spec in &loaded.discovered {
            if !tasks.known.contains_key(&spec.name) && !tasks.absent.contains_key(&spec.name) {
                tasks.known.insert(spec.name.clone(), found(spec, None));
            }
        }
        Ok(tasks)
    }

    /// Makes one task of the file, and before it the one it is a copy of. Chains of copies are followed with a
    /// list, not by recursion; they are known to end.
    fn resolve(
        &mut self,
        name: &str,
        document: &Document,
        loaded: &Loaded,
        discovered: &HashMap<&str, &TaskSpec>,
    ) -> Result<(), Diagnostic> {
        let mut way = vec![name];
        while let Some(uses) = way.last().and_then(|name| document.tasks.get(*name)?.extended.uses.as_deref())
        {
            if self.known.contains_key(uses) || self.absent.contains_key(uses) {
                break;
            }
            way.push(uses);
        }
        for name in way.into_iter().rev() {
            let Some(entry) = document.tasks.get(name) else { continue };
            if !self.known.contains_key(name) && !self.absent.contains_key(name) {
                self.add(name, entry, document.version == 2, loaded, discovered)?;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        name: &str,
        entry: &TaskEntry,
        is_extended: bool,
        loaded: &Loaded,
        discovered: &HashMap<&str, &TaskSpec>,
    ) -> Result<(), Diagnostic> {
        let extended = &entry.extended;
        let runner = if let Some(callable) = &entry.callable {
            check_callable(name, callable, entry)?;
            Runner::Callable(callable.clone())
        } else if let Some(uses) = &extended.uses {
            return self.copy(name, uses, entry, loaded);
        } else if let Some(command) = &extended.command {
            Runner::Command(command.clone())
        } else if let Some(wait) = &extended.wait {
            Runner::Wait { key: wait.key.clone(), prompt: wait.prompt.clone() }
        } else if is_extended {
            if discovered.contains_key(name) {
                self.warnings
                    .push(format!("task '{name}' is external; the worker's task of that name is not used"));
            }
            Runner::External
        } else if let Some(spec) = discovered.get(name) {
            self.known.insert(name.to_owned(), found(spec, Some(entry)));
            return Ok(());
        } else {
            let reason =
                format!("tasks.{name} has no callable, and no worker discovered a task of that name");
            self.absent.insert(name.to_owned(), reason);
            return Ok(());
        };
        if let Some(error) = loaded.missing.get(name) {
            self.leave_out(name, error);
            return Ok(());
        }
        let mut spec = TaskSpec::new(name, runner);
        spec.policy.retry_delay = RETRY_DELAY;
        self.insert(Known { spec, explicit_fail: false, join: None }, entry);
        Ok(())
    }

    /// `use`: the other task under this name, with this one's words over it.
    fn copy(&mut self, name: &str, uses: &str, entry: &TaskEntry, loaded: &Loaded) -> Result<(), Diagnostic> {
        if let Some(error) = loaded.missing.get(name).or_else(|| loaded.missing.get(uses)) {
            self.leave_out(name, error);
            return Ok(());
        }
        let Some(base) = self.known.get(uses) else {
            let why = self.absent.get(uses).cloned().unwrap_or_default();
            let message = format!("Task '{name}' uses unknown task '{uses}'. {why}");
            return Err(Diagnostic::new(format!("invalid_task_use: {name}"), message.trim_end()).at(entry.at));
        };
        let mut copy = Known { join: None, ..base.clone() };
        name.clone_into(&mut copy.spec.name);
        self.insert(copy, entry);
        Ok(())
    }

    fn leave_out(&mut self, name: &str, error: &str) {
        self.warnings.push(format!("task '{name}' was left out: {error}"));
        self.absent.insert(name.to_owned(), error.to_owned());
    }

    fn insert(&mut self, mut task: Known, entry: &TaskEntry) {
        let extended = &entry.extended;
        add_wiring(&mut task.spec, entry);
        let Policy { fail, retries, retry_delay, timeout } = &mut task.spec.policy;
        *fail = extended.fail.unwrap_or(*fail);
        *retries = extended.retries.unwrap_or(*retries);
        *retry_delay = extended.retry_delay.unwrap_or(*retry_delay);
        *timeout = extended.timeout.or(*timeout);
        task.explicit_fail |= extended.fail.is_some();
        task.join.clone_from(&extended.join);
        self.known.insert(task.spec.name.clone(), task);
    }
}

/// A task the worker discovered; the file may add to its inputs and outputs.
fn found(spec: &TaskSpec, entry: Option<&TaskEntry>) -> Known {
    let mut spec = spec.clone();
    if spec.policy.retry_delay == Millis(0) {
        spec.policy.retry_delay = RETRY_DELAY;
    }
    if let Some(entry) = entry {
        add_wiring(&mut spec, entry);
    }
    Known { spec, explicit_fail: false, join: None }
}

fn add_wiring(spec: &mut TaskSpec, entry: &TaskEntry) {
    spec.inputs.extend(inputs::read(&entry.inputs));
    spec.outputs.extend(entry.outputs.iter().cloned());
}

/// A callable is split at its only colon; the texts are what the reference's split and import say.
fn check_callable(name: &str, callable: &str, entry: &TaskEntry) -> Result<(), Diagnostic> {
    let message = match callable.split_once(':') {
        Some((_, attribute)) if attribute.contains(':') => "too many values to unpack (expected 2)",
        Some((module, _)) if module.trim().is_empty() => "Empty module name",
        Some(_) | None => return Ok(()),
    };
    Err(Diagnostic::new(format!("invalid_task_callable: {name}"), message)
        .at(entry.at)
        .with_help(format!("tasks.{name}.callable is '{callable}'; write 'module:function'")))
}
