//! Access to the parts of values: fields, entries, items.

use super::error::EvalError;
use super::show::go_type;
use super::show::show;
use super::value::Value;

/// The value at `key` in `value`; `None` only if it `may_miss`, else a missing key is an error. An item of a list that does
/// not fit its schema is found all the same.
pub(super) fn qualify<'a>(value: &Value<'a>, key: &Value<'_>, may_miss: bool) -> Result<Option<Value<'a>>, EvalError> {
    match value {
        Value::Map(map) => match map.find(key)? {
            None if !may_miss => Err(no_such_key(key)),
            found => Ok(found),
        },
        Value::List(list) => {
            let index = index_of(key)?;
            match usize::try_from(index).ok().and_then(|index| list.get(index)) {
                Some(_) if list.is_host() && !matches!(key, Value::Int(_)) => {
                    Err(EvalError::new(format!("unsupported index: {}", show(key))))
                }
                Some(item) => Ok(Some(Value::kept(item))),
                None if may_miss => Ok(None),
                None => Err(EvalError::new(format!("index out of bounds: {}", show(key)))),
            }
        }
        Value::Struct(operation) if operation.is_json_patch() => operation.member(key, may_miss),
        Value::Unfit(error) => Err((**error).clone()),
        Value::Opaque(message) if message.is_message() => Err(EvalError::new(format!("no such field '{}'", show(key)))),
        _ if may_miss => Ok(None),
        _ => Err(no_such_key(key)),
    }
}

/// Checks that a computed value has a type that can be a key.
pub(super) fn check_key(key: &Value<'_>) -> Result<(), EvalError> {
    match key {
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => Ok(()),
        other => Err(EvalError::new(format!("invalid qualifier type: {}", go_type(other)))),
    }
}

pub(super) fn no_such_key(key: &Value<'_>) -> EvalError {
    EvalError::new(format!("no such key: {}", show(key)))
}

/// The index for a number of any type.
fn index_of(key: &Value<'_>) -> Result<i64, EvalError> {
    let unsupported = || EvalError::new(format!("unsupported index value {} in list", show(key)));
    match key {
        Value::Int(index) => Ok(*index),
        Value::Uint(index) => i64::try_from(*index).map_err(|_| unsupported()),
        Value::Double(number) => {
            let index = *number as i64;
            let lossless = index as f64 == *number && index != i64::MAX;
            if lossless { Ok(index) } else { Err(unsupported()) }
        }
        other => Err(EvalError::new(format!("unsupported index type '{}' in list", other.type_name()))),
    }
}
