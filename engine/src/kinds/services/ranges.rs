//! The ranges that cluster IPs are allocated of.

use crate::value::Value;

/// The range that the server was started with.
pub const DEFAULT: &str = "kubernetes";

/// Whether addresses are allocated of the range: nobody says that it is not ready, and it stays.
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
