//! What follows from what was recorded: nodes become ready, forks open, joins pass, loops go on.
//!
//! `apply` notes it in the agenda; here it is worked off and recorded. One record has room for so many
//! events; the rest is done by `AdvanceExecution`, which finds the agenda in the folded state.

use serde_json::json;

use super::draft::Draft;
use super::{Ruling, choose_node, ending};
use crate::event::{
    Choice, ErrorInfo, ForkOpened, JoinGateUpdated, JoinPassed, NodeCreated, NodeFailed, NodeReady,
    NodeStarted, NodeSucceeded, NodeWaiting,
};
use crate::expr::Scope;
use crate::ids::{Attempt, NodeId};
use crate::json::{Json, Object};
use crate::outcome::{Effect, Outcome};
use crate::plan::{Count, FailPolicy, JoinPolicy, Kind, Node, Runner};
use crate::state::{Frame, Gate, NodeNumber, Phase, Place, Settled, State, Todo, Verdict};

/// About so many events fit into one record.
pub const RECORD_EVENTS: usize = 512;
/// An execution has no more events than this; one that would ends with a failure that says so.
pub const MAX_EVENTS: u64 = 100_000;

pub(super) fn decide(draft: &mut Draft<'_>) -> Ruling {
    super::guard::may_begin(draft.state)?;
    let before = draft.written();
    advance(draft);
    Ok(if draft.written() > before { Outcome::Accepted } else { Outcome::Unchanged })
}

/// Works the agenda off, and ends the execution when nothing is left.
pub(super) fn advance(draft: &mut Draft<'_>) {
    while draft.state.phase == Phase::Started {
        let todo = draft.state.agenda.front().cloned();
        if todo.is_some() && draft.written() >= RECORD_EVENTS {
            draft.effect(Effect::Advance);
            return;
        }
        if draft.history().0 >= MAX_EVENTS {
            break;
        }
        let Some(todo) = todo else {
            if choose_node::answer_as_kept(draft) {
                continue;
            }
            break;
        };
        match todo {
            Todo::Reach(place) => reach(draft, place),
            Todo::Inherit(place) => inherit(draft, place),
            Todo::Gate(place) => gate(draft, place),
            Todo::Finish(number) => finish(draft, number),
        }
        if draft.state.phase == Phase::Started && draft.state.agenda.front() == Some(&todo) {
            // Every entry is crossed out by what it leads to; one that is not would be tried for ever.
            let message = format!("the log does not let the execution go on: {todo:?}");
            ending::fail(draft, None, ErrorInfo::new("INCONSISTENT_LOG", message));
        }
    }
    ending::conclude(draft);
}

/// An execution whose history has no room left ends, and says why.
pub(super) fn end_overlong(draft: &mut Draft<'_>) {
    if draft.state.phase == Phase::Started && draft.history().0 >= MAX_EVENTS {
        let message = format!("the execution has reached {MAX_EVENTS} events; split the flow into several");
        ending::fail(draft, None, ErrorInfo::new("HISTORY_LIMIT", message));
        ending::conclude(draft);
    }
}

fn create(draft: &mut Draft<'_>, place: Place) -> Option<NodeId> {
    let (id, node_type, meta) = {
        let state = &*draft.state;
        let (plan, node) = (state.plan.as_ref()?, state.planned(place)?);
        let frame = state.frames.get(place.frame.0 as usize)?;
        (state.id_at(place)?, State::node_type(node, plan), meta(state, node, frame))
    };
    let created =
        NodeCreated { node_id: id.clone(), node_type: node_type.to_owned(), meta, extra: Object::default() };
    draft.emit(created);
    Some(id)
}

