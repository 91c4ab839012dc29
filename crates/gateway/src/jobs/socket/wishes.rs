//! What a client may say: how often, and in which words.

use std::time::Duration;

use pyoco_api::JobWish;
use pyoco_core::json::{self, Limits};
use tokio::time::Instant;

use super::LONGEST;

/// So many messages, of whatever kind, may come in a second.
const MOST_A_SECOND: u32 = 20;
/// So many in a row may make no sense.
const MOST_NONSENSE: u32 = 3;

const LIMITS: Limits = Limits { bytes: LONGEST, depth: 4 };

/// Counts what a client says.
#[derive(Debug)]
pub(super) struct Patience {
    since: Instant,
    heard: u32,
    nonsense: u32,
}

/// The client has said too much of something.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exhausted(pub(super) &'static str);

impl Patience {
    pub(super) const fn new(now: Instant) -> Self {
        Self { since: now, heard: 0, nonsense: 0 }
    }

    /// Something was said.
    pub(super) fn hear(&mut self, now: Instant) -> Result<(), Exhausted> {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            (self.since, self.heard) = (now, 0);
        }
        self.heard += 1;
        if self.heard > MOST_A_SECOND { Err(Exhausted("too many messages")) } else { Ok(()) }
    }

    /// It made no sense.
    pub(super) fn wonder(&mut self) -> Result<(), Exhausted> {
        self.nonsense += 1;
        if self.nonsense >= MOST_NONSENSE { Err(Exhausted("nothing of this makes sense")) } else { Ok(()) }
    }

    /// It made sense.
    pub(super) const fn understand(&mut self) {
        self.nonsense = 0;
    }
}

/// What a text wishes, or why that is not clear.
pub(super) fn read(text: &str) -> Result<JobWish, String> {
    json::decode(text.as_bytes(), LIMITS).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_later_all_is_forgotten() {
        let now = Instant::now();
        let mut patience = Patience::new(now);
        for _ in 0..MOST_A_SECOND {
            assert_eq!(patience.hear(now), Ok(()));
        }
        assert!(patience.hear(now).is_err());
        assert_eq!(patience.hear(now + Duration::from_secs(1)), Ok(()));
    }

    #[test]
    fn only_nonsense_in_a_row_counts() {
        let mut patience = Patience::new(Instant::now());
        for _ in 0..10 {
            assert_eq!((patience.wonder(), patience.wonder()), (Ok(()), Ok(())));
            patience.understand();
        }
        assert!(patience.wonder().is_ok() && patience.wonder().is_ok() && patience.wonder().is_err());
    }

    #[test]
    fn a_wish_is_read_strictly() {
        assert_eq!(read(r#"{"type":"ping"}"#), Ok(JobWish::Ping {}));
        for text in ["", "ping", "[[[[[[]]]]]]", r#"{"type":"ping","type":"ping"}"#, r#"{"type":"other"}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
