//! The conditions in a pod's status.

use crate::object;
use crate::value::Value;

/// The type of a pod that has a node.
pub const SCHEDULED: &str = "PodScheduled";
/// The type of a pod that may be sent requests.
pub const READY: &str = "Ready";

/// A condition as the server sets it.
pub struct Condition<'c> {
    /// Its type.
    pub kind: &'c str,
    /// `True`, `False` or `Unknown`.
    pub status: &'c str,
    /// Why so, in one word; empty for none.
    pub reason: &'c str,
    /// Why so, for people; empty for none.
    pub message: &'c str,
}

/// The first condition of a type.
pub fn find<'p>(pod: &'p Value, kind: &str) -> Option<&'p Value> {
    pod.items_at(&["status", "conditions"]).iter().find(|condition| condition.str_at(&["type"]) == kind)
}

/// Whether a condition of a type is true.
pub fn is_true(pod: &Value, kind: &str) -> bool {
    find(pod, kind).is_some_and(|condition| condition.str_at(&["status"]) == "True")
}

/// Sets a condition in place of the one of its type; the time of its last change stays if its status is the same.
pub fn set(pod: &mut Value, condition: &Condition<'_>, now: &str) {
    let changed = match find(pod, condition.kind) {
        Some(old) if old.str_at(&["status"]) == condition.status => old.get("lastTransitionTime").cloned(),
        _ => Some(Value::from(now)),
    };
    let mut set = object! {
        "type" => condition.kind,
        "status" => condition.status,
        "lastProbeTime" => Value::Null,
        "lastTransitionTime" => changed.unwrap_or_default(),
    };
    for (name, text) in [("reason", condition.reason), ("message", condition.message)] {
        if !text.is_empty() {
            set.make_object().insert(name, Value::from(text));
        }
    }
    let list = pod.make_object().entry("status").make_object().entry("conditions");
    if !matches!(list, Value::Array(_)) {
        *list = Value::Array(Vec::new());
    }
    let Value::Array(list) = list else { return };
    match list.iter_mut().find(|old| old.str_at(&["type"]) == condition.kind) {
        Some(old) => *old = set,
        None => list.push(set),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_change_is_that_of_another_status() {
        let mut pod = object! {};
        let condition = |status, reason| Condition { kind: SCHEDULED, status, reason, message: "" };
        set(&mut pod, &condition("False", "a"), "1");
        set(&mut pod, &condition("False", "b"), "2");
        let shown = |pod: &Value| {
            let condition = find(pod, SCHEDULED).expect("it was set");
            format!("{} {}", condition.str_at(&["reason"]), condition.str_at(&["lastTransitionTime"]))
        };
        assert_eq!(shown(&pod), "b 1");
        set(&mut pod, &condition("True", ""), "3");
        assert_eq!(shown(&pod), " 3");
        assert!(is_true(&pod, SCHEDULED));
    }
}
