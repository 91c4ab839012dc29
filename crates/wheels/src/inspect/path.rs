//! The names of entries: each by itself, and all together.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization as _;

use super::directory::Entry;
use super::unsound::Unsound;

/// Longer paths cannot be made everywhere.
const MOST_BYTES: usize = 1_024;

const TYPE_OF_FILE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
/// The bit that MS-DOS has for folders.
const DOS_FOLDER: u32 = 0x10;

/// The name of an entry, when it stays below the folder that the wheel is unpacked in, on every system.
pub(super) fn read(bytes: &[u8], is_marked_utf8: bool) -> Result<String, Unsound> {
    let Ok(name) = std::str::from_utf8(bytes) else {
        return Err(Unsound::entry(&String::from_utf8_lossy(bytes), "has a name that is not UTF-8"));
    };
    let wrong = |what| Err(Unsound::entry(name, what));
    if !name.is_ascii() && !is_marked_utf8 {
        return wrong("has a name that is not marked as UTF-8");
    }
    if name.len() > MOST_BYTES {
        return wrong("has too long a name");
    }
    if name.chars().any(char::is_control) {
        return wrong("has control characters in its name");
    }
    if name.contains('\\') {
        return wrong("has a backslash in its name");
    }
    if name.starts_with('/') {
        return wrong("has an absolute name");
    }
    if matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic()) {
        return wrong("begins with the letter of a drive");
    }
    let mut parts = name.strip_suffix('/').unwrap_or(name).split('/');
    if parts.clone().any(|part| part == "..") {
        return wrong("leaves the folder of the wheel");
    }
    if parts.any(|part| matches!(part, "" | ".")) {
        return wrong("has an empty part in its name");
    }
    Ok(name.to_owned())
}

/// Whether an entry is a folder. Its name says so, and its attributes may not say anything else. Attributes of Unix are looked at
/// whatever system the entry claims to be from, as installers do.
pub(super) fn is_folder(name: &str, attributes: u32) -> Result<bool, Unsound> {
    let is_folder = name.ends_with('/');
    let wrong = |what| Err(Unsound::entry(name, what));
    match attributes >> 16 & TYPE_OF_FILE {
        0 => {}
        REGULAR if !is_folder => {}
        FOLDER if is_folder => {}
        REGULAR => return wrong("has the name of a folder and the attributes of a file"),
        FOLDER => return wrong("has the name of a file and the attributes of a folder"),
        LINK => return wrong("is a symbolic link"),
        _ => return wrong("is a device or another special file"),
    }
    if attributes & DOS_FOLDER != 0 && !is_folder {
        return wrong("has the name of a file and the attributes of a folder");
    }
    Ok(is_folder)
}

/// No two entries may become one file, not even where capitals and the spelling of accents do not count, and none may be a file for one
/// and a folder for another.
pub(super) fn check_together(entries: &[Entry]) -> Result<(), Unsound> {
    let mut exact = HashSet::new();
    let mut files = HashSet::new();
    let mut known: HashMap<String, &str> = HashMap::new();
    for entry in entries {
        if !exact.insert(entry.name.as_str()) {
            return Err(Unsound::entry(&entry.name, "is there twice"));
        }
        let folded = folded(&entry.name);
        if let Some(other) = known.insert(folded.clone(), &entry.name) {
            let other: String = other.chars().take(100).collect();
            return Err(Unsound::entry(
                &entry.name,
                format!("is the same file as {other:?} where capitals do not count"),
            ));
        }
        if !entry.is_folder {
            files.insert(folded);
        }
    }
    for entry in entries {
        let folded = folded(&entry.name);
        let mut above = folded.as_str();
        while let Some((parent, _)) = above.rsplit_once('/') {
            if files.contains(parent) {
                return Err(Unsound::entry(&entry.name, "is below a file"));
            }
            above = parent;
        }
    }
    Ok(())
}

/// One spelling for names that some file system takes for the same. The slash of a folder is gone.
fn folded(name: &str) -> String {
    let name = name.strip_suffix('/').unwrap_or(name);
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.nfc().flat_map(char::to_lowercase).nfc().collect()
}
