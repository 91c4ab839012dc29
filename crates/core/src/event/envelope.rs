//! The envelope around an event, and how it is read and written.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Event, EventType};
use crate::ids::{EventId, ExecutionId};
use crate::json::Object;
use crate::time::Timestamp;

/// The version of the envelope that is written and read.
pub const SCHEMA_VERSION: u64 = 1;

/// Who caused an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Actor {
    /// What kind of party.
    pub kind: ActorKind,
    /// Which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The kinds of party.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// The product itself, its workers included.
    System,
    /// The holder of a key, or whoever called.
    User,
    /// The sweeper: timers and repairs.
    Scheduler,
    /// A foreign worker or snapshot.
    External,
}

impl ActorKind {
    /// The contract's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Scheduler => "scheduler",
            Self::External => "external",
        }
    }
}

impl Actor {
    /// The product itself.
    pub const SYSTEM: Self = Self { kind: ActorKind::System, id: None };
    /// The sweeper.
    pub const SCHEDULER: Self = Self { kind: ActorKind::Scheduler, id: None };

    /// A party with a name.
    pub fn named(kind: ActorKind, id: &str) -> Self {
        Self { kind, id: Some(id.to_owned()) }
    }
}

/// One event as it is stored and shown.
#[derive(Debug, Clone, PartialEq)]
pub struct EventEnvelope {
    /// Its own id.
    pub event_id: EventId,
    /// Whose event.
    pub execution_id: ExecutionId,
    /// When.
    pub occurred_at: Timestamp,
    /// By whom.
    pub actor: Actor,
    /// The caller's thread through several commands.
    pub correlation_id: Option<String>,
    /// The event before it that led to it.
    pub causation_id: Option<EventId>,
    /// What happened.
    pub event: Event,
}

impl Serialize for EventEnvelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Payload<'a>(&'a Event);
        impl Serialize for Payload<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize_payload(serializer)
            }
        }
        let mut envelope = serializer.serialize_struct("EventEnvelope", 9)?;
        envelope.serialize_field("eventId", &self.event_id)?;
        envelope.serialize_field("executionId", &self.execution_id)?;
        // The type stands before the payload, so that a reader knows what it is about to read.
        envelope.serialize_field("type", &self.event.event_type())?;
        envelope.serialize_field("occurredAt", &self.occurred_at)?;
        envelope.serialize_field("actor", &self.actor)?;
        if let Some(correlation) = &self.correlation_id {
            envelope.serialize_field("correlationId", correlation)?;
        }
        if let Some(causation) = &self.causation_id {
            envelope.serialize_field("causationId", causation)?;
        }
        envelope.serialize_field("schemaVersion", &SCHEMA_VERSION)?;
        envelope.serialize_field("payload", &Payload(&self.event))?;
        envelope.end()
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Field {
    EventId,
    ExecutionId,
    Type,
    OccurredAt,
    Actor,
    CorrelationId,
    CausationId,
    SchemaVersion,
    Payload,
    #[serde(other)]
    Unknown,
}

/// A payload is typed as soon as its event's type is known, and kept as it is until then.
enum Payload {
    Typed(Box<Event>),
    Raw(Object),
}

struct PayloadOf(Option<EventType>);

impl<'de> DeserializeSeed<'de> for PayloadOf {
    type Value = Payload;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Payload, D::Error> {
        match self.0 {
            Some(kind) => {
                Event::deserialize_payload(kind, deserializer).map(|event| Payload::Typed(Box::new(event)))
            }
            None => Object::deserialize(deserializer).map(Payload::Raw),
        }
    }
}

impl<'de> Deserialize<'de> for EventEnvelope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

struct EnvelopeVisitor;

fn put<T, E: serde::de::Error>(slot: &mut Option<T>, value: T, name: &'static str) -> Result<(), E> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = EventEnvelope;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event envelope")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EventEnvelope, A::Error> {
        let (mut event_id, mut execution_id, mut kind, mut occurred_at) = (None, None, None, None);
        let (mut actor, mut correlation, mut causation) = (None, None, None);
        let (mut schema, mut payload) = (None, None);
        while let Some(field) = map.next_key()? {
            match field {
                Field::EventId => put(&mut event_id, map.next_value()?, "eventId")?,
                Field::ExecutionId => put(&mut execution_id, map.next_value()?, "executionId")?,
                Field::Type => put(&mut kind, map.next_value::<EventType>()?, "type")?,
                Field::OccurredAt => put(&mut occurred_at, map.next_value()?, "occurredAt")?,
                Field::Actor => put(&mut actor, map.next_value()?, "actor")?,
                Field::CorrelationId => {
                    put(&mut correlation, map.next_value::<Option<String>>()?, "correlationId")?
                }
                Field::CausationId => {
                    put(&mut causation, map.next_value::<Option<EventId>>()?, "causationId")?
                }
                Field::SchemaVersion => put(&mut schema, map.next_value::<u64>()?, "schemaVersion")?,
                Field::Payload => put(&mut payload, map.next_value_seed(PayloadOf(kind))?, "payload")?,
                Field::Unknown => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let kind = kind.ok_or_else(|| A::Error::missing_field("type"))?;
        let version = schema.ok_or_else(|| A::Error::missing_field("schemaVersion"))?;
        if version != SCHEMA_VERSION {
            return Err(A::Error::custom(format_args!(
                "schemaVersion {version} is not supported, only 1 is"
            )));
        }
        let event = match payload.ok_or_else(|| A::Error::missing_field("payload"))? {
            Payload::Typed(event) => *event,
            Payload::Raw(object) => {
                let value = serde_json::Value::Object(object.0);
                Event::deserialize_payload(kind, value).map_err(A::Error::custom)?
            }
        };
        Ok(EventEnvelope {
            event_id: event_id.ok_or_else(|| A::Error::missing_field("eventId"))?,
            execution_id: execution_id.ok_or_else(|| A::Error::missing_field("executionId"))?,
            occurred_at: occurred_at.ok_or_else(|| A::Error::missing_field("occurredAt"))?,
            actor: actor.ok_or_else(|| A::Error::missing_field("actor"))?,
            correlation_id: correlation.flatten(),
            causation_id: causation.flatten(),
            event,
        })
    }
}
