//! JSON patches: `[JSONPatch{…}, …]`, applied to the object's JSON.

use super::apply_configuration::check_names;
use super::native;
use crate::cel::eval::Value as Cel;
use crate::cel::eval::show::show;
use crate::cel::eval::structure::Struct;
use crate::cel::library::{duration_text, timestamp_text};
use crate::patch::PatchError;
use crate::patch::json_patch::Patch;
use crate::value::json::Layout;
use crate::value::{Map, Value, base64, go_quote, json};
use crate::work;

/// The largest integer that readers of doubles can tell from its neighbours.
const SAFE_INT_MAX: u64 = (1 << 53) - 1;

/// `object` after the operations of `patch`; `None` where one of them is a test that fails: the object then stays as it is.
/// `layout` is that of the object.
///
/// # Errors
/// If there is no such patch, or it does not apply, in the words of Kubernetes.
pub fn apply(patch: &Cel<'_>, object: &Value, layout: Layout) -> Result<Option<Value>, String> {
    let Cel::List(operations) = patch else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let mut text = "[".to_owned();
    for operation in operations.iter() {
        let operation = operation.map_err(|error| error.to_string())?;
        let Cel::Struct(operation) = &operation else {
            return Err("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch".to_owned());
        };
        if text.len() > 1 {
            text.push(',');
        }
        write_operation(&mut text, operation)?;
    }
    text.push(']');
    let failed = |error: PatchError| format!("JSON Patch: {error}");
    let (patch, _) = Patch::decode(text.as_bytes(), false).map_err(failed)?;
    let patched = match patch.apply(object, layout) {
        Ok(patched) => patched,
        Err(PatchError::Test(_)) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    json::decode(patched.as_bytes()).map(Some).map_err(|error| error.to_string())
}

/// Writes an operation as JSON. Go quotes its texts as in a program, which is not always JSON: such a text is as if it were
/// not there.
fn write_operation(text: &mut String, operation: &Struct<'_>) -> Result<(), String> {
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
        let json = json_of(value).map_err(|why| {
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}")
        })?;
        write("value", &json::encode_to_string(&json));
    }
    if separator == '{' {
        text.push('{');
    }
    text.push('}');
    Ok(())
}

/// `value` as JSON, by way of `google.protobuf.Value`, where numbers are doubles.
fn json_of(value: &Cel<'_>) -> Result<Value, String> {
    work::step();
    let no_conversion = |name: &str| Err(format!("type conversion error from '{name}' to '*structpb.Value'"));
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
        Cel::Optional(None) => return Err("optional.none() dereference".to_owned()),
        Cel::List(list) => {
            let item = |item: Result<Cel<'_>, _>| {
                item.map_err(|error: crate::cel::eval::EvalError| error.to_string()).and_then(|item| json_of(&item))
            };
            Value::Array(list.iter().map(item).collect::<Result<_, _>>()?)
        }
        Cel::Map(map) => {
            let mut fields = Map::new();
            for (key, value) in map.entries() {
                let name = key_of(&key)?;
                let value = value.map_err(|error| error.to_string())?;
                fields.insert(name, json_of(&value)?);
            }
            Value::Object(fields)
        }
        Cel::Struct(part) if !part.is_json_patch() => of_part(part)?,
        Cel::Struct(_) => return Err("cannot convert to native type: *structpb.Value".to_owned()),
        Cel::Type(_) => return Err("type conversion not supported for 'type'".to_owned()),
        Cel::Opaque(format) if format.format_regex_size().is_some() => return no_conversion("Format"),
        Cel::Opaque(_) | Cel::Preserved(_) => {
            let name = value.type_name();
            return no_conversion(name.rsplit('.').next().unwrap_or(&name));
        }
    })
}

/// A number as JSON has it that is written from a double.
fn number_of(number: f64) -> Result<Value, String> {
    let invalid = |shown: &str| {
        let what = "proto:\u{a0}google.protobuf.Value.number_value";
        Err(format!("json: error calling MarshalJSON for type *structpb.Value: {what}: invalid {shown} value"))
    };
    match number {
        _ if number.is_nan() => invalid("NaN"),
        f64::INFINITY => invalid("+Inf"),
        f64::NEG_INFINITY => invalid("-Inf"),
        // Without a fraction it reads as an integer.
        _ if number.fract() == 0.0 && number.abs() < 9e18 => Ok(Value::Int(number as i64)),
        _ => Ok(Value::Float(number)),
    }
}

/// The key of a map: a text, or what reads as one.
fn key_of(key: &Cel<'_>) -> Result<String, String> {
    let cannot = |from: &str| Err(format!("type conversion error from {from} to 'string'"));
    match key {
        Cel::String(text) => Ok(text.as_str().to_owned()),
        Cel::Int(_) => Err("unsupported type conversion from 'int' to string".to_owned()),
        Cel::Uint(_) => Err("unsupported type conversion from 'uint' to string".to_owned()),
        Cel::Bool(_) => cannot("bool"),
        Cel::Double(_) => cannot("Double"),
        other => cannot(&format!("'{}'", other.type_name())),
    }
}

/// A part of an object. Numbers become doubles whatever that changes.
fn of_part(part: &Struct<'_>) -> Result<Value, String> {
    let mut native = native::of_struct(part, |value| match value {
        Cel::Uint(number) => Some(Value::Float(*number as f64)),
        Cel::Bytes(bytes) => Some(Value::String(base64::encode(bytes))),
        _ => None,
    })?;
    if let Some(foreign) = native.foreign.first() {
        return Err(format!("proto:\u{a0}invalid type: {}", foreign.go_type));
    }
    round(&mut native.object)?;
    Ok(native.object)
}

/// Rounds all numbers to doubles.
fn round(value: &mut Value) -> Result<(), String> {
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
