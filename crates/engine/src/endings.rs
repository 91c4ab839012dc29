//! Telling somebody that an execution has ended, as soon as this process has recorded its end.

use std::sync::Arc;

use pyoco_core::event::Actor;
use pyoco_core::ids::ExecutionId;

use crate::Engine;

/// Hears of executions whose end this process has recorded. Nobody hears of it when the process dies in that moment.
pub trait Endings: Send + Sync {
    /// An execution has ended, and `by` has recorded it. Others wait meanwhile, so this must not.
    fn ended(&self, execution: &ExecutionId, by: &Actor);
}

impl Engine {
    /// The same engine, which tells somebody of endings.
    #[must_use]
    pub fn telling(mut self, endings: Arc<dyn Endings>) -> Self {
        self.endings = Some(endings);
        self
    }
}
