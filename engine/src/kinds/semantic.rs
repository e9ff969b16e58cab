//! Semantic equality of values: an empty list or map equals an absent one, and quantities are compared as numbers.
//!
//! Input: objects in the form of their types. Source: `apimachinery/pkg/api/equality`.

use std::collections::HashMap;

use crate::meta::field_ref::FieldRef;
use crate::meta::quantity::Quantity;
use crate::types::{Codec, Field, FieldKind, Message, Shape};
use crate::value::{Map, Value};
use crate::work;

/// The fields that are maps of strings. An empty one equals an absent one, which is not so for structs.
const MAPS: [&str; 7] =
    ["annotations", "labels", "matchLabels", "nodeSelector", "options", "parameters", "volumeAttributes"];
/// The fields that are maps of quantities.
const QUANTITIES: [&str; 6] = ["allocatable", "allocatedResources", "capacity", "limits", "overhead", "requests"];
/// The fields that are quantities.
const QUANTITY: [&str; 2] = ["divisor", "sizeLimit"];

/// Whether two values of the field `name` are semantically equal.
pub fn equal(name: &str, left: Option<&Value>, right: Option<&Value>) -> bool {
    work::step();
    match (present(name, left), present(name, right)) {
        (None, None) => true,
        (Some(left), Some(right)) => equal_values(name, left, right),
        _ => false,
    }
}

/// The value, unless it equals an absent one.
fn present<'v>(name: &str, value: Option<&'v Value>) -> Option<&'v Value> {
    let is_map = || MAPS.contains(&name) || QUANTITIES.contains(&name);
    value.filter(|value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty() || !is_map(),
        _ => true,
    })
}

fn equal_values(name: &str, left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal_values("", left, right))
        }
        (Value::Object(left), Value::Object(right)) if QUANTITIES.contains(&name) => equal_quantities(left, right),
        (Value::Object(left), Value::Object(right)) => equal_fields(left, right),
        (Value::String(left), Value::String(right)) if QUANTITY.contains(&name) => equal_numbers(left, right),
        _ => left == right,
    }
}

fn equal_fields(left: &Map, right: &Map) -> bool {
    left.iter().all(|(name, value)| equal(name, Some(value), right.get(name)))
        && right.iter().all(|(name, value)| left.contains_key(name) || equal(name, None, Some(value)))
}

fn equal_quantities(left: &Map, right: &Map) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    left.len() == right.len()
        && left.iter().all(|(name, value)| {
            work::step();
            right.get(name).is_some_and(|other| equal_numbers(&text(value), &text(other)))
        })
}

fn equal_numbers(left: &str, right: &str) -> bool {
    left == right || matches!((Quantity::parse(left), Quantity::parse(right)), (Ok(left), Ok(right)) if left == right)
}

/// Whether two values of unknown types are semantically equal: an empty list, map or struct equals an absent one.
pub fn equal_untyped(one: Option<&Value>, other: Option<&Value>) -> bool {
    work::step();
    match (one, other) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            one.iter().all(|(name, value)| equal_untyped(Some(value), other.get(name)))
                && other.iter().all(|(name, value)| one.contains_key(name) || equal_untyped(None, Some(value)))
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal_untyped(Some(one), Some(other)))
        }
        (Some(some), None) | (None, Some(some)) => is_nothing(some),
        (one, other) => one == other,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Whether a field of a type is semantically equal: unlike an empty list or map, a pointer to an empty struct does not
/// equal an absent one.
pub fn is_same_field(field: &Field, new: &FieldRef<'_>, old: &FieldRef<'_>) -> bool {
    work::step();
    match (field.kind, field.shape) {
        (FieldKind::Message(message), Shape::Pointer) => {
            new.is_set() == old.is_set() && is_same_struct(message.get(), new, old)
        }
        (FieldKind::Message(message), Shape::Value) => is_same_struct(message.get(), new, old),
        (FieldKind::Message(message), Shape::List) => {
            new.len() == old.len()
                && new.items().zip(old.items()).all(|(new, old)| is_same_struct(message.get(), &new, &old))
        }
        (FieldKind::Message(message), Shape::Map) => is_same_map(message.get(), new, old),
        _ => equal_untyped(new.value(), old.value()),
    }
}

