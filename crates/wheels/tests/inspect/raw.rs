//! Zip archives byte by byte, so that every field can lie, and the wheels that the lies are put into.

#![allow(dead_code, reason = "two test programs use parts of this")]

use std::io::{Cursor, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use pyoco_wheels::{InspectError, Limits, Wheel, WheelName, inspect};
use sha2::{Digest as _, Sha256};

pub(crate) const NAME: &str = "demo_pkg-1.2-py3-none-any.whl";
pub(crate) const INFO: &str = "demo_pkg-1.2.dist-info";
pub(crate) const METADATA: &str = "Metadata-Version: 2.1\nName: Demo.Pkg\nVersion: 1.2.0\n\nText.\n";
pub(crate) const WHEEL: &str =
    "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n";

/// A header, before the data or in the directory.
#[derive(Clone, Default)]
pub(crate) struct Header {
    pub(crate) flags: u16,
    pub(crate) method: u16,
    pub(crate) crc: u32,
    pub(crate) compressed: u32,
    pub(crate) size: u32,
    pub(crate) name: Vec<u8>,
    pub(crate) extra: Vec<u8>,
    pub(crate) comment: Vec<u8>,
    pub(crate) disk: u16,
    pub(crate) attributes: u32,
    /// Where the directory says it is; where it is, unless a test says otherwise.
    pub(crate) offset: Option<u32>,
}

#[derive(Clone, Default)]
pub(crate) struct Entry {
    pub(crate) local: Header,
    pub(crate) central: Header,
    pub(crate) data: Vec<u8>,
    pub(crate) behind: Vec<u8>,
}

impl Entry {
    pub(crate) fn deflated(name: &str, content: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).unwrap();
        Self::new(name, content, 8, encoder.finish().unwrap())
    }

    pub(crate) fn stored(name: &str, content: &[u8]) -> Self {
        Self::new(name, content, 0, content.to_vec())
    }

    pub(crate) fn new(name: &str, content: &[u8], method: u16, data: Vec<u8>) -> Self {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let header = Header {
            flags: if name.is_ascii() { 0 } else { 1 << 11 },
            method,
            crc: crc.sum(),
            compressed: data.len().try_into().unwrap(),
            size: content.len().try_into().unwrap(),
            name: name.as_bytes().to_vec(),
            ..Header::default()
        };
        Self { local: header.clone(), central: header, data, behind: Vec::new() }
    }

    /// Changes both headers alike.
    pub(crate) fn both(&mut self, change: impl Fn(&mut Header)) {
        change(&mut self.local);
        change(&mut self.central);
    }

    /// Puts the sizes behind the data, as writers do that cannot go back.
    pub(crate) fn describe_behind(&mut self, with_signature: bool) {
        self.both(|header| header.flags |= 1 << 3);
        self.behind = if with_signature { b"PK\x07\x08".to_vec() } else { Vec::new() };
        for number in [self.local.crc, self.local.compressed, self.local.size] {
            self.behind.extend(number.to_le_bytes());
        }
        (self.local.crc, self.local.compressed, self.local.size) = (0, 0, 0);
    }
}

#[derive(Clone, Default)]
pub(crate) struct Archive {
    pub(crate) before: Vec<u8>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) before_directory: Vec<u8>,
    pub(crate) before_end: Vec<u8>,
    pub(crate) behind: Vec<u8>,
    /// What the end record says instead of the truth.
    pub(crate) disk: u16,
    pub(crate) entries_here: Option<u16>,
    pub(crate) entries_all: Option<u16>,
    pub(crate) directory: Option<u32>,
    pub(crate) directory_bytes: Option<u32>,
    pub(crate) comment_bytes: u16,
}

