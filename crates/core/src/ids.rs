//! Names and numbers of an execution, as types of their own, so that one is never taken for another.
//!
//! Every id is checked when it is made; code that holds one need not check again. Ids are inputs of
//! the core: nothing here makes one up.

use std::fmt;
use std::sync::Arc;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text cannot serve as an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what}: {reason}")]
pub struct InvalidId {
    /// Which kind of id was wanted.
    pub what: &'static str,
    /// The rule that the text breaks.
    pub reason: &'static str,
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes `text` as an id if it obeys the rule of its kind.
            pub fn new(text: &str) -> Result<Self, InvalidId> {
                let check: fn(&str) -> Result<(), &'static str> = $check;
                check(text).map_err(|reason| InvalidId { what: $what, reason })?;
                Ok(Self(Arc::from(text)))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("a ", $what))
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::new(text).map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

/// Letters, digits, `_` and `-`, starting with a letter or digit: safe in a URL path, a NATS subject,
/// a KV key and a file name.
fn token(text: &str) -> Result<(), &'static str> {
    let first = text.bytes().next().ok_or("it is empty")?;
    if text.len() > 64 {
        return Err("it is longer than 64 characters");
    }
    if !first.is_ascii_alphanumeric() {
        return Err("it must start with a letter or a digit");
    }
    if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        return Err("only letters, digits, '_' and '-' are allowed");
    }
    Ok(())
}

/// The routing tag of the seeds: `[A-Za-z0-9_-]+`.
fn routing_tag(text: &str) -> Result<(), &'static str> {
    match text {
        "" => Err("it is empty"),
        _ if text.len() > 128 => Err("it is longer than 128 characters"),
        _ if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') => {
            Err("only letters, digits, '_' and '-' are allowed")
        }
        _ => Ok(()),
    }
}

/// Free text that people choose, bounded and printable.
fn short_text(text: &str) -> Result<(), &'static str> {
    match text {
        "" => Err("it is empty"),
        _ if text.len() > 512 => Err("it is longer than 512 bytes"),
        _ if text.chars().any(char::is_control) => Err("control characters are not allowed"),
        _ => Ok(()),
    }
}

/// A key that a caller chooses to make a command repeatable.
fn visible_ascii(text: &str) -> Result<(), &'static str> {
    match text {
        "" => Err("it is empty"),
        _ if text.len() > 255 => Err("it is longer than 255 characters"),
        _ if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) => Err("only printable ASCII is allowed"),
        _ => Ok(()),
    }
}

/// A node id may be as long as nested loops make it.
fn node_path(text: &str) -> Result<(), &'static str> {
    match text {
        "" => Err("it is empty"),
        _ if text.len() > 2048 => Err("it is longer than 2048 bytes"),
        _ if text.chars().any(char::is_control) => Err("control characters are not allowed"),
        _ => Ok(()),
    }
}

/// As the original: it may begin with any of its characters.
fn tenant(text: &str) -> Result<(), &'static str> {
    if text.len() > 64 {
        return Err("it is longer than 64 characters");
    }
    routing_tag(text)
}

fn key_id(text: &str) -> Result<(), &'static str> {
    if !(8..=64).contains(&text.len()) {
        return Err("it has 8 to 64 characters");
    }
    routing_tag(text)
}

text_id!(
    /// Names one execution on every surface (`run_id`, `executionId`, job `id`).
    ExecutionId, "execution id", token);
text_id!(
    /// Names one event for ever.
    EventId, "event id", token);
text_id!(
    /// Names a node of an execution: the path of names and rounds that leads to it, e.g. `retry/2/fetch`.
    NodeId, "node id", node_path);
text_id!(
    /// The idempotency key of a command, scoped to its endpoint.
    CommandId, "command id", visible_ascii);
text_id!(
    /// Names a worker process.
    WorkerId, "worker id", short_text);
text_id!(
    /// Names one job message of the queue.
    JobId, "job id", visible_ascii);
text_id!(
    /// Whose execution it is.
    TenantId, "tenant id", tenant);
text_id!(
    /// Names an API key; its secret is something else.
    KeyId, "key id", key_id);
text_id!(
    /// Routes an execution to workers.
    Tag, "tag", routing_tag);

impl Default for Tag {
    /// The tag of an execution that names none.
    fn default() -> Self {
        Self(Arc::from("default"))
    }
}

impl NodeId {
    /// The id of node `name` inside the frame `prefix` (empty for the outermost frame). A `/` or `%` in
    /// a task's name is escaped, so that two different places can never share an id.
    pub fn within(prefix: &str, name: &str) -> Self {
        if prefix.is_empty() && !name.contains(['/', '%']) {
            return Self(Arc::from(name));
        }
        let name = name.replace('%', "%25").replace('/', "%2F");
        if prefix.is_empty() { Self(Arc::from(name)) } else { Self(Arc::from(format!("{prefix}/{name}"))) }
    }
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

number_id!(
    /// Numbers the records of one execution, 1..n without a gap. 0 means: nothing recorded.
    Version, u64);
number_id!(
    /// Numbers the events of one execution, 1..n. Every number a user sees is one of these.
    EventSeq, u64);
number_id!(
    /// Rises with every claim; whoever holds an older one may change nothing.
    Epoch, u64);
number_id!(
    /// Which try of a node, from 1.
    Attempt, u32);
