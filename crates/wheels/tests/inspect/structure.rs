//! Lies of the archive: its end, its directory, and the places of its entries.

use super::raw::{Archive, Entry, NAME, demo, inspected_as, refusal};

const NO_ZIP: &str = "the archive is no zip archive, or is cut off";
const OF_64_BITS: &str = "the archive is of the 64-bit kind, which no wheel of this size needs";

fn told(change: impl FnOnce(&mut Archive)) -> String {
    let mut archive = demo();
    assert!(inspected_as(NAME, &archive.bytes()).is_ok());
    change(&mut archive);
    refusal(&archive.bytes())
}

fn told_of_first(change: impl FnOnce(&mut Entry)) -> String {
    let sentence = told(|archive| change(archive.entry("demo_pkg/__init__.py")));
    sentence.strip_prefix("\"demo_pkg/__init__.py\" ").unwrap_or(&sentence).to_owned()
}

#[test]
fn a_file_that_is_no_zip_archive_is_refused() {
    for bytes in [&b""[..], b"PK", b"not a zip archive, and long enough to be one", &[0; 70_000]] {
        assert_eq!(refusal(bytes), NO_ZIP);
    }
    // A tar archive, compressed; a sound beginning does not help.
    assert_eq!(refusal(&demo().bytes()[..60]), NO_ZIP);
}

#[test]
fn a_wheel_that_is_cut_off_is_refused_wherever_it_is_cut() {
    let bytes = demo().bytes();
    for length in 0..bytes.len() {
        let sentence = refusal(&bytes[..length]);
        assert!(sentence == NO_ZIP || sentence.contains("behind its end record"), "{length}: {sentence}");
    }
    assert_eq!(told(|archive| archive.comment_bytes = 7), "the archive is cut off: its comment is missing");
}

#[test]
fn a_wheel_whose_beginning_is_missing_is_refused() {
    let bytes = demo().bytes();
    let sentence = "the archive is cut off, or its directory is not where it says";
    assert_eq!(refusal(&bytes[1..]), sentence);
}

#[test]
fn data_behind_the_end_is_refused() {
    let sentence = "the archive has data or a comment behind its end record";
    assert_eq!(told(|archive| archive.behind = b"x".to_vec()), sentence);
    assert_eq!(told(|archive| archive.behind = demo().bytes()[..100].to_vec()), sentence);
    // A comment is data that no two readers agree about.
    let comment = |archive: &mut Archive| {
        archive.behind = b"a comment".to_vec();
        archive.comment_bytes = 9;
    };
    assert_eq!(told(comment), sentence);
}

#[test]
fn two_archives_behind_each_other_are_refused() {
    let bytes = [demo().bytes(), demo().bytes()].concat();
    assert_eq!(refusal(&bytes), "the archive has data before its first entry or behind its directory");
}

#[test]
fn data_before_the_first_entry_is_refused() {
    // Its offsets are right, as in archives that begin with a program.
    let sentence = told(|archive| archive.before = b"#!/usr/bin/python3\n".to_vec());
    assert_eq!(sentence, "the archive has data before its first entry");
}

#[test]
fn data_between_the_entries_is_refused() {
    let sentence = "is followed by data that belongs to no entry";
    assert_eq!(told_of_first(|entry| entry.behind = b"hidden".to_vec()), sentence);
    assert!(told(|archive| archive.before_directory = b"hidden".to_vec()).ends_with(sentence));
    assert!(told(|archive| archive.before_end = b"hidden".to_vec()).ends_with("behind its directory"));
    // An entry that only readers from the beginning would find.
    let hidden = Archive { entries: vec![Entry::stored("demo_pkg/evil.py", b"1")], ..Archive::default() };
    let hidden = hidden.bytes()[..30 + 16 + 1].to_vec();
    assert_eq!(told_of_first(|entry| entry.behind = hidden), sentence);
}

#[test]
fn an_archive_of_several_disks_is_refused() {
    let sentence = "the archive is one of several disks";
    assert_eq!(told(|archive| archive.disk = 1), sentence);
    assert_eq!(told(|archive| archive.entries_here = Some(1)), sentence);
    assert_eq!(told_of_first(|entry| entry.central.disk = 1), "is on another disk");
}

#[test]
fn an_archive_of_the_64_bit_kind_is_refused() {
    assert_eq!(
        told(|archive| (archive.entries_here, archive.entries_all) = (Some(0xffff), Some(0xffff))),
        OF_64_BITS
    );
    assert_eq!(told(|archive| archive.directory = Some(u32::MAX)), OF_64_BITS);
    assert_eq!(told(|archive| archive.directory_bytes = Some(u32::MAX)), OF_64_BITS);
    let sentence = "is of the 64-bit kind, which no wheel of this size needs";
    assert_eq!(told_of_first(|entry| entry.central.size = u32::MAX), sentence);
    assert_eq!(told_of_first(|entry| entry.central.compressed = u32::MAX), sentence);
    assert_eq!(told_of_first(|entry| entry.central.offset = Some(u32::MAX)), sentence);
    // The truth, said a second time where some readers look and others do not.
    assert_eq!(told_of_first(|entry| entry.central.extra = long_sizes(entry, 0)), sentence);
    let twice = |entry: &mut Entry| entry.local.extra = long_sizes(entry, 0).repeat(2);
    assert_eq!(told_of_first(twice), sentence);
    let behind = |entry: &mut Entry| {
        entry.local.extra = long_sizes(entry, 0);
        entry.describe_behind(true);
    };
    assert_eq!(told_of_first(behind), sentence);
}

