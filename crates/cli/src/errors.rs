//! How a command fails: what is said on standard error, and the exit code.
//!
//! The form is the contract's: a title with its number, then `- reason`, `- usage`, `- hint`. Exit codes: 0 done, 1 something that
//! the caller can mend, 130 interrupted or canceled. `pyoco-server-admin` also has 2, as the original.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

use pyoco_core::notice::Notice;

use crate::output::printable;

/// Why a command ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Empty when there is nothing to say.
    title: String,
    notes: Vec<(&'static str, String)>,
    exit_code: u8,
}

impl Failure {
    /// A failure with a title of its own, e.g. `ERR-PYOCO-HTTP: request failed`.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), notes: Vec::new(), exit_code: 1 }
    }

    /// Arguments, or what they point to, are not valid.
    pub fn arguments(reason: impl Into<String>) -> Self {
        let notice = Notice::InvalidArguments;
        Self::new(format!("{}: {}", notice.err_id(), notice.text())).note("reason", reason)
    }

    /// A file could not be read or written.
    pub fn file(path: &str, error: &io::Error) -> Self {
        Self::new(format!("{}: file I/O error", Notice::InvalidArguments.err_id()))
            .note("reason", format!("{path}: {error}"))
            .hint("check file path and permission")
    }

    /// Something that should not happen.
    pub fn unexpected(reason: impl fmt::Display) -> Self {
        Self::new(format!("ERR-PYOCO-UNEXPECTED: {reason}"))
    }

    /// The user pressed Ctrl-C, and knows it.
    pub const fn interrupted() -> Self {
        Self { title: String::new(), notes: Vec::new(), exit_code: 130 }
    }

    /// What was followed was canceled, and its last event has said so.
    pub const fn canceled() -> Self {
        Self::interrupted()
    }

    /// What there is to say stands on standard output.
    pub const fn said(exit_code: u8) -> Self {
        Self { title: String::new(), notes: Vec::new(), exit_code }
    }

    /// Nobody reads the output any more, as after `| head`. That is how it was meant.
    pub const fn output_closed() -> Self {
        Self { title: String::new(), notes: Vec::new(), exit_code: 0 }
    }

    /// Adds a line `- label: text`.
    #[must_use]
    pub fn note(mut self, label: &'static str, text: impl Into<String>) -> Self {
        self.notes.push((label, text.into()));
        self
    }

    /// Adds how the command is called.
    #[must_use]
    pub fn usage(self, text: impl Into<String>) -> Self {
        self.note("usage", text)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(self, text: impl Into<String>) -> Self {
        self.note("hint", text)
    }

    /// With another exit code than 1.
    #[must_use]
    pub const fn exiting(mut self, exit_code: u8) -> Self {
        self.exit_code = exit_code;
        self
    }

    /// What the process ends with.
    pub const fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.title))?;
        for (label, text) in &self.notes {
            write!(f, "\n- {label}: {}", printable(text.trim_end()))?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    /// Standard output could not be written.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::output_closed();
        }
        Self::unexpected(format!("standard output: {error}"))
    }
}

/// Says on standard error why a command failed, and gives its exit code.
pub fn conclude(result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    if !failure.title.is_empty() {
        // With standard error gone there is nobody left to tell.
        let _ = writeln!(io::stderr().lock(), "{failure}");
    }
    ExitCode::from(failure.exit_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_the_form_of_the_contract() {
        let failure =
            Failure::arguments("--limit is no number").usage("pyoco-client list").hint("--limit 10");
        let text = "ERR-PYOCO-0018: CLI引数が不正です（入力形式を確認してください）\n\
                    - reason: --limit is no number\n- usage: pyoco-client list\n- hint: --limit 10";
        assert_eq!(failure.to_string(), text);
        assert_eq!(failure.exit_code(), 1);
    }

    #[test]
    fn what_a_server_says_cannot_steer_the_terminal() {
        let failure = Failure::new("x").note("reason", "a\u{1b}[2Jb\r\n");
        assert_eq!(failure.to_string(), "x\n- reason: a\\u{1b}[2Jb");
    }
}
