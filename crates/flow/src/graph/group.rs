//! Groups: `a & b`, `a | b`, what they lead to, and what they are as a step of a chain.

use std::sync::Arc;

use super::meaning::{Meaning, Spanned};
use super::refusal::{ignored_members, mixture};
use super::value::{Chain, Group, GroupKind, List, Value, heads, tails};
use super::{Problem, Span};
use crate::program::{NameId, Parallel, Step};

impl Meaning<'_> {
    /// A group as one step, for the forms that are ours.
    pub(super) fn fork(group: Group, span: Span) -> Result<Chain, Problem> {
        let any = group.kind == GroupKind::Any;
        let branches = branches(group.members, any, span)?;
        if branches.is_empty() {
            return Err(Problem::new("an empty list has no task to go on with", span));
        }
        let mut steps = group.before;
        steps.push(Step::Parallel(Arc::new(Parallel { branches, any })));
        let depth = group.before_depth.max(group.depth);
        Ok(Chain { steps, is_task: false, ours: true, lead: 0, size: group.size, depth })
    }

    /// `group >> right`: in the reference the value of it is only what stands on the right.
    pub(super) fn after_group(
        &mut self,
        left: Group,
        left_span: Span,
        right: Value,
        span: Span,
    ) -> Result<Value, Problem> {
        if !left.ours && !left.is_plain() {
            return Err(ignored_members(&left, left_span));
        }
        let any = left.kind == GroupKind::Any;
        let ours = left.ours || is_ours(&right);
        match right {
            Value::Chain(right) => {
                if !ours && !right.is_task {
                    return Err(Problem::new(
                        "a group links to tasks and groups only; this chain would not be linked",
                        span,
                    )
                    .help("leave out the parentheses: '(a & b) >> c >> d'"));
                }
                if right.lead > 0 {
                    return Err(Problem::new(
                        "only the end of this group would be linked, not its members",
                        span,
                    )
                    .help("leave out the parentheses: '(a & b) >> (c & d) >> e'"));
                }
                let Chain { mut steps, size, depth, .. } = Self::fork(left, span)?;
                let lead = if ours { 0 } else { steps.len() };
                self.link_all(&steps, &heads(&right.steps), any, ours, span)?;
                steps.extend(right.steps);
                let size = self.grow(size + right.size, span)?;
                let depth = depth.max(right.depth);
                Ok(Value::Chain(Chain { steps, is_task: right.is_task, ours, lead, size, depth }))
            }
            Value::Group(right) => self.group_to_group(left, right, ours, span),
            Value::List(list) => self.group_to_group(left, listed(list), ours, span),
            other @ (Value::Flow
            | Value::Literal(_)
            | Value::Case(_)
            | Value::Switch(_)
            | Value::SwitchWord) => Err(Problem::new(
                format!("a group cannot be followed by {}: nothing would be linked", other.noun()),
                span,
            )),
        }
    }

    fn group_to_group(
        &mut self,
        left: Group,
        right: Group,
        ours: bool,
        span: Span,
    ) -> Result<Value, Problem> {
        if !ours && !right.is_plain() {
            return Err(ignored_members(&right, span));
        }
        let leads = |member: &Value| matches!(member, Value::Chain(chain) if chain.lead > 0);
        if !right.before.is_empty() || right.members.iter().any(leads) {
            return Err(Problem::new("only the end of this group would be linked, not its members", span)
                .help("leave out the parentheses around the chain of groups"));
        }
        let any = left.kind == GroupKind::Any;
        let Chain { steps, size, depth, .. } = Self::fork(left, span)?;
        let targets = Self::fork(right.clone(), span)?;
        self.link_all(&steps, &heads(&targets.steps), any, ours, span)?;
        let size = self.grow(size + right.size, span)?;
        Ok(Value::Group(Group { before: steps, before_depth: depth, ours, size, ..right }))
    }

    fn link_all(
        &mut self,
        from: &[Step],
        to: &[NameId],
        any: bool,
        ours: bool,
        span: Span,
    ) -> Result<(), Problem> {
        let (from, _) = tails(from).map_err(|_| mixture(span))?;
        self.link(&from, to, !ours, span)?;
        if any {
            self.any.extend(to);
        }
        Ok(())
    }

    /// `left & right`, `left | right`.
    pub(super) fn group(
        &mut self,
        (left, left_span): Spanned,
        (right, span): Spanned,
        kind: GroupKind,
    ) -> Result<Value, Problem> {
        let (operator, other) = if kind == GroupKind::All { ("&", "|") } else { ("|", "&") };
        let runs = |value: &Value| matches!(value, Value::Chain(_) | Value::Group(_) | Value::List(_));
        if !runs(&left) || matches!(left, Value::List(_)) {
            let problem = Problem::new(format!("'{operator}' joins tasks, not {}", left.noun()), left_span);
            let flow = matches!(left, Value::Flow);
            return Err(if flow {
                problem.help("'>>' binds tighter: write 'flow >> (a & b)'")
            } else {
                problem
            });
        }
        if !runs(&right) {
            return Err(Problem::new(format!("'{operator}' joins tasks, not {}", right.noun()), span));
        }
        let size = self.grow(1 + left.size() + right.size(), span)?;
        // To the reference only a task may stand on the left; with one, everything may stand on the right.
        let accepted = matches!(&left, Value::Chain(chain) if chain.is_task && !chain.ours);
        let ours = !accepted || is_ours(&right);
        let mut members = Vec::new();
        let mut depth = 1;
        for value in [left, right] {
            match value {
                // Not one group in another, but one with more members.
                Value::Group(inner) if ours && inner.kind == kind && inner.before.is_empty() => {
                    depth = depth.max(inner.depth);
                    if members.is_empty() {
                        members = inner.members;
                    } else {
                        members.extend(inner.members);
                    }
                }
                Value::Group(inner) if ours && inner.kind != kind => {
                    let message = format!("'{operator}' and '{other}' in one group have no single meaning");
                    return Err(
                        Problem::new(message, left_span.to(span)).help("put a task between the two groups")
                    );
                }
                Value::List(_) if ours => {
                    return Err(Problem::new(format!("'{operator}' joins tasks, not a list"), span));
                }
                other @ (Value::Chain(_)
                | Value::Group(_)
                | Value::List(_)
                | Value::Flow
                | Value::Literal(_)
                | Value::Case(_)
                | Value::Switch(_)
                | Value::SwitchWord) => {
                    depth = depth.max(1 + other.depth());
                    members.push(other);
                }
            }
        }
        let depth = self.nest(depth, span)?;
        Ok(Value::Group(Group { kind, members, ours, before: Vec::new(), before_depth: 0, size, depth }))
    }
}

