//! What goes to standard output: lines, and JSON as Python's `json.dumps` writes it.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal as _, Write};

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{CharEscape, Formatter, Serializer};

use crate::errors::Failure;

/// Writes one line, at once.
pub fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Says something beside the output, on standard error. With standard error gone there is nobody left to tell.
pub fn aside(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(text));
}

/// Writes text as it is, at once.
pub fn text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a value as one line of JSON, at once.
pub fn json(value: &Value) -> Result<(), Failure> {
    line(&json_text(value)?)
}

/// One line, ASCII only, with a blank after commas and colons.
pub fn json_text(value: &Value) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, Python)).map_err(Failure::unexpected)?;
    String::from_utf8(bytes).map_err(Failure::unexpected)
}

/// Whether a live display makes sense on standard error.
pub fn can_show_progress() -> bool {
    io::stderr().is_terminal() && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Whether standard output is a terminal that may be coloured.
pub fn has_colours() -> bool {
    io::stdout().is_terminal() && may_colour()
}

/// Whether the user allows colours at all.
pub fn may_colour() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// The text with control characters made visible, so that it cannot steer a terminal. Line ends and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_hidden = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_hidden(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// The text on one line.
pub fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// A value as Python's `str` writes it, where that is a text or a number; nothing is `-`.
pub fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => one_line(text),
        Some(Value::Number(number)) => match number.as_f64() {
            Some(float) if number.is_f64() => float_text(float),
            Some(_) | None => number.to_string(),
        },
        Some(other @ (Value::Bool(_) | Value::Array(_) | Value::Object(_))) => other.to_string(),
    }
}

/// A float as Python's `repr` writes it.
pub fn float_text(value: f64) -> String {
    // Rust gives the same shortest digits; only the layout differs.
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        if is_first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        if is_first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        out.write_all(float_text(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut units = [0_u16; 2];
        for letter in fragment.chars() {
            if matches!(letter, ' '..='~') {
                out.write_all(letter.encode_utf8(&mut [0_u8; 4]).as_bytes())?;
                continue;
            }
            for unit in letter.encode_utf16(&mut units) {
                write!(out, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::Quote => out.write_all(b"\\\""),
            CharEscape::ReverseSolidus => out.write_all(b"\\\\"),
            CharEscape::Solidus => out.write_all(b"/"),
            CharEscape::Backspace => out.write_all(b"\\b"),
            CharEscape::FormFeed => out.write_all(b"\\f"),
            CharEscape::LineFeed => out.write_all(b"\\n"),
            CharEscape::CarriageReturn => out.write_all(b"\\r"),
            CharEscape::Tab => out.write_all(b"\\t"),
            CharEscape::AsciiControl(byte) => write!(out, "\\u{byte:04x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_written_as_python_writes_it() {
        let value =
            json!({"é": ["日\u{1f600}", null, true, 1, 1.0, 1e16, 1e-5, 0.1], "\u{7f}\"\\\n": {}, "b": []});
        let text = r#"{"\u00e9": ["\u65e5\ud83d\ude00", null, true, 1, 1.0, 1e+16, 1e-05, 0.1], "\u007f\"\\\n": {}, "b": []}"#;
        assert_eq!(json_text(&value).unwrap(), text);
    }

    #[test]
    fn floats_are_written_as_python_writes_them() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1_763_212_345.123_457, "1763212345.123457"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (-1.5e300, "-1.5e+300"),
            (5e-324, "5e-324"),
        ];
        for (value, text) in cases {
            assert_eq!(float_text(value), text);
        }
    }

    #[test]
    fn a_cell_is_always_one_line() {
        assert_eq!(cell(Some(&json!("a\nb\u{1b}[0m"))), "a\\nb\\u{1b}[0m");
        assert_eq!(cell(Some(&json!(12))), "12");
        assert_eq!(cell(Some(&json!(12.5))), "12.5");
        assert_eq!((cell(None), cell(Some(&json!(null)))), ("-".to_owned(), "-".to_owned()));
    }
}
