//! People with keys, what one of them has, and a request for every route that there is. The tests send those requests as everybody
//! who may not, and look that nothing is told and nothing happens.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod ring;
mod samples;
mod scene;
mod staff;

pub use ring::Ring;
pub use samples::{Others, Sample, samples};
pub use scene::Scene;
pub use staff::Staff;
