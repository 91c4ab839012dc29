//! The deployment as a transition system: its state, its actions and its properties.

use pyoco_core::plan::Plan;
use pyoco_core::state::Phase;
use pyoco_testkit::{Graph, callable};
use stateright::{Model, Property};
use std::sync::Arc;

use crate::gateway::Gateway;
use crate::log::Log;
use crate::queue::Queue;
use crate::sweeper::Sweeper;
use crate::worker::Worker;

/// How much may go wrong in one history.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Tasks of the flow, one after the other.
    pub steps: usize,
    /// Processes that die.
    pub crashes: u8,
    /// Appends that are applied but time out.
    pub ambiguous: u8,
    /// Appends that are refused because of a neighbour in flight.
    pub spurious_conflicts: u8,
    /// Leases that run out although their worker lives.
    pub expired_leases: u8,
    /// Jobs that the queue loses.
    pub lost_jobs: u8,
}

/// A mistake to plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The terminal record is appended without an expected version.
    CompleteWithoutExpectedVersion,
    /// After a conflict the same record is sent again instead of deciding again.
    ResendOnConflict,
    /// The job is acknowledged when it is taken.
    AckBeforeTerminal,
    /// A worker writes under whatever epoch is current, not under its own.
    NoEpoch,
    /// A repeat is recognised only within the queue's de-duplication window.
    WindowOnlyDedup,
    /// Decisions are made on the snapshot bucket, which lags behind.
    DecideOnSnapshot,
    /// The sweeper appends without an expected version.
    SweeperWithoutExpectedVersion,
    /// A conflict with a neighbour in flight is taken for the final answer.
    TransientConflictIsFinal,
    /// A time-out is taken for a failure.
    TimeoutIsFailure,
    /// A worker that lost its claim still sends a NAK.
    ZombieNak,
}

impl Fault {
    /// All ten.
    pub const ALL: [Self; 10] = [
        Self::CompleteWithoutExpectedVersion,
        Self::ResendOnConflict,
        Self::AckBeforeTerminal,
        Self::NoEpoch,
        Self::WindowOnlyDedup,
        Self::DecideOnSnapshot,
        Self::SweeperWithoutExpectedVersion,
        Self::TransientConflictIsFinal,
        Self::TimeoutIsFailure,
        Self::ZombieNak,
    ];
}

/// What a client hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// It was done.
    Done,
    /// It was refused.
    Refused,
    /// It did not happen; try again.
    Unavailable,
}

/// The deployment that is checked.
#[derive(Clone, Debug)]
pub struct Deployment {
    pub(crate) bounds: Bounds,
    pub(crate) fault: Option<Fault>,
    pub(crate) plan: Arc<Plan>,
}

impl Deployment {
    /// A deployment, with a planted mistake or none.
    pub fn new(bounds: Bounds, fault: Option<Fault>) -> Self {
        let names: Vec<String> = (0..bounds.steps).map(|n| format!("t{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Self { bounds, fault, plan: Graph::chain(&names, &callable()).plan() }
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct System {
    pub(crate) log: Log,
    pub(crate) queue: Queue,
    /// The version that the snapshot bucket shows; 0: nothing.
    pub(crate) snapshot: u8,
    pub(crate) gateways: [Gateway; 2],
    pub(crate) workers: [Worker; 2],
    pub(crate) sweeper: Sweeper,
    pub(crate) start_replies: Vec<Reply>,
    pub(crate) cancel_reply: Option<Reply>,
    /// The queue's de-duplication window has passed.
    pub(crate) window_passed: bool,
    pub(crate) left: Left,
    pub(crate) seen: Seen,
    /// The first promise that was broken on the way here.
    pub(crate) broken: Option<&'static str>,
}

/// What may still go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) crashes: u8,
    pub(crate) ambiguous: u8,
    pub(crate) spurious_conflicts: u8,
    pub(crate) expired_leases: u8,
    pub(crate) lost_jobs: u8,
}

/// What has been seen, so that the properties are known not to be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pub(crate) zombie_refused: bool,
    pub(crate) ambiguous_resolved: bool,
    pub(crate) job_lost: bool,
    pub(crate) job_swept: bool,
}

/// How an append goes, as far as the world has a say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Weather {
    Fair,
    /// Applied, but the answer is lost.
    TimesOut,
    /// Refused for a neighbour in flight.
    InFlight,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A gateway takes its next step.
    Gateway(u8),
    /// A gateway's append is applied but times out.
    GatewayTimesOut(u8),
    /// A gateway's append is refused for a neighbour in flight.
    GatewayInFlight(u8),
    /// A gateway dies; its client hears nothing.
    GatewayDies(u8),
    /// A worker takes its next step, or a job.
    Worker(u8),
    /// A worker's append is applied but times out.
    WorkerTimesOut(u8),
    /// A worker dies.
    WorkerDies(u8),
    /// A job's lease runs out although its worker lives.
    LeaseExpires(u8),
    /// The sweeper takes its next step.
    Sweeper,
    /// The queue loses a job.
    JobLost(u8),
    /// The queue forgets which messages it has seen.
    WindowPasses,
}

impl Action {
    /// Whether the system goes on by itself; the others are the world's doing.
    pub const fn is_progress(&self) -> bool {
        match self {
            Self::Gateway(_) | Self::Worker(_) | Self::Sweeper => true,
            Self::GatewayTimesOut(_) | Self::GatewayInFlight(_) | Self::GatewayDies(_) => false,
            Self::WorkerTimesOut(_) | Self::WorkerDies(_) | Self::LeaseExpires(_) => false,
            Self::JobLost(_) | Self::WindowPasses => false,
        }
    }
}

impl System {
    pub(crate) fn break_promise(&mut self, promise: &'static str) {
        self.broken.get_or_insert(promise);
    }

