//! A worker: takes a job, claims the execution, runs its tasks one record a step, and acknowledges at the end.

use pyoco_core::command::{Command, Issuer, Request};
use pyoco_core::ids::{Epoch, JobId, WorkerId};
use pyoco_core::outcome::{Outcome, Reason};
use pyoco_core::state::{NodeNumber, Phase, State};
use pyoco_core::time::Timestamp;
use pyoco_testkit::{claim, confirm_stopped, drain, start_node, succeed};
use serde_json::json;

use crate::log::Proposal;
use crate::system::{Deployment, Fault, System, Weather};

/// One worker process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Worker {
    /// Nothing in hand.
    Idle,
    /// A job in hand.
    Holding { job: u8, epoch: Option<u64>, step: Step },
    /// Gone.
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Load,
    /// The last append timed out: it may have been applied, and only the log knows.
    LoadUnsure,
    Append {
        version: u8,
    },
    Snapshot {
        version: u8,
    },
    Ack,
}

/// What a worker would write next, given what it sees.
enum Move {
    Write(Vec<Command>),
    /// The end is in the log: make it visible and acknowledge.
    Finish,
    /// The claim is another's.
    LetGo,
}

impl Worker {
    pub(crate) const fn idle() -> Self {
        Self::Idle
    }

    pub(crate) const fn dead() -> Self {
        Self::Dead
    }

    pub(crate) const fn is_dead(&self) -> bool {
        matches!(self, Self::Dead)
    }

    pub(crate) const fn is_under_way(&self) -> bool {
        matches!(self, Self::Holding { .. })
    }

    pub(crate) const fn is_appending(&self) -> bool {
        matches!(self, Self::Holding { step: Step::Append { .. }, .. })
    }
}

fn name(w: u8) -> WorkerId {
    WorkerId::new(&format!("w{w}")).unwrap()
}

fn job_id(job: u8) -> JobId {
    JobId::new(&format!("j{job}")).unwrap()
}

impl System {
    pub(crate) fn worker_can_act(&self, w: u8) -> bool {
        match &self.workers[usize::from(w)] {
            // Two idle workers are alike: looking at one of them is enough.
            Worker::Idle => self.next_job().is_some() && !(w == 1 && self.workers[0] == Worker::Idle),
            Worker::Holding { .. } => true,
            Worker::Dead => false,
        }
    }

    /// A job that waits, or one whose worker is dead.
    fn next_job(&self) -> Option<u8> {
        let orphaned = |(job, w): (u8, u8)| self.workers[usize::from(w)].is_dead().then_some(job);
        self.queue.waiting().or_else(|| self.queue.taken().find_map(orphaned))
    }

    pub(crate) fn step_worker(&mut self, model: &Deployment, w: u8, weather: Weather) {
        let next = match self.workers[usize::from(w)].clone() {
            Worker::Idle => {
                let job = self.next_job().unwrap();
                self.queue.take(job, w);
                if model.has(Fault::AckBeforeTerminal) {
                    self.acknowledge(job);
                }
                Worker::Holding { job, epoch: None, step: Step::Load }
            }
            Worker::Holding { job, epoch, step } => {
                self.worker_goes_on(model, w, (job, epoch, step), weather)
            }
            Worker::Dead => return,
        };
        self.workers[usize::from(w)] = next;
    }

    fn worker_goes_on(
        &mut self,
        model: &Deployment,
        w: u8,
        (job, epoch, step): (u8, Option<u64>, Step),
        weather: Weather,
    ) -> Worker {
        let holding = |step| Worker::Holding { job, epoch, step };
        match step {
            Step::Load | Step::LoadUnsure => {
                if step == Step::LoadUnsure && epoch.is_none() {
                    // A claim that timed out: the log knows whether it is ours.
                    let head = self.log.head();
                    let ours = head
                        .claim
                        .as_ref()
                        .filter(|held| held.worker == name(w) && held.job == Some(job_id(job)));
                    if let Some(held) = ours.filter(|held| held.epoch == head.epoch) {
                        self.seen.ambiguous_resolved = true;
                        return Worker::Holding { job, epoch: Some(held.epoch.0), step: Step::Load };
                    }
                }
                let version = if model.has(Fault::DecideOnSnapshot) && epoch.is_some() {
                    self.snapshot
                } else {
                    self.log.len()
                };
                holding(Step::Append { version })
            }
            Step::Append { version } => self.worker_appends(model, w, (job, epoch, version), weather),
            Step::Snapshot { version } => {
                self.snapshot = self.snapshot.max(version);
                holding(Step::Ack)
            }
            Step::Ack => {
                self.acknowledge(job);
                Worker::Idle
            }
        }
    }

