//! Optional values.

use super::arguments::{list, value};
use crate::cel::eval::list::List;
use crate::cel::eval::map::Map;
use crate::cel::eval::show::show;
use crate::cel::eval::value::Timestamp;
use crate::cel::eval::{EvalError, Function, Value};

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "optional_of" => |_, arguments| Ok(Value::optional_of(value(arguments, 0)?.clone())),
        "optional_ofNonZeroValue" => |_, arguments| {
            let value = value(arguments, 0)?;
            Ok(if is_zero(value) { Value::OPTIONAL_NONE } else { Value::optional_of(value.clone()) })
        },
        "optional_none" => |_, _| Ok(Value::OPTIONAL_NONE),
        "optional_value" => |_, arguments| match value(arguments, 0)? {
            Value::Optional(Some(value)) => Ok(Value::clone(value)),
            Value::Optional(None) => Err(EvalError::new("optional.none() dereference")),
            _ => Err(EvalError::no_such_overload()),
        },
        "optional_hasValue" => |_, arguments| match value(arguments, 0)? {
            Value::Optional(optional) => Ok(Value::Bool(optional.is_some())),
            _ => Err(EvalError::no_such_overload()),
        },
        "optional_unwrap" | "optional_unwrapOpt" => |_, arguments| {
            let mut values = Vec::new();
            for item in list(arguments, 0)?.iter() {
                match item? {
                    Value::Optional(optional) => values.extend(optional.map(|value| Value::clone(&value))),
                    other => return Err(EvalError::new(format!("value {} is not optional", show(&other)))),
                }
            }
            Ok(Value::list(values))
        },
        _ => return None,
    })
}

/// Whether a value is its type's nothing. Lists and maps of the host never are.
fn is_zero(value: &Value<'_>) -> bool {
    /// The start of the year 1.
    const NO_TIME: Timestamp = Timestamp { seconds: -62_135_596_800, nanos: 0, offset_seconds: 0 };
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Int(number) => *number == 0,
        Value::Uint(number) => *number == 0,
        Value::Double(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Duration(length) => length.0 == 0,
        Value::Timestamp(timestamp) => *timestamp == NO_TIME,
        Value::List(List::Host { .. }) | Value::Map(Map::Host { .. }) => false,
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Struct(value) => !value.is_json_patch() && value.is_empty(),
        Value::Opaque(value) => value.is_message(),
        Value::Type(_) | Value::Optional(_) | Value::Preserved(_) => false,
    }
}