/// Whether two structs of a type are semantically equal.
pub fn is_same_struct(message: &'static Message, new: &FieldRef<'_>, old: &FieldRef<'_>) -> bool {
    match message.codec {
        Codec::Object => {
            message.members().all(|field| is_same_field(field, &new.field(field.json), &old.field(field.json)))
        }
        Codec::Quantity if new.is_set() && old.is_set() => equal_numbers(new.text(), old.text()),
        _ => equal_untyped(new.value(), old.value()),
    }
}

/// Whether two maps of structs of a type are semantically equal.
fn is_same_map(message: &'static Message, new: &FieldRef<'_>, old: &FieldRef<'_>) -> bool {
    let before: HashMap<&str, FieldRef<'_>> = old.entries().collect();
    new.entries().count() == before.len()
        && new.entries().all(|(key, entry)| before.get(key).is_some_and(|old| is_same_struct(message, &entry, old)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::types;
    use crate::value::yaml;

    #[test]
    fn nothing_is_an_empty_list_and_an_empty_map_but_not_a_struct() {
        let check = |left: &str, right: &str| {
            let read = |text: &str| yaml::decode(text.as_bytes()).expect("YAML");
            equal("spec", Some(&read(left)), Some(&read(right)))
        };
        assert!(check("{args: [], nodeSelector: {}}", "{}"));
        assert!(check(
            "{limits: {memory: 1Gi}, emptyDir: {sizeLimit: '1'}}",
            "{limits: {memory: '1073741824'}, emptyDir: {sizeLimit: 1000m}}"
        ));
        assert!(!check("{securityContext: {}}", "{}"));
        assert!(!check("{limits: {memory: 1Gi}}", "{limits: {memory: 1Gi, cpu: '1'}}"));
        assert!(!check("{labels: {a: b}}", "{labels: {a: c}}"));
    }

    #[test]
    fn values_of_unknown_types_are_compared_once_each() {
        const LEVELS: u64 = 100;
        let nested = (0..LEVELS).fold(Value::Int(1), |value, _| object! { "a" => value, "b" => Value::Int(2) });
        let (is_equal, steps) = work::counted(|| equal_untyped(Some(&nested), Some(&nested)));
        assert!(is_equal && steps <= 3 * LEVELS, "{steps} steps");
        let check = |one: Value, other: Value| equal_untyped(Some(&one), Some(&other));
        assert!(check(object! { "a" => object! {}, "b" => 1 }, object! { "b" => 1, "c" => Value::Null }));
        assert!(!check(object! { "b" => 1 }, object! { "b" => 1, "c" => 2 }));
    }

    #[test]
    fn quantities_of_a_type_are_numbers() {
        let check = |left: &str, right: &str| {
            let read = |text: &str| yaml::decode(text.as_bytes()).expect("YAML");
            let message = types::message_named("core.v1", "ResourceRequirements");
            is_same_struct(message, &FieldRef::root(&read(left)), &FieldRef::root(&read(right)))
        };
        assert!(check("{requests: {cpu: '+1'}, limits: {}}", "{requests: {cpu: '1'}}"));
        assert!(!check("{requests: {cpu: '2'}}", "{requests: {cpu: '1'}}"));
        assert!(!check("{requests: {cpu: '1', memory: '1'}}", "{requests: {cpu: '1'}}"));
        assert!(!check("{requests: {memory: '1'}}", "{requests: {cpu: '1'}}"));
    }

    #[test]
    fn a_pointer_to_an_empty_struct_is_not_none() {
        let check = |left: &str, right: &str| {
            let read = |text: &str| yaml::decode(text.as_bytes()).expect("YAML");
            let message = types::message_named("resource.v1", "ExactDeviceRequest");
            is_same_struct(message, &FieldRef::root(&read(left)), &FieldRef::root(&read(right)))
        };
        assert!(check("{selectors: [], deviceClassName: a}", "{deviceClassName: a}"));
        assert!(!check("{capacity: {}}", "{}"));
        assert!(check("{capacity: {requests: {}}}", "{capacity: {}}"));
        assert!(!check("{selectors: [{cel: {expression: a}}]}", "{selectors: [{cel: {expression: b}}]}"));
    }
}
