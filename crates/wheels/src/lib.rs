//! What a wheel is: its name, whether a file is a sound one, when one may be uploaded, and which ones a worker takes.
//!
//! Nothing here knows a store, a network or an installer. Files are read through `Read + Seek`, in pieces, so that a wheel of
//! any size needs the same memory. Sentences of errors are made for the person who uploads; names of entries stand in them
//! quoted and escaped.

mod choose;
mod compatibility;
mod inspect;
mod name;
mod rule;
mod set;
mod tags;

pub use choose::{Candidate, Chosen, choose};
pub use compatibility::{NotATag, SupportedTags, TagSet};
pub use inspect::{EntryPoint, InspectError, Limits, Metadata, Unsound, Wheel, inspect};
pub use name::{BuildTag, InvalidName, WheelName, normalised};
pub use pep440_rs::Version;
pub use rule::{Refused, may_upload};
pub use set::{NotADigest, NotASet, PinnedWheel, Sha256Digest, WheelSet};
pub use tags::{InvalidTags, parse_tags};
