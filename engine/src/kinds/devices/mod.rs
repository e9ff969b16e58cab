//! What the kinds of resource.k8s.io share: names, lists with bounds, requests, selectors, taints.
//!
//! Source: `pkg/apis/resource/validation`, release 1.37.

mod names;
pub(crate) mod older;
pub(crate) mod request;
mod selector;
pub(crate) mod slice;
mod capacity;
pub(crate) mod status;
pub(crate) mod taint;

use std::collections::BTreeSet;

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::value::{Value, json};

pub use names::{driver_name, labels, pool_name, qualified_name, request_reference, uid};
pub use selector::selectors;

pub const REQUESTS_MAX: usize = 32;
pub const CONFIGS_MAX: usize = 32;
pub const PARAMETERS_BYTES_MAX: usize = 10 << 10;

/// The faults of each item; of a list with more than `max` items, only that.
pub fn list(field: &FieldRef<'_>, max: usize, check: impl Fn(&FieldRef<'_>) -> ErrorList) -> ErrorList {
    let mut errors = ErrorList::new();
    if field.len() > max {
        errors.push(field.too_many(max as i64));
        return errors;
    }
    for item in field.items() {
        errors.extend(check(&item));
    }
    errors
}

/// [`list`] of items that differ in what `key` tells.
pub fn set(
    field: &FieldRef<'_>,
    max: usize,
    key: impl Fn(&Value) -> String,
    check: impl Fn(&FieldRef<'_>) -> ErrorList,
) -> ErrorList {
    let mut errors = list(field, max, check);
    if field.len() > max {
        return errors;
    }
    let mut seen = BTreeSet::new();
    for item in field.items() {
        let key = key(item.value().unwrap_or(&Value::Null));
        if !seen.insert(key.clone()) {
            errors.push(Error::duplicate(item.path(), key));
        }
    }
    errors
}

/// What [`set`] tells texts apart by.
pub fn by_text(item: &Value) -> String {
    item.as_str().unwrap_or_default().to_owned()
}

/// What [`set`] tells structs apart by that have names.
pub fn by_name(item: &Value) -> String {
    item.str_at(&["name"]).to_owned()
}

/// A field that an update must leave as it is; `null` shows what is not there of a pointer.
pub fn unchanged(new: &FieldRef<'_>, old: &FieldRef<'_>, absent: Value) -> Option<Error> {
    let value = || new.value().cloned().unwrap_or(absent);
    (new.value() != old.value()).then(|| Error::invalid(new.path(), value(), "field is immutable"))
}

/// How a device of a claim or of a class is set up.
pub fn configuration(field: &FieldRef<'_>, is_stored: bool) -> ErrorList {
    let opaque = field.field("opaque");
    if !opaque.is_set() {
        return [opaque.required("")].into_iter().collect();
    }
    let mut errors = driver_name(&opaque.field("driver"));
    errors.extend(raw(&opaque.field("parameters"), is_stored, PARAMETERS_BYTES_MAX));
    errors
}

/// An object that only others understand.
pub fn raw(field: &FieldRef<'_>, is_stored: bool, bytes_max: usize) -> Option<Error> {
    let value = field.value();
    match value {
        None => Some(field.required("")),
        Some(value) if !is_stored && json::encode(value).len() > bytes_max => Some(field.too_long(bytes_max as i64)),
        Some(Value::Object(_)) => None,
        Some(_) => Some(Error::invalid(field.path(), "<value omitted>", "must be a valid JSON object")),
    }
}
