//! Values as Python knows them, and their way from and to JSON.

use indexmap::IndexMap;
use num_bigint::{BigInt, Sign};
use serde_json::Value as Json;

use super::limits::VALUE_BYTES;

/// A value of an expression.
///
/// Rust's `==` also compares the kind (`Bool(true)` is not `Int(1)`); Python's is [`Value::py_eq`].
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Python's `None`, JSON's null.
    None,
    /// A truth value. In arithmetic it is 0 or 1.
    Bool(bool),
    /// An integer. Operations never make one of more than 4,096 bits.
    Int(BigInt),
    /// A float; may be infinite or not a number.
    Float(f64),
    /// A string.
    Str(String),
    /// A list.
    List(Vec<Self>),
    /// A mapping with string keys, in the order of the data.
    Map(IndexMap<String, Self>),
}

impl Value {
    /// Whether Python's `if` would take it.
    pub fn truthy(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => value.sign() != Sign::NoSign,
            Self::Float(value) => *value != 0.0,
            Self::Str(value) => !value.is_empty(),
            Self::List(items) => !items.is_empty(),
            Self::Map(entries) => !entries.is_empty(),
        }
    }

    /// Python's name of the kind: `int`, `str`, `bool`, `float`, `list`, `dict` or `NoneType`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::List(_) => "list",
            Self::Map(_) => "dict",
        }
    }

    /// The value as an integer: an `int`, or a `bool`, which Python counts as one.
    pub fn as_int(&self) -> Option<BigInt> {
        match self {
            Self::Bool(value) => Some(BigInt::from(u8::from(*value))),
            Self::Int(value) => Some(value.clone()),
            Self::None | Self::Float(_) | Self::Str(_) | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Str(value) = self { Some(value) } else { None }
    }

    /// The items of a list.
    pub fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// The entries of a mapping.
    pub fn as_map(&self) -> Option<&IndexMap<String, Self>> {
        if let Self::Map(entries) = self { Some(entries) } else { None }
    }

    /// Whether it is Python's `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The value of JSON data. Whole numbers written as such are integers, all others floats.
    ///
    /// Recurses as deep as the data is nested, like `serde_json` itself.
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => {
                let signed = number.as_i64().map(BigInt::from);
                match signed.or_else(|| number.as_u64().map(BigInt::from)) {
                    Some(integer) => Self::Int(integer),
                    None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
                }
            }
            Json::String(value) => Self::Str(value.clone()),
            Json::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Json::Object(entries) => {
                Self::Map(entries.iter().map(|(key, value)| (key.clone(), Self::from_json(value))).collect())
            }
        }
    }

    /// The value as JSON data; `None` when it holds a float that is not finite or an integer that fits
    /// neither `i64` nor `u64`.
    pub fn to_json(&self) -> Option<Json> {
        Some(match self {
            Self::None => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => match i64::try_from(value) {
                Ok(signed) => Json::from(signed),
                Err(_) => Json::from(u64::try_from(value).ok()?),
            },
            Self::Float(value) => Json::Number(serde_json::Number::from_f64(*value)?),
            Self::Str(value) => Json::String(value.clone()),
            Self::List(items) => Json::Array(items.iter().map(Self::to_json).collect::<Option<_>>()?),
            Self::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| Some((key.clone(), value.to_json()?)));
                Json::Object(entries.collect::<Option<_>>()?)
            }
        })
    }

    /// An estimate of the memory it takes, for limits.
    pub(super) fn weight(&self) -> usize {
        VALUE_BYTES
            + match self {
                Self::None | Self::Bool(_) | Self::Int(_) | Self::Float(_) => 0,
                Self::Str(value) => value.len(),
                Self::List(items) => items.iter().map(Self::weight).sum(),
                Self::Map(entries) => {
                    entries.iter().map(|(key, value)| VALUE_BYTES + key.len() + value.weight()).sum()
                }
            }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(BigInt::from(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Str(value.to_owned())
    }
}
