//! Plain scalars of YAML 1.1: which of them are numbers, booleans, nulls or dates, and their values.
//!
//! The rules are those of the YAML 1.1 type repository as PyYAML applies them, so `017` is fifteen, `1:30`
//! is ninety, `1e3` is text and `y` is text.

use super::{Value, date};

/// What a scalar without a tag stands for.
#[derive(Debug)]
pub(super) enum Plain {
    Value(Value),
    /// `<<`, which only means something as a key.
    Merge,
    /// `=`, which PyYAML cannot construct except as a key.
    Equals,
    /// It has the shape of a value that does not exist, e.g. the 30th of February.
    Impossible(&'static str),
}

/// Resolves a plain scalar.
pub(super) fn resolve(text: &str) -> Plain {
    let value = match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "<<" => return Plain::Merge,
        "=" => return Plain::Equals,
        _ => match boolean(text) {
            Some(value) => Value::Bool(value),
            None if looks_like_float(text) => match float(text) {
                Some(value) => Value::Float(value),
                None => return Plain::Impossible("not a float"),
            },
            None if looks_like_int(text) => match integer(text) {
                Some(value) => value,
                None => return Plain::Impossible("an integer without digits"),
            },
            None => match date::parse(text) {
                Some(Ok(moment)) => Value::Date(moment),
                Some(Err(problem)) => return Plain::Impossible(problem),
                None => Value::Str(text.to_owned()),
            },
        },
    };
    Plain::Value(value)
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// `!!bool`, where any case of the words counts.
pub(super) fn tagged_boolean(text: &str) -> Option<bool> {
    boolean(&text.to_lowercase())
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

fn is_number_part(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn looks_like_float(text: &str) -> bool {
    let body = unsigned(text);
    if matches!(body, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let Some((whole, rest)) = body.split_once('.') else { return false };
    if whole.is_empty() {
        // No sign is allowed before a bare dot, and a digit must follow it.
        return body.len() == text.len() && starts_with_digit(rest) && is_fraction(rest);
    }
    if let Some((first, minutes)) = whole.split_once(':') {
        return starts_with_digit(first)
            && is_number_part(first)
            && are_sixtieths(minutes)
            && is_number_part(rest);
    }
    starts_with_digit(whole) && is_number_part(whole) && is_fraction(rest)
}

/// Digits, then an exponent that must have a sign.
fn is_fraction(text: &str) -> bool {
    match text.split_once(['e', 'E']) {
        None => is_number_part(text),
        Some((digits, exponent)) => {
            let signed = exponent.strip_prefix(['-', '+']);
            is_number_part(digits)
                && signed.is_some_and(|e| !e.is_empty() && e.bytes().all(|b| b.is_ascii_digit()))
        }
    }
}

fn are_sixtieths(text: &str) -> bool {
    text.split(':').all(|part| {
        let bytes = part.as_bytes();
        bytes.iter().all(u8::is_ascii_digit)
            && match bytes {
                [_] => true,
                [tens, _] => *tens <= b'5',
                _ => false,
            }
    })
}

fn looks_like_int(text: &str) -> bool {
    let body = unsigned(text);
    let all = |digits: &str, allowed: fn(u8) -> bool| {
        !digits.is_empty() && digits.bytes().all(|byte| byte == b'_' || allowed(byte))
    };
    if let Some(digits) = body.strip_prefix("0b") {
        return all(digits, |byte| matches!(byte, b'0' | b'1'));
    }
    if let Some(digits) = body.strip_prefix("0x") {
        return all(digits, |byte| byte.is_ascii_hexdigit());
    }
    if let Some(digits) = body.strip_prefix('0') {
        return digits.is_empty() || all(digits, |byte| matches!(byte, b'0'..=b'7'));
    }
    if !starts_with_digit(body) {
        return false;
    }
    match body.split_once(':') {
        None => is_number_part(body),
        Some((first, rest)) => is_number_part(first) && are_sixtieths(rest),
    }
}

/// The value of an integer, also of one with an explicit tag: then Python's `int()` has the last word.
pub(super) fn integer(text: &str) -> Option<Value> {
    let clean: String = text.chars().filter(|c| *c != '_').collect();
    let (negative, body) = match clean.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, clean.strip_prefix('+').unwrap_or(&clean)),
    };
    if body.is_empty() {
        return None;
    }
    let value = if body == "0" {
        Some(Value::Int(0))
    } else if let Some(digits) = body.strip_prefix("0b") {
        radix(digits, 2)
    } else if let Some(digits) = body.strip_prefix("0x") {
        radix(digits, 16)
    } else if body.starts_with('0') {
        radix(body, 8)
    } else if body.contains(':') {
        sixtieths(body)
    } else {
        radix(body, 10)
    }?;
    if !negative {
        return Some(value);
    }
    Some(match value {
        Value::Int(value) => value.checked_neg().map_or_else(|| Value::Huge(value.to_string()), Value::Int),
        Value::Huge(digits) => Value::Huge(format!("-{digits}")),
        Value::Null
        | Value::Bool(_)
        | Value::Float(_)
        | Value::Str(_)
        | Value::Date(_)
        | Value::Binary(_) => value,
        Value::Seq(_) | Value::Pairs(_) | Value::Map(_) | Value::Set(_) => value,
    })
}

/// Python's `int(text, base)`: blanks around are fine, a second sign is one too many but Python allows the first.
fn radix(digits: &str, base: u32) -> Option<Value> {
    let digits = digits.trim();
    let body = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    if body.is_empty() || !body.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    Some(i128::from_str_radix(digits, base).map_or_else(|_| Value::Huge(digits.to_owned()), Value::Int))
}

fn sixtieths(text: &str) -> Option<Value> {
    let mut total = 0_i128;
    for part in text.split(':') {
        let part: i128 = part.trim().parse().ok()?;
        match total.checked_mul(60).and_then(|sum| sum.checked_add(part)) {
            Some(sum) => total = sum,
            None => return Some(Value::Huge(text.to_owned())),
        }
    }
    Some(Value::Int(total))
}

/// The value of a float, also of one with an explicit tag.
pub(super) fn float(text: &str) -> Option<f64> {
    let clean: String = text.chars().filter(|c| *c != '_').collect::<String>().to_lowercase();
    let (sign, body) = match clean.strip_prefix('-') {
        Some(body) => (-1.0, body),
        None => (1.0, clean.strip_prefix('+').unwrap_or(&clean)),
    };
    match body {
        ".inf" => return Some(sign * f64::INFINITY),
        ".nan" => return Some(f64::NAN),
        _ => {}
    }
    if body.contains(':') {
        let mut total = 0.0;
        for part in body.split(':') {
            total = total * 60.0 + part.trim().parse::<f64>().ok()?;
        }
        return Some(sign * total);
    }
    body.trim().parse::<f64>().ok().map(|value| sign * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match resolve(text) {
            Plain::Value(Value::Null) => "null".to_owned(),
            Plain::Value(Value::Bool(value)) => value.to_string(),
            Plain::Value(Value::Int(value)) => value.to_string(),
            Plain::Value(Value::Float(value)) => format!("{value:?}"),
            Plain::Value(Value::Str(text)) => format!("{text:?}"),
            Plain::Value(Value::Date(moment)) => moment.iso(),
            other @ (Plain::Value(_) | Plain::Merge | Plain::Equals | Plain::Impossible(_)) => {
                format!("{other:?}")
            }
        }
    }

    #[test]
    fn numbers_are_those_of_yaml_1_1() {
        for (text, value) in [
            ("017", "15"),
            ("08", "\"08\""),
            ("0o17", "\"0o17\""),
            ("1:30", "90"),
            ("-190:20", "-11420"),
            ("190:20:30.15", "685230.15"),
            ("1:60", "\"1:60\""),
            ("0:30", "\"0:30\""),
            ("1e3", "\"1e3\""),
            ("1.0e3", "\"1.0e3\""),
            ("1.0e+3", "1000.0"),
            ("1.", "1.0"),
            (".5", "0.5"),
            ("-.5", "\"-.5\""),
            (".5_0", "0.5"),
            ("1__0", "10"),
            ("_1", "\"_1\""),
            ("0x1F", "31"),
            ("-0x10", "-16"),
            ("0b11", "3"),
            ("0_", "0"),
            ("012_3", "83"),
            ("+12", "12"),
            (".inf", "inf"),
            ("-.INF", "-inf"),
            ("-.nan", "\"-.nan\""),
            ("99999999999999999999", "99999999999999999999"),
            ("1.0e+400", "inf"),
            (".", "\".\""),
        ] {
            assert_eq!(shown(text), value, "{text}");
        }
    }

    #[test]
    fn no_integer_is_too_large_to_be_negated() {
        let least = i128::MIN.to_string();
        assert!(matches!(integer(&format!("-{least}")), Some(Value::Huge(_))));
        assert!(matches!(integer(&"9".repeat(500)), Some(Value::Huge(_))));
    }

    #[test]
    fn words_are_those_of_yaml_1_1() {
        for (text, value) in [
            ("yes", "true"),
            ("Off", "false"),
            ("ON", "true"),
            ("y", "\"y\""),
            ("tRUE", "\"tRUE\""),
            ("~", "null"),
            ("Null", "null"),
            ("nULL", "\"nULL\""),
            ("2024-01-02", "2024-01-02"),
            ("2024-1-2", "\"2024-1-2\""),
        ] {
            assert_eq!(shown(text), value, "{text}");
        }
        assert!(matches!(resolve("2024-02-30"), Plain::Impossible(_)));
        assert!(matches!(resolve("0b_"), Plain::Impossible(_)));
    }
}
