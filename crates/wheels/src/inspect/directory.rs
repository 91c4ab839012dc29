//! The end record and the central directory of a zip archive: what is in it, and where.

use std::io::{Read, Seek, SeekFrom};

use super::unsound::{InspectError, Unsound};
use super::{Limits, path};

const END_BYTES: u64 = 22;
const END_SIGNATURE: [u8; 4] = *b"PK\x05\x06";
const LOCATOR_BYTES: usize = 20;
const LOCATOR_SIGNATURE: [u8; 4] = *b"PK\x06\x07";
const CENTRAL_SIGNATURE: [u8; 4] = *b"PK\x01\x02";
/// An archive comment has at most so many bytes, so the end record can stand so far from the end.
const MOST_COMMENT_BYTES: u64 = 65_535;

pub(super) const OF_64_BITS: &str = "is of the 64-bit kind, which no wheel of this size needs";

/// The sizes are behind the data.
pub(super) const FLAG_DESCRIPTOR: u16 = 1 << 3;
/// The name is UTF-8.
pub(super) const FLAG_UTF8: u16 = 1 << 11;
/// How hard the data was compressed; it says nothing about how to read it.
const FLAGS_OF_EFFORT: u16 = 0b110;
const FLAGS_OF_SECRETS: u16 = 1 | 1 << 6 | 1 << 13;

/// How an entry is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Stored,
    Deflated,
}

/// One entry, as the central directory has it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_folder: bool,
    pub(super) flags: u16,
    pub(super) method: Method,
    pub(super) crc: u32,
    pub(super) compressed: u64,
    pub(super) size: u64,
    /// Where its local header begins.
    pub(super) header: u64,
    /// Where its data begins; known once the layout has been checked.
    pub(super) data: u64,
}

/// What the directory says.
#[derive(Debug)]
pub(super) struct Archive {
    pub(super) entries: Vec<Entry>,
    /// Where the directory begins and the entries end.
    pub(super) directory: u64,
}

/// Reads the directory. What the archive says of itself is within the limits afterwards.
pub(super) fn read<F: Read + Seek>(file: &mut F, limits: &Limits) -> Result<Archive, InspectError> {
    let length = file.seek(SeekFrom::End(0))?;
    let end = End::read(file, length)?;
    if usize::from(end.entries) > limits.entries {
        return Err(Unsound::archive(format!("holds more than {} entries", limits.entries)).into());
    }
    if u64::from(end.directory_bytes) > limits.directory_bytes {
        return Err(Unsound::archive("has too large a directory").into());
    }
    file.seek(SeekFrom::Start(end.directory.into()))?;
    let mut bytes = Vec::new();
    file.by_ref().take(end.directory_bytes.into()).read_to_end(&mut bytes)?;
    // Some readers believe a 64-bit record if there is a pointer to one just here, whatever it is a part of.
    let before_end = bytes.len().saturating_sub(LOCATOR_BYTES);
    if bytes.get(before_end..).is_some_and(|tail| tail.starts_with(&LOCATOR_SIGNATURE)) {
        return Err(Unsound::archive(OF_64_BITS).into());
    }
    let mut rest = Rest(&bytes);
    let mut entries = Vec::new();
    for _ in 0..end.entries {
        entries.push(entry(&mut rest, limits)?);
    }
    if !rest.0.is_empty() {
        return Err(Unsound::archive("says that it holds fewer entries than it lists").into());
    }
    check_sizes(&entries, length, limits)?;
    Ok(Archive { entries, directory: end.directory.into() })
}

struct End {
    entries: u16,
    directory_bytes: u32,
    directory: u32,
}

impl End {
    fn read<F: Read + Seek>(file: &mut F, length: u64) -> Result<Self, InspectError> {
        let Some(at) = length.checked_sub(END_BYTES) else {
            return Err(Unsound::archive("is no zip archive, or is cut off").into());
        };
        file.seek(SeekFrom::Start(at))?;
        let mut bytes = [0; 22];
        file.read_exact(&mut bytes)?;
        let mut rest = Rest(&bytes);
        if rest.array() != Some(END_SIGNATURE) {
            return Err(without_end(file, length)?.into());
        }
        let cut = || Unsound::archive("is cut off");
        let disk = rest.u16().ok_or_else(cut)?;
        let disk_of_directory = rest.u16().ok_or_else(cut)?;
        let entries_here = rest.u16().ok_or_else(cut)?;
        let entries = rest.u16().ok_or_else(cut)?;
        let directory_bytes = rest.u32().ok_or_else(cut)?;
        let directory = rest.u32().ok_or_else(cut)?;
        let comment = rest.u16().ok_or_else(cut)?;
        // The values that send a reader to a 64-bit record. A wheel within the limits needs none, and readers differ in which
        // record they believe.
        if entries == u16::MAX || directory_bytes == u32::MAX || directory == u32::MAX {
            return Err(Unsound::archive(OF_64_BITS).into());
        }
        if disk != 0 || disk_of_directory != 0 || entries_here != entries {
            return Err(Unsound::archive("is one of several disks").into());
        }
        if comment != 0 {
            return Err(Unsound::archive("is cut off: its comment is missing").into());
        }
        match (u64::from(directory) + u64::from(directory_bytes)).cmp(&at) {
            std::cmp::Ordering::Less => {
                Err(Unsound::archive("has data before its first entry or behind its directory").into())
            }
            std::cmp::Ordering::Greater => {
                Err(Unsound::archive("is cut off, or its directory is not where it says").into())
            }
            std::cmp::Ordering::Equal => Ok(Self { entries, directory_bytes, directory }),
        }
    }
}

