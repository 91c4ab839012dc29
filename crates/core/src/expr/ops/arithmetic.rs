//! `+ - * / % **` and the signs.

use num_bigint::{BigInt, Sign as IntSign};

use super::format;
use crate::expr::error::Cause;
use crate::expr::limits::{self, INT_TOO_LARGE, LIST_TOO_LARGE, SIZE_BYTES, STR_TOO_LARGE};
use crate::expr::node::{Arithmetic, Sign};
use crate::expr::number;
use crate::expr::value::Value;

/// Two numbers, brought to one kind as Python does before it computes.
enum Pair {
    Ints(BigInt, BigInt),
    Floats(f64, f64),
}

pub(in crate::expr) fn apply(operator: Arithmetic, left: Value, right: Value) -> Result<Value, Cause> {
    if let Some(pair) = numbers(&left, &right)? {
        return match operator {
            Arithmetic::Add => add_numbers(pair),
            Arithmetic::Subtract => subtract_numbers(pair),
            Arithmetic::Multiply => multiply_numbers(&pair),
            Arithmetic::Divide => divide(pair),
            Arithmetic::Modulo => modulo(pair),
        };
    }
    match operator {
        Arithmetic::Add => join(left, right),
        Arithmetic::Subtract => Err(unsupported("-", &left, &right)),
        Arithmetic::Multiply => repeat_either(left, right),
        Arithmetic::Divide => Err(unsupported("/", &left, &right)),
        Arithmetic::Modulo => match &left {
            Value::Str(template) => format::format(template, &right).map(Value::Str),
            Value::None
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Map(_) => Err(unsupported("%", &left, &right)),
        },
    }
}

pub(in crate::expr) fn sign(operator: Sign, operand: &Value) -> Result<Value, Cause> {
    if let Value::Float(value) = operand {
        return Ok(Value::Float(match operator {
            Sign::Plus => *value,
            Sign::Minus => -value,
        }));
    }
    let symbol = match operator {
        Sign::Plus => '+',
        Sign::Minus => '-',
    };
    let value = operand.as_int().ok_or_else(|| {
        Cause::type_error(format!("bad operand type for unary {symbol}: '{}'", operand.type_name()))
    })?;
    Ok(Value::Int(match operator {
        Sign::Plus => value,
        Sign::Minus => -value,
    }))
}

pub(in crate::expr) fn power(base: &Value, exponent: &Value) -> Result<Value, Cause> {
    match numbers(base, exponent)? {
        Some(Pair::Ints(base, exponent)) if exponent.sign() != IntSign::Minus => int_power(&base, &exponent),
        Some(Pair::Ints(base, exponent)) => float_power(to_float(&base)?, to_float(&exponent)?),
        Some(Pair::Floats(base, exponent)) => float_power(base, exponent),
        None => Err(unsupported("** or pow()", base, exponent)),
    }
}

fn numbers(left: &Value, right: &Value) -> Result<Option<Pair>, Cause> {
    Ok(match (left, right) {
        (Value::Float(left), Value::Float(right)) => Some(Pair::Floats(*left, *right)),
        (Value::Float(left), _) => match right.as_int() {
            Some(right) => Some(Pair::Floats(*left, to_float(&right)?)),
            None => None,
        },
        (_, Value::Float(right)) => match left.as_int() {
            Some(left) => Some(Pair::Floats(to_float(&left)?, *right)),
            None => None,
        },
        _ => left.as_int().zip(right.as_int()).map(|(left, right)| Pair::Ints(left, right)),
    })
}

fn to_float(value: &BigInt) -> Result<f64, Cause> {
    number::to_float(value).ok_or(Cause::Overflow("int too large to convert to float"))
}

fn unsupported(operator: &str, left: &Value, right: &Value) -> Cause {
    let (left, right) = (left.type_name(), right.type_name());
    Cause::type_error(format!("unsupported operand type(s) for {operator}: '{left}' and '{right}'"))
}

/// An integer that is not over the limit.
fn int(value: BigInt) -> Result<Value, Cause> {
    if value.bits() > limits::INT_BITS { Err(INT_TOO_LARGE) } else { Ok(Value::Int(value)) }
}

fn add_numbers(pair: Pair) -> Result<Value, Cause> {
    match pair {
        Pair::Ints(left, right) => int(left + right),
        Pair::Floats(left, right) => Ok(Value::Float(left + right)),
    }
}

fn subtract_numbers(pair: Pair) -> Result<Value, Cause> {
    match pair {
        Pair::Ints(left, right) => int(left - right),
        Pair::Floats(left, right) => Ok(Value::Float(left - right)),
    }
}

fn multiply_numbers(pair: &Pair) -> Result<Value, Cause> {
    match pair {
        Pair::Ints(left, right) => int(left * right),
        Pair::Floats(left, right) => Ok(Value::Float(left * right)),
    }
}

fn divide(pair: Pair) -> Result<Value, Cause> {
    match pair {
        Pair::Ints(_, right) if right.sign() == IntSign::NoSign => {
            Err(Cause::ZeroDivision("division by zero"))
        }
        Pair::Ints(left, right) => number::divide(&left, &right)
            .map(Value::Float)
            .ok_or(Cause::Overflow("integer division result too large for a float")),
        Pair::Floats(_, 0.0) => Err(Cause::ZeroDivision("float division by zero")),
        Pair::Floats(left, right) => Ok(Value::Float(left / right)),
    }
}

