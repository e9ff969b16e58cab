//! The ranges from which cluster IPs are allocated.

use crate::value::Value;

/// The name of the ServiceCIDR with the ranges that the server was started with.
pub const DEFAULT: &str = "kubernetes";

/// Whether addresses are allocated from the range: it is not marked as unready, and is not being deleted.
pub fn is_ready(range: &Value) -> bool {
    let conditions = range.items_at(&["status", "conditions"]).iter();
    let ready = conditions.into_iter().find(|condition| condition.str_at(&["type"]) == "Ready");
    let stays = range.at(&["metadata", "deletionTimestamp"]).is_none_or(Value::is_null);
    stays && ready.is_none_or(|ready| ready.str_at(&["status"]) == "True")
}

/// The ranges of a ServiceCIDR.
pub fn ranges(object: &Value) -> Vec<&str> {
    object.items_at(&["spec", "cidrs"]).iter().map(|range| range.as_str().unwrap_or_default()).collect()
}
