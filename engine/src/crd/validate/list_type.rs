//! `x-kubernetes-list-type`, `x-kubernetes-list-map-keys` and `x-kubernetes-map-type`: how lists and maps merge.
//!
//! Source: apiextensions-apiserver 1.37, answers recorded from it.

use std::collections::{BTreeSet, HashSet};

use super::go_struct;
use crate::meta::field::{Error, ErrorList, Path};
use crate::schema::json_schema::{JsonSchema, SchemaOrArray};
use crate::value::Value;
use crate::work;

/// The most bytes of keys quoted by the errors about a list of keys. Kubernetes has no such limit.
const QUOTED_KEYS_BYTES_MAX: usize = 1 << 20;

pub fn validate_map_type(schema: &JsonSchema, path: &Path<'_>) -> ErrorList {
    let Some(map_type) = schema.map_type.as_deref() else { return ErrorList::new() };
    let mut errors = ErrorList::new();
    errors.extend(validate_type(schema, "object", "must be object if x-kubernetes-map-type is specified", path));
    let supported = ["atomic", "granular"];
    if !supported.contains(&map_type) {
        errors.push(Error::not_supported(&path.child("x-kubernetes-map-type"), map_type, &supported));
    }
    errors
}

/// Whether the properties of a map can be correlated on updates. An unknown map type counts as not correlatable.
pub fn is_correlatable_map(schema: &JsonSchema) -> bool {
    schema.map_type.as_deref().is_none_or(|map_type| matches!(map_type, "granular" | "atomic"))
}

/// `require_atomic_items`: items of a set must be atomic.
pub fn validate_list_type(schema: &JsonSchema, require_atomic_items: bool, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let type_path = path.child("x-kubernetes-list-type");
    if let Some(list_type) = schema.list_type.as_deref() {
        let detail = "must be array if x-kubernetes-list-type is specified";
        match validate_type(schema, "array", detail, path) {
            Some(error) => errors.push(error),
            None if require_atomic_items => errors.extend(validate_set(schema, path)),
            None => {}
        }
        let supported = ["atomic", "set", "map"];
        if !supported.contains(&list_type) {
            errors.push(Error::not_supported(&type_path, list_type, &supported));
        }
    }
    if !schema.list_map_keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match schema.list_type.as_deref() {
            None => errors.push(Error::required(&type_path, detail)),
            Some("map") => {}
            Some(other) => errors.push(Error::invalid(&type_path, other, detail)),
        }
    }
    if schema.list_type.as_deref() == Some("map") {
        errors.extend(validate_map_list(schema, path));
    }
    errors
}

fn validate_type(schema: &JsonSchema, type_: &str, detail: &str, path: &Path<'_>) -> Option<Error> {
    let path = path.child("type");
    match schema.type_.as_str() {
        "" => Some(Error::required(&path, detail)),
        other if other != type_ => Some(Error::invalid(&path, other, detail)),
        _ => None,
    }
}

fn items(schema: &JsonSchema) -> Option<&JsonSchema> {
    schema.items.as_ref().and_then(SchemaOrArray::schema)
}

/// Whether there is a set whose items are not atomic.
pub fn has_non_atomic_items(schema: &JsonSchema) -> bool {
    validate_set(schema, &Path::ROOT).is_some()
}

/// Lists are atomic unless they declare otherwise; maps only if they declare it.
fn validate_set(schema: &JsonSchema, path: &Path<'_>) -> Option<Error> {
    let items = items(schema).filter(|_| schema.list_type.as_deref() == Some("set"))?;
    let is_atomic = |type_: &Option<String>| type_.as_deref() == Some("atomic");
    let extension = match items.type_.as_str() {
        "array" if items.list_type.is_some() && !is_atomic(&items.list_type) => "x-kubernetes-list-type",
        "object" if !is_atomic(&items.map_type) => "x-kubernetes-map-type",
        _ => return None,
    };
    // The message shows the list type in either case.
    let shown = items.list_type.as_deref().map_or(Value::Null, Value::from);
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let error = Error::invalid(&path.child("items").child(extension), shown, detail);
    Some(error.shown_as_json())
}

fn validate_map_list(schema: &JsonSchema, path: &Path<'_>) -> ErrorList {
    let (keys_path, items_path) = (path.child("x-kubernetes-list-map-keys"), path.child("items"));
    let mut errors = ErrorList::new();
    if schema.list_map_keys.is_empty() {
        errors.push(Error::required(&keys_path, "must not be empty if x-kubernetes-list-type is map"));
    }
    let items = match &schema.items {
        Some(SchemaOrArray::Schema(items)) => items,
        Some(SchemaOrArray::Array(_)) => {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            errors.push(go_struct::invalid(&items_path, go_struct::show_items(schema), detail));
            return errors;
        }
        None => {
            errors.push(Error::required(&items_path, "must have a schema if x-kubernetes-list-type is map"));
            return errors;
        }
    };
    if items.type_ != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(Error::invalid(&items_path.child("type"), items.type_.as_str(), detail));
        return errors;
    }
    let properties_path = items_path.child("properties");
    // Each of these errors quotes all keys, so their number is limited.
    let quote_bytes: usize = schema.list_map_keys.iter().map(|key| key.len() + 3).sum();
    let mut room = QUOTED_KEYS_BYTES_MAX;
    let all_keys = || schema.list_map_keys.iter().map(|key| Value::from(key.as_str())).collect::<Vec<_>>();
    let mut known = BTreeSet::new();
    let mut faulty = |detail: &str, errors: &mut ErrorList| {
        if room > 0 {
            errors.push(Error::invalid(&keys_path, all_keys(), detail));
        }
        room = room.saturating_sub(quote_bytes);
    };
    for key in &schema.list_map_keys {
        work::step();
        match items.properties.get(key) {
            Some(property) if matches!(property.type_.as_str(), "array" | "object") => {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let path = properties_path.key(key);
                // The message shows the type of the items.
                errors.push(Error::invalid(&path.child("type"), items.type_.as_str(), detail));
            }
            Some(_) => {}
            None => faulty("entries must all be names of item properties", &mut errors),
        }
        if !known.insert(key) {
            faulty("must not contain duplicate entries", &mut errors);
        }
    }
    errors
}

/// Items of sets and maps must not be null, and the keys of a map must be required or have a default.
pub fn validate_items_of_sets_and_maps(schema: &JsonSchema, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (Some(items), Some(list_type @ ("set" | "map"))) = (items(schema), schema.list_type.as_deref()) else {
        return errors;
    };
    let items_path = path.child("items");
    if items.nullable {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(Error::forbidden(&items_path.child("nullable"), detail));
    }
    if list_type == "set" {
        return errors;
    }
    let properties_path = items_path.child("properties");
    let required: HashSet<&String> = items.required.iter().collect();
    for key in &schema.list_map_keys {
        work::step();
        let Some(property) = items.properties.get(key) else { continue };
        let path = properties_path.key(key);
        if !required.contains(key) && property.default.is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                          property";
            errors.push(Error::required(&path.child("default"), detail));
        }
        if property.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(Error::forbidden(&path.child("nullable"), detail));
        }
    }
    errors
}
