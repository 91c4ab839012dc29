//! One line of a log, and the text that it is shown as.

use std::fmt::Write as _;

use pyoco_core::ids::{Attempt, NodeId};
use pyoco_core::plain;
use pyoco_core::time::Timestamp;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Which node it is of; none if it is about the execution.
    pub node: Option<NodeId>,
    /// In which try; 0 if it is of none.
    pub attempt: Attempt,
    /// Where it came from.
    pub stream: LogStream,
    /// When it was read.
    pub at: Timestamp,
    /// The text, without its line break.
    pub text: String,
}

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStream {
    /// The task's standard output.
    Stdout,
    /// Its standard error.
    Stderr,
    /// The engine, about the task or the execution.
    Engine,
}

impl LogStream {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Stdout, Self::Stderr, Self::Engine];

    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Engine => "engine",
        }
    }

    /// The stream of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stream| stream.name() == name)
    }
}

impl LogLine {
    /// Adds its text form, with its line break: `time node stream | text`. It can be shown on a terminal: what would move the
    /// cursor is spelt out, and only colours are left. This form never changes, because places in the text are kept.
    pub fn write_to(&self, text: &mut String) {
        self.write_head_to(text);
        plain::write_to(text, &self.text);
        text.push('\n');
    }

    fn write_head_to(&self, text: &mut String) {
        let node = self.node.as_ref().map_or("-", NodeId::as_str);
        // Writing to memory does not fail.
        let _ = write!(text, "{} ", self.at);
        plain::write_to(text, node);
        let _ = write!(text, " {} | ", self.stream.name());
    }

    /// How many bytes its text form has.
    pub fn text_bytes(&self) -> u64 {
        let mut text = String::with_capacity(128);
        self.write_head_to(&mut text);
        // Most lines are shown as they are, and need not be written to know how long they are.
        let is_shown_as_it_is = self.text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        let before = text.len();
        let shown = if is_shown_as_it_is {
            self.text.len()
        } else {
            plain::write_to(&mut text, &self.text);
            text.len() - before
        };
        (before + shown + 1) as u64
    }
}

/// A line and where it stands in the text of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinePlace {
    /// Its number.
    pub number: u64,
    /// Its first byte in the text, counted from 0.
    pub first_byte: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(node: Option<&str>, text: &str) -> LogLine {
        LogLine {
            node: node.map(|node| NodeId::new(node).unwrap()),
            attempt: Attempt(1),
            stream: LogStream::Stdout,
            at: Timestamp::from_micros(1_700_000_000_000_000),
            text: text.to_owned(),
        }
    }

    fn shown(line: &LogLine) -> String {
        let mut text = String::new();
        line.write_to(&mut text);
        text
    }

    #[test]
    fn the_text_of_a_line_names_its_time_node_and_stream() {
        assert_eq!(
            shown(&line(Some("load"), "10 rows")),
            "2023-11-14T22:13:20.000000Z load stdout | 10 rows\n"
        );
        assert_eq!(shown(&line(None, "")), "2023-11-14T22:13:20.000000Z - stdout | \n");
    }

    #[test]
    fn a_line_is_one_line_whatever_it_holds() {
        for text in
            ["", "plain", "a\tb ~", "a\nb\r\u{1b}[2Jc\u{1b}[31md\u{7}", "\u{7f}", "\u{9b}31m", "ünï ☃\0"]
        {
            for line in [line(Some("load"), text), line(None, text)] {
                assert_eq!(shown(&line).matches('\n').count(), 1, "{text:?}");
                assert_eq!(line.text_bytes(), shown(&line).len() as u64, "{text:?}");
            }
        }
    }

    #[test]
    fn each_stream_is_found_by_its_name() {
        assert!(LogStream::ALL.into_iter().all(|stream| LogStream::named(stream.name()) == Some(stream)));
        assert_eq!(LogStream::named("stdin"), None);
    }
}
