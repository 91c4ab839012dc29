//! How Python compares, prints and converts the values PyYAML makes: equal keys, truth, `repr`, `int()`.

use std::hash::Hash;

use super::date::Moment;
use super::{Node, Value};

/// What makes two keys the same key of a Python dictionary: `1`, `1.0` and `True` are one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum KeyId {
    Null,
    Int(i128),
    Huge(String),
    /// The bits of a float that is no integer.
    Float(u64),
    Str(String),
    Date(Moment),
    Binary(Vec<u8>),
}

impl KeyId {
    /// `None`: Python could not hash it.
    pub(super) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Int(i128::from(*value)),
            Value::Int(value) => Self::Int(*value),
            Value::Huge(digits) => Self::Huge(digits.clone()),
            Value::Float(value) => match whole(*value) {
                Some(whole) => Self::Int(whole),
                None => Self::Float(value.to_bits()),
            },
            Value::Str(text) => Self::Str(text.clone()),
            Value::Date(moment) => Self::Date(*moment),
            Value::Binary(bytes) => Self::Binary(bytes.clone()),
            Value::Seq(_) | Value::Pairs(_) | Value::Map(_) | Value::Set(_) => return None,
        })
    }
}

fn whole(value: f64) -> Option<i128> {
    #[expect(clippy::cast_possible_truncation, reason = "only numbers that i128 holds get here")]
    (value.is_finite() && value.fract() == 0.0 && value.abs() < 1e38).then_some(value as i128)
}

/// Python's truth of a value.
pub(crate) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Int(value) => *value != 0,
        Value::Huge(_) | Value::Date(_) => true,
        Value::Float(value) => *value != 0.0,
        Value::Str(text) => !text.is_empty(),
        Value::Binary(bytes) => !bytes.is_empty(),
        Value::Seq(items) | Value::Set(items) => !items.is_empty(),
        Value::Pairs(entries) | Value::Map(entries) => !entries.is_empty(),
    }
}

/// Python's `int(value)`, held inside 64 bits; `None` where it raises.
pub(crate) fn to_int(value: &Value) -> Option<i64> {
    let clamp = |value: i128| i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX });
    match value {
        Value::Bool(value) => Some(i64::from(*value)),
        Value::Int(value) => Some(clamp(*value)),
        Value::Huge(digits) => Some(if digits.starts_with('-') { i64::MIN } else { i64::MAX }),
        #[expect(clippy::cast_possible_truncation, reason = "`as` holds a float inside i64, as is wanted")]
        Value::Float(value) => value.is_finite().then_some(*value as i64),
        Value::Str(text) => int_of_text(text),
        Value::Binary(bytes) => int_of_text(std::str::from_utf8(bytes).ok()?),
        Value::Null | Value::Date(_) | Value::Seq(_) | Value::Pairs(_) | Value::Map(_) | Value::Set(_) => {
            None
        }
    }
}

fn int_of_text(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let grouped =
        digits.split('_').all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()));
    if !grouped {
        return None;
    }
    let digits = digits.replace('_', "");
    let value = digits.parse::<i64>().unwrap_or(i64::MAX);
    Some(if negative { -value } else { value })
}

/// Python's `repr` of a key or scalar; collections never are keys.
pub(crate) fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Value::Int(value) => value.to_string(),
        Value::Huge(digits) => digits.clone(),
        Value::Float(value) => float_repr(*value),
        Value::Str(text) => str_repr(text),
        Value::Date(moment) => moment.repr(),
        Value::Binary(bytes) => format!("b{}", str_repr(&String::from_utf8_lossy(bytes))),
        Value::Seq(_) | Value::Pairs(_) => "[...]".to_owned(),
        Value::Map(_) | Value::Set(_) => "{...}".to_owned(),
    }
}

pub(crate) fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |rest| ("-", rest));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{value:?}")
}

pub(crate) fn str_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c == quote => out.extend(['\\', c]),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{a0}' | '\u{ad}' => out += &format!("\\x{:02x}", u32::from(c)),
            _ => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// The Python list of keys, sorted as Python sorts them; where Python cannot (mixed kinds), by their text.
pub(crate) fn repr_sorted(keys: &[&Node]) -> String {
    let mut keys: Vec<&Value> = keys.iter().map(|key| &key.value).collect();
    let numbers: Option<Vec<f64>> = keys.iter().map(|key| number(key)).collect();
    if numbers.is_some() {
        keys.sort_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(std::cmp::Ordering::Equal));
    } else {
        // Texts sort by their characters; the quotes around them could change the order.
        let texts: Option<Vec<&str>> = keys.iter().map(|key| text(key)).collect();
        match texts {
            Some(_) => keys.sort_by_key(|key| text(key)),
            None => keys.sort_by_cached_key(|key| repr(key)),
        }
    }
    format!("[{}]", keys.iter().map(|key| repr(key)).collect::<Vec<_>>().join(", "))
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Str(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Huge(_) | Value::Float(_) => None,
        Value::Date(_) | Value::Binary(_) | Value::Seq(_) | Value::Pairs(_) => None,
        Value::Map(_) | Value::Set(_) => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "only the order of keys in a message depends on it")]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::Null | Value::Huge(_) | Value::Str(_) | Value::Date(_) | Value::Binary(_) => None,
        Value::Seq(_) | Value::Pairs(_) | Value::Map(_) | Value::Set(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_floats_print_as_python_prints_them() {
        for (text, shown) in
            [("a", "'a'"), ("it's", "\"it's\""), ("a'b\"", "'a\\'b\"'"), ("\n\u{7}", "'\\n\\x07'")]
        {
            assert_eq!(str_repr(text), shown);
        }
        for (value, shown) in
            [(1.5, "1.5"), (1e16, "1e+16"), (1e-5, "1e-05"), (100.0, "100.0"), (-0.0, "-0.0")]
        {
            assert_eq!(float_repr(value), shown);
        }
    }

    #[test]
    fn versions_are_read_as_python_int_does() {
        for (value, number) in [
            (Value::Float(1.9), Some(1)),
            (Value::Bool(true), Some(1)),
            (Value::Str(" 2 ".into()), Some(2)),
            (Value::Str("1_0".into()), Some(10)),
            (Value::Str("1__0".into()), None),
            (Value::Str("one".into()), None),
            (Value::Null, None),
            (Value::Float(f64::INFINITY), None),
            (Value::Int(0), Some(0)),
            (Value::Str("-3".into()), Some(-3)),
        ] {
            assert_eq!(to_int(&value), number, "{value:?}");
        }
    }
}
