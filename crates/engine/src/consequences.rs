//! What follows from a record, for stores that do not do it in the same step. Each may be done twice.

use std::time::Duration;

use pyoco_core::command::DeadLetter;
use pyoco_core::event::{Actor, ActorKind};
use pyoco_core::outcome::Effect;
use pyoco_core::state::{Phase, State};
use pyoco_ports::{Append, StoreError};

use crate::{Engine, projection};

/// What fails is tried again for so long; then whoever asked is told.
const PATIENCE: Duration = Duration::from_millis(1_500);
const PAUSE: Duration = Duration::from_millis(50);

impl Engine {
    /// What is derived from a state may be missing, e.g. because the append of its record timed out.
    pub(crate) async fn derive_again(&self, state: &State) -> Result<(), StoreError> {
        self.show_and_tell(state).await?;
        if state.claim.is_none() && state.wants_worker() {
            // One too many is harmless: a live claim makes it superfluous.
            self.store.enqueue(projection::job(state, self.clock.now()), self.clock.now()).await?;
        }
        Ok(())
    }

    /// Shows a state whose writer may have died before anybody saw it, and tells of its failure if it has failed.
    pub(crate) async fn show_and_tell(&self, state: &State) -> Result<(), StoreError> {
        let told = self.tell_failure_again(state).await;
        self.show_state(state).await?;
        if state.phase.is_terminal() {
            self.lines.ended(state);
        }
        told
    }

    /// Whoever failed a run may have died before its letter was written. One that was is kept once: it has the same key.
    async fn tell_failure_again(&self, state: &State) -> Result<(), StoreError> {
        if state.phase != Phase::Failed || !self.store.wants_snapshots() {
            return Ok(());
        }
        let Some((reason, failure)) = untold(state).zip(state.failure.as_ref()) else { return Ok(()) };
        if reason == DeadLetter::ExecutionError && !self.settings.letters_for_failures {
            return Ok(());
        }
        let error = failure.error.text().to_owned();
        let effect = Effect::PublishDeadLetter { reason, error };
        let by = Actor { kind: ActorKind::System, id: None };
        match projection::dead_letter(state, &effect, &by, self.clock.now()) {
            Some(letter) => self.store.publish(letter).await,
            None => Ok(()),
        }
    }

    /// Carries out the consequences of an appended record: row, then job, so that whoever takes the job finds the row; and the letter
    /// before the row, so that an end that is not shown yet, which is always found again, is the only one that may lack its letter.
    pub(crate) async fn carry_out(
        &self,
        state: &State,
        append: &mut Append,
        by: &Actor,
    ) -> Result<(), StoreError> {
        let over = tokio::time::Instant::now() + PATIENCE;
        loop {
            match self.carry_out_once(state, append, by).await {
                Err(error) if error.kind.is_retryable() && tokio::time::Instant::now() < over => {
                    tokio::time::sleep(PAUSE).await;
                }
                // The log has it, and somebody is at work: the next change shows it, at the latest the end.
                Err(_) if !is_awaited(state, append) => {
                    self.show_later(&state.id);
                    return Ok(());
                }
                done => return done,
            }
        }
    }

    /// Takes out of `append` what is done.
    async fn carry_out_once(&self, state: &State, append: &mut Append, by: &Actor) -> Result<(), StoreError> {
        // A letter that nobody takes keeps nobody from seeing the end.
        let told = self.tell(append).await;
        if let Some(row) = append.row.take() {
            let shown = self.show(state, row, by).await;
            let shown = shown.and_then(|()| pyoco_faults::at(place_behind(append), "show"));
            if let Err(error) = shown {
                // It is derived, so it is made again rather than kept beside itself.
                append.row = projection::row(state, self.settings.force_after());
                return Err(error);
            }
        }
        if append.drop_job {
            self.store.drop_waiting(&append.execution).await?;
            append.drop_job = false;
        }
        if let Some(job) = append.enqueue.take() {
            let now = self.clock.now();
            let queued = self.store.enqueue(job, now).await;
            let queued = queued.and_then(|()| pyoco_faults::at("start.after_publish", "enqueue"));
            if let Err(error) = queued {
                append.enqueue = Some(projection::job(state, now));
                return Err(error);
            }
        }
        told
    }

