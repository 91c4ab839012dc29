//! JSON from YAML values, for defaults and literal inputs. What JSON cannot hold is refused by name.

use serde_json::{Map, Number, Value as Json};

use super::python::float_repr;
use super::{Node, Value};
use crate::diagnostic::Position;

/// A value that has no JSON form.
#[derive(Debug)]
pub(crate) struct NotJson {
    /// What it is and what to write instead.
    pub(crate) problem: &'static str,
    /// The way to it, e.g. `a.b[2]`.
    pub(crate) path: String,
    pub(crate) at: Position,
}

/// Dates become ISO text, tuples lists, keys text (as Python's `json` does it).
pub(crate) fn to_json(node: &Node, path: &str) -> Result<Json, NotJson> {
    let refuse = |problem| Err(NotJson { problem, path: path.to_owned(), at: node.place.at });
    match &node.value {
        Value::Null => Ok(Json::Null),
        Value::Bool(value) => Ok(Json::Bool(*value)),
        Value::Int(value) => match (i64::try_from(*value), u64::try_from(*value)) {
            (Ok(value), _) => Ok(Json::from(value)),
            (_, Ok(value)) => Ok(Json::from(value)),
            _ => refuse("is an integer of more than 64 bits; write it in quotes, as text"),
        },
        Value::Huge(_) => refuse("is an integer of more than 64 bits; write it in quotes, as text"),
        Value::Float(value) => match Number::from_f64(*value) {
            Some(number) => Ok(Json::Number(number)),
            None => refuse("is not a number that JSON can hold; write it in quotes, as text"),
        },
        Value::Str(text) => Ok(Json::String(text.clone())),
        Value::Date(moment) => Ok(Json::String(moment.iso())),
        Value::Binary(_) => {
            refuse("is binary, which JSON cannot hold; write its base64 text without !!binary")
        }
        Value::Set(_) => refuse("is a set, which JSON cannot hold; write a list"),
        Value::Seq(items) => items
            .iter()
            .enumerate()
            .map(|(number, item)| to_json(item, &format!("{path}[{number}]")))
            .collect::<Result<_, _>>()
            .map(Json::Array),
        Value::Pairs(entries) => entries
            .iter()
            .enumerate()
            .map(|(number, (key, value))| {
                let path = format!("{path}[{number}]");
                Ok(Json::Array(vec![to_json(key, &path)?, to_json(value, &path)?]))
            })
            .collect::<Result<_, _>>()
            .map(Json::Array),
        Value::Map(entries) => {
            let mut object = Map::with_capacity(entries.len());
            for (key, value) in entries {
                let key = key_text(key, path)?;
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                object.insert(key, to_json(value, &inner)?);
            }
            Ok(Json::Object(object))
        }
    }
}

fn key_text(key: &Node, path: &str) -> Result<String, NotJson> {
    match &key.value {
        Value::Str(text) => Ok(text.clone()),
        Value::Null => Ok("null".to_owned()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Int(value) => Ok(value.to_string()),
        Value::Huge(digits) => Ok(digits.clone()),
        Value::Float(value) if value.is_nan() => Ok("NaN".to_owned()),
        Value::Float(value) if value.is_infinite() => {
            Ok(if *value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned())
        }
        Value::Float(value) => Ok(float_repr(*value)),
        Value::Date(moment) => Ok(moment.iso()),
        Value::Binary(_) | Value::Seq(_) | Value::Pairs(_) | Value::Map(_) | Value::Set(_) => Err(NotJson {
            problem: "has a key that JSON cannot hold",
            path: path.to_owned(),
            at: key.place.at,
        }),
    }
}