    fn initial(bounds: Bounds) -> Self {
        Self {
            log: Log::new(),
            queue: Queue::default(),
            snapshot: 0,
            gateways: [Gateway::first(), Gateway::second()],
            workers: [Worker::idle(), Worker::idle()],
            sweeper: Sweeper::default(),
            start_replies: Vec::new(),
            cancel_reply: None,
            window_passed: false,
            left: Left {
                crashes: bounds.crashes,
                ambiguous: bounds.ambiguous,
                spurious_conflicts: bounds.spurious_conflicts,
                expired_leases: bounds.expired_leases,
                lost_jobs: bounds.lost_jobs,
            },
            seen: Seen::default(),
            broken: None,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.log.head().phase
    }

    fn progress(&self, model: &Deployment) -> Vec<Action> {
        let mut actions = Vec::new();
        actions.extend((0..2).filter(|g| self.gateways[usize::from(*g)].is_busy()).map(Action::Gateway));
        actions.extend((0..2).filter(|w| self.worker_can_act(*w)).map(Action::Worker));
        if self.sweeper_can_act(model) {
            actions.push(Action::Sweeper);
        }
        actions
    }

    fn mishaps(&self, model: &Deployment) -> Vec<Action> {
        let mut actions = Vec::new();
        for g in 0..2 {
            let gateway = &self.gateways[usize::from(g)];
            if self.left.ambiguous > 0 && gateway.is_appending() {
                actions.push(Action::GatewayTimesOut(g));
            }
            if self.left.spurious_conflicts > 0 && gateway.is_appending() {
                actions.push(Action::GatewayInFlight(g));
            }
            if self.left.crashes > 0 && gateway.is_under_way() {
                actions.push(Action::GatewayDies(g));
            }
        }
        for w in 0..2 {
            let worker = &self.workers[usize::from(w)];
            if self.left.ambiguous > 0 && worker.is_appending() {
                actions.push(Action::WorkerTimesOut(w));
            }
            if self.left.crashes > 0 && worker.is_under_way() {
                actions.push(Action::WorkerDies(w));
            }
        }
        if self.left.expired_leases > 0 {
            actions.extend(self.queue.taken().map(|(job, _)| Action::LeaseExpires(job)));
        }
        if self.left.lost_jobs > 0 {
            actions.extend(self.queue.waiting().map(Action::JobLost));
        }
        if model.has(Fault::WindowOnlyDedup) && !self.window_passed && self.log.len() > 0 {
            actions.push(Action::WindowPasses);
        }
        actions
    }
}

impl Model for Deployment {
    type State = System;
    type Action = Action;

    fn init_states(&self) -> Vec<System> {
        vec![System::initial(self.bounds)]
    }

    fn actions(&self, state: &System, actions: &mut Vec<Action>) {
        actions.extend(state.progress(self));
        actions.extend(state.mishaps(self));
    }

