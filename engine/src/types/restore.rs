//! Objects that Go restores from a tree, without reading a text: the results of strategic merge patches and applies.
//!
//! Input: a tree, as a patch leaves it. Output: Go's error for what does not fit, unknown fields, and numbers cut to
//! their fields.
//!
//! Source: `FromUnstructuredWithValidation` of `k8s.io/apimachinery/pkg/runtime`.

use super::json::unfit_on_its_own;
use super::{Codec, Field, FieldKind, Message, Shape};
use crate::meta::minor::Minor;
use crate::meta::object_meta;
use crate::meta::quantity::Quantity;
use crate::meta::time;
use crate::value::path_text::PathText;
use crate::value::{Value, base64};
use crate::work;

/// The most unknown fields that are returned.
const UNKNOWN_MAX: usize = 100;

impl Message {
    /// Why a patched tree can't be restored as an object of this type, without being read from text. Go then has other
    /// errors than for text: `cannot restore map from slice`. Of several errors, that of the first field of the type is
    /// returned.
    pub fn restore_error(&'static self, object: &Value) -> Option<String> {
        let fields = object.as_object()?;
        self.members().find_map(|field| field.restore_error(fields.get(field.json)?))
    }

    /// The paths of the fields of a patched tree that the type does not have in a version of Kubernetes, in the order in
    /// which Go tells them: as texts. The keys of maps are not part of a path here.
    pub fn restore_unknown(&'static self, minor: Minor, object: &Value) -> Vec<String> {
        let mut unknown = UnknownFields { minor, path: PathText::default(), found: Vec::new() };
        unknown.of_struct(self, object);
        // Go compares whole messages, in which a quote follows the path.
        unknown.found.sort_by(|one, other| one.bytes().chain([b'"']).cmp(other.bytes().chain([b'"'])));
        unknown.found
    }

    /// Truncates numbers that are too large for their fields to their lower bits, as Go does when it restores an object
    /// from a tree.
    pub fn truncate_numbers(&'static self, object: &mut Value) {
        self.for_each_member(object, Field::truncate_numbers);
    }
}

/// A search for unknown fields, and what it has found.
struct UnknownFields {
    minor: Minor,
    path: PathText,
    found: Vec<String>,
}

impl UnknownFields {
    fn of_struct(&mut self, message: &'static Message, value: &Value) {
        let Value::Object(fields) = value else { return };
        let end = self.path.end();
        for (name, value) in fields.iter() {
            work::step();
            self.path.push_field(name);
            match message.member(name).filter(|field| field.is_known_in(self.minor)) {
                Some(field) => self.of_field(field, value),
                None if self.found.len() < UNKNOWN_MAX => self.found.push(self.path.as_str().to_owned()),
                None => {}
            }
            self.path.truncate(end);
        }
    }

    fn of_field(&mut self, field: &'static Field, value: &Value) {
        match (field.shape, value) {
            (Shape::List, Value::Array(items)) => self.of_items(field.kind, items),
            (Shape::Map | Shape::Extensions, Value::Object(entries)) => {
                entries.values().for_each(|value| self.of_value(field.kind, value));
            }
            (Shape::Value | Shape::Pointer | Shape::Inline, value) => self.of_value(field.kind, value),
            _ => {}
        }
    }

    fn of_items(&mut self, kind: FieldKind, items: &[Value]) {
        let end = self.path.end();
        for (index, item) in items.iter().enumerate() {
            self.path.push_index(index);
            self.of_value(kind, item);
            self.path.truncate(end);
        }
    }

    fn of_value(&mut self, kind: FieldKind, value: &Value) {
        let FieldKind::Message(message) = kind else { return };
        match (message.codec, value) {
            (Codec::Object, _) => self.of_struct(message.get(), value),
            (Codec::List, Value::Array(items)) => self.of_items(message.get().fields[0].kind, items),
            _ => {}
        }
    }
}

