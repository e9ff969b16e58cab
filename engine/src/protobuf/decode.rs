//! Decodes the parts of a message to JSON, as Go encodes the struct that they fill.

use crate::meta::{duration, time};
use crate::types::{Codec, Field, FieldKind, Message, Shape};
use crate::value::{Key, Map, Value, base64, json, yaml};
use crate::work;

use super::ProtobufError;
use super::node::{DEPTH_MAX, WireMessage, WireValue};

/// Decodes `bytes` as a message to JSON.
///
/// # Errors
///
/// The bytes are malformed, or contain what JSON cannot represent: a year of five digits, a number that is not finite,
/// or too deep nesting.
pub fn decode(message: &'static Message, bytes: &[u8]) -> Result<Value, ProtobufError> {
    of_message(message, &WireMessage::read(message, bytes)?, 1)
}

fn of_message(message: &'static Message, node: &WireMessage<'_>, depth: usize) -> Result<Value, ProtobufError> {
    if depth > DEPTH_MAX {
        return Err(ProtobufError::TooDeep);
    }
    let field = |index: usize| of_field(&message.fields[index], node.part(index), depth);
    match message.codec {
        Codec::Object => of_object(message, node, depth),
        // Without parts it is Go's zero time.
        Codec::Time | Codec::MicroTime => Ok(Value::Null),
        // Without its text it is zero; an empty text would be invalid.
        Codec::Quantity if node.part(0).is_none() => Ok(Value::from("0")),
        Codec::Quantity => field(0),
        Codec::IntOrString => match node.part(0) {
            Some(WireValue::Varint(1)) => field(2),
            _ => field(1),
        },
        Codec::Duration => Ok(match node.part(0) {
            Some(WireValue::Varint(nanoseconds)) => Value::String(duration::print_go(*nanoseconds as i64)),
            _ => Value::from("0s"),
        }),
        Codec::Json => of_json(node.part(0), depth),
        Codec::FieldsV1 => Ok(of_fields(node.part(0), depth)),
        Codec::List => match node.part(0) {
            Some(_) => field(0),
            None => Ok(Value::Array(Vec::new())),
        },
        Codec::Members => match node.part(0) {
            Some(_) => field(0),
            None => Ok(Value::Object(Map::new())),
        },
        Codec::OneOrMore => match node.part(0) {
            Some(WireValue::List(items)) if items.len() == 1 => of_part(message.fields[0].kind, &items[0], depth),
            _ => field(0),
        },
        Codec::Any => match node.part(0) {
            Some(WireValue::Bytes(text)) => {
                yaml::decode(text).map_err(|error| ProtobufError::NotJson(error.to_string()))
            }
            _ => Ok(Value::Null),
        },
        Codec::Choice(_) => match (0..message.fields.len()).find(|index| node.part(*index).is_some()) {
            Some(index) => field(index),
            None => Ok(Value::Null),
        },
        Codec::SchemaOrBool => match (node.part(0), node.part(1)) {
            (_, Some(_)) => field(1),
            (Some(WireValue::Varint(allows)), None) => Ok(Value::Bool(*allows != 0)),
            _ => Ok(Value::Bool(false)),
        },
        Codec::SchemaOrArray | Codec::SchemaOrStringArray => match (node.part(0), node.part(1)) {
            (_, Some(_)) => field(1),
            (Some(_), None) => field(0),
            (None, None) => Ok(Value::Null),
        },
    }
}

fn of_object(message: &'static Message, node: &WireMessage<'_>, depth: usize) -> Result<Value, ProtobufError> {
    let mut members = Vec::with_capacity(message.fields.len());
    for (index, described) in message.fields.iter().enumerate() {
        let part = node.part(index);
        if part.is_none() && !described.always {
            continue;
        }
        let value = of_field(described, part, depth)?;
        match (described.shape, value) {
            (Shape::Extensions | Shape::Inline, Value::Object(inner)) => members.extend(inner),
            (Shape::Value, value) if !described.always && is_zero(&value) => {}
            (_, value) => members.push((Key::new_static(described.json), value)),
        }
    }
    Ok(Value::Object(Map::from_fields(members)))
}

/// Decodes embedded JSON.
fn of_json(part: Option<&WireValue<'_>>, depth: usize) -> Result<Value, ProtobufError> {
    match part {
        Some(WireValue::Bytes(text)) if !text.is_empty() => {
            let value = json::decode(text).map_err(|error| ProtobufError::NotJson(error.to_string()))?;
            if is_deeper(&value, DEPTH_MAX - depth) { Err(ProtobufError::TooDeep) } else { Ok(value) }
        }
        _ => Ok(Value::Null),
    }
}

