//! The world as it is: the clock on the wall, and names from the system's randomness.

use pyoco_core::ids::{EventId, ExecutionId};
use pyoco_core::time::Timestamp;
use pyoco_engine::{Clock, Ids};
use uuid::{Builder, Uuid, Version};

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that looks at the clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(now.saturating_add(pyoco_faults::clock_offset()))
    }
}

/// UUIDs of version 4. Those of executions begin with the time.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl RandomIds {
    /// A name for this process.
    pub fn instance() -> String {
        Uuid::new_v4().simple().to_string()
    }
}

impl Ids for RandomIds {
    fn event(&self) -> EventId {
        named(Uuid::new_v4, EventId::new)
    }

    fn execution(&self) -> ExecutionId {
        // They begin with the time. Stores sort by them, and what comes together is written together: with random ones each
        // submission writes to pages of its own.
        named(rising, ExecutionId::new)
    }
}

/// A UUID that rises with the time, as one of version 7 does, and says that it is of version 4, as the contract has it: which of its
/// bits are random is nobody else's business.
fn rising() -> Uuid {
    let bytes = Uuid::now_v7().into_bytes();
    Builder::from_bytes(bytes).with_version(Version::Random).into_uuid()
}

/// A UUID is always a legal id; were it not, the next one is no better.
fn named<T, E>(uuid: impl Fn() -> Uuid, id: impl Fn(&str) -> Result<T, E>) -> T {
    loop {
        let mut text = Uuid::encode_buffer();
        if let Ok(id) = id(uuid().hyphenated().encode_lower(&mut text)) {
            return id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_executions_rise_and_are_of_version_4() {
        let ids: Vec<ExecutionId> = (0..1_000).map(|_| RandomIds.execution()).collect();
        assert!(ids.is_sorted() && ids.iter().all(|id| id.as_str().as_bytes()[14] == b'4'), "{ids:?}");
    }
}
