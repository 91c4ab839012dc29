//! The log of the one execution: every version of its state, and the append that decides who was first.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pyoco_core::command::Request;
use pyoco_core::decide::{Answer, Batch};
use pyoco_core::event::{Event, EventType};
use pyoco_core::ids::{EventId, ExecutionId};
use pyoco_core::outcome::Rejection;
use pyoco_core::record::Record;
use pyoco_core::state::State;

/// All versions, oldest first; the first is the absent execution.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    versions: Vec<Version>,
}

#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) state: Arc<State>,
    pub(crate) record: Option<Arc<Record>>,
}

/// A record that was decided on an older version and not appended yet.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) state: State,
    pub(crate) record: Option<Record>,
    pub(crate) answers: Vec<Result<Answer, Rejection>>,
}

// The fingerprint of the last record covers everything before it, so it stands for the whole log.
impl Hash for Log {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.head().last_hash.hash(hasher);
    }
}

impl PartialEq for Log {
    fn eq(&self, other: &Self) -> bool {
        self.head().last_hash == other.head().last_hash
    }
}

impl Eq for Log {}

impl Log {
    pub(crate) fn new() -> Self {
        let id = ExecutionId::new("e").unwrap();
        Self { versions: vec![Version { state: Arc::new(State::absent(id)), record: None }] }
    }

    pub(crate) fn head(&self) -> &Arc<State> {
        &self.versions.last().unwrap().state
    }

    /// The newest version's number.
    pub(crate) fn len(&self) -> u8 {
        u8::try_from(self.versions.len() - 1).unwrap()
    }

    pub(crate) fn at(&self, version: u8) -> &Arc<State> {
        &self.versions[usize::from(version)].state
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = (&Arc<State>, &Arc<Record>)> {
        self.versions.windows(2).map(|pair| (&pair[0].state, pair[1].record.as_ref().unwrap()))
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = EventType> {
        self.records().flat_map(|(_, record)| &record.events).map(|event| event.event.event_type())
    }

    /// Decides requests against a version, without appending.
    pub(crate) fn propose(&self, version: u8, requests: &[Request]) -> Proposal {
        let mut state = State::clone(self.at(version));
        let mut batch = Batch::new(&mut state);
        let answers = requests.iter().map(|request| batch.decide(request)).collect();
        let record = batch.seal(&mut || EventId::new("ev").unwrap()).map(|sealed| sealed.record);
        Proposal { state, record, answers }
    }

    /// Appends if nobody was faster.
    pub(crate) fn append(&mut self, expected: u8, proposal: &Proposal) -> bool {
        if self.len() != expected {
            return false;
        }
        let record = Arc::new(proposal.record.clone().expect("something to append"));
        self.versions.push(Version { state: Arc::new(proposal.state.clone()), record: Some(record) });
        true
    }

    /// What a store without an expected version would do: the events land wherever the log has got to.
    pub(crate) fn append_blindly(&mut self, proposal: &Proposal) {
        let mut record = proposal.record.clone().expect("something to append");
        let head = self.head();
        (record.seq, record.first_event, record.prev_hash) =
            (head.version.next(), head.events.next(), head.last_hash);
        let mut state = State::clone(head);
        state.fold(&record.encode()).expect("a record that fits");
        self.versions.push(Version { state: Arc::new(state), record: Some(Arc::new(record)) });
    }

    /// Whether an event of the log is the end of the execution.
    pub(crate) const fn is_end(kind: EventType) -> bool {
        matches!(
            kind,
            EventType::ExecutionCompleted | EventType::ExecutionFailed | EventType::ExecutionCanceled
        )
    }

    /// Nodes that were started although they had succeeded.
    pub(crate) fn restarted(&self) -> bool {
        let mut succeeded = Vec::new();
        for (_, record) in self.records() {
            for envelope in &record.events {
                match &envelope.event {
                    Event::NodeSucceeded(payload) => succeeded.push(payload.node_id.clone()),
                    Event::NodeStarted(payload) if succeeded.contains(&payload.node_id) => return true,
                    _ => {}
                }
            }
        }
        false
    }
}
