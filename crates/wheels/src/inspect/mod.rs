//! Whether a file is a sound wheel. Readers of zip archives differ in what they overlook; so what is taken here is what all of
//! them read alike, byte for byte, and everything else is refused.
//!
//! The steps go from cheap to dear, and each relies on the ones before: the end record and the central directory
//! (`directory`), the names (`path`), the places of the entries in the file (`layout`), and only then what the entries hold
//! (`content`), held against RECORD (`record`), METADATA, WHEEL and entry_points.txt (`dist_info`, `fields`, `entry_points`).

mod content;
mod directory;
mod dist_info;
mod entry_points;
mod fields;
mod layout;
mod path;
mod record;
mod unsound;

use std::io::{Read, Seek};

use crate::name::WheelName;

use dist_info::DistInfo;
use record::Record;

pub use dist_info::Metadata;
pub use entry_points::EntryPoint;
pub use unsound::{InspectError, Unsound};

/// How large what a wheel holds may be. The size of the file itself is the business of whoever receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Files and folders.
    pub entries: usize,
    /// The central directory: names, and what little stands beside them.
    pub directory_bytes: u64,
    /// All entries together, inflated.
    pub inflated_bytes: u64,
    /// One entry, inflated.
    pub entry_bytes: u64,
    /// How many bytes one byte of the file may become, for each entry and for all together.
    pub ratio: u64,
    /// What may be inflated whatever its ratio: libraries are padded to large pages, and small files repeat themselves.
    pub ratio_floor_bytes: u64,
    /// METADATA, WHEEL and entry_points.txt, each.
    pub metadata_bytes: u64,
    /// RECORD.
    pub record_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            entries: 10_000,
            directory_bytes: 8 * MIB,
            inflated_bytes: 512 * MIB,
            entry_bytes: 256 * MIB,
            ratio: 100,
            ratio_floor_bytes: 8 * MIB,
            metadata_bytes: MIB,
            record_bytes: 16 * MIB,
        }
    }
}

/// What a sound wheel says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wheel {
    /// Of its METADATA.
    pub metadata: Metadata,
    /// Of its entry_points.txt, in the order they stand there; empty when there is none.
    pub entry_points: Vec<EntryPoint>,
    /// How many files it holds, its own description included and folders not.
    pub files: usize,
    /// How large they are together.
    pub uncompressed_bytes: u64,
}

/// Reads a file from its beginning to its end, wherever it stands, and says whether it is a sound wheel of this name. Entries
/// are inflated in pieces and forgotten; what is held is the central directory, RECORD and the metadata, each within its limit.
///
/// # Errors
/// When it is not sound, in one sentence that names the entry; or when the file cannot be read.
pub fn inspect<F: Read + Seek>(
    file: &mut F,
    name: &WheelName,
    limits: &Limits,
) -> Result<Wheel, InspectError> {
    let mut archive = directory::read(file, limits)?;
    path::check_together(&archive.entries)?;
    layout::check(file, &mut archive)?;
    let dist_info = DistInfo::find(&archive.entries, name)?;
    let mut record = Record::read(file, &archive.entries, &dist_info, limits)?;
    let mut kept = dist_info.keeper(limits);
    for entry in &archive.entries {
        let mut hash = record.expected(entry)?;
        let mut place = kept.place(entry)?;
        content::read(file, entry, |piece| {
            if let Some(hash) = &mut hash {
                hash.update(piece);
            }
            if let Some(place) = &mut place {
                place.extend_from_slice(piece);
            }
        })?;
        if let Some(hash) = hash {
            hash.check(entry)?;
        }
    }
    let (metadata, entry_points) = kept.read(name)?;
    let files = archive.entries.iter().filter(|entry| !entry.is_folder);
    Ok(Wheel {
        metadata,
        entry_points,
        files: files.clone().count(),
        uncompressed_bytes: files.map(|entry| entry.size).sum(),
    })
}
