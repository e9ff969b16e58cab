//! Conversions: `int(…)`, `string(…)`, `type(…)` and the like, and `size(…)`.

use std::sync::Arc;

use super::arguments::{double, text, value};
use super::arithmetic::{INT_OVERFLOW, UINT_OVERFLOW};
use super::time;
use crate::cel::cost::Measure;
use crate::cel::eval::value::Duration;
use crate::cel::eval::{EvalError, Function, Value};
use crate::meta::duration;
use crate::value::number;

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "bool_to_bool"
        | "bytes_to_bytes"
        | "double_to_double"
        | "duration_to_duration"
        | "int64_to_int64"
        | "string_to_string"
        | "timestamp_to_timestamp"
        | "uint64_to_uint64"
        | "to_dyn" => |_, arguments| value(arguments, 0).cloned(),
        "type" => |_, arguments| Ok(Value::Type(Arc::new(value(arguments, 0)?.type_of()))),
        "double_to_int64" | "duration_to_int64" | "string_to_int64" | "timestamp_to_int64" | "uint64_to_int64" => {
            |_, arguments| to_int(value(arguments, 0)?)
        }
        "double_to_uint64" | "int64_to_uint64" | "string_to_uint64" => |_, arguments| to_uint(value(arguments, 0)?),
        "int64_to_double" | "string_to_double" | "uint64_to_double" => |_, arguments| to_double(value(arguments, 0)?),
        "bool_to_string"
        | "bytes_to_string"
        | "double_to_string"
        | "duration_to_string"
        | "int64_to_string"
        | "timestamp_to_string"
        | "uint64_to_string" => |_, arguments| to_text(value(arguments, 0)?).map(Value::string),
        "string_to_bool" => |_, arguments| {
            let text = text(arguments, 0)?;
            parse_bool(text).map(Value::Bool).ok_or_else(|| unreadable("bool"))
        },
        "string_to_bytes" => |_, arguments| Ok(Value::bytes(text(arguments, 0)?.as_bytes())),
        "string_to_duration" => |_, arguments| {
            let nanos = duration::parse(text(arguments, 0)?).ok_or_else(|| unreadable("google.protobuf.Duration"))?;
            Ok(Value::Duration(Duration(nanos)))
        },
        "string_to_timestamp" => |_, arguments| time::parse(text(arguments, 0)?).map(Value::Timestamp),
        "int64_to_timestamp" => |_, arguments| match value(arguments, 0)? {
            Value::Int(seconds) => time::from_unix(*seconds).map(Value::Timestamp),
            _ => Err(EvalError::no_such_overload()),
        },
        "size_bytes" | "bytes_size" | "size_list" | "list_size" | "size_map" | "map_size" | "size_string"
        | "string_size" => |_, arguments| match value(arguments, 0)? {
            sized @ (Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::String(_)) => {
                Ok(Value::Int(i64::try_from(sized.size()).unwrap_or(i64::MAX)))
            }
            _ => Err(EvalError::no_such_overload()),
        },
        _ => return None,
    })
}

/// A text that can't be read as a value of the type `to`.
pub fn unreadable(to: &str) -> EvalError {
    EvalError::new(format!("type conversion error from 'string' to '{to}'"))
}

fn to_int<'a>(value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    // The bounds are 2^63, which no integer reaches; the lower one is refused although it would fit.
    let bound = -(i64::MIN as f64);
    match value {
        Value::Double(number) if *number > -bound && *number < bound => Ok(Value::Int(*number as i64)),
        Value::Double(_) => Err(INT_OVERFLOW),
        Value::Uint(number) => i64::try_from(*number).map(Value::Int).map_err(|_| INT_OVERFLOW),
        Value::Duration(length) => Ok(Value::Int(length.0)),
        Value::Timestamp(timestamp) => Ok(Value::Int(timestamp.seconds)),
        Value::String(text) => text.parse().map(Value::Int).map_err(|_| unreadable("int")),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn to_uint<'a>(value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    const BOUND: f64 = 18_446_744_073_709_551_616.0;
    match value {
        Value::Double(number) if *number >= 0.0 && *number < BOUND => Ok(Value::Uint(*number as u64)),
        Value::Double(_) => Err(UINT_OVERFLOW),
        Value::Int(number) => u64::try_from(*number).map(Value::Uint).map_err(|_| UINT_OVERFLOW),
        Value::String(text) => {
            let unsigned = text.strip_prefix('+').is_none().then(|| text.parse().ok()).flatten();
            unsigned.map(Value::Uint).ok_or_else(|| unreadable("uint"))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn to_double<'a>(value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match value {
        Value::Int(number) => Ok(Value::Double(*number as f64)),
        Value::Uint(number) => Ok(Value::Double(*number as f64)),
        Value::String(text) => number::parse_float(text).map(Value::Double).ok_or_else(|| unreadable("double")),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// `string(value)` of what the standard converts.
///
/// # Errors
/// If bytes are no UTF-8, or the type has no text.
pub fn to_text(value: &Value<'_>) -> Result<String, EvalError> {
    Ok(match value {
        Value::String(text) => text.as_str().to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => double(*number),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(EvalError::new("invalid UTF-8 in bytes, cannot convert to string")),
        },
        Value::Duration(length) => time::duration_text(*length),
        Value::Timestamp(timestamp) => time::timestamp_text(*timestamp),
        Value::Type(_) => value_of_type(value),
        _ => return Err(EvalError::no_such_overload()),
    })
}

fn value_of_type(value: &Value<'_>) -> String {
    match value {
        Value::Type(ty) => crate::cel::eval::value::type_name(ty),
        other => other.type_name(),
    }
}

/// As Go's `strconv.ParseBool`.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
