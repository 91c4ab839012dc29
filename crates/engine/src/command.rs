//! Asking something of an execution: load, decide, append, carry out.

use std::time::Duration;

use pyoco_core::command::{AdvanceExecution, Command, DeadLetter, Issuer, Request};
use pyoco_core::decide::{Answer, Batch, Sealed};
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::outcome::{Effect, Outcome, Reason, Rejection};
use pyoco_core::record::{LogError, Record};
use pyoco_core::state::{Phase, State};
use pyoco_figures::Stopwatch;
use pyoco_ports::{Append, AppendError, Appended, Durability, ErrorKind, Promise, StoreError, StoredRecord};
use tokio::sync::MutexGuard;

use crate::{Engine, count, projection};

/// So often a command is decided again before the caller is told to come back.
const TRIES: u32 = 8;

/// What a transaction decided.
#[derive(Debug)]
pub struct Decided<T> {
    /// What its caller learns.
    pub value: T,
    /// What must be done once the record is appended.
    pub effects: Vec<Effect>,
}

/// Why the engine could not answer.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The rules do not allow it; nothing changed.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was done, but the store failed before everything that follows from it was done too.
    #[error("it is recorded, but not everything that follows from it was done: {0}")]
    Unfollowed(#[source] StoreError),
    /// There is no such graph to make an execution of.
    #[error("there is no graph {0:?}")]
    UnknownGraph(String),
    /// What is stored as a graph is none (any more).
    #[error("graph {id:?} cannot be used: {error}")]
    UnusableGraph {
        /// Which.
        id: String,
        /// What is wrong with it.
        error: pyoco_flow::FlowError,
    },
    /// The log of the execution cannot be folded: it was changed, or is of a newer version.
    #[error("execution {execution}: {error}")]
    Log {
        /// Which.
        execution: ExecutionId,
        /// What is wrong with it.
        error: LogError,
    },
    /// Others were faster again and again.
    #[error("execution {0} is changed by too many at once; try again")]
    Busy(ExecutionId),
}

impl EngineError {
    /// Whether what is stored cannot be read, now or later. A person has to look.
    pub const fn is_hopeless(&self) -> bool {
        match self {
            Self::Log { .. } => true,
            Self::Store(error) | Self::Unfollowed(error) => !error.kind.is_retryable(),
            Self::Rejected(_) | Self::Busy(_) | Self::UnknownGraph(_) | Self::UnusableGraph { .. } => false,
        }
    }
}

impl Engine {
    /// Asks one thing.
    pub async fn command(&self, execution: &ExecutionId, request: &Request) -> Result<Answer, EngineError> {
        let watch = Stopwatch::start();
        if pyoco_faults::is_planted("cancel-dropped")
            && matches!(request.command, Command::CancelExecution(_))
        {
            return Ok(Answer { outcome: Outcome::Accepted, effects: Vec::new() });
        }
        let answers = self.together(execution, std::slice::from_ref(request)).await;
        let answer = answers.and_then(|mut answers| {
            answers.pop().unwrap_or_else(|| Err(EngineError::Busy(execution.clone())))
        });
        self.figures().commanded(request.command.name(), count::answered(&answer), watch.seconds());
        answer
    }

    /// Asks several things of one execution that came together: one record, if it has room for them. Each gets an
    /// answer of its own.
    pub async fn together(
        &self,
        execution: &ExecutionId,
        requests: &[Request],
    ) -> Result<Vec<Result<Answer, EngineError>>, EngineError> {
        let entry = self.cache.entry(execution);
        let mut slot = entry.lock().await;
        let mut answers = Vec::with_capacity(requests.len());
        while answers.len() < requests.len() {
            let rest = requests.get(answers.len()..).unwrap_or_default();
            let (some, promise) = self.append_some(execution, rest, durability(rest), &mut slot).await?;
            kept(promise).await?;
            answers.extend(some);
        }
        drop(slot);
        let effects: Vec<Effect> =
            answers.iter().flatten().flat_map(|answer| answer.effects.clone()).collect();
        self.go_on(execution, &effects).await?;
        Ok(answers)
    }

