//! String literals: prefixes, the four kinds of quotes, escapes.

use super::{Lexer, Token};
use crate::expr::error::SyntaxError;

/// Whether `word` directly before a quote belongs to the literal.
pub(super) fn is_prefix(word: &str) -> bool {
    ["r", "u", "b", "br", "rb", "f", "fr", "rf"].iter().any(|prefix| prefix.eq_ignore_ascii_case(word))
}

impl<'a> Lexer<'a> {
    /// Reads the literal whose quotes start here and whose prefix started at `offset`.
    pub(super) fn string(&mut self, prefix: &str, offset: usize) -> Result<Token<'a>, SyntaxError> {
        let rest = self.rest();
        let quote =
            ["'''", "\"\"\"", "'", "\""].into_iter().find(|quote| rest.starts_with(quote)).unwrap_or("'");
        self.at += quote.len();
        let prefix = prefix.to_ascii_lowercase();
        let has = |letter| prefix.contains(letter);
        if has('b') || has('f') {
            // Refused as a whole, so only its end matters.
            self.body(quote, true, offset)?;
            return Ok(if has('b') { Token::Bytes } else { Token::Formatted });
        }
        Ok(Token::Str(self.body(quote, has('r'), offset)?))
    }

    fn body(&mut self, quote: &str, raw: bool, offset: usize) -> Result<String, SyntaxError> {
        let mut value = String::new();
        loop {
            if self.rest().starts_with(quote) {
                self.at += quote.len();
                return Ok(value);
            }
            match self.peek() {
                Some('\\') if raw => self.raw_backslash(&mut value),
                Some('\\') => self.escape(&mut value)?,
                Some('\n' | '\r') if quote.len() == 3 => {
                    self.take_line_break();
                    value.push('\n');
                }
                None | Some('\n' | '\r') => {
                    return Err(SyntaxError::invalid("unterminated string literal", offset));
                }
                Some(c) => {
                    self.at += c.len_utf8();
                    value.push(c);
                }
            }
        }
    }

    /// In a raw string the backslash stays, and still protects a quote.
    fn raw_backslash(&mut self, value: &mut String) {
        self.at += 1;
        value.push('\\');
        if self.take_line_break() {
            value.push('\n');
        } else if let Some(c) = self.peek() {
            self.at += c.len_utf8();
            value.push(c);
        }
    }

    fn escape(&mut self, value: &mut String) -> Result<(), SyntaxError> {
        let offset = self.at;
        self.at += 1;
        if self.take_line_break() {
            return Ok(());
        }
        let Some(c) = self.peek() else {
            return Ok(());
        };
        if c.is_digit(8) {
            let digits: String = self.rest().chars().take(3).take_while(|c| c.is_digit(8)).collect();
            self.at += digits.len();
            return push_code(value, &digits, 8, offset);
        }
        self.at += c.len_utf8();
        let simple = match c {
            '\\' | '\'' | '"' => c,
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'x' => return self.hex_escape(value, 2, offset),
            'u' => return self.hex_escape(value, 4, offset),
            'U' => return self.hex_escape(value, 8, offset),
            // It would need the whole table of Unicode's names.
            'N' => return Err(SyntaxError::invalid("\\N escapes are not supported; use \\u or \\U", offset)),
            _ => {
                value.push('\\');
                c
            }
        };
        value.push(simple);
        Ok(())
    }

    fn hex_escape(&mut self, value: &mut String, length: usize, offset: usize) -> Result<(), SyntaxError> {
        let digits: String = self.rest().chars().take(length).take_while(char::is_ascii_hexdigit).collect();
        if digits.len() < length {
            return Err(SyntaxError::invalid("truncated escape in string literal", offset));
        }
        self.at += length;
        push_code(value, &digits, 16, offset)
    }
}

fn push_code(value: &mut String, digits: &str, radix: u32, offset: usize) -> Result<(), SyntaxError> {
    // Surrogates are refused too: Python's strings can hold them, text that can be stored cannot.
    let code = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
    value.push(
        code.ok_or_else(|| SyntaxError::invalid("illegal Unicode character in string literal", offset))?,
    );
    Ok(())
}
