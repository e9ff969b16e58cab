//! Encodes JSON as the bytes of a message, as Go encodes the struct that the JSON fills: fields in the order of their
//! numbers, maps in the order of their keys.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::meta::duration;
use crate::types::{Codec, Field, FieldKind, Message, Shape};
use crate::value::{Value, base64, json, yaml};

use super::wire::{LENGTH_DELIMITED, WireWriter};

/// Encodes a message. `value` is an object of its kind; fields that the message does not describe are left out, and
/// values with another type than described count as absent.
pub fn encode(message: &'static Message, value: &Value) -> Vec<u8> {
    let mut writer = WireWriter::default();
    write_message(message, value, &mut writer);
    writer.finish()
}

/// Writes a message before the contents of `writer`.
pub(super) fn write_message(message: &'static Message, value: &Value, writer: &mut WireWriter) {
    if let (Codec::OneOrMore, [field], false) = (message.codec, message.fields, matches!(value, Value::Array(_))) {
        return write_one(field.kind, field.number, value, writer);
    }
    for (index, field) in message.by_number().rev() {
        write_field(field, part(message.codec, index, field, value).as_deref(), writer);
    }
}

/// The value of the field at `index` of a message with this codec.
fn part<'v>(codec: Codec, index: usize, field: &Field, value: &'v Value) -> Option<Cow<'v, Value>> {
    let is_list = matches!(value, Value::Array(_));
    match (codec, index) {
        (Codec::Object, _) if field.shape == Shape::Extensions => {
            let members = value.as_object()?.iter().filter(|(name, _)| name.starts_with(field.json));
            let members = members.map(|(name, value)| (name.to_owned(), value.clone()));
            Some(Cow::Owned(Value::Object(members.collect())))
        }
        (Codec::Object, _) if field.shape == Shape::Inline => Some(Cow::Borrowed(value)),
        (Codec::Object, _) => value.get(field.json).map(Cow::Borrowed),
        (Codec::List | Codec::Members | Codec::OneOrMore, _) => Some(Cow::Borrowed(value)),
        (Codec::Quantity, _) => Some(Cow::Borrowed(value)),
        (Codec::IntOrString, 0) => Some(Cow::Owned(Value::Int(i64::from(value.as_str().is_some())))),
        (Codec::IntOrString, _) => (value.as_str().is_some() == (index == 2)).then_some(Cow::Borrowed(value)),
        (Codec::Duration, _) => Some(Cow::Owned(Value::Int(duration::parse_go(value.as_str()?).ok()?))),
        (Codec::Any, _) => Some(Cow::Owned(Value::String(yaml::encode(value)))),
        (Codec::Choice(choose), _) => (choose(value) == index).then_some(Cow::Borrowed(value)),
        (Codec::Time | Codec::MicroTime, _) => {
            let time: Timestamp = value.as_str()?.parse().ok()?;
            // Seconds are rounded down, so the rest is not negative.
            let rest = time.subsec_nanosecond().rem_euclid(1_000_000_000);
            let seconds = time.as_second() - i64::from(time.subsec_nanosecond() < 0);
            Some(Cow::Owned(Value::Int(match (codec, index) {
                (_, 0) => seconds,
                (Codec::MicroTime, _) => i64::from(rest / 1000 * 1000),
                _ => 0,
            })))
        }
        (Codec::Json | Codec::FieldsV1, _) if value.is_null() => None,
        (Codec::Json | Codec::FieldsV1, _) => Some(Cow::Owned(Value::String(json::encode_to_string(value)))),
        (Codec::SchemaOrBool, 0) => Some(Cow::Owned(Value::Bool(!matches!(value, Value::Bool(false) | Value::Null)))),
        (Codec::SchemaOrBool, _) => value.as_object().map(|_| Cow::Borrowed(value)),
        (Codec::SchemaOrArray | Codec::SchemaOrStringArray, 0) => (!is_list).then_some(Cow::Borrowed(value)),
        (Codec::SchemaOrArray | Codec::SchemaOrStringArray, _) => is_list.then_some(Cow::Borrowed(value)),
    }
}

fn write_field(field: &'static Field, value: Option<&Value>, writer: &mut WireWriter) {
    let value = value.filter(|value| !value.is_null());
    match (field.shape, value) {
        (Shape::Value, None) if matches!(field.kind, FieldKind::Bytes) => {}
        (Shape::Value | Shape::Inline, value) => {
            write_one(field.kind, field.number, value.unwrap_or(&Value::Null), writer)
        }
        (Shape::Pointer, Some(value)) => write_one(field.kind, field.number, value, writer),
        (Shape::List, Some(Value::Array(items))) => {
            items.iter().rev().for_each(|item| write_one(field.kind, field.number, item, writer));
        }
        (Shape::Map | Shape::Extensions, Some(Value::Object(entries))) => {
            for (name, value) in entries.iter().rev() {
                let end = writer.len();
                if !(value.is_null() && matches!(field.kind, FieldKind::Bytes)) {
                    write_one(field.kind, 2, value, writer);
                }
                write_bytes(1, name.as_bytes(), writer);
                writer.close(field.number, end);
            }
        }
        (Shape::Pointer | Shape::List | Shape::Map | Shape::Extensions, _) => {}
    }
}

fn write_one(kind: FieldKind, number: u32, value: &Value, writer: &mut WireWriter) {
    match kind {
        FieldKind::Bool => writer.varint(u64::from(value.as_bool().unwrap_or_default())),
        FieldKind::Int32 | FieldKind::Int64 => writer.varint(value.as_i64().unwrap_or_default() as u64),
        FieldKind::Double => writer.fixed64(match value {
            Value::Int(number) => *number as f64,
            Value::Float(number) => *number,
            _ => 0.0,
        }),
        FieldKind::String => return write_bytes(number, value.as_str().unwrap_or_default().as_bytes(), writer),
        FieldKind::Bytes => {
            let bytes = base64::decode(value.as_str().unwrap_or_default()).unwrap_or_default();
            return write_bytes(number, &bytes, writer);
        }
        FieldKind::Message(message) => {
            let end = writer.len();
            write_nested(message.get(), value, writer);
            return writer.close(number, end);
        }
    }
    let wire_type = match kind {
        FieldKind::Double => super::wire::FIXED64,
        _ => super::wire::VARINT,
    };
    writer.tag(number, wire_type);
}

/// Writes a nested message. The zero time has no fields, not even those that are always written.
fn write_nested(message: &'static Message, value: &Value, writer: &mut WireWriter) {
    if !(matches!(message.codec, Codec::Time | Codec::MicroTime) && value.is_null()) {
        write_message(message, value, writer);
    }
}

fn write_bytes(number: u32, bytes: &[u8], writer: &mut WireWriter) {
    writer.bytes(bytes);
    writer.varint(bytes.len() as u64);
    writer.tag(number, LENGTH_DELIMITED);
}
