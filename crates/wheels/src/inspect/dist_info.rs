//! The folder in which a wheel describes itself: that there is one, and that it speaks of the wheel that the file is named after.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use pep440_rs::Version;

use super::Limits;
use super::directory::Entry;
use super::entry_points::{self, EntryPoint};
use super::fields::Fields;
use super::unsound::Unsound;
use crate::compatibility::TagSet;
use crate::name::{WheelName, normalised};

const SUFFIX: &str = ".dist-info";

/// What METADATA says that somebody here wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The name of the package, as its author spells it.
    pub name: String,
    /// Its version, as its author spells it.
    pub version: String,
    /// One line about it.
    pub summary: Option<String>,
    /// The versions of Python it is for.
    pub requires_python: Option<String>,
    /// What it needs. Nothing of this is installed with it.
    pub requires_dist: Vec<String>,
    /// Labels and addresses, as `label, address`.
    pub project_urls: Vec<String>,
    /// The long text about it; empty when there is none.
    pub description: String,
}

/// The one folder `<distribution>-<version>.dist-info`.
pub(super) struct DistInfo {
    folder: String,
}

impl DistInfo {
    pub(super) fn find(entries: &[Entry], name: &WheelName) -> Result<Self, Unsound> {
        let ends = |folder: &&str| folder.to_ascii_lowercase().ends_with(SUFFIX);
        let folders: BTreeSet<&str> = entries
            .iter()
            .filter_map(|entry| entry.name.split_once('/').map(|(folder, _)| folder))
            .filter(ends)
            .collect();
        let mut folders = folders.into_iter();
        let (folder, None) = (folders.next(), folders.next()) else {
            return Err(Unsound::archive("has more than one dist-info folder"));
        };
        let folder = folder.ok_or_else(|| Unsound::archive("has no dist-info folder"))?;
        let parts = folder.strip_suffix(SUFFIX).and_then(|stem| stem.rsplit_once('-'));
        match parts {
            Some((package, version)) if is_of(name, package, version) => {
                Ok(Self { folder: folder.to_owned() })
            }
            Some(_) | None => Err(Unsound::entry(folder, "is named after another wheel than the file")),
        }
    }

    pub(super) fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.folder)
    }

    /// What takes the files that are read as a whole, while all files go by.
    pub(super) fn keeper(&self, limits: &Limits) -> Keeper {
        let kept = |file| Kept { path: self.path(file), bytes: None };
        Keeper {
            most: limits.metadata_bytes,
            metadata: kept("METADATA"),
            wheel: kept("WHEEL"),
            entry_points: kept("entry_points.txt"),
        }
    }
}

fn is_of(name: &WheelName, package: &str, version: &str) -> bool {
    normalised(package) == name.package() && Version::from_str(version).ok().as_ref() == Some(name.version())
}

struct Kept {
    path: String,
    bytes: Option<Vec<u8>>,
}

impl Kept {
    fn fields(&self) -> Result<Fields<'_>, Unsound> {
        match &self.bytes {
            Some(bytes) => Fields::read(&self.path, bytes),
            None => Err(Unsound::archive(format!("has no {}", self.path))),
        }
    }
}

/// The files of the folder that are read as a whole.
pub(super) struct Keeper {
    most: u64,
    metadata: Kept,
    wheel: Kept,
    entry_points: Kept,
}

impl Keeper {
    /// Where an entry is to be kept, when it is one of these files.
    pub(super) fn place(&mut self, entry: &Entry) -> Result<Option<&mut Vec<u8>>, Unsound> {
        let mut all = [&mut self.metadata, &mut self.wheel, &mut self.entry_points].into_iter();
        let Some(kept) = all.find(|kept| kept.path == entry.name) else { return Ok(None) };
        if entry.size > self.most {
            return Err(Unsound::entry(&entry.name, format!("is larger than {} bytes", self.most)));
        }
        Ok(Some(kept.bytes.get_or_insert_default()))
    }

    /// Reads what has been taken.
    pub(super) fn read(&self, name: &WheelName) -> Result<(Metadata, Vec<EntryPoint>), Unsound> {
        let metadata = self.read_metadata(name)?;
        self.check_wheel(name)?;
        let entry_points = match &self.entry_points.bytes {
            Some(bytes) => entry_points::read(&self.entry_points.path, bytes)?,
            None => Vec::new(),
        };
        Ok((metadata, entry_points))
    }

    fn read_metadata(&self, wheel: &WheelName) -> Result<Metadata, Unsound> {
        let fields = self.metadata.fields()?;
        let wrong = |what| Err(Unsound::entry(&self.metadata.path, what));
        if !matches!(fields.one("Metadata-Version")?.split_once('.'), Some(("1" | "2", _))) {
            return wrong("has a Metadata-Version that is not known");
        }
        let (name, version) = (fields.one("Name")?, fields.one("Version")?);
        if normalised(name) != wheel.package() {
            return wrong("has another Name than the file");
        }
        if Version::from_str(version).ok().as_ref() != Some(wheel.version()) {
            return wrong("has another Version than the file");
        }
        let first = |field: &str| fields.all(field).next();
        let all = |field: &str| fields.all(field).map(str::to_owned).collect();
        let body = fields.body.trim();
        let description = if body.is_empty() { first("Description").unwrap_or_default() } else { body };
        Ok(Metadata {
            name: name.to_owned(),
            version: version.to_owned(),
            summary: first("Summary").map(str::to_owned),
            requires_python: first("Requires-Python").map(str::to_owned),
            requires_dist: all("Requires-Dist"),
            project_urls: all("Project-URL"),
            description: description.to_owned(),
        })
    }

    fn check_wheel(&self, wheel: &WheelName) -> Result<(), Unsound> {
        let fields = self.wheel.fields()?;
        let wrong = |what| Err(Unsound::entry(&self.wheel.path, what));
        if !matches!(fields.one("Wheel-Version")?.split_once('.'), Some(("1", _))) {
            return wrong("has a Wheel-Version that is not 1");
        }
        let mut tags = BTreeSet::new();
        for tag in fields.all("Tag") {
            match TagSet::parse(tag) {
                Ok(set) => tags.extend(set.expanded()),
                Err(_) => return wrong("has a Tag that cannot be read"),
            }
        }
        if tags != wheel.tags().expanded().collect() {
            return wrong("has other tags than the name of the file");
        }
        Ok(())
    }
}
