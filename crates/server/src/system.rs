//! The world as it is: the clock on the wall, and names from the system's randomness.

use pyoco_core::ids::{EventId, ExecutionId};
use pyoco_core::time::Timestamp;
use pyoco_engine::{Clock, Ids};
use uuid::Uuid;

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that looks at the clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// Random UUIDs of version 4.
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
        named(EventId::new)
    }

    fn execution(&self) -> ExecutionId {
        named(ExecutionId::new)
    }
}

/// A UUID is always a legal id; were it not, the next one is no better.
fn named<T, E>(id: impl Fn(&str) -> Result<T, E>) -> T {
    loop {
        let mut text = Uuid::encode_buffer();
        if let Ok(id) = id(Uuid::new_v4().hyphenated().encode_lower(&mut text)) {
            return id;
        }
    }
}
