//! A decision while it is made.

use std::sync::Arc;

use crate::command::{DeadLetter, Issuer, Request};
use crate::event::{Event, NodeCanceled};
use crate::ids::{EventSeq, NodeId};
use crate::kept::Kept;
use crate::outcome::Effect;
use crate::plan::Plan;
use crate::record::Annotation;
use crate::state::{Claim, State};
use crate::time::Timestamp;
use crate::wheels::UsedWheel;

/// What a record says beside its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// A plan that is fixed from here on.
    pub plan: Option<Arc<Plan>>,
    /// The text of a submitted flow.
    pub workflow: Option<Arc<str>>,
    /// What is kept of the execution that this one repeats.
    pub kept: Option<Arc<Kept>>,
    /// The wheels that it runs with from here on.
    pub wheels: Option<Arc<[UsedWheel]>>,
    /// Who holds the execution from here on.
    pub claim: Option<Claim>,
    /// The claim is let go, after so many of the decision's events.
    pub release: Option<u32>,
    /// What is said about the execution.
    pub annotations: Vec<Annotation>,
}

impl Facts {
    /// Whether there is nothing to record.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The state, what was asked, and what has been decided so far.
pub(super) struct Draft<'a> {
    pub(super) state: &'a mut State,
    pub(super) at: Timestamp,
    pub(super) issuer: &'a Issuer,
    events: Vec<Event>,
    effects: Vec<Effect>,
    facts: Facts,
}

impl<'a> Draft<'a> {
    pub(super) const fn new(state: &'a mut State, request: &'a Request) -> Self {
        Self {
            state,
            at: request.at,
            issuer: &request.issuer,
            events: Vec::new(),
            effects: Vec::new(),
            facts: Facts {
                plan: None,
                workflow: None,
                kept: None,
                wheels: None,
                claim: None,
                release: None,
                annotations: Vec::new(),
            },
        }
    }

    /// Writes an event: it happens now.
    pub(super) fn emit(&mut self, event: impl Into<Event>) {
        let event = event.into();
        self.state.apply(&event, self.at);
        self.events.push(event);
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        if !self.effects.contains(&effect) {
            self.effects.push(effect);
        }
    }

    /// One dead letter for one failure; the first one knows best why. Another implementation writes its own.
    pub(super) fn dead_letter(&mut self, reason: DeadLetter, error: String) {
        let is_told = matches!(self.issuer, Issuer::Foreign { .. })
            || self.effects.iter().any(|effect| matches!(effect, Effect::PublishDeadLetter { .. }));
        if !is_told {
            self.effects.push(Effect::PublishDeadLetter { reason, error });
        }
    }

    /// Somebody else tells of the failure.
    pub(super) fn no_dead_letter(&mut self) {
        self.effects.retain(|effect| !matches!(effect, Effect::PublishDeadLetter { .. }));
    }

    pub(super) fn fix_plan(&mut self, plan: &Arc<Plan>) {
        if self.state.plan.is_none() {
            self.state.fix_plan(plan.clone());
            self.facts.plan = Some(plan.clone());
        }
    }

    pub(super) fn keep_workflow(&mut self, text: &Arc<str>) {
        self.state.keep_workflow(text.clone());
        self.facts.workflow = Some(text.clone());
    }

    pub(super) fn keep(&mut self, kept: &Arc<Kept>) {
        self.state.keep(kept.clone());
        self.facts.kept = Some(kept.clone());
    }

    pub(super) fn use_wheels(&mut self, wheels: &Arc<[UsedWheel]>) {
        self.state.use_wheels(wheels.clone());
        self.facts.wheels = Some(wheels.clone());
    }

    pub(super) fn claim(&mut self, claim: Claim) {
        self.state.take(claim.clone());
        self.facts.claim = Some(claim);
    }

    pub(super) fn release(&mut self) {
        self.state.let_go(self.at);
        self.facts.release = Some(u32::try_from(self.events.len()).unwrap_or(u32::MAX));
    }

    pub(super) fn annotate(&mut self, annotation: Annotation) {
        self.state.annotate(&annotation);
        self.facts.annotations.push(annotation);
    }

    pub(super) fn cancel_node(&mut self, node_id: NodeId, reason: Option<String>) {
        self.emit(NodeCanceled { node_id, reason, extra: Default::default() });
    }

    /// How many events this decision has written.
    pub(super) fn written(&self) -> usize {
        self.events.len()
    }

    /// How many events the execution has, this decision's included.
    pub(super) const fn history(&self) -> EventSeq {
        self.state.events
    }

    pub(super) fn finish(self) -> (Vec<Event>, Vec<Effect>, Facts) {
        (self.events, self.effects, self.facts)
    }
}
