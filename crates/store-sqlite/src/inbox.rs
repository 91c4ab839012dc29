//! What waits for a thread: many put something in, and the thread takes all of it at once. Nobody is woken while something is locked: on
//! a busy machine who is woken often runs at once, in the place of whoever woke it, and would find the lock held.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The way in; closed when it is dropped.
pub(crate) struct Inbox<T>(Arc<Shared<T>>);

/// The way out, for one thread. When it is gone, whatever is still inside is dropped.
pub(crate) struct Outlet<T>(Arc<Shared<T>>);

struct Shared<T> {
    inside: Mutex<Inside<T>>,
    filled: Condvar,
}

struct Inside<T> {
    waiting: Vec<T>,
    /// Why nothing more comes in, if it is so.
    refuses: Option<Refused>,
    /// Somebody wants the thread to look around, and puts nothing in.
    is_rung: bool,
    /// How often in a row one was taken out alone.
    alone: u32,
}

/// So often in a row somebody must have been alone before it is quiet again.
const QUIET: u32 = 8;

/// What a look into an inbox gives.
pub(crate) enum Taken<T> {
    /// Everything that was there, up to as many as were asked for.
    Some(Vec<T>),
    /// Nothing came in time.
    Late,
    /// Nothing is there, and somebody has rung.
    Rung,
    /// Nothing is there, and nothing will come.
    Over,
}

/// Why an inbox takes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It was closed.
    Closed,
    /// The thread that took things out is gone.
    Deserted,
}

/// Both ends of an inbox.
pub(crate) fn inbox<T>() -> (Inbox<T>, Outlet<T>) {
    let inside = Mutex::new(Inside { waiting: Vec::new(), refuses: None, is_rung: false, alone: QUIET });
    let shared = Arc::new(Shared { inside, filled: Condvar::new() });
    (Inbox(shared.clone()), Outlet(shared))
}

impl<T> Inbox<T> {
    /// Puts something in. An error when nobody will take it: then it is dropped.
    pub(crate) fn put(&self, some: impl IntoIterator<Item = T>) -> Result<(), Refused> {
        let mut inside = self.0.lock();
        if let Some(refused) = inside.refuses {
            return Err(refused);
        }
        let was_empty = inside.waiting.is_empty();
        inside.waiting.extend(some);
        drop(inside);
        // Whoever came before has woken it.
        if was_empty {
            self.0.filled.notify_one();
        }
        Ok(())
    }

    /// Takes nothing more; what is inside is still taken out.
    pub(crate) fn close(&self) {
        self.0.lock().refuses.get_or_insert(Refused::Closed);
        self.0.filled.notify_one();
    }

