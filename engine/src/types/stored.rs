//! What remains of an object after it was stored: Kubernetes stores its built-in kinds as protobuf, which has no empty
//! lists and maps, and no absent values in a map.

use super::{Codec, Field, FieldKind, Message, Shape};
use crate::value::Value;

impl Message {
    /// Brings `object`, which must be in the form of this type, into the form that the store returns.
    pub fn settle(&'static self, object: &mut Value) {
        self.for_each_member(object, Field::settle);
    }
}

impl Field {
    fn settle(&'static self, value: &mut Value) {
        match (self.shape, value) {
            (Shape::List, value @ Value::Array(_)) if is_empty(value) => *value = Value::Null,
            (Shape::Map | Shape::Extensions, value @ Value::Object(_)) if is_empty(value) => *value = Value::Null,
            (Shape::List, Value::Array(items)) => items.iter_mut().for_each(|item| self.kind.settle(item)),
            (Shape::Map | Shape::Extensions, Value::Object(entries)) => {
                for (_, entry) in entries.iter_mut() {
                    if matches!(self.kind, FieldKind::Bytes) && entry.is_null() {
                        *entry = Value::from("");
                    }
                    self.kind.settle(entry);
                }
            }
            (Shape::Value | Shape::Pointer | Shape::Inline, value) => self.kind.settle(value),
            _ => {}
        }
    }
}

impl FieldKind {
    fn settle(self, value: &mut Value) {
        let FieldKind::Message(message) = self else { return };
        match message.codec {
            Codec::Object if !message.is_object_meta() => message.get().settle(value),
            Codec::List if is_empty(value) => *value = Value::Null,
            _ => {}
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::kinds;
    use crate::value::json;

    #[test]
    fn empty_lists_are_none_once_they_were_stored() {
        for (api_version, kind, text, expected) in [
            (
                "rbac.authorization.k8s.io/v1",
                "Role",
                r#"{"metadata":{},"rules":[]}"#,
                r#"{"metadata":{},"rules":null}"#,
            ),
            ("v1", "ConfigMap", r#"{"binaryData":{"a":null}}"#, r#"{"binaryData":{"a":""}}"#),
        ] {
            let mut object = json::decode(text.as_bytes()).expect("the test is JSON");
            kinds::type_of(api_version, kind).expect("the kind is built in").settle(&mut object);
            assert_eq!(json::encode_to_string(&object), expected);
        }
    }
}
