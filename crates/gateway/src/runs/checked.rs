//! Flows that were checked and found good. The same text is submitted again and again; to hash it takes a hundredth of the time that it
//! takes to read it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyoco_core::digest::Digest;
use pyoco_core::json::Weight;
use serde_json::{Map, Value};

/// So many are remembered.
const MOST: usize = 64;
/// Those with larger defaults are not: what is remembered must stay small.
const LARGEST: usize = 16 << 10;

/// The defaults of a flow.
pub(crate) type Defaults = Arc<Map<String, Value>>;

/// Which were found good.
#[derive(Default)]
pub(crate) struct Checked(Mutex<Known>);

#[derive(Default)]
struct Known {
    defaults: HashMap<Digest, Defaults>,
    /// In the order in which they came.
    order: VecDeque<Digest>,
}

impl Checked {
    /// The defaults of a flow that was found good.
    pub(crate) fn get(&self, digest: &Digest) -> Option<Defaults> {
        self.known().defaults.get(digest).cloned()
    }

    /// Remembers a flow.
    pub(crate) fn remember(&self, digest: Digest, defaults: &Defaults) {
        // Not the text: a short one may name the same thing many times.
        if Weight::of(&**defaults).bytes > LARGEST {
            return;
        }
        let mut known = self.known();
        if known.defaults.insert(digest, defaults.clone()).is_none() {
            known.order.push_back(digest);
        }
        if known.order.len() > MOST
            && let Some(oldest) = known.order.pop_front()
        {
            known.defaults.remove(&oldest);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Whatever is remembered is true.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered_and_large_ones_are_not() {
        let (checked, defaults) = (Checked::default(), Defaults::default());
        let digest = |number: usize| Digest::of_bytes(&number.to_be_bytes());
        for number in 0..=MOST {
            checked.remember(digest(number), &defaults);
            checked.remember(digest(number), &defaults);
        }
        assert!(checked.get(&digest(0)).is_none());
        assert!((1..=MOST).all(|number| checked.get(&digest(number)).is_some()));
        let large = Map::from_iter([("text".to_owned(), Value::from("x".repeat(LARGEST)))]);
        checked.remember(digest(MOST + 1), &Arc::new(large));
        assert!(checked.get(&digest(MOST + 1)).is_none());
    }
}
