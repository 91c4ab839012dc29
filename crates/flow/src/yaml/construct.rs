//! Values from nodes: tags, merge keys, repeated keys, what may be a key.

use std::collections::HashMap;
use std::rc::Rc;

use super::python::KeyId;
use super::scalar::{self, Plain};
use super::tree::{Content, Raw, Style};
use super::{Node, Value, date, invalid};
use crate::diagnostic::Diagnostic;

const CORE: &str = "tag:yaml.org,2002:";

type Pair = (Rc<Raw>, Rc<Raw>);

/// The value of a node. Recursion is bounded by the depth of the tree.
pub(super) fn value_of(raw: &Raw) -> Result<Node, Diagnostic> {
    let value = match raw.tag.as_deref() {
        None | Some("!") => untagged(raw)?,
        Some(tag) => match tag.strip_prefix(CORE) {
            Some(kind) => tagged(raw, kind)?,
            None => return Err(unknown_tag(raw, tag)),
        },
    };
    Ok(Node { value, place: raw.place })
}

fn unknown_tag(raw: &Raw, tag: &str) -> Diagnostic {
    invalid(format!("the tag '{tag}' is not supported"), raw.place.at)
}

fn untagged(raw: &Raw) -> Result<Value, Diagnostic> {
    match &raw.content {
        // The parser lets them pass inside brackets, where a block scalar cannot be.
        Content::Scalar(text)
            if raw.place.style == Style::Plain && text.starts_with(['|', '>', '%', '@', '`']) =>
        {
            let first = text.chars().next().unwrap_or_default();
            Err(invalid(format!("a plain text cannot begin with '{first}'; put it in quotes"), raw.place.at))
        }
        // `!` on a quoted scalar makes PyYAML treat it as a plain one.
        Content::Scalar(text) if raw.place.style == Style::Plain || raw.tag.is_some() => {
            match scalar::resolve(text) {
                Plain::Value(value) => Ok(value),
                Plain::Merge => Err(unknown_tag(raw, "tag:yaml.org,2002:merge")),
                Plain::Equals => Err(unknown_tag(raw, "tag:yaml.org,2002:value")),
                Plain::Impossible(problem) => Err(invalid(format!("'{text}': {problem}"), raw.place.at)),
            }
        }
        Content::Scalar(text) => Ok(Value::Str(text.clone())),
        Content::Seq(items) => sequence(items),
        Content::Map(entries) => mapping(raw, entries).map(Value::Map),
    }
}

fn sequence(items: &[Rc<Raw>]) -> Result<Value, Diagnostic> {
    items.iter().map(|item| value_of(item)).collect::<Result<_, _>>().map(Value::Seq)
}

fn tagged(raw: &Raw, kind: &str) -> Result<Value, Diagnostic> {
    match &raw.content {
        Content::Scalar(text) => tagged_scalar(raw, kind, text),
        Content::Seq(items) => match kind {
            "seq" => sequence(items),
            "omap" | "pairs" => items.iter().map(single_pair).collect::<Result<_, _>>().map(Value::Pairs),
            "map" | "set" | "str" | "int" | "float" | "bool" | "null" | "binary" | "timestamp" => {
                Err(invalid(format!("!!{kind} cannot be a sequence"), raw.place.at))
            }
            _ => Err(unknown_tag(raw, &format!("{CORE}{kind}"))),
        },
        Content::Map(entries) => match kind {
            "map" => mapping(raw, entries).map(Value::Map),
            "set" => Ok(Value::Set(mapping(raw, entries)?.into_iter().map(|(key, _)| key).collect())),
            "str" | "int" | "float" | "bool" | "null" | "binary" | "timestamp" => {
                // YAML 1.1: the value of the key `=` stands for the whole mapping.
                let stands_for = entries.iter().find(|(key, _)| is_plain(key, "="));
                match stands_for.map(|(_, value)| &value.content) {
                    Some(Content::Scalar(text)) => tagged_scalar(raw, kind, text),
                    Some(Content::Seq(_) | Content::Map(_)) | None => {
                        Err(invalid(format!("!!{kind} cannot be a mapping"), raw.place.at))
                    }
                }
            }
            "seq" | "omap" | "pairs" => Err(invalid(format!("!!{kind} must be a sequence"), raw.place.at)),
            _ => Err(unknown_tag(raw, &format!("{CORE}{kind}"))),
        },
    }
}

fn tagged_scalar(raw: &Raw, kind: &str, text: &str) -> Result<Value, Diagnostic> {
    let wrong = || invalid(format!("'{text}' is not a !!{kind}"), raw.place.at);
    match kind {
        "str" => Ok(Value::Str(text.to_owned())),
        "null" => Ok(Value::Null),
        "bool" => scalar::tagged_boolean(text).map(Value::Bool).ok_or_else(wrong),
        "int" => scalar::integer(text).ok_or_else(wrong),
        "float" => scalar::float(text).map(Value::Float).ok_or_else(wrong),
        "timestamp" => match date::parse(text) {
            Some(Ok(moment)) => Ok(Value::Date(moment)),
            Some(Err(_)) | None => Err(wrong()),
        },
        "binary" => base64(text).map(Value::Binary).ok_or_else(wrong),
        "seq" | "map" | "set" | "omap" | "pairs" => Err(wrong()),
        _ => Err(unknown_tag(raw, &format!("{CORE}{kind}"))),
    }
}

