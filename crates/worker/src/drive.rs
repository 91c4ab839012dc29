//! Driving one claimed execution: answer what loops ask, start what is ready, record how it ends, one record a step.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use pyoco_core::command::{
    ChooseNode, ClaimExecution, Command, ConfirmNodeStopped, FailExecution, FailNode, Issuer,
    ReleaseExecution, Request, StartNode, SucceedNode,
};
use pyoco_core::decide::{Answer, Batch};
use pyoco_core::event::ErrorInfo;
use pyoco_core::ids::{Attempt, Epoch, ExecutionId, NodeId, Version};
use pyoco_core::notice::Notice;
use pyoco_core::outcome::{Effect, Outcome, Reason, Rejection};
use pyoco_core::state::{NodeNumber, NodeStatus, Phase, State};
use pyoco_core::time::Timestamp;
use pyoco_core::trace::TraceContext;
use pyoco_core::view::RunStatus;
use pyoco_engine::{Decided, EngineError, Watcher};
use pyoco_figures::Stopwatch;
use pyoco_ports::Durability;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::attempt;
use crate::room::Place;
use crate::runtime::{Call, End, Urgency};
use crate::wheels::{Outfit, Standing, WheelFolder};
use crate::worker::{AFTER_FAILURE, Drain, Shared};

/// How the driving of an execution ended for this worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Driven {
    /// The end is in the log; with what failed, if it did.
    Ended(RunStatus, Option<ErrorInfo>),
    /// Everything open waits for somebody else; the claim is let go.
    Parked,
    /// Another worker holds it now.
    Fenced,
    /// The worker stops; the claim is let go and the execution goes to another.
    Drained,
    /// The worker stops and waited long enough: its attempts were ended, and another takes over by the job.
    Abandoned,
}

/// What came of a claim.
pub(crate) enum Claimed<'a> {
    /// The execution is this worker's, and this is how it stands.
    Yes(Box<Drive<'a>>, Box<Glance>),
    /// It is not.
    No(Result<Answer, Rejection>),
    /// Its log says something else of wheels than it did when they were brought here.
    OtherWheels,
}

/// One attempt of a node. A report that is sent again because nobody knows whether it arrived must not be taken for one of the
/// next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Try {
    node: NodeId,
    attempt: Attempt,
}

/// One execution in this worker's hands.
pub(crate) struct Drive<'a> {
    shared: &'a Shared,
    execution: ExecutionId,
    /// What it runs, for the figures.
    flow: Arc<str>,
    issuer: Issuer,
    epoch: Epoch,
    watcher: Watcher,
    attempts: JoinSet<End>,
    stops: BTreeMap<NodeId, Arc<watch::Sender<Urgency>>>,
    /// Whose attempt a spawned task is, for the one that does not say so itself because it panicked.
    owners: HashMap<tokio::task::Id, Try>,
    /// Ends that are not in the log yet.
    ended: Vec<(Try, End)>,
    /// Told when the worker is to stop.
    drain: watch::Receiver<Drain>,
    /// What all its tasks run with.
    wheels: Option<Arc<WheelFolder>>,
    /// Its place among those that are driven at once.
    place: &'a Place,
}