    fn next_state(&self, before: &System, action: Action) -> Option<System> {
        let mut system = before.clone();
        match action {
            Action::Gateway(g) => system.step_gateway(self, g, Weather::Fair),
            Action::GatewayTimesOut(g) => {
                system.left.ambiguous -= 1;
                system.step_gateway(self, g, Weather::TimesOut);
            }
            Action::GatewayInFlight(g) => {
                system.left.spurious_conflicts -= 1;
                system.step_gateway(self, g, Weather::InFlight);
            }
            Action::GatewayDies(g) => {
                system.left.crashes -= 1;
                system.gateways[usize::from(g)].die();
            }
            Action::Worker(w) => system.step_worker(self, w, Weather::Fair),
            Action::WorkerTimesOut(w) => {
                system.left.ambiguous -= 1;
                system.step_worker(self, w, Weather::TimesOut);
            }
            Action::WorkerDies(w) => {
                system.left.crashes -= 1;
                system.workers[usize::from(w)] = Worker::dead();
            }
            Action::LeaseExpires(job) => {
                system.left.expired_leases -= 1;
                system.queue.redeliver(job);
            }
            Action::Sweeper => system.step_sweeper(self),
            Action::JobLost(job) => {
                system.left.lost_jobs -= 1;
                system.seen.job_lost = true;
                system.queue.remove(job);
            }
            Action::WindowPasses => system.window_passed = true,
        }
        (system != *before).then_some(system)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no promise is broken on the way", |_, system: &System| system.broken.is_none()),
            Property::always("at most one end", |_, system: &System| {
                system.log.events().filter(|kind| Log::is_end(*kind)).count() <= 1
            }),
            Property::always("cancel wins", |_, system: &System| cancel_wins(system)),
            Property::always("only the holder of the claim writes", |_, system: &System| {
                only_the_owner_writes(system)
            }),
            Property::always("what succeeded is not started again", |_, system: &System| {
                !system.log.restarted()
            }),
            Property::always("the same key has the same result", |_, system: &System| {
                let replies = &system.start_replies;
                !(replies.contains(&Reply::Done) && replies.contains(&Reply::Refused))
            }),
            Property::always("a start that was said not to have happened did not", |_, system: &System| {
                !(system.start_replies.contains(&Reply::Unavailable) && system.log.len() > 0)
            }),
            Property::always("a cancel never fails for contention", |_, system: &System| {
                system.cancel_reply != Some(Reply::Unavailable)
            }),
            Property::always("what was accepted ends", |model: &Self, system: &System| {
                let accepted = system.start_replies.contains(&Reply::Done);
                !accepted || system.phase().is_terminal() || !system.progress(model).is_empty()
            }),
            Property::sometimes("completes", |_, system: &System| system.phase() == Phase::Completed),
            Property::sometimes("is canceled while it is queued", |_, system: &System| {
                system.phase() == Phase::Canceled && system.log.head().epoch.0 == 0
            }),
            Property::sometimes("is canceled while it runs", |_, system: &System| {
                system.phase() == Phase::Canceled && !system.log.head().nodes.is_empty()
            }),
            Property::sometimes("is canceled although its worker is dead", |_, system: &System| {
                system.phase() == Phase::Canceled
                    && system.workers.iter().all(|worker| !worker.is_under_way())
                    && system.workers.iter().any(Worker::is_dead)
                    && system.log.head().epoch.0 == 1
            }),
            Property::sometimes("a zombie is refused", |_, system: &System| system.seen.zombie_refused),
            Property::sometimes("an ambiguous append turns out to be a success", |_, system: &System| {
                system.seen.ambiguous_resolved
            }),
            Property::sometimes("a lost job is swept", |_, system: &System| {
                system.seen.job_lost && system.seen.job_swept && system.phase() == Phase::Completed
            }),
        ]
    }
}

fn cancel_wins(system: &System) -> bool {
    let mut canceled = false;
    for kind in system.log.events() {
        canceled |= kind == pyoco_core::event::EventType::ExecutionCancelRequested;
        if canceled && Log::is_end(kind) && kind != pyoco_core::event::EventType::ExecutionCanceled {
            return false;
        }
    }
    true
}

/// A record that a worker wrote names the worker that held the claim when it was appended.
fn only_the_owner_writes(system: &System) -> bool {
    system.log.records().all(|(before, record)| {
        let writer = record.actor.id.as_deref().filter(|id| id.starts_with('w'));
        let owner = record.claim.as_ref().or(before.claim.as_ref()).map(|claim| claim.worker.as_str());
        writer.is_none() || writer == owner
    })
}
