//! What remains of a patch after its strategic merge.
//!
//! Go's merge modifies the patch: it removes directives, and the nulls of new values. If the result is not an object of
//! its kind, the error shows what remains.

use std::collections::HashSet;

use super::{
    DELETE_PREFIX, DIRECTIVE, GoType, ORDER_PREFIX, RETAIN_KEYS, optional_identity, places_of, same_type,
    without_nulls, without_prefix,
};
use crate::value::{Key, Map, Value};
use crate::work;

/// What remains of `patch` after it was merged into `live`, whose type is `types`; the merge must have succeeded.
pub(super) fn of(patch: Map, live: &Value, types: GoType) -> Map {
    work::steps(patch.len());
    let nothing = Map::new();
    let live = live.as_object().unwrap_or(&nothing);
    if let Some(directive) = patch.get(DIRECTIVE) {
        let replaces = directive.as_str() == Some("replace");
        return patch.into_iter().filter(|(name, _)| !(replaces && name == DIRECTIVE)).collect();
    }
    let retained: Option<HashSet<Key>> = patch.get(RETAIN_KEYS).and_then(Value::as_array).map(names);
    let stays = |name: &str| retained.as_ref().is_none_or(|retained| retained.contains(name));
    let ordered: HashSet<Key> =
        patch.keys().filter_map(|name| without_prefix(name, ORDER_PREFIX)).map(Key::from).collect();
    let is_taken = |name: &str| name == RETAIN_KEYS || name.starts_with(ORDER_PREFIX) || ordered.contains(name);
    let rest = patch.into_iter().filter(|(name, _)| !is_taken(name));
    rest.map(|(name, change)| {
        let present = live.get(&name).filter(|_| stays(&name));
        let change = if name.starts_with(DELETE_PREFIX) { change } else { left(&name, change, present, types) };
        (name, change)
    })
    .collect()
}

fn names(list: &[Value]) -> HashSet<Key> {
    list.iter().filter_map(Value::as_str).map(Key::from).collect()
}

/// What remains of the change to a field with the value `present`.
fn left(name: &str, change: Value, present: Option<&Value>, types: GoType) -> Value {
    match (present, change) {
        (Some(present @ Value::Object(_)), Value::Object(change)) => match types.field(name) {
            Ok(merging) if merging.strategy != "replace" => Value::Object(of(change, present, merging.types)),
            _ => Value::Object(change),
        },
        (Some(Value::Array(present)), Value::Array(change)) => match types.list(name) {
            Ok(merging) if merging.strategy == "merge" && !merging.key.is_empty() => {
                let places = places_of(present, merging.key);
                let found = |item: &Value| Some(&present[*places.get(&optional_identity(item, merging.key)?)?]);
                let item = |item| left_of_item(found(&item), item, merging.types);
                Value::Array(change.into_iter().map(item).collect())
            }
            _ => Value::Array(change),
        },
        (Some(present), change) if same_type(present, &change) => change,
        (_, change) => emptied(without_nulls(change)),
    }
}

/// What remains of an item of a merged list; `found` is the item that it was merged into.
fn left_of_item(found: Option<&Value>, item: Value, types: GoType) -> Value {
    match (found, item) {
        (Some(found), Value::Object(fields)) if !fields.contains_key(DIRECTIVE) => {
            Value::Object(of(fields, found, types))
        }
        (_, item) => item,
    }
}

/// A new value without the members that are directives. Otherwise it stays as it is.
fn emptied(value: Value) -> Value {
    match value {
        Value::Object(fields) if !fields.contains_key(DIRECTIVE) => {
            let is_directive = |value: &Value| value.as_object().is_some_and(|fields| fields.contains_key(DIRECTIVE));
            let kept = fields.into_iter().filter(|(_, field)| !is_directive(field));
            Value::Object(kept.map(|(name, field)| (name, emptied(field))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(emptied).collect()),
        other => other,
    }
}
