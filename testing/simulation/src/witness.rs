//! Sees every record at the moment it is stored, every task at the moment it begins and ends, and every answer to the queue.
//! What is promised about each of them alone is checked here; what is promised about the whole is checked in `run`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pyoco_core::event::{ActorKind, Event, EventType};
use pyoco_core::ids::{Attempt, CommandId, ExecutionId, JobId, NodeId};
use pyoco_core::record::Record;
use pyoco_core::state::State;
use pyoco_ports::Delivery;
use serde_json::{Value, json};

/// What was seen in one seed, or in many. A case that never occurs proves nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Seen {
    pub completed: u64,
    pub failed: u64,
    pub canceled_in_the_queue: u64,
    pub canceled_at_work: u64,
    pub takeovers: u64,
    pub parked: u64,
    pub resumed: u64,
    pub retried: u64,
    pub conflicts: u64,
    pub applied_but_unanswered: u64,
    pub applied_late: u64,
    pub repeats_answered: u64,
    pub deaths: u64,
    pub stops: u64,
    pub jobs_lost: u64,
    pub jobs_doubled: u64,
    pub leases_lost: u64,
    pub clock_jumps: u64,
    pub tasks_begun: u64,
    pub tasks_of_the_fenced: u64,
}

impl Seen {
    /// Each of them with its name.
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("completed", self.completed),
            ("failed", self.failed),
            ("canceled in the queue", self.canceled_in_the_queue),
            ("canceled at work", self.canceled_at_work),
            ("takeovers", self.takeovers),
            ("parked", self.parked),
            ("resumed", self.resumed),
            ("retried", self.retried),
            ("conflicts", self.conflicts),
            ("applied but unanswered", self.applied_but_unanswered),
            ("applied late", self.applied_late),
            ("repeats answered", self.repeats_answered),
            ("deaths", self.deaths),
            ("stops", self.stops),
            ("jobs lost", self.jobs_lost),
            ("jobs doubled", self.jobs_doubled),
            ("leases lost", self.leases_lost),
            ("clock jumps", self.clock_jumps),
            ("tasks begun", self.tasks_begun),
            ("tasks of the fenced", self.tasks_of_the_fenced),
        ]
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            completed: self.completed + other.completed,
            failed: self.failed + other.failed,
            canceled_in_the_queue: self.canceled_in_the_queue + other.canceled_in_the_queue,
            canceled_at_work: self.canceled_at_work + other.canceled_at_work,
            takeovers: self.takeovers + other.takeovers,
            parked: self.parked + other.parked,
            resumed: self.resumed + other.resumed,
            retried: self.retried + other.retried,
            conflicts: self.conflicts + other.conflicts,
            applied_but_unanswered: self.applied_but_unanswered + other.applied_but_unanswered,
            applied_late: self.applied_late + other.applied_late,
            repeats_answered: self.repeats_answered + other.repeats_answered,
            deaths: self.deaths + other.deaths,
            stops: self.stops + other.stops,
            jobs_lost: self.jobs_lost + other.jobs_lost,
            jobs_doubled: self.jobs_doubled + other.jobs_doubled,
            leases_lost: self.leases_lost + other.leases_lost,
            clock_jumps: self.clock_jumps + other.clock_jumps,
            tasks_begun: self.tasks_begun + other.tasks_begun,
            tasks_of_the_fenced: self.tasks_of_the_fenced + other.tasks_of_the_fenced,
        }
    }
}

/// What it knows.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    pub(crate) logs: BTreeMap<ExecutionId, Log>,
    /// What each attempt gave back, by the process that ran it.
    ledger: BTreeMap<(ExecutionId, NodeId, Attempt), Vec<Value>>,
    /// To whom each job was given last.
    jobs: BTreeMap<JobId, Arc<str>>,
    /// Jobs whose leases ended before their time. Whoever had one could not know.
    unleased: BTreeSet<JobId>,
    pub(crate) broken: Vec<String>,
    pub(crate) seen: Seen,
}

/// The log of an execution, as it was stored.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) state: State,
    /// Which process holds the claim. The same worker may come back as another process.
    holder: Option<Arc<str>>,
    /// Which process held it when it ended.
    pub(crate) held_to_the_end: Option<Arc<str>>,
    pub(crate) ends: Vec<EventType>,
    pub(crate) has_cancel: bool,
    pub(crate) resumed: BTreeSet<NodeId>,
    succeeded: BTreeMap<NodeId, Value>,
    commands: BTreeSet<CommandId>,
}

