//! An execution that a test drives: given what happened, when this is asked, then that follows.

use std::sync::Arc;

use pyoco_core::command::{Command, Issuer, Request};
use pyoco_core::decide::{Answer, Batch};
use pyoco_core::event::EventType;
use pyoco_core::ids::{CommandId, EventId, ExecutionId};
use pyoco_core::outcome::{Effect, Outcome, Reason, Rejection};
use pyoco_core::plan::Plan;
use pyoco_core::record::Record;
use pyoco_core::state::{NodeStatus, Phase, State};
use pyoco_core::time::{Millis, Timestamp};

use crate::requests::{caller, claim, create, node, start, worker};

/// An execution, its log, and a clock that only the test moves.
#[derive(Debug, Clone)]
pub struct Execution {
    state: State,
    log: Vec<Vec<u8>>,
    now: Timestamp,
    next_id: u64,
}

impl Default for Execution {
    fn default() -> Self {
        Self::new()
    }
}

/// What a command led to.
#[derive(Debug)]
pub struct When {
    /// The execution afterwards.
    pub execution: Execution,
    /// What the command answered.
    pub answer: Result<Answer, Rejection>,
    /// The types of the events it wrote.
    pub events: Vec<EventType>,
}

impl Execution {
    /// Nothing recorded yet.
    pub fn new() -> Self {
        Self {
            state: State::absent(ExecutionId::new("e-1").expect("a sound id")),
            log: Vec::new(),
            now: Timestamp::from_micros(1_700_000_000_000_000),
            next_id: 0,
        }
    }

    /// Created with a plan and started, driven from outside.
    pub fn started(plan: &Arc<Plan>) -> Self {
        let mut command = create();
        command.plan = Some(plan.clone());
        Self::new().given(&caller(), command).given(&caller(), start())
    }

    /// Created, started and claimed by `w1` with epoch 1, which brought the plan.
    pub fn claimed(plan: &Arc<Plan>) -> Self {
        let mut command = create();
        command.start = true;
        Self::new().given(&caller(), command).given(&worker(0), claim("job-1", Some(plan)))
    }

    /// The folded state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The stored records.
    pub fn log(&self) -> &[Vec<u8>] {
        &self.log
    }

    /// The stored records, decoded.
    pub fn records(&self) -> Vec<Record> {
        self.log.iter().map(|bytes| Record::decode(bytes).expect("our own record")).collect()
    }

    /// All events, by type.
    pub fn history(&self) -> Vec<EventType> {
        self.records()
            .iter()
            .flat_map(|record| &record.events)
            .map(|event| event.event.event_type())
            .collect()
    }

    /// The clock.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Moves the clock.
    #[must_use]
    pub fn later(mut self, by: Millis) -> Self {
        self.now = self.now.after(by);
        self
    }

    /// What a node is.
    pub fn node(&self, id: &str) -> NodeStatus {
        self.state.nodes.get(&node(id)).map_or(NodeStatus::Pending, |node| node.status)
    }

    /// Something that happened; it must be allowed.
    #[must_use]
    #[track_caller]
    pub fn given(self, issuer: &Issuer, command: impl Into<Command>) -> Self {
        let when = self.when(issuer, command);
        assert!(when.answer.is_ok(), "given: {}", when.answer.unwrap_err());
        when.execution
    }

    /// The command under test.
    #[track_caller]
    pub fn when(self, issuer: &Issuer, command: impl Into<Command>) -> When {
        let request = Request::new(issuer.clone(), self.now, command);
        self.ask(&request)
    }

    /// The command under test, repeatable under a key.
    #[track_caller]
    pub fn when_keyed(self, id: CommandId, issuer: &Issuer, command: impl Into<Command>) -> When {
        let request = Request::new(issuer.clone(), self.now, command).with_id(id);
        self.ask(&request)
    }

    /// Sends a request, seals the record and checks that the log folds to the live state.
    #[track_caller]
    pub fn ask(self, request: &Request) -> When {
        self.ask_together(&[], request)
    }

    /// Sends several requests as one record; those before the last one are allowed to be refused.
    #[track_caller]
    pub fn ask_together(mut self, first: &[Request], request: &Request) -> When {
        let mut batch = Batch::new(&mut self.state);
        for request in first {
            let _ = batch.decide(request);
        }
        let before = batch.state().clone();
        let answer = batch.decide(request);
        let mut next_id = self.next_id;
        let sealed = batch.seal(&mut || {
            next_id += 1;
            EventId::new(&format!("ev-{next_id}")).expect("a sound id")
        });
        self.next_id = next_id;
        let events = sealed.iter().flat_map(|sealed| &sealed.record.events);
        let events = events.map(|event| event.event.event_type()).collect();
        self.log.extend(sealed.map(|sealed| sealed.bytes));
        if answer.is_err() && first.is_empty() {
            assert_eq!(self.state, before, "a refused command changed the state");
        }
        let folded = State::from_log(self.state.id.clone(), self.log.iter().map(Vec::as_slice));
        assert_eq!(folded.as_ref(), Ok(&self.state), "the log does not fold to the live state");
        self.now = self.now.after(Millis(1));
        When { execution: self, answer, events }
    }
}

impl When {
    /// It was accepted and wrote exactly these events.
    #[track_caller]
    pub fn then(self, events: &[EventType]) -> Execution {
        assert!(self.answer.is_ok(), "{}", self.answer.unwrap_err());
        assert_eq!(self.events, events);
        self.execution
    }

    /// It answered this and wrote nothing.
    #[track_caller]
    pub fn then_nothing(self, outcome: &Outcome) -> Execution {
        assert_eq!(self.answer.expect("an answer").outcome, *outcome);
        assert_eq!(self.events, []);
        self.execution
    }

    /// It was refused for this reason.
    #[track_caller]
    pub fn then_rejected(self, reason: &Reason) -> Execution {
        let rejection = self.answer.expect_err("a refusal");
        assert_eq!(rejection.reason, *reason, "{rejection}");
        assert_eq!(self.events, []);
        self.execution
    }

    /// The execution stands there now.
    #[track_caller]
    pub fn then_phase(self, phase: Phase) -> Execution {
        assert!(self.answer.is_ok(), "{}", self.answer.unwrap_err());
        assert_eq!(self.execution.state.phase, phase, "{:?}", self.events);
        self.execution
    }

    /// It asked for exactly these effects.
    #[track_caller]
    pub fn then_effects(self, effects: &[Effect]) -> Self {
        assert_eq!(self.answer.as_ref().expect("an answer").effects, effects);
        self
    }
}
