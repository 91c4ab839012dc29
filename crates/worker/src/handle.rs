//! One delivery from beginning to end: read it, claim, drive, and answer the queue as the outcome allows.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyoco_core::command::{ClaimExecution, DeadLetter, FailExecution, Issuer, Request};
use pyoco_core::decide;
use pyoco_core::event::ErrorInfo;
use pyoco_core::ids::{Epoch, ExecutionId, WorkerId};
use pyoco_core::notice::Notice;
use pyoco_core::outcome::{Outcome, Reason, Rejection};
use pyoco_core::state::{Phase, State};
use pyoco_core::time::{Millis, Timestamp};
use pyoco_core::view::RunStatus;
use pyoco_engine::EngineError;
use pyoco_ports::{DeadLetterRecord, Delivery, Listening, StoreError};
use serde_json::json;

use crate::drive::{Claimed, Drive, Driven};
use crate::message::{InvalidJob, JobMessage};
use crate::room::Place;
use crate::runtime::LoadError;
use crate::wheels::{Outfit, Standing, WheelError};
use crate::worker::{Drain, Shared};

/// A job of an execution that nobody knows comes back after this pause, so often, before it is given up.
const UNKNOWN_PAUSE: Millis = Millis(5_000);
const UNKNOWN_TRIES: u32 = 3;
/// After a passing failure of the store the job comes back after this pause.
const TRANSIENT_PAUSE: Millis = Millis(2_000);

/// What to tell the queue.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Ack,
    Nak(Millis),
    /// Nobody can use it.
    Refuse,
    /// Nothing at all: the message may be another's now.
    Silence,
}

/// What a first look at an execution has to tell.
struct Seen {
    phase: Phase,
    status: RunStatus,
    has_plan: bool,
    owner: Option<WorkerId>,
    updated_at: Option<Timestamp>,
    wheels: Standing,
}

impl Seen {
    fn of(state: &State) -> Self {
        Self {
            phase: state.phase,
            status: RunStatus::of(state),
            has_plan: state.plan.is_some(),
            owner: state.claim.as_ref().map(|claim| claim.worker.clone()),
            updated_at: state.updated_at,
            wheels: Standing::of(state),
        }
    }
}

/// What a worker has of an execution.
struct Grip {
    /// The epoch of its claim, once there is one.
    epoch: AtomicU64,
    place: Place,
}

/// What to tell the queue, and how the run ended if it did.
type Attended = (Answer, Option<RunStatus>);

impl Shared {
    /// What becomes of a job that failed before its execution was claimed.
    async fn after_failure(&self, delivery: &Delivery, error: &EngineError) -> Answer {
        match error {
            // Its log cannot be read, now or later: a person has to look, and the message says at what.
            error if error.is_hopeless() && delivery.number > UNKNOWN_TRIES => {
                let buried = self.bury(delivery, &InvalidJob(error.to_string())).await;
                if buried.is_ok() { Answer::Refuse } else { Answer::Nak(UNKNOWN_PAUSE) }
            }
            EngineError::Store(_) | EngineError::Unfollowed(_) | EngineError::Busy(_) => {
                Answer::Nak(TRANSIENT_PAUSE)
            }
            EngineError::Log { .. } | EngineError::Rejected(_) => Answer::Nak(UNKNOWN_PAUSE),
            // A worker submits nothing, so it is never told of these.
            EngineError::UnknownGraph(_) | EngineError::UnusableGraph { .. } => Answer::Nak(UNKNOWN_PAUSE),
        }
    }

    /// Handles a delivery and answers the queue.
    pub(crate) async fn handle(&self, delivery: Delivery, place: Place) -> Option<ExecutionId> {
        let message = match JobMessage::decode(&delivery.body) {
            Ok(message) => message,
            Err(error) => {
                let worker_id = &self.options.worker;
                notice!(error, Notice::InvalidJob, %worker_id, tag = %delivery.tag, reason = %error);
                Box::pin(self.fail_if_known(&delivery, &error)).await;
                // First the letter, then the message: dying in between repeats the letter, which is kept once.
                match self.bury(&delivery, &error).await {
                    Ok(()) => self.answer(delivery, Answer::Refuse),
                    Err(error) => notice!(error, Notice::DeadLetterLost, %worker_id, reason = %error),
                }
                return None;
            }
        };
        let Some(_in_hand) = self.take_in_hand(&delivery.id) else {
            // The clock jumped, or the lease could not be extended: it is here already, and goes on.
            let _ = self.engine.store().extend(&delivery, self.options.lease, self.now()).await;
            return None;
        };
        self.registry.started(&message.run_id, self.now());
        let attended = self.attend_with_lease(&delivery, &message, place).await;
        let (answer, status) = match attended {
            Ok(attended) => attended,
            Err(error) => {
                let (run_id, worker_id) = (&message.run_id, &self.options.worker);
                notice!(error, Notice::StoreUnavailable, %run_id, %worker_id, tag = %delivery.tag, reason = %error);
                (self.after_failure(&delivery, &error).await, None)
            }
        };
        self.registry.finished(&message.run_id, status, self.now());
        self.answer(delivery, answer);
        Some(message.run_id)
    }

