//! API keys: what their records say, how they are made and taken away, and who may come in with one.
//!
//! | Where | What |
//! |---|---|
//! | [`Key`], [`Pepper`] | what a holder shows, and what a deployment adds to it; neither is ever printed |
//! | [`KeyRecord`] | what is stored of a key, in the form of pyoco-server 0.5.1 |
//! | [`Keys`] | create, list, revoke, rotate |
//! | [`Gate`] | admits the holder of a key, without hashing the same key twice and without hashing for everybody |
//!
//! Which header a key comes in, and what is answered to whom, is the gateway's business.

mod gate;
mod hashing;
mod keys;
mod memory;
mod record;
mod secret;
mod tries;

#[cfg(test)]
mod shelf;

pub use gate::{Gate, Holder, Now, Refused, Settings};
pub use keys::{Created, Keys, KeysError, NewKey};
pub use record::{KeyRecord, Unreadable};
pub use secret::{Key, NoRandomness, NotAKey, Pepper};
