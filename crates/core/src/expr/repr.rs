//! Values as text, as Python's `str` and `repr` write them.

use super::error::Cause;
use super::limits;
use super::value::Value;

/// A string that refuses to grow over the limit.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    pub(super) fn push(&mut self, more: &str) -> Result<(), Cause> {
        if self.0.len() + more.len() > limits::SIZE_BYTES {
            return Err(limits::STR_TOO_LARGE);
        }
        self.0.push_str(more);
        Ok(())
    }

    pub(super) fn push_char(&mut self, c: char) -> Result<(), Cause> {
        self.push(c.encode_utf8(&mut [0; 4]))
    }

    pub(super) fn fill(&mut self, c: char, count: usize) -> Result<(), Cause> {
        if count.saturating_add(self.0.len()) > limits::SIZE_BYTES {
            return Err(limits::STR_TOO_LARGE);
        }
        self.0.extend(std::iter::repeat_n(c, count));
        Ok(())
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// Python's `str(value)`.
pub(super) fn text(value: &Value) -> Result<String, Cause> {
    let mut out = Text::default();
    match value {
        Value::Str(text) => out.push(text)?,
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) | Value::Map(_) => {
            write(value, &mut out)?
        }
    }
    Ok(out.into_string())
}

/// Python's `repr(value)`.
pub(super) fn repr(value: &Value) -> Result<String, Cause> {
    let mut out = Text::default();
    write(value, &mut out)?;
    Ok(out.into_string())
}

/// Recurses only as deep as data may be nested.
fn write(value: &Value, out: &mut Text) -> Result<(), Cause> {
    match value {
        Value::None => out.push("None"),
        Value::Bool(true) => out.push("True"),
        Value::Bool(false) => out.push("False"),
        Value::Int(value) => out.push(&value.to_string()),
        Value::Float(value) => out.push(&float(*value)),
        Value::Str(value) => write_str(value, out),
        Value::List(items) => {
            out.push("[")?;
            for (index, item) in items.iter().enumerate() {
                out.push(if index == 0 { "" } else { ", " })?;
                write(item, out)?;
            }
            out.push("]")
        }
        Value::Map(entries) => {
            out.push("{")?;
            for (index, (key, value)) in entries.iter().enumerate() {
                out.push(if index == 0 { "" } else { ", " })?;
                write_str(key, out)?;
                out.push(": ")?;
                write(value, out)?;
            }
            out.push("}")
        }
    }
}

fn write_str(value: &str, out: &mut Text) -> Result<(), Cause> {
    let quote = if value.contains('\'') && !value.contains('"') { '"' } else { '\'' };
    out.push_char(quote)?;
    for c in value.chars() {
        match c {
            '\\' => out.push("\\\\")?,
            '\n' => out.push("\\n")?,
            '\r' => out.push("\\r")?,
            '\t' => out.push("\\t")?,
            _ if c == quote => {
                out.push("\\")?;
                out.push_char(c)?;
            }
            _ if is_printable(c) => out.push_char(c)?,
            _ => out.push(&escape(c))?,
        }
    }
    out.push_char(quote)
}

/// Python's escape of a character by its number.
pub(super) fn escape(c: char) -> String {
    let code = u32::from(c);
    match code {
        0..=0xff => format!("\\x{code:02x}"),
        0x100..=0xffff => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    }
}

/// Whether Python's `repr` shows the character itself. Rust's table of printable characters is Python's; it can only
/// be asked through `escape_debug`, which also escapes quotes and, at the start, combining characters.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut buffer = [0; 5];
    buffer[0] = b'a';
    let length = 1 + c.encode_utf8(&mut buffer[1..]).len();
    str::from_utf8(&buffer[..length]).is_ok_and(|pair| pair.escape_debug().count() == 2)
}

/// Python's `repr` of a float: the shortest digits that read back as the same float, and an exponent from 1e16 on
/// and below 1e-4.
pub(super) fn float(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan"
        } else if value < 0.0 {
            "-inf"
        } else {
            "inf"
        }
        .to_owned();
    }
    // Rust's shortest text has the right number of digits, but of two equally near ones it may not take the even one.
    // Rounding to that number of digits does, except that next to a power of two the result may be another float.
    let shortest = format!("{value:e}");
    let decimals = shortest.split_once('e').and_then(|(mantissa, _)| mantissa.split_once('.'));
    let decimals = decimals.map_or(0, |(_, decimals)| decimals.len());
    let rounded =
        Some(format!("{value:.decimals$e}")).filter(|text| text.parse() == Ok(value)).unwrap_or(shortest);
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        return plain(mantissa, exponent);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// Moves the point of `d.ddd` by a small exponent, and keeps a digit on both sides of it.
fn plain(mantissa: &str, exponent: i32) -> String {
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |mantissa| ("-", mantissa));
    let digits = mantissa.replace('.', "");
    let shift = usize::try_from(exponent.unsigned_abs()).unwrap_or(0);
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(shift - 1));
    }
    let digits = format!("{digits:0<width$}", width = shift + 2);
    let (whole, decimals) = digits.split_at(shift + 1);
    format!("{sign}{whole}.{decimals}")
}
