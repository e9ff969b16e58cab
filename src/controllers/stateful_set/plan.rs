//! The next actions for the pods of a stateful set, and its status: pure functions of the set and its pods.
//!
//! Source: `updateStatefulSet` of `pkg/controller/statefulset`, release 1.37.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::names::ordinal_of;
use crate::controllers::amounts::amount_of;
use crate::controllers::client::{int_at, is_going, sooner};
use crate::controllers::history::POD_HASH;
use crate::controllers::pods::{self, Availability};
use crate::object;
use crate::value::Value;

/// How many actions are done before a set is checked again: it may want a billion pods at once.
const ACTS_MAX: usize = 64;

/// A set with its pods.
pub(super) struct ObservedStatefulSet<'s> {
    pub set: &'s Value,
    pub pods: BTreeMap<i64, &'s Value>,
    /// The names of the revision that pods have, and of the one that they must have.
    pub current: &'s str,
    pub update: &'s str,
    pub now: Timestamp,
}

impl ObservedStatefulSet<'_> {
    fn first(&self) -> i64 {
        int_at(self.set, &["spec", "ordinals", "start"])
    }

    fn wanted(&self) -> i64 {
        int_at(self.set, &["spec", "replicas"])
    }

    /// One past the last number.
    fn end(&self) -> i64 {
        self.first() + self.wanted()
    }

    /// Whether the set wants a pod of this number.
    pub fn has_place(&self, ordinal: i64) -> bool {
        (self.first()..self.end()).contains(&ordinal)
    }

    fn is_in_order(&self) -> bool {
        self.set.str_at(&["spec", "podManagementPolicy"]) != "Parallel"
    }

    fn is_rolling(&self) -> bool {
        self.set.str_at(&["spec", "updateStrategy", "type"]) != "OnDelete"
    }

    /// The first number that gets the new revision.
    fn partition(&self) -> i64 {
        self.first() + int_at(self.set, &["spec", "updateStrategy", "rollingUpdate", "partition"])
    }

    /// How many pods may be unavailable while the set is updated.
    fn unavailable_max(&self) -> i64 {
        let amount = self.set.at(&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]);
        amount_of(amount, self.wanted(), false).max(1)
    }

    fn availability(&self, pod: &Value) -> Availability {
        match pod.str_at(&["status", "phase"]) {
            "Running" => pods::availability(pod, int_at(self.set, &["spec", "minReadySeconds"]), self.now),
            _ => Availability::No,
        }
    }

    fn is_unavailable(&self, pod: &Value) -> bool {
        is_going(pod) || self.availability(pod) != Availability::Yes
    }
}

/// The pods of a set by their numbers.
pub(super) fn by_ordinal<'p>(set: &Value, pods: &'p [Value]) -> BTreeMap<i64, &'p Value> {
    pods.iter().filter_map(|pod| Some((ordinal_of(set, pod)?, pod))).collect()
}

fn is_of(pod: &Value, revision: &str) -> bool {
    pod.str_at(&["metadata", "labels", POD_HASH]) == revision
}

/// An action for one pod.
#[derive(Debug, PartialEq)]
pub(super) enum Act {
    Create { ordinal: i64, of_update: bool },
    Delete(Value),
}

/// The actions, and when to check again.
#[derive(Debug, Default, PartialEq)]
pub(super) struct StatefulPlan {
    pub acts: Vec<Act>,
    pub again: Option<Duration>,
}

impl StatefulPlan {
    fn delete(&mut self, pod: &Value) {
        self.acts.push(Act::Delete(pod.clone()));
    }
}

/// The next actions. If pods are managed in order, each waits for those before it; otherwise all are handled at once.
pub(super) fn plan(seen: &ObservedStatefulSet<'_>) -> StatefulPlan {
    let mut plan = StatefulPlan { acts: Vec::new(), again: next_available(seen) };
    if is_going(seen.set) {
        return plan;
    }
    let goes_on = fill(seen, &mut plan) && shrink(seen, &mut plan);
    if goes_on && seen.is_rolling() {
        update(seen, &mut plan);
    }
    plan.acts.truncate(ACTS_MAX);
    plan
}

/// When the next ready pod becomes available.
fn next_available(seen: &ObservedStatefulSet<'_>) -> Option<Duration> {
    let pauses = seen.pods.values().map(|pod| match seen.availability(pod) {
        Availability::In(pause) => Some(pause),
        Availability::Yes | Availability::No => None,
    });
    pauses.fold(None, sooner)
}

