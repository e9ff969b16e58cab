//! The fields that pods are selected by.
//!
//! Source: `ToSelectableFields` of the pod's strategy and the conversion of field labels of `pkg/apis/core/v1`.

use crate::value::Value;

/// Beside those of the metadata; `spec.host` is an old name of `spec.nodeName`.
pub const SELECTABLE: &[&str] = &[
    ".spec.host",
    ".spec.hostNetwork",
    ".spec.nodeName",
    ".spec.restartPolicy",
    ".spec.schedulerName",
    ".spec.serviceAccountName",
    ".status.nominatedNodeName",
    ".status.phase",
    ".status.podIP",
    ".status.podIPs",
];

/// The value of a field that is not the text under its own path.
pub fn select(pod: &Value, field: &str) -> Option<String> {
    match field {
        "spec.host" => Some(pod.str_at(&["spec", "nodeName"]).to_owned()),
        "spec.hostNetwork" => {
            let is_host = pod.at(&["spec", "hostNetwork"]).and_then(Value::as_bool).unwrap_or_default();
            Some(is_host.to_string())
        }
        "status.podIP" => {
            let first = pod.items_at(&["status", "podIPs"]).first();
            Some(first.map(|first| first.str_at(&["ip"]).to_owned()).unwrap_or_default())
        }
        // It may be requested, but no pod has it.
        "status.podIPs" => Some(String::new()),
        _ => None,
    }
}
