//! Wheels with single bytes changed: each is refused, or every reader still finds the same files in it.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

use proptest::prelude::*;
use zip::ZipArchive;

use super::raw::{Archive, Entry, NAME, inspected_as, wheel_with};

fn wheel() -> Archive {
    let mut archive = wheel_with(&[("demo_pkg/data.bin", &[7; 300]), ("demo_pkg/sub/", b"")]);
    *archive.entry("demo_pkg/data.bin") = Entry::stored("demo_pkg/data.bin", &[7; 300]);
    archive.entry("demo_pkg/__init__.py").describe_behind(true);
    archive
}

/// The files as the second reader finds them.
fn files(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    (0..archive.len())
        .map(|place| {
            let mut file = archive.by_index(place).unwrap();
            let mut content = Vec::new();
            file.read_to_end(&mut content).unwrap();
            (file.name().unwrap().into_owned(), content)
        })
        .collect()
}

#[test]
fn a_wheel_with_any_bit_flipped_is_refused_or_unchanged() {
    let sound = wheel().bytes();
    let honest = files(&sound);
    assert!(inspected_as(NAME, &sound).is_ok());
    let mut harmless = 0;
    for place in 0..sound.len() {
        for bit in 0..8 {
            let mut bytes = sound.clone();
            bytes[place] ^= 1 << bit;
            if inspected_as(NAME, &bytes).is_ok() {
                assert_eq!(files(&bytes), honest, "byte {place}, bit {bit}");
                harmless += 1;
            }
        }
    }
    // Times, versions of writers and rights of files, and what is left of the last byte of deflated data. If more were harmless,
    // something would not be looked at.
    let entries = wheel().entries.len();
    assert!(harmless <= entries * (8 * (6 + 8 + 2 + 4) + 7), "{harmless}");
    assert!(harmless > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_wheel_with_bytes_put_in_or_taken_out_is_refused(
        place in any::<prop::sample::Index>(),
        taken in 0..40_usize,
        put in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let sound = wheel().bytes();
        let from = place.index(sound.len());
        let to = (from + taken).min(sound.len());
        let mut bytes = sound.clone();
        bytes.splice(from..to, put);
        if inspected_as(NAME, &bytes).is_ok() {
            prop_assert_eq!(files(&bytes), files(&sound));
            prop_assert_eq!(bytes.len(), sound.len());
        }
    }

    #[test]
    fn bytes_of_any_kind_are_refused_without_a_panic(
        head in prop::collection::vec(any::<u8>(), 0..200),
        entries in 0..4_u16,
        size in 0..300_u32,
        directory in 0..300_u32,
    ) {
        let mut bytes = head;
        bytes.extend(b"PK\x05\x06\0\0\0\0");
        bytes.extend(entries.to_le_bytes());
        bytes.extend(entries.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(directory.to_le_bytes());
        bytes.extend([0, 0]);
        prop_assert!(inspected_as(NAME, &bytes).is_err());
    }
}
