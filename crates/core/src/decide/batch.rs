//! Several commands of one execution that arrive together become one record.

use super::{Facts, RECORD_EVENTS, decide};
use crate::command::{Command, Issuer, Request};
use crate::digest::Digest;
use crate::event::{Actor, Event, EventEnvelope};
use crate::ids::EventId;
use crate::json::Limits;
use crate::outcome::{Effect, Outcome, Reason, Rejection};
use crate::record::{CommandRecord, FORMAT, Record};
use crate::state::State;
use crate::time::Timestamp;

/// So many keys are remembered of an execution that has ended, when there was nothing to do for them.
const MAX_KEYS_AFTER_END: usize = 1_000;

/// A record under construction, on top of a state.
#[derive(Debug)]
pub struct Batch<'a> {
    state: &'a mut State,
    first_event: crate::ids::EventSeq,
    commands: Vec<CommandRecord>,
    facts: Facts,
    events: Vec<(Event, Source)>,
    last: Option<Source>,
    bytes: usize,
}

/// Who asked, when, and as part of what.
#[derive(Debug, Clone)]
struct Source {
    actor: Actor,
    at: Timestamp,
    correlation_id: Option<String>,
}

/// What one command of a batch answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What its issuer learns, once the record is appended.
    pub outcome: Outcome,
    /// What must be done outside, once the record is appended.
    pub effects: Vec<Effect>,
}

/// A finished record: the bytes to append, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealed {
    /// The record.
    pub record: Record,
    /// Its stored form.
    pub bytes: Vec<u8>,
}

impl<'a> Batch<'a> {
    /// An empty batch. When its record cannot be appended, `state` has to be folded again from the log.
    pub fn new(state: &'a mut State) -> Self {
        let first_event = state.events.next();
        Self {
            state,
            first_event,
            commands: Vec::new(),
            facts: Facts::default(),
            events: Vec::new(),
            last: None,
            bytes: 0,
        }
    }

    /// The state with everything decided so far.
    pub const fn state(&self) -> &State {
        self.state
    }

    /// How many events are waiting to be sealed.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is nothing to append.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.facts.is_empty() && self.commands.is_empty()
    }

    /// Decides one more command.
    pub fn decide(&mut self, request: &Request) -> Result<Answer, Rejection> {
        if let Some(answer) = self.repeated(request)? {
            return Ok(answer);
        }
        let bytes = request.command.weight().bytes;
        if !self.has_room(request, bytes) {
            return Err(Rejection { command: request.command.name(), reason: Reason::SealFirst });
        }
        let decision = decide(self.state, request)?;
        self.bytes += bytes;
        let source = Source {
            actor: request.issuer.actor(),
            at: request.at,
            correlation_id: request.correlation_id.clone(),
        };
        let wrote = !decision.events.is_empty() || !decision.facts.is_empty();
        let is_worker = matches!(request.issuer, Issuer::Worker { .. });
        let is_repeat = matches!(decision.outcome, Outcome::Repeated(_));
        self.facts.absorb(decision.facts, self.events.len());
        self.events.extend(decision.events.into_iter().map(|event| (event, source.clone())));
        // A caller's key is remembered also when there was nothing to do: its repeat must get the same answer. But what has ended
        // does not grow for ever by being asked.
        let is_room = !self.state.phase.is_terminal() || self.state.commands.len() < MAX_KEYS_AFTER_END;
        let is_asked = !is_worker && !is_repeat && is_room;
        let keyed = request.id.clone().filter(|_| wrote || is_asked);
        if wrote || keyed.is_some() {
            self.last = Some(source);
        }
        self.commands.extend(keyed.map(|id| CommandRecord {
            id,
            digest: request.digest,
            worker: is_worker,
            correlation_id: request.correlation_id.clone().filter(|_| !is_worker),
            result: decision.outcome.clone(),
        }));
        Ok(Answer { outcome: decision.outcome, effects: decision.effects })
    }

    /// A claim counts before the events of its record and a release ends it; and a record stays small enough to be
    /// read again.
    fn has_room(&self, request: &Request, bytes: usize) -> bool {
        let takes = matches!(request.command, Command::ClaimExecution(_) | Command::ImportSnapshot(_));
        self.is_empty()
            || !(takes
                || self.facts.release.is_some()
                || self.bytes + bytes > Limits::BODY.bytes
                || self.events.len() >= RECORD_EVENTS)
    }

    /// A key that was used earlier in this very batch.
    fn repeated(&self, request: &Request) -> Result<Option<Answer>, Rejection> {
        let Some(id) = &request.id else { return Ok(None) };
        match self.commands.iter().find(|command| command.id == *id) {
            None => Ok(None),
            Some(seen) if seen.digest == request.digest => Ok(Some(Answer {
                outcome: Outcome::Repeated(self.state.version.next()),
                effects: Vec::new(),
            })),
            Some(_) => Err(Rejection { command: request.command.name(), reason: Reason::KeyReused }),
        }
    }

    /// Makes the record, or nothing when nothing was decided. `ids` names the events.
    pub fn seal(self, ids: &mut dyn FnMut() -> EventId) -> Option<Sealed> {
        let last = self.last?;
        let mut causation_id = None;
        let mut events = Vec::with_capacity(self.events.len());
        for (event, source) in self.events {
            let event_id = ids();
            events.push(EventEnvelope {
                event_id: event_id.clone(),
                execution_id: self.state.id.clone(),
                occurred_at: source.at,
                actor: source.actor,
                correlation_id: source.correlation_id,
                causation_id: causation_id.replace(event_id),
                event,
            });
        }
        let record = Record {
            v: FORMAT,
            seq: self.state.version.next(),
            first_event: self.first_event,
            prev_hash: self.state.last_hash,
            epoch: self.state.epoch,
            actor: last.actor,
            at: last.at,
            commands: self.commands,
            plan: self.facts.plan,
            workflow: self.facts.workflow,
            kept: self.facts.kept,
            wheels: self.facts.wheels,
            claim: self.facts.claim,
            release: self.facts.release,
            annotations: self.facts.annotations,
            events,
        };
        let bytes = record.encode();
        self.state.recorded(&record, Digest::of_bytes(&bytes));
        Some(Sealed { record, bytes })
    }
}

impl Facts {
    /// Takes over what a later decision says, whose events follow `before` others.
    fn absorb(&mut self, later: Self, before: usize) {
        self.plan = self.plan.take().or(later.plan);
        self.workflow = self.workflow.take().or(later.workflow);
        self.kept = self.kept.take().or(later.kept);
        self.wheels = self.wheels.take().or(later.wheels);
        self.claim = later.claim.or_else(|| self.claim.take());
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        self.release = self.release.or_else(|| later.release.map(|after| after.saturating_add(before)));
        self.annotations.extend(later.annotations);
    }
}