    /// Answers the queue without making the next run wait for it. An answer that does not arrive only means that the job
    /// comes again, and is found to be done.
    fn answer(&self, delivery: Delivery, answer: Answer) {
        let (store, now) = (self.engine.store().clone(), self.now());
        self.answers.spawn(async move {
            match answer {
                Answer::Ack => {
                    if pyoco_faults::at("finish.before_ack", "ack").is_ok() {
                        drop(store.ack(&delivery).await);
                        // Nothing is left to fail.
                        drop(pyoco_faults::at("finish.after_ack", "ack"));
                    }
                }
                Answer::Nak(pause) => drop(store.nak(&delivery, pause, now).await),
                Answer::Refuse => drop(store.refuse(&delivery).await),
                Answer::Silence => {}
            }
        });
    }

    async fn attend(
        &self,
        delivery: &Delivery,
        message: &JobMessage,
        grip: &Grip,
    ) -> Result<Attended, EngineError> {
        let mut seen = self.engine.glance(&message.run_id, Seen::of).await?;
        if seen.phase == Phase::Absent && self.engine.was_removed(&message.run_id).await? {
            // It ended long ago; only its job was left.
            return Ok((Answer::Ack, None));
        }
        if seen.phase == Phase::Absent && self.engine.store().wants_snapshots() {
            // Other implementations share the queue: one of them has accepted it.
            Box::pin(self.engine.adopt_job(&message.run_id, message.adopted(&delivery.tag))).await?;
            seen = self.engine.glance(&message.run_id, Seen::of).await?;
        }
        if seen.phase == Phase::Created {
            // A job is made when it is started, and whoever was nearest may not have heard of that yet.
            seen = Seen::of(&self.engine.state(&message.run_id).await?);
        }
        match seen.phase {
            Phase::Absent if delivery.number > UNKNOWN_TRIES => {
                let error = InvalidJob("there is no such run".to_owned());
                self.bury(delivery, &error).await?;
                return Ok((Answer::Refuse, None));
            }
            Phase::Absent | Phase::Created => return Ok((Answer::Nak(UNKNOWN_PAUSE), None)),
            Phase::Completed | Phase::Failed | Phase::Canceled => {
                // Whoever ended it may have died before the end was to be seen.
                self.engine.show_again(&message.run_id).await?;
                return Ok((Answer::Ack, Some(seen.status)));
            }
            Phase::Started | Phase::Failing | Phase::Canceling => {}
        }
        let outfit = match seen.phase {
            Phase::Started => match self.outfit_or_stop(seen.wheels.clone()).await {
                Some(Ok(outfit)) => outfit,
                // Nothing of it is claimed yet: another worker may have it at once.
                None => return Ok((Answer::Nak(Millis(0)), None)),
                Some(Err(error)) => {
                    return Box::pin(self.cannot_equip(message, delivery, &seen, error)).await;
                }
            },
            // Nothing of it is started any more.
            Phase::Absent
            | Phase::Created
            | Phase::Failing
            | Phase::Canceling
            | Phase::Completed
            | Phase::Failed
            | Phase::Canceled => Outfit::none(seen.wheels.clone()),
        };
        let plan = match (seen.has_plan, seen.phase) {
            (false, Phase::Started) => match self.flows.plan(message, outfit.folder.as_deref()).await {
                Ok(plan) => Some(plan),
                Err(error) => return Box::pin(self.cannot_load(message, delivery, &error)).await,
            },
            (true | false, _) => None,
        };
        let claim = ClaimExecution {
            job: delivery.id.clone(),
            worker_id: self.options.worker.clone(),
            owner_expired: self.is_gone(&message.run_id, &seen).await?,
            plan,
            wheels: outfit.used.clone(),
        };
        // Before the claim, so that nothing is missed that is said after it.
        let listening = self.engine.listen(&message.run_id).await?;
        let claimed =
            Drive::claim(self, &message.run_id, &message.flow_name, claim, &outfit, &grip.place).await?;
        let (drive, begun) = match claimed {
            Claimed::Yes(drive, begun) => (drive, begun),
            Claimed::No(refused) => return self.not_claimed(message, refused).await,
            // Another worker has said so in the meantime, and it is said once.
            Claimed::OtherWheels => return Box::pin(self.attend(delivery, message, grip)).await,
        };
        grip.epoch.store(drive.epoch().0, Ordering::Relaxed);
        if pyoco_faults::is_planted("ack-before-end") {
            drop(self.engine.store().ack(delivery).await);
        }
        let _driven = self.drives(&message.run_id);
        let (run_id, worker_id) = (&message.run_id, &self.options.worker);
        let driven = tokio::select! {
            biased;
            driven = drive.run(begun) => driven,
            never = self.attend_to_others(listening) => match never {},
        };
        Ok(match driven {
            Ok(Driven::Ended(status, failure)) => {
                if status == RunStatus::Failed {
                    let (flow_name, tag) = (&message.flow_name, &delivery.tag);
                    let reason = failure.as_ref().map(ErrorInfo::text);
                    let traceback = failure.as_ref().and_then(ErrorInfo::traceback);
                    notice!(error, Notice::ExecutionFailed, %run_id, flow_name, %tag, %worker_id, reason, traceback);
                }
                let (flow_name, tag) = (&message.flow_name, &delivery.tag);
                tracing::info!(%run_id, flow_name, %tag, %worker_id, %status, "the run has ended");
                (Answer::Ack, Some(status))
            }
            // A drained execution has a job of its own in the queue again.
            Ok(Driven::Parked | Driven::Drained) => (Answer::Ack, None),
            // Redelivery of this very job is what lets another take over at once.
            Ok(Driven::Abandoned) => (Answer::Nak(Millis(0)), None),
            Ok(Driven::Fenced) => {
                self.engine.figures().claim_lost();
                (Answer::Silence, None)
            }
            // Whether the claim is still ours is not known any more, so the message may be another's: let the lease run
            // out instead of sending it back.
            Err(error) => {
                notice!(error, Notice::EndNotRecorded, %run_id, %worker_id, reason = %error);
                (Answer::Silence, None)
            }
        })
    }

