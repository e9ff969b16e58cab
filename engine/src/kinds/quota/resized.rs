//! What the containers of a pod use while it is resized: the most of what they ask for, of what they were allocated, and
//! of what they have.
//!
//! Input: a pod, and `requests` or `limits`. Output: the totals over its containers.
//!
//! Source: `AggregateContainerRequests` and `AggregateContainerLimits` of `k8s.io/component-helpers/resource`, release
//! 1.37.

use std::collections::BTreeMap;

use crate::kinds::pod::aggregate::{self, Totals};
use crate::value::{Map, Value};
use crate::work;

/// The sum over the containers of a pod of their `list`: `requests` or `limits`.
pub fn of_containers(pod: &Value, list: &str) -> Totals {
    let Some(spec) = pod.get("spec") else { return Totals::new() };
    let containers = Containers::of(pod);
    let mut totals = if containers.is_infeasible { Totals::new() } else { aggregate::of_containers(spec, list) };
    if containers.statuses.is_empty() && !containers.is_infeasible {
        return totals;
    }
    aggregate::raise(&mut totals, &aggregate::total(spec, &|container| containers.actual(container, list)));
    if list == "requests" {
        aggregate::raise(&mut totals, &aggregate::total(spec, &|container| containers.allocated(container)));
    }
    totals
}

/// What the status of a pod says of its containers.
struct Containers<'p> {
    statuses: BTreeMap<&'p str, &'p Value>,
    /// Whether the node can never do what the spec asks for.
    is_infeasible: bool,
}

impl<'p> Containers<'p> {
    fn of(pod: &'p Value) -> Self {
        let mut statuses = BTreeMap::new();
        let lists = ["containerStatuses", "initContainerStatuses"];
        for status in lists.iter().flat_map(|list| pod.items_at(&["status", list])) {
            work::step();
            if status.get("resources").is_some() || status.get("allocatedResources").is_some() {
                statuses.entry(status.str_at(&["name"])).or_insert(status);
            }
        }
        let mut conditions = pod.items_at(&["status", "conditions"]).iter();
        let pending = conditions.find(|condition| condition.str_at(&["type"]) == "PodResizePending");
        let is_infeasible = pending.is_some_and(|pending| pending.str_at(&["reason"]) == "Infeasible");
        Containers { statuses, is_infeasible }
    }

    fn in_status(&self, container: &Value, path: &[&str]) -> Option<&'p Map> {
        self.statuses.get(container.str_at(&["name"]))?.at(path).and_then(Value::as_object)
    }

    /// What a container asks for, unless that is infeasible.
    fn feasible(&self, container: &'p Value, list: &str) -> Option<&'p Map> {
        container.at(&["resources", list]).and_then(Value::as_object).filter(|_| !self.is_infeasible)
    }

    fn allocated(&self, container: &'p Value) -> Option<&'p Map> {
        self.in_status(container, &["allocatedResources"]).or_else(|| self.feasible(container, "requests"))
    }

    fn actual(&self, container: &'p Value, list: &str) -> Option<&'p Map> {
        let rest = || if list == "requests" { self.allocated(container) } else { self.feasible(container, list) };
        self.in_status(container, &["resources", list]).or_else(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[track_caller]
    fn check(pod: &str, requests: &[&str], limits: &[&str]) {
        let pod = yaml::decode(pod.as_bytes()).expect("the test is YAML");
        for (list, expected) in [("requests", requests), ("limits", limits)] {
            let totals: Vec<String> =
                of_containers(&pod, list).into_iter().map(|(name, total)| format!("{name}={total}")).collect();
            assert_eq!(totals, expected, "{list}");
        }
    }

    const SPEC: &str = "spec: {containers: [{name: a, resources: {requests: {cpu: '1'}, limits: {cpu: '2'}}}, \
                        {name: b, resources: {requests: {cpu: 300m}}}]}\n";

    #[test]
    fn a_pod_without_status_uses_what_it_asks_for() {
        check(SPEC, &["cpu=1300m"], &["cpu=2"]);
        check(&format!("{SPEC}status: {{containerStatuses: [{{name: a}}]}}"), &["cpu=1300m"], &["cpu=2"]);
    }

    #[test]
    fn a_pod_that_is_made_smaller_uses_what_it_has_until_it_is() {
        let has = "status: {containerStatuses: [{name: a, resources: {requests: {cpu: '3'}, limits: {cpu: '4'}}}]}";
        check(&format!("{SPEC}{has}"), &["cpu=3300m"], &["cpu=4"]);
        let allocated = "status: {containerStatuses: [{name: a, allocatedResources: {cpu: 2500m}}]}";
        check(&format!("{SPEC}{allocated}"), &["cpu=2800m"], &["cpu=2"]);
    }

    #[test]
    fn a_pod_that_is_made_larger_uses_what_it_asks_for_if_that_is_feasible() {
        let has = "containerStatuses: [{name: a, resources: {requests: {cpu: 100m}, limits: {cpu: 200m}}}, \
                   {name: b, allocatedResources: {cpu: 100m}}]";
        check(&format!("{SPEC}status: {{{has}}}"), &["cpu=1300m"], &["cpu=2"]);
        let pending = "conditions: [{type: PodResizePending, status: 'True', reason: Infeasible}]";
        check(&format!("{SPEC}status: {{{has}, {pending}}}"), &["cpu=200m"], &["cpu=200m"]);
        check(&format!("{SPEC}status: {{{pending}}}"), &[], &[]);
        let deferred = "conditions: [{type: PodResizePending, status: 'True', reason: Deferred}]";
        check(&format!("{SPEC}status: {{{has}, {deferred}}}"), &["cpu=1300m"], &["cpu=2"]);
    }
}