/// An entry of `!!omap` or `!!pairs`: a mapping of one key.
fn single_pair(raw: &Rc<Raw>) -> Result<(Node, Node), Diagnostic> {
    match &raw.content {
        Content::Map(entries) => match entries.as_slice() {
            [(key, value)] => Ok((value_of(key)?, value_of(value)?)),
            _ => Err(invalid("a pair has exactly one key", raw.place.at)),
        },
        Content::Scalar(_) | Content::Seq(_) => Err(invalid("a pair is a mapping of one key", raw.place.at)),
    }
}

/// Entries with merged ones first; of a repeated key the last value counts, at the place of the first.
fn mapping(raw: &Raw, entries: &[Pair]) -> Result<Vec<(Node, Node)>, Diagnostic> {
    let mut flat = Vec::with_capacity(entries.len());
    flatten(raw, entries, &mut flat)?;
    let mut places: HashMap<KeyId, usize> = HashMap::with_capacity(flat.len());
    let mut result: Vec<(Node, Node)> = Vec::with_capacity(flat.len());
    for (key, value) in flat {
        let key = key_of(&key)?;
        let id =
            KeyId::of(&key.value).ok_or_else(|| invalid("a collection cannot be a key", key.place.at))?;
        let value = value_of(&value)?;
        match places.get(&id).and_then(|place| result.get_mut(*place)) {
            // The key stays the first one, but the author looks for the value that counts.
            Some(entry) => {
                entry.0.place = key.place;
                entry.1 = value;
            }
            None => {
                places.insert(id, result.len());
                result.push((key, value));
            }
        }
    }
    Ok(result)
}

/// A lone `=` is text when it is a key.
fn key_of(raw: &Raw) -> Result<Node, Diagnostic> {
    if is_plain(raw, "=") {
        return Ok(Node { value: Value::Str("=".to_owned()), place: raw.place });
    }
    value_of(raw)
}

fn is_plain(raw: &Raw, text: &str) -> bool {
    let plain = raw.place.style == Style::Plain && raw.tag.is_none();
    plain && matches!(&raw.content, Content::Scalar(scalar) if scalar == text)
}

fn is_merge(raw: &Raw) -> bool {
    is_plain(raw, "<<") || raw.tag.as_deref() == Some("tag:yaml.org,2002:merge")
}

fn flatten(raw: &Raw, entries: &[Pair], flat: &mut Vec<Pair>) -> Result<(), Diagnostic> {
    for (_, value) in entries.iter().filter(|(key, _)| is_merge(key)) {
        match &value.content {
            Content::Map(inner) => flatten(value, inner, flat)?,
            // Of several the first one wins, so it is written last.
            Content::Seq(items) => {
                for item in items.iter().rev() {
                    match &item.content {
                        Content::Map(inner) => flatten(item, inner, flat)?,
                        Content::Scalar(_) | Content::Seq(_) => return Err(cannot_merge(item)),
                    }
                }
            }
            Content::Scalar(_) => return Err(cannot_merge(raw)),
        }
    }
    flat.extend(entries.iter().filter(|(key, _)| !is_merge(key)).cloned());
    Ok(())
}

fn cannot_merge(raw: &Raw) -> Diagnostic {
    invalid("'<<' merges a mapping or a list of mappings", raw.place.at)
}

/// Base64 as Python's `decodebytes` reads it: other characters are skipped, padding must be complete.
fn base64(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held, mut padding) = (0_u32, 0_u32, 0);
    for byte in text.bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if held >= 2 => {
                padding += 1;
                if held + padding == 4 {
                    return Some(bytes);
                }
                continue;
            }
            _ => continue,
        };
        padding = 0;
        bits = (bits << 6) | u32::from(six);
        held += 1;
        if held > 1 {
            let [_, _, _, low] = (bits >> (2 * (4 - held))).to_be_bytes();
            bytes.push(low);
        }
        if held == 4 {
            (bits, held) = (0, 0);
        }
    }
    (held == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_read_as_python_reads_it() {
        for (text, bytes) in [
            ("aGVsbG8=", Some("hello")),
            ("aGVs\n bG8=", Some("hello")),
            ("aGk=", Some("hi")),
            ("aA==", Some("h")),
        ] {
            assert_eq!(base64(text).as_deref(), bytes.map(str::as_bytes), "{text}");
        }
        for text in ["aGVsbG8", "a", "é"] {
            assert_eq!(base64(text), None, "{text}");
        }
    }
}
