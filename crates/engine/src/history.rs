//! What happened: the events of an execution by number, as they come, and the state as of one of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyoco_core::event::{EventEnvelope, EventType};
use pyoco_core::ids::{EventSeq, ExecutionId, Version};
use pyoco_core::record::{LogError, Record};
use pyoco_core::state::State;
use pyoco_ports::{ErrorKind, StoreError, StoredRecord};

use crate::watch::Watcher;
use crate::{Engine, EngineError};

/// So many records are read at a time.
const RECORDS_AT_ONCE: usize = 256;
/// A page of events ends with the record in which it grew beyond this.
const PAGE_BYTES: usize = 4 << 20;
/// Where many follow one execution, each hears a little later and more at once: otherwise every event costs a wake-up and a write for
/// each of them, and they hold up the one who writes.
const CROWD_PAUSE: Duration = Duration::from_millis(2);
/// So many of the newest records are kept for those who follow.
const RECENT: usize = 256;

/// An event with its number.
#[derive(Debug, Clone)]
pub struct NumberedEvent {
    /// Its number, from 1.
    pub seq: EventSeq,
    record: Arc<Record>,
    position: usize,
}

impl NumberedEvent {
    /// The event.
    pub fn envelope(&self) -> Option<&EventEnvelope> {
        self.record.events.get(self.position)
    }
}

/// A page of events.
#[derive(Debug, Clone)]
pub struct EventPage {
    /// The events.
    pub events: Vec<NumberedEvent>,
    /// The number of the last event there is.
    pub last: EventSeq,
}

impl Engine {
    /// The events of an execution after one, so many at most; `None` if there is no such execution.
    pub async fn events(
        &self,
        execution: &ExecutionId,
        after: EventSeq,
        limit: usize,
    ) -> Result<Option<EventPage>, EngineError> {
        let seen = self.look(execution, |state| (state.version_before(after), state.last_event())).await?;
        let Some((mut version, last)) = seen else { return Ok(None) };
        let (mut events, mut bytes) = (Vec::new(), 0);
        let is_full = |events: &[NumberedEvent], bytes| !events.is_empty() && bytes >= PAGE_BYTES;
        while events.len() < limit && after < last && !is_full(&events, bytes) {
            let records = self.store.read_some(execution, version, RECORDS_AT_ONCE).await?;
            let Some(newest) = records.last() else { break };
            version = newest.version;
            for stored in &records {
                if is_full(&events, bytes) {
                    break;
                }
                let record = Arc::new(decode(execution, stored)?);
                bytes += stored.bytes.len();
                events.extend(numbered(&record).filter(|event| event.seq > after && event.seq <= last));
            }
        }
        events.truncate(limit);
        Ok(Some(EventPage { events, last }))
    }

    /// The state as of an event; `None` if there is no such execution or no such event.
    pub async fn state_at(
        &self,
        execution: &ExecutionId,
        event: EventSeq,
    ) -> Result<Option<State>, EngineError> {
        let seen = self.look(execution, |state| {
            let is_newest = state.last_event() == event && event > EventSeq(0);
            (is_newest.then(|| state.clone()), state.version_after(event))
        });
        let until = match seen.await? {
            Some((None, until)) => until,
            Some((newest, _)) => return Ok(newest),
            None => return Ok(None),
        };
        let limit = usize::try_from(until.0).unwrap_or(usize::MAX);
        let records = self.store.read_some(execution, Version(0), limit).await?;
        let id = execution.clone();
        // A long history takes a while to fold: not on a thread that others wait for.
        let folded = tokio::task::spawn_blocking(move || {
            State::as_of(id, records.iter().map(|record| record.bytes.as_slice()), event)
        });
        let folded = folded.await.map_err(|_| StoreError::plain(ErrorKind::Closed, "fold"))?;
        folded.map_err(|error| EngineError::Log { execution: execution.clone(), error })
    }

    /// Follows the events of an execution from behind one; `None` if there is no such execution.
    pub async fn follow(
        &self,
        execution: &ExecutionId,
        after: EventSeq,
    ) -> Result<Option<Follower>, EngineError> {
        // Before the look, so that nothing is missed in between.
        let watcher = self.watch(execution);
        let seen = |state: &State| {
            let over_at = state.phase.is_terminal().then_some(state.last_event());
            (state.version_before(after), over_at)
        };
        let Some((version, over_at)) = self.look(execution, seen).await? else { return Ok(None) };
        let (engine, execution) = (self.clone(), execution.clone());
        Ok(Some(Follower { engine, execution, watcher, version, after, over_at, has_read: false }))
    }
}

/// Somebody who follows the events of an execution.
#[derive(Debug)]
pub struct Follower {
    engine: Engine,
    execution: ExecutionId,
    watcher: Watcher,
    /// Up to which record everything was given out.
    version: Version,
    after: EventSeq,
    /// The event after which nobody need wait for more.
    over_at: Option<EventSeq>,
    /// What stood in the log when it began was read.
    has_read: bool,
}

