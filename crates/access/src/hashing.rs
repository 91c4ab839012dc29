//! The slow comparison of a secret with a record: PBKDF2 on threads of its own, few at once, and few that wait.
//!
//! It is slow on purpose, so whoever can make us do it can make us do nothing else. Hence the bounds, and hence the threads: they step
//! back behind those that answer requests, which no pool of the runtime would do.

use std::fmt;
use std::sync::Arc;

use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use zeroize::Zeroizing;

use crate::record::Proof;
use crate::secret::Pepper;

/// Derives a hash of a password; the proof says how. Tests count and hold it.
pub(crate) type Derive = dyn Fn(&[u8], &Proof) -> [u8; 32] + Send + Sync;

/// The derivation that records name.
pub(crate) fn derive(password: &[u8], proof: &Proof) -> [u8; 32] {
    pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, &proof.salt, proof.iterations)
}

/// What is hashed of a secret.
pub(crate) fn password(secret: &str, pepper: Option<&Pepper>) -> Zeroizing<Vec<u8>> {
    let pepper = pepper.map_or("", Pepper::as_str);
    let mut password = Zeroizing::new(Vec::with_capacity(secret.len() + pepper.len()));
    password.extend_from_slice(secret.as_bytes());
    password.extend_from_slice(pepper.as_bytes());
    password
}

/// Room for a few hashings at once, and for a few that wait.
pub(crate) struct Hashing {
    derive: Arc<Derive>,
    pepper: Option<Pepper>,
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

/// A place among those who hash and those who wait for it.
#[derive(Debug)]
pub(crate) struct Place(OwnedSemaphorePermit);

/// It could not be hashed: a mistake of ours, or the process is ending.
#[derive(Debug)]
pub(crate) struct NotHashed;

impl Hashing {
    pub(crate) fn new(derive: Arc<Derive>, pepper: Option<Pepper>, at_once: usize, waiting: usize) -> Self {
        let at_once = at_once.clamp(1, Semaphore::MAX_PERMITS / 2);
        let places = at_once + waiting.min(Semaphore::MAX_PERMITS / 2);
        Self {
            derive,
            pepper,
            places: Arc::new(Semaphore::new(places)),
            turns: Arc::new(Semaphore::new(at_once)),
        }
    }

    /// A place, if one is free.
    pub(crate) fn place(&self) -> Option<Place> {
        self.places.clone().try_acquire_owned().ok().map(Place)
    }

    /// Whether the secret is the one of the record. Place and turn are held until the hashing itself is over, even when nobody waits
    /// for it any more.
    pub(crate) async fn fits(&self, place: Place, secret: &str, proof: Proof) -> Result<bool, NotHashed> {
        let password = password(secret, self.pepper.as_ref());
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| NotHashed)?;
        let derive = self.derive.clone();
        let (tell, told) = oneshot::channel();
        let thread = std::thread::Builder::new().name("key-hashing".to_owned());
        let started = thread.spawn(move || {
            step_back();
            let fits: bool = derive(&password, &proof).ct_eq(&proof.hash).into();
            drop((turn, place.0));
            // Whoever asked may have gone.
            let _ = tell.send(fits);
        });
        started.map_err(|_| NotHashed)?;
        told.await.map_err(|_| NotHashed)
    }
}

/// Lets every other thread of this process go first, as far as the system can: still a tenth of a core when the machine is full, so
/// that a good key is not kept waiting for seconds.
fn step_back() {
    // Elsewhere the whole process would step back.
    #[cfg(target_os = "linux")]
    if let Err(reason) = rustix::process::nice(10) {
        tracing::debug!(%reason, "the hashing of keys does not step back");
    }
}

impl fmt::Debug for Hashing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hashing")
            .field("free_places", &self.places.available_permits())
            .finish_non_exhaustive()
    }
}