/// The extra field with the sizes of an entry in 64 bits, off by so much.
fn long_sizes(entry: &Entry, off: u64) -> Vec<u8> {
    let size = u64::from(entry.central.size) + off;
    [&[1, 0, 16, 0][..], &size.to_le_bytes(), &u64::from(entry.central.compressed).to_le_bytes()].concat()
}

#[test]
fn room_for_64_bit_sizes_before_the_data_may_hold_the_same_sizes_and_no_others() {
    let differs = "has another size in its own header than in the directory";
    let mut archive = demo();
    for entry in &mut archive.entries {
        entry.local.extra = long_sizes(entry, 0);
    }
    assert!(inspected_as(NAME, &archive.bytes()).is_ok());
    // As it should be written: the short sizes only say that there are long ones.
    for entry in &mut archive.entries {
        (entry.local.size, entry.local.compressed) = (u32::MAX, u32::MAX);
    }
    assert!(inspected_as(NAME, &archive.bytes()).is_ok());
    for off in [1, 1 << 32, u64::from(u32::MAX)] {
        assert_eq!(told_of_first(|entry| entry.local.extra = long_sizes(entry, off)), differs);
    }
    let short = |entry: &mut Entry| entry.local.extra = [&[1, 0, 8, 0][..], &16_u64.to_le_bytes()].concat();
    assert_eq!(told_of_first(short), differs);
    assert_eq!(told_of_first(|entry| entry.local.size = u32::MAX), differs);
    let other = |entry: &mut Entry| {
        entry.local.extra = long_sizes(entry, 0);
        entry.local.size -= 1;
    };
    assert_eq!(told_of_first(other), differs);
}

#[test]
fn a_pointer_to_a_64_bit_record_is_refused_even_inside_of_something_else() {
    let locator = [&b"PK\x06\x07"[..], &[0; 16]].concat();
    // Some readers look just before the end record, and do not ask what these bytes belong to.
    assert_eq!(
        told(|archive| archive.entries.last_mut().unwrap().central.comment = locator.clone()),
        OF_64_BITS
    );
    let extra = [&[0x55, 0x54, 20, 0][..], &locator].concat();
    assert_eq!(told(|archive| archive.entries.last_mut().unwrap().central.extra = extra.clone()), OF_64_BITS);
    assert!(told(|archive| archive.before_end = locator.clone()).contains("behind its directory"));
}

#[test]
fn a_directory_that_is_not_where_the_end_says_is_refused() {
    let behind = "the archive has data before its first entry or behind its directory";
    let missing = "the archive is cut off, or its directory is not where it says";
    let mut archive = demo();
    let bytes = archive.bytes();
    let directory = u32::from_le_bytes(bytes[bytes.len() - 6..][..4].try_into().unwrap());
    archive.directory = Some(directory - 1);
    assert_eq!(refusal(&archive.bytes()), behind);
    archive.directory = Some(directory + 1);
    assert_eq!(refusal(&archive.bytes()), missing);
    archive.directory = Some(u32::MAX - 1);
    assert_eq!(refusal(&archive.bytes()), missing);
}

#[test]
fn a_directory_that_says_another_number_of_entries_is_refused() {
    let with =
        |count: u16| told(|archive| (archive.entries_here, archive.entries_all) = (Some(count), Some(count)));
    assert_eq!(with(3), "the archive says that it holds fewer entries than it lists");
    assert_eq!(with(5), "the archive has a directory that cannot be read");
    assert_eq!(told(|archive| archive.entries.clear()), "the archive has no dist-info folder");
}

