//! RECORD: every file of a wheel, with its hash and its size.

use std::collections::HashMap;
use std::io::{Read, Seek};

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sha2::digest::DynDigest;
use sha2::{Sha256, Sha384, Sha512};

use super::directory::Entry;
use super::dist_info::DistInfo;
use super::unsound::{InspectError, Unsound};
use super::{Limits, content};

/// The alphabet of RECORD is written without padding; some tools write it with.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What is left of RECORD: the hashes of files that have not been looked at yet. RECORD itself has none.
pub(super) struct Record {
    hashes: HashMap<String, Option<Hash>>,
    /// RECORD itself and its signatures, which cannot hold their own hashes.
    unlisted: [String; 3],
}

impl Record {
    /// Reads RECORD. Everything that it lists is there, and is listed once.
    pub(super) fn read<F: Read + Seek>(
        file: &mut F,
        entries: &[Entry],
        dist_info: &DistInfo,
        limits: &Limits,
    ) -> Result<Self, InspectError> {
        let path = dist_info.path("RECORD");
        let Some(entry) = entries.iter().find(|entry| entry.name == path) else {
            return Err(Unsound::archive(format!("has no {path}")).into());
        };
        let text = content::read_whole(file, entry, limits.record_bytes)?;
        let unlisted = [dist_info.path("RECORD.jws"), dist_info.path("RECORD.p7s"), path];
        let mut record = Self { hashes: HashMap::new(), unlisted };
        let sizes: HashMap<&str, u64> = entries
            .iter()
            .filter(|entry| !entry.is_folder)
            .map(|entry| (entry.name.as_str(), entry.size))
            .collect();
        let mut rows =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_slice());
        let mut row = csv::StringRecord::new();
        loop {
            match rows.read_record(&mut row) {
                Ok(true) => record.add(&row, &sizes)?,
                Ok(false) => return Ok(record),
                Err(_broken) => return Err(Unsound::entry(&entry.name, "is no list of files").into()),
            }
        }
    }

    fn add(&mut self, row: &csv::StringRecord, sizes: &HashMap<&str, u64>) -> Result<(), Unsound> {
        let (Some(path), Some(hash), Some(size), 3) = (row.get(0), row.get(1), row.get(2), row.len()) else {
            return Err(Unsound::archive("has a RECORD with a line that is not a path, a hash and a size"));
        };
        let Some(&found) = sizes.get(path) else {
            return Err(Unsound::entry(path, "is listed in RECORD and is not there"));
        };
        if self.hashes.contains_key(path) {
            return Err(Unsound::entry(path, "is listed twice in RECORD"));
        }
        let is_unlisted = self.unlisted.iter().any(|unlisted| unlisted == path);
        let hash = if is_unlisted && hash.is_empty() {
            None
        } else {
            Some(Hash::read(hash).map_err(|what| Unsound::entry(path, what))?)
        };
        if !(is_unlisted && size.is_empty()) && size.parse() != Ok(found) {
            return Err(Unsound::entry(path, "has another size than RECORD says"));
        }
        self.hashes.insert(path.to_owned(), hash);
        Ok(())
    }

    /// The hash that an entry has to have; none for folders, RECORD and its signatures.
    pub(super) fn expected(&mut self, entry: &Entry) -> Result<Option<Hash>, Unsound> {
        match self.hashes.remove(&entry.name) {
            Some(hash) => Ok(hash),
            None if entry.is_folder || self.unlisted.contains(&entry.name) => Ok(None),
            None => Err(Unsound::entry(&entry.name, "is not listed in RECORD")),
        }
    }
}

/// A hash that is made, and what it has to become.
pub(super) struct Hash {
    making: Box<dyn DynDigest>,
    wanted: Vec<u8>,
}

impl Hash {
    fn read(text: &str) -> Result<Self, &'static str> {
        let (kind, value) = text.split_once('=').ok_or("is listed in RECORD without a hash")?;
        let making: Box<dyn DynDigest> = match kind {
            "sha256" => Box::<Sha256>::default(),
            "sha384" => Box::<Sha384>::default(),
            "sha512" => Box::<Sha512>::default(),
            _ => return Err("has a hash in RECORD that is none of sha256, sha384 and sha512"),
        };
        let wanted = BASE64.decode(value).map_err(|_broken| "has a hash in RECORD that cannot be read")?;
        Ok(Self { making, wanted })
    }

    pub(super) fn update(&mut self, piece: &[u8]) {
        self.making.update(piece);
    }

    pub(super) fn check(self, entry: &Entry) -> Result<(), Unsound> {
        if *self.making.finalize() == *self.wanted {
            Ok(())
        } else {
            Err(Unsound::entry(&entry.name, "has another hash than RECORD says"))
        }
    }
}
