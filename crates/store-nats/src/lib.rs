//! The distributed store: streams and buckets of NATS JetStream, shared by any number of processes and implementations.
//!
//! - `settings` is what it is told, `names` has every subject, `error` is the one mapping of failures
//! - `connection` is the one place that speaks to NATS, `stream` has the requests of JetStream, `message` what they carry
//! - `resources` makes the streams and buckets that are missing
//! - `store` is the handle: open and close
//! - `log`, `blobs`, `dead_letters`, `task_logs`, `queue`, `workers`, `index`, `graphs`, `keys`, `wheels`: one role of `pyoco-ports` each
//! - `unshown` finds runs that were begun and never shown
//! - `gathered` are rows on their way into the index of this process
//! - `snapshot` is how a run stands in its bucket, `feed` hears what others write there and of graphs
//! - `backup` copies streams, and makes streams of copies
//! - `health` looks at the servers and changes nothing; `cluster` sees them as whoever looks after NATS does, `servers` asks them
//!   over the system account, `rights` says which subjects
//!   each program needs
//! - `place` is what a delivered message says about where it stood
//! - `recent` is a bounded memory of what the server said; forgetting is always safe. `stretch` is what this process has written into a stream
//!   without anybody in between
//!
//! Whatever is decided is decided by the stream's leader: a message is stored only behind the message it was decided on.

mod audit;
pub mod backup;
mod blobs;
mod carried;
pub mod cluster;
mod connection;
mod dead_letters;
mod error;
mod feed;
mod gathered;
mod graphs;
mod health;
mod index;
mod keys;
mod log;
mod message;
mod names;
mod peers;
mod place;
mod post;
mod queue;
mod recent;
mod resources;
mod retention;
pub mod rights;
pub mod servers;
mod settings;
pub mod snapshot;
mod store;
mod stream;
mod stretch;
mod task_logs;
mod unshown;
mod wheels;
mod workers;

pub use error::OpenError;
pub use feed::{Following, Hearing, Listener};
pub use health::{ConsumerHealth, NatsHealth, StreamHealth};
pub use settings::{Access, Server, Settings, Tls};
pub use store::NatsStore;
