//! Steps that the preparation of many kinds has in common: what a writer can't set, and the count of changes.
//!
//! Source: the `PrepareForCreate` and `PrepareForUpdate` of Kubernetes' registries.

use crate::meta::field_ref::FieldRef;
use crate::types;
use crate::value::Value;

use super::semantic;
use super::strategy::Subresource;

/// Gives `new` the top fields `names` of `old`, or takes them away.
pub fn keep(new: &mut Value, old: &Value, names: &[&str]) {
    let fields = new.make_object();
    for name in names {
        match old.get(name) {
            Some(value) => _ = fields.insert(*name, value.clone()),
            None => _ = fields.remove(name),
        }
    }
}

/// Gives a new object the empty status of `zero`, and the first generation.
pub fn for_create(object: &mut Value, zero: &Value) {
    keep(object, zero, &["status"]);
    first_generation(object);
}

/// Gives `new` the metadata of `old` that a write to `/status` can't change: `ResetObjectMetaForStatus`.
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

/// Gives `new` the metadata of `old`, all of it but who owns what.
pub fn keep_all_metadata(new: &mut Value, old: &Value) {
    let owners = new.at_mut(&["metadata", "managedFields"]).map(std::mem::take);
    keep(new, old, &["metadata"]);
    let metadata = new.make_object().entry("metadata").make_object();
    match owners {
        Some(owners) => _ = metadata.insert("managedFields", owners),
        None => _ = metadata.remove("managedFields"),
    }
}

/// A write to `/status` leaves the spec and the metadata as they were, another one the status.
pub fn for_update(subresource: Subresource, new: &mut Value, old: &Value) {
    keep_other(subresource, new, old);
    if subresource == Subresource::Status {
        keep_metadata(new, old);
    }
}

/// [`for_update`] of kinds whose labels may be changed through `/status`, too.
pub fn keep_other(subresource: Subresource, new: &mut Value, old: &Value) {
    keep(new, old, if subresource == Subresource::Status { &["spec"] } else { &["status"] });
}

/// Empties a field that only the server sets; `zero` is what Go writes for it.
pub fn reset(object: &mut Value, name: &str, zero: Value) {
    object.make_object().insert(name, zero);
}

/// The first generation.
pub fn first_generation(object: &mut Value) {
    object.make_object().entry("metadata").make_object().insert("generation", Value::Int(1));
}

/// Counts a change of any of the top fields `names`.
pub fn count_generation(new: &mut Value, old: &Value, names: &[&str]) {
    if names.iter().any(|name| !is_same_part(new, old, name)) {
        raise_generation(new, old);
    }
}

/// Whether Go holds the top field `name` of two objects of one version of a kind for the same.
pub fn is_same_part(new: &Value, old: &Value, name: &str) -> bool {
    let type_ = types::of_api_version(new.str_at(&["apiVersion"]), new.str_at(&["kind"]));
    match type_.and_then(|type_| type_.message().member(name)) {
        Some(field) => {
            semantic::is_same_field(field, &FieldRef::root(new).field(name), &FieldRef::root(old).field(name))
        }
        None => semantic::equal_untyped(new.get(name), old.get(name)),
    }
}

/// The generation after that of `old`.
pub fn raise_generation(new: &mut Value, old: &Value) {
    let before = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
    let metadata = new.make_object().entry("metadata").make_object();
    metadata.insert("generation", Value::Int(before.saturating_add(1)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn what_go_holds_for_the_same_counts_as_no_change() {
        let old = object! { "metadata" => object! { "generation" => 3 }, "spec" => object! { "list" => vec![] } };
        let mut new = object! { "metadata" => object! { "generation" => 3 }, "spec" => object! {} };
        count_generation(&mut new, &old, &["spec"]);
        assert_eq!(new.at(&["metadata", "generation"]), Some(&Value::Int(3)));
        new.make_object().insert("spec", object! { "list" => vec![Value::from("a")] });
        count_generation(&mut new, &old, &["spec"]);
        assert_eq!(new.at(&["metadata", "generation"]), Some(&Value::Int(4)));
    }
}
