//! The order of values: `<`, `<=`, `>`, `>=`.

use std::cmp::Ordering;

use super::arguments::value;
use crate::cel::eval::{EvalError, Function, Value};

pub fn implementation(id: &str) -> Option<Function> {
    let (operator, types) = ["less_equals_", "less_", "greater_equals_", "greater_"]
        .into_iter()
        .find_map(|operator| Some((operator, id.strip_prefix(operator)?)))?;
    let is_known = matches!(
        types,
        "bool"
            | "int64"
            | "uint64"
            | "double"
            | "string"
            | "bytes"
            | "timestamp"
            | "duration"
            | "int64_double"
            | "int64_uint64"
            | "uint64_double"
            | "uint64_int64"
            | "double_int64"
            | "double_uint64"
    );
    let implementation: Function = match operator {
        "less_equals_" => |_, arguments| order(arguments).map(|order| Value::Bool(order.is_le())),
        "less_" => |_, arguments| order(arguments).map(|order| Value::Bool(order.is_lt())),
        "greater_equals_" => |_, arguments| order(arguments).map(|order| Value::Bool(order.is_ge())),
        _ => |_, arguments| order(arguments).map(|order| Value::Bool(order.is_gt())),
    };
    is_known.then_some(implementation)
}

fn order(arguments: &[Value<'_>]) -> Result<Ordering, EvalError> {
    compare(value(arguments, 0)?, value(arguments, 1)?)
}

/// Whether values of the type have an order.
pub fn is_ordered(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
    )
}

/// The order of two values. Numbers of different types are compared as numbers, with doubles as doubles.
///
/// # Errors
/// If one is no number, or the types have no order or differ.
pub fn compare(left: &Value<'_>, right: &Value<'_>) -> Result<Ordering, EvalError> {
    Ok(match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::Uint(left), Value::Uint(right)) => left.cmp(right),
        (Value::Int(left), Value::Uint(right)) => i128::from(*left).cmp(&i128::from(*right)),
        (Value::Uint(left), Value::Int(right)) => i128::from(*left).cmp(&i128::from(*right)),
        (Value::Double(left), Value::Double(right)) => compare_doubles(*left, *right)?,
        (Value::Double(left), Value::Int(right)) => compare_with_int(*left, *right)?,
        (Value::Int(left), Value::Double(right)) => compare_with_int(*right, *left)?.reverse(),
        (Value::Double(left), Value::Uint(right)) => compare_with_uint(*left, *right)?,
        (Value::Uint(left), Value::Double(right)) => compare_with_uint(*right, *left)?.reverse(),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::String(left), Value::String(right)) => left.as_str().cmp(right.as_str()),
        (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
        (Value::Duration(left), Value::Duration(right)) => left.cmp(right),
        (Value::Timestamp(left), Value::Timestamp(right)) => left.cmp(right),
        _ => return Err(EvalError::no_such_overload()),
    })
}

fn compare_doubles(left: f64, right: f64) -> Result<Ordering, EvalError> {
    left.partial_cmp(&right).ok_or_else(|| EvalError::new("NaN values cannot be ordered"))
}

fn compare_with_int(double: f64, int: i64) -> Result<Ordering, EvalError> {
    match () {
        () if double < i64::MIN as f64 => Ok(Ordering::Less),
        () if double > i64::MAX as f64 => Ok(Ordering::Greater),
        () => compare_doubles(double, int as f64),
    }
}

fn compare_with_uint(double: f64, uint: u64) -> Result<Ordering, EvalError> {
    match () {
        () if double < 0.0 => Ok(Ordering::Less),
        () if double > u64::MAX as f64 => Ok(Ordering::Greater),
        () => compare_doubles(double, uint as f64),
    }
}
