//! Setting what a client left out, as Go's defaulting functions do it on a struct that was read.
//!
//! An object that was read by its type has no member for an empty text, so "absent" covers both.

use crate::types::Message;
use crate::value::{Value, json};
use crate::work;

/// Sets the fields of a struct for which its type names a default (`+default`).
pub fn of_type(message: &'static Message, object: &mut Value) {
    for field in message.fields {
        let default = field.default.and_then(|text| json::decode(text.as_bytes()).ok());
        if let Some(default) = default {
            set_pointer(object, field.json, default);
        }
    }
}

/// Sets a field that is absent, null or an empty text.
pub fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    work::step();
    let field = object.make_object().entry(name);
    if field.is_null() || field.as_str() == Some("") {
        *field = value.into();
    }
}

/// Sets a field that is a pointer: one that is absent or null, while an empty text stays.
pub fn set_pointer(object: &mut Value, name: &str, value: impl Into<Value>) {
    work::step();
    let field = object.make_object().entry(name);
    if field.is_null() {
        *field = value.into();
    }
}

/// Sets a number that is absent or 0.
pub fn set_number(object: &mut Value, name: &str, value: i64) {
    work::step();
    let field = object.make_object().entry(name);
    if field.as_i64().unwrap_or_default() == 0 {
        *field = Value::Int(value);
    }
}

/// The field, if it is there and not null.
pub fn field<'v>(object: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    let Value::Object(fields) = object else { return None };
    fields.get_mut(name).filter(|value| !value.is_null())
}

/// The struct at a field, added if it is absent.
pub fn structure<'v>(object: &'v mut Value, name: &str) -> &'v mut Value {
    let field = object.make_object().entry(name);
    field.make_object();
    field
}

/// The items of a list.
pub fn items<'v>(object: &'v mut Value, name: &str) -> impl Iterator<Item = &'v mut Value> + use<'v> {
    let items = match field(object, name) {
        Some(Value::Array(items)) => items.as_mut_slice(),
        _ => &mut [],
    };
    items.iter_mut().inspect(|_| work::step())
}
