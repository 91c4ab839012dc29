//! A gateway on a port of its own, on whichever store, and a client that drives executions through it as a program outside
//! would. What has to hold on every store is written once and run on each (`on_every_store!`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod answer;
mod drive;
mod site;
mod stream;

pub use answer::Answer;
pub use site::{Hands, Kind, Site};
pub use stream::{Stream, Told};

/// Runs each of these on every store: `async fn name(site: Site)` becomes a test in `memory`, `sqlite` and `nats`.
#[macro_export]
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        $crate::on_every_store!(@store memory, Memory, $($name),+);
        $crate::on_every_store!(@store sqlite, Sqlite, $($name),+);
        $crate::on_every_store!(@store nats, Nats, $($name),+);
    };
    (@store $store:ident, $kind:ident, $($name:ident),+) => {
        mod $store {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::Site::open($crate::Kind::$kind).await).await;
            })+
        }
    };
}
