//! Looking at the shelf: when, what is chosen, and what becomes of a failure.

use std::collections::HashMap;
use std::time::Duration;

use pyoco_core::ids::WorkerId;
use pyoco_core::notice::Notice;
use pyoco_ports::{ShelfListening, WheelRecord};
use pyoco_wheels::{Candidate, PinnedWheel, Sha256Digest, WheelSet, choose};
use serde_json::Value;
use tokio::time::Instant;

use super::error::WheelError;
use super::manifest::Manifest;
use super::report::{Change, Report};
use super::{Current, Wheelhouse, used_of};

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// No pause is longer, unless the shelf is looked at less often anyway.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// When the shelf is looked at next.
#[derive(Default)]
pub(super) struct Schedule {
    listening: Option<Box<dyn ShelfListening>>,
    /// Something was heard since the last look.
    was_heard: bool,
    next: Option<Instant>,
    failures: u32,
    /// What a worker of this folder had before was looked for.
    is_restored: bool,
}

impl Schedule {
    /// Returns when something is heard; never when nobody listens.
    async fn heard(&mut self) {
        match &mut self.listening {
            // One that ends is asked for again before the next look, which is then made in any case.
            Some(listening) => {
                if !listening.changed().await {
                    self.listening = None;
                }
                self.was_heard = true;
            }
            None => std::future::pending().await,
        }
    }

    fn is_due(&self) -> bool {
        self.was_heard || self.next.is_none_or(|next| next <= Instant::now())
    }

    /// Returns when the shelf is to be looked at. May be dropped and asked again.
    async fn due(&mut self) {
        let next = self.next;
        let resting = async {
            if let Some(next) = next {
                tokio::time::sleep_until(next).await;
            }
        };
        if !self.is_due() {
            tokio::select! {
                biased;
                () = self.heard() => {}
                () = resting => {}
            }
        }
    }
}

impl Wheelhouse {
    /// Returns when the shelf is to be looked at. May be dropped and asked again.
    pub(crate) async fn due(&self) {
        self.schedule.lock().await.due().await;
    }

    /// Looks at the shelf if it is time to, and has what is chosen of it installed; again if something came while that took its
    /// time, because whoever takes a run now wants it with that. Whether there is something new to tell.
    pub(crate) async fn sync_if_due(&self, worker_id: &WorkerId) -> bool {
        let mut is_news = false;
        while self.look_if_due(worker_id).await {
            is_news = true;
        }
        is_news
    }

    /// One look. A failure is said and leaves everything as it was. Whether there is something new to tell.
    async fn look_if_due(&self, worker_id: &WorkerId) -> bool {
        let mut schedule = self.schedule.lock().await;
        if schedule.listening.is_none() {
            // Before the look, so that nothing is missed that happens after it. Without it the interval has to do.
            schedule.listening = self.store.listen_to_wheels().await.ok();
        }
        tokio::select! {
            biased;
            () = schedule.heard() => {}
            () = std::future::ready(()) => {}
        }
        if !schedule.is_due() {
            return false;
        }
        schedule.was_heard = false;
        if !schedule.is_restored {
            self.restore().await;
            schedule.is_restored = true;
        }
        let synced = self.sync().await;
        let now = self.clock.now();
        match synced {
            Ok(change) => {
                let is_news = !(change.updated.is_empty() && change.removed.is_empty());
                if is_news {
                    let (updated, removed) = (&change.updated, &change.removed);
                    tracing::info!(%worker_id, ?updated, ?removed, "wheels were installed for the runs to come");
                }
                schedule.failures = 0;
                schedule.next = Some(Instant::now() + self.options.every);
                self.report_mut(|report| report.succeeded(change, now));
                is_news
            }
            Err(error) => {
                notice!(error, Notice::WheelSyncFailed, %worker_id, reason = %error);
                let pause = FIRST_PAUSE.saturating_mul(1 << schedule.failures.min(10));
                schedule.failures = schedule.failures.saturating_add(1);
                schedule.next = Some(Instant::now() + pause.min(LONGEST_PAUSE.max(self.options.every)));
                self.report_mut(|report| report.failed(&error.to_string(), now));
                true
            }
        }
    }

