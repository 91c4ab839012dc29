//! What is held while a wheel is looked at. This test has a process for itself, because it asks the system how much memory the
//! process has ever had.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "inspect/raw.rs"]
mod raw;

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use pyoco_wheels::{InspectError, Limits, WheelName, inspect};
use raw::{Archive, Entry, INFO, NAME, demo};
use sha2::{Digest as _, Sha256};

const MIB: u64 = 1024 * 1024;
/// Two buffers, the directory, and room for the allocator. A wheel that was held would be many times this.
const MOST_GROWTH: u64 = 8 * MIB;

/// A file that counts what is read of it.
struct Counting<F> {
    file: F,
    read: u64,
}

impl<F: Read> Read for Counting<F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read += count as u64;
        Ok(count)
    }
}

impl<F: Seek> Seek for Counting<F> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

/// The most memory that this process has ever had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
}

/// A gigabyte of zeros, deflated piece by piece: about a megabyte.
fn bomb() -> (Vec<u8>, u32) {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    let mut crc = flate2::Crc::new();
    let zeros = vec![0; 1024 * 1024];
    for _ in 0..1024 {
        encoder.write_all(&zeros).unwrap();
        crc.update(&zeros);
    }
    (encoder.finish().unwrap(), crc.sum())
}

fn wheel_with_bomb(data: &[u8], crc: u32, size: u64) -> Archive {
    let mut archive = demo();
    let mut entry = Entry::new("demo_pkg/bomb.bin", b"", 8, data.to_vec());
    entry.both(|header| (header.crc, header.size) = (crc, size.try_into().unwrap()));
    archive.entries.insert(0, entry);
    // RECORD lists it, with a hash that is never compared.
    let path = format!("{INFO}/RECORD");
    let hash = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
    let lines = format!("demo_pkg/bomb.bin,{hash},{size}\n");
    *archive.entry(&path) = Entry::deflated(&path, lines.as_bytes());
    archive
}

fn refused(bytes: &[u8]) -> (String, u64) {
    let mut file = Counting { file: Cursor::new(bytes), read: 0 };
    match inspect(&mut file, &WheelName::parse(NAME).unwrap(), &Limits::default()) {
        Err(InspectError::Unsound(unsound)) => (unsound.to_string(), file.read),
        other => panic!("it was not refused: {other:?}"),
    }
}

/// Bytes that cannot be compressed, the same ones each time.
fn noise(state: &mut u64, buffer: &mut [u8]) {
    for bytes in buffer.chunks_mut(8) {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.copy_from_slice(&state.to_le_bytes()[..bytes.len()]);
    }
}

/// A sound wheel of 200 MiB, written piece by piece.
fn large_wheel(file: &mut File) {
    let mut archive = demo();
    let (mut crc, mut hash, mut state) = (flate2::Crc::new(), Sha256::new(), 1);
    let mut piece = vec![0; 1024 * 1024];
    for _ in 0..200 {
        noise(&mut state, &mut piece);
        crc.update(&piece);
        hash.update(&piece);
    }
    let size = 200 * MIB;
    let mut entry = Entry::stored("demo_pkg/large.bin", b"");
    entry.both(|header| {
        header.crc = crc.sum();
        (header.size, header.compressed) = (size.try_into().unwrap(), size.try_into().unwrap());
    });
    archive.entries.insert(0, entry);
    let path = format!("{INFO}/RECORD");
    let mut lines: String = [("demo_pkg/__init__.py", "VERSION = '1.2'\n")]
        .into_iter()
        .map(|(name, content)| raw::line(name, content.as_bytes()))
        .collect();
    lines.push_str(&raw::line(&format!("{INFO}/METADATA"), raw::METADATA.as_bytes()));
    lines.push_str(&raw::line(&format!("{INFO}/WHEEL"), raw::WHEEL.as_bytes()));
    lines
        .push_str(&format!("demo_pkg/large.bin,sha256={},{size}\n", URL_SAFE_NO_PAD.encode(hash.finalize())));
    *archive.entry(&path) = Entry::deflated(&path, lines.as_bytes());
    // Everything behind the large entry is that much further behind than in the bytes without it.
    let shift = u32::try_from(size).unwrap();
    let small = archive.bytes();
    let mut offset = 0;
    for (place, entry) in archive.entries.iter_mut().enumerate() {
        entry.central.offset = Some(if place == 0 { 0 } else { offset + shift });
        offset += u32::try_from(30 + entry.local.name.len() + entry.data.len()).unwrap();
    }
    archive.directory = Some(offset + shift);
    let shifted = archive.bytes();
    assert_eq!(shifted.len(), small.len());
    let data = 30 + "demo_pkg/large.bin".len();
    file.write_all(&shifted[..data]).unwrap();
    state = 1;
    for _ in 0..200 {
        noise(&mut state, &mut piece);
        file.write_all(&piece).unwrap();
    }
    file.write_all(&shifted[data..]).unwrap();
}

#[test]
fn a_wheel_of_any_size_needs_little_memory() {
    let (data, crc) = bomb();
    let honest = wheel_with_bomb(&data, crc, 1024 * MIB).bytes();
    let liar = wheel_with_bomb(&data, crc, MIB).bytes();
    let within = wheel_with_bomb(&data, crc, (100 * data.len() as u64).min(256 * MIB)).bytes();
    let mut large = tempfile::tempfile().unwrap();
    large_wheel(&mut large);
    let before = peak();

    // One that says how large it becomes is refused before anything of it is inflated.
    let (sentence, read) = refused(&honest);
    assert_eq!(sentence, format!("\"demo_pkg/bomb.bin\" inflates to more than {} bytes", 256 * MIB));
    assert!(read < 10_000, "{read}");
    // One that says it is small is inflated as far as it says, and not further.
    let (sentence, read) = refused(&liar);
    assert_eq!(sentence, "\"demo_pkg/bomb.bin\" inflates to more than the directory says");
    assert!(read < 200_000, "{read}");
    // One that says what it might is inflated to the last byte that it might have.
    let (sentence, read) = refused(&within);
    assert_eq!(sentence, "\"demo_pkg/bomb.bin\" inflates to more than the directory says");
    assert!(read < liar.len() as u64, "{read}");
    let after_bombs = peak();
    assert!(after_bombs - before < MOST_GROWTH, "{before} to {after_bombs}");

    let wheel = inspect(&mut large, &WheelName::parse(NAME).unwrap(), &Limits::default()).unwrap();
    assert!(wheel.uncompressed_bytes > 200 * MIB);
    let after = peak();
    assert!(after - before < MOST_GROWTH, "{before} to {after}");
}
