//! Real objects under another definition.

use super::super::DefinedKind;
use super::super::check::{CheckOptions, Checked, create, update};
use super::join;
use crate::value::Value;

/// The verdicts on an object under both definitions.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Errors of creating it, in fields that the old definition had nothing against.
    pub errors: Vec<String>,
    /// Whether the errors are forgiven while the object does not change.
    pub ratchets: bool,
    /// Fields that only the new definition drops.
    pub lost: Vec<String>,
    /// Fields that only the new definition sets.
    pub defaulted: Vec<String>,
}

/// The verdicts on `object` under both kinds.
pub fn replay(old: &DefinedKind, new: &DefinedKind, object: &Value) -> Replayed {
    let mut object = object.clone();
    // Stored objects have what creation refuses.
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    let (before, after) = (write(old, &object), write(new, &object));
    let is_known = |field: &str| before.errors.iter().any(|rejected| rejected.error.field == field);
    let errors = after.errors.iter().map(|rejected| &rejected.error).filter(|error| !is_known(&error.field));
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    let is_kept = |is_status| {
        update(new, &object, &object, CheckOptions { is_status, ..CheckOptions::default() }).errors.is_empty()
    };
    let ratchets = !errors.is_empty() && is_kept(false) && is_kept(true);
    let lost = after.unknown.iter().filter(|path| !before.unknown.contains(path)).cloned().collect();
    let mut defaulted = Vec::new();
    gained("", &before.object, &after.object, &mut defaulted);
    Replayed { errors, ratchets, lost, defaulted }
}

/// Creates the object, and writes its status if that is a subresource.
fn write(kind: &DefinedKind, object: &Value) -> Checked {
    let mut checked = create(kind, object, CheckOptions::default());
    let has_status_apart = kind.served(object).is_some_and(|version| version.status);
    if has_status_apart && object.get("status").is_some() {
        let mut bare = object.clone();
        bare.make_object().remove("status");
        let status = update(kind, object, &bare, CheckOptions { is_status: true, ..CheckOptions::default() });
        let is_new = |field: &str| !checked.errors.iter().any(|rejected| rejected.error.field == field);
        let errors: Vec<_> = status.errors.into_iter().filter(|rejected| is_new(&rejected.error.field)).collect();
        checked.errors.extend(errors);
    }
    checked
}

/// The paths of what only `after` has.
fn gained(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in new.iter() {
                match old.get(name) {
                    Some(before) => gained(&join(path, name), before, value, found),
                    None => found.push(join(path, name)),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (index, (before, after)) in old.iter().zip(new).enumerate() {
                gained(&format!("{path}[{index}]"), before, after, found);
            }
        }
        _ => {}
    }
}
