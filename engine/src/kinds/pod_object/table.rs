//! The columns of pods: how many of their containers are ready, what they are up to, and how often they began again.
//!
//! Source: `printPod` of `pkg/printers/internalversion`.

use std::collections::HashMap;

use crate::crd::Column;
use crate::kinds::strategy::Cell;
use crate::value::Value;
use crate::work;

use super::{conditions, is_sidecar};

const NONE: &str = "<none>";

/// The columns; those from `IP` on are wide ones.
pub fn columns() -> Vec<Column> {
    let column = |name: &str, description: &str| Column::string(name, description);
    let wide = |name: &str, description: &str| Column { priority: 1, ..Column::string(name, description) };
    let restarts = "The number of times the containers in this pod have been restarted and when the last container in this pod has \
                    restarted.";
    let ip = "podIP address allocated to the pod. Routable at least within the cluster. Empty if not yet allocated.";
    let node = "NodeName indicates in which node this pod is scheduled. If empty, this pod is a candidate for scheduling by the \
                scheduler defined in schedulerName. Once this field is set, the kubelet for this node becomes responsible for the \
                lifecycle of this pod. This field should not be used to express a desire for the pod to be scheduled on a specific \
                node. https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename";
    let nominated = "nominatedNodeName is set only when this pod preempts other pods on the node, but it cannot be scheduled right \
                     away as preemption victims receive their graceful termination periods. This field does not guarantee that the \
                     pod will be scheduled on this node. Scheduler may decide to place the pod elsewhere if other nodes become \
                     available sooner. Scheduler may also decide to give the resources on this node to a higher priority pod that \
                     is created after preemption. As a result, this field may be different than PodSpec.nodeName when the pod is \
                     scheduled.";
    let gates = "If specified, all readiness gates will be evaluated for pod readiness. A pod is ready when all its containers are \
                 ready AND all conditions specified in the readiness gates have status equal to \"True\" More info: \
                 https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates";
    vec![
        Column { format: "name".to_owned(), ..column("Name", "") },
        column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
        column("Status", "The aggregate status of the containers in this pod."),
        column("Restarts", restarts),
        column("Age", ""),
        wide("IP", ip),
        wide("Node", node),
        wide("Nominated Node", nominated),
        wide("Readiness Gates", gates),
    ]
}

/// The cells of a pod.
pub fn cells(pod: &Value) -> Vec<Cell> {
    let containers = Containers::of(pod);
    let text = |path: &[&str]| match pod.str_at(path) {
        "" => Cell::text(NONE),
        text => Cell::text(text),
    };
    let ip = pod.items_at(&["status", "podIPs"]).first().map(|ip| ip.str_at(&["ip"])).filter(|ip| !ip.is_empty());
    vec![
        Cell::text(pod.str_at(&["metadata", "name"])),
        Cell::text(&format!("{}/{}", containers.ready, containers.total)),
        Cell::text(&status(pod, containers.reason)),
        if containers.restarts != 0 && !containers.last_restart.is_empty() {
            Cell::Ago { text: containers.restarts.to_string(), since: containers.last_restart }
        } else {
            Cell::text(&containers.restarts.to_string())
        },
        Cell::Since(pod.str_at(&["metadata", "creationTimestamp"]).to_owned()),
        Cell::text(ip.unwrap_or(NONE)),
        text(&["spec", "nodeName"]),
        text(&["status", "nominatedNodeName"]),
        Cell::text(&readiness_gates(pod)),
    ]
}

/// The columns of a pod that has ended: reason and message.
pub fn completion(pod: &Value) -> Option<(&'static str, &'static str)> {
    match pod.str_at(&["status", "phase"]) {
        "Succeeded" => Some(("Succeeded", "The pod has completed successfully.")),
        "Failed" => Some(("Failed", "The pod failed.")),
        _ => None,
    }
}

