//! The status of a Deployment: its counts, and whether it progresses.
//!
//! Source: `syncRolloutStatus` and `calculateStatus` of `pkg/controller/deployment`, release 1.37.

use std::time::Duration;

use jiff::Timestamp;

use super::figures::{self, Wanted, replicas};
use crate::controllers::client::{int_at, left, time_at, written};
use crate::controllers::conditions::{self, DesiredCondition};
use crate::object;
use crate::value::Value;

const PROGRESSING: &str = "Progressing";
/// The reason of a rollout that is complete.
const COMPLETE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
/// The deadline that stands for no deadline.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// A Deployment with its ReplicaSets.
#[derive(Clone, Copy)]
pub(super) struct ObservedDeployment<'s> {
    pub deployment: &'s Value,
    pub new: Option<&'s Value>,
    /// The oldest first.
    pub old: &'s [Value],
    /// How often the name of its ReplicaSet was taken.
    pub collisions: Option<i64>,
}

impl<'s> ObservedDeployment<'s> {
    fn all(self) -> impl Iterator<Item = &'s Value> {
        self.old.iter().chain(self.new)
    }
}

/// The progress deadline in seconds, if there is one.
fn deadline_s(deployment: &Value) -> Option<i64> {
    let seconds = deployment.at(&["spec", "progressDeadlineSeconds"]).and_then(Value::as_i64);
    seconds.filter(|seconds| *seconds != NO_DEADLINE)
}

/// The status with its counts and whether enough is available; the condition `Progressing` stays as it was.
pub(super) fn counted(seen: ObservedDeployment<'_>, now: Timestamp) -> Value {
    let ObservedDeployment { deployment, new, .. } = seen;
    let count = |field: &'static str| -> i64 { seen.all().map(|set| int_at(set, &["status", field])).sum() };
    let available = count("availableReplicas");
    let total = figures::sum(seen.all(), replicas);
    let counts = [
        ("replicas", count("replicas")),
        ("updatedReplicas", new.map_or(0, |new| int_at(new, &["status", "replicas"]))),
        ("readyReplicas", count("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", (total - available).max(0)),
    ];
    let mut status = object! {
        "observedGeneration" => int_at(deployment, &["metadata", "generation"]),
        "terminatingReplicas" => count("terminatingReplicas"),
    };
    let fields = status.make_object();
    counts.into_iter().filter(|(_, count)| *count > 0).for_each(|(name, count)| _ = fields.insert(name, count.into()));
    if let Some(collisions) = seen.collisions {
        fields.insert("collisionCount", Value::Int(collisions));
    }
    let mut conditions = conditions::of(deployment).to_vec();
    let said = if available >= Wanted::of(deployment).min_available() {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    say(&mut conditions, "Available", said, now);
    conditions::put(&mut status, conditions);
    status
}

/// [`counted`], with the condition `Progressing` of the rollout.
pub(super) fn of_rollout(seen: ObservedDeployment<'_>, now: Timestamp) -> Value {
    let ObservedDeployment { deployment, new, .. } = seen;
    let mut status = counted(seen, now);
    let mut conditions = status.items_at(&["conditions"]).to_vec();
    let known = conditions::find(&conditions, PROGRESSING).cloned();
    let count = |field: &str| int_at(&status, &[field]);
    let is_done = count("replicas") == count("updatedReplicas")
        && known.as_ref().is_some_and(|known| known.str_at(&["reason"]) == COMPLETE);
    let name = deployment.str_at(&["metadata", "name"]);
    let what = match new {
        Some(new) => format!("ReplicaSet {:?}", new.str_at(&["metadata", "name"])),
        None => format!("Deployment {name:?}"),
    };
    match deadline_s(deployment) {
        None => conditions::remove(&mut conditions, PROGRESSING),
        Some(_) if is_done => {}
        Some(_) if is_complete(deployment, &status) => {
            let message = format!("{what} has successfully progressed.");
            say(&mut conditions, PROGRESSING, ("True", COMPLETE, &message), now);
        }
        Some(_) if has_progressed(deployment, &status) => {
            // This is set even if the condition is already true: the deadline counts from the time of the last update.
            let since = known.filter(|known| known.str_at(&["status"]) == "True");
            conditions::remove(&mut conditions, PROGRESSING);
            say(&mut conditions, PROGRESSING, ("True", "ReplicaSetUpdated", &format!("{what} is progressing.")), now);
            let since = since.and_then(|known| known.get("lastTransitionTime").cloned());
            if let (Some(since), Some(last)) = (since, conditions.last_mut()) {
                last.make_object().insert("lastTransitionTime", since);
            }
        }
        Some(seconds) if has_timed_out(known.as_ref(), seconds, now) => {
            let message = format!("{what} has timed out progressing.");
            say(&mut conditions, PROGRESSING, ("False", TIMED_OUT, &message), now);
        }
        Some(_) => {}
    }
    match failure(seen) {
        Some(failure) => {
            let said = (failure.str_at(&["status"]), failure.str_at(&["reason"]), failure.str_at(&["message"]));
            say(&mut conditions, "ReplicaFailure", said, now);
        }
        None => conditions::remove(&mut conditions, "ReplicaFailure"),
    }
    conditions::put(&mut status, conditions);
    status
}

/// The failure to create replicas: of the new ReplicaSet, or else of an old one.
fn failure<'s>(seen: ObservedDeployment<'s>) -> Option<&'s Value> {
    let of = |set: &'s Value| conditions::find(conditions::of(set), "ReplicaFailure");
    seen.new.and_then(of).or_else(|| seen.old.iter().find_map(of))
}

