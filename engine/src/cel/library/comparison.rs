//! The order of values: `<`, `<=`, `>`, `>=`.

use std::cmp::Ordering;

use super::arguments::value;
use crate::cel::ast::operators;
use crate::cel::cost::Cost;
use crate::cel::cost::formula::COMPARE;
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Calling, Function, Overload, Trait};
use crate::cel::types::Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};

/// Declares one comparison: for all types with an order, and between all types of numbers.
macro_rules! comparison {
    ($function:expr, $name:literal, $holds:ident) => {
        Function::new(
            $function,
            [
                comparison!($name, "_bool", Bool, Bool, Cost::One, $holds),
                comparison!($name, "_int64", Int, Int, Cost::One, $holds),
                comparison!($name, "_int64_double", Int, Double, Cost::One, $holds),
                comparison!($name, "_int64_uint64", Int, Uint, Cost::One, $holds),
                comparison!($name, "_uint64", Uint, Uint, Cost::One, $holds),
                comparison!($name, "_uint64_double", Uint, Double, Cost::One, $holds),
                comparison!($name, "_uint64_int64", Uint, Int, Cost::One, $holds),
                comparison!($name, "_double", Double, Double, Cost::One, $holds),
                comparison!($name, "_double_int64", Double, Int, Cost::One, $holds),
                comparison!($name, "_double_uint64", Double, Uint, Cost::One, $holds),
                comparison!($name, "_string", String, String, COMPARE, $holds),
                comparison!($name, "_bytes", Bytes, Bytes, COMPARE, $holds),
                comparison!($name, "_timestamp", Timestamp, Timestamp, Cost::One, $holds),
                comparison!($name, "_duration", Duration, Duration, Cost::One, $holds),
            ],
        )
        .calling(Calling::by_trait(Trait::Comparer))
    };
    ($name:literal, $types:literal, $left:expr, $right:expr, $cost:expr, $holds:ident) => {
        Overload::global(concat!($name, $types), [$left, $right], Bool, $cost, |_, arguments| {
            order(arguments).map(|order| Value::Bool(order.$holds()))
        })
    };
}

pub(super) fn functions() -> Vec<Function> {
    vec![
        comparison!(operators::LESS, "less", is_lt),
        comparison!(operators::LESS_EQUALS, "less_equals", is_le),
        comparison!(operators::GREATER, "greater", is_gt),
        comparison!(operators::GREATER_EQUALS, "greater_equals", is_ge),
    ]
}

fn order(arguments: &[Value<'_>]) -> Result<Ordering, EvalError> {
    compare(value(arguments, 0)?, value(arguments, 1)?)
}

/// Whether values of this type have an order.
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

/// Compares two values. Numbers of different types are compared by value; an integer is converted to a double before it
/// is compared with one.
///
/// # Errors
/// One value is NaN, or the types differ or have no order.
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
    if double < i64::MIN as f64 {
        Ok(Ordering::Less)
    } else if double > i64::MAX as f64 {
        Ok(Ordering::Greater)
    } else {
        compare_doubles(double, int as f64)
    }
}

fn compare_with_uint(double: f64, uint: u64) -> Result<Ordering, EvalError> {
    if double < 0.0 {
        Ok(Ordering::Less)
    } else if double > u64::MAX as f64 {
        Ok(Ordering::Greater)
    } else {
        compare_doubles(double, uint as f64)
    }
}