/// Creates missing pods, and deletes finished ones. Returns whether to continue with other pods.
fn fill(seen: &ObservedStatefulSet<'_>, plan: &mut StatefulPlan) -> bool {
    for ordinal in seen.first()..seen.end() {
        let Some(pod) = seen.pods.get(&ordinal) else {
            let of_update = !seen.is_rolling() || ordinal >= seen.partition();
            plan.acts.push(Act::Create { ordinal, of_update });
            if seen.is_in_order() || plan.acts.len() >= ACTS_MAX {
                return false;
            }
            continue;
        };
        if pods::is_over(pod) && !is_going(pod) {
            plan.delete(pod);
        }
        if seen.is_in_order() && seen.is_unavailable(pod) {
            return false;
        }
    }
    true
}

/// Deletes surplus pods, the last first. Returns whether to continue with other pods.
fn shrink(seen: &ObservedStatefulSet<'_>, plan: &mut StatefulPlan) -> bool {
    let condemned = || seen.pods.iter().filter(|(ordinal, _)| !seen.has_place(**ordinal)).map(|(_, pod)| *pod);
    let first_unavailable = condemned().find(|pod| seen.is_unavailable(pod));
    for pod in condemned().rev() {
        if !is_going(pod) {
            // Where the others are not well, only the first of these may go.
            let waits = seen.is_in_order() && seen.is_unavailable(pod) && Some(pod) != first_unavailable;
            if !waits {
                plan.delete(pod);
            }
        }
        if seen.is_in_order() {
            return false;
        }
    }
    true
}

/// Deletes pods of another revision, the last first, as many as may be unavailable.
fn update(seen: &ObservedStatefulSet<'_>, plan: &mut StatefulPlan) {
    let available = seen.pods.iter().filter(|(ordinal, pod)| seen.has_place(**ordinal) && !seen.is_unavailable(pod));
    let unavailable = seen.wanted() - available.count() as i64;
    let may_go = usize::try_from(seen.unavailable_max() - unavailable).unwrap_or_default();
    let old = seen
        .pods
        .range(seen.partition()..)
        .rev()
        .filter(|(ordinal, pod)| seen.has_place(**ordinal) && !is_of(pod, seen.update) && pods::is_active(pod));
    old.take(may_go).for_each(|(_, pod)| plan.delete(pod));
}

