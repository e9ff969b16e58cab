//! The errors of the status of a job. Most rules only apply to fields that a write changes, so that other fields don't
//! block it.
//!
//! Source: `validateJobStatus` and `getStatusValidationOptions` of Kubernetes 1.37.

use std::collections::HashSet;

use super::conditions::{is_false, is_finished, is_true};
use super::{indexes, is_indexed};
use crate::kinds::workloads;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::time;
use crate::value::Value;

/// A status that replaces another.
struct StatusChange<'a> {
    new: &'a Value,
    old: &'a Value,
}

impl StatusChange<'_> {
    /// Whether one of the fields of the status differs.
    fn touches(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.new.at(&["status", name]) != self.old.at(&["status", name]))
    }

    /// Whether the truth of one of the conditions changes.
    fn turns(&self, types: &[&str]) -> bool {
        types.iter().any(|type_| is_true(self.new, type_) != is_true(self.old, type_))
    }

    fn finishes(&self) -> bool {
        is_finished(self.new) != is_finished(self.old)
    }

    /// Whether the job goes on after it was suspended.
    fn resumes(&self) -> bool {
        is_true(self.old, "Suspended") && is_false(self.new, "Suspended")
    }
}

/// The errors of the status of `new`, which replaces that of `old`.
pub fn validate(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    let change = StatusChange { new, old };
    let root = FieldRef::root(new);
    let (spec, status) = (root.field("spec"), root.field("status"));
    let mut errors =
        workloads::status::not_negative(&status, &["active", "succeeded", "failed", "ready", "terminating"]);
    errors.extend(validate_uncounted(&status.field("uncountedTerminatedPods")));
    // The stricter rules came with jobs that other controllers manage.
    let is_strict = minor.opens(Gate::JobManagedBy);
    if is_strict {
        errors.extend(validate_end(&change, &status));
        errors.extend(validate_finished(&change, &spec, &status));
        errors.extend(validate_indexes(&change, &spec, &status));
        errors.extend(validate_pods(&change, &status));
    }
    errors.extend(validate_success(&change, &spec, &status));
    if is_strict {
        errors.extend(validate_kept(&change, &spec, &status));
    }
    errors
}

/// Each uid occurs once, in one of the two lists.
fn validate_uncounted(pods: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for name in ["succeeded", "failed"] {
        for uid in pods.field(name).items() {
            if uid.is_empty() {
                errors.push(uid.invalid("must not be empty"));
            } else if !seen.insert(uid.text().to_owned()) {
                errors.push(uid.duplicate());
            }
        }
    }
    errors
}

fn condition_error(status: &FieldRef<'_>, why: &str) -> Error {
    Error::invalid_omitted(&status.path().child("conditions"), why)
}

/// How a job ends: its conditions and the time go together.
fn validate_end(change: &StatusChange<'_>, status: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let holds = |type_: &str| is_true(change.new, type_);
    let (start, end) = (status.field("startTime"), status.field("completionTime"));
    let mut refuse = |applies: bool, error: &dyn Fn() -> Error| errors.extend(applies.then(error));
    refuse(change.turns(&["Complete", "Failed"]) && holds("Complete") && holds("Failed"), &|| {
        condition_error(status, "cannot set Complete=True and Failed=true conditions")
    });
    let both = holds("Complete") && holds("FailureTarget");
    refuse(change.turns(&["Complete", "FailureTarget"]) && both, &|| {
        condition_error(status, "cannot set Complete=True and FailureTarget=true conditions")
    });
    let end_changes = change.turns(&["Complete"]) || change.touches(&["completionTime"]);
    refuse(end_changes && end.is_set() && !holds("Complete"), &|| {
        end.invalid("cannot set completionTime when there is no Complete=True condition")
    });
    refuse(end_changes && !end.is_set() && holds("Complete"), &|| {
        end.required("completionTime is required for Complete jobs")
    });
    refuse(change.touches(&["startTime", "completionTime"]) && is_before(&end, &start), &|| {
        end.invalid("must be equal to or after `startTime`")
    });
    let fails = change.turns(&["Failed"]) || change.touches(&["failedIndexes"]);
    refuse(fails && holds("Failed") && !holds("FailureTarget"), &|| {
        condition_error(status, "cannot set Failed=True condition without the FailureTarget=true condition")
    });
    let succeeds = change.turns(&["Complete", "SuccessCriteriaMet"]);
    refuse(succeeds && holds("Complete") && !holds("SuccessCriteriaMet"), &|| {
        condition_error(status, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
    });
    errors
}

/// Whether both times are there, the one before the other.
fn is_before(time: &FieldRef<'_>, other: &FieldRef<'_>) -> bool {
    let read = |field: &FieldRef<'_>| time::parse(field.text()).ok().map(|moment| moment.unix_seconds);
    matches!((read(time), read(other)), (Some(time), Some(other)) if time < other)
}

/// A job that is over has no pods that run or that wait to be counted, and has begun.
fn validate_finished(change: &StatusChange<'_>, spec: &FieldRef<'_>, status: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if !is_finished(change.new) {
        return errors;
    }
    let finishes = change.finishes();
    let (active, start) = (status.field("active"), status.field("startTime"));
    if (finishes || change.touches(&["active"])) && active.int() > 0 {
        errors.push(active.invalid("active>0 is invalid for finished job"));
    }
    let completions = spec.field("completions");
    let never_began = spec.field("suspend").is_true() && completions.is_set() && completions.int() == 0;
    if (finishes || change.touches(&["startTime"])) && !never_began && !start.is_set() {
        errors.push(start.required("startTime is required for finished job"));
    }
    let pods = status.field("uncountedTerminatedPods");
    let has_pods = pods.field("succeeded").len() + pods.field("failed").len() > 0;
    if (finishes || change.touches(&["uncountedTerminatedPods"])) && has_pods {
        errors.push(workloads::invalid_struct(
            &pods,
            "batch.v1.UncountedTerminatedPods",
            "must be empty for finished job",
        ));
    }
    errors
}

fn validate_indexes(change: &StatusChange<'_>, spec: &FieldRef<'_>, status: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (completed, failed) = (status.field("completedIndexes"), status.field("failedIndexes"));
    let (completed_changes, failed_changes) =
        (change.touches(&["completedIndexes"]), change.touches(&["failedIndexes"]));
    let completions = spec.field("completions");
    let per_index = spec.field("backoffLimitPerIndex").is_set();
    let malformed = |field: &FieldRef<'_>, name: &str| {
        let error = indexes::count(field.text(), completions.int()).err()?;
        Some(field.invalid(format!("error parsing {name}: {error}")))
    };
    if completed_changes && completions.is_set() {
        errors.extend(malformed(&completed, "completedIndexes"));
    }
    if failed_changes && completions.is_set() && per_index && failed.is_set() {
        errors.extend(malformed(&failed, "failedIndexes"));
    }
    if completed_changes && !completed.is_empty() && !is_indexed(spec) {
        errors.push(completed.invalid("cannot set non-empty completedIndexes when non-indexed completion mode"));
    }
    if failed_changes && !per_index && failed.is_set() {
        errors.push(failed.invalid("cannot set non-null failedIndexes when backoffLimitPerIndex is null"));
    }
    if (failed_changes || completed_changes) && completions.is_set() && failed.is_set() {
        let common = indexes::overlap(completed.text(), failed.text(), completions.int());
        let why = |at| format!("failedIndexes and completedIndexes overlap at index: {at}");
        errors.extend(common.map(|at| failed.invalid(why(at))));
    }
    errors
}