    /// What a claim that is none means for its job.
    async fn not_claimed(
        &self,
        message: &JobMessage,
        refused: Result<decide::Answer, Rejection>,
    ) -> Result<Attended, EngineError> {
        match refused {
            Ok(answer) => Ok(match answer.outcome {
                Outcome::AlreadyEnded(_) => {
                    self.engine.show_again(&message.run_id).await?;
                    (Answer::Ack, None)
                }
                Outcome::Claimed(_) | Outcome::Accepted | Outcome::Repeated(_) | Outcome::Unchanged => {
                    (Answer::Silence, None)
                }
                Outcome::AlreadyCanceling | Outcome::AlreadyCanceled | Outcome::AlreadyArchived => {
                    (Answer::Silence, None)
                }
            }),
            // A live claim came from another job: this one is superfluous.
            Err(rejection) if matches!(rejection.reason, Reason::ClaimHeld(_)) => Ok((Answer::Ack, None)),
            Err(rejection) => Err(rejection.into()),
        }
    }

    /// The same, unless the worker is told to stop before they are here: an installation may take minutes.
    async fn outfit_or_stop(&self, standing: Standing) -> Option<Result<Outfit, WheelError>> {
        let mut drain = self.drain.clone();
        tokio::select! {
            biased;
            outfit = self.outfit(standing) => Some(outfit),
            _ = drain.wait_for(|now| *now > Drain::No) => None,
        }
    }

    /// The wheels that a run uses here: those it began with, or the current ones if it begins now.
    async fn outfit(&self, standing: Standing) -> Result<Outfit, WheelError> {
        match (&standing.used, &self.wheels) {
            (Some(used), _) if used.is_empty() => Ok(Outfit::none(standing)),
            (Some(used), Some(wheels)) => {
                let folder = wheels.bring(used).await?;
                Ok(Outfit { used: None, folder, standing })
            }
            (Some(used), None) => {
                let names: Vec<&str> = used.iter().map(|wheel| wheel.name.as_str()).collect();
                Err(WheelError::Off(names.join(", ")))
            }
            (None, Some(wheels)) if standing.may_fix => {
                let current = wheels.current();
                Ok(Outfit { used: Some(current.used), folder: current.folder, standing })
            }
            (None, _) => Ok(Outfit::none(standing)),
        }
    }

