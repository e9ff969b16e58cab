//! Type conversions: `int(…)`, `string(…)`, `type(…)` and the like.

use std::sync::Arc;

use super::arguments::{INT_OVERFLOW, UINT_OVERFLOW, double, text, unreadable, value};
use super::time;
use crate::cel::calendar::{duration_text, timestamp_text};
use crate::cel::cost::{Cost, Estimate, Range, actual, model};
use crate::cel::eval::value::Duration;
use crate::cel::eval::{CallScope, EvalError, Value};
use crate::cel::function::{Calling, Function, Overload};
use crate::cel::types::Type::{self, Bool, Bytes, Double, Dyn, Int, Timestamp, Uint};
use crate::meta::duration;
use crate::value::number;

/// A text is encoded, as up to four bytes per character.
const ENCODE: Cost = Cost::of_overload(
    |sizes| {
        let size = sizes.size(0);
        // The product wraps around, as it does in the reference.
        Estimate::of(size.scale(model::TRAVERSAL)).with_result(Range::new(size.min, size.max.wrapping_mul(4)))
    },
    |called| actual::scale(called.size(0), model::TRAVERSAL),
);

/// Bytes are decoded: at most one character per byte, at least one per four bytes.
const DECODE: Cost = Cost::of_overload(
    |sizes| {
        let size = sizes.size(0);
        Estimate::of(size.scale(model::TRAVERSAL)).with_result(Range::new(size.min / 4, size.max))
    },
    |called| actual::scale(called.size(0), model::TRAVERSAL),
);

/// The value keeps its size and its contents.
const KEEP: Cost = Cost::of_overload(
    |sizes| Estimate { result: sizes.known_size(0), entry: sizes.entry(0), ..Estimate::ONE },
    |_| model::CALL,
);

