//! The conditions in the status of a job.

use crate::value::Value;

/// Whether the job has a condition of this type that is `True`.
pub fn is_true(job: &Value, type_: &str) -> bool {
    has(job, type_, "True")
}

/// Whether the job has a condition of this type that is `False`.
pub fn is_false(job: &Value, type_: &str) -> bool {
    has(job, type_, "False")
}

pub fn is_finished(job: &Value) -> bool {
    is_true(job, "Complete") || is_true(job, "Failed")
}

fn has(job: &Value, type_: &str, status: &str) -> bool {
    let conditions = job.items_at(&["status", "conditions"]);
    conditions.iter().any(|it| it.str_at(&["type"]) == type_ && it.str_at(&["status"]) == status)
}
