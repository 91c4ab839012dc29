//! `.installed.json`: what is installed for the next run, for people and for a worker that starts again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use pyoco_core::time::Timestamp;
use pyoco_ports::WheelRecord;
use pyoco_wheels::{Candidate, PinnedWheel, Sha256Digest, WheelName};
use serde::{Deserialize, Serialize};

use super::error::WheelError;
use super::folders::blocking;

/// What is installed, by the names of the wheels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest(pub(super) BTreeMap<String, Installed>);

/// One wheel that is installed, in the contract's form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Installed {
    pub(super) nuid: String,
    pub(super) package_name: String,
    pub(super) package_version: String,
    pub(super) size_bytes: u64,
    pub(super) sha256_hex: String,
    pub(super) tags: Vec<String>,
    /// In seconds since 1970.
    pub(super) installed_at: f64,
}

impl Manifest {
    /// What is installed once these are. A wheel that was there before keeps its time.
    pub(super) fn of<'a>(
        wheels: impl IntoIterator<Item = &'a WheelRecord>,
        before: &Self,
        now: Timestamp,
    ) -> Self {
        let installed = wheels.into_iter().map(|wheel| {
            let known = before.0.get(wheel.name.as_str());
            let known = known.filter(|known| known.sha256_hex == wheel.sha256.as_str());
            let mut tags = wheel.tags.clone();
            tags.sort_unstable();
            let installed = Installed {
                nuid: wheel.nuid.clone(),
                package_name: wheel.name.package().to_owned(),
                package_version: wheel.name.version().to_string(),
                size_bytes: wheel.size_bytes,
                sha256_hex: wheel.sha256.to_string(),
                tags,
                installed_at: known.map_or_else(|| now.as_unix_seconds(), |known| known.installed_at),
            };
            (wheel.name.to_string(), installed)
        });
        Self(installed.collect())
    }

    /// Reads what was installed last. One that cannot be read counts as none: the shelf says what there is to install.
    pub(super) async fn read(path: PathBuf) -> Self {
        let read = blocking(move || {
            let text = fs::read(&path).unwrap_or_default();
            Ok(serde_json::from_slice(&text).unwrap_or_default())
        });
        read.await.unwrap_or_default()
    }

    /// Writes it as a whole, or not at all.
    pub(super) async fn write(&self, path: PathBuf) -> Result<(), WheelError> {
        let text = serde_json::to_vec_pretty(self);
        blocking(move || {
            let written = text.map_err(io::Error::from).and_then(|text| replace(&path, &text));
            written.map_err(WheelError::disk("cannot write", &path))
        })
        .await
    }

    /// The wheels as candidates for a choice, with their hashes beside them. What makes no sense is left out.
    pub(super) fn candidates(&self) -> Vec<(Candidate, Sha256Digest)> {
        let read = |(name, installed): (&String, &Installed)| {
            let name = WheelName::parse(name).ok()?;
            let sha256 = Sha256Digest::parse(&installed.sha256_hex).ok()?;
            Some((Candidate { name, tags: installed.tags.clone() }, sha256))
        };
        self.0.iter().filter_map(read).collect()
    }

    /// Only these wheels.
    pub(super) fn only(mut self, wheels: &[PinnedWheel]) -> Self {
        self.0.retain(|name, _| wheels.iter().any(|wheel| wheel.name.as_str() == name));
        self
    }
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let mut file = tempfile::Builder::new().prefix(".installed-").tempfile_in(folder)?;
    file.write_all(text)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}
