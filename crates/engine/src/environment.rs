//! What the engine asks the world for: the time, and names that nobody has.

use pyoco_core::ids::{EventId, ExecutionId};
use pyoco_core::time::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now. It may go back; nothing but time-outs depends on it.
    fn now(&self) -> Timestamp;
}

/// Makes names.
pub trait Ids: Send + Sync {
    /// A name for an event, used once.
    fn event(&self) -> EventId;

    /// A name for an execution, used once.
    fn execution(&self) -> ExecutionId;
}
