//! Which jobs are in a worker's hand, and until when. In memory: the folder belongs to one process, so whoever opens it next has none
//! of these workers, and every job is there to be taken again. A lease therefore costs nobody a write.

use std::collections::HashMap;

use pyoco_core::time::Timestamp;

/// The jobs in hand, by the number of their row.
#[derive(Debug, Default)]
pub(crate) struct Hand(HashMap<i64, Held>);

#[derive(Debug)]
struct Held {
    /// In microseconds since 1970. From then on somebody else may have it.
    until: i64,
    /// How often it was delivered.
    number: u32,
    stand: Stand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stand {
    /// Somebody has it, or had it and was not heard any more.
    InHand,
    /// Whoever had it has given it back.
    GivenBack,
    /// Its execution has ended and the row is gone; whoever has it has not said so yet.
    Done,
}

impl Hand {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Lends a job until an instant; the number of this delivery, or nothing if somebody has it.
    pub(super) fn lend(&mut self, id: i64, delivered: u32, until: Timestamp, now: Timestamp) -> Option<u32> {
        let before = match self.0.get(&id) {
            Some(held) if held.until > now.as_micros() => return None,
            Some(held) => held.number.max(delivered),
            None => delivered,
        };
        let number = before.saturating_add(1);
        self.0.insert(id, Held { until: until.as_micros(), number, stand: Stand::InHand });
        Some(number)
    }

    /// Whoever has this delivery of a job keeps it longer.
    pub(super) fn extend(&mut self, id: i64, number: u32, until: Timestamp) {
        if let Some(held) = self.0.get_mut(&id)
            && (held.number, held.stand) == (number, Stand::InHand)
        {
            held.until = until.as_micros();
        }
    }

    /// Whoever has this delivery of a job gives it back, to be taken from an instant on. `false` if somebody else has it by now, or
    /// nobody can.
    pub(super) fn give_back(&mut self, id: i64, number: u32, at: i64) -> bool {
        match self.0.get_mut(&id) {
            Some(held) if held.number == number && held.stand != Stand::Done => {
                (held.until, held.stand) = (at, Stand::GivenBack);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Forgets those whose rows are gone and whose holders never said so.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        self.0.retain(|_, held| held.stand != Stand::Done || held.until > now.as_micros());
    }

    /// There is no such job any more.
    pub(super) fn forget(&mut self, id: i64) {
        self.0.remove(&id);
    }

    /// Whether somebody has it.
    pub(super) fn holds(&self, id: i64) -> bool {
        self.0.get(&id).is_some_and(|held| held.stand == Stand::InHand)
    }

    /// The row of a job is gone with the end of its execution.
    pub(super) fn done(&mut self, id: i64) {
        match self.0.get_mut(&id) {
            Some(held) if held.stand == Stand::InHand => held.stand = Stand::Done,
            Some(_) | None => self.forget(id),
        }
    }

    /// Whether the row of a job that is let go was gone already.
    pub(super) fn was_done(&mut self, id: i64) -> bool {
        let is_done = self.0.get(&id).is_some_and(|held| held.stand == Stand::Done);
        if is_done {
            self.0.remove(&id);
        }
        is_done
    }

    /// When the job may be taken, as far as those who have it are concerned; nothing if nobody has.
    pub(super) fn until(&self, id: i64) -> Option<i64> {
        self.0.get(&id).map(|held| held.until)
    }
}