    fn worker_appends(
        &mut self,
        model: &Deployment,
        w: u8,
        (job, epoch, version): (u8, Option<u64>, u8),
        weather: Weather,
    ) -> Worker {
        let holding = |epoch, step| Worker::Holding { job, epoch, step };
        let view = self.log.at(version).clone();
        let commands = match self.next_move(model, w, job, epoch, &view) {
            Move::Write(commands) => commands,
            Move::Finish => return holding(epoch, Step::Snapshot { version: self.log.len() }),
            Move::LetGo => {
                self.seen.zombie_refused = true;
                if model.has(Fault::ZombieNak) {
                    self.nak(job, epoch.unwrap_or(0));
                }
                return Worker::Idle;
            }
        };
        let held = if model.has(Fault::NoEpoch) { view.epoch } else { Epoch(epoch.unwrap_or(0)) };
        let issuer = Issuer::Worker { id: name(w), epoch: held };
        let at = Timestamp::from_micros(0);
        let requests: Vec<Request> =
            commands.into_iter().map(|command| Request::new(issuer.clone(), at, command)).collect();
        let proposal = self.log.propose(version, &requests);
        if proposal.record.is_none() {
            return self.worker_was_refused(job, epoch, &proposal);
        }
        let blind = (model.has(Fault::CompleteWithoutExpectedVersion) && proposal.state.phase.is_terminal())
            || model.has(Fault::DecideOnSnapshot);
        let claimed =
            proposal.record.as_ref().and_then(|record| record.claim.as_ref()).map(|claim| claim.epoch.0);
        if blind && self.log.len() != version {
            self.log.append_blindly(&proposal);
        } else if !self.log.append(version, &proposal) {
            if model.has(Fault::ResendOnConflict) && claimed.is_none() {
                self.log.append_blindly(&proposal);
                return holding(epoch, Step::Load);
            }
            return holding(epoch, Step::Load);
        }
        match weather {
            Weather::TimesOut if model.has(Fault::TimeoutIsFailure) => Worker::Idle,
            Weather::TimesOut | Weather::InFlight => holding(epoch, Step::LoadUnsure),
            Weather::Fair => holding(claimed.or(epoch), Step::Append { version: self.log.len() }),
        }
    }

    /// The production core refused: the claim is another's, or there is nothing to do any more.
    fn worker_was_refused(&mut self, job: u8, epoch: Option<u64>, proposal: &Proposal) -> Worker {
        match &proposal.answers[0] {
            Ok(answer) if matches!(answer.outcome, Outcome::AlreadyEnded(_)) => {
                Worker::Holding { job, epoch, step: Step::Snapshot { version: self.log.len() } }
            }
            Ok(_) => Worker::Holding { job, epoch, step: Step::Load },
            // Another job holds a live claim: this one is superfluous.
            Err(rejection) if matches!(rejection.reason, Reason::ClaimHeld(_)) => {
                self.queue.remove(job);
                Worker::Idle
            }
            Err(rejection) => {
                assert!(matches!(rejection.reason, Reason::Fenced { .. } | Reason::Ended(_)), "{rejection}");
                self.seen.zombie_refused = true;
                Worker::Idle
            }
        }
    }

    fn next_move(&self, model: &Deployment, w: u8, job: u8, epoch: Option<u64>, view: &State) -> Move {
        let Some(epoch) = epoch else {
            let mut command = claim(job_id(job).as_str(), Some(&model.plan));
            command.worker_id = name(w);
            command.owner_expired = self.owner_is_dead(view);
            return Move::Write(vec![command.into()]);
        };
        if view.epoch != Epoch(epoch) && !model.has(Fault::NoEpoch) {
            return Move::LetGo;
        }
        let id = |number: &NodeNumber| view.node(*number).unwrap().0.as_str().to_owned();
        let running = view.open.running.first().map(id);
        let ready = view.open.ready.first().map(id);
        match (view.phase, running, ready) {
            (Phase::Completed | Phase::Failed | Phase::Canceled, _, _) => Move::Finish,
            (Phase::Canceling, Some(node), _) => Move::Write(vec![confirm_stopped(&node).into()]),
            (Phase::Canceling, None, _) => Move::Write(vec![drain().into()]),
            (_, Some(node), _) => {
                // One record a step: the end of this task and the start of the next.
                let mut commands: Vec<Command> = vec![succeed(&node, json!(1)).into()];
                commands.extend(following(model, &node).map(|next| Command::from(start_node(&next))));
                Move::Write(commands)
            }
            (_, None, Some(node)) => Move::Write(vec![start_node(&node).into()]),
            (_, None, None) => Move::LetGo,
        }
    }

    pub(crate) fn owner_is_dead(&self, view: &State) -> bool {
        let is_dead = |w: u8| self.workers[usize::from(w)].is_dead();
        view.claim.as_ref().is_some_and(|held| (0..2).any(|w| held.worker == name(w) && is_dead(w)))
    }

    /// An acknowledgement promises that the end is durable and visible.
    fn acknowledge(&mut self, job: u8) {
        let ended = self.log.head().phase.is_terminal() && self.snapshot == self.log.len();
        if !ended {
            self.break_promise("an acknowledgement before the end is durable and visible");
        }
        self.queue.remove(job);
    }

    /// A worker without the claim must not touch the message: it may be the new owner's.
    fn nak(&mut self, job: u8, epoch: u64) {
        if self.log.head().epoch != Epoch(epoch) && self.queue.contains(job) {
            self.break_promise("an answer to the queue by a worker that lost its claim");
        }
        self.queue.redeliver(job);
    }
}

fn following(model: &Deployment, node: &str) -> Option<String> {
    let tasks = &model.plan.tasks;
    let at = tasks.iter().position(|task| task.name == node)?;
    tasks.get(at + 1).map(|task| task.name.clone())
}
