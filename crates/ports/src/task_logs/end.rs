//! How far a log goes, and the rule by which lines are taken into it. Every store follows it; none has one of its own.

use super::{LogLine, LogStream};
use pyoco_core::ids::Attempt;
use pyoco_core::time::Timestamp;

/// The end of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// How many lines it has: the number of the last one.
    pub lines: u64,
    /// How many bytes its text has.
    pub bytes: u64,
    /// It has reached its limit, and the last line says so.
    pub is_cut: bool,
    /// Its execution has ended: nothing follows.
    pub is_closed: bool,
}

/// What is to be observed while lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogTerms {
    /// No line is kept that would make the text longer than this.
    pub max_bytes: u64,
    /// These are the last ones.
    pub closes: bool,
}

/// What became of lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The lines that were kept, with their numbers.
    pub lines: Vec<(u64, LogLine)>,
    /// The end of the log after them.
    pub end: LogEnd,
}

impl LogEnd {
    /// What is kept of lines that are to follow here. The first one that does not fit is replaced by a mark, and nothing follows
    /// that; nothing at all is kept once the log is closed.
    #[must_use]
    pub fn take(self, lines: Vec<LogLine>, terms: LogTerms) -> Written {
        let mut end = self;
        let mut kept = Vec::with_capacity(lines.len());
        if end.is_closed {
            return Written { lines: kept, end };
        }
        for line in lines {
            if end.is_cut {
                break;
            }
            let bytes = line.text_bytes();
            if end.bytes.saturating_add(bytes) > terms.max_bytes {
                let mark = mark(line.at, terms.max_bytes);
                end.is_cut = true;
                end.bytes = end.bytes.saturating_add(mark.text_bytes());
                end.lines += 1;
                kept.push((end.lines, mark));
                break;
            }
            end.bytes += bytes;
            end.lines += 1;
            kept.push((end.lines, line));
        }
        end.is_closed = terms.closes;
        Written { lines: kept, end }
    }
}

fn mark(at: Timestamp, max_bytes: u64) -> LogLine {
    let text = format!("the log ends here: it has reached {max_bytes} bytes (PYOCO_RUN_LOG_MAX_BYTES)");
    LogLine { node: None, attempt: Attempt(0), stream: LogStream::Engine, at, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> LogLine {
        LogLine {
            node: None,
            attempt: Attempt(0),
            stream: LogStream::Stdout,
            at: Timestamp::from_micros(0),
            text: text.to_owned(),
        }
    }

    fn texts(written: &Written) -> Vec<(u64, &str)> {
        written.lines.iter().map(|(number, line)| (*number, line.text.as_str())).collect()
    }

    const OPEN: LogTerms = LogTerms { max_bytes: 1_000, closes: false };

    #[test]
    fn lines_are_numbered_behind_the_end() {
        let first = LogEnd::default().take(vec![line("a"), line("b")], OPEN);
        assert_eq!(texts(&first), [(1, "a"), (2, "b")]);
        let second = first.end.take(vec![line("c")], OPEN);
        assert_eq!(texts(&second), [(3, "c")]);
        let each = line("a").text_bytes();
        assert_eq!(second.end, LogEnd { lines: 3, bytes: 3 * each, is_cut: false, is_closed: false });
    }

    #[test]
    fn the_first_line_that_does_not_fit_becomes_the_mark_and_nothing_follows() {
        let terms = LogTerms { max_bytes: 2 * line("a").text_bytes(), closes: false };
        let written = LogEnd::default().take(vec![line("a"), line("b"), line("c"), line("d")], terms);
        assert_eq!(written.lines.len(), 3);
        assert!(written.end.is_cut && written.lines[2].1.stream == LogStream::Engine);
        let after = written.end.take(vec![line("e")], OPEN);
        assert_eq!((texts(&after), after.end), (vec![], written.end));
    }

    #[test]
    fn a_closed_log_takes_nothing() {
        let closed = LogEnd::default().take(vec![line("a")], LogTerms { closes: true, ..OPEN });
        assert!(closed.end.is_closed && closed.lines.len() == 1);
        let after = closed.end.take(vec![line("b")], OPEN);
        assert_eq!((texts(&after), after.end), (vec![], closed.end));
    }

    #[test]
    fn a_cut_log_can_be_closed() {
        let cut = LogEnd::default().take(vec![line("a")], LogTerms { max_bytes: 0, closes: false }).end;
        assert!(cut.is_cut && !cut.is_closed);
        let closed = cut.take(vec![line("b")], LogTerms { max_bytes: 0, closes: true });
        assert!(closed.lines.is_empty() && closed.end.is_closed && closed.end.is_cut);
    }
}
