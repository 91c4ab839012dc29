//! Exact conversions and comparisons between integers and floats.
//!
//! Python rounds each of them correctly once; going through `f64` step by step would round twice or lose digits.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};

/// Bits that are kept before the final rounding: more than a float has, and fewer than a `u128`.
const WORKING_BITS: u64 = 120;

/// The float nearest to an integer; `None` when it is too large.
pub(super) fn to_float(integer: &BigInt) -> Option<f64> {
    let magnitude = integer.magnitude();
    let excess = magnitude.bits().saturating_sub(WORKING_BITS);
    let is_exact = magnitude.trailing_zeros().is_none_or(|zeros| zeros >= excess);
    signed(
        integer.sign() == Sign::Minus,
        scaled(&(magnitude >> excess), is_exact, i64::try_from(excess).ok()?)?,
    )
}

/// The float nearest to `dividend / divisor`; `None` when it is too large. The divisor is not zero.
pub(super) fn divide(dividend: &BigInt, divisor: &BigInt) -> Option<f64> {
    let (mut numerator, mut denominator) = (dividend.magnitude().clone(), divisor.magnitude().clone());
    // The shift makes the quotient 66 or 67 bits long, whatever the operands.
    let shift = i64::try_from(denominator.bits()).ok()? - i64::try_from(numerator.bits()).ok()? + 66;
    if shift >= 0 {
        numerator <<= shift.unsigned_abs();
    } else {
        denominator <<= shift.unsigned_abs();
    }
    let quotient = &numerator / &denominator;
    let is_exact = &quotient * &denominator == numerator;
    // Like Python, 0 / -3 is -0.0.
    let negative = (dividend.sign() == Sign::Minus) != (divisor.sign() == Sign::Minus);
    signed(negative, scaled(&quotient, is_exact, -shift)?)
}

/// The integer part of a float; `None` when it is not finite.
pub(super) fn truncate(float: f64) -> Option<BigInt> {
    if !float.is_finite() {
        return None;
    }
    let bits = float.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let (mantissa, exponent) = match (bits >> 52) & 0x7ff {
        0 => (fraction, 1),
        field => (fraction | (1 << 52), field),
    };
    // The value is mantissa * 2^(exponent - 1075).
    let mantissa = BigInt::from(mantissa);
    let magnitude = match exponent.checked_sub(1075) {
        Some(left) => mantissa << left,
        None => mantissa >> (1075 - exponent),
    };
    Some(if float.is_sign_negative() { -magnitude } else { magnitude })
}

/// Compares without rounding; `None` for not-a-number.
pub(super) fn compare(integer: &BigInt, float: f64) -> Option<Ordering> {
    let Some(whole) = truncate(float) else {
        return 0.0.partial_cmp(&float);
    };
    let fraction = float - float.trunc();
    Some(integer.cmp(&whole).then(0.0.partial_cmp(&fraction)?))
}

fn signed(negative: bool, magnitude: f64) -> Option<f64> {
    Some(if negative { -magnitude } else { magnitude })
}

/// `mantissa * 2^exponent`, rounded half to even; `is_exact` tells whether nothing was cut off below the mantissa.
fn scaled(mantissa: &BigUint, is_exact: bool, exponent: i64) -> Option<f64> {
    // What was cut off only matters as "a little more than this", which the lowest of the spare bits can say.
    let mantissa = u128::try_from(mantissa).ok()? | u128::from(!is_exact);
    if mantissa == 0 {
        return Some(0.0);
    }
    let length = i64::from(u128::BITS - mantissa.leading_zeros());
    let leading = exponent + length - 1;
    if leading > 1023 {
        return None;
    }
    // Below 2^-1022 a float loses precision bit by bit.
    let subnormal_by = (-1022 - leading).max(0);
    let kept = 53 - subnormal_by;
    if kept < 0 {
        return Some(0.0);
    }
    let significand = match u32::try_from(length - kept) {
        Ok(dropped) => round(mantissa, dropped),
        Err(_) => mantissa << (kept - length),
    };
    let significand = u64::try_from(significand).ok()?;
    // The leading bit of a normal significand adds one to the exponent field, and so does a carry.
    let field = if subnormal_by > 0 { 0 } else { u64::try_from(leading + 1022).ok()? };
    Some(f64::from_bits((field << 52) + significand)).filter(|float| float.is_finite())
}

fn round(mantissa: u128, dropped: u32) -> u128 {
    let quotient = mantissa >> dropped;
    let remainder = mantissa - (quotient << dropped);
    let half = (1_u128 << dropped) >> 1;
    let up = match remainder.cmp(&half) {
        Ordering::Less => false,
        Ordering::Equal => dropped > 0 && quotient % 2 == 1,
        Ordering::Greater => true,
    };
    quotient + u128::from(up)
}
