//! Migration from client-side `kubectl apply` to server-side apply: the annotation in which kubectl keeps the last
//! applied object counts as ownership, and is kept up to date.
//!
//! Source: apimachinery 1.37, `util/managedfields/internal/lastapplied*.go`.

use super::field_set::FieldSet;
use super::type_schema::TypeSchema;
use crate::value::{Map, Value, json};

/// The only manager that this concerns.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The limit for all keys and values together.
const ANNOTATIONS_SIZE_BYTES_MAX: usize = 256 * 1024;

/// The fields of `live` that still are as the client applied them last, by its annotation; `None` if that can't be
/// determined.
pub(super) fn owned_fields(live: &Value, types: &TypeSchema, version: &str) -> Option<FieldSet> {
    let text = annotations(live)?.get(ANNOTATION).and_then(Value::as_str).filter(|text| !text.is_empty())?;
    types.validate(live, false).ok()?;
    let last = json::decode(text.as_bytes()).ok()?;
    let has_kind = !last.str_at(&["kind"]).is_empty();
    if !has_kind || last.str_at(&["apiVersion"]) != version {
        return None;
    }
    types.validate(&last, false).ok()?;
    let changed = types.compare(&last, live);
    let owned = types.field_set(&last);
    Some(owned.difference(&changed.modified).difference(&changed.added).difference(&changed.removed))
}

/// Writes `applied` into the annotation, if `object` has one.
pub(super) fn refresh(object: &mut Value, applied: &Value) {
    let has_annotation = annotations(object)
        .and_then(|annotations| annotations.get(ANNOTATION))
        .and_then(Value::as_str)
        .is_some_and(|text| !text.is_empty());
    if !has_annotation {
        return;
    }
    let mut applied = applied.clone();
    if annotations(&applied).is_some() {
        if let Some(annotations) = applied.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) {
            annotations.remove(ANNOTATION);
        }
    } else if let Some(metadata) = applied.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("annotations");
    }
    let mut text = json::encode_to_string(&applied);
    text.push('\n');
    let Some(annotations) = object.at_mut(&["metadata", "annotations"]).and_then(Value::as_object_mut) else { return };
    annotations.insert(ANNOTATION, Value::String(text));
    let size = |(name, value): (&str, &Value)| name.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(size).sum::<usize>() > ANNOTATIONS_SIZE_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}

/// The annotations, if they are texts or null.
fn annotations(object: &Value) -> Option<&Map> {
    let annotations = object.at(&["metadata", "annotations"])?.as_object()?;
    annotations.values().all(|value| matches!(value, Value::String(_) | Value::Null)).then_some(annotations)
}
