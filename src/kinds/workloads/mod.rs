//! What the kinds that make pods have in common: selectors, amounts in per cent, counters of a status, columns, and what
//! an update keeps.
//!
//! Source: `pkg/apis/apps/validation`, `pkg/registry/apps` and `pkg/printers` of Kubernetes 1.37.

pub mod cells;
pub mod percent;
pub mod selector;
pub mod status;
pub mod template;

use crate::meta::field::Error;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

/// The status of a new object is what Go always writes of one, as `zero` has it.
pub fn reset_status(object: &mut Value, zero: &Value) {
    copy_field(object, zero, "status");
}

/// A new object is of the first generation.
pub fn begin_generation(object: &mut Value) {
    object.make_object().entry("metadata").make_object().insert("generation", Value::Int(1));
}

/// Gives `object` the field of `from`, or none where that has none.
pub fn copy_field(object: &mut Value, from: &Value, name: &str) {
    match from.get(name) {
        Some(value) => _ = object.make_object().insert(name, value.clone()),
        None => _ = object.make_object().remove(name),
    }
}

/// Counts the generation up, from that of `old`.
pub fn raise_generation(new: &mut Value, old: &Value) {
    let generation = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
    let metadata = new.make_object().entry("metadata").make_object();
    metadata.insert("generation", Value::Int(generation.saturating_add(1)));
}

/// An update keeps the status, and one that changes the spec counts the generation up.
pub fn prepare_update(new: &mut Value, old: &Value) {
    copy_field(new, old, "status");
    if new.get("spec") != old.get("spec") {
        raise_generation(new, old);
    }
}

/// Whether the two objects differ in their generation.
pub fn generation_differs(new: &Value, old: &Value) -> bool {
    new.at(&["metadata", "generation"]) != old.at(&["metadata", "generation"])
}

/// The warning of a name that pods can't have as the name of their host.
pub fn name_warnings(object: &Value) -> Vec<String> {
    let faults = names::is_dns1123_label(object.str_at(&["metadata", "name"]));
    if faults.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is \
         recommended: [{}]",
        faults.join(" ")
    )]
}

/// A field behind a pointer that must be as it was; where it is gone, errors show `null`.
pub fn immutable(new: &FieldRef<'_>, old: &FieldRef<'_>) -> Option<Error> {
    let value = new.value().cloned().unwrap_or(Value::Null);
    (new.value() != old.value()).then(|| Error::invalid(new.path(), value, "field is immutable"))
}
