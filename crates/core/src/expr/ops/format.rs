//! `template % value`, Python's old string formatting.
//!
//! Expressions have no tuples, so there is always exactly one value: it fills one place, or names many as a mapping.

use std::iter::Peekable;
use std::str::CharIndices;

use super::format_number as number;
use crate::expr::error::Cause;
use crate::expr::limits::{SIZE_BYTES, STR_TOO_LARGE};
use crate::expr::repr::{self, Text};
use crate::expr::value::Value;

/// One place in a template, between `%` and its letter.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) left: bool,
    pub(super) plus: bool,
    pub(super) space: bool,
    pub(super) alternate: bool,
    pub(super) zero: bool,
    pub(super) width: usize,
    pub(super) precision: Option<usize>,
}

pub(super) fn format(template: &str, value: &Value) -> Result<String, Cause> {
    let mut formatter = Formatter {
        template,
        chars: template.char_indices().peekable(),
        value,
        unused: Some(value),
        out: Text::default(),
    };
    formatter.run()?;
    // Python lets a list or a mapping go unused.
    let may_be_unused = matches!(value, Value::List(_) | Value::Map(_));
    if formatter.unused.is_some() && !may_be_unused {
        return Err(Cause::type_error("not all arguments converted during string formatting"));
    }
    Ok(formatter.out.into_string())
}

struct Formatter<'a> {
    template: &'a str,
    chars: Peekable<CharIndices<'a>>,
    value: &'a Value,
    /// What the next place takes.
    unused: Option<&'a Value>,
    out: Text,
}

impl<'a> Formatter<'a> {
    fn run(&mut self) -> Result<(), Cause> {
        while let Some((_, c)) = self.chars.next() {
            if c == '%' { self.place()? } else { self.out.push_char(c)? }
        }
        Ok(())
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    fn place(&mut self) -> Result<(), Cause> {
        if self.chars.next_if(|(_, c)| *c == '%').is_some() {
            return self.out.push("%");
        }
        if self.peek() == Some('(') {
            self.named()?;
        }
        let mut place = Place::default();
        self.flags(&mut place);
        place.width = self.size()?.unwrap_or(0);
        if self.chars.next_if(|(_, c)| *c == '.').is_some() {
            place.precision = Some(self.size()?.unwrap_or(0));
        }
        self.chars.next_if(|(_, c)| matches!(c, 'h' | 'l' | 'L'));
        let (index, letter) =
            self.chars.next().ok_or_else(|| Cause::Value("incomplete format".to_owned()))?;
        let value = self.take()?;
        self.convert(&place, letter, index, value)
    }

    fn take(&mut self) -> Result<&'a Value, Cause> {
        self.unused.take().ok_or_else(|| Cause::type_error("not enough arguments for format string"))
    }

    /// `(key)`: the place takes the mapping's value. Parentheses inside the key come in pairs.
    fn named(&mut self) -> Result<(), Cause> {
        let entries = match self.value {
            Value::Map(entries) => entries,
            Value::List(_) => {
                return Err(Cause::type_error("list indices must be integers or slices, not str"));
            }
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {
                return Err(Cause::type_error("format requires a mapping"));
            }
        };
        let incomplete = || Cause::Value("incomplete format key".to_owned());
        let start = self.chars.next().ok_or_else(incomplete)?.0 + 1;
        let mut open = 1;
        for (index, c) in self.chars.by_ref() {
            match c {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            if open == 0 {
                let key = self.template.get(start..index).unwrap_or_default();
                let value = entries.get(key);
                self.unused = Some(value.ok_or_else(|| key_error(key))?);
                return Ok(());
            }
        }
        Err(incomplete())
    }

    fn flags(&mut self, place: &mut Place) {
        while let Some(c) = self.peek() {
            match c {
                '-' => place.left = true,
                '+' => place.plus = true,
                ' ' => place.space = true,
                '#' => place.alternate = true,
                '0' => place.zero = true,
                _ => return,
            }
            self.chars.next();
        }
    }

    /// A width or a precision.
    fn size(&mut self) -> Result<Option<usize>, Cause> {
        if self.peek() == Some('*') {
            // It takes the only value there is, and leaves none for the place itself.
            let value = self.take()?;
            let has_int = value.as_int().is_some();
            return Err(Cause::type_error(if has_int {
                "not enough arguments for format string"
            } else {
                "* wants int"
            }));
        }
        let mut size = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.chars.next();
            let digit = usize::try_from(digit).unwrap_or(0);
            // Refused here, before anything that long is made.
            let larger = size.unwrap_or(0) * 10 + digit;
            size = Some(if larger <= SIZE_BYTES { larger } else { return Err(STR_TOO_LARGE) });
        }
        Ok(size)
    }

    fn convert(&mut self, place: &Place, letter: char, index: usize, value: &Value) -> Result<(), Cause> {
        let out = &mut self.out;
        match letter {
            's' => pad(out, place, &cut(repr::text(value)?, place)),
            'r' => pad(out, place, &cut(repr::repr(value)?, place)),
            'a' => pad(out, place, &cut(ascii(&repr::repr(value)?), place)),
            'c' => pad(out, place, &character(value)?),
            'd' | 'i' | 'u' => number::decimal(place, letter, value)?.write(place, out),
            'x' | 'X' | 'o' => number::based(place, letter, value)?.write(place, out),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => number::float(place, letter, value)?.write(place, out),
            _ => {
                let position = self.template.get(..index).unwrap_or_default().chars().count();
                let code = u32::from(letter);
                let shown = if (' '..='~').contains(&letter) { letter } else { '?' };
                Err(Cause::Value(format!(
                    "unsupported format character '{shown}' (0x{code:x}) at index {position}"
                )))
            }
        }
    }
}

fn key_error(key: &str) -> Cause {
    match repr::repr(&Value::from(key)) {
        Ok(shown) => Cause::Value(shown),
        Err(cause) => cause,
    }
}

fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() { c.to_string() } else { repr::escape(c) }).collect()
}

fn character(value: &Value) -> Result<String, Cause> {
    if let Some(code) = value.as_int() {
        let c = u32::try_from(code).ok().and_then(char::from_u32);
        return Ok(c.ok_or(Cause::Overflow("%c arg not in range(0x110000)"))?.to_string());
    }
    match value.as_str() {
        Some(text) if text.chars().count() == 1 => Ok(text.to_owned()),
        Some(_) | None => Err(Cause::type_error("%c requires int or char")),
    }
}

/// Only the first `precision` characters.
fn cut(mut text: String, place: &Place) -> String {
    let end = place.precision.and_then(|precision| text.char_indices().nth(precision));
    if let Some((end, _)) = end {
        text.truncate(end);
    }
    text
}

fn pad(out: &mut Text, place: &Place, text: &str) -> Result<(), Cause> {
    let missing = place.width.saturating_sub(text.chars().count());
    out.fill(' ', if place.left { 0 } else { missing })?;
    out.push(text)?;
    out.fill(' ', if place.left { missing } else { 0 })
}
