//! How long somebody who asked is left without an answer. A shared store has servers that may be silent: each step of an answer,
//! and each caller before this one, may wait for them.

use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout_at};

use crate::Engine;

/// Less than the two seconds after which a gateway must have said that it cannot tell.
const PATIENCE: Duration = Duration::from_millis(1_700);

impl Engine {
    /// When the patience of somebody who asks now is over. In a store of this process alone it never is: there nobody else can
    /// be waited for, and what was begun is better finished.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (!self.store.is_exclusive()).then(|| Instant::now() + PATIENCE)
    }

    /// What something gives, or nothing if it takes too long; it is dropped then.
    pub(crate) fn in_time<T>(
        &self,
        over: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> impl Future<Output = Option<T>> {
        // Not an async function: that would have room for the work twice, and every caller would move it.
        match over {
            Some(over) => timeout_at(over, work).map(Result::ok).left_future(),
            None => work.map(Some).right_future(),
        }
    }
}
