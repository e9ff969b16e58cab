//! What becomes of a pod on a node that nothing is behind: which step is next, and when.
//!
//! In: a pod, its addresses, the time. Out: its next status, or when to look again. All that is remembered stands in the pod.
//!
//! A pod runs at once and is ready once its probes have succeeded ([`super::probes`]), and one of a Job ends well then, unless its
//! annotations say otherwise. They are kwok's where kwok has them: `pod-create`, `pod-ready`, `pod-complete`, `pod-delete` and
//! `pod-container-running-failed`, each with `.stage.kwok.x-k8s.io/delay` behind it.
//!
//! Conditions and reasons: the kubelet of Kubernetes 1.37.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::pod_status::{
    Exit, container_id, ended, in_state, is_in, running, set, started_at, with_container, with_readiness,
};
use super::probes::Onset;
use crate::controllers::client::{int_at, is_going, sooner, time_at, written};
use crate::controllers::pods;
use crate::kinds::pod_object::conditions;
use crate::meta::duration;
use crate::object;
use crate::value::Value;

const CREATE: &str = "pod-create";
const READY: &str = "pod-ready";
const COMPLETE: &str = "pod-complete";
const DELETE: &str = "pod-delete";
const FAIL: &str = "pod-container-running-failed";
/// The annotation of what Helm makes beside a release, and waits for.
const HOOK: &str = "helm.sh/hook";
/// How long the second start in a row of a container waits, and how long any does at most.
const BACK_OFF_FIRST_S: u64 = 10;
const BACK_OFF_MAX_S: u64 = 300;

/// What is to be done with a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Nothing,
    After(Duration),
    /// It has this status now.
    Status(Value),
    /// It has ended, and is to go.
    Delete,
}

/// Where a pod is reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub host: Ipv4Addr,
    pub pod: Ipv4Addr,
}

/// The next step of a pod on a simulated node.
pub(super) fn next(pod: &Value, at: Addresses, now: Timestamp) -> Step {
    if is_going(pod) {
        return end(pod, now);
    }
    if pods::is_over(pod) {
        return Step::Nothing;
    }
    let deadline = match expiry(pod, now) {
        Some(Due::Now) => return Step::Status(expired(pod, now)),
        Some(Due::In(pause)) => Some(pause),
        None => None,
    };
    let step = match pod.str_at(&["status", "phase"]) {
        "Running" => go_on(pod, now),
        _ => begin(pod, at, now),
    };
    match (step, deadline) {
        (Step::Nothing, Some(pause)) => Step::After(pause),
        (Step::After(one), other) => Step::After(sooner(Some(one), other).unwrap_or(one)),
        (step, _) => step,
    }
}

/// When something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Now,
    In(Duration),
}

fn due(since: Option<Timestamp>, pause: Duration, now: Timestamp) -> Due {
    let pause = i128::try_from(pause.as_nanos()).unwrap_or(i128::MAX);
    let since = since.unwrap_or(now).as_nanosecond();
    let left = since.saturating_add(pause).saturating_sub(now.as_nanosecond());
    if left <= 0 { Due::Now } else { Due::In(Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX))) }
}

/// What is said of a stage in the annotations of a pod, or in its labels.
fn said<'p>(pod: &'p Value, stage: &str, what: &str) -> &'p str {
    let slash = if what.is_empty() { "" } else { "/" };
    let name = format!("{stage}.stage.kwok.x-k8s.io{slash}{what}");
    let found = ["annotations", "labels"].map(|list| pod.str_at(&["metadata", list, name.as_str()]));
    found.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// How long a stage is waited for, as in Go's `1m30s`.
fn delay(pod: &Value, stage: &str, default: Duration) -> Duration {
    let nanoseconds = duration::parse_go(said(pod, stage, "delay")).ok().and_then(|nanos| u64::try_from(nanos).ok());
    nanoseconds.map_or(default, Duration::from_nanos)
}

/// Whether a stage comes at all: one of the weight 0 does not.
fn comes(pod: &Value, stage: &str) -> bool {
    said(pod, stage, "weight") != "0"
}

