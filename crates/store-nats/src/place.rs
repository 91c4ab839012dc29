//! What the reply subject of a delivered message tells: which message it is, how often it came, and what comes behind it.

use pyoco_core::ids::JobId;
use pyoco_core::time::Timestamp;

/// A delivery, as the server names it. Nothing here tells one delivery of a message from the next: an answer to an old one
/// is taken for the current one. The claim in the log is what fences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// How often it was delivered, this time included.
    pub(crate) number: u32,
    /// The number of the message in its stream.
    pub(crate) sequence: u64,
    /// Its number among those that its consumer delivered.
    pub(crate) delivered: u64,
    /// When the stream took it, in nanoseconds.
    stored_at: u64,
    /// How many are to come.
    pub(crate) pending: u64,
}

impl Place {
    /// Reads `$JS.ACK.<stream>.<consumer>.<number>.<sequence>.<consumer sequence>.<time>.<pending>`, or the longer form with a
    /// domain and an account before the stream and perhaps a token at the end. `None` if it is neither.
    pub(crate) fn read(subject: &str) -> Option<Self> {
        let rest = subject.strip_prefix("$JS.ACK.")?;
        let names = match rest.split('.').count() {
            7 => 2,
            9.. => 4,
            _ => return None,
        };
        let mut numbers = rest.split('.').skip(names);
        Some(Self {
            number: numbers.next()?.parse().ok()?,
            sequence: numbers.next()?.parse().ok()?,
            delivered: numbers.next()?.parse().ok()?,
            stored_at: numbers.next()?.parse().ok()?,
            pending: numbers.next()?.parse().ok()?,
        })
    }

    /// When the stream took it.
    pub(crate) fn time(&self) -> Timestamp {
        // Microseconds always fit.
        Timestamp::from_micros(i64::try_from(self.stored_at / 1000).unwrap_or(i64::MAX))
    }

    /// The name of the message. A stream that was made anew counts from 1 again, so its number alone names nothing.
    pub(crate) fn job(&self) -> Option<JobId> {
        JobId::new(&format!("{}-{}", self.sequence, self.stored_at)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &str = "$JS.ACK.PYOCO_WORK.pyoco_workers_gpu.2.17.33.1794759796497965132.5";

    #[test]
    fn both_forms_name_the_same_message() {
        let place = Place::read(SHORT).unwrap();
        assert_eq!((place.sequence, place.number, place.delivered, place.pending), (17, 2, 33, 5));
        assert_eq!(place.time(), Timestamp::from_micros(1_794_759_796_497_965));
        assert_eq!(place.job().unwrap().as_str(), "17-1794759796497965132");
        for (before, behind) in [("hub.ACC", ""), ("_.ACC", ".token")] {
            let long = SHORT.replace("$JS.ACK.", &format!("$JS.ACK.{before}.")) + behind;
            assert_eq!(Place::read(&long), Some(place.clone()), "{long}");
        }
    }

    #[test]
    fn the_next_delivery_of_a_message_has_the_same_name() {
        let again = SHORT.replace(".2.17.33.", ".3.17.99.");
        let (first, second) = (Place::read(SHORT).unwrap(), Place::read(&again).unwrap());
        assert_eq!((first.job(), second.number), (second.job(), 3));
    }

    #[test]
    fn anything_else_is_no_place() {
        for text in [
            "",
            "$JS.ACK.",
            "_INBOX.a",
            "$JS.ACK.s.c.1.2.3.4",
            "$JS.ACK.s.c.1.x.3.4.5",
            "$JS.ACK.s.c.-1.2.3.4.5",
        ] {
            assert_eq!(Place::read(text), None, "{text:?}");
        }
    }
}
