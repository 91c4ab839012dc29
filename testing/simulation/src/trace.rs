//! What happened, in order: a fingerprint always, the lines themselves for whoever wants to read them.

use std::fmt::Write as _;

/// Everything that happened so far.
#[derive(Debug)]
pub(crate) struct Trace {
    fingerprint: u64,
    line: String,
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(keeps_lines: bool) -> Self {
        // FNV-1a: the same everywhere and for ever, and nobody here is an adversary.
        Self { fingerprint: 0xcbf2_9ce4_8422_2325, line: String::new(), lines: keeps_lines.then(Vec::new) }
    }

    /// Notes what happened at a moment, in milliseconds since the beginning.
    pub(crate) fn note(&mut self, at: u128, what: std::fmt::Arguments<'_>) {
        self.line.clear();
        // A string takes everything.
        let _ = write!(self.line, "{at:>7} {what}");
        for byte in self.line.bytes() {
            self.fingerprint = (self.fingerprint ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if let Some(lines) = &mut self.lines {
            lines.push(self.line.clone());
        }
    }

    pub(crate) const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.clone().unwrap_or_default()
    }
}
