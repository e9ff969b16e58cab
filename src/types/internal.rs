//! How errors show a struct of kube-apiserver's internal types: as Go's JSON of a struct without tags, which has every field
//! under its Go name. Types of apimachinery have tags and look as ever.

use super::{Codec, Field, Kind, Message, Ref, Shape, find};
use crate::value::{Value, json};
use crate::work;

/// The value of a type, `core.v1.PodTemplateSpec`, as an error shows it.
pub fn show(type_: &str, value: &Value) -> String {
    let named = type_.rsplit_once('.').and_then(|(package, name)| find(package, name));
    let mut out = Vec::new();
    match named {
        Some(named) => write_message(Ref::Named(named), Some(value), &mut out),
        None => out = json::encode(value),
    }
    String::from_utf8(out).unwrap_or_default()
}

fn write_message(message: Ref, value: Option<&Value>, out: &mut Vec<u8>) {
    let has_tags = match message {
        Ref::Named(named) => named.package() == "meta.v1",
        Ref::Made(_) => false,
    };
    let message = message.get();
    match message.codec {
        Codec::Object if has_tags => {
            let zero = message.zero();
            out.extend(json::encode_as(value.unwrap_or(&zero), message.layout()));
        }
        Codec::Object => {
            out.push(b'{');
            let start = out.len();
            write_fields(message, value, out, start);
            out.push(b'}');
        }
        Codec::Quantity => out.extend(json::encode(value.unwrap_or(&Value::from("0")))),
        Codec::IntOrString => out.extend(json::encode(value.unwrap_or(&Value::Int(0)))),
        _ => out.extend(json::encode(value.unwrap_or(&Value::Null))),
    }
}

/// The fields of a struct; those of an embedded one stand among them.
fn write_fields(message: &Message, value: Option<&Value>, out: &mut Vec<u8>, start: usize) {
    for field in message.fields {
        work::step();
        let Kind::Message(embedded) = field.kind else {
            write_field(field, value, out, start);
            continue;
        };
        if field.shape == Shape::Inline {
            write_fields(embedded.get(), value, out, start);
        } else if embedded.is_object_meta() {
            write_members(value.and_then(|value| value.get(field.json)), embedded.get(), out, start);
        } else {
            write_field(field, value, out, start);
        }
    }
}

/// The members of metadata, which is embedded and has tags.
fn write_members(metadata: Option<&Value>, message: &'static Message, out: &mut Vec<u8>, start: usize) {
    let Some(metadata) = metadata.filter(|metadata| metadata.as_object().is_some_and(|fields| !fields.is_empty()))
    else {
        return;
    };
    let text = json::encode_as(metadata, message.layout());
    separate(out, start);
    out.extend(&text[1..text.len() - 1]);
}

fn write_field(field: &Field, value: Option<&Value>, out: &mut Vec<u8>, start: usize) {
    separate(out, start);
    out.extend(json::encode(&Value::String(field.go_name())));
    out.push(b':');
    let value = value.and_then(|value| value.get(field.json)).filter(|value| !value.is_null());
    match (field.shape, value) {
        (Shape::Value | Shape::Inline, value) => write_one(field, value, out),
        (_, None) => out.extend(b"null"),
        (Shape::Pointer, value) => write_one(field, value, out),
        (Shape::List, Some(Value::Array(items))) => {
            out.push(b'[');
            let first = out.len();
            for item in items {
                separate(out, first);
                write_one(field, Some(item), out);
            }
            out.push(b']');
        }
        (Shape::Map | Shape::Extensions, Some(Value::Object(entries))) => {
            out.push(b'{');
            let first = out.len();
            for (key, item) in entries.iter() {
                separate(out, first);
                out.extend(json::encode(&Value::from(key)));
                out.push(b':');
                write_one(field, Some(item), out);
            }
            out.push(b'}');
        }
        (_, Some(other)) => out.extend(json::encode(other)),
    }
}

fn write_one(field: &Field, value: Option<&Value>, out: &mut Vec<u8>) {
    let zero = match field.kind {
        Kind::Message(message) => return write_message(message, value, out),
        Kind::Bool => Value::Bool(false),
        Kind::Int32 | Kind::Int64 | Kind::Double => Value::Int(0),
        Kind::String => Value::from(""),
        Kind::Bytes => Value::Null,
    };
    out.extend(json::encode(value.unwrap_or(&zero)));
}

/// A comma, unless what began at `start` is empty.
fn separate(out: &mut Vec<u8>, start: usize) {
    if out.len() > start {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_stands_under_its_go_name() {
        let value = json::decode(br#"{"kind":"ConfigMap","name":"a","apiGroup":"x"}"#).expect("the test is JSON");
        assert_eq!(
            show("core.v1.TypedLocalObjectReference", &value),
            r#"{"APIGroup":"x","Kind":"ConfigMap","Name":"a"}"#
        );
        let value = json::decode(br#"{"metadata":{"labels":{"a":"b"}},"spec":{"accessModes":["x"]}}"#);
        let shown = show("core.v1.PersistentVolumeClaimTemplate", &value.expect("the test is JSON"));
        assert!(shown.starts_with(r#"{"labels":{"a":"b"},"Spec":{"AccessModes":["x"],"Selector":null,"#), "{shown}");
    }
}