    /// A run whose wheels are not here. It has begun, so only who holds it may fail it.
    async fn cannot_equip(
        &self,
        message: &JobMessage,
        delivery: &Delivery,
        seen: &Seen,
        error: WheelError,
    ) -> Result<Attended, EngineError> {
        let (run_id, worker_id) = (&message.run_id, &self.options.worker);
        let (flow_name, tag) = (&message.flow_name, &delivery.tag);
        if error.is_passing() || (!error.is_final() && delivery.number <= UNKNOWN_TRIES) {
            notice!(error, Notice::WheelSyncFailed, %run_id, flow_name, %tag, %worker_id, reason = %error);
            return Ok((Answer::Nak(UNKNOWN_PAUSE), None));
        }
        notice!(error, Notice::ExecutionFailed, %run_id, flow_name, %tag, %worker_id, reason = %error);
        let claim = ClaimExecution {
            job: delivery.id.clone(),
            worker_id: worker_id.clone(),
            owner_expired: self.is_gone(run_id, seen).await?,
            plan: None,
            wheels: None,
        };
        let failure = FailExecution {
            error: ErrorInfo::new("WHEELS_MISSING", error.to_string()),
            dead_letter: Some(DeadLetter::ExecutionError),
        };
        match Drive::claim_to_fail(self, run_id, claim, failure).await? {
            Ok(()) => Ok((Answer::Ack, Some(RunStatus::Failed))),
            Err(refused) => self.not_claimed(message, refused).await,
        }
    }

    /// Whether the worker that holds an execution is not there any more: it was not heard for too long, or it was an earlier process
    /// of this worker's own name.
    async fn is_gone(&self, run: &ExecutionId, seen: &Seen) -> Result<bool, EngineError> {
        let Some(owner) = &seen.owner else { return Ok(false) };
        let heard = if *owner == self.options.worker {
            seen.updated_at.filter(|_| !self.is_driving(run))
        } else {
            let record = self.engine.store().worker(owner).await?;
            Some(record.map_or_else(|| Timestamp::from_micros(0), |record| record.seen_at))
        };
        Ok(heard.is_some_and(|at| at.after(self.options.disconnect_after) < self.now()))
    }

    /// Passes on what others say about a run in hand: a cancel reaches its tasks at once.
    async fn attend_to_others(&self, listening: Option<Box<dyn Listening>>) -> Infallible {
        if let Some(mut listening) = listening {
            while let Some(heard) = listening.next().await {
                // On the heap, like all that is rare here: whoever moves the future of a run moves the room for it too.
                Box::pin(self.engine.heed(&heard)).await;
            }
        }
        std::future::pending().await
    }

    /// Attends to a delivery while its lease is extended, for as long as that takes: imports and tasks may take long. A worker that
    /// cannot know any more whether the run is its own lets go of it, without a word to the queue.
    async fn attend_with_lease(
        &self,
        delivery: &Delivery,
        message: &JobMessage,
        place: Place,
    ) -> Result<Attended, EngineError> {
        let grip = Grip { epoch: AtomicU64::new(0), place };
        tokio::select! {
            biased;
            attended = self.attend(delivery, message, &grip) => attended,
            () = self.keep_lease(delivery, message, &grip.epoch) => {
                self.engine.figures().claim_lost();
                Ok((Answer::Silence, None))
            }
            never = self.keep_beating(message) => match never {},
        }
    }

    /// Shows now and then that somebody is at work.
    async fn keep_beating(&self, message: &JobMessage) -> Infallible {
        loop {
            tokio::time::sleep(self.options.run_heartbeat_every).await;
            // Advisory: the next one comes soon.
            let _ = Box::pin(self.engine.beat(&message.run_id)).await;
        }
    }

    /// Extends the lease in time; returns when the execution is, or may be, another's.
    async fn keep_lease(&self, delivery: &Delivery, message: &JobMessage, held: &AtomicU64) {
        let (run_id, worker_id) = (&message.run_id, &self.options.worker);
        let is_alone = self.engine.store().is_exclusive();
        let every = self.options.extend_every.min(self.patience() / 2);
        // It was leased just now.
        let mut sure = tokio::time::Instant::now();
        let mut ticks = tokio::time::interval_at(sure + every, every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let over = sure + self.patience();
            let extending = async {
                let asked = ticks.tick().await;
                (asked, self.extend(delivery, message, held).await)
            };
            let (asked, extended) = if is_alone {
                extending.await
            } else if let Ok(extended) = tokio::time::timeout_at(over, extending).await {
                extended
            } else {
                tracing::warn!(%run_id, %worker_id, "let go of: the store was away for too long");
                return;
            };
            match extended {
                Ok(true) => sure = asked,
                Ok(false) => return,
                Err(error) => notice!(warn, Notice::LeaseNotExtended, %run_id, %worker_id, reason = %error),
            }
        }
    }

