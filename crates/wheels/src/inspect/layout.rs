//! Where the entries stand in the file. They follow each other from the first byte to the directory, with nothing between
//! them, and each says of itself what the directory says of it. So a reader that goes through the file from its beginning finds
//! the same entries as one that begins at the end.

use std::io::{Read, Seek, SeekFrom};

use super::directory::{Archive, Entry, FLAG_DESCRIPTOR, Method, OF_64_BITS, Rest, long_sizes};
use super::unsound::{InspectError, Unsound};

const LOCAL_SIGNATURE: [u8; 4] = *b"PK\x03\x04";
const LOCAL_BYTES: usize = 30;
const DESCRIPTOR_SIGNATURE: [u8; 4] = *b"PK\x07\x08";

/// Checks the places of all entries, and puts the entries in their order.
pub(super) fn check<F: Read + Seek>(file: &mut F, archive: &mut Archive) -> Result<(), InspectError> {
    archive.entries.sort_by_key(|entry| entry.header);
    let ends: Vec<u64> =
        archive.entries.iter().skip(1).map(|entry| entry.header).chain([archive.directory]).collect();
    if archive.entries.first().is_some_and(|first| first.header != 0) {
        return Err(Unsound::archive("has data before its first entry").into());
    }
    for (entry, end) in archive.entries.iter_mut().zip(ends) {
        entry.data = local(file, entry, end)?;
        let behind = (entry.data + entry.compressed, end);
        if behind.0 > behind.1 {
            return Err(Unsound::entry(&entry.name, "overlaps what follows it").into());
        }
        descriptor(file, entry, behind)?;
    }
    Ok(())
}

/// Checks the header before the data of an entry, and says where the data begins.
fn local<F: Read + Seek>(file: &mut F, entry: &Entry, end: u64) -> Result<u64, InspectError> {
    let overlaps = || Unsound::entry(&entry.name, "overlaps what follows it");
    let differs = |what: &str| {
        Unsound::entry(&entry.name, format!("has another {what} in its own header than in the directory"))
    };
    let after_header = entry.header + LOCAL_BYTES as u64;
    if after_header > end {
        return Err(overlaps().into());
    }
    file.seek(SeekFrom::Start(entry.header))?;
    let mut bytes = [0; LOCAL_BYTES];
    file.read_exact(&mut bytes)?;
    let Some(header) = LocalHeader::read(&bytes) else {
        return Err(Unsound::entry(&entry.name, "is not where the directory says").into());
    };
    let data = after_header + u64::from(header.name_bytes) + u64::from(header.extra_bytes);
    if data > end {
        return Err(overlaps().into());
    }
    let mut name = vec![0; header.name_bytes.into()];
    file.read_exact(&mut name)?;
    if name != entry.name.as_bytes() {
        return Err(differs("name").into());
    }
    let mut extra = vec![0; header.extra_bytes.into()];
    file.read_exact(&mut extra)?;
    let long = long_sizes(&entry.name, &extra)?;
    if header.flags != entry.flags {
        return Err(differs("set of flags").into());
    }
    let method = match entry.method {
        Method::Stored => 0,
        Method::Deflated => 8,
    };
    if header.method != method {
        return Err(differs("compression").into());
    }
    let has_descriptor = entry.flags & FLAG_DESCRIPTOR != 0;
    // Some writers reserve room for long sizes because they do not know yet how long the entry becomes. They may stay, when they
    // say the same. Behind the data they would make the sizes there long as well.
    if let Some(long) = long {
        if has_descriptor {
            return Err(Unsound::entry(&entry.name, OF_64_BITS).into());
        }
        if *long != *[entry.size.to_le_bytes(), entry.compressed.to_le_bytes()].as_flattened() {
            return Err(differs("size").into());
        }
    }
    // What stands behind the data may be left out here, and then it is zero.
    if header.crc != entry.crc && !(has_descriptor && header.crc == 0) {
        return Err(differs("checksum").into());
    }
    let is_same = |here: u32, there: u64| {
        u64::from(here) == there || has_descriptor && here == 0 || long.is_some() && here == u32::MAX
    };
    if !is_same(header.compressed, entry.compressed) || !is_same(header.size, entry.size) {
        return Err(differs("size").into());
    }
    Ok(data)
}

struct LocalHeader {
    flags: u16,
    method: u16,
    crc: u32,
    compressed: u32,
    size: u32,
    name_bytes: u16,
    extra_bytes: u16,
}

impl LocalHeader {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        if rest.array() != Some(LOCAL_SIGNATURE) {
            return None;
        }
        let _version = rest.u16()?;
        let flags = rest.u16()?;
        let method = rest.u16()?;
        let _time = rest.u32()?;
        Some(Self {
            flags,
            method,
            crc: rest.u32()?,
            compressed: rest.u32()?,
            size: rest.u32()?,
            name_bytes: rest.u16()?,
            extra_bytes: rest.u16()?,
        })
    }
}

/// Checks what stands between the data of an entry and the next: nothing, or the sizes, with or without a signature.
fn descriptor<F: Read + Seek>(
    file: &mut F,
    entry: &Entry,
    (from, end): (u64, u64),
) -> Result<(), InspectError> {
    let has_descriptor = entry.flags & FLAG_DESCRIPTOR != 0;
    let gap = Unsound::entry(&entry.name, "is followed by data that belongs to no entry");
    let length: usize = match (has_descriptor, end - from) {
        (false, 0) => return Ok(()),
        (true, 12) => 12,
        (true, 16) => 16,
        _ => return Err(gap.into()),
    };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes)?;
    let mut rest = Rest(&bytes);
    if length == 16 && rest.array() != Some(DESCRIPTOR_SIGNATURE) {
        return Err(gap.into());
    }
    let found = (rest.u32(), rest.u32().map(u64::from), rest.u32().map(u64::from));
    if found != (Some(entry.crc), Some(entry.compressed), Some(entry.size)) {
        let what = "has other sizes or another checksum behind its data than in the directory";
        return Err(Unsound::entry(&entry.name, what).into());
    }
    Ok(())
}
