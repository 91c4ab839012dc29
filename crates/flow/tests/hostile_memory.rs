//! Documents made to hurt do not make the process swell. Each is parsed in a process of its own, because a peak is a
//! process's and never falls.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "support/hostile.rs"]
mod documents;

use std::process::Command;

use pyoco_flow::{Limits, parse, parse_native};

const MOST_KIB: u64 = 16 * 1024;
const WHICH: &str = "HOSTILE_DOCUMENT";

/// The peak of resident memory in KiB, where the system tells it.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// In the child: parses one document and fails when the peak has grown too much.
fn parse_one(number: usize) {
    let (name, document) = documents::documents().swap_remove(number);
    let limits = || Limits { max_bytes: documents::CAP };
    let Some(before) = peak_kib() else { return };
    let _ = parse(document.as_bytes(), limits());
    let _ = parse_native(document.as_bytes(), limits());
    let grown = peak_kib().unwrap().saturating_sub(before);
    assert!(grown <= MOST_KIB, "{name}: {grown} KiB");
}

#[test]
fn no_document_takes_more_than_sixteen_mebibytes() {
    if let Some(number) = std::env::var_os(WHICH) {
        return parse_one(number.to_str().unwrap().parse().unwrap());
    }
    for (number, (name, _)) in documents::documents().iter().enumerate() {
        let child =
            Command::new(std::env::current_exe().unwrap()).env(WHICH, number.to_string()).output().unwrap();
        assert!(child.status.success(), "{name}: {}", String::from_utf8_lossy(&child.stdout));
    }
}
