//! A memory of bounded size that forgets what was not used lately.

use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::{HashMap, HashMapExt as _};

/// What was used lately, by key. Forgetting is always safe: whoever misses something asks the server.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    /// Two generations: when the young one has half of the room it becomes the old one, and the old one is forgotten.
    generations: Mutex<(HashMap<K, V>, HashMap<K, V>)>,
    half: usize,
}

impl<K: Eq + Hash + Clone, V: Clone> Recent<K, V> {
    /// Room for so many.
    pub(crate) fn new(most: usize) -> Self {
        Self { generations: Mutex::new((HashMap::new(), HashMap::new())), half: (most / 2).max(1) }
    }

    fn lock(&self) -> MutexGuard<'_, (HashMap<K, V>, HashMap<K, V>)> {
        // Nothing in here can be left half done.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, which counts as a use.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let mut generations = self.lock();
        if let Some(value) = generations.0.get(key) {
            return Some(value.clone());
        }
        let value = generations.1.remove(key)?;
        Self::keep(&mut generations, self.half, key.clone(), value.clone());
        Some(value)
    }

    /// Remembers, instead of what was known.
    pub(crate) fn put(&self, key: K, value: V) {
        let mut generations = self.lock();
        generations.1.remove(&key);
        Self::keep(&mut generations, self.half, key, value);
    }

    /// Forgets, and says what was known.
    pub(crate) fn remove(&self, key: &K) -> Option<V> {
        let mut generations = self.lock();
        let young = generations.0.remove(key);
        let old = generations.1.remove(key);
        young.or(old)
    }

    fn keep(generations: &mut (HashMap<K, V>, HashMap<K, V>), half: usize, key: K, value: V) {
        if generations.0.len() >= half && !generations.0.contains_key(&key) {
            // It will be as large as the one before: room that is made bit by bit is filled again and again.
            let young = HashMap::with_capacity(half);
            generations.1 = std::mem::replace(&mut generations.0, young);
        }
        generations.0.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let recent = Recent::new(10);
        for number in 0..100 {
            recent.put(number, number);
            assert_eq!(recent.get(&0), Some(0), "in use at {number}");
        }
        assert_eq!(recent.get(&50), None);
        assert_eq!(recent.get(&99), Some(99));
        let generations = recent.lock();
        assert!(generations.0.len() + generations.1.len() <= 10);
    }

    #[test]
    fn a_new_value_replaces_the_old_one_in_both_generations() {
        let recent = Recent::new(2);
        recent.put("a", 1);
        recent.put("b", 1);
        recent.put("a", 2);
        assert_eq!(recent.get(&"a"), Some(2));
        assert_eq!(recent.remove(&"a"), Some(2));
        assert_eq!(recent.get(&"a"), None);
    }
}