    async fn tell(&self, append: &mut Append) -> Result<(), StoreError> {
        if let Some(letter) = &append.dead_letter {
            pyoco_faults::at("dlq.before_publish", "publish")?;
            self.store.publish(letter.clone()).await?;
            pyoco_faults::at("dlq.after_publish", "publish")?;
            append.dead_letter = None;
        }
        Ok(())
    }
}

/// Which letter a failure has. Before its first claim a run fails because no worker can run it, and its error says why; what another
/// implementation says failed is that one's to tell of, and a message that made no sense has a letter of its own.
fn untold(state: &State) -> Option<DeadLetter> {
    let code = state.failure.as_ref()?.error.code.as_deref();
    match code.filter(|_| state.epoch.0 == 0) {
        Some("FOREIGN" | "INVALID_JOB") => None,
        Some("FLOW_NOT_FOUND") => Some(DeadLetter::FlowNotFound),
        Some(_) | None => Some(DeadLetter::ExecutionError),
    }
}

/// The place behind the snapshot of a record, by what that is.
const fn place_behind(append: &Append) -> &'static str {
    match append.expected.0 {
        0 => "start.after_snapshot",
        _ if append.is_end => "finish.after_snapshot",
        _ => "step.after_snapshot",
    }
}

/// Whether somebody must be told when this is not done: that it was not accepted, that its end is not to be seen, or that nobody
/// will go on with it.
fn is_awaited(state: &State, left: &Append) -> bool {
    state.version.0 <= 1 || state.phase.is_terminal() || left.enqueue.is_some() || left.dead_letter.is_some()
}

#[cfg(test)]
mod tests {
    use pyoco_core::command::{FailExecution, ForeignStatus, ImportSnapshot, Issuer};
    use pyoco_core::event::ErrorInfo;
    use pyoco_testkit::{Execution, Graph, callable, claim, worker};

    use super::*;

    fn failed(execution: Execution, issuer: &Issuer, code: &str) -> Option<DeadLetter> {
        let error = ErrorInfo::new(code, "it cannot be run");
        let execution = execution.given(issuer, FailExecution { error, dead_letter: None });
        assert_eq!(execution.state().phase, Phase::Failed);
        untold(execution.state())
    }

    #[test]
    fn what_fails_before_its_first_claim_has_the_letter_that_its_error_names() {
        let plan = Graph::chain(&["a"], &callable()).plan();
        let new = || Execution::started(&plan);
        assert_eq!(failed(new(), &worker(0), "FLOW_NOT_FOUND"), Some(DeadLetter::FlowNotFound));
        assert_eq!(failed(new(), &worker(0), "LOAD_FAILED"), Some(DeadLetter::ExecutionError));
        assert_eq!(failed(new(), &worker(0), "INVALID_JOB"), None);
        let claimed = new().given(&worker(0), claim("job-1", Some(&plan)));
        assert_eq!(failed(claimed, &worker(1), "INVALID_JOB"), Some(DeadLetter::ExecutionError));
    }

    #[test]
    fn what_another_implementation_failed_is_told_of_by_that_one() {
        let plan = Graph::chain(&["a"], &callable()).plan();
        let import = ImportSnapshot {
            status: ForeignStatus::Failed,
            input: Default::default(),
            worker: None,
            error: Some("there".to_owned()),
            graph_id: "main".to_owned(),
            tag: None,
            labels: Vec::new(),
            tenant_id: None,
            api_key_id: None,
            workflow: None,
        };
        let execution = Execution::started(&plan).given(&Issuer::Foreign { id: None }, import);
        assert_eq!(execution.state().phase, Phase::Failed);
        assert_eq!(untold(execution.state()), None);
    }
}