/// Whether all replicas are new and available.
pub(super) fn is_complete(deployment: &Value, status: &Value) -> bool {
    let wanted = int_at(deployment, &["spec", "replicas"]);
    let all_are = |field: &str| int_at(status, &[field]) == wanted;
    let observed = int_at(status, &["observedGeneration"]) >= int_at(deployment, &["metadata", "generation"]);
    all_are("updatedReplicas") && all_are("replicas") && all_are("availableReplicas") && observed
}

/// Whether more is new, ready or available, or less is old, than it was before.
fn has_progressed(deployment: &Value, status: &Value) -> bool {
    let before = |field: &str| int_at(deployment, &["status", field]);
    let now = |field: &str| int_at(status, &[field]);
    now("updatedReplicas") > before("updatedReplicas")
        || now("replicas") - now("updatedReplicas") < before("replicas") - before("updatedReplicas")
        || now("readyReplicas") > before("readyReplicas")
        || now("availableReplicas") > before("availableReplicas")
}

fn has_timed_out(progressing: Option<&Value>, deadline_s: i64, now: Timestamp) -> bool {
    match progressing.map(|known| (known.str_at(&["reason"]), time_at(known, &["lastUpdateTime"]))) {
        None | Some((COMPLETE, _)) => false,
        Some((TIMED_OUT, _)) => true,
        Some((_, since)) => since.is_some_and(|since| left(since, deadline_s, now).is_none()),
    }
}

/// When the deadline of a rollout without progress passes, so that it must be checked again.
pub(super) fn deadline(deployment: &Value, status: &Value, now: Timestamp) -> Option<Duration> {
    let seconds = deadline_s(deployment)?;
    let progressing = conditions::find(status.items_at(&["conditions"]), PROGRESSING)?;
    if is_complete(deployment, status) || [COMPLETE, TIMED_OUT].contains(&progressing.str_at(&["reason"])) {
        return None;
    }
    let since = time_at(progressing, &["lastUpdateTime"])?;
    // One second later, as times have whole seconds.
    Some(left(since, seconds, now).unwrap_or_default() + Duration::from_secs(1))
}

/// Sets the condition that a rollout is paused or resumed; `None` if it is already set.
pub(super) fn paused(deployment: &Value, now: Timestamp) -> Option<Value> {
    deadline_s(deployment)?;
    let mut conditions = conditions::of(deployment).to_vec();
    let reason = conditions::find(&conditions, PROGRESSING).map(|known| known.str_at(&["reason"]).to_owned());
    let is_paused = deployment.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true);
    let says_so = reason.as_deref() == Some("DeploymentPaused");
    if reason.as_deref() == Some(TIMED_OUT) || is_paused == says_so {
        return None;
    }
    let said = if is_paused {
        ("Unknown", "DeploymentPaused", "Deployment is paused")
    } else {
        ("Unknown", "DeploymentResumed", "Deployment is resumed")
    };
    say(&mut conditions, PROGRESSING, said, now);
    Some(with_conditions(deployment, conditions))
}