/// The status of a set.
pub(super) fn status_of(seen: &ObservedStatefulSet<'_>) -> Value {
    let count = |is_wanted: &dyn Fn(&Value) -> bool| seen.pods.values().filter(|pod| is_wanted(pod)).count() as i64;
    let wanted = int_at(seen.set, &["spec", "replicas"]);
    let is_ready = |pod: &Value| pod.str_at(&["status", "phase"]) == "Running" && pods::is_ready(pod);
    let ready = count(&is_ready);
    let stays = |pod: &Value| !is_going(pod);
    let updated = count(&|pod| stays(pod) && is_of(pod, seen.update));
    let replicas = count(&|_| true);
    let is_done = seen.is_rolling() && [updated, replicas, ready].iter().all(|count| *count == wanted);
    let current = if is_done { seen.update } else { seen.current };
    let counts = [
        ("readyReplicas", ready),
        ("currentReplicas", count(&|pod| stays(pod) && is_of(pod, current))),
        ("updatedReplicas", updated),
    ];
    let available = count(&|pod| seen.availability(pod) == Availability::Yes);
    let mut status = object! {
        "observedGeneration" => int_at(seen.set, &["metadata", "generation"]),
        "replicas" => replicas,
        "availableReplicas" => available,
        "currentRevision" => current,
        "updateRevision" => seen.update,
        "collisionCount" => int_at(seen.set, &["status", "collisionCount"]),
    };
    let fields = status.make_object();
    counts.into_iter().filter(|(_, count)| *count > 0).for_each(|(name, count)| _ = fields.insert(name, count.into()));
    if let Some(conditions) = seen.set.at(&["status", "conditions"]) {
        fields.insert("conditions", conditions.clone());
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    fn pod(ordinal: i64, revision: &str, status: &str) -> Value {
        let running = "{phase: Running, conditions: [{type: Ready, status: 'True'}]}";
        let status = if status.is_empty() { running } else { status };
        read(&format!("metadata: {{name: s-{ordinal}, labels: {{{POD_HASH}: {revision}}}}}\nstatus: {status}"))
    }

    fn set(spec: &str) -> Value {
        read(&format!("metadata: {{name: s, namespace: d}}\nspec: {{{spec}}}"))
    }

    fn planned(spec: &str, pods: &[Value]) -> Vec<String> {
        let set = set(spec);
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let seen = ObservedStatefulSet { set: &set, pods: by_ordinal(&set, pods), current: "old", update: "new", now };
        let told = plan(&seen).acts.into_iter().map(|act| match act {
            Act::Create { ordinal, of_update } => {
                format!("create {ordinal} {}", if of_update { "new" } else { "old" })
            }
            Act::Delete(pod) => format!("delete {}", pod.str_at(&["metadata", "name"])),
        });
        told.collect()
    }

    #[track_caller]
    fn check(spec: &str, pods: &[Value], expected: &[&str]) {
        assert_eq!(planned(spec, pods), expected);
    }

    const PENDING: &str = "{phase: Pending}";

    #[test]
    fn pods_come_and_go_in_order() {
        let two = "replicas: 2";
        check(two, &[], &["create 0 new"]);
        check(two, &[pod(0, "new", PENDING)], &[]);
        check(two, &[pod(0, "new", "")], &["create 1 new"]);
        check(two, &[pod(0, "new", "{phase: Failed}")], &["delete s-0"]);
        check("replicas: 1", &[pod(0, "new", ""), pod(1, "new", ""), pod(2, "new", "")], &["delete s-2"]);
        check("replicas: 1, ordinals: {start: 5}", &[], &["create 5 new"]);
    }

    #[test]
    fn of_those_that_are_too_many_the_first_that_is_not_well_goes_first() {
        let unwell = [pod(0, "new", ""), pod(1, "new", PENDING), pod(2, "new", PENDING)];
        check("replicas: 1", &unwell, &[]);
        check("replicas: 2", &[pod(0, "new", ""), pod(1, "new", ""), pod(2, "new", PENDING)], &["delete s-2"]);
        check("replicas: 1, podManagementPolicy: Parallel", &unwell, &["delete s-2", "delete s-1"]);
    }

    #[test]
    fn where_pods_come_together_all_that_are_missing_do() {
        let parallel = "replicas: 3, podManagementPolicy: Parallel";
        check(parallel, &[pod(0, "new", PENDING)], &["create 1 new", "create 2 new"]);
        check(parallel, &[pod(1, "new", "{phase: Failed}")], &["create 0 new", "delete s-1", "create 2 new"]);
        let many = planned("replicas: 2147483647, podManagementPolicy: Parallel", &[]);
        assert_eq!(many.len(), ACTS_MAX);
    }

    #[test]
    fn an_update_goes_from_the_last_to_the_partition() {
        let pods = [pod(0, "old", ""), pod(1, "old", ""), pod(2, "new", "")];
        check("replicas: 3", &pods, &["delete s-1"]);
        let partition = "replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}";
        check(partition, &pods, &[]);
        check(partition, &pods[1..], &["create 0 old"]);
        check("replicas: 3, updateStrategy: {type: OnDelete}", &pods, &[]);
        check("replicas: 2", &[pod(0, "old", ""), pod(1, "new", "{phase: Running}")], &[]);
    }

    #[test]
    fn as_many_pods_are_updated_at_once_as_may_be_out_of_use() {
        let set = |amount: &str, policy: &str| {
            format!(
                "replicas: 4, podManagementPolicy: {policy}, updateStrategy: {{rollingUpdate: {{maxUnavailable: {amount}}}}}"
            )
        };
        let old: Vec<Value> = (0..4).map(|ordinal| pod(ordinal, "old", "")).collect();
        check(&set("2", "OrderedReady"), &old, &["delete s-3", "delete s-2"]);
        check(&set("'75%'", "OrderedReady"), &old, &["delete s-3", "delete s-2", "delete s-1"]);
        check(&set("'10%'", "OrderedReady"), &old, &["delete s-3"]);
        // One that is out of use already counts, whichever it is.
        let unwell = [pod(0, "old", PENDING), pod(1, "old", ""), pod(2, "old", ""), pod(3, "new", "")];
        check(&set("2", "Parallel"), &unwell, &["delete s-2"]);
        check(&set("1", "Parallel"), &unwell, &[]);
    }

    #[test]
    fn the_status_takes_the_new_revision_over_when_all_have_it() {
        let set = set("replicas: 2");
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let status = |pods: &[Value]| {
            status_of(&ObservedStatefulSet {
                set: &set,
                pods: by_ordinal(&set, pods),
                current: "old",
                update: "new",
                now,
            })
        };
        let half = status(&[pod(0, "old", ""), pod(1, "new", "")]);
        assert_eq!((half.str_at(&["currentRevision"]), int_at(&half, &["updatedReplicas"])), ("old", 1));
        let done = status(&[pod(0, "new", ""), pod(1, "new", "")]);
        assert_eq!((done.str_at(&["currentRevision"]), int_at(&done, &["currentReplicas"])), ("new", 2));
    }

    #[test]
    fn a_pod_that_goes_is_counted_for_as_long_as_it_is_ready() {
        let set = set("replicas: 1");
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let mut going = pod(0, "new", "");
        going.make_object().entry("metadata").make_object().insert("deletionTimestamp", Value::from("now"));
        let pods = [going];
        let status = status_of(&ObservedStatefulSet {
            set: &set,
            pods: by_ordinal(&set, &pods),
            current: "new",
            update: "new",
            now,
        });
        let counts = ["replicas", "readyReplicas", "availableReplicas", "updatedReplicas"];
        assert_eq!(counts.map(|count| int_at(&status, &[count])), [1, 1, 1, 0]);
    }
}