pub(super) fn functions() -> Vec<Function> {
    let a = || Type::param("A");
    let single = Calling { is_single: true, is_folded: true, ..Calling::USUAL };
    vec![
        Function::new(
            "type",
            [Overload::global("type", [a()], Type::type_of(a()), Cost::One, |_, arguments| {
                Ok(Value::Type(Arc::new(value(arguments, 0)?.type_of())))
            })],
        )
        .calling(single),
        Function::new("dyn", [Overload::global("to_dyn", [a()], Dyn, KEEP, same).before(33, Cost::One)])
            .calling(single),
        conversion(
            "bool",
            [
                Overload::global("bool_to_bool", [Bool], Bool, Cost::One, same),
                Overload::global("string_to_bool", [Type::String], Bool, Cost::One, |_, arguments| {
                    let text = text(arguments, 0)?;
                    parse_bool(text).map(Value::Bool).ok_or_else(|| unreadable("bool"))
                }),
            ],
        ),
        conversion(
            "bytes",
            [
                Overload::global("bytes_to_bytes", [Bytes], Bytes, Cost::One, same),
                Overload::global("string_to_bytes", [Type::String], Bytes, ENCODE, |_, arguments| {
                    Ok(Value::bytes(text(arguments, 0)?.as_bytes()))
                }),
            ],
        ),
        conversion(
            "double",
            [
                Overload::global("double_to_double", [Double], Double, Cost::One, same),
                Overload::global("int64_to_double", [Int], Double, Cost::One, double_of),
                Overload::global("string_to_double", [Type::String], Double, Cost::One, double_of),
                Overload::global("uint64_to_double", [Uint], Double, Cost::One, double_of),
            ],
        ),
        conversion(
            "duration",
            [
                Overload::global("duration_to_duration", [Type::Duration], Type::Duration, Cost::One, same),
                Overload::global("string_to_duration", [Type::String], Type::Duration, Cost::One, |_, arguments| {
                    let nanos = duration::parse(text(arguments, 0)?);
                    let nanos = nanos.ok_or_else(|| unreadable("google.protobuf.Duration"))?;
                    Ok(Value::Duration(Duration(nanos)))
                }),
                // The reference declared it before 1.37, but did not implement it.
                Overload::global("int64_to_duration", [Int], Type::Duration, Cost::One, |_, _| {
                    Err(EvalError::new("type conversion error from 'int' to 'google.protobuf.Duration'"))
                })
                .until(37),
            ],
        ),
        conversion(
            "int",
            [
                Overload::global("int64_to_int64", [Int], Int, Cost::One, same),
                Overload::global("double_to_int64", [Double], Int, Cost::One, int_of),
                Overload::global("duration_to_int64", [Type::Duration], Int, Cost::One, int_of),
                Overload::global("string_to_int64", [Type::String], Int, Cost::One, int_of),
                Overload::global("timestamp_to_int64", [Timestamp], Int, Cost::One, int_of),
                Overload::global("uint64_to_int64", [Uint], Int, Cost::One, int_of),
            ],
        ),
        conversion(
            "string",
            [
                Overload::global("string_to_string", [Type::String], Type::String, Cost::One, same)
                    .making(|sizes| sizes.size(0)),
                Overload::global("bool_to_string", [Bool], Type::String, Cost::One, string_of)
                    .making(|_| Range::new(4, 5)),
                Overload::global("bytes_to_string", [Bytes], Type::String, DECODE, string_of),
                // `-1.7976931348623157e+308`
                Overload::global("double_to_string", [Double], Type::String, Cost::One, string_of)
                    .making(|_| Range::new(1, 24)),
                // `-9223372036.854775808s`
                Overload::global("duration_to_string", [Type::Duration], Type::String, Cost::One, string_of)
                    .making(|_| Range::new(2, 22)),
                Overload::global("int64_to_string", [Int], Type::String, Cost::One, string_of)
                    .making(|_| Range::new(1, 20)),
                // `2026-01-02T03:04:05.123456789+01:00`
                Overload::global("timestamp_to_string", [Timestamp], Type::String, Cost::One, string_of)
                    .making(|_| Range::new(20, 35)),
                Overload::global("uint64_to_string", [Uint], Type::String, Cost::One, string_of)
                    .making(|_| Range::new(1, 20)),
            ],
        ),
        conversion(
            "timestamp",
            [
                Overload::global("timestamp_to_timestamp", [Timestamp], Timestamp, Cost::One, same),
                Overload::global("int64_to_timestamp", [Int], Timestamp, Cost::One, |_, arguments| {
                    match value(arguments, 0)? {
                        Value::Int(seconds) => time::from_unix(*seconds).map(Value::Timestamp),
                        _ => Err(EvalError::no_such_overload()),
                    }
                }),
                Overload::global("string_to_timestamp", [Type::String], Timestamp, Cost::One, |_, arguments| {
                    time::parse(text(arguments, 0)?).map(Value::Timestamp)
                }),
            ],
        ),
        conversion(
            "uint",
            [
                Overload::global("uint64_to_uint64", [Uint], Uint, Cost::One, same),
                Overload::global("double_to_uint64", [Double], Uint, Cost::One, uint_of),
                Overload::global("int64_to_uint64", [Int], Uint, Cost::One, uint_of),
                Overload::global("string_to_uint64", [Type::String], Uint, Cost::One, uint_of),
            ],
        ),
    ]
}

fn conversion<const N: usize>(name: &'static str, overloads: [Overload; N]) -> Function {
    Function::new(name, overloads).calling(Calling { is_folded: true, ..Calling::USUAL })
}

fn same<'a>(_: &mut CallScope<'_>, arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    value(arguments, 0).cloned()
}

fn int_of<'a>(_: &mut CallScope<'_>, arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    to_int(value(arguments, 0)?)
}

fn uint_of<'a>(_: &mut CallScope<'_>, arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    to_uint(value(arguments, 0)?)
}

fn double_of<'a>(_: &mut CallScope<'_>, arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    to_double(value(arguments, 0)?)
}

fn string_of<'a>(_: &mut CallScope<'_>, arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    to_text(value(arguments, 0)?).map(Value::string)
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

/// Computes `string(value)` for the types that the CEL standard converts.
///
/// # Errors
/// The bytes are not UTF-8, or the type has no text form.
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
        Value::Duration(length) => duration_text(*length),
        Value::Timestamp(timestamp) => timestamp_text(*timestamp),
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

/// Parses a boolean as Go's `strconv.ParseBool` does.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
