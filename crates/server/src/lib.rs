//! The product as a library: a configuration becomes a store, an engine, a gateway and a worker.
//!
//! Here adapters meet the engine, and nowhere else. The command lines (`pyoco-cli`) are thin around this crate.

mod access;
pub mod admin;
mod backend;
pub mod config;
pub mod doctor;
mod durability;
mod error;
mod keeper;
pub mod logging;
mod news;
mod server;
mod storage;
mod system;
mod traces;
mod worker;

pub use access::Doorkeeper;
pub use backend::Backend;
pub use config::{Config, InvalidConfig};
pub use error::StartError;
pub use pyoco_client::Client;
pub use pyoco_engine::Clock;
pub use pyoco_gateway::Language;
pub use pyoco_worker::{Functions, InvalidFlow, RustFlow, RustTask};
pub use server::{Server, ServerOptions};
pub use storage::{Role, nats_settings};
pub use system::{RandomIds, SystemClock};
pub use worker::{Worker, WorkerOptions};
