//! The product as a library: a configuration becomes a store, an engine, a gateway and a worker.
//!
//! Here adapters meet the engine, and nowhere else. The command lines (`pyoco-cli`) are thin around this crate.
