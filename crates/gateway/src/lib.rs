//! The HTTP gateway: one folder a surface, the server that carries them, and how errors are answered.
//!
//! What may happen to an execution is decided by the core; how it is stored is a port. Here is only HTTP.
