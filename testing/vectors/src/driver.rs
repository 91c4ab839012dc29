//! A worker in one loop: takes the execution, answers its questions, runs its tasks in the host and records
//! what comes back, until it has ended. Readiness, policies and endings are decided by the core alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use pyoco_core::command::{
    AdvanceExecution, CancelExecution, ChooseNode, ClaimExecution, Command, CreateExecution, DeadLetter,
    FailExecution, FailNode, Issuer, ReleaseExecution, StartNode,
};
use pyoco_core::event::{Actor, ActorKind, ErrorInfo};
use pyoco_core::ids::{Attempt, Epoch, JobId, NodeId, WorkerId};
use pyoco_core::json::Object;
use pyoco_core::plan::Plan;
use pyoco_core::state::{NodeNumber, NodeState, NodeStatus, Phase, State};
use pyoco_core::time::{Millis, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::execution::Execution;
use crate::host::Host;
use crate::load::{FLOW, Loaded, Source, load};
use crate::task::{Answer, Blobs, request};
use crate::vector::Vector;
use crate::{Broken, Moment, Run};

/// At most so many attempts at once, as the original.
const SLOTS: usize = 8;
/// A run that takes longer hangs.
const PATIENCE: Millis = Millis(30_000);

/// What came of a vector.
#[derive(Debug)]
pub enum Outcome {
    /// It was refused when it was submitted, with this message.
    Refused(String),
    /// It was run to its end.
    Ran(Box<Run>),
}

/// Runs a vector to its end.
pub fn drive(vector: &Vector, source: Source) -> Result<Outcome, Broken> {
    let mut host = Host::start(&vector.env)?;
    let plan = match load(vector, source, &mut host)? {
        Loaded::Refused(message) => return Ok(Outcome::Refused(message)),
        Loaded::Unusable(message) => Err(message),
        Loaded::Plan(plan) => Ok(plan),
    };
    let mut driver = Driver::new(vector, host)?;
    driver.create()?;
    match plan {
        Err(message) => driver.give_up(message)?,
        Ok(plan) => {
            driver.claim(plan)?;
            driver.work()?;
        }
    }
    Ok(Outcome::Ran(Box::new(driver.finish())))
}

struct Driver<'a> {
    vector: &'a Vector,
    host: Host,
    execution: Execution,
    caller: Issuer,
    worker: Issuer,
    env: HashMap<String, String>,
    running: IndexMap<u64, Running>,
    blobs: Blobs,
    starts: usize,
    cancel_at: Option<Timestamp>,
    run: Run,
}

/// An attempt that the host works on.
struct Running {
    node: NodeId,
    task: String,
    attempt: Attempt,
    deadline: Option<Timestamp>,
}

impl<'a> Driver<'a> {
    fn new(vector: &'a Vector, host: Host) -> Result<Self, Broken> {
        let mut env: HashMap<String, String> = std::env::vars().collect();
        env.extend(vector.env.clone());
        let execution = Execution::new()?;
        let run = Run {
            state: State::absent(execution.state().id.clone()),
            calls: Vec::new(),
            logs: IndexMap::new(),
            moments: Vec::new(),
            elapsed: 0.0,
            folder: host.folder(),
        };
        Ok(Self {
            vector,
            host,
            execution,
            caller: Issuer::Caller(Actor::named(ActorKind::User, "alice")),
            worker: Issuer::Worker { id: worker_id()?, epoch: Epoch(0) },
            env,
            running: IndexMap::new(),
            blobs: Blobs::default(),
            starts: 0,
            cancel_at: None,
            run,
        })
    }

    fn state(&self) -> &State {
        self.execution.state()
    }

    fn record(&mut self, commands: impl IntoIterator<Item = Command>) -> Result<(), Broken> {
        self.execution.send(&self.worker, commands).map(drop)
    }

    fn create(&mut self) -> Result<(), Broken> {
        let command = CreateExecution {
            graph_id: FLOW.to_owned(),
            input: Object(self.vector.params.clone().unwrap_or_default()),
            tag: None,
            labels: Vec::new(),
            tenant_id: None,
            api_key_id: None,
            workflow: None,
            graph_version: None,
            plan: None,
            retry_of: None,
            start: true,
        };
        self.execution.send(&self.caller, [command.into()]).map(drop)
    }

