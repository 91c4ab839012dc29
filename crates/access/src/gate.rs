//! Admits the holders of keys: on every request, on every gateway, whether they are our friends or not.
//!
//! Hashing a secret costs as much as a thousand requests. So a key that was right is remembered by its fingerprint, and asking about it
//! again costs one reading of its record a second: a key that was revoked is refused within two seconds, on every gateway. A key that
//! was wrong is remembered too, for a few seconds. What is left is hashed a few at a time, and not often for one key id.
//!
//! When the store cannot be asked, nobody is let in on a guess.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use pyoco_core::access::Role;
use pyoco_core::ids::{KeyId, TenantId};
use pyoco_core::time::Timestamp;
use pyoco_ports::{ErrorKind, KeyRecords, StoreError};
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::hashing::{self, Derive, Hashing, NotHashed};
use crate::memory::{Fingerprint, Memory, Recalled, Verdict, Verified, Writing};
use crate::record::{KeyRecord, has_passed};
use crate::secret::{Key, NoRandomness, Pepper, parts, random};
use crate::tries::Tries;

#[cfg(test)]
mod tests;

/// What a gate says it was doing when it could not find out.
const OPERATION: &str = "check an API key";

/// Tells the time on the wall, for the end of keys. How long something is remembered is measured by a clock that never goes back.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Somebody who may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The key they showed, by its name.
    pub key_id: KeyId,
    /// Whose runs they may see and make.
    pub tenant: TenantId,
    /// How much they may do.
    pub role: Role,
}

/// Why somebody may not come in.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// They show nothing.
    #[error("no API key was shown")]
    NothingShown,
    /// What they show opens nothing. Why is not said: it would help whoever guesses.
    #[error("the API key opens nothing")]
    Wrong,
    /// Too many wrong secrets were tried on this key id lately; later again.
    #[error("too many wrong secrets were tried on this API key")]
    Throttled,
    /// Too many keys are being checked; later again.
    #[error("too many API keys are being checked")]
    Busy,
    /// Nobody can tell now.
    #[error(transparent)]
    Unknown(StoreError),
}

/// How much a gate remembers, and how much it bears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a key that was right is believed before its record is read again.
    pub trust: Duration,
    /// How long a key that was wrong is refused without another look.
    pub distrust: Duration,
    /// Keys that were right and are remembered.
    pub most_right: usize,
    /// Keys that were wrong and are remembered.
    pub most_wrong: usize,
    /// Hashings at once.
    pub hashings: usize,
    /// Hashings that wait for their turn.
    pub waiting: usize,
    /// Records of keys never seen before that are read at once.
    pub strangers: usize,
    /// Wrong secrets that may be hashed for one key id in [`Settings::span`].
    pub tries: usize,
    /// See [`Settings::tries`].
    pub span: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            trust: Duration::from_secs(1),
            distrust: Duration::from_secs(5),
            most_right: 10_000,
            most_wrong: 10_000,
            hashings: (cores / 2).max(1),
            waiting: 64,
            strangers: 256,
            tries: 20,
            span: Duration::from_secs(60),
        }
    }
}

/// Knows who may come in. Clones are the same gate.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    records: Arc<dyn KeyRecords>,
    now: Now,
    trust: Duration,
    seed: Zeroizing<[u8; 32]>,
    hashing: Hashing,
    strangers: Semaphore,
    memory: Mutex<Memory>,
    tries: Mutex<Tries>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("hashing", &self.0.hashing).finish_non_exhaustive()
    }
}

impl Gate {
    /// A gate that remembers nothing yet.
    pub fn new(
        records: Arc<dyn KeyRecords>,
        pepper: Option<Pepper>,
        now: Now,
        settings: &Settings,
    ) -> Result<Self, NoRandomness> {
        Self::deriving(Arc::new(hashing::derive), records, pepper, now, settings)
    }

    fn deriving(
        derive: Arc<Derive>,
        records: Arc<dyn KeyRecords>,
        pepper: Option<Pepper>,
        now: Now,
        settings: &Settings,
    ) -> Result<Self, NoRandomness> {
        let Settings { trust, distrust, most_right, most_wrong, hashings, waiting, .. } = *settings;
        Ok(Self(Arc::new(Inner {
            records,
            now,
            trust,
            seed: random()?,
            hashing: Hashing::new(derive, pepper, hashings, waiting),
            strangers: Semaphore::new(settings.strangers.clamp(1, Semaphore::MAX_PERMITS)),
            memory: Mutex::new(Memory::new(most_right, most_wrong, trust, distrust)),
            tries: Mutex::new(Tries::new(settings.tries, settings.span)),
        })))
    }

