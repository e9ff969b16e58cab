//! Messages of `google.protobuf` that become CEL values.

mod field;

use std::sync::Arc;

use super::error::EvalError;
use super::list::{SUM_ITEMS_MAX, too_many_items};
use super::map::Map;
use super::show::go_type;
use super::show::show;
use super::value::{Duration, Opaque, Timestamp, Value};
use crate::cel::types::EMPTY;
use crate::cel::types::Type;
use crate::work;

/// The largest integer that a double represents without ambiguity.
const SAFE_INT_MAX: i64 = (1 << 53) - 1;

/// `google.protobuf.Empty{}`
#[derive(Debug)]
struct Empty;

impl Opaque for Empty {
    fn ty(&self) -> Type {
        Type::object(EMPTY)
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        Some(other.is_message())
    }

    fn go_type(&self) -> &'static str {
        "*types.protoObj"
    }

    fn is_message(&self) -> bool {
        true
    }
}

/// The value of the message called `name`.
///
/// # Errors
/// A field does not fit its type or contains a value that JSON cannot represent, or no such message can be made.
pub(super) fn value<'a>(name: &str, fields: Vec<(&str, Value<'a>)>) -> Result<Value<'a>, EvalError> {
    let Some(name) = name.strip_prefix("google.protobuf.") else {
        return Err(EvalError::new(format!("unknown type '{name}'")));
    };
    let mut set = Vec::with_capacity(fields.len());
    for (place, value) in fields {
        set.push((place, field::value(name, place, value)?));
    }
    let find = |wanted: &str| set.iter().rev().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone());
    let int = |wanted: &str| find(wanted).and_then(|value| value.as_int()).unwrap_or_default();
    let unfit = |field: &str, why: &str| {
        EvalError::new(format!("field type conversion error for google.protobuf.{name}.{field} value type: {why}"))
    };
    let mut room = SUM_ITEMS_MAX;
    let nanos = || i32::try_from(int("nanos")).map_err(|_| unfit("nanos", "integer overflow"));
    Ok(match name {
        "BoolValue" => find("value").unwrap_or(Value::Bool(false)),
        "BytesValue" => find("value").unwrap_or_else(|| Value::bytes([])),
        "StringValue" => find("value").unwrap_or_else(|| Value::string("")),
        "Int64Value" => find("value").unwrap_or(Value::Int(0)),
        "UInt64Value" => find("value").unwrap_or(Value::Uint(0)),
        "DoubleValue" => find("value").unwrap_or(Value::Double(0.0)),
        "Int32Value" => match i32::try_from(int("value")) {
            Ok(number) => Value::Int(number.into()),
            Err(_) => return Err(unfit("value", "integer overflow")),
        },
        "UInt32Value" => match find("value") {
            Some(Value::Uint(number)) if number > u64::from(u32::MAX) => {
                return Err(unfit("value", "unsigned integer overflow"));
            }
            given => given.unwrap_or(Value::Uint(0)),
        },
        "FloatValue" => match find("value") {
            Some(Value::Double(number)) => Value::Double((number as f32).into()),
            given => given.unwrap_or(Value::Double(0.0)),
        },
        "Duration" => {
            let nanos = int("seconds").saturating_mul(1_000_000_000).saturating_add(nanos()?.into());
            Value::Duration(Duration(nanos))
        }
        "Timestamp" => {
            let nanos = i64::from(nanos()?);
            let seconds = int("seconds").saturating_add(nanos.div_euclid(1_000_000_000));
            let nanos = u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or_default();
            Value::Timestamp(Timestamp { seconds, nanos, offset_seconds: 0 })
        }
        "ListValue" => json(&find("values").unwrap_or_else(|| Value::list(Vec::new())), &mut room)?,
        "Struct" => json(&find("fields").unwrap_or_else(|| Value::Map(Map::owned([]))), &mut room)?,
        "Value" => match set.last() {
            None | Some(("null_value", _)) => Value::Null,
            Some((_, value)) => json(value, &mut room)?,
        },
        "Empty" => Value::opaque(Empty),
        _ => return Err(EvalError::new("unsupported conversion to ref.Val: (*dynamicpb.Message)")),
    })
}

/// Converts `value`, which may share its parts, into at most `room` values as if through JSON: numbers become doubles, or strings if a double would be ambiguous.
fn json<'a>(value: &Value<'a>, room: &mut usize) -> Result<Value<'a>, EvalError> {
    work::step();
    *room = room.checked_sub(1).ok_or_else(too_many_items)?;
    Ok(match value {
        Value::Null | Value::Bool(_) | Value::Double(_) | Value::String(_) => value.clone(),
        Value::Int(number) if number.unsigned_abs() <= SAFE_INT_MAX.unsigned_abs() => Value::Double(*number as f64),
        Value::Uint(number) if *number <= SAFE_INT_MAX.unsigned_abs() => Value::Double(*number as f64),
        Value::Int(_) | Value::Uint(_) => Value::string(show(value)),
        Value::List(list) => {
            let items: Result<Vec<Value<'a>>, EvalError> = list.iter().map(|item| json(&item?, room)).collect();
            Value::list(items?)
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, value) in map.entries() {
                entries.push((Value::string(show(&key)), json(&value?, room)?));
            }
            Value::Map(Map::owned(entries))
        }
        Value::Optional(Some(content)) => json(&Value::clone(Arc::as_ref(content)), room)?,
        Value::Opaque(message) if message.is_message() => Value::Map(Map::owned([])),
        other => {
            let ty = go_type(other);
            return Err(EvalError::new(format!("unsupported conversion from '{ty}' to google.protobuf.Value")));
        }
    })
}