/// Sets the condition with the outcome for the new ReplicaSet; `None` if it is not needed.
pub(super) fn said_of_new(deployment: &Value, said: (&str, &str, &str), now: Timestamp) -> Option<Value> {
    deadline_s(deployment)?;
    let mut conditions = conditions::of(deployment).to_vec();
    say(&mut conditions, PROGRESSING, said, now);
    Some(with_conditions(deployment, conditions))
}

fn with_conditions(deployment: &Value, conditions: Vec<Value>) -> Value {
    let mut status = deployment.get("status").cloned().unwrap_or_default();
    conditions::put(&mut status, conditions);
    status
}

/// Sets a condition; one with the same status and reason stays as it is.
fn say(conditions: &mut Vec<Value>, type_: &str, (status, reason, message): (&str, &str, &str), now: Timestamp) {
    let known = conditions::find(conditions, type_);
    let says_so = |known: &Value| known.str_at(&["status"]) == status && known.str_at(&["reason"]) == reason;
    if known.is_some_and(says_so) {
        return;
    }
    let now = written(now);
    conditions::set(conditions, &DesiredCondition { type_, status, reason, message }, &now);
    if let Some(condition) = conditions.iter_mut().find(|condition| condition.str_at(&["type"]) == type_) {
        condition.make_object().insert("lastUpdateTime", now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    fn deployment(status: &str) -> Value {
        read(&format!(
            "metadata: {{name: d, generation: 1}}\nspec: {{replicas: 2, progressDeadlineSeconds: 60, \
             strategy: {{type: RollingUpdate, rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}}}}}\nstatus: {status}"
        ))
    }

    fn set(count: i64, available: i64) -> Value {
        read(&format!(
            "metadata: {{name: s}}\nspec: {{replicas: {count}}}\n\
             status: {{replicas: {count}, readyReplicas: {available}, availableReplicas: {available}}}"
        ))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).expect("a time")
    }

    fn reasons(status: &Value) -> Vec<String> {
        let conditions = status.items_at(&["conditions"]).iter();
        conditions
            .map(|it| format!("{}={} {}", it.str_at(&["type"]), it.str_at(&["status"]), it.str_at(&["reason"])))
            .collect()
    }

    #[test]
    fn a_rollout_goes_on_until_it_is_complete_or_too_late() {
        let check = |deployment: &Value, new: &Value, second: i64| {
            of_rollout(ObservedDeployment { deployment, new: Some(new), old: &[], collisions: None }, at(second))
        };
        let first = check(&deployment("{}"), &set(2, 0), 0);
        let unavailable = "Available=False MinimumReplicasUnavailable";
        assert_eq!(reasons(&first), [unavailable, "Progressing=True ReplicaSetUpdated"]);
        let mut seen = deployment("{}");
        seen.make_object().insert("status", first.clone());
        assert_eq!(deadline(&seen, &first, at(1)), Some(Duration::from_secs(60)));
        let late = check(&seen, &set(2, 0), 60);
        assert_eq!(reasons(&late), [unavailable, "Progressing=False ProgressDeadlineExceeded"]);
        let done = check(&seen, &set(2, 2), 30);
        let available = "Available=True MinimumReplicasAvailable";
        assert_eq!(reasons(&done), [available, "Progressing=True NewReplicaSetAvailable"]);
        let message = done.items_at(&["conditions"])[1].str_at(&["message"]);
        assert_eq!(message, "ReplicaSet \"s\" has successfully progressed.");
        assert_eq!(deadline(&seen, &done, at(30)), None);
        seen.make_object().insert("status", done);
        // A complete rollout stays complete when a pod is lost.
        assert_eq!(reasons(&check(&seen, &set(2, 1), 99)), [unavailable, "Progressing=True NewReplicaSetAvailable"]);
    }

    #[test]
    fn a_pause_is_told_once() {
        let mut seen = deployment("{}");
        assert_eq!(paused(&seen, at(0)), None);
        seen.at_mut(&["spec"]).expect("it is there").make_object().insert("paused", Value::Bool(true));
        let status = paused(&seen, at(0)).expect("it is told");
        assert_eq!(reasons(&status), ["Progressing=Unknown DeploymentPaused"]);
        seen.make_object().insert("status", status);
        assert_eq!(paused(&seen, at(1)), None);
    }
}
