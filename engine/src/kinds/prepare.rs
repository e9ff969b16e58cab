//! Steps that the preparation of many kinds has in common: what a writer can't set, and the count of changes.
//!
//! Source: the `PrepareForCreate` and `PrepareForUpdate` of Kubernetes' registries.

use crate::value::Value;

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

/// Gives `new` the metadata of `old`, all but managedFields.
pub fn keep_metadata(new: &mut Value, old: &Value) {
    let owners = new.at(&["metadata", "managedFields"]).cloned();
    keep(new, old, &["metadata"]);
    let metadata = new.make_object().entry("metadata").make_object();
    match owners {
        Some(owners) => _ = metadata.insert("managedFields", owners),
        None => _ = metadata.remove("managedFields"),
    }
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
    let is_changed = names.iter().any(|name| !equal(new.get(name), old.get(name)));
    let generation = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
    if is_changed {
        let metadata = new.make_object().entry("metadata").make_object();
        metadata.insert("generation", Value::Int(generation.saturating_add(1)));
    }
}

/// Whether Go holds both for the same: an empty list or map is the same as none.
pub fn equal(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let differs = |name: &str| !equal(one.get(name), other.get(name));
            !one.iter().chain(other.iter()).any(|(name, _)| differs(name))
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(Some(one), Some(other)))
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
