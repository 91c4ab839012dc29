//! Plans that were made a moment ago. A burst of runs of one flow parses its text and asks for its imports once.
//!
//! Only what can hardly have changed is kept, and not for long: a plan whose callables could all be imported. Whether a
//! module was edited since is checked again in the process that runs its tasks.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyoco_core::digest::Digest;
use pyoco_core::plan::Plan;
use pyoco_core::time::{Millis, Timestamp};

use crate::wheels::WheelFolder;

/// A plan serves for so long.
const FRESH: Millis = Millis(1_000);
/// So many plans are kept at most.
const MOST: usize = 256;

/// A flow by its name, its text and whether it has a folder, and by the wheels that its modules may come from.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    flow: String,
    text: Digest,
    wheels: Option<PathBuf>,
}

impl Key {
    pub(super) fn new(flow: &str, text: Digest, wheels: Option<&WheelFolder>) -> Self {
        let wheels = wheels.map(|wheels| wheels.path().to_owned());
        Self { flow: flow.to_owned(), text, wheels }
    }
}

/// Plans by what they were made of.
#[derive(Debug, Default)]
pub(super) struct Recent {
    plans: Mutex<HashMap<Key, (Arc<Plan>, Timestamp)>>,
}

impl Recent {
    fn plans(&self) -> MutexGuard<'_, HashMap<Key, (Arc<Plan>, Timestamp)>> {
        // Each change is one step; a panic leaves nothing half done.
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, key: &Key, now: Timestamp) -> Option<Arc<Plan>> {
        let plans = self.plans();
        let (plan, made_at) = plans.get(key)?;
        (*made_at <= now && now < made_at.after(FRESH)).then(|| plan.clone())
    }

    pub(super) fn keep(&self, key: Key, plan: &Arc<Plan>, now: Timestamp) {
        let mut plans = self.plans();
        if plans.len() >= MOST {
            plans.clear();
        }
        plans.insert(key, (plan.clone(), now));
    }
}