/// Where a node comes from: its task, and the loop and round around it.
fn meta(state: &State, node: &Node, frame: &Frame) -> Option<Object> {
    let mut meta = Object::default();
    if let Kind::Task(task) = node.kind {
        let name = state.plan.as_ref()?.task(task)?.name.clone();
        // The id says it already, unless the node is one of several for the same task.
        if name != node.name || frame.parent.is_some() {
            meta.0.insert("task".to_owned(), json!(name));
        }
    }
    if let Some((parent, _)) = frame.parent.and_then(|parent| state.node(parent)) {
        meta.0.insert("parent".to_owned(), json!(parent));
        meta.0.insert("iteration".to_owned(), json!(frame.round));
    }
    (!meta.is_empty()).then_some(meta)
}

fn reach(draft: &mut Draft<'_>, place: Place) {
    let Some(kind) = draft.state.planned(place).map(|node| Step::of(draft.state, &node.kind)) else { return };
    let Some(node_id) = create(draft, place) else { return };
    let extra = Object::default;
    if keep(draft, &node_id) {
        return;
    }
    match kind {
        Step::Pass => succeed(draft, node_id, None),
        Step::Fail => {
            let error = ErrorInfo::new("FAILED_NODE", format!("reached {node_id}"));
            draft.emit(NodeFailed {
                node_id: node_id.clone(),
                error: Some(error.clone()),
                inherited: false,
                extra: extra(),
            });
            ending::fail(draft, Some(&node_id), error);
        }
        Step::Cancel => {
            let reason = format!("reached {node_id}");
            succeed(draft, node_id, None);
            ending::cancel(draft, Some(&reason));
        }
        Step::Ready => draft.emit(NodeReady { node_id, extra: extra() }),
        Step::Wait { key, prompt } => {
            draft.emit(NodeReady { node_id: node_id.clone(), extra: extra() });
            draft.emit(NodeWaiting { node_id, wait_key: Some(key), prompt, extra: extra() });
        }
        Step::Fork => {
            let branch_ids = branches(draft.state, place);
            draft.emit(ForkOpened { node_id, branch_ids, extra: extra() });
        }
        Step::Begin(choice) => {
            draft.emit(NodeReady { node_id: node_id.clone(), extra: extra() });
            draft.emit(NodeStarted { node_id, attempt: Attempt(1), worker_id: None, choice, extra: extra() });
        }
    }
}

/// A task that has succeeded in the execution which this one repeats is not run again.
fn keep(draft: &mut Draft<'_>, node_id: &NodeId) -> bool {
    let Some(kept) = draft.state.kept.clone() else { return false };
    let Some(node) = kept.success(node_id) else { return false };
    let mut extra = Object::default();
    extra.0.insert("reusedFrom".to_owned(), json!(kept.of));
    draft.emit(NodeReady { node_id: node_id.clone(), extra: Object::default() });
    draft.emit(NodeSucceeded {
        node_id: node_id.clone(),
        output: node.output.clone(),
        output_ref: node.output_ref.clone(),
        inputs: None,
        changes: node.changes.clone(),
        extra,
    });
    true
}

/// What reaching a node means.
enum Step {
    Pass,
    Fail,
    Cancel,
    Ready,
    Wait { key: String, prompt: Option<Json> },
    Fork,
    Begin(Option<Choice>),
}

impl Step {
    fn of(state: &State, kind: &Kind) -> Self {
        match kind {
            Kind::Start | Kind::Success | Kind::Join { .. } => Self::Pass,
            Kind::Failed => Self::Fail,
            Kind::Canceled => Self::Cancel,
            Kind::Task(task) => match state
                .plan
                .as_ref()
                .and_then(|plan| plan.task(*task))
                .map(|task| &task.runner)
            {
                Some(Runner::Wait { key, prompt }) => Self::Wait { key: key.clone(), prompt: prompt.clone() },
                Some(Runner::Callable(_) | Runner::Registered(_) | Runner::Command(_) | Runner::External)
                | None => Self::Ready,
            },
            Kind::Fork { .. } => Self::Fork,
            Kind::Repeat { count: Count::Fixed(rounds), .. } => Self::Begin(Some(Choice::Rounds(*rounds))),
            // The first round of an until needs no answer.
            Kind::Until { .. } => Self::Begin(None),
            Kind::Repeat { count: Count::Computed(_), .. } | Kind::ForEach { .. } | Kind::Switch { .. } => {
                Self::Ready
            }
        }
    }
}

