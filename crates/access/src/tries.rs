//! How often a secret of one key was guessed wrong lately. A hashing counts from its beginning, so that many at once are no way around
//! the limit; it is given back when the secret was right.

use std::collections::VecDeque;
use std::time::Duration;

use hashlink::LruCache;
use pyoco_core::ids::KeyId;
use tokio::time::Instant;

/// Keys whose failures are remembered. Only keys that exist get here.
const MOST_KEYS: usize = 10_000;

/// Failures, by key.
#[derive(Debug)]
pub(crate) struct Tries {
    most: usize,
    span: Duration,
    spent: LruCache<KeyId, VecDeque<Instant>>,
}

impl Tries {
    /// At most so many in a span of time.
    pub(crate) fn new(most: usize, span: Duration) -> Self {
        Self { most, span, spent: LruCache::new(MOST_KEYS) }
    }

    /// Whether nothing more may be tried on this key now.
    pub(crate) fn are_spent(&mut self, id: &KeyId, now: Instant) -> bool {
        let Some(spent) = self.spent.get_mut(id) else { return false };
        while spent.front().is_some_and(|at| now.saturating_duration_since(*at) >= self.span) {
            spent.pop_front();
        }
        spent.len() >= self.most
    }

    /// A try begins; `None` when there is none left.
    pub(crate) fn begin(&mut self, id: &KeyId, now: Instant) -> Option<Instant> {
        if self.are_spent(id, now) {
            return None;
        }
        match self.spent.get_mut(id) {
            Some(spent) => spent.push_back(now),
            None => {
                self.spent.insert(id.clone(), VecDeque::from([now]));
            }
        }
        Some(now)
    }

    /// The try that began then was none.
    pub(crate) fn give_back(&mut self, id: &KeyId, began: Instant) {
        let Some(spent) = self.spent.get_mut(id) else { return };
        if let Some(place) = spent.iter().position(|at| *at == began) {
            spent.remove(place);
        }
        if spent.is_empty() {
            self.spent.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tries_come_back_one_by_one_as_time_passes() {
        let mut tries = Tries::new(2, Duration::from_secs(60));
        let (id, other) = (KeyId::new("aaaaaaaa").unwrap(), KeyId::new("bbbbbbbb").unwrap());
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(tries.begin(&id, at(0)).is_some() && tries.begin(&id, at(30)).is_some());
        assert!(tries.begin(&id, at(59)).is_none() && tries.are_spent(&id, at(59)));
        assert!(!tries.are_spent(&other, at(59)), "another key has its own");
        assert!(tries.begin(&id, at(60)).is_some());
        assert!(tries.begin(&id, at(61)).is_none());
        assert!(tries.begin(&id, at(90)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_was_right_is_given_back() {
        let mut tries = Tries::new(1, Duration::from_secs(60));
        let id = KeyId::new("aaaaaaaa").unwrap();
        let began = tries.begin(&id, Instant::now()).unwrap();
        assert!(tries.are_spent(&id, Instant::now()));
        tries.give_back(&id, began);
        assert!(!tries.are_spent(&id, Instant::now()));
        assert!(tries.spent.is_empty(), "a key without failures takes no room");
    }
}