impl Witness {
    fn breaks(&mut self, execution: &ExecutionId, what: &str) {
        self.broken.push(format!("{execution}: {what}"));
    }

    /// A record of a process was stored.
    pub(crate) fn stored(&mut self, process: &Arc<str>, execution: &ExecutionId, bytes: &[u8]) {
        let log = self.logs.entry(execution.clone()).or_insert_with(|| Log {
            state: State::absent(execution.clone()),
            holder: None,
            held_to_the_end: None,
            ends: Vec::new(),
            has_cancel: false,
            resumed: BTreeSet::new(),
            succeeded: BTreeMap::new(),
            commands: BTreeSet::new(),
        });
        let was_held = log.state.claim.is_some();
        let record = match log.state.fold(bytes) {
            Ok(record) => record,
            Err(error) => return self.breaks(execution, &format!("the log does not fold: {error}")),
        };
        if record.claim.is_some() {
            self.seen.takeovers += u64::from(was_held);
            log.holder = Some(process.clone());
        }
        let is_workers = record.actor.kind == ActorKind::System && record.actor.id.is_some();
        let is_holders = log.holder.as_ref() == Some(process);
        if log.state.phase.is_terminal() && log.held_to_the_end.is_none() {
            log.held_to_the_end.clone_from(&log.holder);
        }
        if log.state.claim.is_none() {
            log.holder = None;
        }
        if is_workers && !is_holders {
            self.breaks(execution, &format!("{process} wrote record {} without a claim", record.seq));
        }
        self.look_at_commands(execution, &record);
        self.look_at_events(execution, &record);
    }

    fn look_at_commands(&mut self, execution: &ExecutionId, record: &Record) {
        for command in record.commands.iter().filter(|command| !command.worker) {
            let is_new =
                self.logs.get_mut(execution).is_some_and(|log| log.commands.insert(command.id.clone()));
            if !is_new {
                self.breaks(execution, &format!("the command {:?} was done twice", command.id));
            }
        }
    }

    fn look_at_events(&mut self, execution: &ExecutionId, record: &Record) {
        let Some(log) = self.logs.get_mut(execution) else { return };
        let mut broken = Vec::new();
        if record.release.is_some() && log.state.is_parked() {
            self.seen.parked += 1;
        }
        for envelope in &record.events {
            let kind = envelope.event.event_type();
            if !log.ends.is_empty() && kind != EventType::ExecutionArchived {
                broken.push(format!("{kind} after its end"));
            }
            match &envelope.event {
                Event::ExecutionCancelRequested(_) => log.has_cancel = true,
                Event::ExecutionCompleted(_) | Event::ExecutionFailed(_) => {
                    log.ends.push(kind);
                    if log.has_cancel {
                        broken.push(format!("{kind} although a cancel was requested"));
                    }
                }
                Event::ExecutionCanceled(_) => log.ends.push(kind),
                Event::NodeStarted(started) => {
                    if log.has_cancel {
                        broken.push(format!("{} started after a cancel", started.node_id));
                    }
                    if log.succeeded.contains_key(&started.node_id) {
                        broken.push(format!("{} started again after it succeeded", started.node_id));
                    }
                    self.seen.retried += u64::from(started.attempt > Attempt(1));
                }
                Event::NodeResumeRequested(resumed) => {
                    self.seen.resumed += 1;
                    if !log.resumed.insert(resumed.node_id.clone()) {
                        broken.push(format!("{} was resumed twice", resumed.node_id));
                    }
                }
                Event::NodeSucceeded(succeeded) => {
                    let node = &succeeded.node_id;
                    let output = succeeded.output.as_ref().map_or(Value::Null, |output| output.0.clone());
                    if let Some((_, state)) =
                        log.state.number_of(node).and_then(|number| log.state.node(number))
                        && state.task.is_some()
                        && log.state.is_worker_node(state)
                    {
                        let attempt = (execution.clone(), node.clone(), state.attempt);
                        let given = self.ledger.get(&attempt).map_or(&[][..], Vec::as_slice);
                        if !given.contains(&output) {
                            broken.push(format!("{node} succeeded with {output}, which no task gave back"));
                        }
                    }
                    if log.succeeded.insert(node.clone(), output).is_some() {
                        broken.push(format!("{node} succeeded twice"));
                    }
                }
                _ => {}
            }
        }
        if let Some(end) = record.events.iter().map(|envelope| envelope.event.event_type()).find(is_end) {
            let seen = &mut self.seen;
            match end {
                EventType::ExecutionCompleted => seen.completed += 1,
                EventType::ExecutionFailed => seen.failed += 1,
                _ if log.state.epoch.0 == 0 => seen.canceled_in_the_queue += 1,
                _ => seen.canceled_at_work += 1,
            }
        }
        for what in broken {
            self.breaks(execution, &what);
        }
    }

