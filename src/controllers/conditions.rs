//! Conditions in the status of workloads.

use crate::object;
use crate::value::Value;

/// The desired content of a condition.
#[derive(Clone, Debug)]
pub(super) struct DesiredCondition<'s> {
    pub type_: &'s str,
    pub status: &'s str,
    pub reason: &'s str,
    pub message: &'s str,
}

/// The condition of a type.
pub(super) fn find<'c>(conditions: &'c [Value], type_: &str) -> Option<&'c Value> {
    conditions.iter().find(|condition| condition.str_at(&["type"]) == type_)
}

/// Whether the condition of a type is true.
pub(super) fn holds(conditions: &[Value], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.str_at(&["status"]) == "True")
}

/// The conditions in the status of an object.
pub(super) fn of(object: &Value) -> &[Value] {
    object.items_at(&["status", "conditions"])
}

/// Whether a Job has come to its end.
pub(super) fn is_finished(job: &Value) -> bool {
    holds(of(job), "Complete") || holds(of(job), "Failed")
}

/// Sets a condition; the time of its last change is kept if its status is the same. A condition with the same content
/// is kept as it is.
pub(super) fn set(conditions: &mut Vec<Value>, said: &DesiredCondition<'_>, now: &Value) {
    let mut condition = object! {
        "type" => said.type_,
        "status" => said.status,
        "lastTransitionTime" => now.clone(),
    };
    let fields = condition.make_object();
    for (name, text) in [("reason", said.reason), ("message", said.message)] {
        if !text.is_empty() {
            fields.insert(name, Value::from(text));
        }
    }
    let Some(known) = conditions.iter_mut().find(|known| known.str_at(&["type"]) == said.type_) else {
        return conditions.push(condition);
    };
    if let Some(since) = known.get("lastTransitionTime").filter(|_| known.str_at(&["status"]) == said.status) {
        condition.make_object().insert("lastTransitionTime", since.clone());
    }
    *known = condition;
}

/// Removes the condition of a type.
pub(super) fn remove(conditions: &mut Vec<Value>, type_: &str) {
    conditions.retain(|condition| condition.str_at(&["type"]) != type_);
}

/// Puts conditions into a status; without any, the list is removed.
pub(super) fn put(status: &mut Value, conditions: Vec<Value>) {
    let fields = status.make_object();
    if conditions.is_empty() {
        _ = fields.remove("conditions");
    } else {
        _ = fields.insert("conditions", Value::Array(conditions));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_change_is_that_of_another_status() {
        let mut conditions = Vec::new();
        let said = |status| DesiredCondition { type_: "T", status, reason: "R", message: "" };
        for (status, now, since) in [("True", "1", "1"), ("True", "2", "1"), ("False", "3", "3")] {
            set(&mut conditions, &said(status), &Value::from(now));
            assert_eq!(conditions[0].str_at(&["lastTransitionTime"]), since);
            assert_eq!(holds(&conditions, "T"), status == "True");
        }
        remove(&mut conditions, "T");
        let mut status = object! { "conditions" => Vec::new() };
        put(&mut status, conditions);
        assert_eq!(status, object! {});
    }
}