/// When a container is started and ready: as the annotations of its pod say, or its probes.
fn onset(pod: &Value, container: &Value) -> Onset {
    if !comes(pod, READY) {
        return Onset { ready: None, ..Onset::of(container) };
    }
    match said(pod, READY, "delay") {
        "" => Onset::of(container),
        _ => Onset { started: Duration::ZERO, ready: Some(delay(pod, READY, Duration::ZERO)) },
    }
}

/// A pod that is being deleted. One that others hold by their finalizers says first that it has ended.
fn end(pod: &Value, now: Timestamp) -> Step {
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

/// Since when an object is to be deleted.
pub(super) fn deletion_since(object: &Value) -> Option<Timestamp> {
    let grace = jiff::SignedDuration::from_secs(int_at(object, &["metadata", "deletionGracePeriodSeconds"]));
    time_at(object, &["metadata", "deletionTimestamp"])?.checked_sub(grace).ok()
}

/// Until when the pod may be active.
fn expiry(pod: &Value, now: Timestamp) -> Option<Due> {
    let seconds = pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64)?;
    let started = time_at(pod, &["status", "startTime"]).or_else(|| bound_at(pod));
    Some(due(Some(started?), Duration::from_secs(u64::try_from(seconds).unwrap_or_default()), now))
}

/// Since when the pod has its node: since it was made where nobody says more, as for one that was made with the name of a node.
fn bound_at(pod: &Value) -> Option<Timestamp> {
    let bound = conditions::find(pod, conditions::SCHEDULED).and_then(|it| time_at(it, &["lastTransitionTime"]));
    bound.or_else(|| time_at(pod, &["metadata", "creationTimestamp"]))
}

fn expired(pod: &Value, now: Timestamp) -> Value {
    let exit = Exit { code: 137, reason: "Error", message: "" };
    let mut status = ended(pod, &exit, "", now);
    let fields = status.make_object();
    fields.insert("phase", Value::from("Failed"));
    fields.insert("reason", Value::from("DeadlineExceeded"));
    fields.insert("message", Value::from("Pod was active on the node longer than the specified deadline"));
    status
}

