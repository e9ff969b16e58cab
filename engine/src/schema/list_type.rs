//! `x-kubernetes-list-type`: no item twice in a set, no key twice in a map.
//!
//! Input: a value and its schema. Output: the duplicates. Each repeated item is reported once, at its second
//! occurrence.

use std::collections::HashMap;

use super::structural::{Structural, StructuralOrBool};
use crate::meta::field::{Error, ErrorList, Path};
use crate::value::{Map, Value, json};
use crate::work;

/// Checks lists of type `set` and `map` anywhere in `value`, an object.
///
/// Absent and null keys of a map differ; numbers of different types differ when they are items or a lone key
/// (`1` and `1.0`), but not deeper. Items of a map that are neither objects nor null are invalid.
/// Source: Kubernetes documentation, "Merge strategy"; answers recorded from apiextensions-apiserver 1.37.
pub fn validate(path: &Path<'_>, value: &Value, schema: &Structural) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Value::Object(_) = value {
        check(path, value, schema, &mut errors);
    }
    errors
}

fn check(path: &Path<'_>, value: &Value, schema: &Structural, errors: &mut ErrorList) {
    work::step();
    if schema.lacks.checked_lists {
        return;
    }
    match value {
        Value::Array(items) => check_list(path, items, schema, errors),
        Value::Object(fields) => check_object(path, fields, schema, errors),
        _ => {}
    }
}

fn check_object(path: &Path<'_>, fields: &Map, schema: &Structural, errors: &mut ErrorList) {
    if let Some(StructuralOrBool::Structural(schema)) = &schema.additional_properties {
        for (name, field) in fields.iter() {
            check(&path.key(name), field, schema, errors);
        }
    }
    if schema.properties.is_empty() {
        return;
    }
    let mut properties = schema.properties.in_order();
    for (name, field) in fields.iter() {
        if let Some(property) = properties.get(name) {
            check(&path.child(name), field, property, errors);
        }
    }
}

fn check_list(path: &Path<'_>, items: &[Value], schema: &Structural, errors: &mut ErrorList) {
    match schema.extensions.list_type.as_deref() {
        Some("set") => {
            for index in repeated(items.iter().map(Some)) {
                errors.push(Error::duplicate(&path.index(index), items[index].clone()));
            }
        }
        Some("map") => check_map(path, items, &schema.extensions.list_map_keys, errors),
        _ => {}
    }
    if let Some(schema) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            check(&path.index(index), item, schema, errors);
        }
    }
}

fn check_map(path: &Path<'_>, items: &[Value], key_names: &[String], errors: &mut ErrorList) {
    if let Some(index) = items.iter().position(|item| !matches!(item, Value::Object(_) | Value::Null)) {
        let detail = "must be an object for an array of list-type map";
        errors.push(Error::invalid(&path.index(index), items[index].clone(), detail));
        return;
    }
    let repeated = match key_names {
        [name] => repeated(items.iter().map(|item| item.get(name))),
        _ => {
            let keys: Vec<Value> = items.iter().map(|item| key_of(item, key_names)).collect();
            repeated(keys.iter().map(Some))
        }
    };
    for index in repeated {
        errors.push(Error::duplicate(&path.index(index), key_of(&items[index], key_names)));
    }
}

/// The key fields that `item` has.
fn key_of(item: &Value, key_names: &[String]) -> Value {
    let fields = key_names.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
    fields.collect::<Map>().into()
}

/// A value for comparison: scalars with their type, objects and lists as JSON.
#[derive(PartialEq, Eq, Hash)]
enum ItemValue<'v> {
    Absent,
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    String(&'v str),
    Compound(Vec<u8>),
}

impl<'v> ItemValue<'v> {
    fn of(value: Option<&'v Value>) -> Self {
        work::bytes(value.and_then(Value::as_str).map_or(0, str::len));
        match value {
            None => ItemValue::Absent,
            Some(Value::Null) => ItemValue::Null,
            Some(Value::Bool(truth)) => ItemValue::Bool(*truth),
            Some(Value::Int(number)) => ItemValue::Int(*number),
            // Negative zero equals zero.
            Some(Value::Float(number)) => ItemValue::Float((number + 0.0).to_bits()),
            Some(Value::String(text)) => ItemValue::String(text),
            Some(compound) => {
                let encoded = json::encode(compound);
                work::bytes(encoded.len());
                ItemValue::Compound(encoded)
            }
        }
    }
}

/// The positions of the second occurrence of each repeated value.
fn repeated<'v>(values: impl ExactSizeIterator<Item = Option<&'v Value>>) -> Vec<usize> {
    /// Up to this many items are compared pairwise: at most 7.5 times the bytes that were counted.
    const FEW: usize = 16;
    let count = values.len();
    if count < 2 {
        return Vec::new();
    }
    let values: Vec<_> = values.map(ItemValue::of).collect();
    if count <= FEW {
        let is_second = |at: &usize| values[..*at].iter().filter(|value| **value == values[*at]).take(2).count() == 1;
        return (0..count).filter(is_second).collect();
    }
    let mut seen: HashMap<_, u32> = HashMap::with_capacity(count);
    let mut repeated = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let times = seen.entry(value).or_default();
        *times = times.saturating_add(1);
        if *times == 2 {
            repeated.push(index);
        }
    }
    repeated
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item() -> impl Strategy<Value = Option<Value>> {
        let few = ["1", "1.0", "-0.0", "0.0", "null", "true", "\"a\"", "{}", "{\"a\":1}", "[1]"];
        let value = |text: &str| json::decode(text.as_bytes()).expect("it is JSON");
        prop::option::of(prop::sample::select(few.to_vec()).prop_map(value))
    }

    proptest! {
        /// Few are compared pairwise, many are looked up.
        #[test]
        fn few_are_repeated_as_among_many(items in prop::collection::vec(item(), 0..16)) {
            let others: Vec<Value> = (100..120).map(Value::Int).collect();
            let many: Vec<Option<&Value>> = items.iter().map(Option::as_ref).chain(others.iter().map(Some)).collect();
            let few = repeated(items.iter().map(Option::as_ref));
            prop_assert_eq!(&few, &repeated(many.into_iter()));
            let second = |at: &usize| items[..*at].iter().filter(|item| **item == items[*at]).count() == 1;
            let is_plain = items.iter().flatten().all(|item| !matches!(item, Value::Int(_) | Value::Float(_)));
            prop_assert!(!is_plain || few == (0..items.len()).filter(second).collect::<Vec<_>>());
        }
    }
}
