//! Documents made to hurt do not make the process swell. A binary of its own, because the peak is the process's.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "support/hostile.rs"]
mod documents;

use pyoco_flow::{Limits, parse, parse_native};

const MOST_KIB: u64 = 16 * 1024;

/// The peak of resident memory in KiB, where the system tells it.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn no_document_takes_more_than_sixteen_mebibytes() {
    let documents = documents::documents();
    let limits = || Limits { max_bytes: documents::CAP };
    let Some(before) = peak_kib() else { return };
    for (name, document) in &documents {
        let _ = parse(document.as_bytes(), limits());
        let _ = parse_native(document.as_bytes(), limits());
        let after = peak_kib().unwrap();
        // The kernel's counters are rough, so the peak can seem to fall by a few pages.
        let grown = after.saturating_sub(before);
        assert!(grown <= MOST_KIB, "{name}: {grown} KiB");
    }
}
