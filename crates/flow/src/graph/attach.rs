//! `flow >> x`: what a flow contains, in the two modes a flow can be in.
//!
//! Without any loop or switch only dependencies count. With one, the attached steps are a program and run in
//! the order they were attached.

use super::group::{is_ours, listed};
use super::meaning::Meaning;
use super::refusal::{ignored_members, mixture, no_cases, not_attached};
use super::value::{Chain, Group, GroupKind, Value, has_control, heads, tails};
use super::{Problem, Span};
use crate::program::{NameId, Step};

/// What has been attached so far.
#[derive(Debug, Default)]
pub(super) struct FlowState {
    pub(super) is_program: bool,
    pub(super) steps: Vec<Step>,
    tail: Vec<NameId>,
    tail_any: bool,
    /// The first thing that a program could not contain, in case it becomes one.
    lost: Option<Span>,
}

impl Meaning<'_> {
    pub(super) fn attach(&mut self, value: Value, span: Span) -> Result<(), Problem> {
        match value {
            Value::Chain(chain) => self.attach_chain(chain, span),
            Value::Group(group) => self.attach_group(group, span),
            Value::List(list) => self.attach_group(listed(list), span),
            Value::Switch(_) | Value::SwitchWord => Err(no_cases(span)),
            other @ (Value::Flow | Value::Literal(_) | Value::Case(_)) => {
                Err(Problem::new(format!("{} after 'flow >>' would be skipped", other.noun()), span)
                    .help("'flow >>' is followed by a task, a chain, a group or a list"))
            }
        }
    }

    fn attach_chain(&mut self, chain: Chain, span: Span) -> Result<(), Problem> {
        self.check_lead(chain.lead > 0, span)?;
        self.flow.is_program |= has_control(&chain.steps);
        self.mark(&chain.steps);
        if chain.ours {
            return self.attach_steps(chain.steps, span);
        }
        // Task by task, as the reference does: a task that follows itself waits for itself.
        for step in chain.steps.into_iter().skip(chain.lead) {
            if let (Step::Task(task), false) = (&step, self.flow.is_program) {
                let tail = std::mem::replace(&mut self.flow.tail, vec![*task]);
                self.link(&tail, &[*task], true, span)?;
                if std::mem::take(&mut self.flow.tail_any) {
                    self.any.insert(*task);
                }
            }
            self.flow.steps.push(step);
        }
        self.grow(self.flow.steps.len(), span)?;
        Ok(())
    }

    fn attach_group(&mut self, group: Group, span: Span) -> Result<(), Problem> {
        if group.members.is_empty() {
            return Err(Problem::new("an empty list after 'flow >>' would be skipped", span));
        }
        let ours = group.ours || group.members.iter().any(is_ours);
        if !ours && !group.is_plain() {
            return Err(ignored_members(&group, span));
        }
        if ours {
            let chain = Self::fork(group, span)?;
            self.flow.is_program |= has_control(&chain.steps);
            self.mark(&chain.steps);
            return self.attach_steps(chain.steps, span);
        }
        let has_lead = !group.before.is_empty()
            || group.members.iter().any(|m| matches!(m, Value::Chain(c) if c.lead > 0));
        self.check_lead(has_lead, span)?;
        self.flow.lost.get_or_insert(span);
        if group.kind == GroupKind::Any {
            let line = self.places.position(span).line;
            self.program.warnings.push(format!(
                "line {line}: behind 'flow >>' a group with '|' is waited for as a whole; to wait for any of it, write '(a | b) >> c' in a statement of its own"
            ));
        }
        let members: Vec<NameId> = group.members.iter().flat_map(last_task).collect();
        let tail = std::mem::replace(&mut self.flow.tail, members.clone());
        self.link(&tail, &members, true, span)?;
        if std::mem::take(&mut self.flow.tail_any) {
            self.any.extend(&members);
        }
        Ok(())
    }

    /// A sequence with groups of ours in it: fork to its heads, go on from its tails.
    fn attach_steps(&mut self, steps: Vec<Step>, span: Span) -> Result<(), Problem> {
        let (after, any) = tails(&steps).map_err(|_| mixture(span))?;
        let to = heads(&steps);
        let tail = std::mem::replace(&mut self.flow.tail, after);
        self.link(&tail, &to, false, span)?;
        if std::mem::replace(&mut self.flow.tail_any, any) {
            self.any.extend(&to);
        }
        self.flow.steps.extend(steps);
        self.grow(self.flow.steps.len(), span)?;
        Ok(())
    }

    /// Only what a group leads to becomes part of the flow. At its beginning that makes no difference.
    fn check_lead(&mut self, has_lead: bool, span: Span) -> Result<(), Problem> {
        if !has_lead {
            return Ok(());
        }
        if !self.flow.tail.is_empty() || self.flow.is_program || !self.flow.steps.is_empty() {
            return Err(Problem::new(
                "the group at the beginning of these parentheses would not be attached to the flow",
                span,
            )
            .help("leave out the parentheses: 'flow >> x >> (a & b) >> c'"));
        }
        self.flow.lost.get_or_insert(span);
        Ok(())
    }

    /// Remembers which loops and switches the flow contains.
    fn mark(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Task(_) => {}
                Step::Control(control) => {
                    if self.attached.insert(control.id) {
                        for body in control.kind.bodies() {
                            self.mark(body);
                        }
                    }
                }
                Step::Parallel(parallel) => {
                    for branch in &parallel.branches {
                        self.mark(branch);
                    }
                }
            }
        }
    }

    /// What can only be said when the whole graph has been read.
    pub(super) fn finish(&mut self) -> Result<(), Problem> {
        let unattached = (0..self.controls.len()).find(|id| !self.attached.contains(id));
        if let Some(span) = unattached.and_then(|id| self.controls.get(id)) {
            return Err(not_attached(*span));
        }
        match self.flow.lost {
            Some(span) if self.flow.is_program => {
                Err(Problem::new("in a flow with a loop or switch this group would never run", span)
                    .help("write its tasks one after the other: 'flow >> a >> b >> c[2]'"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn last_task(member: &Value) -> Option<NameId> {
    match member {
        Value::Chain(chain) => match chain.steps.last() {
            Some(Step::Task(task)) => Some(*task),
            Some(Step::Control(_) | Step::Parallel(_)) | None => None,
        },
        Value::Group(_) | Value::List(_) | Value::Flow | Value::Literal(_) | Value::Case(_) => None,
        Value::Switch(_) | Value::SwitchWord => None,
    }
}
