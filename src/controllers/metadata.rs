//! What controllers read of the metadata of a stored object. The rest of it is not decoded.

use crate::store::Stored;
use crate::value::{Value, json};

/// The finalizer that keeps an object until its dependents have forgotten it.
pub(super) const ORPHAN: &str = "orphan";
/// The finalizer that keeps an object until its dependents are gone.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// Whether an object is being deleted, and what for its dependents must happen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Going {
    /// It is not being deleted.
    No,
    /// It waits for finalizers of others.
    Otherwise,
    /// It waits for its dependents to be deleted.
    Foreground,
    /// It waits for its dependents to forget it.
    Orphan,
}

/// Whether a stored object is being deleted, and what it waits for.
pub(super) fn going(stored: &Stored) -> Going {
    if stored.metadata_field("\"deletionTimestamp\"").is_none() {
        return Going::No;
    }
    let finalizers = finalizers(stored);
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    match (has(ORPHAN), has(FOREGROUND)) {
        (true, _) => Going::Orphan,
        (false, true) => Going::Foreground,
        (false, false) => Going::Otherwise,
    }
}

/// The finalizers of a stored object.
pub(super) fn finalizers(stored: &Stored) -> Vec<String> {
    let finalizers = list(stored, "\"finalizers\"");
    finalizers.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The references to owners of a stored object.
pub(super) fn references(stored: &Stored) -> Vec<Value> {
    list(stored, "\"ownerReferences\"")
}

/// Whether a reference keeps its owner, which is deleted in the foreground.
pub(super) fn blocks(reference: &Value) -> bool {
    reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
}

fn list(stored: &Stored, quoted_name: &str) -> Vec<Value> {
    match stored.metadata_field(quoted_name).map(json::decode) {
        Some(Ok(Value::Array(items))) => items,
        _ => Vec::new(),
    }
}