/// A pod that has a node. Containers of it that start before others, and go on, hold these back until they are started: what is told
/// of them is told then.
fn begin(pod: &Value, at: Addresses, now: Timestamp) -> Step {
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

/// How long the start of an init container holds back what comes behind it.
fn hold(pod: &Value, container: &Value) -> Duration {
    if is_sidecar(container) { onset(pod, container).started } else { Duration::ZERO }
}

/// The time that lies so far back.
fn before(now: Timestamp, length: Duration) -> Timestamp {
    SignedDuration::try_from(length).ok().and_then(|length| now.checked_sub(length).ok()).unwrap_or(now)
}

/// A pod that runs.
fn go_on(pod: &Value, now: Timestamp) -> Step {
    let steps =
        [restart(pod, now), fail(pod, now), begin_ephemeral(pod, now), pass_probes(pod, now), complete(pod, now)];
    let mut pause = None;
    for step in steps {
        match step {
            Step::After(left) => pause = sooner(pause, Some(left)),
            Step::Nothing => {}
            step => return step,
        }
    }
    let settled = with_readiness(pod.clone(), now);
    match pause {
        _ if pod.get("status") != Some(&settled) => Step::Status(settled),
        Some(pause) => Step::After(pause),
        None => Step::Nothing,
    }
}

/// Ephemeral containers that were added to the pod: they run from now on.
fn begin_ephemeral(pod: &Value, now: Timestamp) -> Step {
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

/// A container that waits for its next start.
fn restart(pod: &Value, now: Timestamp) -> Step {
    let Some(waiting) = in_state(pod, "waiting").next() else { return Step::Nothing };
    let since = time_at(waiting, &["lastState", "terminated", "finishedAt"]);
    match due(since, back_off(int_at(waiting, &["restartCount"])), now) {
        Due::In(pause) => Step::After(pause),
        Due::Now => {
            let name = waiting.str_at(&["name"]).to_owned();
            let container = pod.items_at(&["spec", "containers"]).iter().find(|it| it.str_at(&["name"]) == name);
            let onset = onset(pod, container.unwrap_or(&Value::Null));
            let changed = with_container(pod, &name, |status| {
                let count = int_at(status, &["restartCount"]);
                let fields = status.make_object();
                fields.insert("restartCount", Value::Int(count + 1));
                fields.insert("ready", Value::Bool(onset.ready == Some(Duration::ZERO)));
                fields.insert("started", Value::Bool(onset.started.is_zero()));
                fields.insert("state", object! { "running" => object! { "startedAt" => written(now) } });
            });
            Step::Status(with_readiness(changed, now))
        }
    }
}

/// How long a container waits that has been started again so often.
fn back_off(restarts: i64) -> Duration {
    let doubled = u32::try_from(restarts - 1).ok().map(|times| 2_u64.saturating_pow(times));
    Duration::from_secs(doubled.map_or(0, |times| (BACK_OFF_FIRST_S.saturating_mul(times)).min(BACK_OFF_MAX_S)))
}

/// A container that is to fail: the pod fails with it, unless it is to be started again.
fn fail(pod: &Value, now: Timestamp) -> Step {
    let wanted = said(pod, FAIL, "container-name");
    let failing = in_state(pod, "running").find(|status| wanted.is_empty() || status.str_at(&["name"]) == wanted);
    let (true, Some(failing)) = (said(pod, FAIL, "") == "true", failing) else { return Step::Nothing };
    if let Due::In(pause) = due(started_at(failing), delay(pod, FAIL, Duration::from_secs(1)), now) {
        return Step::After(pause);
    }
    let reason = said(pod, FAIL, "reason");
    let exit = Exit {
        code: said(pod, FAIL, "exit-code").parse().unwrap_or(1),
        reason: if reason.is_empty() { "Error" } else { reason },
        message: said(pod, FAIL, "message"),
    };
    let starts_again = match pod.str_at(&["spec", "restartPolicy"]) {
        "Never" => false,
        "OnFailure" => exit.code != 0,
        _ => true,
    };
    if !starts_again {
        return Step::Status(ended(pod, &exit, wanted, now));
    }
    let name = failing.str_at(&["name"]).to_owned();
    let changed = with_container(pod, &name, |status| {
        let id = status.str_at(&["containerID"]).to_owned();
        let terminated = exit.state(started_at(status), now, id);
        let restarts = int_at(status, &["restartCount"]);
        let fields = status.make_object();
        fields.insert("lastState", terminated);
        fields.insert("ready", Value::Bool(false));
        fields.insert("started", Value::Bool(false));
        let pause = back_off(restarts).as_secs();
        let message = format!("back-off {pause}s restarting failed container={name}");
        let waiting = object! { "reason" => "CrashLoopBackOff", "message" => message };
        fields.insert("state", object! { "waiting" => waiting });
    });
    Step::Status(with_readiness(changed, now))
}

/// Containers that run and are to be started or ready later.
fn pass_probes(pod: &Value, now: Timestamp) -> Step {
    let mut pause = None;
    let mut is_due = |status: &Value, length: Duration| match due(started_at(status), length, now) {
        Due::Now => true,
        Due::In(left) => {
            pause = sooner(pause, Some(left));
            false
        }
    };
    let is = |status: &Value, name: &str| status.get(name).and_then(Value::as_bool) == Some(true);
    let mut changed = None;
    for (list, of) in [("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")] {
        let statuses = pod.items_at(&["status", of]);
        let waits = |status: &Value| is_in(status, "running") && !(is(status, "started") && is(status, "ready"));
        if !statuses.iter().any(waits) {
            continue;
        }
        let containers = pod.items_at(&["spec", list]).iter();
        let containers: HashMap<&str, &Value> = containers.map(|it| (it.str_at(&["name"]), it)).collect();
        for (at, status) in statuses.iter().enumerate().filter(|(_, status)| waits(status)) {
            let Some(container) = containers.get(status.str_at(&["name"])) else { continue };
            let onset = onset(pod, container);
            let is_started = is(status, "started") || is_due(status, onset.started);
            let is_ready =
                is(status, "ready") || (is_started && onset.ready.is_some_and(|ready| is_due(status, ready)));
            if (is_started, is_ready) == (is(status, "started"), is(status, "ready")) {
                continue;
            }
            let changed = changed.get_or_insert_with(|| pod.clone());
            if let Some(Value::Array(statuses)) = changed.at_mut(&["status", of]) {
                let fields = statuses[at].make_object();
                fields.insert("started", Value::Bool(is_started));
                fields.insert("ready", Value::Bool(is_ready));
            }
        }
    }
    match (changed, pause) {
        (Some(changed), _) => Step::Status(with_readiness(changed, now)),
        (None, Some(pause)) => Step::After(pause),
        (None, None) => Step::Nothing,
    }
}

/// Whether somebody waits for the end of a pod: a Job that owns it, or Helm, whose hook it is.
fn is_awaited(pod: &Value) -> bool {
    let mut owners = pod.items_at(&["metadata", "ownerReferences"]).iter();
    owners.any(|owner| owner.str_at(&["kind"]) == "Job") || pod.at(&["metadata", "annotations", HOOK]).is_some()
}

/// A pod that ends well: one whose end is awaited, or one that says when.
fn complete(pod: &Value, now: Timestamp) -> Step {
    let ends = is_awaited(pod) || !said(pod, COMPLETE, "delay").is_empty();
    let may_end = matches!(pod.str_at(&["spec", "restartPolicy"]), "Never" | "OnFailure");
    let all_run = in_state(pod, "running").count() == pod.items_at(&["spec", "containers"]).len();
    let fails = said(pod, FAIL, "") == "true";
    // No container waits for its probes to end; a pod that is told when it is ready ends after that.
    let is_told = !comes(pod, READY) || !said(pod, READY, "delay").is_empty();
    let runs = all_run && (!is_told || pods::is_ready(pod));
    if !(ends && may_end && runs) || fails || !comes(pod, COMPLETE) {
        return Step::Nothing;
    }
    let started = in_state(pod, "running").filter_map(started_at).max();
    match due(started, delay(pod, COMPLETE, Duration::ZERO), now) {
        Due::In(pause) => Step::After(pause),
        Due::Now => Step::Status(ended(pod, &Exit { code: 0, reason: "Completed", message: "" }, "", now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    const AT: Addresses = Addresses { host: Ipv4Addr::new(172, 31, 0, 1), pod: Ipv4Addr::new(10, 64, 0, 2) };

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).expect("a time")
    }

    /// The pod with the status that it has after each of so many steps, and when the last was.
    fn run(mut pod: Value, steps: usize) -> (Value, i64) {
        let mut second = 0;
        for _ in 0..steps {
            match next(&pod, AT, at(second)) {
                Step::Status(status) => _ = pod.make_object().insert("status", status),
                Step::After(pause) => second += i64::try_from(pause.as_millis().div_ceil(1000)).expect("it is short"),
                other => panic!("{other:?} after {second} s: {pod:?}"),
            }
        }
        (pod, second)
    }

    fn pod(annotations: &str, spec: &str) -> Value {
        read(&format!(
            "metadata: {{uid: u, annotations: {{{annotations}}}}}\n\
             spec: {{nodeName: here, containers: [{{name: c, image: i}}], {spec}}}\nstatus: {{phase: Pending}}"
        ))
    }

    #[test]
    fn a_pod_runs_and_is_ready_at_once() {
        let (pod, second) = run(pod("", "restartPolicy: Always"), 1);
        assert!(pods::is_ready(&pod) && second == 0);
        let text = |path: &[&str]| pod.str_at(path);
        assert_eq!((text(&["status", "podIP"]), text(&["status", "hostIP"])), ("10.64.0.2", "172.31.0.1"));
        assert_eq!(next(&pod, AT, at(100)), Step::Nothing);
    }

    #[test]
    fn annotations_say_when() {
        let delays = "pod-create.stage.kwok.x-k8s.io/delay: 2s, pod-ready.stage.kwok.x-k8s.io/delay: 3s";
        let spec = "restartPolicy: Always";
        let started = "status: {phase: Pending, conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}]}";
        let mut slow = pod(delays, spec);
        slow.make_object().insert("status", read(started).get("status").cloned().expect("it is there"));
        let (running, second) = run(slow.clone(), 2);
        assert_eq!((running.str_at(&["status", "phase"]), pods::is_ready(&running), second), ("Running", false, 2));
        let (ready, second) = run(slow, 4);
        assert_eq!((pods::is_ready(&ready), second), (true, 5));
        let (never, _) = run(pod("pod-ready.stage.kwok.x-k8s.io/weight: '0'", spec), 1);
        assert_eq!((next(&never, AT, at(1000)), pods::is_ready(&never)), (Step::Nothing, false));
    }

    #[test]
    fn a_pod_is_ready_once_its_probes_have_succeeded() {
        let probed = |annotations: &str, probes: &str| {
            let mut pod = pod(annotations, "restartPolicy: Always");
            let containers = format!("[{{name: c, image: i, {probes}}}, {{name: d, image: i}}]");
            pod.make_object().entry("spec").make_object().insert("containers", read(&containers));
            pod
        };
        let probes = "startupProbe: {periodSeconds: 2}, readinessProbe: {periodSeconds: 3, initialDelaySeconds: 4}";
        let container = |pod: &Value| {
            let status = &pod.items_at(&["status", "containerStatuses"])[0];
            ["started", "ready"].map(|name| status.get(name).and_then(Value::as_bool).expect("it is told"))
        };
        let message = |pod: &Value| {
            let ready = conditions::find(pod, "Ready").expect("it is told");
            (ready.str_at(&["status"]).to_owned(), ready.str_at(&["message"]).to_owned())
        };
        let unready = ("False".to_owned(), "containers with unready status: [c]".to_owned());
        let (begun, second) = run(probed("", probes), 1);
        assert_eq!((container(&begun), message(&begun), second), ([false, false], unready.clone(), 0));
        let (started, second) = run(probed("", probes), 3);
        assert_eq!((container(&started), message(&started), second), ([true, false], unready, 2));
        let (ready, second) = run(probed("", probes), 5);
        assert_eq!((container(&ready), pods::is_ready(&ready), second), ([true, true], true, 5));
        // An annotation counts for more.
        let (at_once, second) = run(probed("pod-ready.stage.kwok.x-k8s.io/delay: 0s", probes), 1);
        assert_eq!((pods::is_ready(&at_once), second), (true, 0));
    }

    #[test]
    fn a_container_that_starts_before_others_holds_them_back() {
        let mut held = pod("", "restartPolicy: Always");
        let init = "[{name: a}, {name: s, restartPolicy: Always, startupProbe: {periodSeconds: 4}, \
                    readinessProbe: {periodSeconds: 3, successThreshold: 2}}]";
        held.make_object().entry("spec").make_object().insert("initContainers", read(init));
        let bound = "{phase: Pending, conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}]}";
        held.make_object().insert("status", read(bound));
        let (begun, second) = run(held.clone(), 2);
        let time = |of: &str, path: &[&str]| {
            let statuses = begun.items_at(&["status", of]);
            statuses.last().and_then(|status| time_at(status, path)).expect("it is told").as_second()
                - at(0).as_second()
        };
        let started = ["state", "running", "startedAt"];
        assert_eq!([time("initContainerStatuses", &started), time("containerStatuses", &started), second], [0, 4, 4]);
        let ready = conditions::find(&begun, "Ready").expect("it is told");
        assert_eq!(ready.str_at(&["message"]), "containers with unready status: [s]");
        let (ready, second) = run(held, 4);
        assert_eq!((pods::is_ready(&ready), second), (true, 7));
    }

    #[test]
    fn a_pod_that_was_made_for_a_node_is_held_back_since_then() {
        let sidecar = "initContainers: [{name: s, restartPolicy: Always, startupProbe: {periodSeconds: 4}}]";
        let made = |spec: &str| {
            let mut made = pod("", spec);
            let metadata = made.make_object().entry("metadata").make_object();
            metadata.insert("creationTimestamp", written(at(0)));
            made
        };
        assert_eq!(run(made(sidecar), 2).1, 4);
        let (over, second) = run(made(&format!("activeDeadlineSeconds: 3, {sidecar}")), 2);
        assert_eq!((over.str_at(&["status", "reason"]), second), ("DeadlineExceeded", 3));
    }

    #[test]
    fn what_ends_does_not_wait_for_its_probes() {
        let probed =
            "restartPolicy: Never, containers: [{name: c, image: i, readinessProbe: {initialDelaySeconds: 60}}]";
        let ends = "pod-complete.stage.kwok.x-k8s.io/delay: 5s";
        let pod = |annotations: &str| {
            read(&format!(
                "metadata: {{annotations: {{{annotations}}}}}\nspec: {{nodeName: here, {probed}}}\nstatus: {{phase: Pending}}"
            ))
        };
        assert_eq!(run(pod(ends), 3).1, 5);
        let told = format!("{ends}, pod-ready.stage.kwok.x-k8s.io/delay: 8s");
        assert_eq!(run(pod(&told), 4).1, 8);
    }

    #[test]
    fn what_belongs_to_a_job_ends_well() {
        let mut of_job = pod("", "restartPolicy: Never");
        let metadata = of_job.make_object().entry("metadata").make_object();
        metadata.insert("ownerReferences", read("[{kind: Job}]"));
        let (ended, _) = run(of_job, 2);
        assert_eq!((ended.str_at(&["status", "phase"]), next(&ended, AT, at(9))), ("Succeeded", Step::Nothing));
        let hook = pod("helm.sh/hook: test", "restartPolicy: Never");
        assert_eq!(run(hook, 2).0.str_at(&["status", "phase"]), "Succeeded");
        let hook = run(pod("helm.sh/hook: test", "restartPolicy: Always"), 1).0;
        assert_eq!(next(&hook, AT, at(9)), Step::Nothing);
        let said = pod("pod-complete.stage.kwok.x-k8s.io/delay: 4s", "restartPolicy: OnFailure");
        assert_eq!(run(said, 3).1, 4);
    }

    #[test]
    fn a_container_fails_as_it_is_told() {
        let fails = "pod-container-running-failed.stage.kwok.x-k8s.io: 'true', \
                     pod-container-running-failed.stage.kwok.x-k8s.io/exit-code: '137', \
                     pod-container-running-failed.stage.kwok.x-k8s.io/reason: OOMKilled, \
                     pod-container-running-failed.stage.kwok.x-k8s.io/delay: 3s";
        let (failed, second) = run(pod(fails, "restartPolicy: Never"), 3);
        let terminated = |pod: &Value, state: &str| {
            let status = &pod.items_at(&["status", "containerStatuses"])[0];
            let at = [state, "terminated"];
            (int_at(status, &[at[0], at[1], "exitCode"]), status.str_at(&[at[0], at[1], "reason"]).to_owned())
        };
        assert_eq!((failed.str_at(&["status", "phase"]), second), ("Failed", 3));
        assert_eq!(terminated(&failed, "state"), (137, "OOMKilled".to_owned()));
        // It is started again at once, and then after ten seconds.
        let (again, second) = run(pod(fails, "restartPolicy: Always"), 4);
        assert_eq!((pods::restarts(&again), pods::is_ready(&again), second), (1, true, 3));
        assert_eq!(terminated(&again, "lastState"), (137, "OOMKilled".to_owned()));
        let (later, second) = run(pod(fails, "restartPolicy: Always"), 8);
        assert_eq!((pods::restarts(&later), second), (2, 16));
        assert_eq!([0, 1, 2, 3, 9].map(|count| back_off(count).as_secs()), [0, 10, 20, 40, 300]);
    }

    #[test]
    fn gates_hold_readiness_back() {
        let (pod, _) = run(pod("", "readinessGates: [{conditionType: x.io/g}]"), 1);
        assert!(!pods::is_ready(&pod) && conditions::is_true(&pod, "ContainersReady"));
        let mut open = pod;
        set(&mut open, "x.io/g", ("True", "", ""), at(5));
        let (open, _) = run(open, 1);
        assert!(pods::is_ready(&open));
    }

    #[test]
    fn a_pod_ends_when_it_is_deleted() {
        let mut going = run(pod("", "restartPolicy: Always"), 1).0;
        let metadata = going.make_object().entry("metadata").make_object();
        metadata.insert("deletionTimestamp", written(at(30)));
        metadata.insert("deletionGracePeriodSeconds", Value::Int(30));
        assert_eq!(next(&going, AT, at(0)), Step::Delete);
        let metadata = going.make_object().entry("metadata").make_object();
        metadata.insert("finalizers", read("[a]"));
        let Step::Status(status) = next(&going, AT, at(0)) else { panic!("it says that it has ended") };
        assert_eq!(status.str_at(&["phase"]), "Failed");
        let (over, second) = run(run(pod("", "activeDeadlineSeconds: 5"), 1).0, 2);
        assert_eq!((over.str_at(&["status", "reason"]), second), ("DeadlineExceeded", 5));
    }
}
