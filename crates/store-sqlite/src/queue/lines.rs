//! Which jobs wait, in which order, and who has which of them in hand. In memory: the folder belongs to one process, so what the file
//! says when it is opened and what this process commits is all there is to know, and neither a look nor a lease costs a write. Whoever
//! opens the folder next has none of these workers, and every job is there to be taken again.
//!
//! What a transaction changes is noted while it is written and comes true here when it is committed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pyoco_core::ids::{ExecutionId, Tag};
use pyoco_core::time::Timestamp;

/// Every job of the file.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: HashMap<Tag, Line>,
    hand: HashMap<i64, Held>,
    /// What the transaction at hand changes.
    noted: Vec<Change>,
    last_id: i64,
}

/// The jobs of a tag. Instants are microseconds since 1970.
#[derive(Debug, Default)]
struct Line {
    /// May be taken at once, in the order of arrival.
    ready: BTreeMap<i64, Waiting>,
    /// Were given back, to be taken from an instant on.
    delayed: BTreeMap<(i64, i64), Waiting>,
    /// In hand, by the end of their leases.
    leased: BTreeSet<(i64, i64)>,
}

impl Line {
    /// The oldest job that may be taken. One whose lease has run out stays with who has it until somebody else takes it.
    fn oldest(&self, now: i64) -> Option<i64> {
        let ready = self.ready.first_key_value().map(|(id, _)| *id);
        let run_out = self.leased.range(..=(now, i64::MAX)).map(|(_, id)| *id).min();
        ready.into_iter().chain(run_out).min()
    }

    /// Those whose delay is over may be taken, in the order of their arrival.
    fn call_in(&mut self, now: i64) {
        while let Some(first) = self.delayed.first_entry().filter(|first| first.key().0 <= now) {
            let (_, id) = *first.key();
            self.ready.insert(id, first.remove());
        }
    }
}

/// A job that nobody has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) execution: ExecutionId,
    /// How often it was delivered.
    pub(super) delivered: u32,
}

/// A job that somebody has, or had and was not heard any more.
#[derive(Debug)]
struct Held {
    tag: Tag,
    job: Waiting,
    until: i64,
    /// Its execution has ended and the row is gone; whoever has it has not said so yet.
    is_done: bool,
}

/// Where a row stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) tag: Tag,
    pub(super) available_at: i64,
}

/// What becomes of a job.
#[derive(Debug)]
pub(super) enum Change {
    Added(i64, Tag, ExecutionId),
    Removed(Row),
    /// Its execution has ended, so whoever has it need not remove it.
    Ended(Row),
    GivenBack {
        id: i64,
        number: u32,
        at: i64,
    },
}

/// A job that was lent: its number, and which delivery this is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lent {
    pub(super) id: i64,
    pub(super) tag: Tag,
    pub(super) job: Waiting,
}

impl Lines {
    /// A job of the file as it is opened.
    pub(super) fn load(&mut self, row: &Row, job: Waiting) {
        self.last_id = self.last_id.max(row.id);
        self.put(row, job);
    }

    /// A number for a new job: later than all others, and not one that was used before the file was opened, as far as the clock is
    /// right; where it is not, two jobs of different times share a number, which harms nobody.
    pub(super) fn next_id(&mut self, now: Option<Timestamp>) -> i64 {
        let now = now.map_or(0, |now| now.as_micros());
        self.last_id = self.last_id.saturating_add(1).max(now);
        self.last_id
    }

    /// Something that comes true with the transaction at hand.
    pub(super) fn note(&mut self, change: Change) {
        self.noted.push(change);
    }

    /// A transaction begins; what the one before has noted and not committed did not happen.
    pub(super) fn begin(&mut self) {
        self.noted.clear();
    }

    /// The transaction is committed.
    pub(super) fn commit(&mut self) {
        for change in std::mem::take(&mut self.noted) {
            match change {
                Change::Added(id, tag, execution) => {
                    self.put(&Row { id, tag, available_at: 0 }, Waiting { execution, delivered: 0 });
                }
                Change::Removed(row) => self.remove(&row),
                Change::Ended(row) => match self.hand.get_mut(&row.id) {
                    Some(held) => {
                        held.is_done = true;
                        let lease = (held.until, row.id);
                        self.line(&row.tag).leased.remove(&lease);
                    }
                    None => self.remove(&row),
                },
                Change::GivenBack { id, number, at } => {
                    if self.holds(id, number)
                        && let Some(held) = self.let_go(id)
                    {
                        self.put(&Row { id, tag: held.tag, available_at: at }, held.job);
                    }
                }
            }
        }
    }

