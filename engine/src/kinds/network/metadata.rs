//! What the server alone sets in metadata: the generation, and in an update of the status nearly everything.
//!
//! Source: `metav1.ResetObjectMetaForStatus`, release 1.37.

use crate::value::Value;

/// A new object is in its first generation.
pub fn set_first_generation(object: &mut Value) {
    set(object, 1);
}

/// A changed object is in the next generation.
pub fn raise_generation(new: &mut Value, old: &Value) {
    let before = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
    set(new, before.saturating_add(1));
}

/// Metadata stays as it was where the status alone may change.
pub fn keep_metadata(new: &mut Value, old: &Value) {
    const KEPT: [&str; 7] =
        ["annotations", "deletionTimestamp", "finalizers", "generation", "labels", "ownerReferences", "selfLink"];
    let metadata = new.make_object().entry("metadata").make_object();
    for name in KEPT {
        match old.at(&["metadata", name]) {
            Some(value) => _ = metadata.insert(name, value.clone()),
            None => _ = metadata.remove(name),
        }
    }
}

fn set(object: &mut Value, generation: i64) {
    object.make_object().entry("metadata").make_object().insert("generation", Value::Int(generation));
}