    /// Decides with a closure that sees the state after each of its decisions, and appends one record. When somebody else
    /// was faster the closure is asked again, on the newer state; what it does outside must bear that.
    pub async fn transact<T: Send>(
        &self,
        execution: &ExecutionId,
        durability: Durability,
        decide: impl FnMut(&mut Batch<'_>) -> Decided<T> + Send,
    ) -> Result<T, EngineError> {
        let entry = self.cache.entry(execution);
        let mut slot = entry.lock().await;
        let (decided, promise) = self.append_decided(execution, durability, false, &mut slot, decide).await?;
        drop(slot);
        kept(promise).await?;
        self.go_on(execution, &decided.effects).await?;
        Ok(decided.value)
    }

    /// Decides as many requests as one record takes, and appends it. Nobody may be told before the promise is kept.
    pub(crate) async fn append_some(
        &self,
        execution: &ExecutionId,
        requests: &[Request],
        durability: Durability,
        slot: &mut MutexGuard<'_, Option<Box<State>>>,
    ) -> Result<(Vec<Result<Answer, EngineError>>, Option<Promise>), EngineError> {
        // A key finds itself in the log after a time-out; without one nobody can tell.
        let keyed = requests.iter().all(|request| request.id.is_some());
        let (decided, promise) = self
            .append_decided(execution, durability, keyed, slot, |batch| {
                let answers = decide(batch, requests);
                let effects = answers.iter().flatten().flat_map(|answer| answer.effects.clone()).collect();
                Decided { value: answers, effects }
            })
            .await?;
        Ok((decided.value, promise))
    }

    async fn append_decided<T: Send>(
        &self,
        execution: &ExecutionId,
        durability: Durability,
        keyed: bool,
        slot: &mut MutexGuard<'_, Option<Box<State>>>,
        mut decide: impl FnMut(&mut Batch<'_>) -> Decided<T> + Send,
    ) -> Result<(Decided<T>, Option<Promise>), EngineError> {
        for attempt in 0..TRIES {
            let (mut state, is_remembered) = match slot.take() {
                Some(state) => (state, true),
                None => (self.load(execution).await?, false),
            };
            let (before, was_over) = (state.version, state.phase.is_terminal());
            let mut batch = Batch::new(&mut state);
            let decided = decide(&mut batch);
            let Some(sealed) = batch.seal(&mut || self.ids.event()) else {
                // Nothing was appended, so nothing told whether others have written since: a refusal must not rest on that.
                if is_remembered && !self.store.is_exclusive() {
                    state = self.bring_up(execution, Some(state)).await?;
                    // It was removed a moment ago. Whoever comes again finds its tombstone.
                    if state.version < before {
                        return Err(EngineError::Busy(execution.clone()));
                    }
                    if state.version > before {
                        **slot = Some(state);
                        continue;
                    }
                }
                self.hub.changed(execution, state.version);
                // A record of ours arrived after all, and nobody saw to what follows from it.
                let done =
                    if self.doubts.remove(execution) { self.derive_again(&state).await } else { Ok(()) };
                **slot = Some(state);
                return self.followed(execution, done).map(|()| (decided, None));
            };
            let Sealed { record, bytes } = sealed;
            let appended = self.append(before, durability, &state, bytes, &record, &decided.effects).await;
            match appended {
                Ok(Appended { left, promise }) => {
                    self.doubts.remove(execution);
                    let by = record.actor.clone();
                    count::record(self.figures(), &state, &record);
                    self.lines.appended(&state, &record);
                    self.hub.appended(execution, record);
                    let has_ended = !was_over && state.phase.is_terminal();
                    if let Some(endings) = self.endings.as_ref().filter(|_| has_ended) {
                        endings.ended(execution, &by);
                    }
                    let done = match left {
                        Some(mut append) => self.carry_out(&state, &mut append, &by).await,
                        None => Ok(()),
                    };
                    **slot = Some(state);
                    return self.followed(execution, done).map(|()| (decided, promise));
                }
                // The state has seen what did not happen: fold again, decide again.
                Err(AppendError::Conflict { .. }) => {}
                Err(AppendError::Store(error)) => {
                    let is_unsure = error.kind == ErrorKind::Timeout;
                    if is_unsure {
                        self.doubts.add(execution);
                    }
                    if !(is_unsure && keyed) {
                        return Err(error.into());
                    }
                }
            }
            tokio::time::sleep(pause(attempt)).await;
        }
        Err(EngineError::Busy(execution.clone()))
    }

    /// What follows from a record and could not be done is done by whoever comes next.
    fn followed(&self, execution: &ExecutionId, done: Result<(), StoreError>) -> Result<(), EngineError> {
        done.map_err(|error| {
            self.doubts.add(execution);
            EngineError::Unfollowed(error)
        })
    }

    /// Appends a record. What the store does not do in the same step is left to do.
    async fn append(
        &self,
        before: Version,
        durability: Durability,
        state: &State,
        bytes: Vec<u8>,
        record: &Record,
        effects: &[Effect],
    ) -> Result<Appended, AppendError> {
        let (now, by) = (self.clock.now(), &record.actor);
        let [before_append, after_append] = places(before, state, record);
        pyoco_faults::at(before_append, "append")?;
        let mut append = Append::new(state.id.clone(), before, bytes);
        append.durability = durability;
        append.row = projection::row(state, self.settings.force_after())
            .filter(|_| !(state.phase.is_terminal() && pyoco_faults::is_planted("row-not-written")));
        let wants_job = effects.iter().any(|effect| matches!(effect, Effect::EnqueueJob(_)));
        append.enqueue = wants_job.then(|| projection::job(state, now));
        append.drop_job = effects.contains(&Effect::DropJob);
        append.is_end = state.phase.is_terminal();
        append.dead_letter = effects
            .iter()
            .filter(|effect| self.settings.letters_for_failures || !is_failure_letter(effect))
            .find_map(|effect| projection::dead_letter(state, effect, by, now));
        let has_letter = append.dead_letter.is_some();
        let watch = Stopwatch::start();
        let again = pyoco_faults::is_planted("resend-on-conflict").then(|| append.clone());
        let mut appended = self.store.append(append).await;
        if let (Some(again), Err(AppendError::Conflict { actual, .. })) = (again, &appended) {
            appended = self.store.append(Append { expected: *actual, ..again }).await;
        }
        self.figures().appended(count::appended(&appended), watch.seconds());
        if has_letter && appended.is_ok() {
            count::letter(self.figures(), effects);
        }
        let appended = appended?;
        pyoco_faults::at(after_append, "append")?;
        Ok(appended)
    }

    /// What one record had no room for follows at once.
    pub(crate) async fn go_on(&self, execution: &ExecutionId, effects: &[Effect]) -> Result<(), EngineError> {
        if !effects.contains(&Effect::Advance) {
            return Ok(());
        }
        loop {
            let request = Request::new(Issuer::Scheduler, self.clock.now(), AdvanceExecution {});
            match Box::pin(self.command(execution, &request)).await {
                Ok(answer) if answer.effects.contains(&Effect::Advance) => {}
                // Somebody ended it meanwhile, or did the rest.
                Ok(_) | Err(EngineError::Rejected(_)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Folds the log of an execution.
    pub(crate) async fn load(&self, execution: &ExecutionId) -> Result<Box<State>, EngineError> {
        let records = self.store.read(execution, Version(0)).await?;
        fold(execution, &records)
    }

    /// Folds the log of an execution as it can be had soonest.
    async fn load_soon(&self, execution: &ExecutionId) -> Result<Box<State>, EngineError> {
        let records = self.store.peek(execution).await?;
        fold(execution, &records)
    }

    /// Looks at an execution as this process knows it, and reads its log only if it knows nothing. Another process may have
    /// written since: good for a first look, before something is asked that the log decides.
    pub async fn glance<T: Send>(
        &self,
        execution: &ExecutionId,
        view: impl FnOnce(&State) -> T + Send,
    ) -> Result<T, EngineError> {
        let entry = self.cache.entry(execution);
        let mut slot = entry.lock().await;
        let state = match slot.take() {
            Some(state) => state,
            None => self.load_soon(execution).await?,
        };
        let seen = view(&state);
        *slot = Some(state);
        Ok(seen)
    }

    /// The state of an execution as the log has it now.
    pub async fn state(&self, execution: &ExecutionId) -> Result<State, EngineError> {
        let entry = self.cache.entry(execution);
        let mut slot = entry.lock().await;
        let state = self.bring_up(execution, slot.take()).await?;
        self.hub.changed(execution, state.version);
        let seen = State::clone(&state);
        *slot = Some(state);
        Ok(seen)
    }
}

fn fold(execution: &ExecutionId, records: &[StoredRecord]) -> Result<Box<State>, EngineError> {
    let bytes = records.iter().map(|record| record.bytes.as_slice());
    State::from_log(execution.clone(), bytes)
        .map(Box::new)
        .map_err(|error| EngineError::Log { execution: execution.clone(), error })
}

/// Waits until what was appended is as safe as it must be before anybody is told.
pub(crate) async fn kept(promise: Option<Promise>) -> Result<(), StoreError> {
    match promise {
        Some(promise) => promise.kept().await,
        None => Ok(()),
    }
}

/// Decides until the record is full; a refusal is an answer too.
fn decide(batch: &mut Batch<'_>, requests: &[Request]) -> Vec<Result<Answer, EngineError>> {
    let mut answers = Vec::with_capacity(requests.len());
    for request in requests {
        match batch.decide(request) {
            Err(Rejection { reason: Reason::SealFirst, .. }) => break,
            answer => answers.push(answer.map_err(EngineError::from)),
        }
    }
    answers
}

/// The places before and behind the append of a record, by what it is.
const fn places(before: Version, state: &State, record: &Record) -> [&'static str; 2] {
    match state.phase {
        _ if before.0 == 0 => ["start.before_append", "start.after_append"],
        Phase::Completed | Phase::Failed | Phase::Canceled => ["finish.before_append", "finish.after_append"],
        _ if record.claim.is_some() => ["claim.before_append", "claim.after_append"],
        Phase::Canceling => ["cancel.before_append", "cancel.after_append"],
        Phase::Absent | Phase::Created | Phase::Started | Phase::Failing => {
            ["step.before_append", "step.after_append"]
        }
    }
}

const fn is_failure_letter(effect: &Effect) -> bool {
    matches!(effect, Effect::PublishDeadLetter { reason: DeadLetter::ExecutionError, .. })
}

/// A worker's own progress can be made again; everything else was promised to somebody.
fn durability(requests: &[Request]) -> Durability {
    let is_progress = |request: &Request| {
        matches!(request.issuer, Issuer::Worker { .. })
            && matches!(
                request.command,
                Command::ClaimExecution(_)
                    | Command::StartNode(_)
                    | Command::SucceedNode(_)
                    | Command::ReportNodeProgress(_)
                    | Command::ChooseNode(_)
            )
    };
    if requests.iter().all(is_progress) { Durability::Process } else { Durability::Full }
}

/// A short pause that grows, so that rivals do not meet again at once.
const fn pause(attempt: u32) -> Duration {
    Duration::from_millis(1 << if attempt < 6 { attempt } else { 6 })
}