    /// Who shows this key, or nothing. Must be called on a tokio runtime.
    pub async fn admit(&self, shown: Option<&str>) -> Result<Holder, Refused> {
        let shown = shown.filter(|text| !text.is_empty()).ok_or(Refused::NothingShown)?;
        parts(shown).ok_or(Refused::Wrong)?;
        let fingerprint = self.0.fingerprint(shown);
        let arrival = Instant::now();
        loop {
            let recalled = self.0.memory().recall(&fingerprint, arrival);
            let waiting = match recalled {
                Recalled::Right(verified) => return self.0.let_in(&verified),
                Recalled::Wrong => return Err(Refused::Wrong),
                Recalled::UnderWay(waiting) => waiting,
                Recalled::Unchecked { known, report, waiting } => {
                    let check = Check { gate: self.0.clone(), fingerprint, report, verdict: None };
                    let key = Key::parse(shown).map_err(|_| Refused::Wrong)?;
                    let mut check = Box::pin(check.run(key, known));
                    // A key that nobody has is known at once, and a thousand a second are tried. What takes longer goes on in a task of
                    // its own: whoever asked may go away, and others wait for the answer.
                    let begun = poll_fn(|context| Poll::Ready(check.as_mut().poll(context))).await;
                    if begun.is_pending() {
                        tokio::spawn(check);
                    }
                    waiting
                }
            };
            match verdict(waiting).await? {
                // The record was read too long before this request came: it may have been revoked since.
                Verdict::Right(verified) if !verified.serves(arrival, self.0.trust) => {}
                Verdict::Right(verified) => return self.0.let_in(&verified),
                Verdict::Wrong => return Err(Refused::Wrong),
                Verdict::Throttled => return Err(Refused::Throttled),
                Verdict::Busy => return Err(Refused::Busy),
                Verdict::Unknown(trouble) => return Err(Refused::Unknown(trouble.into())),
            }
        }
    }
}

/// What a check finds out.
async fn verdict(mut waiting: watch::Receiver<Option<Verdict>>) -> Result<Verdict, Refused> {
    let broke_off = || Refused::Unknown(StoreError::plain(ErrorKind::Internal, OPERATION));
    let found = waiting.wait_for(Option::is_some).await.map_err(|_| broke_off())?;
    found.clone().ok_or_else(broke_off)
}

/// A check under way. However it ends, nobody waits for it afterwards.
struct Check {
    gate: Arc<Inner>,
    fingerprint: Fingerprint,
    report: watch::Sender<Option<Verdict>>,
    verdict: Option<Verdict>,
}

impl Check {
    async fn run(mut self, key: Key, known: Option<Verified>) {
        self.verdict = Some(self.gate.check(&key, known).await);
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        let verdict = self.verdict.take();
        self.gate.memory().learn(&self.fingerprint, verdict.as_ref(), Instant::now());
        self.report.send_replace(verdict);
    }
}

impl Inner {
    fn fingerprint(&self, shown: &str) -> Fingerprint {
        Sha256::new().chain_update(self.seed.as_slice()).chain_update(shown).finalize().into()
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tries(&self) -> MutexGuard<'_, Tries> {
        self.tries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of a key is looked at every time.
    fn let_in(&self, verified: &Verified) -> Result<Holder, Refused> {
        if has_passed(verified.expires_at, (self.now)()) {
            return Err(Refused::Wrong);
        }
        Ok(verified.holder.clone())
    }

    /// Reads the record, and hashes the secret unless it was right for this very writing of it before.
    async fn check(&self, key: &Key, known: Option<Verified>) -> Verdict {
        let stranger = match known {
            Some(_) => None,
            None if self.tries().are_spent(key.id(), Instant::now()) => return Verdict::Throttled,
            None => match self.strangers.try_acquire() {
                Ok(place) => Some(place),
                Err(_) => return Verdict::Busy,
            },
        };
        let read_at = Instant::now();
        let stored = match self.records.key(key.id()).await {
            Ok(Some(stored)) => stored,
            Ok(None) => return Verdict::Wrong,
            Err(error) => return Verdict::Unknown(error.into()),
        };
        drop(stranger);
        let writing = Writing::of(&stored);
        if let Some(known) = known.filter(|known| known.writing == writing) {
            return Verdict::Right(Verified { read_at, ..known });
        }
        let record = match KeyRecord::from_bytes(&stored.record) {
            Ok(record) if record.key_id == *key.id() => record,
            Ok(_) | Err(_) => {
                tracing::warn!(api_key_id = %key.id(), "the record of an API key cannot be read; the key opens nothing");
                return Verdict::Wrong;
            }
        };
        if record.is_over((self.now)()) {
            return Verdict::Wrong;
        }
        match self.compare(key, &record).await {
            Compared::Same => Verdict::Right(Verified {
                holder: Holder { key_id: record.key_id, tenant: record.tenant_id, role: record.role },
                expires_at: record.expires_at,
                writing,
                read_at,
            }),
            Compared::Other(verdict) => verdict,
        }
    }

    /// The slow part.
    async fn compare(&self, key: &Key, record: &KeyRecord) -> Compared {
        let Some(place) = self.hashing.place() else { return Compared::Other(Verdict::Busy) };
        let Some(began) = self.tries().begin(key.id(), Instant::now()) else {
            return Compared::Other(Verdict::Throttled);
        };
        match self.hashing.fits(place, key.secret(), record.proof.clone()).await {
            Ok(false) => Compared::Other(Verdict::Wrong),
            Ok(true) => {
                self.tries().give_back(key.id(), began);
                Compared::Same
            }
            Err(NotHashed) => {
                self.tries().give_back(key.id(), began);
                let trouble = StoreError::plain(ErrorKind::Internal, OPERATION);
                Compared::Other(Verdict::Unknown(trouble.into()))
            }
        }
    }
}

/// What a secret is to a record.
enum Compared {
    Same,
    Other(Verdict),
}
