//! What controllers read of pods, and the pods that they create from templates.

use std::time::Duration;

use jiff::Timestamp;

use super::client::{int_at, is_going, left, time_at, without_managers};
use crate::kinds::pod_object::conditions;
use crate::object;
use crate::value::Value;

/// What the controllers of pods read of their containers.
const OF_CONTAINERS: [&str; 3] = ["name", "resources", "restartPolicy"];

/// A pod without what its containers run, and without its managers: those are most of it.
pub(super) fn without_programs(pod: &mut Value) {
    without_managers(pod);
    let Some(spec) = pod.make_object().get_mut("spec") else { return };
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let Some(Value::Array(containers)) = spec.make_object().get_mut(list) else { continue };
        containers
            .iter_mut()
            .for_each(|container| container.make_object().retain(|name, _| OF_CONTAINERS.contains(&name)));
    }
}

/// Whether a pod has ended.
pub(super) fn is_over(pod: &Value) -> bool {
    matches!(pod.str_at(&["status", "phase"]), "Succeeded" | "Failed")
}

/// Whether a pod runs or will run.
pub(super) fn is_active(pod: &Value) -> bool {
    !is_over(pod) && !is_going(pod)
}

/// Whether a pod is ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    conditions::is_true(pod, "Ready")
}

/// Since when the pod has its current readiness.
pub(super) fn ready_since(pod: &Value) -> Option<Timestamp> {
    conditions::find(pod, "Ready").and_then(|ready| time_at(ready, &["lastTransitionTime"]))
}

/// Whether a pod is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Availability {
    Yes,
    /// It is ready, and will be available after this time.
    In(Duration),
    No,
}

/// Whether a pod has been ready for `min_ready_s` seconds.
pub(super) fn availability(pod: &Value, min_ready_s: i64, now: Timestamp) -> Availability {
    match (is_ready(pod), ready_since(pod)) {
        (false, _) => Availability::No,
        (true, _) if min_ready_s == 0 => Availability::Yes,
        (true, Some(since)) => left(since, min_ready_s, now).map_or(Availability::Yes, Availability::In),
        (true, None) => Availability::No,
    }
}

/// How often the containers of a pod were restarted.
pub(super) fn restarts(pod: &Value) -> i64 {
    let lists = ["containerStatuses", "initContainerStatuses"];
    lists.iter().flat_map(|list| pod.items_at(&["status", list])).map(|status| int_at(status, &["restartCount"])).sum()
}

/// A pod from a template, for its controller; its name begins with that of the controller.
///
/// Source: `GetPodFromTemplate` of `pkg/controller/controller_utils.go`, release 1.37.
pub(super) fn of_template(template: &Value, owner: &Value, reference: Value) -> Value {
    let mut metadata = object! {};
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(given) = template.at(&["metadata", field]).filter(|given| !given.is_null()) {
            metadata.make_object().insert(field, given.clone());
        }
    }
    let fields = metadata.make_object();
    fields.insert("generateName", Value::String(prefix(owner.str_at(&["metadata", "name"]))));
    fields.insert("namespace", Value::from(owner.str_at(&["metadata", "namespace"])));
    fields.insert("ownerReferences", Value::Array(vec![reference]));
    object! {
        "apiVersion" => "v1",
        "kind" => "Pod",
        "metadata" => metadata,
        "spec" => template.get("spec").cloned().unwrap_or_default(),
    }
}

/// The name prefix of the objects that an owner creates: a hyphen is added if that leaves room for a name.
pub(super) fn prefix(owner: &str) -> String {
    let prefix = format!("{owner}-");
    if crate::meta::names::is_dns1123_subdomain(prefix.trim_end_matches('-')).is_empty() {
        prefix
    } else {
        owner.to_owned()
    }
}