    /// The flow cannot be run: the run fails before it began.
    fn give_up(&mut self, message: String) -> Result<(), Broken> {
        let error = ErrorInfo::new("INVALID_WORKFLOW", message);
        self.record([FailExecution { error, dead_letter: Some(DeadLetter::ExecutionError) }.into()])
    }

    fn claim(&mut self, plan: Arc<Plan>) -> Result<(), Broken> {
        let job = JobId::new("job-1").map_err(|error| error.to_string())?;
        let worker_id = worker_id()?;
        self.record([ClaimExecution { job, worker_id, owner_expired: false, plan: Some(plan) }.into()])?;
        self.worker = Issuer::Worker { id: self::worker_id()?, epoch: self.state().epoch };
        Ok(())
    }

    fn work(&mut self) -> Result<(), Broken> {
        let give_up_at = self.execution.now().after(PATIENCE);
        loop {
            self.go_on()?;
            if self.state().phase.is_terminal() {
                return Ok(());
            }
            self.start_ready()?;
            self.wait(give_up_at)?;
            self.cancel_when_due()?;
            self.end_overdue()?;
        }
    }

    /// Everything that needs no task: open questions, a full record, a cancel with nothing left to wait for.
    fn go_on(&mut self) -> Result<(), Broken> {
        loop {
            let state = self.state();
            if let Some(number) = state.open.asking.first().copied() {
                let question = state.question(number).ok_or("a node that asks has no question")?;
                let choice = question.answer(&state.scope_at(number, &self.env));
                let node_id = question.node.clone();
                self.record([ChooseNode { node_id, choice }.into()])?;
            } else if state.needs_advance() {
                self.record([AdvanceExecution {}.into()])?;
            } else if state.phase == Phase::Canceling && state.open.running.is_empty() {
                self.record([ReleaseExecution { parked: false }.into()])?;
            } else {
                return Ok(());
            }
        }
    }

    /// Starts what is ready and due, all in one record.
    fn start_ready(&mut self) -> Result<(), Broken> {
        if self.state().phase != Phase::Started {
            return Ok(());
        }
        let (room, now) = (SLOTS.saturating_sub(self.running.len()), self.execution.now());
        let is_due = |number: &NodeNumber| {
            self.state().node(*number).is_some_and(|(_, node)| node.retry_at.is_none_or(|at| at <= now))
        };
        let due: Vec<NodeNumber> =
            self.state().open.ready.iter().copied().filter(is_due).take(room).collect();
        let ids = due.iter().filter_map(|number| Some(self.state().node(*number)?.0.clone()));
        let commands: Vec<Command> =
            ids.map(|node_id| StartNode { node_id, attempt: None, worker_id: None }.into()).collect();
        if commands.is_empty() {
            return Ok(());
        }
        self.record(commands)?;
        for number in due {
            self.hand_over(number)?;
        }
        Ok(())
    }

    fn hand_over(&mut self, number: NodeNumber) -> Result<(), Broken> {
        let body = request(self.state(), number, &self.blobs)?;
        let (id, node) = self.state().node(number).ok_or("a node that was not reached")?;
        let attempt = Running {
            node: id.clone(),
            task: task_name(self.state(), node)?,
            attempt: node.attempt,
            deadline: self.state().deadline_of(node),
        };
        if attempt.attempt == Attempt(1) {
            self.run.moments.push((attempt.task.clone(), Moment::Start));
            self.note_start(&attempt.task);
        }
        let exec = self.host.send("exec", body)?;
        self.running.insert(exec, attempt);
        Ok(())
    }

    fn note_start(&mut self, task: &str) {
        let Some(cancel) = self.vector.cancel.as_ref().filter(|cancel| cancel.on_start == task) else {
            return;
        };
        self.starts += 1;
        if self.starts == cancel.nth {
            let delay = Millis::from_seconds(cancel.delay).unwrap_or_default();
            self.cancel_at = Some(self.execution.now().after(delay));
        }
    }

