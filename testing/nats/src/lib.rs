//! Real nats-server processes for tests: one, or several as a cluster, each with a JetStream folder of its own that vanishes
//! with the test. They can be killed, paused and started again on the same port and folder, as machines are.
//!
//! What a store makes of it is tested in `crates/store-nats`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod binary;
mod cluster;
mod monitor;
mod ports;
mod process;
mod server;

pub use binary::nats_server;
pub use cluster::Cluster;
pub use ports::free as free_port;
pub use server::{NatsServer, Options};

use std::time::{Duration, Instant};

/// How long a server may take to start before the test gives up. A cluster elects its leaders in this time, too.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until there is something to see.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(since.elapsed() < PATIENCE, "{what} takes longer than {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
