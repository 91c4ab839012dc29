//! One delivery from beginning to end: read it, claim, drive, and answer the queue as the outcome allows.

use pyoco_core::command::{ClaimExecution, DeadLetter, FailExecution, Issuer, Request};
use pyoco_core::event::ErrorInfo;
use pyoco_core::ids::{Epoch, ExecutionId};
use pyoco_core::outcome::{Outcome, Reason};
use pyoco_core::state::Phase;
use pyoco_core::time::Millis;
use pyoco_engine::EngineError;
use pyoco_ports::{DeadLetterRecord, Delivery, StoreError};
use serde_json::json;

use crate::drive::{Drive, Driven};
use crate::message::{InvalidJob, JobMessage};
use crate::runtime::LoadError;
use crate::worker::Shared;

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
    /// Nothing at all: the message may be another's now.
    Silence,
}

impl Shared {
    /// Handles a delivery and answers the queue.
    pub(crate) async fn handle(&self, delivery: &Delivery) -> Option<ExecutionId> {
        let message = match JobMessage::decode(&delivery.body) {
            Ok(message) => message,
            Err(error) => {
                // First the letter, then the message: dying in between repeats the letter, which is kept once.
                if self.bury(delivery, &error).await.is_ok() {
                    let _ = self.engine.store().ack(delivery).await;
                }
                return None;
            }
        };
        let answer = match self.attend(delivery, &message).await {
            Ok(answer) => answer,
            Err(EngineError::Store(_) | EngineError::Busy(_)) => Answer::Nak(TRANSIENT_PAUSE),
            // Its log cannot be read: running it is out of the question, and losing the message helps nobody.
            Err(EngineError::Log { .. } | EngineError::Rejected(_)) => Answer::Nak(UNKNOWN_PAUSE),
        };
        let store = self.engine.store();
        let told = match answer {
            Answer::Ack => store.ack(delivery).await,
            Answer::Nak(pause) => store.nak(delivery, pause, self.now()).await,
            Answer::Silence => Ok(()),
        };
        // An answer that did not arrive only means that the job comes again, and is found to be done.
        let _ = told;
        Some(message.run_id)
    }

    async fn attend(&self, delivery: &Delivery, message: &JobMessage) -> Result<Answer, EngineError> {
        let state = self.engine.state(&message.run_id).await?;
        match state.phase {
            Phase::Absent if delivery.number > UNKNOWN_TRIES => {
                let error = InvalidJob("there is no such run".to_owned());
                self.bury(delivery, &error).await?;
                return Ok(Answer::Ack);
            }
            Phase::Absent | Phase::Created => return Ok(Answer::Nak(UNKNOWN_PAUSE)),
            Phase::Completed | Phase::Failed | Phase::Canceled => return Ok(Answer::Ack),
            Phase::Started | Phase::Failing | Phase::Canceling => {}
        }
        let plan = match (state.plan.is_some(), state.phase) {
            (false, Phase::Started) => match self.flows.plan(message).await {
                Ok(plan) => Some(plan),
                Err(error) => return self.cannot_load(&message.run_id, &error).await,
            },
            (true | false, _) => None,
        };
        let claim = ClaimExecution {
            job: delivery.id.clone(),
            worker_id: self.options.worker.clone(),
            owner_expired: false,
            plan,
        };
        let request = Request::new(self.issuer(Epoch(0)), self.now(), claim);
        let epoch = match self.engine.command(&message.run_id, &request).await {
            Ok(answer) => match answer.outcome {
                Outcome::Claimed(epoch) => epoch,
                Outcome::AlreadyEnded(_) => return Ok(Answer::Ack),
                Outcome::Accepted | Outcome::Repeated(_) | Outcome::Unchanged => return Ok(Answer::Silence),
                Outcome::AlreadyCanceling | Outcome::AlreadyCanceled | Outcome::AlreadyArchived => {
                    return Ok(Answer::Silence);
                }
            },
            // A live claim came from another job: this one is superfluous.
            Err(EngineError::Rejected(rejection)) if matches!(rejection.reason, Reason::ClaimHeld(_)) => {
                return Ok(Answer::Ack);
            }
            Err(error) => return Err(error),
        };
        Ok(match self.drive_with_lease(delivery, &message.run_id, epoch).await {
            // A drained execution has a job of its own in the queue again.
            Ok(Driven::Ended | Driven::Parked | Driven::Drained) => Answer::Ack,
            Ok(Driven::Fenced) => Answer::Silence,
            // Whether the claim is still ours is not known any more, so the message may be another's: let the lease run
            // out instead of sending it back.
            Err(_) => Answer::Silence,
        })
    }

    /// Drives while the lease of the job is extended, for as long as the driving lives.
    async fn drive_with_lease(
        &self,
        delivery: &Delivery,
        execution: &ExecutionId,
        epoch: Epoch,
    ) -> Result<Driven, EngineError> {
        let drive = Drive::new(self, execution, epoch).run();
        tokio::pin!(drive);
        let mut ticks = tokio::time::interval(self.options.extend_every);
        loop {
            tokio::select! {
                driven = &mut drive => return driven,
                _ = ticks.tick() => {
                    // A lease that could not be extended may run out; the claim, not the lease, says whose it is.
                    let _ = self.engine.store().extend(delivery, self.options.lease, self.now()).await;
                }
            }
        }
    }

    async fn cannot_load(&self, execution: &ExecutionId, error: &LoadError) -> Result<Answer, EngineError> {
        let (code, reason) = match error {
            LoadError::NotFound(_) => ("FLOW_NOT_FOUND", DeadLetter::FlowNotFound),
            LoadError::Failed(_) => ("LOAD_FAILED", DeadLetter::ExecutionError),
        };
        let command =
            FailExecution { error: ErrorInfo::new(code, error.to_string()), dead_letter: Some(reason) };
        let request = Request::new(self.issuer(Epoch(0)), self.now(), command);
        match self.engine.command(execution, &request).await {
            Ok(_) | Err(EngineError::Rejected(_)) => Ok(Answer::Ack),
            Err(error) => Err(error),
        }
    }

    /// Keeps a message that no worker can use, for a person to look at.
    async fn bury(&self, delivery: &Delivery, error: &InvalidJob) -> Result<(), StoreError> {
        let shown = delivery.body.get(..4096).unwrap_or(&delivery.body);
        let body = json!({
            "reason": DeadLetter::InvalidJob,
            "error": error.to_string(),
            "timestamp": self.now().as_unix_seconds(),
            "subject": delivery.tag,
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
        self.engine.store().publish(letter).await
    }

    fn issuer(&self, epoch: Epoch) -> Issuer {
        Issuer::Worker { id: self.options.worker.clone(), epoch }
    }
}
