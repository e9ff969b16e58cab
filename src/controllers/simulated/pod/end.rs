//! The end of a pod: it is deleted, its deadline has passed, or its containers have done what they were for.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::annotations::{COMPLETE, DELETE, FAIL, READY, delay, is_enabled, setting};
use super::start::bound_at;
use super::status::{Exit, ended, in_state, started_at};
use super::step::{Due, Step, due};
use crate::controllers::client::{int_at, time_at};
use crate::controllers::pods;
use crate::value::Value;

/// The annotation of Helm hooks, which Helm waits for.
const HOOK: &str = "helm.sh/hook";

/// A pod that is being deleted. If it has finalizers, its status first shows that it has ended.
pub(super) fn delete(pod: &Value, now: Timestamp) -> Step {
    let grace_s = int_at(pod, &["metadata", "deletionGracePeriodSeconds"]);
    let is_held = !pod.items_at(&["metadata", "finalizers"]).is_empty();
    if is_held && !pods::is_over(pod) && !pod.items_at(&["status", "containerStatuses"]).is_empty() {
        return Step::Status(ended(pod, &Exit { code: 137, reason: "Error", message: "" }, "", now));
    }
    if grace_s == 0 {
        return Step::Nothing;
    }
    match due(deletion_since(pod), delay(pod, DELETE, Duration::ZERO), now) {
        Due::Now => Step::Delete,
        Due::In(pause) => Step::After(pause),
    }
}

/// Since when an object is being deleted.
pub(crate) fn deletion_since(object: &Value) -> Option<Timestamp> {
    let grace = SignedDuration::from_secs(int_at(object, &["metadata", "deletionGracePeriodSeconds"]));
    time_at(object, &["metadata", "deletionTimestamp"])?.checked_sub(grace).ok()
}

/// Until when the pod may be active.
pub(super) fn deadline(pod: &Value, now: Timestamp) -> Option<Due> {
    let seconds = pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64)?;
    let started = time_at(pod, &["status", "startTime"]).or_else(|| bound_at(pod));
    Some(due(Some(started?), Duration::from_secs(u64::try_from(seconds).unwrap_or_default()), now))
}

/// The status of a pod that was active for too long.
pub(super) fn expired(pod: &Value, now: Timestamp) -> Value {
    let exit = Exit { code: 137, reason: "Error", message: "" };
    let mut status = ended(pod, &exit, "", now);
    let fields = status.make_object();
    fields.insert("phase", Value::from("Failed"));
    fields.insert("reason", Value::from("DeadlineExceeded"));
    fields.insert("message", Value::from("Pod was active on the node longer than the specified deadline"));
    status
}

/// A pod that ends successfully: one whose end is awaited, or one with a configured end.
pub(super) fn complete(pod: &Value, now: Timestamp) -> Step {
    let ends = is_awaited(pod) || !setting(pod, COMPLETE, "delay").is_empty();
    let may_end = matches!(pod.str_at(&["spec", "restartPolicy"]), "Never" | "OnFailure");
    let all_run = in_state(pod, "running").count() == pod.items_at(&["spec", "containers"]).len();
    let fails = setting(pod, FAIL, "") == "true";
    // No container waits for its probes to end; a pod that is told when it is ready ends after that.
    let is_told = !is_enabled(pod, READY) || !setting(pod, READY, "delay").is_empty();
    let runs = all_run && (!is_told || pods::is_ready(pod));
    if !(ends && may_end && runs) || fails || !is_enabled(pod, COMPLETE) {
        return Step::Nothing;
    }
    let started = in_state(pod, "running").filter_map(started_at).max();
    match due(started, delay(pod, COMPLETE, Duration::ZERO), now) {
        Due::In(pause) => Step::After(pause),
        Due::Now => Step::Status(ended(pod, &Exit { code: 0, reason: "Completed", message: "" }, "", now)),
    }
}

/// Whether the end of a pod is awaited: a Job that owns it, or Helm, whose hook it is.
fn is_awaited(pod: &Value) -> bool {
    let mut owners = pod.items_at(&["metadata", "ownerReferences"]).iter();
    owners.any(|owner| owner.str_at(&["kind"]) == "Job") || pod.at(&["metadata", "annotations", HOOK]).is_some()
}
