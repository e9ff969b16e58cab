//! JSON patches: `[JSONPatch{…}, …]`, applied to the object's JSON.

use super::apply_configuration::check_names;
use super::error::{JsonValueError, MutationError};
use super::native;
use crate::cel::eval::show::show;
use crate::cel::eval::structure::Struct;
use crate::cel::eval::{EvalError, Value as Cel};
use crate::cel::library::{duration_text, timestamp_text};
use crate::patch::PatchError;
use crate::patch::json_patch::Patch;
use crate::value::json::Layout;
use crate::value::{Map, Value, base64, go_quote, json};
use crate::work;

/// The largest integer that a double represents without ambiguity.
const SAFE_INT_MAX: u64 = (1 << 53) - 1;

/// Applies the operations of `patch` to `object`. Returns `None` if one of them is a test that fails: the object is
/// then unchanged. `layout` is that of the object.
///
/// # Errors
/// The patch is malformed or does not apply; the message is Kubernetes'.
pub fn apply(patch: &Cel<'_>, object: &Value, layout: Layout) -> Result<Option<Value>, MutationError> {
    let Cel::List(operations) = patch else {
        return Err(MutationError::NotList);
    };
    let mut text = "[".to_owned();
    for operation in operations.iter() {
        let operation = operation?;
        let Cel::Struct(operation) = &operation else {
            return Err(MutationError::NotOperations);
        };
        if text.len() > 1 {
            text.push(',');
        }
        write_operation(&mut text, operation)?;
    }
    text.push(']');
    let (patch, _) = Patch::decode(text.as_bytes(), false)?;
    let patched = match patch.apply(object, layout) {
        Ok(patched) => patched,
        Err(PatchError::Test(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(Some(json::decode(patched.as_bytes())?))
}

/// Writes an operation as JSON. Go quotes its strings as in source code, which is not always valid JSON: such a string
/// counts as absent.
fn write_operation(text: &mut String, operation: &Struct<'_>) -> Result<(), MutationError> {
    let mut separator = '{';
    let mut write = |name: &str, value: &str| {
        text.push(separator);
        text.push_str(&format!("\"{name}\":{value}"));
        separator = ',';
    };
    for name in ["op", "path", "from"] {
        let given = operation.field(name).and_then(Cel::as_str).unwrap_or_default();
        let quoted = go_quote(given);
        let is_json = json::decode(quoted.as_bytes()).is_ok_and(|read| read.as_str() == Some(given));
        if is_json && (name != "from" || !given.is_empty()) {
            write(name, &quoted);
        }
    }
    if let Some(value) = operation.field("value") {
        if let Cel::Struct(part) = value
            && !part.is_json_patch()
        {
            check_names(value, part.name())?;
        }
        let json = json_of(value)?;
        write("value", &json::encode_to_string(&json));
    }
    if separator == '{' {
        text.push('{');
    }
    text.push('}');
    Ok(())
}

/// Converts `value` to JSON through `google.protobuf.Value`, in which numbers are doubles.
fn json_of(value: &Cel<'_>) -> Result<Value, JsonValueError> {
    work::step();
    let no_conversion = |name: &str| Err(JsonValueError::NoConversion(name.to_owned()));
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(truth) => Value::Bool(*truth),
        Cel::Int(number) if number.unsigned_abs() <= SAFE_INT_MAX => Value::Int(*number),
        Cel::Uint(number) if *number <= SAFE_INT_MAX => Value::Int(number.cast_signed()),
        Cel::Int(_) | Cel::Uint(_) => Value::String(show(value)),
        Cel::Double(number) => number_of(*number)?,
        Cel::String(text) => Value::String(text.as_str().to_owned()),
        Cel::Bytes(bytes) => Value::String(base64::encode(bytes)),
        Cel::Duration(length) => Value::String(duration_text(*length)),
        Cel::Timestamp(timestamp) => Value::String(timestamp_text(*timestamp)),
        Cel::Optional(Some(content)) => json_of(content)?,
        Cel::Optional(None) => return Err(JsonValueError::NoneDereferenced),
        Cel::List(list) => {
            let item = |item: Result<Cel<'_>, EvalError>| json_of(&item?);
            Value::Array(list.iter().map(item).collect::<Result<_, _>>()?)
        }
        Cel::Map(map) => {
            let mut fields = Map::new();
            for (key, value) in map.entries() {
                let name = key_of(&key)?;
                fields.insert(name, json_of(&value?)?);
            }
            Value::Object(fields)
        }
        Cel::Struct(part) if !part.is_json_patch() => of_part(part)?,
        Cel::Struct(_) => return Err(JsonValueError::NotNative),
        Cel::Type(_) => return Err(JsonValueError::Type),
        Cel::Opaque(format) if format.format_regex_size().is_some() => return no_conversion("Format"),
        Cel::Opaque(_) | Cel::Preserved(_) | Cel::Unfit(_) => {
            let name = value.type_name();
            return no_conversion(name.rsplit('.').next().unwrap_or(&name));
        }
    })
}

/// Makes the JSON number for a double.
fn number_of(number: f64) -> Result<Value, JsonValueError> {
    let invalid = |shown| Err(JsonValueError::Number(shown));
    match number {
        _ if number.is_nan() => invalid("NaN"),
        f64::INFINITY => invalid("+Inf"),
        f64::NEG_INFINITY => invalid("-Inf"),
        // Without a fraction it is decoded as an integer.
        _ if number.fract() == 0.0 && number.abs() < 9e18 => Ok(Value::Int(number as i64)),
        _ => Ok(Value::Float(number)),
    }
}

/// The key of a map: a string, or a value that converts to one.
fn key_of(key: &Cel<'_>) -> Result<String, JsonValueError> {
    let cannot = |from: &str| Err(JsonValueError::Key(from.to_owned()));
    match key {
        Cel::String(text) => Ok(text.as_str().to_owned()),
        Cel::Int(_) => Err(JsonValueError::IntegerKey("int")),
        Cel::Uint(_) => Err(JsonValueError::IntegerKey("uint")),
        Cel::Bool(_) => cannot("bool"),
        Cel::Double(_) => cannot("Double"),
        other => cannot(&format!("'{}'", other.type_name())),
    }
}

/// Converts a part of an object. Numbers become doubles even if that changes them.
fn of_part(part: &Struct<'_>) -> Result<Value, JsonValueError> {
    let mut native = native::of_struct(part, |value| match value {
        Cel::Uint(number) => Some(Value::Float(*number as f64)),
        Cel::Bytes(bytes) => Some(Value::String(base64::encode(bytes))),
        _ => None,
    })?;
    if let Some(foreign) = native.foreign.first() {
        return Err(JsonValueError::Foreign(foreign.go_type.clone()));
    }
    round(&mut native.object)?;
    Ok(native.object)
}

/// Rounds all numbers to doubles.
fn round(value: &mut Value) -> Result<(), JsonValueError> {
    work::step();
    match value {
        Value::Int(number) => *value = number_of(*number as f64)?,
        Value::Float(number) => *value = number_of(*number)?,
        Value::Array(items) => items.iter_mut().try_for_each(round)?,
        Value::Object(fields) => {
            for (_, value) in fields.iter_mut() {
                round(value)?;
            }
        }
        _ => {}
    }
    Ok(())
}