impl<'a> Drive<'a> {
    /// Claims an execution and, in the same record, starts what is ready. Tasks are handed out when it is appended.
    pub(crate) async fn claim(
        shared: &'a Shared,
        execution: &ExecutionId,
        flow: &str,
        claim: ClaimExecution,
        outfit: &Outfit,
        place: &'a Place,
    ) -> Result<Claimed<'a>, EngineError> {
        let (worker, now) = (&shared.options.worker, shared.now());
        let issuer = |epoch| Issuer::Worker { id: worker.clone(), epoch };
        let request = Request::new(issuer(Epoch(0)), now, claim);
        let may_start = shared.drain() == Drain::No;
        // Before the claim, so that nothing is missed that happens after it.
        let watcher = shared.engine.watch(execution);
        let decided = shared.engine.transact(execution, Durability::Process, |batch| {
            if Standing::of(batch.state()) != outfit.standing {
                return Decided { value: Err(None), effects: Vec::new() };
            }
            let (epoch, effects) = match batch.decide(&request) {
                Ok(Answer { outcome: Outcome::Claimed(epoch), effects }) => (epoch, effects),
                other => {
                    // A claim may be what ends an execution; what follows from that is to be done as well.
                    let effects = other.as_ref().map(|answer| answer.effects.clone()).unwrap_or_default();
                    return Decided { value: Err(Some(other)), effects };
                }
            };
            let issuer = issuer(epoch);
            let mut turn = Turn { batch, issuer: &issuer, now, effects, is_full: false };
            turn.answer(&shared.env);
            let mut started = if may_start { turn.start(shared.options.task_slots) } else { Vec::new() };
            let state = turn.batch.state();
            if pyoco_faults::is_planted("rerun-completed") {
                let done = state.nodes.iter().filter(|(_, node)| node.status == NodeStatus::Succeeded);
                started.extend(done.filter_map(|(id, _)| state.number_of(id)));
            }
            let traces_all = shared.options.traces_all;
            let calls: Vec<Call> = started
                .into_iter()
                .filter_map(|number| call(state, number, outfit.folder.as_ref(), traces_all))
                .collect();
            let glance = Box::new(Glance::of(&turn, epoch));
            Decided { value: Ok((epoch, glance, calls)), effects: turn.effects }
        });
        let (epoch, glance, calls) = match decided.await? {
            Ok(begun) => begun,
            Err(Some(answer)) => return Ok(Claimed::No(answer)),
            Err(None) => return Ok(Claimed::OtherWheels),
        };
        let mut drive = Self {
            shared,
            execution: execution.clone(),
            flow: flow.into(),
            issuer: issuer(epoch),
            epoch,
            watcher,
            attempts: JoinSet::new(),
            stops: BTreeMap::new(),
            owners: HashMap::new(),
            ended: Vec::new(),
            drain: shared.drain.clone(),
            wheels: outfit.folder.clone(),
            place,
        };
        for call in calls {
            drive.hand_out(call);
        }
        Ok(Claimed::Yes(Box::new(drive), glance))
    }

    /// Claims an execution that cannot be run here, and fails it in the same record. What came of the claim if it was none.
    pub(crate) async fn claim_to_fail(
        shared: &Shared,
        execution: &ExecutionId,
        claim: ClaimExecution,
        failure: FailExecution,
    ) -> Result<Result<(), Result<Answer, Rejection>>, EngineError> {
        let (worker, now) = (&shared.options.worker, shared.now());
        let issuer = |epoch| Issuer::Worker { id: worker.clone(), epoch };
        let request = Request::new(issuer(Epoch(0)), now, claim);
        let decided = shared.engine.transact(execution, Durability::Full, |batch| {
            let (epoch, mut effects) = match batch.decide(&request) {
                Ok(Answer { outcome: Outcome::Claimed(epoch), effects }) => (epoch, effects),
                other => {
                    let effects = other.as_ref().map(|answer| answer.effects.clone()).unwrap_or_default();
                    return Decided { value: Err(other), effects };
                }
            };
            let failed = batch.decide(&Request::new(issuer(epoch), now, failure.clone()));
            effects.extend(failed.as_ref().map(|answer| answer.effects.clone()).unwrap_or_default());
            Decided { value: failed.map(|_| ()).map_err(Err), effects }
        });
        decided.await
    }

    /// The epoch of the claim.
    pub(crate) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Drives to an end. Dropping the future ends every attempt.
    pub(crate) async fn run(mut self, begun: Box<Glance>) -> Result<Driven, EngineError> {
        let mut glance = *begun;
        loop {
            let draining = self.shared.drain() > Drain::No;
            if !glance.is_ours {
                return Ok(Driven::Fenced);
            }
            for node in &glance.unwanted {
                if let Some(stop) = self.stops.get(node) {
                    press(stop, Urgency::Asked);
                }
            }
            match glance.phase {
                Phase::Completed | Phase::Failed | Phase::Canceled => {
                    if glance.is_found {
                        self.show_end().await?;
                    }
                    return Ok(Driven::Ended(glance.status, glance.failure));
                }
                // One record had no room for all of it. First, because what has ended must be told before anything is let go.
                Phase::Started | Phase::Canceling | Phase::Failing if glance.is_full => {}
                Phase::Canceling | Phase::Failing if self.attempts.is_empty() => {
                    self.release(false).await?;
                    let ended = match glance.phase {
                        Phase::Canceling => RunStatus::Cancelled,
                        Phase::Failing | Phase::Absent | Phase::Created | Phase::Started => RunStatus::Failed,
                        Phase::Completed | Phase::Failed | Phase::Canceled => glance.status,
                    };
                    return Ok(Driven::Ended(ended, glance.failure));
                }
                Phase::Started | Phase::Canceling | Phase::Failing if self.shared.drain() == Drain::Over => {
                    self.attempts.shutdown().await;
                    // Let go in good order, so that it does not count as the loss of a worker.
                    let released = self.release(false).await;
                    return Ok(if released.is_ok() { Driven::Drained } else { Driven::Abandoned });
                }
                Phase::Canceling => {
                    self.press_all(Urgency::Asked);
                    self.wait(&glance).await;
                }
                Phase::Failing => {
                    self.press_all(Urgency::Finishing);
                    self.wait(&glance).await;
                }
                Phase::Started if self.attempts.is_empty() && draining => {
                    self.release(false).await?;
                    return Ok(Driven::Drained);
                }
                Phase::Started if self.attempts.is_empty() && self.may_park(&glance) => {
                    match self.release(true).await {
                        Ok(()) => return Ok(Driven::Parked),
                        // Something became ready in the same moment.
                        Err(EngineError::Rejected(_)) => self.wait(&glance).await,
                        Err(error) => return Err(error),
                    }
                }
                Phase::Started => self.wait(&glance).await,
                Phase::Absent | Phase::Created => return Ok(Driven::Fenced),
            }
            glance = self.step_again_and_again().await?;
        }
    }

    /// One step; a passing failure of the store is waited out, while what runs goes on and what has ended is kept.
    async fn step_again_and_again(&mut self) -> Result<Glance, EngineError> {
        loop {
            match self.step(self.shared.drain() > Drain::No).await {
                Err(EngineError::Store(error) | EngineError::Unfollowed(error))
                    if error.kind.is_retryable() && self.shared.drain() < Drain::Over =>
                {
                    let (run_id, worker_id) = (&self.execution, &self.shared.options.worker);
                    notice!(warn, Notice::StoreUnavailable, %run_id, %worker_id, reason = %error);
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
                stepped => return stepped,
            }
        }
    }

    /// One record: what ended, what was asked, what starts next. The tasks are handed out after it is appended.
    async fn step(&mut self, draining: bool) -> Result<Glance, EngineError> {
        let ended = std::mem::take(&mut self.ended);
        let free = self.shared.options.task_slots.saturating_sub(self.attempts.len());
        let (shared, issuer, epoch) = (self.shared, &self.issuer, self.epoch);
        let now = shared.now();
        let durability = if ended.iter().all(|(_, end)| matches!(end, End::Succeeded { .. })) {
            Durability::Process
        } else {
            Durability::Full
        };
        let (stops, wheels, place) = (&self.stops, self.wheels.as_ref(), self.place);
        let decided = shared.engine.transact(&self.execution, durability, |batch| {
            let mut turn = Turn { batch, issuer, now, effects: Vec::new(), is_full: false };
            let recorded = ended.iter().take_while(|(of, end)| turn.record(of, end)).count();
            let left = ended.get(recorded..).unwrap_or_default();
            turn.answer(&shared.env);
            let mut started = turn
                .forgotten(|node| stops.contains_key(node) || left.iter().any(|(of, _)| of.node == *node));
            if !draining {
                started.extend(turn.start(free.saturating_sub(started.len())));
            }
            let state = turn.batch.state();
            let traces_all = shared.options.traces_all;
            let calls: Vec<Call> =
                started.into_iter().filter_map(|number| call(state, number, wheels, traces_all)).collect();
            let glance = Glance::of(&turn, epoch);
            // Should somebody else have been faster and it goes on after all, then without a place, which is rare and no harm.
            if glance.phase.is_terminal() {
                place.give_up();
            }
            Decided { value: (glance, calls, recorded), effects: turn.effects }
        });
        let (glance, calls, recorded) = match decided.await {
            Ok(decided) => decided,
            Err(error) => {
                self.ended.splice(0..0, ended);
                return Err(error);
            }
        };
        // What the record had no room for comes first in the next.
        self.ended.splice(0..0, ended.into_iter().skip(recorded));
        for call in calls {
            self.hand_out(call);
        }
        Ok(glance)
    }

    fn hand_out(&mut self, call: Call) {
        let (runtime, node) = (self.shared.runtime.clone(), call.node.clone());
        let urgency = Arc::new(watch::Sender::new(Urgency::None));
        self.stops.insert(node.clone(), urgency.clone());
        let grace = Duration::from_millis(self.shared.options.cancel_grace.0);
        let owner = Try { node, attempt: call.attempt };
        let (figures, flow) = (self.shared.engine.figures().clone(), self.flow.clone());
        let running = attempt::run(runtime, call, urgency, grace);
        let spawned = self.attempts.spawn(async move {
            let watch = Stopwatch::start();
            let end = running.await;
            figures.task_ran(&flow, watch.seconds());
            end
        });
        self.owners.insert(spawned.id(), owner);
    }

    /// Waits for an attempt to end, for somebody else's change, for a retry, or for the worker to stop.
    async fn wait(&mut self, glance: &Glance) {
        let retry = self.until_retry(glance);
        let resting = async {
            match retry {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(joined) = self.attempts.join_next_with_id() => self.note(joined),
            () = self.watcher.beyond(glance.version) => {}
            _ = self.drain.changed() => {}
            () = resting => {}
        }
        // Ends that came together share a record.
        while let Some(joined) = self.attempts.try_join_next_with_id() {
            self.note(joined);
        }
    }

    fn note(&mut self, joined: Result<(tokio::task::Id, End), tokio::task::JoinError>) {
        let (id, end) = match joined {
            Ok(ended) => ended,
            // A panic fails its task, never the worker.
            Err(error) => {
                let failed = ErrorInfo::new("RUNTIME_PANIC", "the task's runtime panicked");
                (error.id(), End::Failed { error: failed, inputs: None, changes: None })
            }
        };
        let Some(of) = self.owners.remove(&id) else { return };
        self.stops.remove(&of.node);
        self.ended.push((of, end));
    }

    /// The execution is on its way out: everything that runs is told.
    fn press_all(&self, urgency: Urgency) {
        for stop in self.stops.values() {
            press(stop, urgency);
        }
    }

    /// Nothing runs, and nothing will before long.
    fn may_park(&self, glance: &Glance) -> bool {
        let soon = self.shared.now().after(self.shared.options.park_after);
        !glance.has_work && glance.next_retry.is_none_or(|at| at > soon)
    }

    /// When the next retry is due. Where it could not be started nobody waits for it: without a free slot, in a worker that is to stop,
    /// or when the execution is on its way out.
    fn until_retry(&self, glance: &Glance) -> Option<Duration> {
        let has_slot = self.attempts.len() < self.shared.options.task_slots;
        if !has_slot || glance.phase != Phase::Started || self.shared.drain() > Drain::No {
            return None;
        }
        let micros = glance.next_retry?.as_micros().saturating_sub(self.shared.now().as_micros()).max(0);
        Some(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    }

    async fn release(&self, parked: bool) -> Result<(), EngineError> {
        let request = Request::new(self.issuer.clone(), self.shared.now(), ReleaseExecution { parked });
        let answer = self.shared.engine.command(&self.execution, &request).await?;
        if matches!(answer.outcome, Outcome::AlreadyEnded(_)) {
            self.show_end().await?;
        }
        Ok(())
    }

    /// Somebody else has ended it, and may have died before the end was to be seen. Afterwards no job leads here any more.
    async fn show_end(&self) -> Result<(), EngineError> {
        if self.shared.engine.store().is_exclusive() {
            return Ok(());
        }
        self.shared.engine.show_again(&self.execution).await
    }
}

/// Raises the urgency; it never falls.
fn press(stop: &watch::Sender<Urgency>, urgency: Urgency) {
    stop.send_if_modified(|now| {
        let is_higher = urgency > *now;
        *now = urgency.max(*now);
        is_higher
    });
}

/// What the loop needs to know of a state, without a copy of it.
pub(crate) struct Glance {
    version: Version,
    phase: Phase,
    status: RunStatus,
    failure: Option<ErrorInfo>,
    is_ours: bool,
    has_work: bool,
    next_retry: Option<Timestamp>,
    /// Nodes in our hands that somebody wants to stop.
    unwanted: Vec<NodeId>,
    /// There was more to decide than one record has room for.
    is_full: bool,
    /// It stood like this already.
    is_found: bool,
}

impl Glance {
    /// How it will stand once the batch is appended.
    fn of(turn: &Turn<'_, '_>, epoch: Epoch) -> Self {
        let (batch, state) = (&*turn.batch, turn.batch.state());
        let in_hand = state.open.in_workers.iter().filter_map(|number| state.node(*number));
        Self {
            version: if batch.is_empty() { state.version } else { state.version.next() },
            phase: state.phase,
            status: RunStatus::of(state),
            failure: state.failure.as_ref().map(|failure| failure.error.clone()),
            is_ours: (state.epoch == epoch || pyoco_faults::is_planted("epoch-unchecked"))
                && (state.claim.is_some() || state.phase.is_terminal()),
            has_work: state.wants_worker(),
            next_retry: state.open.resting.first().map(|(at, _)| *at),
            unwanted: in_hand.filter(|(_, node)| node.cancel_requested).map(|(id, _)| id.clone()).collect(),
            is_full: turn.is_full,
            is_found: batch.is_empty(),
        }
    }
}

/// What is decided in one record.
struct Turn<'a, 'b> {
    batch: &'a mut Batch<'b>,
    issuer: &'a Issuer,
    now: Timestamp,
    effects: Vec<Effect>,
    /// The record has no room for more.
    is_full: bool,
}

impl Turn<'_, '_> {
    /// A refusal means that the log knows better: another holds the claim, or the node is settled. Only a record that is
    /// full says nothing about the command: it is to be asked again in the next.
    fn ask(&mut self, command: impl Into<Command>) -> Result<(), Reason> {
        let mut request = Request::new(self.issuer.clone(), self.now, command);
        if let Issuer::Worker { epoch, .. } = &mut request.issuer
            && pyoco_faults::is_planted("epoch-unchecked")
        {
            *epoch = self.batch.state().epoch;
        }
        match self.batch.decide(&request) {
            Ok(answer) => {
                self.effects.extend(answer.effects);
                Ok(())
            }
            Err(rejection) => {
                debug_assert!(rejection.reason != Reason::OnlyAWorker, "a worker says this");
                self.is_full |= rejection.reason == Reason::SealFirst;
                Err(rejection.reason)
            }
        }
    }

    /// Records how an attempt ended. `false` when this record has no room for it.
    fn record(&mut self, of: &Try, end: &End) -> bool {
        let (node_id, attempt) = (of.node.clone(), Some(of.attempt));
        let asked = match end.clone() {
            End::Succeeded { output, output_ref, inputs, changes } => {
                self.ask(SucceedNode { node_id, attempt, output, output_ref, inputs, changes })
            }
            End::Failed { error, inputs, changes } => {
                self.ask(FailNode { node_id, attempt, error: Some(error), inputs, changes })
            }
            End::Stopped => self.ask(ConfirmNodeStopped { node_id }),
        };
        match asked {
            Err(Reason::SealFirst) => false,
            // It can never be recorded as it is, and must not be lost either.
            Err(reason @ Reason::ValueTooLarge) => {
                let error = Some(ErrorInfo::new("RESULT_TOO_LARGE", reason.to_string()));
                let (node_id, attempt) = (of.node.clone(), Some(of.attempt));
                let failed = self.ask(FailNode { node_id, attempt, error, inputs: None, changes: None });
                failed != Err(Reason::SealFirst)
            }
            Ok(()) | Err(_) => true,
        }
    }

    /// Answers loops and switches until none asks: an answer may lead to the next question.
    fn answer(&mut self, env: &HashMap<String, String>) {
        while let Some(number) = self.batch.state().open.asking.first().copied() {
            let state = self.batch.state();
            let Some(question) = state.question(number) else { return };
            let (node_id, choice) = (question.node.clone(), question.answer(&state.scope_at(number, env)));
            if self.ask(ChooseNode { node_id, choice }).is_err() {
                return;
            }
        }
    }

    /// What the log says runs here, but was never handed out: the append that started it was answered too late. What is to
    /// stop by now has stopped.
    fn forgotten(&mut self, is_in_hand: impl Fn(&NodeId) -> bool) -> Vec<NodeNumber> {
        let state = self.batch.state();
        let is_going_on = state.phase == Phase::Started;
        let in_workers =
            state.open.in_workers.iter().filter_map(|number| Some((*number, state.node(*number)?)));
        let forgotten = in_workers.filter(|(_, (id, _))| !is_in_hand(id));
        let (wanted, unwanted): (Vec<_>, Vec<_>) =
            forgotten.partition(|(_, (_, node))| is_going_on && !node.cancel_requested);
        let wanted = wanted.into_iter().map(|(number, _)| number).collect();
        let unwanted: Vec<NodeId> = unwanted.into_iter().map(|(_, (id, _))| id.clone()).collect();
        for node_id in unwanted {
            // Asked again in the next record if this one is full.
            let _ = self.ask(ConfirmNodeStopped { node_id });
        }
        wanted
    }

    /// Starts what is ready, as far as there are slots; what was started is handed out after the append.
    fn start(&mut self, free: usize) -> Vec<NodeNumber> {
        let state = self.batch.state();
        let rested =
            state.open.resting.iter().take_while(|(at, _)| *at <= self.now).map(|(_, number)| *number);
        let ready: Vec<NodeNumber> =
            state.open.for_workers.iter().copied().chain(rested).take(free).collect();
        let mut started = Vec::new();
        for number in ready {
            let Some(node_id) = self.batch.state().node(number).map(|(id, _)| id.clone()) else { continue };
            match self.ask(StartNode { node_id, attempt: None, worker_id: None }) {
                Ok(()) => started.push(number),
                Err(Reason::SealFirst) => break,
                Err(_) => {}
            }
        }
        started
    }
}

/// Everything an attempt may see.
fn call(
    state: &State,
    number: NodeNumber,
    wheels: Option<&Arc<WheelFolder>>,
    traces_all: bool,
) -> Option<Call> {
    let (id, node) = state.node(number)?;
    let caller = state.traced_by();
    let is_traced = traces_all || caller.is_some();
    let trace = is_traced.then(|| TraceContext::of_execution(&state.id, caller));
    Some(Call {
        execution: state.id.clone(),
        node: id.clone(),
        attempt: node.attempt,
        task: state.task_of(node)?.clone(),
        plan: state.plan.clone()?,
        context: state.context.clone(),
        loops: state.loops_around(number),
        wheels: wheels.cloned(),
        trace: trace.map(|run| run.of_attempt(&state.id, id, node.attempt)),
    })
}
