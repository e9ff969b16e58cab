//! A write that changes nothing but the times in managedFields does not count as a change.
//!
//! Source: apiserver 1.37, `handlers/fieldmanager/equality.go`.

use crate::value::{Map, Value};

/// Gives `new` the times of its managedFields in `old`, if nothing but those times differs.
///
/// To be called on the object that is about to be stored, in the version that is stored.
pub fn keep_times(new: &mut Value, old: &Value) {
    if !same_but_for_times(new, old) {
        return;
    }
    let old = old.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default();
    let new = new.at_mut(&["metadata", "managedFields"]).and_then(Value::as_array_mut);
    for (new, old) in new.into_iter().flatten().zip(old) {
        let Some(entry) = new.as_object_mut() else { continue };
        match old.get("time") {
            Some(time) => {
                entry.insert("time", time.clone());
            }
            None => {
                entry.remove("time");
            }
        }
    }
}

/// Whether the objects differ at most in the times of their managedFields; both must have managedFields.
pub fn same_but_for_times(new: &Value, old: &Value) -> bool {
    let entries = |object: &Value| object.at(&["metadata", "managedFields"]).and_then(Value::as_array).map(<[_]>::len);
    match (entries(new), entries(old)) {
        (Some(new_count), Some(old_count)) if new_count == old_count && new_count > 0 => {}
        _ => return false,
    }
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return false };
    same_fields(new, old, |name, new, old| match (name, new, old) {
        ("metadata", Value::Object(new), Value::Object(old)) => {
            same_fields(new, old, |name, new, old| match (name, new, old) {
                ("managedFields", Value::Array(new), Value::Array(old)) => {
                    new.iter().zip(old).all(|(new, old)| same_entry(new, old))
                }
                _ => new == old,
            })
        }
        _ => new == old,
    })
}

fn same_entry(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return false };
    let rest = |fields: &Map| fields.iter().filter(|(name, _)| *name != "time").count();
    rest(new) == rest(old)
        && new.iter().filter(|(name, _)| *name != "time").all(|(name, value)| old.get(name) == Some(value))
}

fn same_fields(new: &Map, old: &Map, same: impl Fn(&str, &Value, &Value) -> bool) -> bool {
    new.len() == old.len()
        && new.iter().zip(old.iter()).all(|((name, new), (old_name, old))| name == old_name && same(name, new, old))
}
