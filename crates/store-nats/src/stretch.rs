//! A stretch of numbers without a gap: what this process has written into a stream, one message right behind the other.
//!
//! The server numbers the messages of a stream in the order in which it stores them. Where a number is missing, somebody else has written, or the
//! server's answer to us is still on its way.

use std::collections::BTreeSet;

/// So many numbers behind a gap are kept. Whoever never asks gets no more than that.
const MOST: usize = 4_096;

/// A stretch that grows at its end.
#[derive(Debug, Default)]
pub(crate) struct Stretch {
    /// Nothing up to here belongs to it.
    begin: u64,
    /// Everything up to here does.
    end: u64,
    /// What was added behind a gap.
    ahead: BTreeSet<u64>,
}

impl Stretch {
    /// Adds a number.
    pub(crate) fn add(&mut self, number: u64) {
        if number <= self.end || self.ahead.len() == MOST {
            // Another stream of the same name counts from 1 again, or the message was heard before the answer was; then the next question puts
            // it right. And what nobody asks for is not kept for ever.
            *self = Self { begin: number.saturating_sub(1), end: number, ahead: BTreeSet::new() };
        } else {
            self.ahead.insert(number);
            self.grow();
        }
    }

    /// How far the stretch goes without a gap behind a number up to which everything is known; that number itself if it is not in the stretch.
    pub(crate) fn behind(&mut self, known: u64) -> u64 {
        if known > self.end {
            self.ahead = self.ahead.split_off(&known);
            (self.begin, self.end) = (known, known);
            self.ahead.remove(&known);
            self.grow();
        }
        if known < self.begin { known } else { self.end }
    }

    fn grow(&mut self) {
        while self.ahead.first().is_some_and(|first| *first == self.end.saturating_add(1)) {
            self.ahead.pop_first();
            self.end += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: impl IntoIterator<Item = u64>) -> Stretch {
        let mut stretch = Stretch::default();
        numbers.into_iter().for_each(|number| stretch.add(number));
        stretch
    }

    #[test]
    fn it_goes_on_to_the_first_gap_and_past_it_when_the_gap_is_known() {
        let mut stretch = of([11, 12, 13, 15, 16]);
        assert_eq!(stretch.behind(9), 9, "10 is somebody else's");
        assert_eq!(stretch.behind(10), 13);
        assert_eq!(stretch.behind(12), 13);
        assert_eq!(stretch.behind(13), 13, "14 is somebody else's");
        assert_eq!(stretch.behind(14), 16);
        assert_eq!(stretch.behind(20), 20);
        stretch.add(21);
        assert_eq!(stretch.behind(20), 21);
    }

    #[test]
    fn the_order_of_answers_does_not_matter() {
        let mut stretch = of([3, 1, 5, 2]);
        assert_eq!(stretch.behind(0), 3);
        stretch.add(4);
        assert_eq!(stretch.behind(0), 5);
    }

    #[test]
    fn numbers_that_begin_again_are_those_of_another_stream() {
        let mut stretch = of(1..=50);
        assert_eq!(stretch.behind(0), 50);
        stretch.add(1);
        assert_eq!((stretch.behind(0), stretch.behind(50)), (1, 50));
    }

    #[test]
    fn what_nobody_asks_for_is_not_kept_for_ever() {
        let stretch = of((0..100_000).map(|number| 2 + 2 * number));
        assert!(stretch.ahead.len() <= MOST);
    }
}