    /// Extends the lease of a job whose execution is still this worker's own; `false` if it is another's. An extension is not
    /// fenced by the queue, so it is the log that is asked.
    async fn extend(
        &self,
        delivery: &Delivery,
        message: &JobMessage,
        held: &AtomicU64,
    ) -> Result<bool, EngineError> {
        let store = self.engine.store();
        let held = held.load(Ordering::Relaxed);
        if held > 0 && !store.is_exclusive() && !pyoco_faults::is_planted("epoch-unchecked") {
            let newest = self.engine.look(&message.run_id, |state| state.epoch.0).await?;
            if newest.is_some_and(|newest| newest > held) {
                return Ok(false);
            }
        }
        store.extend(delivery, self.options.lease, self.now()).await?;
        Ok(true)
    }

    /// A lease that nobody could extend for so long is about to run out.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis(self.options.lease.0.saturating_sub(self.options.lease.0 / 10))
    }

    async fn cannot_load(
        &self,
        message: &JobMessage,
        delivery: &Delivery,
        error: &LoadError,
    ) -> Result<Attended, EngineError> {
        let (code, reason, said) = match error {
            LoadError::NotFound(_) => ("FLOW_NOT_FOUND", DeadLetter::FlowNotFound, Notice::FlowNotFound),
            LoadError::Failed(_) => ("LOAD_FAILED", DeadLetter::ExecutionError, Notice::ExecutionFailed),
        };
        let (run_id, worker_id) = (&message.run_id, &self.options.worker);
        let (flow_name, tag) = (&message.flow_name, &delivery.tag);
        notice!(error, said, %run_id, flow_name, %tag, %worker_id, reason = %error);
        let command =
            FailExecution { error: ErrorInfo::new(code, error.to_string()), dead_letter: Some(reason) };
        let request = Request::new(self.issuer(Epoch(0)), self.now(), command);
        match self.engine.command(run_id, &request).await {
            Ok(_) | Err(EngineError::Rejected(_)) => Ok((Answer::Ack, Some(RunStatus::Failed))),
            Err(error) => Err(error),
        }
    }

    /// A message that makes no sense may still say whose it was. That run is failed, unless somebody works on it.
    async fn fail_if_known(&self, delivery: &Delivery, error: &InvalidJob) {
        let Some(run_id) = JobMessage::run_of(&delivery.body) else { return };
        if self.engine.store().wants_snapshots() {
            // Another implementation may have accepted it. If that cannot be seen now, the letter alone tells of it.
            let _ = self.engine.adopt(&run_id).await;
        }
        let error = ErrorInfo::new("INVALID_JOB", error.to_string());
        let request =
            Request::new(self.issuer(Epoch(0)), self.now(), FailExecution { error, dead_letter: None });
        // Refused when there is no such run, when it has ended, or when it is in good hands.
        let _ = self.engine.command(&run_id, &request).await;
    }

    /// Keeps a message that no worker can use, for a person to look at.
    async fn bury(&self, delivery: &Delivery, error: &InvalidJob) -> Result<(), StoreError> {
        let shown = delivery.body.get(..4096).unwrap_or(&delivery.body);
        let body = json!({
            "reason": DeadLetter::InvalidJob,
            "error": error.to_string(),
            "timestamp": self.now().as_unix_seconds(),
            "subject": format!("{}.{}", self.options.subject_prefix, delivery.tag),
            "worker_id": self.options.worker,
            "num_delivered": delivery.number,
            "payload": String::from_utf8_lossy(shown),
        });
        let letter = DeadLetterRecord {
            key: format!("job/{}", delivery.id),
            tag: delivery.tag.as_str().to_owned(),
            at: self.now(),
            body: serde_json::to_vec(&body).unwrap_or_default(),
        };
        self.engine.store().publish(letter).await?;
        self.engine.figures().letter("invalid_job");
        Ok(())
    }

    fn issuer(&self, epoch: Epoch) -> Issuer {
        Issuer::Worker { id: self.options.worker.clone(), epoch }
    }
}
