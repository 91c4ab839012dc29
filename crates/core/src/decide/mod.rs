//! The one place where it is decided what may happen: one file a command.
//!
//! `decide` is total, synchronous and depends on its arguments alone. A command is refused as a whole before
//! anything changes, or its events are applied to the state as they are written; so a state that has seen
//! a decision whose record could not be appended must be thrown away and folded again. On a conflict: load
//! the tail and decide again, never send the same record twice.
//!
//! Cancel wins here (`ending`) and once more in `apply`.

mod advance;
mod annotate_execution;
mod archive_execution;
mod batch;
mod cancel_execution;
mod cancel_node;
mod choose_node;
mod claim_execution;
mod confirm_node_stopped;
mod create_execution;
mod draft;
mod ending;
mod fail_execution;
mod fail_node;
mod fire_timers;
mod force_end;
mod guard;
mod import_snapshot;
mod put_node_waiting;
mod release_execution;
mod report_node_progress;
mod resume_node;
mod start_execution;
mod start_node;
mod succeed_node;

use crate::command::{Command, Request};
use crate::outcome::{Decision, Effect, Outcome, Reason, Rejection};
use crate::state::State;

use draft::Draft;

pub use advance::{MAX_EVENTS, RECORD_EVENTS};
pub use batch::{Answer, Batch, Sealed};
pub use claim_execution::MAX_LOST_CLAIMS;
pub use draft::Facts;

/// What one command's own file decides; the consequences are drawn by `advance` and `ending`.
type Ruling = Result<Outcome, Reason>;

/// Decides a command and takes its events over into the state.
pub fn decide(state: &mut State, request: &Request) -> Result<Decision, Rejection> {
    let reject = |reason| Rejection { command: request.command.name(), reason };
    if !request.fits() {
        return Err(reject(Reason::ValueTooLarge));
    }
    if let Some(outcome) = repeated(state, request).map_err(reject)? {
        return Ok(Decision { outcome, events: Vec::new(), effects: Vec::new(), facts: Facts::default() });
    }
    let needed_job = needs_job(state);
    let mut draft = Draft::new(state, request);
    let outcome = run(&mut draft, &request.command).map_err(reject)?;
    advance::end_overlong(&mut draft);
    let (events, mut effects, facts) = draft.finish();
    // What another implementation has accepted has its job already.
    let is_imported = matches!(request.command, Command::ImportSnapshot(_));
    if !needed_job && needs_job(state) && !is_imported {
        let tag = state.origin.as_ref().and_then(|origin| origin.tag.clone());
        effects.push(Effect::EnqueueJob(tag));
    }
    Ok(Decision { outcome, events, effects, facts })
}

fn run(draft: &mut Draft<'_>, command: &Command) -> Ruling {
    match command {
        Command::CreateExecution(command) => create_execution::decide(draft, command),
        Command::StartExecution(_) => start_execution::decide(draft),
        Command::CancelExecution(command) => cancel_execution::decide(draft, command),
        Command::ArchiveExecution(command) => archive_execution::decide(draft, command),
        Command::StartNode(command) => start_node::decide(draft, command),
        Command::ReportNodeProgress(command) => report_node_progress::decide(draft, command),
        Command::PutNodeWaiting(command) => put_node_waiting::decide(draft, command),
        Command::ResumeNode(command) => resume_node::decide(draft, command),
        Command::SucceedNode(command) => succeed_node::decide(draft, command),
        Command::FailNode(command) => fail_node::decide(draft, command),
        Command::ClaimExecution(command) => claim_execution::decide(draft, command),
        Command::ReleaseExecution(command) => release_execution::decide(draft, command),
        Command::FailExecution(command) => fail_execution::decide(draft, command),
        Command::ChooseNode(command) => choose_node::decide(draft, command),
        Command::CancelNode(command) => cancel_node::decide(draft, command),
        Command::ConfirmNodeStopped(command) => confirm_node_stopped::decide(draft, command),
        Command::ForceEnd(_) => force_end::decide(draft),
        Command::FireTimers(_) => fire_timers::decide(draft),
        Command::AdvanceExecution(_) => advance::decide(draft),
        Command::AnnotateExecution(command) => annotate_execution::decide(draft, command),
        Command::ImportSnapshot(command) => import_snapshot::decide(draft, command),
    }
}

/// A key that was seen before is a repeat, or a mistake.
fn repeated(state: &State, request: &Request) -> Result<Option<Outcome>, Reason> {
    let Some(id) = &request.id else { return Ok(None) };
    let of_worker = || state.worker_commands.iter().find(|(seen, _)| seen == id).map(|(_, seen)| seen);
    match state.commands.get(id).or_else(of_worker) {
        None => Ok(None),
        Some(seen) if seen.digest == request.digest => Ok(Some(Outcome::Repeated(seen.record))),
        Some(_) => Err(Reason::KeyReused),
    }
}

/// A worker is needed and nobody has it.
fn needs_job(state: &State) -> bool {
    state.claim.is_none() && state.wants_worker()
}
