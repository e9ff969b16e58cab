//! The metadata of an object that is written: fields that only the server sets, and fields that must agree with the
//! request.
//!
//! Source: `k8s.io/apiserver/pkg/registry/rest`, release 1.37.

use std::collections::HashSet;

use crate::meta::Status;
use crate::value::{Map, Value, json};

/// The metadata of an object; added if there is none.
pub fn metadata_mut(object: &mut Value) -> &mut Map {
    object.make_object().entry("metadata").make_object()
}

/// Removes the fields that only the server sets.
pub fn wipe_system_fields(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for name in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.remove(name);
        }
    }
}

/// Makes a name from `generateName` if there is none; `suffix` returns its last characters. Returns the name.
pub fn generate_name(object: &mut Value, suffix: impl FnOnce() -> String) -> String {
    let metadata = metadata_mut(object);
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let (name, base) = (text("name"), text("generateName"));
    if !name.is_empty() || base.is_empty() {
        return name.to_owned();
    }
    let name = name_from(base, &suffix());
    metadata.insert("name", Value::from(name.clone()));
    name
}

/// Appends `suffix` to `base`, truncated to 63 bytes in all; without a suffix, `base` is unchanged.
fn name_from(base: &str, suffix: &str) -> String {
    const NAME_BYTES_MAX: usize = 63;
    if suffix.is_empty() {
        return base.to_owned();
    }
    let cut = base.floor_char_boundary(NAME_BYTES_MAX.saturating_sub(suffix.len()));
    format!("{}{suffix}", &base[..cut])
}

/// The five random characters of a generated name, from the lowest bits of `random`.
pub fn name_suffix(mut random: u128) -> String {
    const CHARACTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    const LENGTH: usize = 5;
    let mut suffix = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        let at = random % CHARACTERS.len() as u128;
        random /= CHARACTERS.len() as u128;
        suffix.push(char::from(CHARACTERS[at as usize]));
    }
    suffix
}

/// Checks that the body's namespace is that of the path or empty, and sets it.
///
/// # Errors
///
/// 400: the namespaces differ.
pub fn ensure_namespace(object: &mut Value, namespace: &str) -> Result<(), Status> {
    let metadata = metadata_mut(object);
    let own = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if own == namespace {
        return Ok(());
    }
    if !own.is_empty() && !namespace.is_empty() {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    if namespace.is_empty() {
        _ = metadata.remove("namespace");
    } else {
        _ = metadata.insert("namespace", Value::from(namespace));
    }
    Ok(())
}

/// Checks that the body has the name in the path. Source: `checkName` of apiserver 1.37.
///
/// # Errors
///
/// 400: the names differ.
pub fn check_name(object: &Value, wanted: &str) -> Result<(), Status> {
    let name = object.str_at(&["metadata", "name"]);
    if name.is_empty() {
        let message =
            format!("the name of the object ({wanted} based on URL) was undeterminable: name must be provided");
        return Err(Status::bad_request(&message));
    }
    if name != wanted {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({wanted})");
        return Err(Status::bad_request(&message));
    }
    Ok(())
}

/// Removes duplicate owner references, which are equal in every field. Returns the warnings for the client, which say
/// `when` the duplicates were found.
pub fn dedup_owner_references(object: &mut Value, when: &str) -> Option<String> {
    let Some(Value::Array(references)) = object.at_mut(&["metadata", "ownerReferences"]) else { return None };
    let mut seen = HashSet::with_capacity(references.len());
    let mut kept: Vec<Value> = Vec::with_capacity(references.len());
    let mut twice = Vec::new();
    for reference in references.drain(..) {
        if seen.insert(json::encode(&reference)) {
            kept.push(reference)
        } else {
            twice.push(reference.str_at(&["uid"]).to_owned())
        }
    }
    *references = kept;
    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    })
}

/// Keeps the old generation, which only the server sets.
pub(super) fn keep_generation(new: &mut Value, old: &Value) {
    match old.at(&["metadata", "generation"]) {
        Some(generation) => _ = metadata_mut(new).insert("generation", generation.clone()),
        None => _ = metadata_mut(new).remove("generation"),
    }
}

/// Keeps the identity and the creation time of an object, and its deletion: an update cannot change them.
pub(super) fn keep_system_fields(new: &mut Value, old: &Value) {
    let metadata = metadata_mut(new);
    for name in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = old.at(&["metadata", name]) {
            metadata.insert(name, value.clone());
        }
    }
    for name in ["uid", "deletionGracePeriodSeconds"] {
        if let Some(value) = old.at(&["metadata", name])
            && metadata.get(name).is_none_or(|value| value.is_null() || value.as_str() == Some(""))
        {
            metadata.insert(name, value.clone());
        }
    }
    metadata.remove("selfLink");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn a_generated_name_has_63_bytes_at_most() {
        let mut object = object! { "metadata" => object! { "generateName" => "é".repeat(40) } };
        let name = generate_name(&mut object, || name_suffix(0));
        assert_eq!(name, format!("{}bbbbb", "é".repeat(29)));
        assert_eq!(object.str_at(&["metadata", "name"]), name);
        assert_eq!(generate_name(&mut object, || "other".to_owned()), name, "what has a name keeps it");
    }

    #[test]
    fn the_same_owner_stays_once() {
        let owner = object! { "uid" => "a", "kind" => "A" };
        let owners = vec![owner.clone(), object! { "uid" => "b", "kind" => "A" }, owner];
        let mut object = object! { "metadata" => object! { "ownerReferences" => owners } };
        let warning = dedup_owner_references(&mut object, " somewhere").expect("one stands twice");
        assert!(warning.starts_with(".metadata.ownerReferences contains duplicate entries somewhere;"), "{warning}");
        assert!(warning.ends_with("duplicate UID(s) observed: a"), "{warning}");
        assert_eq!(object.items_at(&["metadata", "ownerReferences"]).len(), 2);
        assert_eq!(dedup_owner_references(&mut object, ""), None);
    }
}
