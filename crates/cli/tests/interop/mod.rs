//! Gateways and workers of ours and of PyPI, all real processes, on one nats-server.

#![allow(dead_code, unused_imports, reason = "each test uses some of it")]

mod cell;
mod process;
mod site;
mod wire;

pub(crate) use cell::{Cell, members};
pub(crate) use process::{Process, Role};
pub(crate) use site::{Gateway, Site, Whose, yaml};
pub(crate) use wire::{Letters, Wire};

use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take before the test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until there is something to see; says what was seen last if that never comes.
pub(crate) async fn until<T, Why: std::fmt::Debug>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, Why>,
) -> T {
    let since = Instant::now();
    loop {
        match look().await {
            Ok(seen) => return seen,
            Err(why) => assert!(since.elapsed() < PATIENCE, "{what} takes longer than {PATIENCE:?}: {why:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a run changes no more.
pub(crate) fn is_terminal(run: &Value) -> bool {
    ["COMPLETED", "FAILED", "CANCELLED"].iter().any(|status| run["status"] == *status)
}