    /// Lends the oldest jobs of any of the tags until an instant.
    pub(super) fn lend(&mut self, tags: &[Tag], most: usize, until: Timestamp, now: Timestamp) -> Vec<Lent> {
        let (now, until) = (now.as_micros(), until.as_micros());
        self.hand.retain(|_, held| !held.is_done || held.until > now);
        for tag in tags {
            self.line(tag).call_in(now);
        }
        let mut lent = Vec::new();
        while lent.len() < most {
            let oldest = tags.iter().filter_map(|tag| Some((self.lines.get(tag)?.oldest(now)?, tag))).min();
            let Some((id, tag)) = oldest else { break };
            let Some(mut job) = self.pick(id, tag) else { break };
            job.delivered = job.delivered.saturating_add(1);
            self.line(tag).leased.insert((until, id));
            let held = Held { tag: tag.clone(), job: job.clone(), until, is_done: false };
            self.hand.insert(id, held);
            lent.push(Lent { id, tag: tag.clone(), job });
        }
        lent
    }

    /// Takes a job from where it stands: one that is ready, or one whose lease has run out.
    fn pick(&mut self, id: i64, tag: &Tag) -> Option<Waiting> {
        match self.let_go(id) {
            Some(held) => Some(held.job),
            None => self.line(tag).ready.remove(&id),
        }
    }

    /// Whoever has this delivery of a job keeps it longer.
    pub(super) fn extend(&mut self, id: i64, number: u32, until: Timestamp) {
        if !self.holds(id, number) {
            return;
        }
        if let Some(held) = self.hand.get_mut(&id) {
            let before = std::mem::replace(&mut held.until, until.as_micros());
            if let Some(line) = self.lines.get_mut(&held.tag) {
                line.leased.remove(&(before, id));
                line.leased.insert((until.as_micros(), id));
            }
        }
    }

    /// Whether somebody has this delivery of a job.
    pub(super) fn holds(&self, id: i64, number: u32) -> bool {
        self.hand.get(&id).is_some_and(|held| held.job.delivered == number && !held.is_done)
    }

    /// Whether somebody has a job.
    pub(super) fn is_held(&self, id: i64) -> bool {
        self.hand.get(&id).is_some_and(|held| !held.is_done)
    }

    /// Whether the row of a job that is let go was gone already.
    pub(super) fn was_done(&mut self, id: i64) -> bool {
        let is_done = self.hand.get(&id).is_some_and(|held| held.is_done);
        if is_done {
            self.hand.remove(&id);
        }
        is_done
    }

    /// Whose job it is; nothing if there is none.
    pub(super) fn execution_of(&self, id: i64, tag: &Tag) -> Option<ExecutionId> {
        if let Some(held) = self.hand.get(&id) {
            return Some(held.job.execution.clone());
        }
        let line = self.lines.get(tag)?;
        let delayed = || line.delayed.iter().find(|((_, other), _)| *other == id).map(|(_, job)| job);
        line.ready.get(&id).or_else(delayed).map(|job| job.execution.clone())
    }

    /// The row of a job in hand was not there.
    pub(super) fn forget(&mut self, id: i64) {
        self.let_go(id);
    }

    /// Nobody got it after all.
    pub(super) fn take_back(&mut self, id: i64) {
        if let Some(held) = self.let_go(id) {
            self.put(&Row { id, tag: held.tag, available_at: 0 }, held.job);
        }
    }

    /// When the first job of any of the tags may be taken: 0 at once.
    pub(super) fn earliest(&self, tags: &[Tag]) -> Option<i64> {
        let lines = tags.iter().filter_map(|tag| self.lines.get(tag));
        lines
            .filter_map(|line| {
                let ready = (!line.ready.is_empty()).then_some(0);
                let delayed = line.delayed.first_key_value().map(|((at, _), _)| *at);
                let leased = line.leased.first().map(|(at, _)| *at);
                ready.into_iter().chain(delayed).chain(leased).min()
            })
            .min()
    }

    /// How many jobs of a tag there are, waiting or in hand.
    pub(super) fn depth(&self, tag: &Tag) -> usize {
        self.lines.get(tag).map_or(0, |line| line.ready.len() + line.delayed.len() + line.leased.len())
    }

    /// Whose they are.
    pub(super) fn executions(&self, tag: &Tag) -> Vec<ExecutionId> {
        let Some(line) = self.lines.get(tag) else { return Vec::new() };
        let waiting = line.ready.values().chain(line.delayed.values()).map(|job| &job.execution);
        let held = line.leased.iter().filter_map(|(_, id)| self.hand.get(id)).map(|held| &held.job.execution);
        waiting.chain(held).cloned().collect()
    }

    fn line(&mut self, tag: &Tag) -> &mut Line {
        self.lines.entry(tag.clone()).or_default()
    }

    fn put(&mut self, row: &Row, job: Waiting) {
        let line = self.line(&row.tag);
        if row.available_at == 0 {
            line.ready.insert(row.id, job);
        } else {
            line.delayed.insert((row.available_at, row.id), job);
        }
    }

