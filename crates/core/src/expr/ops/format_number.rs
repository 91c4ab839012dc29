//! Numbers in `%` formatting.

use num_bigint::{BigInt, Sign};

use super::format::Place;
use crate::expr::error::Cause;
use crate::expr::number;
use crate::expr::repr::Text;
use crate::expr::value::Value;

/// No float has more decimal digits than this behind the point; a longer precision only adds zeros.
const FLOAT_DIGITS: usize = 1100;

/// A number as text, in the parts between which zeros may go.
pub(super) struct Number {
    negative: bool,
    prefix: &'static str,
    /// Zeros that the precision asks for.
    zeros: usize,
    digits: String,
}

impl Number {
    pub(super) fn write(&self, place: &Place, out: &mut Text) -> Result<(), Cause> {
        let sign = match (self.negative, place.plus, place.space) {
            (true, _, _) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        };
        let length = sign.len() + self.prefix.len() + self.zeros + self.digits.len();
        let missing = place.width.saturating_sub(length);
        let (before, zeros, after) = match (place.left, place.zero) {
            (true, _) => (0, 0, missing),
            (false, true) => (0, missing, 0),
            (false, false) => (missing, 0, 0),
        };
        out.fill(' ', before)?;
        out.push(sign)?;
        out.push(self.prefix)?;
        out.fill('0', zeros + self.zeros)?;
        out.push(&self.digits)?;
        out.fill(' ', after)
    }
}

pub(super) fn decimal(place: &Place, letter: char, value: &Value) -> Result<Number, Cause> {
    let integer = match value {
        Value::Float(float) => number::truncate(*float).ok_or_else(|| {
            Cause::Overflow(if float.is_nan() {
                "cannot convert float NaN to integer"
            } else {
                "cannot convert float infinity to integer"
            })
        })?,
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Str(_) | Value::List(_) | Value::Map(_) => {
            value.as_int().ok_or_else(|| {
                let kind = value.type_name();
                Cause::type_error(format!("%{letter} format: a real number is required, not {kind}"))
            })?
        }
    };
    Ok(whole(place, &integer, 10, ""))
}

pub(super) fn based(place: &Place, letter: char, value: &Value) -> Result<Number, Cause> {
    let integer = value.as_int().ok_or_else(|| {
        let kind = value.type_name();
        Cause::type_error(format!("%{letter} format: an integer is required, not {kind}"))
    })?;
    let (radix, prefix) = match letter {
        'o' => (8, "0o"),
        'X' => (16, "0X"),
        _ => (16, "0x"),
    };
    let mut number = whole(place, &integer, radix, if place.alternate { prefix } else { "" });
    if letter == 'X' {
        number.digits.make_ascii_uppercase();
    }
    Ok(number)
}

fn whole(place: &Place, integer: &BigInt, radix: u32, prefix: &'static str) -> Number {
    let digits = integer.magnitude().to_str_radix(radix);
    let zeros = place.precision.unwrap_or(0).saturating_sub(digits.len());
    Number { negative: integer.sign() == Sign::Minus, prefix, zeros, digits }
}

pub(super) fn float(place: &Place, letter: char, value: &Value) -> Result<Number, Cause> {
    let float = match value {
        Value::Float(float) => *float,
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Str(_) | Value::List(_) | Value::Map(_) => {
            let integer = value.as_int().ok_or_else(|| {
                Cause::type_error(format!("must be real number, not {}", value.type_name()))
            })?;
            number::to_float(&integer).ok_or(Cause::Overflow("int too large to convert to float"))?
        }
    };
    let magnitude = float.abs();
    let precision = place.precision.unwrap_or(6);
    let mut digits = match letter.to_ascii_lowercase() {
        _ if !float.is_finite() => if float.is_nan() { "nan" } else { "inf" }.to_owned(),
        'f' => fixed(magnitude, precision, place.alternate),
        'e' => scientific(magnitude, precision, place.alternate),
        _ => general(magnitude, precision.max(1), place.alternate),
    };
    if letter.is_ascii_uppercase() {
        digits.make_ascii_uppercase();
    }
    // NaN has a sign bit that Python does not show.
    Ok(Number { negative: float.is_sign_negative() && !float.is_nan(), prefix: "", zeros: 0, digits })
}

fn fixed(value: f64, precision: usize, keep_point: bool) -> String {
    let mut text = format!("{value:.*}", precision.min(FLOAT_DIGITS));
    text.extend(std::iter::repeat_n('0', precision.saturating_sub(FLOAT_DIGITS)));
    if keep_point && precision == 0 {
        text.push('.');
    }
    text
}

fn scientific(value: f64, precision: usize, keep_point: bool) -> String {
    let (mantissa, exponent) = rounded(value, precision);
    let point = if keep_point && precision == 0 { "." } else { "" };
    let zeros = "0".repeat(precision.saturating_sub(FLOAT_DIGITS));
    format!("{mantissa}{point}{zeros}{}", exponent_text(exponent))
}

/// `%g`: `precision` significant digits, in the notation that suits the size.
fn general(value: f64, precision: usize, alternate: bool) -> String {
    let (mantissa, exponent) = rounded(value, precision - 1);
    let significant = i64::try_from(precision).unwrap_or(i64::MAX);
    if !(-4..significant).contains(&i64::from(exponent)) {
        let zeros = "0".repeat(precision.saturating_sub(FLOAT_DIGITS + 1));
        let mantissa =
            if alternate { with_point(mantissa + &zeros) } else { without_zeros(&mantissa).to_owned() };
        return mantissa + &exponent_text(exponent);
    }
    let decimals = significant - 1 - i64::from(exponent);
    let text = fixed(value, usize::try_from(decimals).unwrap_or(0), false);
    if alternate { with_point(text) } else { without_zeros(&text).to_owned() }
}

/// The decimal mantissa with `precision` digits behind the point, and the exponent.
fn rounded(value: f64, precision: usize) -> (String, i32) {
    let text = format!("{value:.*e}", precision.min(FLOAT_DIGITS));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or(0))
}

fn exponent_text(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.unsigned_abs())
}

fn with_point(mut digits: String) -> String {
    if !digits.contains('.') {
        digits.push('.');
    }
    digits
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}