#[test]
fn more_entries_than_the_limit_are_refused() {
    let names: Vec<String> = (0..10_000).map(|number| format!("demo_pkg/m{number}.py")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    // With the four of its own they are 10,004; four fewer are taken.
    let wheel = |count: usize| super::raw::wheel_with(&files[..count]).bytes();
    assert_eq!(refusal(&wheel(9_997)), "the archive holds more than 10000 entries");
    assert_eq!(inspected_as(NAME, &wheel(9_996)).unwrap().files, 10_000);
}

#[test]
fn a_directory_larger_than_the_limit_is_refused() {
    let sentence = told(|archive| {
        for number in 0..150 {
            let mut entry = Entry::stored(&format!("demo_pkg/m{number}.py"), b"");
            entry.central.comment = vec![b'x'; 60_000];
            archive.entries.push(entry);
        }
    });
    assert_eq!(sentence, "the archive has too large a directory");
}

#[test]
fn a_header_that_differs_from_the_directory_is_refused() {
    let differs = |what: &str| format!("has another {what} in its own header than in the directory");
    // This is how one reader is shown a harmless file and another installs an evil one.
    assert_eq!(told_of_first(|entry| entry.local.name = b"demo_pkg/__evil__.py".to_vec()), differs("name"));
    assert_eq!(told_of_first(|entry| entry.local.name = b"demo_pkg/x.py".to_vec()), differs("name"));
    assert_eq!(told_of_first(|entry| entry.local.method = 0), differs("compression"));
    assert_eq!(told_of_first(|entry| entry.local.crc ^= 1), differs("checksum"));
    assert_eq!(told_of_first(|entry| entry.local.compressed += 1), differs("size"));
    assert_eq!(told_of_first(|entry| entry.local.size = 0), differs("size"));
    assert_eq!(told_of_first(|entry| entry.local.flags = 1 << 3), differs("set of flags"));
    assert_eq!(told_of_first(|entry| entry.local.flags = 1), differs("set of flags"));
}

#[test]
fn sizes_behind_the_data_that_differ_are_refused() {
    let sentence = "has other sizes or another checksum behind its data than in the directory";
    for with_signature in [true, false] {
        for byte in [0, 4, 8] {
            let told = told_of_first(|entry| {
                entry.describe_behind(with_signature);
                let at = entry.behind.len() - 12 + byte;
                entry.behind[at] ^= 1;
            });
            assert_eq!(told, sentence);
        }
    }
    let gap = "is followed by data that belongs to no entry";
    let told = told_of_first(|entry| {
        entry.describe_behind(true);
        entry.behind[0] = b'Q';
    });
    assert_eq!(told, gap);
    let told = told_of_first(|entry| {
        entry.describe_behind(true);
        entry.behind.clear();
    });
    assert_eq!(told, gap);
}

#[test]
fn a_stored_entry_with_its_size_behind_its_data_is_refused() {
    let sentence = told(|archive| {
        let mut entry = Entry::stored("demo_pkg/data.bin", b"PK\x03\x04 looks like the next entry");
        entry.describe_behind(true);
        archive.entries.insert(0, entry);
    });
    assert_eq!(sentence, "\"demo_pkg/data.bin\" is stored, and has its size behind its data");
}

#[test]
fn entries_that_overlap_are_refused() {
    // Both are the same bytes, which is how a small file becomes a large one.
    let sentence = told(|archive| {
        let mut twin = archive.entries[0].clone();
        twin.central.name = b"demo_pkg/twin__.py".to_vec();
        twin.central.offset = Some(0);
        archive.entries.push(twin);
    });
    assert!(sentence.ends_with("overlaps what follows it"), "{sentence}");
    // Its data reaches into the next entry.
    let sentence = told_of_first(|entry| entry.both(|header| header.compressed += 40));
    assert_eq!(sentence, "overlaps what follows it");
    // The second begins inside of the header of the first.
    let sentence = told(|archive| archive.entries[1].central.offset = Some(10));
    assert_eq!(sentence, "\"demo_pkg/__init__.py\" overlaps what follows it");
    // And inside of its name.
    let sentence = told(|archive| archive.entries[1].central.offset = Some(35));
    assert_eq!(sentence, "\"demo_pkg/__init__.py\" overlaps what follows it");
}

#[test]
fn an_entry_that_is_not_where_the_directory_says_is_refused() {
    let mut bytes = demo().bytes();
    bytes[2] = 9;
    assert_eq!(refusal(&bytes), "\"demo_pkg/__init__.py\" is not where the directory says");
    // It is said to be behind the directory, so nothing owns the place where it is.
    let mut archive = demo();
    archive.entries[1].central.offset = Some(u32::try_from(archive.bytes().len()).unwrap() - 1);
    let sentence = "\"demo_pkg/__init__.py\" is followed by data that belongs to no entry";
    assert_eq!(refusal(&archive.bytes()), sentence);
}

#[test]
fn extra_fields_that_change_how_an_entry_is_read_are_refused() {
    let second_name = [&[0x75, 0x70, 6, 0, 1, 0, 0, 0, 0][..], b"x"].concat();
    let aes = [0x01, 0x99, 7, 0, 2, 0, b'A', b'E', 3, 0, 0];
    for (extra, sentence) in [
        (second_name.as_slice(), "has a second name"),
        (&aes, "is encrypted"),
        (&[0x55, 0x54, 9], "has extra fields that cannot be read"),
        (&[0x55, 0x54, 9, 0, 1], "has extra fields that cannot be read"),
    ] {
        assert_eq!(told_of_first(|entry| entry.central.extra = extra.to_vec()), sentence);
        assert_eq!(told_of_first(|entry| entry.local.extra = extra.to_vec()), sentence);
    }
}
