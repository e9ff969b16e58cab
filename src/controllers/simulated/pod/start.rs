//! The start of a pod, and of the ephemeral containers that are added to it.

use std::collections::HashSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::annotations::{CREATE, delay, onset};
use super::probes::Onset;
use super::status::{Exit, container_id, running, set, with_readiness};
use super::step::{Due, Step, due};
use crate::controllers::client::{time_at, written};
use crate::controllers::simulated::addresses::Addresses;
use crate::kinds::pod_object::conditions;
use crate::object;
use crate::value::Value;

/// A pod that has a node. Sidecars delay the containers after them until they are started: their status is set
/// only then.
pub(super) fn start(pod: &Value, at: Addresses, now: Timestamp) -> Step {
    let init = pod.items_at(&["spec", "initContainers"]);
    let held = init.iter().fold(Duration::ZERO, |held, container| held.saturating_add(hold(pod, container)));
    if let Due::In(pause) = due(bound_at(pod), delay(pod, CREATE, Duration::ZERO).saturating_add(held), now) {
        return Step::After(pause);
    }
    let begun = before(now, held);
    let mut started = begun;
    let init: Vec<Value> = init
        .iter()
        .map(|container| {
            let mut status = running(pod, container, onset(pod, container), started);
            let hold = hold(pod, container);
            let fields = status.make_object();
            if is_sidecar(container) {
                fields.insert("started", Value::Bool(true));
            } else {
                let exit = Exit { code: 0, reason: "Completed", message: "" };
                fields.insert("ready", Value::Bool(true));
                fields.insert("started", Value::Bool(false));
                fields.insert("state", exit.state(Some(started), started, container_id(pod, container)));
            }
            started = started.checked_add(hold).unwrap_or(now);
            status
        })
        .collect();
    let containers = pod.items_at(&["spec", "containers"]).iter();
    let containers = containers.map(|container| running(pod, container, onset(pod, container), now)).collect();
    let address =
        if pod.at(&["spec", "hostNetwork"]).and_then(Value::as_bool) == Some(true) { at.host } else { at.pod };
    let mut changed = pod.clone();
    let fields = changed.make_object().entry("status").make_object();
    for (name, address) in [("hostIP", at.host), ("podIP", address)] {
        let address = address.to_string();
        fields.insert(format!("{name}s"), Value::Array(vec![object! { "ip" => address.as_str() }]));
        fields.insert(name, Value::String(address));
    }
    fields.insert("phase", Value::from("Running"));
    fields.insert("startTime", written(begun));
    fields.insert("containerStatuses", Value::Array(containers));
    if !init.is_empty() {
        fields.insert("initContainerStatuses", Value::Array(init));
    }
    set(&mut changed, "PodReadyToStartContainers", ("True", "", ""), now);
    set(&mut changed, "Initialized", ("True", "", ""), now);
    Step::Status(with_readiness(changed, now))
}

/// Whether an init container goes on while the others run.
fn is_sidecar(container: &Value) -> bool {
    container.str_at(&["restartPolicy"]) == "Always"
}

/// How long an init container delays the containers after it.
fn hold(pod: &Value, container: &Value) -> Duration {
    if is_sidecar(container) { onset(pod, container).started } else { Duration::ZERO }
}

/// The time `length` ago.
fn before(now: Timestamp, length: Duration) -> Timestamp {
    SignedDuration::try_from(length).ok().and_then(|length| now.checked_sub(length).ok()).unwrap_or(now)
}

/// Since when the pod has its node: since its creation if there is no condition, as for a pod that was created with a
/// node name.
pub(super) fn bound_at(pod: &Value) -> Option<Timestamp> {
    let bound = conditions::find(pod, conditions::SCHEDULED).and_then(|it| time_at(it, &["lastTransitionTime"]));
    bound.or_else(|| time_at(pod, &["metadata", "creationTimestamp"]))
}

/// Ephemeral containers that were added to the pod: they run from now on.
pub(super) fn start_ephemeral(pod: &Value, now: Timestamp) -> Step {
    const STATUSES: &str = "ephemeralContainerStatuses";
    let known: HashSet<&str> =
        pod.items_at(&["status", STATUSES]).iter().map(|status| status.str_at(&["name"])).collect();
    let added = pod.items_at(&["spec", "ephemeralContainers"]).iter();
    let begun = added.filter(|container| !known.contains(container.str_at(&["name"])));
    // Nothing waits for them to be ready.
    let onset = Onset { started: Duration::ZERO, ready: None };
    let begun: Vec<Value> = begun.map(|container| running(pod, container, onset, now)).collect();
    if begun.is_empty() {
        return Step::Nothing;
    }
    let mut status = pod.get("status").cloned().unwrap_or_default();
    let statuses = pod.items_at(&["status", STATUSES]).iter().cloned().chain(begun).collect();
    status.make_object().insert(STATUSES, Value::Array(statuses));
    Step::Status(status)
}
