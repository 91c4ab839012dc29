//! What entries hold: lies about sizes and checksums, and what becomes too large.

use std::io::Cursor;

use pyoco_wheels::{InspectError, Limits, WheelName, inspect};

use super::raw::{Archive, Entry, INFO, NAME, demo, inspected_as, refusal, wheel_with};

fn told_of_first(change: impl FnOnce(&mut Entry)) -> String {
    let mut archive = demo();
    change(archive.entry("demo_pkg/__init__.py"));
    let sentence = refusal(&archive.bytes());
    sentence.strip_prefix("\"demo_pkg/__init__.py\" ").unwrap_or(&sentence).to_owned()
}

fn refusal_within(limits: &Limits, archive: &Archive) -> String {
    let name = WheelName::parse(NAME).unwrap();
    match inspect(&mut Cursor::new(archive.bytes()), &name, limits) {
        Err(InspectError::Unsound(unsound)) => unsound.to_string(),
        other => panic!("it was not refused: {other:?}"),
    }
}

#[test]
fn an_entry_that_inflates_to_another_size_is_refused() {
    // RECORD need not list a signature, so nothing else knows its size.
    let path = format!("{INFO}/RECORD.jws");
    for (size, what) in [
        (9, "inflates to more than the directory says"),
        (0, "inflates to more than the directory says"),
        (11, "inflates to less than the directory says"),
    ] {
        let mut archive = demo();
        archive.entries.push(Entry::deflated(&path, b"0123456789"));
        assert!(inspected_as(NAME, &archive.bytes()).is_ok());
        archive.entry(&path).both(|header| header.size = size);
        assert_eq!(refusal(&archive.bytes()), format!("{path:?} {what}"));
    }
}

#[test]
fn an_entry_with_another_checksum_is_refused() {
    let sentence = told_of_first(|entry| entry.both(|header| header.crc ^= 0x8000_0000));
    assert_eq!(sentence, "has another checksum than the directory says");
}

#[test]
fn an_entry_whose_data_goes_on_behind_its_end_is_refused() {
    // A reader that stops where the inflated data ends would find the next entry here.
    let sentence = told_of_first(|entry| {
        entry.data.extend(b"hidden");
        entry.both(|header| header.compressed += 6);
    });
    assert_eq!(sentence, "has data behind the end of its data");
}

#[test]
fn an_entry_whose_data_is_cut_off_or_broken_is_refused() {
    let sentence = "has data that cannot be inflated";
    let told = told_of_first(|entry| {
        entry.data.pop();
        entry.both(|header| header.compressed -= 1);
    });
    assert_eq!(told, sentence);
    let told = told_of_first(|entry| {
        entry.data.clear();
        entry.both(|header| header.compressed = 0);
    });
    assert_eq!(told, sentence);
    // A block of a kind that does not exist.
    assert_eq!(told_of_first(|entry| entry.data[0] |= 0b110), sentence);
}

#[test]
fn a_stored_entry_with_another_size_than_its_data_is_refused() {
    let mut archive = wheel_with(&[("demo_pkg/data.bin", b"0123456789")]);
    *archive.entry("demo_pkg/data.bin") = Entry::stored("demo_pkg/data.bin", b"0123456789");
    assert!(inspected_as(NAME, &archive.bytes()).is_ok());
    archive.entry("demo_pkg/data.bin").both(|header| header.size = 9);
    let sentence = "\"demo_pkg/data.bin\" is stored, and has another size than its data";
    assert_eq!(refusal(&archive.bytes()), sentence);
}

#[test]
fn an_entry_beyond_its_ratio_is_refused_and_a_small_one_is_not() {
    let zeros = vec![0; 8 * 1024 * 1024 + 1];
    let archive = wheel_with(&[("demo_pkg/zeros.bin", &zeros)]);
    let sentence = "\"demo_pkg/zeros.bin\" inflates to more than 100 times its size";
    assert_eq!(refusal(&archive.bytes()), sentence);
    let archive = wheel_with(&[("demo_pkg/zeros.bin", &zeros[..8_000_000])]);
    assert!(inspected_as(NAME, &archive.bytes()).is_ok());
}

#[test]
fn small_entries_that_are_beyond_the_ratio_together_are_refused() {
    let zeros = vec![0; 1024 * 1024];
    let names: Vec<String> = (0..9).map(|number| format!("demo_pkg/zeros{number}.bin")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), zeros.as_slice())).collect();
    let sentence = refusal(&wheel_with(&files).bytes());
    assert_eq!(sentence, "the archive inflates to more than 100 times its size");
}

#[test]
fn what_is_larger_than_a_limit_is_refused() {
    let content: Vec<u8> = (0..2_000_u32).flat_map(u32::to_le_bytes).collect();
    let archive = wheel_with(&[("demo_pkg/a.bin", &content), ("demo_pkg/b.bin", &content)]);
    let of = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        refusal_within(&limits, &archive)
    };
    assert_eq!(
        of(|limits| limits.entry_bytes = 7_999),
        "\"demo_pkg/a.bin\" inflates to more than 7999 bytes"
    );
    assert_eq!(of(|limits| limits.inflated_bytes = 16_000), "the archive inflates to more than 16000 bytes");
    assert_eq!(of(|limits| limits.entries = 5), "the archive holds more than 5 entries");
    assert_eq!(
        of(|limits| limits.metadata_bytes = 10),
        "\"demo_pkg-1.2.dist-info/METADATA\" is larger than 10 bytes"
    );
    assert_eq!(
        of(|limits| limits.record_bytes = 10),
        "\"demo_pkg-1.2.dist-info/RECORD\" is larger than 10 bytes"
    );
}

#[test]
fn the_limits_are_those_of_the_product() {
    let limits = Limits::default();
    assert_eq!((limits.entries, limits.ratio), (10_000, 100));
    assert_eq!((limits.inflated_bytes, limits.entry_bytes), (512 << 20, 256 << 20));
    assert_eq!((limits.metadata_bytes, limits.record_bytes), (1 << 20, 16 << 20));
}