/// Orders pods for deletion, the least valuable ones first.
///
/// `rank` returns how many similar pods are on the same node. Source: `ActivePodsWithRanks` of
/// `pkg/controller/controller_utils.go`, release 1.37.
pub(super) fn in_order_of_deletion(pods: &mut [Value], rank: impl Fn(&Value) -> usize) {
    pods.sort_by_cached_key(|pod| {
        let phase = match pod.str_at(&["status", "phase"]) {
            "Pending" => 0,
            "Running" => 2,
            _ => 1,
        };
        let cost = pod.at(&["metadata", "annotations", "controller.kubernetes.io/pod-deletion-cost"]);
        let cost = cost.and_then(Value::as_str).and_then(|cost| cost.parse::<i32>().ok()).unwrap_or_default();
        let later_first = |time: Option<Timestamp>| time.map_or(i64::MIN, |time| -time.as_second());
        let ready_since = if is_ready(pod) { later_first(ready_since(pod)) } else { 0 };
        let is_bound = !pod.str_at(&["spec", "nodeName"]).is_empty();
        let created = later_first(time_at(pod, &["metadata", "creationTimestamp"]));
        let crowded = std::cmp::Reverse(rank(pod));
        (is_bound, phase, is_ready(pod), cost, crowded, ready_since, -restarts(pod), created)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn of_containers_only_what_controllers_read_is_kept() {
        let mut pod = read(
            "{metadata: {name: p, managedFields: [{manager: m}]}, spec: {nodeName: n, containers: [{name: c, image: i, \
             args: [x], resources: {requests: {cpu: 1}}}], initContainers: [{name: d, restartPolicy: Always, env: []}]}}",
        );
        without_programs(&mut pod);
        let kept = read(
            "{metadata: {name: p}, spec: {nodeName: n, containers: [{name: c, resources: {requests: {cpu: 1}}}], \
             initContainers: [{name: d, restartPolicy: Always}]}}",
        );
        assert_eq!(pod, kept);
    }

    #[test]
    fn a_pod_is_available_once_it_was_ready_for_long_enough() {
        let ready = |status: &str| {
            read(&format!(
                "status: {{conditions: [{{type: Ready, status: '{status}', lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}"
            ))
        };
        let now = "2026-01-01T00:00:10Z".parse().expect("a time");
        assert_eq!(availability(&ready("False"), 0, now), Availability::No);
        assert_eq!(availability(&ready("True"), 0, now), Availability::Yes);
        assert_eq!(availability(&ready("True"), 10, now), Availability::Yes);
        assert_eq!(availability(&ready("True"), 15, now), Availability::In(Duration::from_secs(5)));
    }

    #[test]
    fn the_pod_that_is_missed_least_goes_first() {
        let pod = |name: &str, rest: &str| read(&format!("metadata: {{name: {name}}}\n{rest}"));
        let ready = "conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}]";
        let younger = "conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-01-01T00:01:00Z'}]";
        let mut pods = vec![
            pod("older", &format!("spec: {{nodeName: here}}\nstatus: {{phase: Running, {ready}}}")),
            pod("younger", &format!("spec: {{nodeName: here}}\nstatus: {{phase: Running, {younger}}}")),
            pod("unready", "spec: {nodeName: here}\nstatus: {phase: Running}"),
            pod("bound", "spec: {nodeName: here}\nstatus: {phase: Pending}"),
            pod("unbound", "status: {phase: Pending}"),
        ];
        in_order_of_deletion(&mut pods, |_| 0);
        let names: Vec<&str> = pods.iter().map(|pod| pod.str_at(&["metadata", "name"])).collect();
        assert_eq!(names, ["unbound", "bound", "unready", "younger", "older"]);
        let mut pods = [pods.remove(4), pods.remove(3)];
        let rank = |pod: &Value| usize::from(pod.str_at(&["metadata", "name"]) == "older");
        in_order_of_deletion(&mut pods, rank);
        assert_eq!(pods[0].str_at(&["metadata", "name"]), "older");
    }
}