    /// What the registry shows of it.
    pub(crate) fn shown(&self) -> Value {
        let installed = self.current().manifest;
        self.report_mut(|report| report.shown(&installed))
    }

    fn report_mut<T>(&self, change: impl FnOnce(&mut Report) -> T) -> T {
        change(&mut self.report.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    async fn sync(&self) -> Result<Change, WheelError> {
        let records = self.store.wheels().await?;
        // Without wheels nobody needs Python for them, nor a folder: what a worker runs by other means it runs all the same.
        if self.current().used.is_empty() && !records.iter().any(|record| self.is_for_us(record)) {
            self.current_mut().is_known = true;
            return Ok(Change::default());
        }
        let (folders, interpreter) = (self.folders().await?, self.interpreter().await?);
        let candidates: Vec<Candidate> = records
            .iter()
            .map(|record| Candidate { name: record.name.clone(), tags: record.tags.clone() })
            .collect();
        let chosen = choose(&candidates, &self.tags, interpreter.supported());
        let by_name: HashMap<&str, &WheelRecord> =
            records.iter().map(|record| (record.name.as_str(), record)).collect();
        let selected: Vec<&WheelRecord> =
            chosen.selected.iter().filter_map(|wheel| by_name.get(wheel.name.as_str()).copied()).collect();
        let pinned = |record: &&WheelRecord| PinnedWheel::new(record.name.clone(), record.sha256.clone());
        let set = WheelSet::new(selected.iter().map(pinned).collect())
            .map_err(|error| WheelError::NotASet(error.to_string()))?;
        let before = self.current();
        let used = used_of(&set);
        let folder = if used == before.used { before.folder.clone() } else { self.folder_of(&set).await? };
        let manifest = Manifest::of(selected.iter().copied(), &before.manifest, self.clock.now());
        let is_same = |name: &str| {
            let hash = |manifest: &Manifest| manifest.0.get(name).map(|wheel| wheel.sha256_hex.clone());
            hash(&manifest) == hash(&before.manifest)
        };
        let change = Change {
            selected: manifest.0.keys().cloned().collect(),
            updated: manifest.0.keys().filter(|name| !is_same(name)).cloned().collect(),
            removed: before
                .manifest
                .0
                .keys()
                .filter(|name| !manifest.0.contains_key(*name))
                .cloned()
                .collect(),
            skipped: chosen.skipped_incompatible.into_iter().cloned().collect(),
        };
        let is_switch = used != before.used;
        if manifest != before.manifest || !folders.manifest().exists() {
            manifest.write(folders.manifest()).await?;
        }
        *self.current_mut() = Current { used, folder, manifest, is_known: true };
        if is_switch {
            folders.tidy().await;
        }
        Ok(change)
    }

    fn is_for_us(&self, wheel: &WheelRecord) -> bool {
        wheel.tags.is_empty() || wheel.tags.iter().any(|tag| self.tags.contains(tag))
    }

    /// Takes up what this folder had when the worker was ended, if it is still there: until the shelf can be read and what is on it
    /// can be installed, it is the best there is.
    async fn restore(&self) {
        let (Ok(folders), Ok(interpreter)) = (self.folders().await, self.interpreter().await) else { return };
        let manifest = Manifest::read(folders.manifest()).await;
        let (candidates, hashes): (Vec<Candidate>, Vec<Sha256Digest>) =
            manifest.candidates().into_iter().unzip();
        let hashes: HashMap<&str, &Sha256Digest> =
            candidates.iter().map(|wheel| wheel.name.as_str()).zip(&hashes).collect();
        let chosen = choose(&candidates, &self.tags, interpreter.supported());
        let pinned = chosen.selected.iter().filter_map(|wheel| {
            Some(PinnedWheel::new(wheel.name.clone(), (*hashes.get(wheel.name.as_str())?).clone()))
        });
        let Ok(set) = WheelSet::new(pinned.collect()) else { return };
        let (key, used) = (super::sets::key(&set, interpreter), used_of(&set));
        if let Ok(Some(folder)) = folders.hold(&key, self.clock.now()).await {
            let manifest = manifest.only(set.wheels());
            let folder = Some(std::sync::Arc::new(folder));
            *self.current_mut() = Current { used, folder, manifest, is_known: true };
        }
    }
}
