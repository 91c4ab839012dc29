//! A log that somebody in this process follows: its end as far as it is known, and its newest lines, so that each is read once
//! and not once for each follower.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use pyoco_core::ids::ExecutionId;
use pyoco_ports::{LogEnd, LogLine, StoreError, TaskLogs, Written};
use tokio::sync::{OnceCell, watch};

use super::read::{LINES_AT_ONCE, TEXT_AT_ONCE};

/// So much text of the newest lines is kept for those who follow, and not more lines than this.
const KEPT_TEXT: usize = 4 << 20;
const KEPT_LINES: usize = 16_384;

/// A line and its number.
pub type NumberedLine = (u64, Arc<LogLine>);

/// A log that is followed.
pub(super) struct Followed {
    pub(super) end: watch::Sender<LogEnd>,
    recent: Mutex<Recent>,
    reading: tokio::sync::Mutex<()>,
    /// Set once others are listened to.
    pub(super) listening: OnceCell<()>,
}

/// The newest lines, without a gap.
#[derive(Default)]
struct Recent {
    lines: VecDeque<NumberedLine>,
    text: usize,
}

impl Default for Followed {
    fn default() -> Self {
        Self {
            end: watch::Sender::new(LogEnd::default()),
            recent: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            listening: OnceCell::new(),
        }
    }
}

impl Followed {
    /// Takes what was written here just now.
    pub(super) fn written(&self, written: Written) {
        self.keep(written.lines.into_iter().map(|(number, line)| (number, Arc::new(line))));
        self.goes_to(written.end);
    }

    /// The log goes at least so far.
    pub(super) fn goes_to(&self, end: LogEnd) {
        self.end.send_if_modified(|known| {
            let is_newer = end.lines > known.lines || (end.lines == known.lines && end != *known);
            if is_newer {
                *known = LogEnd {
                    is_cut: end.is_cut || known.is_cut,
                    is_closed: end.is_closed || known.is_closed,
                    ..end
                };
            }
            is_newer
        });
    }

    /// Some of the lines after a number, without a gap; none if there are none yet.
    pub(super) async fn after(
        &self,
        store: &dyn TaskLogs,
        execution: &ExecutionId,
        after: u64,
    ) -> Result<Vec<NumberedLine>, StoreError> {
        if let Some(known) = self.known(after) {
            return Ok(known);
        }
        // One reads for all who wait here.
        let reading = self.reading.lock().await;
        if let Some(known) = self.known(after) {
            return Ok(known);
        }
        let read = store.read_lines(execution, after, LINES_AT_ONCE).await?;
        let lines: Vec<NumberedLine> =
            read.into_iter().map(|(number, line)| (number, Arc::new(line))).collect();
        self.keep(lines.iter().cloned());
        drop(reading);
        Ok(lines)
    }

    fn keep(&self, lines: impl Iterator<Item = NumberedLine>) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, line) in lines {
            match recent.lines.back().map(|(last, _)| last + 1) {
                Some(next) if number < next => continue,
                // What lies in between is not here: what is older is no use.
                Some(next) if number > next => *recent = Recent::default(),
                Some(_) | None => {}
            }
            recent.text += line.text.len();
            recent.lines.push_back((number, line));
            while recent.text > KEPT_TEXT || recent.lines.len() > KEPT_LINES {
                let Some((_, oldest)) = recent.lines.pop_front() else { break };
                recent.text -= oldest.text.len();
            }
        }
    }

    fn known(&self, after: u64) -> Option<Vec<NumberedLine>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = (recent.lines.front()?.0, recent.lines.back()?.0);
        if first > after + 1 || last <= after {
            return None;
        }
        let skipped = usize::try_from(after + 1 - first).ok()?;
        let mut text = 0;
        let fits = |(_, line): &&NumberedLine| {
            let is_room = text < TEXT_AT_ONCE;
            text += line.text.len();
            is_room
        };
        Some(recent.lines.iter().skip(skipped).take(LINES_AT_ONCE).take_while(fits).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use pyoco_core::ids::Attempt;
    use pyoco_core::time::Timestamp;
    use pyoco_ports::LogStream;

    use super::*;

    fn line(text: &str) -> LogLine {
        let at = Timestamp::from_micros(0);
        LogLine { node: None, attempt: Attempt(0), stream: LogStream::Stdout, at, text: text.to_owned() }
    }

    fn written(numbers: std::ops::RangeInclusive<u64>) -> Written {
        let end = LogEnd { lines: *numbers.end(), ..LogEnd::default() };
        Written { lines: numbers.map(|number| (number, line("x"))).collect(), end }
    }

    fn numbers(followed: &Followed, after: u64) -> Option<Vec<u64>> {
        Some(followed.known(after)?.iter().map(|(number, _)| *number).collect())
    }

    #[test]
    fn newest_lines_are_known_without_a_gap() {
        let followed = Followed::default();
        followed.written(written(1..=3));
        assert_eq!(numbers(&followed, 1), Some(vec![2, 3]));
        // Lines 4 and 5 were written elsewhere.
        followed.written(written(6..=7));
        assert_eq!(numbers(&followed, 5), Some(vec![6, 7]));
        for after in [1, 4, 7, 9] {
            assert_eq!(numbers(&followed, after), None, "after {after}");
        }
    }

    #[test]
    fn a_flood_is_not_kept_in_memory() {
        let followed = Followed::default();
        for number in 1..=100 {
            let lines = vec![(number, line(&"x".repeat(64 * 1024)))];
            followed.written(Written { lines, end: LogEnd { lines: number, ..LogEnd::default() } });
        }
        assert!(followed.recent.lock().unwrap().text <= KEPT_TEXT);
        assert_eq!(numbers(&followed, 99), Some(vec![100]));
        assert_eq!(numbers(&followed, 1), None);
    }

    #[test]
    fn an_end_never_goes_back() {
        let followed = Followed::default();
        let end = |lines, is_closed| LogEnd { lines, bytes: lines, is_cut: false, is_closed };
        for (told, known) in [
            (end(2, false), end(2, false)),
            (end(1, false), end(2, false)),
            (end(2, true), end(2, true)),
            (end(2, false), end(2, true)),
        ] {
            followed.goes_to(told);
            assert_eq!(*followed.end.borrow(), known);
        }
    }
}