fn validate_pods(change: &StatusChange<'_>, status: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (terminating, ready) = (status.field("terminating"), status.field("ready"));
    let terminates = change.finishes() || change.touches(&["terminating"]);
    if terminates && terminating.int() > 0 && is_finished(change.new) {
        errors.push(terminating.invalid("terminating>0 is invalid for finished job"));
    }
    if change.touches(&["ready", "active"]) && ready.is_set() && ready.int() > status.field("active").int() {
        errors.push(ready.invalid("cannot set more ready pods than active"));
    }
    errors
}

fn validate_success(change: &StatusChange<'_>, spec: &FieldRef<'_>, status: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let holds = |type_: &str| is_true(change.new, type_);
    let is_met = holds("SuccessCriteriaMet");
    if is_met && holds("Failed") {
        let why = "cannot set SuccessCriteriaMet=True and Failed=true conditions";
        errors.push(condition_error(status, why));
    }
    if is_met && holds("FailureTarget") {
        let why = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions";
        errors.push(condition_error(status, why));
    }
    if spec.field("successPolicy").is_set() && !is_met && holds("Complete") {
        let why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        errors.push(condition_error(status, why));
    }
    errors
}

/// Facts that were once reported must not be taken back.
fn validate_kept(change: &StatusChange<'_>, spec: &FieldRef<'_>, status: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for type_ in ["Failed", "Complete", "FailureTarget"] {
        if is_true(change.old, type_) && !is_true(change.new, type_) {
            errors.push(condition_error(status, &format!("cannot disable the terminal {type_}=True condition")));
        }
    }
    errors.extend(validate_counters(change, spec, status));
    errors.extend(validate_times(change, spec, status));
    let (is_met, was_met) = (is_true(change.new, "SuccessCriteriaMet"), is_true(change.old, "SuccessCriteriaMet"));
    if was_met && !is_met {
        errors.push(condition_error(status, "cannot disable the SuccessCriteriaMet=True condition"));
    }
    if is_true(change.old, "Complete") && !was_met && is_met {
        let why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        errors.push(condition_error(status, why));
    }
    errors
}

/// The counters do not go back, unless the job can be made smaller.
fn validate_counters(change: &StatusChange<'_>, spec: &FieldRef<'_>, status: &FieldRef<'_>) -> Vec<Error> {
    let old = FieldRef::root(change.old);
    let old = old.field("status");
    let is_elastic = is_indexed(spec) && spec.field("completions").value() == spec.field("parallelism").value();
    let decreased = |name: &str| {
        let field = status.field(name);
        let error = || Error::invalid(field.path(), field.int(), format!("cannot decrease the {name} counter"));
        (field.int() < old.field(name).int()).then(error)
    };
    let succeeded = if is_elastic { None } else { decreased("succeeded") };
    decreased("failed").into_iter().chain(succeeded).collect()
}

fn validate_times(change: &StatusChange<'_>, spec: &FieldRef<'_>, status: &FieldRef<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let was_set = |name: &str| change.old.at(&["status", name]).is_some();
    let end = status.field("completionTime");
    if end.is_set() && was_set("completionTime") && change.touches(&["completionTime"]) {
        errors.push(end.invalid("field is immutable"));
    }
    let start_changes = was_set("startTime") && change.touches(&["startTime"]);
    if start_changes && !change.resumes() && !spec.field("suspend").is_true() {
        let start = status.field("startTime");
        let value = start.value().cloned().unwrap_or(Value::Null);
        errors.push(Error::invalid(start.path(), value, "field is immutable for unsuspended job once set"));
    }
    errors
}