    fn remove(&mut self, row: &Row) {
        self.let_go(row.id);
        if let Some(line) = self.lines.get_mut(&row.tag) {
            line.ready.remove(&row.id);
            line.delayed.remove(&(row.available_at, row.id));
        }
    }

    fn let_go(&mut self, id: i64) -> Option<Held> {
        let held = self.hand.remove(&id)?;
        if let Some(line) = self.lines.get_mut(&held.tag) {
            line.leased.remove(&(held.until, id));
        }
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(name: &str) -> Tag {
        Tag::new(name).unwrap()
    }

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    /// Jobs 1, 2, … of these tags, each of an execution of its own.
    fn with(tags: &[&str]) -> Lines {
        let mut lines = Lines::default();
        for name in tags {
            let id = lines.next_id(None);
            let execution = ExecutionId::new(&format!("e{id}")).unwrap();
            lines.note(Change::Added(id, tag(name), execution));
        }
        lines.commit();
        lines
    }

    fn ids(lent: &[Lent]) -> Vec<(i64, u32)> {
        lent.iter().map(|lent| (lent.id, lent.job.delivered)).collect()
    }

    #[test]
    fn the_oldest_of_all_tags_are_lent_first_and_none_twice() {
        let mut lines = with(&["a", "b", "other", "a"]);
        assert_eq!(ids(&lines.lend(&[tag("a"), tag("b"), tag("a")], 2, at(10), at(0))), [(1, 1), (2, 1)]);
        assert_eq!(ids(&lines.lend(&[tag("a"), tag("b")], 9, at(10), at(0))), [(4, 1)]);
        assert!(lines.lend(&[tag("a"), tag("b")], 9, at(10), at(0)).is_empty());
        assert_eq!((lines.depth(&tag("a")), lines.depth(&tag("other"))), (2, 1));
    }

    #[test]
    fn what_was_not_committed_did_not_happen() {
        let mut lines = with(&["a"]);
        lines.note(Change::Removed(Row { id: 1, tag: tag("a"), available_at: 0 }));
        lines.note(Change::Added(2, tag("a"), ExecutionId::new("e2").unwrap()));
        lines.begin();
        lines.commit();
        assert_eq!(lines.executions(&tag("a")), [ExecutionId::new("e1").unwrap()]);
    }

    #[test]
    fn a_lease_that_ran_out_goes_to_who_takes_next_and_can_be_extended_until_then() {
        let mut lines = with(&["a"]);
        lines.lend(&[tag("a")], 1, at(10), at(0));
        assert!(lines.lend(&[tag("a")], 1, at(20), at(9)).is_empty());
        assert_eq!(lines.earliest(&[tag("a")]), Some(10));
        lines.extend(1, 1, at(15));
        assert!(lines.lend(&[tag("a")], 1, at(20), at(14)).is_empty());
        assert!(lines.is_held(1));
        assert_eq!(ids(&lines.lend(&[tag("a")], 1, at(30), at(15))), [(1, 2)]);
        // Whoever had it before can neither keep it nor give it back.
        lines.extend(1, 1, at(99));
        lines.note(Change::GivenBack { id: 1, number: 1, at: 0 });
        lines.commit();
        assert_eq!(lines.earliest(&[tag("a")]), Some(30));
    }

    #[test]
    fn a_job_that_was_given_back_comes_when_its_delay_is_over_in_the_order_of_its_arrival() {
        let mut lines = with(&["a", "a"]);
        lines.lend(&[tag("a")], 2, at(10), at(0));
        lines.note(Change::GivenBack { id: 2, number: 1, at: 5 });
        lines.note(Change::GivenBack { id: 1, number: 1, at: 7 });
        lines.commit();
        assert_eq!(lines.earliest(&[tag("a")]), Some(5));
        assert!(lines.lend(&[tag("a")], 2, at(20), at(4)).is_empty());
        assert_eq!(ids(&lines.lend(&[tag("a")], 2, at(20), at(7))), [(1, 2), (2, 2)]);
    }

    #[test]
    fn the_end_of_an_execution_leaves_its_holder_nothing_to_remove() {
        let mut lines = with(&["a", "a"]);
        lines.lend(&[tag("a")], 1, at(10), at(0));
        for id in [1, 2] {
            lines.note(Change::Ended(Row { id, tag: tag("a"), available_at: 0 }));
        }
        lines.commit();
        assert_eq!((lines.depth(&tag("a")), lines.earliest(&[tag("a")])), (0, None));
        assert!(lines.was_done(1) && !lines.was_done(1) && !lines.was_done(2));
    }

    #[test]
    fn numbers_rise_also_when_the_clock_does_not() {
        let mut lines = with(&["a"]);
        assert_eq!(lines.next_id(Some(at(100))), 100);
        assert_eq!(lines.next_id(Some(at(50))), 101);
    }
}