    /// Waits for the host or for the next instant at which something is due.
    fn wait(&mut self, give_up_at: Timestamp) -> Result<(), Broken> {
        let retries =
            self.state().open.ready.iter().filter_map(|number| self.state().node(*number)?.1.retry_at);
        let deadlines = self.running.values().filter_map(|attempt| attempt.deadline);
        let due: Option<Timestamp> = retries.chain(deadlines).chain(self.cancel_at).min();
        if due.is_none() && self.running.is_empty() {
            return Err(format!("nothing runs and nothing is due, but it is {:?}", self.state().phase));
        }
        let now = self.execution.now();
        if now >= give_up_at {
            return Err("it does not end".to_owned());
        }
        let until = due.map_or(give_up_at, |due| due.min(give_up_at));
        let millis = until.millis_since(now).max(0.0);
        let mut message = self.host.receive(Duration::from_secs_f64(millis / 1e3))?;
        let mut ends = Vec::new();
        while let Some(heard) = message {
            ends.extend(self.hear(heard)?);
            message = self.host.receive(Duration::ZERO)?;
        }
        self.record_ends(ends)
    }

    /// What the host said: a call, or the end of an attempt. The end of one that was given up counts nothing.
    fn hear(&mut self, message: Value) -> Result<Option<(Running, Command)>, Broken> {
        let id = message["id"].as_u64().ok_or("an answer without a number")?;
        if message["event"] == "called" {
            self.run.calls.extend(self.running.get(&id).map(|attempt| attempt.task.clone()));
            return Ok(None);
        }
        let Some(attempt) = self.running.shift_remove(&id) else { return Ok(None) };
        let answer = Answer::deserialize(message).map_err(|error| error.to_string())?;
        if !answer.logs.is_empty() {
            self.run.logs.entry(attempt.task.clone()).or_default().extend(answer.logs.clone());
        }
        let command = answer.command(attempt.node.clone(), attempt.attempt, &mut self.blobs)?;
        Ok(Some((attempt, command)))
    }

    /// Records attempts that ended together, in one record.
    fn record_ends(&mut self, ends: Vec<(Running, Command)>) -> Result<(), Broken> {
        if ends.is_empty() {
            return Ok(());
        }
        let (attempts, commands): (Vec<Running>, Vec<Command>) = ends.into_iter().unzip();
        self.record(commands)?;
        for attempt in attempts {
            let moment = match self.state().nodes.get(&attempt.node).map(|node| node.status) {
                Some(NodeStatus::Succeeded) => Moment::End,
                Some(NodeStatus::Failed) => Moment::Error,
                // It will be tried again, or the cancel has overtaken it.
                Some(NodeStatus::Ready | NodeStatus::Canceled | NodeStatus::Pending) | None => continue,
                Some(NodeStatus::Running | NodeStatus::Waiting) => continue,
            };
            self.run.moments.push((attempt.task, moment));
        }
        Ok(())
    }

    fn cancel_when_due(&mut self) -> Result<(), Broken> {
        if self.cancel_at.is_none_or(|at| at > self.execution.now()) || self.state().phase.is_terminal() {
            return Ok(());
        }
        self.cancel_at = None;
        self.execution.send(&self.caller, [CancelExecution { reason: None }.into()])?;
        self.host.cancel()
    }

    /// Gives up attempts that took too long.
    fn end_overdue(&mut self) -> Result<(), Broken> {
        let now = self.execution.now();
        let is_overdue = |attempt: &Running| attempt.deadline.is_some_and(|deadline| deadline <= now);
        let overdue: Vec<u64> =
            self.running.iter().filter(|(_, attempt)| is_overdue(attempt)).map(|(id, _)| *id).collect();
        let mut ends = Vec::new();
        for id in overdue {
            let Some(attempt) = self.running.shift_remove(&id) else { continue };
            let spec = self.state().nodes.get(&attempt.node).and_then(|node| self.state().task_of(node));
            let error = spec.map(|spec| spec.timed_out());
            let (node_id, number) = (attempt.node.clone(), Some(attempt.attempt));
            let command = FailNode { node_id, attempt: number, error, inputs: None, changes: None };
            ends.push((attempt, command.into()));
        }
        self.record_ends(ends)
    }

    fn finish(mut self) -> Run {
        self.run.state = self.state().clone();
        self.run.elapsed = self.execution.elapsed().as_secs_f64();
        self.run
    }
}

fn worker_id() -> Result<WorkerId, Broken> {
    WorkerId::new("w1").map_err(|error| error.to_string())
}

fn task_name(state: &State, node: &NodeState) -> Result<String, Broken> {
    state.task_of(node).map(|task| task.name.clone()).ok_or_else(|| "a node that is no task".to_owned())
}