impl Archive {
    pub(crate) fn entry(&mut self, name: &str) -> &mut Entry {
        self.entries.iter_mut().find(|entry| entry.central.name == name.as_bytes()).unwrap()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.before.clone();
        let mut offsets = Vec::new();
        for entry in &self.entries {
            offsets.push(u32::try_from(bytes.len()).unwrap());
            bytes.extend(b"PK\x03\x04\x14\0");
            write_common(&mut bytes, &entry.local);
            bytes.extend(&entry.local.name);
            bytes.extend(&entry.local.extra);
            bytes.extend(&entry.data);
            bytes.extend(&entry.behind);
        }
        bytes.extend(&self.before_directory);
        let directory = bytes.len();
        for (entry, offset) in self.entries.iter().zip(offsets) {
            let header = &entry.central;
            bytes.extend(b"PK\x01\x02\x14\x03\x14\0");
            write_common(&mut bytes, header);
            bytes.extend(u16::try_from(header.comment.len()).unwrap().to_le_bytes());
            bytes.extend(header.disk.to_le_bytes());
            bytes.extend([0, 0]);
            bytes.extend(header.attributes.to_le_bytes());
            bytes.extend(header.offset.unwrap_or(offset).to_le_bytes());
            bytes.extend(&header.name);
            bytes.extend(&header.extra);
            bytes.extend(&header.comment);
        }
        let directory_bytes = bytes.len() - directory;
        bytes.extend(&self.before_end);
        let count = u16::try_from(self.entries.len()).unwrap();
        bytes.extend(b"PK\x05\x06");
        bytes.extend(self.disk.to_le_bytes());
        bytes.extend(self.disk.to_le_bytes());
        bytes.extend(self.entries_here.unwrap_or(count).to_le_bytes());
        bytes.extend(self.entries_all.unwrap_or(count).to_le_bytes());
        bytes.extend(
            self.directory_bytes.unwrap_or_else(|| directory_bytes.try_into().unwrap()).to_le_bytes(),
        );
        bytes.extend(self.directory.unwrap_or_else(|| directory.try_into().unwrap()).to_le_bytes());
        bytes.extend(self.comment_bytes.to_le_bytes());
        bytes.extend(&self.behind);
        bytes
    }
}

fn write_common(bytes: &mut Vec<u8>, header: &Header) {
    bytes.extend(header.flags.to_le_bytes());
    bytes.extend(header.method.to_le_bytes());
    bytes.extend([0, 0, 0x21, 0x5a]);
    for number in [header.crc, header.compressed, header.size] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(u16::try_from(header.name.len()).unwrap().to_le_bytes());
    bytes.extend(u16::try_from(header.extra.len()).unwrap().to_le_bytes());
}

/// The line of RECORD for a file.
pub(crate) fn line(name: &str, content: &[u8]) -> String {
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(content));
    format!("{name},sha256={hash},{}\n", content.len())
}

/// A wheel of these files and an honest RECORD.
pub(crate) fn wheel_of(files: &[(&str, &[u8])]) -> Archive {
    let record = format!("{INFO}/RECORD");
    let mut entries: Vec<Entry> =
        files.iter().map(|(name, content)| Entry::deflated(name, content)).collect();
    let mut lines: String = files
        .iter()
        .filter(|(name, _)| !name.ends_with('/'))
        .map(|(name, content)| line(name, content))
        .collect();
    lines.push_str(&format!("{record},,\n"));
    entries.push(Entry::deflated(&record, lines.as_bytes()));
    Archive { entries, ..Archive::default() }
}

/// The wheel `NAME` with its own description and these files.
pub(crate) fn wheel_with(files: &[(&str, &[u8])]) -> Archive {
    let (metadata, wheel) = (format!("{INFO}/METADATA"), format!("{INFO}/WHEEL"));
    let mut all: Vec<(&str, &[u8])> = vec![("demo_pkg/__init__.py", b"VERSION = '1.2'\n")];
    all.extend(files);
    all.push((&metadata, METADATA.as_bytes()));
    all.push((&wheel, WHEEL.as_bytes()));
    wheel_of(&all)
}

pub(crate) fn demo() -> Archive {
    wheel_with(&[])
}

pub(crate) fn inspected_as(name: &str, bytes: &[u8]) -> Result<Wheel, InspectError> {
    inspect(&mut Cursor::new(bytes), &WheelName::parse(name).unwrap(), &Limits::default())
}

/// Why these bytes are no sound wheel `NAME`.
pub(crate) fn refusal(bytes: &[u8]) -> String {
    refusal_as(NAME, bytes)
}

pub(crate) fn refusal_as(name: &str, bytes: &[u8]) -> String {
    match inspected_as(name, bytes) {
        Err(InspectError::Unsound(unsound)) => unsound.to_string(),
        other => panic!("it was not refused: {other:?}"),
    }
}