/// The result of converting a whole number beyond all integers, on the processors that Go runs on: the least integer.
fn beyond_integers(number: f64) -> i64 {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if (-BOUND..BOUND).contains(&number) { number as i64 } else { i64::MIN }
}

impl Field {
    fn restore_error(&'static self, value: &Value) -> Option<String> {
        let one = |value| self.kind.restore_error(self.go_type, value);
        match (self.shape, value) {
            (_, Value::Null) => None,
            (Shape::Value | Shape::Pointer | Shape::Inline, _) => one(value),
            (Shape::List, Value::Array(items)) => items.iter().find_map(one),
            (Shape::Map | Shape::Extensions, Value::Object(entries)) => entries.values().find_map(one),
            (Shape::List, _) => Some(format!("cannot restore slice from {}", kind_of(value))),
            (Shape::Map | Shape::Extensions, _) => Some(format!("cannot restore map from {}", kind_of(value))),
        }
    }

    fn truncate_numbers(&'static self, value: &mut Value) {
        match (self.shape, value) {
            (Shape::List, Value::Array(items)) => items.iter_mut().for_each(|item| self.kind.truncate_numbers(item)),
            (Shape::Map, Value::Object(entries)) => entries.values_mut().for_each(|it| self.kind.truncate_numbers(it)),
            (Shape::Value | Shape::Pointer | Shape::Inline, value) => self.kind.truncate_numbers(value),
            _ => {}
        }
    }
}

impl FieldKind {
    fn restore_error(self, go_type: Option<&'static str>, value: &Value) -> Option<String> {
        match (self, value) {
            (_, Value::Null) | (FieldKind::String, Value::String(_)) | (FieldKind::Bool, Value::Bool(_)) => None,
            (FieldKind::Int32 | FieldKind::Int64, Value::Int(_)) => None,
            (FieldKind::Int32 | FieldKind::Int64, Value::Float(number)) if number.trunc() == *number => None,
            (FieldKind::String, Value::Int(_)) => Some(format!("cannot convert int64 to {}", self.go_type(go_type))),
            (FieldKind::Int32 | FieldKind::Int64, Value::Float(_)) => {
                Some(format!("cannot convert float64 to {}", self.go_type(go_type)))
            }
            (FieldKind::String, _) => Some("unrecognized type: string".to_owned()),
            (FieldKind::Bool | FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double, _) => {
                Some(format!("unrecognized type: {}", self.go_type(go_type)))
            }
            (FieldKind::Bytes, Value::String(text)) => {
                base64::decode(text).err().map(|error| format!("error decoding from json: {error}"))
            }
            (FieldKind::Bytes, Value::Array(items)) => {
                let error = items.iter().find_map(|item| FieldKind::Int32.restore_error(None, item));
                error.map(|error| error.replace("int32", "uint8"))
            }
            (FieldKind::Bytes, _) => Some(format!("cannot restore slice from {}", kind_of(value))),
            (FieldKind::Message(message), _) => restore_error_of(message.get(), value),
        }
    }

    fn truncate_numbers(self, value: &mut Value) {
        match (self, value) {
            (FieldKind::Int32, Value::Int(number)) => *number = i64::from(*number as i32),
            (FieldKind::Int32 | FieldKind::Int64, value) => {
                if let Value::Float(number) = *value {
                    *value = Value::Int(beyond_integers(number));
                    self.truncate_numbers(value);
                }
            }
            (FieldKind::Message(message), value) if matches!(message.codec, Codec::Object) => {
                message.get().truncate_numbers(value)
            }
            _ => {}
        }
    }
}