fn succeed(draft: &mut Draft<'_>, node_id: NodeId, output: Option<serde_json::Value>) {
    draft.emit(NodeSucceeded {
        node_id,
        output: output.map(|value| std::sync::Arc::new(Json(value))),
        output_ref: None,
        inputs: None,
        changes: None,
        extra: Object::default(),
    });
}

fn branches(state: &State, place: Place) -> Vec<NodeId> {
    match state.planned(place).map(|node| &node.kind) {
        Some(Kind::Fork { branches }) => {
            let head = |index: &_| state.id_at(Place { index: *index, ..place });
            branches.iter().filter_map(head).collect()
        }
        Some(
            Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled | Kind::Task(_) | Kind::Join { .. },
        ) => Vec::new(),
        Some(Kind::Repeat { .. } | Kind::ForEach { .. } | Kind::Until { .. } | Kind::Switch { .. })
        | None => Vec::new(),
    }
}

/// A node before this one did not succeed, so this one never runs, whatever its own policy.
fn inherit(draft: &mut Draft<'_>, place: Place) {
    let before = draft.state.planned(place).and_then(|node| node.after.first());
    let cause = before.map(|index| Place { index: *index, ..place });
    let how = cause.and_then(|cause| settled(draft.state, cause));
    let cause = cause.and_then(|cause| draft.state.id_at(cause));
    let Some(node_id) = create(draft, place) else { return };
    let cause = cause.map_or_else(|| "a node before it".to_owned(), |cause| format!("node '{cause}'"));
    if how == Some(Settled::Canceled) {
        draft.cancel_node(node_id, Some(format!("{cause} was canceled")));
    } else {
        let error = Some(ErrorInfo::new("UPSTREAM_FAILED", format!("{cause} failed")));
        draft.emit(NodeFailed { node_id, error, inherited: true, extra: Object::default() });
    }
}

fn settled(state: &State, place: Place) -> Option<Settled> {
    *state.frames.get(place.frame.0 as usize)?.settled.get(place.index.0 as usize)?
}

/// A branch of a join ended: say how the join stands, and whether it passes or never will.
fn gate(draft: &mut Draft<'_>, place: Place) {
    let Some(node_id) = draft.state.id_at(place) else { return };
    let (after, policy, explicit, expected) = match draft.state.planned(place) {
        Some(node @ Node { kind: Kind::Join { policy, explicit }, after, .. }) => {
            (after.clone(), policy.clone(), *explicit, node.expected_branches())
        }
        Some(_) | None => return,
    };
    if draft.state.number_of(&node_id).is_none() {
        create(draft, place);
    }
    let frame = draft.state.frames.get(place.frame.0 as usize);
    let gate = frame.and_then(|frame| frame.gates.get(&place.index)).copied().unwrap_or_default();
    let verdict = match (gate.verdict(&policy, expected), &policy) {
        (Verdict::Ask, JoinPolicy::Custom(when)) => ask(gate, expected, when),
        (verdict, _) => Ok(verdict),
    };
    let branches = |wanted: Option<Settled>| -> Vec<NodeId> {
        let ended = |index: &&_| {
            wanted.is_none() || settled(draft.state, Place { index: **index, ..place }) == wanted
        };
        let id = |index: &_| draft.state.id_at(Place { index: *index, ..place });
        after.iter().filter(ended).filter_map(id).collect()
    };
    let update = JoinGateUpdated {
        node_id: node_id.clone(),
        expected_branches: branches(None),
        completed_branches: branches(Some(Settled::Succeeded)),
        failed_branches: branches(Some(Settled::Failed)),
        canceled_branches: branches(Some(Settled::Canceled)),
        policy: policy.name().to_owned(),
        is_passable: verdict == Ok(Verdict::Pass),
        extra: Object::default(),
    };
    draft.emit(update);
    match verdict {
        Ok(Verdict::Pass) => draft.emit(JoinPassed { node_id, extra: Object::default() }),
        Ok(Verdict::Open | Verdict::Ask) => {}
        Ok(Verdict::Doomed) => {
            let message = format!(
                "{node_id} cannot pass: {} of {expected} branches succeeded, {} failed, {} canceled ({})",
                gate.completed,
                gate.failed,
                gate.canceled,
                policy.name()
            );
            let stops = explicit && guarded_by_stop(draft.state, place);
            doom(draft, &node_id, ErrorInfo::new("JOIN_FAILED", message), stops);
        }
        Err(message) => doom(draft, &node_id, ErrorInfo::new("EXPRESSION", message), true),
    }
}