/// Whether the end record is missing, or stands before something else.
fn without_end<F: Read + Seek>(file: &mut F, length: u64) -> Result<Unsound, InspectError> {
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES + MOST_COMMENT_BYTES)))?;
    let mut tail = Vec::new();
    file.by_ref().take(END_BYTES + MOST_COMMENT_BYTES).read_to_end(&mut tail)?;
    let is_there = tail.windows(END_SIGNATURE.len()).any(|bytes| bytes == END_SIGNATURE);
    Ok(Unsound::archive(if is_there {
        "has data or a comment behind its end record"
    } else {
        "is no zip archive, or is cut off"
    }))
}

fn entry(rest: &mut Rest<'_>, limits: &Limits) -> Result<Entry, Unsound> {
    let cut = || Unsound::archive("has a directory that is cut off");
    if rest.array() != Some(CENTRAL_SIGNATURE) {
        return Err(Unsound::archive("has a directory that cannot be read"));
    }
    let _versions = rest.u32().ok_or_else(cut)?;
    let flags = rest.u16().ok_or_else(cut)?;
    let method = rest.u16().ok_or_else(cut)?;
    let _time = rest.u32().ok_or_else(cut)?;
    let crc = rest.u32().ok_or_else(cut)?;
    let compressed = rest.u32().ok_or_else(cut)?;
    let size = rest.u32().ok_or_else(cut)?;
    let name_bytes = rest.u16().ok_or_else(cut)?;
    let extra_bytes = rest.u16().ok_or_else(cut)?;
    let comment_bytes = rest.u16().ok_or_else(cut)?;
    let disk = rest.u16().ok_or_else(cut)?;
    let _internal = rest.u16().ok_or_else(cut)?;
    let attributes = rest.u32().ok_or_else(cut)?;
    let header = rest.u32().ok_or_else(cut)?;
    let name = rest.bytes(name_bytes.into()).ok_or_else(cut)?;
    let extra = rest.bytes(extra_bytes.into()).ok_or_else(cut)?;
    let _comment = rest.bytes(comment_bytes.into()).ok_or_else(cut)?;

    let name = path::read(name, flags & FLAG_UTF8 != 0)?;
    let wrong = |what: &str| Err(Unsound::entry(&name, what));
    if flags & FLAGS_OF_SECRETS != 0 {
        return wrong("is encrypted");
    }
    if flags & !(FLAG_DESCRIPTOR | FLAG_UTF8 | FLAGS_OF_EFFORT) != 0 {
        return wrong("has flags that not every reader knows");
    }
    if disk != 0 {
        return wrong("is on another disk");
    }
    let is_long = compressed == u32::MAX || size == u32::MAX || header == u32::MAX;
    if long_sizes(&name, extra)?.is_some() || is_long {
        return wrong(OF_64_BITS);
    }
    let method = match method {
        0 => Method::Stored,
        8 => Method::Deflated,
        _ => return wrong("is neither stored nor deflated"),
    };
    let is_folder = path::is_folder(&name, attributes)?;
    if is_folder && size != 0 {
        return wrong("is a folder with content");
    }
    if method == Method::Stored && compressed != size {
        return wrong("is stored, and has another size than its data");
    }
    // A reader that goes through the file from its beginning could not know where such an entry ends.
    if method == Method::Stored && flags & FLAG_DESCRIPTOR != 0 {
        return wrong("is stored, and has its size behind its data");
    }
    let (compressed, size) = (u64::from(compressed), u64::from(size));
    if size > limits.entry_bytes {
        return wrong(&format!("inflates to more than {} bytes", limits.entry_bytes));
    }
    if size > limits.ratio_floor_bytes.max(compressed.saturating_mul(limits.ratio)) {
        return wrong(&format!("inflates to more than {} times its size", limits.ratio));
    }
    Ok(Entry { is_folder, flags, method, crc, compressed, size, header: header.into(), data: 0, name })
}

/// The fields beside a name, and the one with 64-bit sizes among them. Those that change how an entry is read are refused: not
/// every reader looks at them.
pub(super) fn long_sizes<'a>(name: &str, extra: &'a [u8]) -> Result<Option<&'a [u8]>, Unsound> {
    let wrong = |what| Err(Unsound::entry(name, what));
    let mut sizes = None;
    let mut rest = Rest(extra);
    while !rest.0.is_empty() {
        let field =
            rest.u16().zip(rest.u16()).and_then(|(kind, length)| Some((kind, rest.bytes(length.into())?)));
        match field {
            Some((0x0001, long)) if sizes.is_none() => sizes = Some(long),
            Some((0x0001, _)) => return wrong(OF_64_BITS),
            Some((0x7075, _)) => return wrong("has a second name"),
            Some((0x0017 | 0x9901, _)) => return wrong("is encrypted"),
            Some(_) => {}
            None => return wrong("has extra fields that cannot be read"),
        }
    }
    Ok(sizes)
}

/// All entries together. Each is held to its size when it is inflated, so this holds for what comes out of them.
fn check_sizes(entries: &[Entry], length: u64, limits: &Limits) -> Result<(), Unsound> {
    let inflated: u64 = entries.iter().map(|entry| entry.size).sum();
    if inflated > limits.inflated_bytes {
        return Err(Unsound::archive(format!("inflates to more than {} bytes", limits.inflated_bytes)));
    }
    if inflated > limits.ratio_floor_bytes.max(length.saturating_mul(limits.ratio)) {
        return Err(Unsound::archive(format!("inflates to more than {} times its size", limits.ratio)));
    }
    Ok(())
}

/// Bytes that are read from the front, in the order of small numbers first.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }
}
