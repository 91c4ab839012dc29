//! Guards that several commands share.

use super::draft::Draft;
use crate::command::Issuer;
use crate::event::Changes;
use crate::ids::{Attempt, NodeId};
use crate::outcome::Reason;
use crate::state::{NodeNumber, NodeState, Phase, State};

/// The execution exists.
pub(super) fn exists(state: &State) -> Result<(), Reason> {
    match state.phase {
        Phase::Absent => Err(Reason::UnknownExecution(state.id.clone())),
        Phase::Created | Phase::Started | Phase::Failing | Phase::Canceling => Ok(()),
        Phase::Completed | Phase::Failed | Phase::Canceled => Ok(()),
    }
}

/// Something new may begin: started, and no end is in sight.
pub(super) fn may_begin(state: &State) -> Result<(), Reason> {
    match state.phase {
        Phase::Absent => Err(Reason::UnknownExecution(state.id.clone())),
        Phase::Created => Err(Reason::NotStarted),
        Phase::Started => Ok(()),
        Phase::Failing => Err(Reason::FailRequested),
        Phase::Canceling => Err(Reason::CancelRequested),
        Phase::Completed | Phase::Failed | Phase::Canceled => Err(Reason::Ended(state.phase.status())),
    }
}

/// What has begun may report. After a cancel request only the worker that holds the current claim may: it
/// records how a started task ended; callers are refused.
pub(super) fn may_report(draft: &Draft<'_>) -> Result<(), Reason> {
    let state = &*draft.state;
    match (state.phase, draft.issuer) {
        (Phase::Absent, _) => Err(Reason::UnknownExecution(state.id.clone())),
        (Phase::Created, _) => Err(Reason::NotStarted),
        (Phase::Started | Phase::Failing, _) => Ok(()),
        (Phase::Canceling, Issuer::Worker { .. }) => Ok(()),
        (Phase::Canceling, Issuer::Caller(_) | Issuer::Scheduler | Issuer::Foreign { .. }) => {
            Err(Reason::CancelRequested)
        }
        (Phase::Completed | Phase::Failed | Phase::Canceled, _) => Err(Reason::Ended(state.phase.status())),
    }
}

/// A worker must hold the claim in force. Everybody else has none to lose.
pub(super) fn not_fenced(draft: &Draft<'_>) -> Result<(), Reason> {
    match draft.issuer {
        Issuer::Worker { epoch, .. } if draft.state.claim.is_none() || *epoch != draft.state.epoch => {
            Err(Reason::Fenced { held: *epoch, current: draft.state.epoch })
        }
        Issuer::Worker { .. } | Issuer::Caller(_) | Issuer::Scheduler | Issuer::Foreign { .. } => Ok(()),
    }
}

/// Only the worker that holds the claim may say this.
pub(super) fn from_owner(draft: &Draft<'_>) -> Result<(), Reason> {
    match draft.issuer {
        Issuer::Worker { .. } => not_fenced(draft),
        Issuer::Caller(_) | Issuer::Scheduler | Issuer::Foreign { .. } => Err(Reason::OnlyAWorker),
    }
}

/// The node, if it was reached.
pub(super) fn reached<'a>(draft: &'a Draft<'_>, id: &NodeId) -> Result<(NodeNumber, &'a NodeState), Reason> {
    let state = &*draft.state;
    match state.number_of(id).and_then(|number| Some((number, state.node(number)?.1))) {
        Some(found) => Ok(found),
        None if state.place_of(id).is_some() => Err(Reason::NodeNotReached(id.clone())),
        None => Err(Reason::UnknownNode(id.clone())),
    }
}

/// Workers drive their nodes and callers drive theirs.
pub(super) fn drives(draft: &Draft<'_>, id: &NodeId, node: &NodeState) -> Result<(), Reason> {
    let is_workers = draft.state.is_worker_node(node);
    match draft.issuer {
        Issuer::Worker { .. } if !is_workers => Err(Reason::BelongsToCaller(id.clone())),
        Issuer::Caller(_) | Issuer::Foreign { .. } if is_workers => Err(Reason::BelongsToWorker(id.clone())),
        Issuer::Worker { .. } | Issuer::Caller(_) | Issuer::Scheduler | Issuer::Foreign { .. } => Ok(()),
    }
}

/// The node, if it was reached and the issuer drives it under a valid claim.
pub(super) fn driven<'a>(draft: &'a Draft<'_>, id: &NodeId) -> Result<(NodeNumber, &'a NodeState), Reason> {
    not_fenced(draft)?;
    let found = reached(draft, id)?;
    drives(draft, id, found.1)?;
    Ok(found)
}

/// The attempt that was named, if one was, is the one that is meant.
pub(super) fn same_attempt(expected: Attempt, given: Option<Attempt>) -> Result<(), Reason> {
    match given {
        Some(given) if given != expected => Err(Reason::WrongAttempt { expected, given }),
        Some(_) | None => Ok(()),
    }
}

/// Values that stand outside the log are opened by task processes, so only a worker may point at some; what was
/// changed in the context is a worker's word too.
pub(super) fn may_change(draft: &Draft<'_>, changes: Option<&Changes>) -> Result<(), Reason> {
    match draft.issuer {
        Issuer::Worker { .. } => Ok(()),
        Issuer::Caller(_) | Issuer::Scheduler | Issuer::Foreign { .. } if changes.is_some() => {
            Err(Reason::OnlyAWorker)
        }
        Issuer::Caller(_) | Issuer::Scheduler | Issuer::Foreign { .. } => Ok(()),
    }
}

/// The node is in another state than the command needs.
pub(super) fn node_is(id: &NodeId, node: &NodeState) -> Reason {
    Reason::NodeIs { node: id.clone(), status: node.status }
}
