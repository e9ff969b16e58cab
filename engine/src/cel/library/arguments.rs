//! Reads the arguments of functions as the types that the functions take.

use crate::cel::eval::list::List;
use crate::cel::eval::map::Map;
use crate::cel::eval::value::{Duration, Opaque, TextValue, Timestamp};
use crate::cel::eval::{EvalError, Value};

pub const INT_OVERFLOW: EvalError = EvalError::Failed(std::borrow::Cow::Borrowed("integer overflow"));
pub const UINT_OVERFLOW: EvalError = EvalError::Failed(std::borrow::Cow::Borrowed("unsigned integer overflow"));

/// The error for a text that cannot be read as a value of the type `to`.
pub fn unreadable(to: &str) -> EvalError {
    EvalError::new(format!("type conversion error from 'string' to '{to}'"))
}
use crate::value::number::format_float_v;
use crate::work;

/// The argument at `at`.
///
/// # Errors
///
/// There are not enough arguments.
pub fn value<'v, 'a>(arguments: &'v [Value<'a>], at: usize) -> Result<&'v Value<'a>, EvalError> {
    arguments.get(at).ok_or_else(EvalError::no_such_overload)
}

pub fn int(arguments: &[Value<'_>], at: usize) -> Result<i64, EvalError> {
    value(arguments, at)?.as_int().ok_or_else(EvalError::no_such_overload)
}

pub fn boolean(arguments: &[Value<'_>], at: usize) -> Result<bool, EvalError> {
    value(arguments, at)?.as_bool().ok_or_else(EvalError::no_such_overload)
}

pub fn text<'v, 'a>(arguments: &'v [Value<'a>], at: usize) -> Result<&'v TextValue<'a>, EvalError> {
    match value(arguments, at)? {
        Value::String(text) => {
            work::bytes(text.len());
            Ok(text)
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

pub fn list<'v, 'a>(arguments: &'v [Value<'a>], at: usize) -> Result<&'v List<'a>, EvalError> {
    let list = value(arguments, at)?.as_list().ok_or_else(EvalError::no_such_overload)?;
    work::steps(list.len());
    Ok(list)
}

pub fn map<'v, 'a>(arguments: &'v [Value<'a>], at: usize) -> Result<&'v Map<'a>, EvalError> {
    value(arguments, at)?.as_map().ok_or_else(EvalError::no_such_overload)
}

pub fn duration(arguments: &[Value<'_>], at: usize) -> Result<Duration, EvalError> {
    match value(arguments, at)? {
        Value::Duration(duration) => Ok(*duration),
        _ => Err(EvalError::no_such_overload()),
    }
}

pub fn timestamp(arguments: &[Value<'_>], at: usize) -> Result<Timestamp, EvalError> {
    match value(arguments, at)? {
        Value::Timestamp(timestamp) => Ok(*timestamp),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// The argument at `at` as a value of a library's own type.
///
/// # Errors
///
/// There are not enough arguments, or it is a value of another type.
pub fn opaque<'v, T: Opaque>(arguments: &'v [Value<'_>], at: usize) -> Result<&'v T, EvalError> {
    value(arguments, at)?.as_opaque().ok_or_else(EvalError::no_such_overload)
}

/// A part of a text: borrowed if the text belongs to the host, else a copy.
pub fn part_of<'a>(text: &TextValue<'a>, range: std::ops::Range<usize>) -> Value<'a> {
    match text {
        TextValue::Borrowed(text) => text.get(range).map_or_else(|| Value::string(""), Value::borrowed),
        TextValue::Shared(text) => Value::string(text.get(range).unwrap_or_default()),
    }
}

/// The byte range of `part` in `text`; `part` must be a slice of `text`.
pub fn range_in(text: &str, part: &str) -> std::ops::Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// Makes a list of strings.
pub fn texts<'a>(texts: impl IntoIterator<Item = String>) -> Value<'a> {
    Value::texts(texts.into_iter().map(Value::string).collect())
}

/// Formats a double as Go's `%g` does.
pub fn double(number: f64) -> String {
    match number {
        _ if number.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => format_float_v(number),
    }
}
