//! JSON that came from outside: bounded before it is parsed, and never ambiguous afterwards.
//!
//! A repeated key, a number that would be rounded, a bare NaN or nesting without end is an error here, so
//! that no two readers of the same bytes can disagree. `Json` and `Object` hold the free-form values of
//! the contracts (inputs, outputs, prompts). What a value means is decided elsewhere.

use std::fmt;
use std::io::{self, Write};

use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use serde_json::{Map, Value};

/// How much of a document is looked at before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest document, in bytes.
    pub bytes: usize,
    /// Deepest nesting of arrays and objects.
    pub depth: usize,
}

impl Limits {
    /// A request body or a job message.
    pub const BODY: Self = Self { bytes: 1 << 20, depth: 64 };
    /// A record of the log: one body and what was decided about it, or a large plan.
    pub const RECORD: Self = Self { bytes: 32 << 20, depth: 120 };
}

/// Why a document was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Longer than the limit.
    #[error("the document has {bytes} bytes, at most {limit} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Nested deeper than the limit.
    #[error("nested deeper than {limit} levels at byte {offset}")]
    TooDeep {
        /// Where the limit was crossed.
        offset: usize,
        /// The limit.
        limit: usize,
    },
    /// An integer that no 64-bit number holds, which would be rounded silently.
    #[error("the integer at byte {offset} is out of range; send it as a string")]
    IntegerOutOfRange {
        /// Where the integer starts.
        offset: usize,
    },
    /// Not JSON, a repeated key, or not the shape that is wanted.
    #[error("{0}")]
    Malformed(String),
}

/// Reads a document of a known shape.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], limits: Limits) -> Result<T, JsonError> {
    scan(bytes, limits)?;
    // Checked once as a whole, not string by string.
    let text = std::str::from_utf8(bytes).map_err(|error| JsonError::Malformed(error.to_string()))?;
    serde_json::from_str(text).map_err(|error| JsonError::Malformed(error.to_string()))
}

/// One pass over the raw bytes that allocates nothing: length, depth and integers that would be rounded.
fn scan(bytes: &[u8], limits: Limits) -> Result<(), JsonError> {
    if bytes.len() > limits.bytes {
        return Err(JsonError::TooLong { bytes: bytes.len(), limit: limits.bytes });
    }
    let (mut depth, mut at) = (0_usize, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                if depth > limits.depth {
                    return Err(JsonError::TooDeep { offset: at, limit: limits.depth });
                }
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let end = end_of_number(bytes, at);
                if !holds_exactly(&bytes[at..end]) {
                    return Err(JsonError::IntegerOutOfRange { offset: at });
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// The position behind a string that starts at `start`; an unfinished one ends the document.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) =
        bytes.get(at..).and_then(|rest| rest.iter().position(|b| matches!(b, b'"' | b'\\')))
    {
        match bytes[at + found] {
            b'"' => return at + found + 1,
            _ => at += found + 2,
        }
    }
    bytes.len()
}

fn end_of_number(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start + 1..];
    let length =
        rest.iter().take_while(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')).count();
    start + 1 + length
}

fn holds_exactly(number: &[u8]) -> bool {
    if number.len() <= 18 || number.iter().any(|b| matches!(b, b'.' | b'e' | b'E')) {
        return true;
    }
    let text = std::str::from_utf8(number).unwrap_or_default();
    text.parse::<u64>().is_ok() || text.parse::<i64>().is_ok()
}

/// What a value takes in a record: the size of its JSON form, and how deep it is nested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// Bytes of its JSON form.
    pub bytes: usize,
    /// Levels of arrays and objects.
    pub depth: usize,
}

impl Weight {
    /// Weighs anything that has a JSON form, without keeping that form.
    pub fn of<T: Serialize>(value: &T) -> Self {
        let (mut bytes, mut levels) = (Counter(0), Levels::default());
        // Counting cannot fail, and what we weigh has a JSON form.
        let _ = value.serialize(&mut Serializer::with_formatter(&mut bytes, &mut levels));
        Self { bytes: bytes.0, depth: levels.deepest }
    }

    /// Whether it may stand in a record.
    pub const fn fits(self) -> bool {
        self.bytes <= Limits::BODY.bytes && self.depth <= Limits::BODY.depth
    }
}

/// Counts what is written to it.
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes JSON as it is written everywhere, and notes how deep it is nested.
#[derive(Default)]
struct Levels {
    now: usize,
    deepest: usize,
}

impl Levels {
    fn enter(&mut self) {
        self.now += 1;
        self.deepest = self.deepest.max(self.now);
    }
}

impl Formatter for &mut Levels {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter();
        CompactFormatter.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.now -= 1;
        CompactFormatter.end_array(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter();
        CompactFormatter.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.now -= 1;
        CompactFormatter.end_object(writer)
    }
}

/// Any JSON value.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Json(pub Value);

impl Json {
    /// A null says the same as nothing, and is written as nothing: the log must read back as it was.
    pub const fn is_null(&self) -> bool {
        matches!(self.0, Value::Null)
    }
}

/// A JSON object.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Object(pub Map<String, Value>);

impl Object {
    /// Whether it has no member; such an object is left out of what we write.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Unambiguous).map(Self)
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_map(Unambiguous)? {
            Value::Object(members) => Ok(Self(members)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(D::Error::custom("an object is wanted"))
            }
        }
    }
}

/// Builds a value and refuses a key that was there already.
struct Unambiguous;

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        serde_json::Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("NaN and infinity are not JSON"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(Self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Json(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Json(value))) = members.next_entry::<String, Json>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key `{key}`")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Json, JsonError> {
        decode(text.as_bytes(), Limits::BODY)
    }

    #[test]
    fn a_value_keeps_its_order_and_its_numbers() {
        let text = r#"{"b":1,"a":[1.5,-3,18446744073709551615,0.1],"c":null}"#;
        assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
    }

    #[test]
    fn a_repeated_key_is_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"x":{"k":1,"k":2}}]"#, r#"{"a":1,"\u0061":2}"#] {
            assert!(read(text).unwrap_err().to_string().contains("duplicate key"), "{text}");
        }
    }

    #[test]
    fn an_integer_is_never_rounded() {
        let text = r#"{"n": 100000000000000000000}"#;
        assert_eq!(read(text), Err(JsonError::IntegerOutOfRange { offset: 6 }));
        assert!(read("1e20").is_ok());
        assert!(read(r#""100000000000000000000""#).is_ok());
    }

    #[test]
    fn hostile_documents_are_errors() {
        let deep = "[".repeat(10_000);
        assert_eq!(read(&deep), Err(JsonError::TooDeep { offset: 64, limit: 64 }));
        assert!(matches!(read(&" ".repeat(2 << 20)), Err(JsonError::TooLong { .. })));
        for text in
            ["", "NaN", "[Infinity]", "{\"a\":1", "\"\\ud800\"", "1e400", "[1,]", "nul", "\"abc", "\u{feff}1"]
        {
            assert!(matches!(read(text), Err(JsonError::Malformed(_))), "{text}");
        }
        assert!(decode::<Json>(b"\"\xff\"", Limits::BODY).is_err());
        assert!(decode::<Object>(b"[1]", Limits::BODY).is_err());
    }
}