    /// A task begins. What it gives back is its own, so that nobody can give it back twice.
    pub(crate) fn begins(
        &mut self,
        process: &Arc<str>,
        execution: &ExecutionId,
        node: &NodeId,
        results: &BTreeMap<&String, &Value>,
    ) -> Value {
        self.seen.tasks_begun += 1;
        let mut broken = Vec::new();
        if let Some(log) = self.logs.get(execution) {
            let is_holders = log.holder.as_ref() == Some(process);
            self.seen.tasks_of_the_fenced += u64::from(!is_holders);
            // Whoever does not know yet that it is fenced may begin what it had started; nothing of that is recorded.
            if is_holders && log.succeeded.contains_key(node) {
                broken.push(format!("{node} runs again after it succeeded"));
            }
            for (task, result) in results.iter().filter(|(_, result)| !result.is_null()) {
                if !log.succeeded.values().any(|known| known == *result) {
                    broken.push(format!("{node} sees {result} of {task}, which is not in the log"));
                }
            }
        }
        for what in broken {
            self.breaks(execution, &what);
        }
        json!({"given": self.seen.tasks_begun})
    }

    /// A task gave something back.
    pub(crate) fn gave(&mut self, execution: &ExecutionId, node: &NodeId, attempt: Attempt, value: &Value) {
        self.ledger.entry((execution.clone(), node.clone(), attempt)).or_default().push(value.clone());
    }

    /// A job is given to a process.
    pub(crate) fn given(&mut self, process: &Arc<str>, delivery: &Delivery) {
        self.jobs.insert(delivery.id.clone(), process.clone());
    }

    /// The lease of a job ends before its time.
    pub(crate) fn unleased(&mut self, job: &JobId) {
        self.seen.leases_lost += 1;
        self.unleased.insert(job.clone());
    }

    /// A process answers the queue. Who lost its claim says nothing: the job is another's. And no job is done before its run.
    pub(crate) fn answers(&mut self, process: &Arc<str>, delivery: &Delivery, is_done: bool) {
        let Some(execution) = run_of(&delivery.body) else { return };
        let Some(log) = self.logs.get(&execution) else { return };
        if log.state.phase.is_terminal() {
            return;
        }
        let held_by = log.state.claim.as_ref().and_then(|claim| claim.job.clone());
        let is_theirs = held_by.as_ref() == Some(&delivery.id);
        let is_holders = log.holder.as_ref() == Some(process);
        let is_gone = self.jobs.get(&delivery.id).is_some_and(|last| last != process);
        let could_know = !self.unleased.contains(&delivery.id) && self.seen.clock_jumps == 0;
        if is_theirs && !is_holders && is_gone && could_know {
            self.breaks(&execution, &format!("{process} answered for job {} of another", delivery.id));
        } else if is_theirs && is_holders && is_done {
            self.breaks(&execution, &format!("{process} acknowledged job {} before the end", delivery.id));
        }
    }

    /// Executions that have failed.
    pub(crate) fn failed(&self) -> Vec<ExecutionId> {
        let failed = self.logs.iter().filter(|(_, log)| log.ends == [EventType::ExecutionFailed]);
        failed.map(|(id, _)| id.clone()).collect()
    }

    /// Executions that have not ended, and how they stand.
    ///
    /// One that nobody was told of may wait for an answer for ever: it is shown among those that wait.
    pub(crate) fn open(&self, accepted: &[ExecutionId]) -> Vec<String> {
        let open = self.logs.iter().filter(|(id, log)| {
            !log.state.phase.is_terminal() && (accepted.contains(id) || !log.state.is_parked())
        });
        open.map(|(id, log)| {
            let (state, holder) = (&log.state, log.holder.as_deref().unwrap_or("nobody"));
            format!("{id} is {:?} at {} and held by {holder}", state.phase, state.version)
        })
        .collect()
    }
}

/// The run that a job, or a dead letter, is about.
pub(crate) fn run_of(body: &[u8]) -> Option<ExecutionId> {
    let body: Value = serde_json::from_slice(body).ok()?;
    ExecutionId::new(body.get("run_id")?.as_str()?).ok()
}

const fn is_end(kind: &EventType) -> bool {
    matches!(kind, EventType::ExecutionCompleted | EventType::ExecutionFailed | EventType::ExecutionCanceled)
}
