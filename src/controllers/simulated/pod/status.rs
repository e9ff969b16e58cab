//! The status of a simulated pod: its containers as they start and end, and its conditions.
//!
//! Conditions and reasons: the kubelet of Kubernetes 1.37.

use std::time::Duration;

use jiff::Timestamp;

use super::probes::Onset;
use crate::controllers::client::{time_at, written};
use crate::kinds::pod_object::conditions::{self, Condition};
use crate::meta::time;
use crate::object;
use crate::value::Value;

/// The name that the runtime gives a container.
pub(super) fn container_id(pod: &Value, container: &Value) -> String {
    format!("simulated://{}/{}", pod.str_at(&["metadata", "uid"]), container.str_at(&["name"]))
}

/// The status of a container that runs for the first time.
pub(super) fn running(pod: &Value, container: &Value, onset: Onset, now: Timestamp) -> Value {
    let image = container.str_at(&["image"]);
    object! {
        "name" => container.str_at(&["name"]),
        "image" => image,
        "imageID" => image,
        "containerID" => container_id(pod, container),
        "ready" => onset.ready == Some(Duration::ZERO),
        "started" => onset.started.is_zero(),
        "restartCount" => 0,
        "lastState" => object! {},
        "state" => object! { "running" => object! { "startedAt" => written(now) } },
    }
}

/// How a container ends.
pub(super) struct Exit<'e> {
    pub code: i64,
    pub reason: &'e str,
    pub message: &'e str,
}

impl Exit<'_> {
    pub fn state(&self, started: Option<Timestamp>, now: Timestamp, id: String) -> Value {
        let mut terminated = object! {
            "exitCode" => self.code,
            "reason" => self.reason,
            "startedAt" => written(started.unwrap_or(now)),
            "finishedAt" => written(now),
            "containerID" => id,
        };
        if !self.message.is_empty() {
            terminated.make_object().insert("message", Value::from(self.message));
        }
        object! { "terminated" => terminated }
    }
}

/// The containers of a pod that are in a state: `running`, `waiting` or `terminated`.
pub(super) fn in_state<'p>(pod: &'p Value, state: &'p str) -> impl Iterator<Item = &'p Value> {
    let statuses = pod.items_at(&["status", "containerStatuses"]).iter();
    statuses.filter(move |status| is_in(status, state))
}

pub(super) fn is_in(status: &Value, state: &str) -> bool {
    status.at(&["state", state]).is_some_and(|state| !state.is_null())
}

pub(super) fn started_at(status: &Value) -> Option<Timestamp> {
    time_at(status, &["state", "running", "startedAt"])
}

/// The status of a pod whose containers have ended: `only` one of them with `exit`, or all.
pub(super) fn ended(pod: &Value, exit: &Exit<'_>, only: &str, now: Timestamp) -> Value {
    let mut changed = pod.clone();
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        let Some(Value::Array(statuses)) = changed.at_mut(&["status", list]) else { continue };
        for status in statuses.iter_mut().filter(|status| status.at(&["state", "terminated"]).is_none()) {
            let is_it = list == "containerStatuses" && (only.is_empty() || status.str_at(&["name"]) == only);
            let well = Exit { code: 0, reason: "Completed", message: "" };
            let how = if is_it { exit } else { &well };
            let state = how.state(started_at(status), now, status.str_at(&["containerID"]).to_owned());
            let fields = status.make_object();
            fields.insert("ready", Value::Bool(false));
            fields.insert("started", Value::Bool(false));
            fields.insert("state", state);
        }
    }
    let (phase, reason) = if exit.code == 0 { ("Succeeded", "PodCompleted") } else { ("Failed", "PodFailed") };
    changed.make_object().entry("status").make_object().insert("phase", Value::from(phase));
    set(&mut changed, "PodReadyToStartContainers", ("False", "", ""), now);
    set(&mut changed, "Initialized", ("True", if exit.code == 0 { reason } else { "" }, ""), now);
    for condition in ["Ready", "ContainersReady"] {
        set(&mut changed, condition, ("False", reason, ""), now);
    }
    changed.get("status").cloned().unwrap_or_default()
}

/// The pod with the status of one of its containers changed.
pub(super) fn with_container(pod: &Value, name: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut changed = pod.clone();
    if let Some(Value::Array(statuses)) = changed.at_mut(&["status", "containerStatuses"])
        && let Some(status) = statuses.iter_mut().find(|status| status.str_at(&["name"]) == name)
    {
        change(status);
    }
    changed
}

/// The status of a pod with conditions that match the readiness of its containers and its readiness gates.
pub(super) fn with_readiness(mut pod: Value, now: Timestamp) -> Value {
    let sidecars = pod.items_at(&["status", "initContainerStatuses"]).iter().filter(|status| is_in(status, "running"));
    let unready: Vec<&str> = sidecars
        .chain(pod.items_at(&["status", "containerStatuses"]))
        .filter(|status| status.get("ready").and_then(Value::as_bool) != Some(true))
        .map(|status| status.str_at(&["name"]))
        .collect();
    let closed: Vec<String> = pod
        .items_at(&["spec", "readinessGates"])
        .iter()
        .map(|gate| gate.str_at(&["conditionType"]))
        .filter(|gate| !conditions::is_true(&pod, gate))
        .map(|gate| format!("corresponding condition of pod readiness gate {gate:?} does not exist."))
        .collect();
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    let containers =
        if unready.is_empty() { ("True", "", "") } else { ("False", "ContainersNotReady", message.as_str()) };
    let gates = closed.join(", ");
    let ready = if unready.is_empty() && !closed.is_empty() {
        ("False", "ReadinessGatesNotReady", gates.as_str())
    } else {
        containers
    };
    set(&mut pod, "ContainersReady", containers, now);
    set(&mut pod, "Ready", ready, now);
    pod.get("status").cloned().unwrap_or_default()
}

pub(super) fn set(pod: &mut Value, kind: &str, (status, reason, message): (&str, &str, &str), now: Timestamp) {
    conditions::set(pod, &Condition { kind, status, reason, message }, &time::format_seconds(now));
}
