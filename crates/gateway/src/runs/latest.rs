//! The newest snapshot of each run that is watched, written once for all who watch it.
//!
//! Who may see a run is not decided here: each watch asks for itself, and then sends what was written for another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyoco_core::digest::Digest;
use pyoco_core::ids::{ExecutionId, Version};
use pyoco_core::state::State;

use super::snapshot::{Room, Shown};
use super::watch::ascii;

/// What is shared of the runs that are watched.
#[derive(Default)]
pub(crate) struct Latest(Mutex<HashMap<ExecutionId, Weak<Shelf>>>);

/// The newest snapshot of one run, without task records and with them. It goes with the last one who watches.
#[derive(Default)]
pub(crate) struct Shelf([Mutex<Option<Arc<Written>>>; 2]);

/// A snapshot as it is sent.
pub(crate) struct Written {
    /// The record that it shows. By its fingerprint: a run of the same name may come after one that was removed.
    pub(crate) version: Version,
    hash: Digest,
    /// The number of the last event that it shows.
    pub(crate) event: u64,
    pub(crate) updated_at: Option<f64>,
    /// Its JSON form.
    pub(crate) text: String,
}

impl Latest {
    /// Where the snapshots of a run are.
    pub(crate) fn of(&self, run: &ExecutionId) -> Arc<Shelf> {
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shelf) = shelves.get(run).and_then(Weak::upgrade) {
            return shelf;
        }
        // There are no more than watches, so that looking at all of them is nothing.
        shelves.retain(|_, shelf| shelf.strong_count() > 0);
        let shelf = Arc::new(Shelf::default());
        shelves.insert(run.clone(), Arc::downgrade(&shelf));
        shelf
    }
}

impl Shelf {
    /// The snapshot of a state, if somebody has written it.
    pub(crate) fn get(&self, state: &State, with_records: bool) -> Option<Arc<Written>> {
        let known = self.place(with_records).lock().unwrap_or_else(PoisonError::into_inner);
        known.clone().filter(|known| (known.version, known.hash) == (state.version, state.last_hash))
    }

    /// Keeps a snapshot for the others.
    pub(crate) fn put(&self, written: Arc<Written>, with_records: bool) {
        *self.place(with_records).lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
    }

    const fn place(&self, with_records: bool) -> &Mutex<Option<Arc<Written>>> {
        let [without, with] = &self.0;
        if with_records { with } else { without }
    }
}

impl Written {
    /// Writes a snapshot down.
    pub(crate) fn of(shown: Shown, room: &mut Room) -> Self {
        let (version, hash, event) = (shown.version, shown.hash, shown.event);
        let updated_at = shown.snapshot.updated_at;
        Self { version, hash, event, updated_at, text: ascii(&shown.form(room)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(version: u64, text: &str) -> Arc<Written> {
        let (hash, text) = (Digest::of_bytes(text.as_bytes()), text.to_owned());
        Arc::new(Written { version: Version(version), hash, event: 1, updated_at: None, text })
    }

    #[test]
    fn all_who_watch_a_run_share_one_shelf_and_it_goes_with_the_last() {
        let (latest, name) = (Latest::default(), |name: &str| ExecutionId::new(name).unwrap());
        let (one, other) = (latest.of(&name("e-1")), latest.of(&name("e-1")));
        assert!(Arc::ptr_eq(&one, &other));
        drop((one, other));
        let _kept = latest.of(&name("e-2"));
        assert_eq!(latest.0.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_snapshot_is_found_for_its_very_record_and_its_own_form() {
        let shelf = Shelf::default();
        let mut state = State::absent(ExecutionId::new("e-1").unwrap());
        (state.version, state.last_hash) = (Version(3), Digest::of_bytes(b"three"));
        shelf.put(written(3, "three"), true);
        assert!(shelf.get(&state, true).is_some() && shelf.get(&state, false).is_none());
        shelf.put(written(3, "of another run of this name"), true);
        assert!(shelf.get(&state, true).is_none());
    }
}