    /// Has the thread look around.
    pub(crate) fn ring(&self) {
        let was_rung = std::mem::replace(&mut self.0.lock().is_rung, true);
        if !was_rung {
            self.0.filled.notify_one();
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.lock().refuses.is_none()
    }

    /// Whether it is open, nothing is inside, and the last who came were alone.
    pub(crate) fn is_quiet(&self) -> bool {
        let inside = self.0.lock();
        inside.refuses.is_none() && inside.waiting.is_empty() && inside.alone >= QUIET
    }

    /// Two have met: it is not quiet for a while.
    pub(crate) fn disturb(&self) {
        self.0.lock().alone = 0;
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> Outlet<T> {
    /// Waits for something, for ever unless it is said how long.
    pub(crate) fn take(&self, most: usize, patience: Option<Duration>) -> Taken<T> {
        let is_idle =
            |inside: &mut Inside<T>| inside.waiting.is_empty() && inside.refuses.is_none() && !inside.is_rung;
        let inside = self.0.lock();
        let mut inside = match patience {
            None => self.0.filled.wait_while(inside, is_idle).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                let waited = self.0.filled.wait_timeout_while(inside, patience, is_idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        let is_rung = std::mem::take(&mut inside.is_rung);
        let waiting = inside.waiting.len();
        inside.alone = match waiting {
            0 => inside.alone,
            1 => inside.alone.saturating_add(1),
            _ => 0,
        };
        match waiting {
            0 if inside.refuses.is_some() => Taken::Over,
            0 if is_rung => Taken::Rung,
            0 => Taken::Late,
            many if many <= most => Taken::Some(std::mem::take(&mut inside.waiting)),
            _ => Taken::Some(inside.waiting.drain(..most).collect()),
        }
    }
}

impl<T> Drop for Outlet<T> {
    fn drop(&mut self) {
        let mut inside = self.0.lock();
        inside.refuses.get_or_insert(Refused::Deserted);
        let left = std::mem::take(&mut inside.waiting);
        drop(inside);
        drop(left);
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Inside<T>> {
        // Nothing that a panic could leave half done is changed under it.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(outlet: &Outlet<u32>, most: usize) -> Vec<u32> {
        match outlet.take(most, Some(Duration::ZERO)) {
            Taken::Some(taken) => taken,
            Taken::Late | Taken::Rung | Taken::Over => Vec::new(),
        }
    }

    #[test]
    fn everything_is_taken_in_the_order_in_which_it_came() {
        let (inbox, outlet) = inbox();
        for number in 1..=5 {
            inbox.put([number]).unwrap();
        }
        assert_eq!((taken(&outlet, 2), taken(&outlet, 9)), (vec![1, 2], vec![3, 4, 5]));
        assert!(matches!(outlet.take(9, Some(Duration::ZERO)), Taken::Late));
    }

    #[test]
    fn who_waits_is_woken_by_the_first_and_by_the_end() {
        let (inbox, outlet) = inbox();
        let waiting = std::thread::spawn(move || {
            let mut all = Vec::new();
            while let Taken::Some(taken) = outlet.take(9, None) {
                all.extend(taken);
            }
            all
        });
        (1..=100).for_each(|number| inbox.put([number]).unwrap());
        drop(inbox);
        assert_eq!(waiting.join().unwrap(), (1..=100).collect::<Vec<_>>());
    }

    #[test]
    fn who_rings_is_heard_once_and_keeps_nothing_from_being_taken() {
        let (inbox, outlet) = inbox();
        inbox.ring();
        assert!(matches!(outlet.take(9, None), Taken::Rung) && inbox.is_quiet());
        inbox.put([7]).unwrap();
        inbox.ring();
        assert_eq!(taken(&outlet, 9), [7]);
        assert!(matches!(outlet.take(9, Some(Duration::ZERO)), Taken::Late));
    }

    #[test]
    fn it_is_quiet_while_nobody_waits_and_the_last_were_alone() {
        let (inbox, outlet) = inbox();
        let one_by_one = || {
            for number in 1..=QUIET {
                assert!(!inbox.is_quiet(), "{number}");
                inbox.put([number]).unwrap();
                taken(&outlet, 9);
            }
        };
        assert!(inbox.is_quiet());
        inbox.put([1]).unwrap();
        assert!(!inbox.is_quiet(), "somebody waits");
        taken(&outlet, 9);
        assert!(inbox.is_quiet());
        inbox.put([2, 3]).unwrap();
        taken(&outlet, 9);
        one_by_one();
        assert!(inbox.is_quiet());
        inbox.disturb();
        one_by_one();
        assert!(inbox.is_quiet());
        inbox.close();
        assert!(!inbox.is_quiet());
    }

    #[test]
    fn what_nobody_will_take_is_dropped() {
        let (inbox, outlet) = inbox();
        let told = Arc::new(());
        inbox.put([told.clone()]).unwrap();
        drop(outlet);
        assert_eq!(Arc::strong_count(&told), 1, "whoever waits for an answer is not left waiting");
        assert_eq!((inbox.put([told]), inbox.is_open()), (Err(Refused::Deserted), false));
    }
}
