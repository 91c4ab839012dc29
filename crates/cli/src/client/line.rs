//! One line of a log, as text: as the server writes it, or in colours for a terminal.
//!
//! What a task has written may colour itself and do nothing else. Not here: where lines come from.

use std::io::{self, IsTerminal as _};

use pyoco_client::api::LogEntry;
use pyoco_core::plain;

use crate::output::has_colours;

/// What a task's name may be coloured with: neither the red of errors nor the plain text.
const COLOURS: [&str; 10] = ["36", "33", "35", "32", "34", "96", "93", "95", "92", "94"];
const RED: &str = "31";
const DIM: &str = "2";

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) has_times: bool,
    pub(super) ink: Ink,
}

/// Who colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    /// Whoever wrote the line, and nobody else: for pipes and files, which get the bytes that the server gives.
    Theirs,
    /// Nobody: for a terminal whose user wants none.
    Nobody,
    /// We do as well.
    Ours,
}

impl Ink {
    /// What standard output can show.
    pub(super) fn of_output() -> Self {
        match (has_colours(), io::stdout().is_terminal()) {
            (true, _) => Self::Ours,
            (false, true) => Self::Nobody,
            (false, false) => Self::Theirs,
        }
    }
}

impl Look {
    /// Adds a line with its line break: `time task stream | text`.
    pub(super) fn write_to(self, shown: &mut String, line: &LogEntry) {
        let (whole, name) = match (line.stream.as_str(), &line.task) {
            ("engine", _) => (Some(DIM), None),
            ("stderr", Some(task)) => (Some(RED), Some(colour(task))),
            ("stderr", None) => (Some(RED), None),
            (_, task) => (None, task.as_deref().map(colour)),
        };
        if self.has_times {
            self.paint(shown, Some(DIM), &line.timestamp.to_string());
            shown.push(' ');
        }
        self.paint(shown, name.or(whole), line.task.as_deref().unwrap_or("-"));
        shown.push(' ');
        self.paint(shown, whole, &line.stream);
        shown.push_str(" | ");
        self.paint(shown, whole, &line.message);
        shown.push('\n');
    }

    fn paint(self, shown: &mut String, colour: Option<&str>, text: &str) {
        match self.ink {
            Ink::Theirs => plain::write_to(shown, text),
            Ink::Nobody => without_colours(shown, &plain::shown(text)),
            Ink::Ours => {
                if let Some(colour) = colour {
                    shown.push_str("\u{1b}[");
                    shown.push_str(colour);
                    shown.push('m');
                }
                plain::write_to(shown, text);
                // A text that colours itself might not end that.
                if colour.is_some() || text.contains('\u{1b}') {
                    shown.push_str("\u{1b}[0m");
                }
            }
        }
    }
}

/// The same name always has the same colour.
fn colour(task: &str) -> &'static str {
    let hash = task.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let at = usize::try_from(hash % COLOURS.len() as u64).unwrap_or_default();
    COLOURS.get(at).copied().unwrap_or("36")
}

/// Adds a text that holds no other sequences than those that set colours, without them.
fn without_colours(shown: &mut String, text: &str) {
    let mut parts = text.split('\u{1b}');
    shown.push_str(parts.next().unwrap_or_default());
    for part in parts {
        shown.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(task: Option<&str>, stream: &str, message: &str) -> LogEntry {
        serde_json::from_value(json!({
            "seq": 1, "timestamp": "2026-01-31T00:00:00Z", "message": message, "task": task, "attempt": 1,
            "stream": stream,
        }))
        .unwrap()
    }

    fn shown(ink: Ink, has_times: bool, line: &LogEntry) -> String {
        let mut text = String::new();
        Look { has_times, ink }.write_to(&mut text, line);
        text
    }

    #[test]
    fn a_pipe_gets_the_text_of_the_server() {
        let load = line(Some("load"), "stdout", "10 \u{1b}[32mrows\u{1b}[0m");
        assert_eq!(
            shown(Ink::Theirs, true, &load),
            "2026-01-31T00:00:00.000000Z load stdout | 10 \u{1b}[32mrows\u{1b}[0m\n"
        );
        assert_eq!(shown(Ink::Theirs, false, &line(None, "engine", "")), "- engine | \n");
    }

    #[test]
    fn a_terminal_without_colours_shows_none() {
        let load = line(Some("load"), "stderr", "a\u{1b}[1;31mb\u{1b}[mc m\u{1b}[2Jd");
        assert_eq!(shown(Ink::Nobody, false, &load), "load stderr | abc m\\x1b[2Jd\n");
    }

    #[test]
    fn a_terminal_tells_tasks_streams_and_the_engine_apart() {
        let (load, name) = ("load", colour("load"));
        assert_eq!(
            shown(Ink::Ours, true, &line(Some(load), "stdout", "ok")),
            format!(
                "\u{1b}[2m2026-01-31T00:00:00.000000Z\u{1b}[0m \u{1b}[{name}mload\u{1b}[0m stdout | ok\n"
            )
        );
        assert_eq!(
            shown(Ink::Ours, false, &line(Some(load), "stderr", "no")),
            format!("\u{1b}[{name}mload\u{1b}[0m \u{1b}[31mstderr\u{1b}[0m | \u{1b}[31mno\u{1b}[0m\n")
        );
        assert_eq!(
            shown(Ink::Ours, false, &line(None, "engine", "done")),
            "\u{1b}[2m-\u{1b}[0m \u{1b}[2mengine\u{1b}[0m | \u{1b}[2mdone\u{1b}[0m\n"
        );
    }

    #[test]
    fn what_a_task_writes_cannot_steer_the_terminal_or_colour_the_next_line() {
        let text = "\u{1b}]0;title\u{7}\r\u{1b}[31mred";
        for ink in [Ink::Theirs, Ink::Nobody, Ink::Ours] {
            let text = shown(ink, false, &line(Some("\u{1b}[2Jx"), "stdout", text));
            assert!(text.contains("\\x1b]0;title\\x07\\x0d") && text.contains("\\x1b[2Jx"), "{text:?}");
            assert_eq!(text.matches(['\r', '\n', '\u{7}']).count(), 1, "{text:?}");
        }
        let ours = shown(Ink::Ours, false, &line(None, "stdout", text));
        assert!(ours.ends_with("\u{1b}[31mred\u{1b}[0m\n"), "{ours:?}");
    }

    #[test]
    fn names_have_colours_and_differ() {
        let names = ["load", "clean", "count", "report", "by_region"];
        assert!(names.iter().all(|name| COLOURS.contains(&colour(name))));
        assert!(names.iter().any(|name| colour(name) != colour("load")));
    }
}
