//! Number literals: decimal, `0x`, `0o`, `0b`, floats, and `_` between digits.

use num_bigint::BigInt;

use super::{Lexer, Token, is_word};
use crate::expr::error::SyntaxError;
use crate::expr::limits;

/// Python reads `1or 2` as `1 or 2`: these may follow a number directly.
const MAY_FOLLOW: [&str; 8] = ["and", "else", "for", "if", "in", "is", "not", "or"];

impl<'a> Lexer<'a> {
    pub(super) fn number(&mut self) -> Result<Token<'a>, SyntaxError> {
        let offset = self.at;
        let radix = match self.rest().get(..2).map(str::to_ascii_lowercase).as_deref() {
            Some("0x") => 16,
            Some("0o") => 8,
            Some("0b") => 2,
            Some(_) | None => 10,
        };
        let token = if radix == 10 { self.decimal()? } else { self.based(radix)? };
        let rest = self.rest();
        if rest.starts_with(is_word) && !MAY_FOLLOW.iter().any(|word| rest.starts_with(word)) {
            return Err(SyntaxError::invalid("invalid number literal", offset));
        }
        Ok(token)
    }

    /// Digits of `radix` with single underscores between them; may be none.
    fn digits(&mut self, radix: u32) -> Result<String, SyntaxError> {
        let offset = self.at;
        let mut digits = String::new();
        let mut after_underscore = false;
        while let Some(c) = self.peek() {
            if c == '_' && !after_underscore && !digits.is_empty() {
                after_underscore = true;
            } else if c.is_digit(radix) {
                after_underscore = false;
                digits.push(c);
            } else {
                break;
            }
            self.at += 1;
        }
        if after_underscore {
            return Err(SyntaxError::invalid("invalid number literal", offset));
        }
        Ok(digits)
    }

    fn based(&mut self, radix: u32) -> Result<Token<'a>, SyntaxError> {
        let offset = self.at;
        self.at += 2;
        // One underscore may stand between the prefix and the digits.
        if self.rest().starts_with('_') {
            self.at += 1;
        }
        let digits = self.digits(radix)?;
        integer(&digits, radix, offset)
    }

    fn decimal(&mut self) -> Result<Token<'a>, SyntaxError> {
        let offset = self.at;
        let mut number = self.digits(10)?;
        let mut is_float = false;
        if self.rest().starts_with('.') {
            is_float = true;
            self.at += 1;
            number.push('.');
            number.push_str(&self.digits(10)?);
        }
        let exponent = self.rest().strip_prefix(['e', 'E']).unwrap_or_default();
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if exponent.starts_with(|c: char| c.is_ascii_digit()) {
            is_float = true;
            number.push('e');
            self.at += 1;
            if let Some(sign @ ('+' | '-')) = self.peek() {
                number.push(sign);
                self.at += 1;
            }
            number.push_str(&self.digits(10)?);
        }
        if self.rest().starts_with(['j', 'J']) {
            self.at += 1;
            return Ok(Token::Imaginary);
        }
        if is_float {
            // Rust reads every such text, rounding as Python does; too large is infinite in both.
            let float = number.parse().map_err(|_| SyntaxError::invalid("invalid number literal", offset))?;
            return Ok(Token::Float(float));
        }
        if number.starts_with('0') && number.contains(|c| c != '0') {
            let message =
                "leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal";
            return Err(SyntaxError::invalid(message, offset));
        }
        integer(&number, 10, offset)
    }
}

fn integer<'a>(digits: &str, radix: u32, offset: usize) -> Result<Token<'a>, SyntaxError> {
    // Counted before converting, because converting takes quadratic time. A digit is at least one bit.
    let too_large = || SyntaxError::invalid(limits::INT_TOO_LARGE.to_string(), offset);
    let significant = digits.trim_start_matches('0').len();
    if u64::try_from(significant).is_ok_and(|digits| digits > limits::INT_BITS) {
        return Err(too_large());
    }
    let integer = BigInt::parse_bytes(digits.as_bytes(), radix)
        .ok_or_else(|| SyntaxError::invalid("invalid number literal", offset))?;
    if integer.bits() > limits::INT_BITS {
        return Err(too_large());
    }
    Ok(Token::Int(integer))
}
