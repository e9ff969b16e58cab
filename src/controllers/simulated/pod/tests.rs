//! The course of pods on simulated nodes, step by step.

use std::net::Ipv4Addr;

use jiff::Timestamp;

use super::restart::back_off;
use super::status::set;
use super::{Addresses, Step, next};
use crate::controllers::client::{int_at, time_at, written};
use crate::controllers::pods;
use crate::kinds::pod_object::conditions;
use crate::value::{Value, yaml};

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
        statuses.last().and_then(|status| time_at(status, path)).expect("it is told").as_second() - at(0).as_second()
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
    let probed = "restartPolicy: Never, containers: [{name: c, image: i, readinessProbe: {initialDelaySeconds: 60}}]";
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