/// The remainder takes the sign of the divisor; Rust's takes that of the dividend.
fn modulo(pair: Pair) -> Result<Value, Cause> {
    match pair {
        Pair::Ints(_, right) if right.sign() == IntSign::NoSign => {
            Err(Cause::ZeroDivision("integer modulo by zero"))
        }
        Pair::Ints(left, right) => {
            let remainder = left % &right;
            let is_opposite = remainder.sign() != IntSign::NoSign && remainder.sign() != right.sign();
            Ok(Value::Int(if is_opposite { remainder + right } else { remainder }))
        }
        Pair::Floats(_, 0.0) => Err(Cause::ZeroDivision("float modulo")),
        Pair::Floats(left, right) => {
            let remainder = left % right;
            Ok(Value::Float(if remainder == 0.0 {
                0.0_f64.copysign(right)
            } else if (remainder < 0.0) != (right < 0.0) {
                remainder + right
            } else {
                remainder
            }))
        }
    }
}

/// The exponent is not negative.
fn int_power(base: &BigInt, exponent: &BigInt) -> Result<Value, Cause> {
    let bits = base.bits();
    if bits <= 1 {
        // 0, 1 and -1 never grow, however large the exponent: only zero or not, and odd or even matter.
        let same = if exponent.bit(0) { 1 } else { 2 };
        let reduced = if exponent.sign() == IntSign::NoSign { 0 } else { same };
        return Ok(Value::Int(base.pow(reduced)));
    }
    // The result has more than (bits - 1) * exponent bits, so this refuses before computing.
    let exponent = u32::try_from(exponent).map_err(|_| INT_TOO_LARGE)?;
    if (bits - 1) * u64::from(exponent) >= limits::INT_BITS {
        return Err(INT_TOO_LARGE);
    }
    int(base.pow(exponent))
}

fn float_power(base: f64, exponent: f64) -> Result<Value, Cause> {
    if base == 0.0 && exponent < 0.0 {
        return Err(Cause::ZeroDivision("0.0 cannot be raised to a negative power"));
    }
    if base < 0.0 && base.is_finite() && exponent.is_finite() && exponent.fract() != 0.0 {
        return Err(Cause::Value("a fractional power of a negative number is complex".to_owned()));
    }
    let result = base.powf(exponent);
    if result.is_infinite() && base.is_finite() && exponent.is_finite() {
        return Err(Cause::Overflow("(34, 'Numerical result out of range')"));
    }
    Ok(Value::Float(result))
}

fn join(left: Value, right: Value) -> Result<Value, Cause> {
    match (left, right) {
        (Value::Str(left), Value::Str(right)) => {
            if left.len() + right.len() > SIZE_BYTES {
                return Err(STR_TOO_LARGE);
            }
            Ok(Value::Str(left + &right))
        }
        (Value::List(mut left), Value::List(right)) => {
            if weight(&left) + weight(&right) > SIZE_BYTES {
                return Err(LIST_TOO_LARGE);
            }
            left.extend(right);
            Ok(Value::List(left))
        }
        (left @ (Value::Str(_) | Value::List(_)), right) => {
            let (kind, other) = (left.type_name(), right.type_name());
            Err(Cause::type_error(format!("can only concatenate {kind} (not \"{other}\") to {kind}")))
        }
        (left, right) => Err(unsupported("+", &left, &right)),
    }
}

fn repeat_either(left: Value, right: Value) -> Result<Value, Cause> {
    match (left, right) {
        (left @ (Value::Str(_) | Value::List(_)), right) => repeat(left, &right),
        (left, right @ (Value::Str(_) | Value::List(_))) => repeat(right, &left),
        (left, right) => Err(unsupported("*", &left, &right)),
    }
}

fn repeat(sequence: Value, times: &Value) -> Result<Value, Cause> {
    let times = times.as_int().ok_or_else(|| {
        Cause::type_error(format!("can't multiply sequence by non-int of type '{}'", times.type_name()))
    })?;
    let times = i64::try_from(times)
        .map_err(|_| Cause::Overflow("cannot fit 'int' into an index-sized integer"))?
        .max(0);
    let times = usize::try_from(times).unwrap_or(usize::MAX);
    let fits = |size: usize| size.checked_mul(times).is_some_and(|size| size <= SIZE_BYTES);
    match sequence {
        Value::Str(text) if fits(text.len()) => Ok(Value::Str(text.repeat(times))),
        Value::Str(_) => Err(STR_TOO_LARGE),
        Value::List(items) if fits(weight(&items)) => {
            let copies = std::iter::repeat_n(&items, if items.is_empty() { 0 } else { times });
            Ok(Value::List(copies.flatten().cloned().collect()))
        }
        Value::List(_) => Err(LIST_TOO_LARGE),
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Map(_) => Ok(sequence),
    }
}

/// With what the items hold: repeating a list copies that too.
fn weight(items: &[Value]) -> usize {
    items.iter().map(Value::weight).sum()
}