/// Decodes embedded JSON; if it is not JSON, returns the text.
fn of_fields(part: Option<&WireValue<'_>>, depth: usize) -> Value {
    match part {
        Some(WireValue::Bytes(text)) if !text.is_empty() => match json::decode(text) {
            Ok(value) if !is_deeper(&value, DEPTH_MAX - depth) => value,
            _ => Value::String(json::text_of(text).into_owned()),
        },
        _ => Value::Null,
    }
}

fn of_field(field: &'static Field, part: Option<&WireValue<'_>>, depth: usize) -> Result<Value, ProtobufError> {
    match part {
        None => match (field.shape, field.kind) {
            // A quantity that was not sent is zero; an empty text would be invalid.
            (Shape::Value, FieldKind::Message(message)) if matches!(message.get().codec, Codec::Quantity) => {
                Ok(Value::from("0"))
            }
            (Shape::Value | Shape::Inline, FieldKind::Message(message)) => {
                of_message(message.get(), &WireMessage::default(), depth + 1)
            }
            (Shape::Value, FieldKind::Bool) => Ok(Value::Bool(false)),
            (Shape::Value, FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double) => Ok(Value::Int(0)),
            (Shape::Value, FieldKind::String) => Ok(Value::String(String::new())),
            (Shape::Value, FieldKind::Bytes)
            | (Shape::Inline | Shape::Pointer | Shape::List | Shape::Map | Shape::Extensions, _) => Ok(Value::Null),
        },
        Some(WireValue::List(items)) => {
            let items = items.iter().map(|item| of_part(field.kind, item, depth + 1));
            items.collect::<Result<_, _>>().map(Value::Array)
        }
        Some(WireValue::Map(entries)) => {
            let entries = entries
                .iter()
                .map(|(name, value)| Ok((json::text_of(name).into(), of_part(field.kind, value, depth + 1)?)));
            Ok(Value::Object(Map::from_fields(entries.collect::<Result<_, ProtobufError>>()?)))
        }
        Some(part) => of_part(field.kind, part, depth),
    }
}

fn of_part(kind: FieldKind, part: &WireValue<'_>, depth: usize) -> Result<Value, ProtobufError> {
    work::step();
    Ok(match (kind, part) {
        (FieldKind::Bool, WireValue::Varint(number)) => Value::Bool(*number != 0),
        (FieldKind::Int32, WireValue::Varint(number)) => Value::Int(i64::from(*number as i32)),
        (FieldKind::Int64, WireValue::Varint(number)) => Value::Int(*number as i64),
        (FieldKind::Double, WireValue::Double(number)) => of_double(*number)?,
        (FieldKind::String, WireValue::Bytes(bytes)) => Value::String(json::text_of(bytes).into_owned()),
        (FieldKind::Bytes, WireValue::Bytes(bytes)) => Value::String(base64::encode(bytes)),
        (FieldKind::Message(message), WireValue::Node(node)) => of_message(message.get(), node, depth + 1)?,
        (FieldKind::Message(message), WireValue::Bytes(bytes)) => of_time(message.get(), bytes)?,
        _ => Value::Null,
    })
}

fn of_double(number: f64) -> Result<Value, ProtobufError> {
    /// The smallest positive double that does not fit an `i64`.
    const END: f64 = 9_223_372_036_854_775_808.0;
    match number {
        _ if number.is_nan() => Err(ProtobufError::UnsupportedNumber("NaN")),
        f64::INFINITY => Err(ProtobufError::UnsupportedNumber("+Inf")),
        f64::NEG_INFINITY => Err(ProtobufError::UnsupportedNumber("-Inf")),
        // As it is decoded from JSON, in which a whole number has no decimal point.
        _ if number.fract() == 0.0 && (-END..END).contains(&number) => Ok(Value::Int(number as i64)),
        _ => Ok(Value::Float(number)),
    }
}

fn of_time(message: &'static Message, bytes: &[u8]) -> Result<Value, ProtobufError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let node = WireMessage::read(message, bytes)?;
    let number = |index| match node.part(index) {
        Some(WireValue::Varint(number)) => *number,
        _ => 0,
    };
    let seconds = number(0) as i64;
    let micros = match message.codec {
        Codec::MicroTime => i64::from(number(1) as i32) / 1000,
        _ => 0,
    };
    let (seconds, micros) = (seconds.saturating_add(micros.div_euclid(MICROS)), micros.rem_euclid(MICROS));
    let utc = time::utc(seconds).ok_or(ProtobufError::YearOutOfRange)?;
    Ok(match message.codec {
        _ if utc == time::NO_TIME && micros == 0 => Value::Null,
        Codec::MicroTime => Value::String(format!("{utc}.{micros:06}Z")),
        _ => Value::String(format!("{utc}Z")),
    })
}

/// In a second.
const MICROS: i64 = 1_000_000;

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Int(number) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether `value` has more than `levels` nested arrays and objects.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let is_deeper = |inner: &Value| is_deeper(inner, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(is_deeper),
        Value::Object(fields) => levels == 0 || fields.values().any(is_deeper),
        _ => false,
    }
}
