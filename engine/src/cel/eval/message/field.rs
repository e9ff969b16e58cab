//! The fields of messages: the values that they accept.

use std::sync::Arc;

use thiserror::Error;

use crate::cel::eval::error::EvalError;
use crate::cel::eval::value::Value;

/// Converts `value` to the value of `field` in the message `google.protobuf.{message}`: the types of fields are
/// stricter than the types known at run time.
///
/// # Errors
/// The field does not accept the value; the message is the reference's.
pub(super) fn value<'a>(message: &str, field: &str, value: Value<'a>) -> Result<Value<'a>, EvalError> {
    let whole = format!("google.protobuf.{message}.{field}");
    match (field, &value) {
        ("values", Value::List(_)) | ("fields", Value::Map(_)) => return Ok(value),
        ("values" | "fields", other) => {
            let ty = match other {
                Value::List(_) | Value::Map(_) | Value::Optional(_) => other.type_of().to_string(),
                other => other.type_name(),
            };
            return Err(EvalError::new(format!("unsupported field type for {whole}: {ty}")));
        }
        _ => {}
    }
    let Some(go_type) = go_type(message, field) else { return Ok(value) };
    convert(value, go_type)
        .map_err(|why| EvalError::new(format!("field type conversion error for {whole} value type: {why}")))
}

/// The Go type of a field.
fn go_type(message: &str, field: &str) -> Option<&'static str> {
    Some(match (message, field) {
        ("BoolValue", _) | (_, "bool_value") => "bool",
        ("BytesValue", _) => "[]uint8",
        ("StringValue", _) | (_, "string_value") => "string",
        ("Int64Value", _) | (_, "seconds") => "int64",
        ("Int32Value", _) | (_, "nanos") => "int32",
        ("UInt64Value", _) => "uint64",
        ("UInt32Value", _) => "uint32",
        ("DoubleValue", _) | (_, "number_value") => "float64",
        ("FloatValue", _) => "float32",
        (_, "list_value") => "*structpb.ListValue",
        (_, "struct_value") => "*structpb.Struct",
        (_, "null_value") => "protoreflect.EnumNumber",
        _ => return None,
    })
}

/// Why a value does not have a Go type, with the reference's messages.
#[derive(Debug, Error)]
enum NativeError {
    #[error("type conversion error from {from} to '{to}'")]
    Type { from: String, to: &'static str },
    #[error("unsupported type conversion from '{from}' to {to}")]
    Number { from: &'static str, to: &'static str },
    #[error("unsupported native conversion from string to '{0}'")]
    Text(&'static str),
    #[error("cannot convert to native type: {0}")]
    JsonPatch(&'static str),
    #[error("unable to convert to {0}")]
    Structure(&'static str),
    #[error("type conversion not supported for 'type'")]
    OfType,
    #[error("optional.none() dereference")]
    Absent,
}

fn convert<'a>(value: Value<'a>, go_type: &'static str) -> Result<Value<'a>, NativeError> {
    let cannot = |from: &str| Err(NativeError::Type { from: from.to_owned(), to: go_type });
    match (&value, go_type) {
        (Value::Optional(Some(content)), _) => return convert(Value::clone(Arc::as_ref(content)), go_type),
        (Value::Optional(None), _) => return Err(NativeError::Absent),
        (Value::Bool(_), "bool")
        | (Value::Bytes(_), "[]uint8")
        | (Value::String(_), "string")
        | (Value::Int(_), "int64" | "int32" | "protoreflect.EnumNumber")
        | (Value::Uint(_), "uint64" | "uint32")
        | (Value::Double(_), "float64" | "float32")
        | (Value::List(_), "*structpb.ListValue")
        | (Value::Map(_), "*structpb.Struct") => {}
        (Value::Int(_), _) => return Err(NativeError::Number { from: "int", to: go_type }),
        (Value::Uint(_), _) => return Err(NativeError::Number { from: "uint", to: go_type }),
        (Value::String(_), _) => return Err(NativeError::Text(go_type)),
        (Value::Bool(_), _) => return cannot("bool"),
        (Value::Double(_), _) => return cannot("Double"),
        (Value::Bytes(_), _) => return cannot("Bytes"),
        (Value::List(_), _) => return cannot("list"),
        (Value::Map(_), _) => return cannot("map"),
        (Value::Null, _) => return cannot("'null_type'"),
        (Value::Duration(_), _) => return cannot("'Duration'"),
        (Value::Timestamp(_), _) => return cannot("'Timestamp'"),
        (Value::Type(_), _) => return Err(NativeError::OfType),
        (Value::Struct(structure), _) if structure.is_json_patch() => {
            return Err(NativeError::JsonPatch(go_type));
        }
        (Value::Struct(_), _) => return Err(NativeError::Structure(go_type)),
        (Value::Opaque(message), _) if message.is_message() => return cannot("'*dynamicpb.Message'"),
        (Value::Opaque(format), _) if format.format_regex_size().is_some() => return cannot("'Format'"),
        (Value::Opaque(opaque), "string") => return Ok(Value::string(opaque.shown())),
        (Value::Opaque(_) | Value::Preserved(_) | Value::Unfit(_), _) => {
            let name = value.type_name();
            return cannot(&format!("'{}'", name.rsplit('.').next().unwrap_or(&name)));
        }
    }
    Ok(value)
}
