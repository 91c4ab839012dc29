//! The ground of the tests: our server with real Python flows, and the client that pyoco-server 0.5.1 brings from PyPI.
//! What is expected of the two together is in `tests/`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops at the first surprise, and measures its own patience"
)]

mod said;
mod site;

pub use said::Said;
pub use site::{Held, Site, WORKER, client};
