//! `==`, the orderings and `in`.

use std::cmp::Ordering;

use crate::expr::error::Cause;
use crate::expr::node::{Comparison, Order};
use crate::expr::number;
use crate::expr::value::Value;

pub(in crate::expr) fn holds(comparison: Comparison, left: &Value, right: &Value) -> Result<bool, Cause> {
    match comparison {
        Comparison::Equal => Ok(left.py_eq(right)),
        Comparison::NotEqual => Ok(!left.py_eq(right)),
        Comparison::Ordered(order) => ordered(order, left, right),
        Comparison::In => contains(right, left),
        Comparison::NotIn => contains(right, left).map(|found| !found),
    }
}

impl Value {
    /// Python's `==`: numbers and truth values by value whatever their kind (`True == 1 == 1.0`, without rounding),
    /// lists in order, mappings in any order; values of other different kinds are never equal.
    pub fn py_eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Str(left), Self::Str(right)) => left == right,
            (Self::List(left), Self::List(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.py_eq(right))
            }
            (Self::Map(left), Self::Map(right)) => {
                left.len() == right.len()
                    && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| value.py_eq(other)))
            }
            _ => matches!(compare_numbers(self, other), Some(Some(Ordering::Equal))),
        }
    }
}

/// The order of two numbers: `None` when one is not a number, `Some(None)` when one is NaN.
fn compare_numbers(left: &Value, right: &Value) -> Option<Option<Ordering>> {
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => Some(left.partial_cmp(right)),
        (Value::Float(left), _) => Some(number::compare(&right.as_int()?, *left).map(Ordering::reverse)),
        (_, Value::Float(right)) => Some(number::compare(&left.as_int()?, *right)),
        _ => Some(Some(left.as_int()?.cmp(&right.as_int()?))),
    }
}

/// Goes one level down for each level of two lists that start alike, so as deep as data may be nested.
fn ordered(order: Order, left: &Value, right: &Value) -> Result<bool, Cause> {
    if let Some(ordering) = compare_numbers(left, right) {
        // Nothing is ordered against NaN.
        return Ok(ordering.is_some_and(|ordering| satisfies(order, ordering)));
    }
    match (left, right) {
        (Value::Str(left), Value::Str(right)) => Ok(satisfies(order, left.cmp(right))),
        (Value::List(left), Value::List(right)) => {
            match left.iter().zip(right).find(|(left, right)| !left.py_eq(right)) {
                Some((left, right)) => ordered(order, left, right),
                None => Ok(satisfies(order, left.len().cmp(&right.len()))),
            }
        }
        _ => Err(Cause::type_error(format!(
            "'{}' not supported between instances of '{}' and '{}'",
            symbol(order),
            left.type_name(),
            right.type_name()
        ))),
    }
}

fn satisfies(order: Order, ordering: Ordering) -> bool {
    match order {
        Order::Less => ordering.is_lt(),
        Order::LessEqual => ordering.is_le(),
        Order::Greater => ordering.is_gt(),
        Order::GreaterEqual => ordering.is_ge(),
    }
}

fn symbol(order: Order) -> &'static str {
    match order {
        Order::Less => "<",
        Order::LessEqual => "<=",
        Order::Greater => ">",
        Order::GreaterEqual => ">=",
    }
}

fn contains(container: &Value, item: &Value) -> Result<bool, Cause> {
    let kind = item.type_name();
    match container {
        Value::Str(text) => match item.as_str() {
            Some(part) => Ok(text.contains(part)),
            None => {
                Err(Cause::type_error(format!("'in <string>' requires string as left operand, not {kind}")))
            }
        },
        Value::List(items) => Ok(items.iter().any(|candidate| candidate.py_eq(item))),
        Value::Map(entries) => match item {
            Value::Str(key) => Ok(entries.contains_key(key)),
            Value::List(_) | Value::Map(_) => Err(Cause::type_error(format!("unhashable type: '{kind}'"))),
            // All keys are strings.
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => Ok(false),
        },
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
            Err(Cause::type_error(format!("argument of type '{}' is not iterable", container.type_name())))
        }
    }
}