impl Follower {
    /// The next events, as soon as there are some; `None` once the execution has ended and everything was told. It may be dropped
    /// while it waits and asked again.
    pub async fn next(&mut self) -> Result<Option<Vec<NumberedEvent>>, EngineError> {
        loop {
            if self.is_over() {
                return Ok(None);
            }
            if self.has_read {
                // Whoever has everything waits, and asks nobody.
                self.watcher.beyond(self.version).await;
                if self.watcher.is_in_a_crowd() {
                    tokio::time::sleep(CROWD_PAUSE).await;
                }
            }
            let records = self.watcher.recent().after(&self.engine, &self.execution, self.version).await?;
            match records.last() {
                Some(newest) => self.version = newest.seq,
                // It was removed: nobody will ever tell the rest.
                None if self.watcher.is_gone() => return Ok(None),
                None if self.has_read => drop(self.watcher.changed().await),
                None if self.watcher.newest() <= self.version => {}
                // More was told than there is to read. Another process may have removed it.
                None => self.look_again().await,
            }
            self.has_read |= self.watcher.newest() <= self.version;
            let after = self.after;
            let is_told = |event: &NumberedEvent| {
                event.seq > after && !(event.seq.0 == 4 && pyoco_faults::is_planted("event-skipped"))
            };
            let events: Vec<NumberedEvent> = records.iter().flat_map(numbered).filter(is_told).collect();
            if let Some(last) = events.last() {
                self.after = last.seq;
                self.over_at =
                    self.over_at.or_else(|| events.iter().find(|event| ends(event)).map(|event| event.seq));
                return Ok(Some(events));
            }
        }
    }

    /// Looks whether somebody else has written without telling. Good before a sign of life, which says that all was told.
    pub async fn look_again(&self) {
        // Looking tells everybody who watches.
        if let Err(error) = self.engine.look(&self.execution, |_| ()).await {
            tracing::debug!(run_id = %self.execution, reason = %error, "it cannot be looked at now");
        }
    }

    /// Whether the execution has ended and everything was told.
    pub fn is_over(&self) -> bool {
        self.over_at.is_some_and(|over_at| self.after >= over_at)
    }
}

/// The newest records of an execution that somebody follows, so that each is read once and not once for each follower.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    records: Mutex<VecDeque<Arc<Record>>>,
    reading: tokio::sync::Mutex<()>,
}

impl Recent {
    /// Takes a record that was appended or read just now.
    pub(crate) fn add(&self, record: &Arc<Record>) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        match records.back().map(|last| last.seq.next()) {
            Some(next) if record.seq < next => return,
            // What lies in between is not here: what is older is no use.
            Some(next) if record.seq > next => records.clear(),
            Some(_) | None => {}
        }
        records.push_back(record.clone());
        if records.len() > RECENT {
            records.pop_front();
        }
    }

    /// Records after a version, without a gap; none if there are none yet.
    async fn after(
        &self,
        engine: &Engine,
        execution: &ExecutionId,
        version: Version,
    ) -> Result<Vec<Arc<Record>>, EngineError> {
        if let Some(known) = self.known(version) {
            return Ok(known);
        }
        // One reads for all who wait here.
        let reading = self.reading.lock().await;
        if let Some(known) = self.known(version) {
            return Ok(known);
        }
        let stored = engine.store.read_some(execution, version, RECORDS_AT_ONCE).await?;
        let decoded = stored.iter().map(|stored| decode(execution, stored).map(Arc::new));
        let records = decoded.collect::<Result<Vec<_>, _>>()?;
        for record in &records {
            self.add(record);
        }
        drop(reading);
        Ok(records)
    }

    fn known(&self, version: Version) -> Option<Vec<Arc<Record>>> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = (records.front()?.seq, records.back()?.seq);
        let is_here = first <= version.next() && version < last;
        is_here.then(|| records.iter().filter(|record| record.seq > version).cloned().collect())
    }
}

fn numbered(record: &Arc<Record>) -> impl Iterator<Item = NumberedEvent> + '_ {
    let first = record.first_event.0;
    (0..record.events.len()).zip(first..).map(|(position, seq)| NumberedEvent {
        seq: EventSeq(seq),
        record: record.clone(),
        position,
    })
}

/// Nothing but the archive mark follows. Where a cancel was requested only a cancel ends.
fn ends(event: &NumberedEvent) -> bool {
    let kind = event.envelope().map(|envelope| envelope.event.event_type());
    matches!(
        kind,
        Some(EventType::ExecutionCompleted | EventType::ExecutionFailed | EventType::ExecutionCanceled)
    )
}

pub(crate) fn decode(execution: &ExecutionId, stored: &StoredRecord) -> Result<Record, EngineError> {
    Record::decode(&stored.bytes).map_err(|error| EngineError::Log {
        execution: execution.clone(),
        error: LogError::Unreadable { seq: stored.version, error },
    })
}
