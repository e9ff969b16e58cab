//! `+`, `-`, `*`, `/`, `%`, negation.

use super::arguments::value;
use super::time;
use crate::cel::eval::value::Duration;
use crate::cel::eval::{EvalError, Function, Value};

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "add_int64"
        | "add_uint64"
        | "add_double"
        | "add_string"
        | "add_bytes"
        | "add_list"
        | "add_duration_duration"
        | "add_duration_timestamp"
        | "add_timestamp_duration" => |_, arguments| add(value(arguments, 0)?, value(arguments, 1)?),
        "subtract_int64"
        | "subtract_uint64"
        | "subtract_double"
        | "subtract_duration_duration"
        | "subtract_timestamp_duration"
        | "subtract_timestamp_timestamp" => |_, arguments| subtract(value(arguments, 0)?, value(arguments, 1)?),
        "multiply_int64" | "multiply_uint64" | "multiply_double" => {
            |_, arguments| multiply(value(arguments, 0)?, value(arguments, 1)?)
        }
        "divide_int64" | "divide_uint64" | "divide_double" => {
            |_, arguments| divide(value(arguments, 0)?, value(arguments, 1)?)
        }
        "modulo_int64" | "modulo_uint64" => |_, arguments| modulo(value(arguments, 0)?, value(arguments, 1)?),
        "negate_int64" | "negate_double" => |_, arguments| negate(value(arguments, 0)?),
        "logical_not" => |_, arguments| match value(arguments, 0)? {
            Value::Bool(truth) => Ok(Value::Bool(!truth)),
            _ => Err(EvalError::no_such_overload()),
        },
        _ => return None,
    })
}

pub const INT_OVERFLOW: EvalError = EvalError::Failed(std::borrow::Cow::Borrowed("integer overflow"));
pub const UINT_OVERFLOW: EvalError = EvalError::Failed(std::borrow::Cow::Borrowed("unsigned integer overflow"));

fn int<'a>(number: Option<i64>) -> Result<Value<'a>, EvalError> {
    number.map(Value::Int).ok_or(INT_OVERFLOW)
}

fn uint<'a>(number: Option<u64>) -> Result<Value<'a>, EvalError> {
    number.map(Value::Uint).ok_or(UINT_OVERFLOW)
}

fn duration<'a>(nanos: Option<i64>) -> Result<Value<'a>, EvalError> {
    nanos.map(|nanos| Value::Duration(Duration(nanos))).ok_or(INT_OVERFLOW)
}

/// `left + right`.
///
/// # Errors
/// If the sum does not fit its type, or the values can't be added.
pub fn add<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_add(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_add(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
        (Value::String(left), Value::String(right)) => Ok(Value::string([left.as_str(), right.as_str()].concat())),
        (Value::Bytes(left), Value::Bytes(right)) => Ok(Value::bytes([left.as_ref(), right.as_ref()].concat())),
        (Value::List(left), Value::List(right)) => left.clone().concat(right).map(Value::List),
        (Value::Duration(left), Value::Duration(right)) => duration(left.0.checked_add(right.0)),
        (Value::Duration(length), Value::Timestamp(start)) | (Value::Timestamp(start), Value::Duration(length)) => {
            time::later(*start, *length).map(Value::Timestamp)
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn subtract<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_sub(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_sub(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left - right)),
        (Value::Duration(left), Value::Duration(right)) => duration(left.0.checked_sub(right.0)),
        (Value::Timestamp(end), Value::Duration(length)) => {
            let back = length.0.checked_neg().ok_or(INT_OVERFLOW)?;
            time::later(*end, Duration(back)).map(Value::Timestamp)
        }
        (Value::Timestamp(end), Value::Timestamp(start)) => time::between(*start, *end).map(Value::Duration),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn multiply<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_mul(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_mul(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left * right)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn divide<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(EvalError::new("division by zero")),
        (Value::Int(left), Value::Int(right)) => int(left.checked_div(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_div(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left / right)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn modulo<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(EvalError::new("modulus by zero")),
        (Value::Int(left), Value::Int(right)) => int(left.checked_rem(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_rem(*right)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn negate<'a>(number: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match number {
        Value::Int(number) => int(number.checked_neg()),
        Value::Double(number) => Ok(Value::Double(-number)),
        Value::Duration(length) => duration(length.0.checked_neg()),
        _ => Err(EvalError::no_such_overload()),
    }
}
