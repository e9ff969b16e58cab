//! The names of the pods of a stateful set.

use crate::value::Value;

/// `apiVersion` and `kind` of a stateful set.
pub(super) const TYPE: (&str, &str) = ("apps/v1", "StatefulSet");

/// The name of the pod of a number.
pub(super) fn pod_name(set: &Value, ordinal: i64) -> String {
    format!("{}-{ordinal}", set.str_at(&["metadata", "name"]))
}

/// The number of a pod of this set.
pub(super) fn ordinal_of(set: &Value, pod: &Value) -> Option<i64> {
    let (parent, ordinal) = pod.str_at(&["metadata", "name"]).rsplit_once('-')?;
    ordinal.parse().ok().filter(|_| parent == set.str_at(&["metadata", "name"]))
}