/// The reason, unless the pod is on its way out.
fn status(pod: &Value, reason: String) -> String {
    let is_deleted = pod.at(&["metadata", "deletionTimestamp"]).is_some();
    if is_deleted && pod.str_at(&["status", "reason"]) == "NodeLost" {
        "Unknown".to_owned()
    } else if is_deleted && completion(pod).is_none() {
        "Terminating".to_owned()
    } else {
        reason
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = pod.items_at(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let met = gates.iter().filter(|gate| conditions::is_true(pod, gate.str_at(&["conditionType"]))).count();
    format!("{met}/{}", gates.len())
}

/// The summary of a pod's containers.
#[derive(Default)]
struct Containers {
    total: usize,
    ready: usize,
    reason: String,
    restarts: i64,
    /// RFC 3339, or empty.
    last_restart: String,
}

impl Containers {
    fn of(pod: &Value) -> Self {
        let init = pod.items_at(&["spec", "initContainers"]);
        let sidecars = init.iter().filter(|container| is_sidecar(container)).count();
        let total = pod.items_at(&["spec", "containers"]).len() + sidecars;
        let mut containers = Containers { total, reason: reason_of_pod(pod), ..Containers::default() };
        let of_sidecars = containers.add_init(pod);
        if let Some((restarts, last_restart)) = of_sidecars {
            (containers.restarts, containers.last_restart) = (restarts, last_restart);
            containers.add_main(pod);
        }
        containers
    }

    /// Looks at the init containers. Unless the pod waits for one of them: how often sidecars began again, and when.
    fn add_init(&mut self, pod: &Value) -> Option<(i64, String)> {
        let init = pod.items_at(&["spec", "initContainers"]);
        let specs: HashMap<&str, &Value> =
            init.iter().map(|container| (container.str_at(&["name"]), container)).collect();
        let (mut restarts, mut last_restart) = (0, String::new());
        for (index, status) in pod.items_at(&["status", "initContainerStatuses"]).iter().enumerate() {
            work::step();
            self.add_restarts(status);
            let is_sidecar = specs.get(status.str_at(&["name"])).is_some_and(|container| is_sidecar(container));
            if is_sidecar {
                restarts += restart_count(status);
                later(&mut last_restart, status);
            }
            if is_set(status, &["state", "terminated"]) && exit_code(status) == 0 {
                continue;
            }
            if is_sidecar && is_true(status, "started") {
                self.ready += usize::from(is_true(status, "ready"));
                continue;
            }
            self.reason = format!("Init:{}", waiting_for(status, index, init.len()));
            let is_initialized = conditions::is_true(pod, "Initialized");
            return is_initialized.then_some((restarts, last_restart));
        }
        Some((restarts, last_restart))
    }

    fn add_restarts(&mut self, status: &Value) {
        self.restarts = self.restarts.saturating_add(restart_count(status));
        later(&mut self.last_restart, status);
    }

    /// Looks at the other containers.
    fn add_main(&mut self, pod: &Value) {
        let (mut has_running, mut error) = (false, String::new());
        for status in pod.items_at(&["status", "containerStatuses"]).iter().rev() {
            work::step();
            self.add_restarts(status);
            let waiting = status.str_at(&["state", "waiting", "reason"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if is_set(status, &["state", "terminated"]) {
                self.reason = ended(status);
                if exit_code(status) != 0 {
                    error.clone_from(&self.reason);
                }
            } else if is_true(status, "ready") && is_set(status, &["state", "running"]) {
                has_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if has_running && conditions::is_true(pod, conditions::READY) {
                self.reason = "Running".to_owned();
            } else if !error.is_empty() {
                self.reason = error;
            } else if has_running {
                self.reason = "NotReady".to_owned();
            }
        }
    }
}

/// The reason by the status of the pod itself.
fn reason_of_pod(pod: &Value) -> String {
    let mut conditions = pod.items_at(&["status", "conditions"]).iter();
    let is_gated = |condition: &Value| {
        condition.str_at(&["type"]) == conditions::SCHEDULED && condition.str_at(&["reason"]) == "SchedulingGated"
    };
    if conditions.any(is_gated) {
        return "SchedulingGated".to_owned();
    }
    match pod.str_at(&["status", "reason"]) {
        "" => pod.str_at(&["status", "phase"]).to_owned(),
        reason => reason.to_owned(),
    }
}

/// Why an init container keeps the pod waiting.
fn waiting_for(status: &Value, index: usize, count: usize) -> String {
    let waiting = status.str_at(&["state", "waiting", "reason"]);
    if is_set(status, &["state", "terminated"]) {
        ended(status)
    } else if waiting.is_empty() || waiting == "PodInitializing" {
        format!("{index}/{count}")
    } else {
        waiting.to_owned()
    }
}

/// How a container ended.
fn ended(status: &Value) -> String {
    let terminated = &["state", "terminated"];
    let signal = status.at(terminated).and_then(|terminated| terminated.get("signal")).and_then(Value::as_i64);
    match (status.str_at(&["state", "terminated", "reason"]), signal.unwrap_or_default()) {
        ("", 0) => format!("ExitCode:{}", exit_code(status)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn exit_code(status: &Value) -> i64 {
    status.at(&["state", "terminated", "exitCode"]).and_then(Value::as_i64).unwrap_or_default()
}

fn restart_count(status: &Value) -> i64 {
    status.get("restartCount").and_then(Value::as_i64).unwrap_or_default()
}

/// The later of two times, which are both RFC 3339 in UTC, and so in the order of their texts.
fn later(last: &mut String, status: &Value) {
    let finished = status.str_at(&["lastState", "terminated", "finishedAt"]);
    if finished > last.as_str() {
        *last = finished.to_owned();
    }
}

fn is_set(status: &Value, path: &[&str]) -> bool {
    status.at(path).is_some_and(|value| !value.is_null())
}

fn is_true(status: &Value, field: &str) -> bool {
    status.get(field).and_then(Value::as_bool).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn check(pod: &str) -> String {
        let cells = cells(&yaml::decode(pod.as_bytes()).expect("YAML"));
        let shown = cells[1..4].iter().map(|cell| match cell {
            Cell::Value(value) => value.as_str().unwrap_or_default().to_owned(),
            Cell::Since(time) => time.clone(),
            Cell::Ago { text, since } => format!("{text} since {since}"),
            Cell::Lasting(seconds) => seconds.to_string(),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_pod_says_what_it_is_up_to() {
        let one = "spec: {containers: [{name: c}]}\nstatus: ";
        assert_eq!(check(&format!("{one}{{phase: Running, reason: Evicted}}")), "0/1 Evicted 0");
        let state = |state: &str| check(&format!("{one}{{phase: Running, containerStatuses: [{{name: c, {state}}}]}}"));
        assert_eq!(state("ready: true, state: {running: {}}"), "1/1 Running 0");
        assert_eq!(state("state: {terminated: {exitCode: 3}}, restartCount: 1"), "0/1 ExitCode:3 1");
        assert_eq!(state("state: {terminated: {signal: 9}}"), "0/1 Signal:9 0");
        let last = "lastState: {terminated: {finishedAt: '2026-01-01T00:00:00Z'}}";
        assert_eq!(
            state(&format!("state: {{waiting: {{reason: CrashLoopBackOff}}}}, restartCount: 2, {last}")),
            "0/1 CrashLoopBackOff 2 since 2026-01-01T00:00:00Z"
        );
    }

    #[test]
    fn init_containers_come_first() {
        let init = |status: &str| {
            check(&format!(
                "spec: {{containers: [{{name: c}}], initContainers: [{{name: i, restartPolicy: Always}}, {{name: j}}]}}\n\
                 status: {{phase: Pending, initContainerStatuses: [{{name: i, started: true, ready: true}}, {{name: j, {status}}}]}}"
            ))
        };
        assert_eq!(init("state: {waiting: {reason: PodInitializing}}"), "1/2 Init:1/2 0");
        assert_eq!(init("state: {waiting: {reason: X}}, restartCount: 4"), "1/2 Init:X 4");
        assert_eq!(init("state: {terminated: {exitCode: 1}}"), "1/2 Init:ExitCode:1 0");
        assert_eq!(init("state: {terminated: {exitCode: 0}}"), "1/2 Pending 0");
    }
}
