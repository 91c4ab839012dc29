//! ChooseNode: the answer to what a loop or switch asks. It is recorded, so that a replay never evaluates.

use super::draft::Draft;
use super::{Ruling, advance, ending, guard};
use crate::command::ChooseNode;
use crate::event::{Choice, ErrorInfo, NodeFailed, NodeProgressReported, NodeStarted};
use crate::ids::{Attempt, NodeId};
use crate::outcome::{Outcome, Reason};
use crate::plan::{Count, Kind};
use crate::state::NodeNumber;

pub(super) fn decide(draft: &mut Draft<'_>, command: &ChooseNode) -> Ruling {
    guard::may_begin(draft.state)?;
    guard::from_owner(draft)?;
    let id = &command.node_id;
    let (number, node) = guard::reached(draft, id)?;
    if !draft.state.open.asking.contains(&number) {
        return Err(guard::node_is(id, node));
    }
    if !fits(draft, number, &command.choice) {
        return Err(Reason::WrongChoice(id.clone()));
    }
    let node_round = node.round;
    if let Some(error) = exhausted(draft, number, &command.choice) {
        fail(draft, id, error);
        advance::advance(draft);
        return Ok(Outcome::Accepted);
    }
    record(draft, id, node_round, &command.choice);
    advance::advance(draft);
    Ok(Outcome::Accepted)
}

/// A question that the execution which this one repeats was asked too is answered as it was there. Says whether there was one.
pub(super) fn answer_as_kept(draft: &mut Draft<'_>) -> bool {
    let Some(kept) = draft.state.kept.clone() else { return false };
    let asking = draft.state.open.asking.iter();
    let found = asking.copied().find_map(|number| {
        let (id, node) = draft.state.node(number)?;
        let choice = kept.answer(id, node.round)?;
        fits(draft, number, choice).then(|| (id.clone(), node.round, choice.clone()))
    });
    let Some((id, round, choice)) = found else { return false };
    record(draft, &id, round, &choice);
    true
}

fn record(draft: &mut Draft<'_>, id: &NodeId, round: u64, choice: &Choice) {
    let extra = Default::default;
    match choice {
        Choice::Rounds(_) | Choice::Items(_) | Choice::Case(_) => {
            let choice = Some(choice.clone());
            draft.emit(NodeStarted {
                node_id: id.clone(),
                attempt: Attempt(1),
                worker_id: None,
                choice,
                extra: extra(),
            });
        }
        Choice::Holds(holds) => {
            draft.emit(NodeProgressReported {
                node_id: id.clone(),
                progress: None,
                message: Some(format!(
                    "round {round}: the condition {}",
                    if *holds { "holds" } else { "does not hold" }
                )),
                metrics: None,
                choice: Some(choice.clone()),
                extra: extra(),
            });
        }
        Choice::Unanswerable(message) => fail(draft, id, ErrorInfo::new("EXPRESSION", message.as_str())),
    }
}

/// An until that has used up its rounds fails.
fn exhausted(draft: &Draft<'_>, number: NodeNumber, choice: &Choice) -> Option<ErrorInfo> {
    let (_, node) = draft.state.node(number)?;
    match (&draft.state.planned(node.place?)?.kind, choice) {
        (Kind::Until { condition, max_rounds, .. }, Choice::Holds(false))
            if i64::try_from(node.round).is_ok_and(|round| round >= *max_rounds) =>
        {
            let text = condition.text();
            Some(ErrorInfo::new(
                "UNTIL_EXHAUSTED",
                format!("Until condition '{text}' exceeded max_iter={max_rounds}"),
            ))
        }
        (
            _,
            Choice::Rounds(_)
            | Choice::Items(_)
            | Choice::Holds(_)
            | Choice::Case(_)
            | Choice::Unanswerable(_),
        ) => None,
    }
}

/// Whether the answer is one to the question.
fn fits(draft: &Draft<'_>, number: NodeNumber, choice: &Choice) -> bool {
    let planned = draft.state.node(number).and_then(|(_, node)| draft.state.planned(node.place?));
    match (planned.map(|planned| &planned.kind), choice) {
        (Some(Kind::Repeat { count: Count::Computed(_), .. }), Choice::Rounds(_)) => true,
        (Some(Kind::ForEach { .. }), Choice::Items(_)) => true,
        (Some(Kind::Until { .. }), Choice::Holds(_)) => true,
        (Some(Kind::Switch { default, .. }), Choice::Case(None)) => default.is_some(),
        (Some(Kind::Switch { cases, .. }), Choice::Case(Some(case))) => (*case as usize) < cases.len(),
        (Some(_), Choice::Unanswerable(_)) => true,
        (
            _,
            Choice::Rounds(_)
            | Choice::Items(_)
            | Choice::Holds(_)
            | Choice::Case(_)
            | Choice::Unanswerable(_),
        ) => false,
    }
}

fn fail(draft: &mut Draft<'_>, id: &NodeId, error: ErrorInfo) {
    draft.emit(NodeFailed {
        node_id: id.clone(),
        error: Some(error.clone()),
        inherited: false,
        extra: Default::default(),
    });
    ending::fail(draft, Some(id), error);
}