fn restore_error_of(message: &'static Message, value: &Value) -> Option<String> {
    match (message.codec, value) {
        (Codec::Time, Value::String(text)) => time::normalize(text).err().map(|error| error.to_string()),
        (Codec::MicroTime, Value::String(text)) => time::normalize_micro(text).err().map(|error| error.to_string()),
        (Codec::Time | Codec::MicroTime, _) => object_meta::time_field(value).err().map(|error| error.to_string()),
        (Codec::Quantity, Value::String(text)) => Quantity::parse(text.trim()).err().map(|error| error.to_string()),
        (Codec::IntOrString, Value::String(_)) => None,
        (Codec::IntOrString, Value::Int(number)) if i32::try_from(*number).is_ok() => None,
        (Codec::IntOrString, _) => Some(unfit_on_its_own(value, "int32").to_string()),
        (Codec::Object, Value::Object(_)) => message.restore_error(value),
        (Codec::Object, _) => Some(format!("cannot restore struct from: {}", kind_of(value))),
        (Codec::List, Value::Array(items)) => {
            let field = &message.fields[0];
            items.iter().find_map(|item| field.kind.restore_error(field.go_type, item))
        }
        (Codec::List, _) => Some(format!("cannot restore slice from {}", kind_of(value))),
        _ => None,
    }
}

/// The kind of a value that was read without a type, as Go's reflection names it.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use super::super::message_named;
    use crate::meta::minor::Minor;
    use crate::value::json;

    #[test]
    fn what_can_not_be_restored_is_told_in_the_words_of_go() {
        for (kind, text, expected) in [
            ("ConfigMap", r#"{"data":[1]}"#, "cannot restore map from slice"),
            ("ConfigMap", r#"{"data":{"a":1}}"#, "cannot convert int64 to string"),
            ("ConfigMap", r#"{"data":{"a":true}}"#, "unrecognized type: string"),
            ("ConfigMap", r#"{"immutable":1}"#, "unrecognized type: bool"),
            (
                "ConfigMap",
                r#"{"binaryData":{"a":"??"}}"#,
                "error decoding from json: illegal base64 data at input byte 0",
            ),
            ("ConfigMap", r#"{"binaryData":{"a":1}}"#, "cannot restore slice from int64"),
            ("ConfigMap", r#"{"metadata":1}"#, "cannot restore struct from: int64"),
            ("Secret", r#"{"type":1}"#, "cannot convert int64 to v1.SecretType"),
            ("ServiceAccount", r#"{"secrets":["x",null]}"#, "cannot restore struct from: string"),
            ("Event", r#"{"count":1.5}"#, "cannot convert float64 to int32"),
            ("ConfigMap", r#"{"binaryData":{"a":["x"]}}"#, "unrecognized type: uint8"),
            ("Event", r#"{"firstTimestamp":3}"#, "json: cannot unmarshal number into Go value of type string"),
        ] {
            let object = json::decode(text.as_bytes()).expect("the test is JSON");
            assert_eq!(message_named("core.v1", kind).restore_error(&object).as_deref(), Some(expected), "{text}");
        }
        let bytes = json::decode(br#"{"binaryData":{"a":[1,2]}}"#).expect("the test is JSON");
        assert_eq!(message_named("core.v1", "ConfigMap").restore_error(&bytes), None);
        let mut beyond = json::decode(br#"{"count":1e20}"#).expect("the test is JSON");
        assert_eq!(message_named("core.v1", "Event").restore_error(&beyond), None);
        message_named("core.v1", "Event").truncate_numbers(&mut beyond);
        assert_eq!(beyond, crate::object! { "count" => 0 });
    }

    #[test]
    fn unknown_fields_are_told_as_texts_sort_and_without_the_keys_of_maps() {
        let slice = json::decode(
            br#"{"spec":{"devices":[{"attributes":{"model":{"x":1}}},{"X":1},{},{},{},{},{},{},{},{},{"X":1,"name":"a"}]}}"#,
        );
        let slice = slice.expect("the test is JSON");
        let message = message_named("resource.v1", "ResourceSlice");
        assert_eq!(
            message.restore_unknown(Minor::NEWEST, &slice),
            ["spec.devices[0].attributes.x", "spec.devices[10].X", "spec.devices[1].X"],
        );
    }
}