fn doom(draft: &mut Draft<'_>, node_id: &NodeId, error: ErrorInfo, stops: bool) {
    draft.emit(NodeFailed {
        node_id: node_id.clone(),
        error: Some(error.clone()),
        inherited: !stops,
        extra: Object::default(),
    });
    if stops {
        ending::fail(draft, Some(node_id), error);
    }
}

/// A join that its author asked for stands or falls with the task behind it.
fn guarded_by_stop(state: &State, place: Place) -> bool {
    let behind = state.block(place.frame).and_then(|block| block.dependents(place.index).first().copied());
    let node = behind.and_then(|index| state.planned(Place { index, ..place }));
    match node.map(|node| &node.kind) {
        Some(Kind::Task(task)) => {
            let task = state.plan.as_ref().and_then(|plan| plan.task(*task));
            task.is_none_or(|task| task.policy.fail == FailPolicy::Stop)
        }
        Some(Kind::Start | Kind::Success | Kind::Failed | Kind::Canceled | Kind::Fork { .. }) | None => true,
        Some(Kind::Join { .. } | Kind::Repeat { .. } | Kind::ForEach { .. }) => true,
        Some(Kind::Until { .. } | Kind::Switch { .. }) => true,
    }
}

/// Asks the author's own rule. It sees four numbers and nothing else.
fn ask(gate: Gate, expected: u32, when: &crate::expr::Expression) -> Result<Verdict, String> {
    struct Branches(serde_json::Value);
    impl Scope for Branches {
        fn ctx(&self, root: &str) -> Option<&serde_json::Value> {
            (root == "branches").then_some(&self.0)
        }
        fn env(&self, _name: &str) -> Option<&str> {
            None
        }
    }
    let numbers = json!({
        "completed": gate.completed,
        "failed": gate.failed,
        "canceled": gate.canceled,
        "expected": expected,
    });
    let value = when.eval(&Branches(numbers)).map_err(|error| error.to_string())?;
    Ok(match (value.truthy(), gate.missing(expected)) {
        (true, _) => Verdict::Pass,
        (false, 0) => Verdict::Doomed,
        (false, _) => Verdict::Open,
    })
}

/// The last block of a loop or switch has settled.
fn finish(draft: &mut Draft<'_>, number: NodeNumber) {
    let Some((id, node)) = draft.state.node(number) else { return };
    let (id, body, rounds) = (id.clone(), node.body, node.rounds.map(|_| node.round));
    match body {
        None | Some(Settled::Succeeded) => {
            succeed(draft, id, rounds.map(|rounds| json!({"iterations": rounds})))
        }
        Some(Settled::Failed) => {
            let error = Some(ErrorInfo::new("UPSTREAM_FAILED", "a node in it failed"));
            draft.emit(NodeFailed { node_id: id, error, inherited: true, extra: Object::default() });
        }
        Some(Settled::Canceled) => draft.cancel_node(id, Some("a node in it was canceled".to_owned())),
    }
}
