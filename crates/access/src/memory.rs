//! What a gate remembers: keys that were right, keys that were wrong, and checks that are under way. All behind one lock, so that a key
//! that is being checked, or has just been, is never checked twice.
//!
//! Keys stand here by their fingerprint, never in clear. Right and wrong ones have rooms of their own: no number of wrong ones pushes a
//! right one out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hashlink::LruCache;
use pyoco_core::time::Timestamp;
use pyoco_ports::{ErrorKind, StoreError, StoredKey};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::gate::Holder;

/// A key without the key: a hash that only this process can make.
pub(crate) type Fingerprint = [u8; 32];

/// Which writing of a record it was. The bytes count as well as the number: a bucket that was made again counts from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Writing {
    revision: u64,
    digest: [u8; 32],
}

impl Writing {
    pub(crate) fn of(stored: &StoredKey) -> Self {
        Self { revision: stored.revision, digest: Sha256::digest(&stored.record).into() }
    }
}

/// A key that was right.
#[derive(Debug, Clone)]
pub(crate) struct Verified {
    pub(crate) holder: Holder,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) writing: Writing,
    /// When the reading of its record began: what was written later may be unknown here.
    pub(crate) read_at: Instant,
}

impl Verified {
    /// Whether somebody who came at `arrival` may be judged by it.
    pub(crate) fn serves(&self, arrival: Instant, trust: Duration) -> bool {
        arrival.saturating_duration_since(self.read_at) < trust
    }
}

/// What came out of a check; everybody who waited for it is told the same.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    Right(Verified),
    Wrong,
    Throttled,
    Busy,
    Unknown(Trouble),
}

/// A store's error that many can be told of.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    kind: ErrorKind,
    operation: &'static str,
    detail: Option<Arc<str>>,
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        let detail = error.source.map(|source| source.to_string().into());
        Self { kind: error.kind, operation: error.operation, detail }
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        match trouble.detail {
            Some(detail) => Self::new(trouble.kind, trouble.operation, &*detail),
            None => Self::plain(trouble.kind, trouble.operation),
        }
    }
}

/// Where the verdict of a check will stand.
pub(crate) type Waiting = watch::Receiver<Option<Verdict>>;

/// What is remembered of a key.
#[derive(Debug)]
pub(crate) enum Recalled {
    /// It was right a moment ago.
    Right(Verified),
    /// It was wrong a moment ago.
    Wrong,
    /// Somebody is finding out.
    UnderWay(Waiting),
    /// Whoever asked has to find out, now: others wait for the report. It may have been right longer ago.
    Unchecked { known: Option<Verified>, report: watch::Sender<Option<Verdict>>, waiting: Waiting },
}

#[derive(Debug)]
pub(crate) struct Memory {
    right: LruCache<Fingerprint, Verified>,
    wrong: LruCache<Fingerprint, Instant>,
    under_way: HashMap<Fingerprint, Waiting>,
    trust: Duration,
    distrust: Duration,
}

impl Memory {
    pub(crate) fn new(most_right: usize, most_wrong: usize, trust: Duration, distrust: Duration) -> Self {
        Self {
            right: LruCache::new(most_right),
            wrong: LruCache::new(most_wrong),
            under_way: HashMap::new(),
            trust,
            distrust,
        }
    }

    /// What is known to somebody who came at `arrival`.
    pub(crate) fn recall(&mut self, fingerprint: &Fingerprint, arrival: Instant) -> Recalled {
        let known = self.right.get(fingerprint);
        if let Some(verified) = known.filter(|verified| verified.serves(arrival, self.trust)) {
            return Recalled::Right(verified.clone());
        }
        let is_recent = |since: &Instant| arrival.saturating_duration_since(*since) < self.distrust;
        if known.is_none() && self.wrong.get(fingerprint).is_some_and(is_recent) {
            return Recalled::Wrong;
        }
        if let Some(waiting) = self.under_way.get(fingerprint) {
            return Recalled::UnderWay(waiting.clone());
        }
        let known = known.cloned();
        let (report, waiting) = watch::channel(None);
        self.under_way.insert(*fingerprint, waiting.clone());
        Recalled::Unchecked { known, report, waiting }
    }

    /// A check is over; without a verdict when it broke off.
    pub(crate) fn learn(&mut self, fingerprint: &Fingerprint, verdict: Option<&Verdict>, now: Instant) {
        self.under_way.remove(fingerprint);
        match verdict {
            Some(Verdict::Right(verified)) => {
                self.wrong.remove(fingerprint);
                self.right.insert(*fingerprint, verified.clone());
            }
            Some(Verdict::Wrong) => {
                self.right.remove(fingerprint);
                self.wrong.insert(*fingerprint, now);
            }
            // Nothing was learnt. What was right longer ago is asked about again.
            Some(Verdict::Throttled | Verdict::Busy | Verdict::Unknown(_)) | None => {}
        }
    }
}