/// A list where a group is wanted.
pub(super) fn listed(list: List) -> Group {
    let List { items, size, depth, .. } = list;
    let ours = items.iter().any(is_ours);
    Group { kind: GroupKind::List, members: items, ours, before: Vec::new(), before_depth: 0, size, depth }
}

pub(super) fn is_ours(value: &Value) -> bool {
    match value {
        Value::Chain(chain) => chain.ours,
        Value::Group(group) => group.ours,
        Value::List(list) => list.items.iter().any(is_ours),
        Value::Case(case) => case.ours,
        Value::Flow | Value::Literal(_) | Value::Switch(_) | Value::SwitchWord => false,
    }
}

/// The members of a group as sequences; groups of the same kind inside become part of it.
fn branches(members: Vec<Value>, any: bool, span: Span) -> Result<Vec<Vec<Step>>, Problem> {
    let mut result = Vec::with_capacity(members.len());
    for member in members {
        match member {
            Value::Chain(chain) => result.push(chain.steps),
            Value::Group(group) if !group.before.is_empty() => {
                return Err(Problem::new("a group that follows another cannot be a member of a third", span));
            }
            Value::Group(group) if (group.kind == GroupKind::Any) == any => {
                result.extend(branches(group.members, any, span)?);
            }
            Value::List(list) if !any => result.extend(branches(list.items, any, span)?),
            Value::Group(_) | Value::List(_) => return Err(mixture(span)),
            other @ (Value::Flow
            | Value::Literal(_)
            | Value::Case(_)
            | Value::Switch(_)
            | Value::SwitchWord) => {
                return Err(Problem::new(
                    format!("a group has tasks as members, not {}", other.noun()),
                    span,
                ));
            }
        }
    }
    Ok(result)
}
