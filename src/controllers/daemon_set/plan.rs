//! The plan for a DaemonSet, based on its observed state: the pods to create and to delete, and its status.
//!
//! Input: the set, its pods, the nodes, the time. Nothing is read or written here.
//!
//! Source: `pkg/controller/daemon` of Kubernetes 1.37.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::super::amounts::amount_of;
use super::super::back_off::BackOff;
use super::super::client::{int_at, is_going, sooner};
use super::super::history::POD_HASH;
use super::super::pods::{self, Availability};
use super::super::{conditions, nodes};
use crate::object;
use crate::value::Value;

const GENERATION: &str = "pod-template-generation";
/// What its pods tolerate, by key and effect.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// The node that a pod is on, or is meant for.
pub(super) fn node_of(pod: &Value) -> &str {
    match pod.str_at(&["spec", "nodeName"]) {
        "" => {
            let required = ["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
            let terms = pod.at(&required).map(|terms| terms.items_at(&["nodeSelectorTerms"])).unwrap_or_default();
            let mut fields = terms.iter().flat_map(|term| term.items_at(&["matchFields"]));
            let field = fields.find(|field| field.str_at(&["key"]) == "metadata.name");
            let name = field.and_then(|field| field.items_at(&["values"]).first()).and_then(Value::as_str);
            name.unwrap_or_default()
        }
        name => name,
    }
}

/// The pods of each node; a pod that has ended and is being deleted is ignored.
fn by_node(found: &[Value]) -> BTreeMap<&str, Vec<&Value>> {
    let mut by_node: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    let counted = found.iter().filter(|pod| !(pods::is_over(pod) && is_going(pod)));
    counted.for_each(|pod| by_node.entry(node_of(pod)).or_default().push(pod));
    // The oldest stays.
    by_node.values_mut().for_each(|pods| pods.sort_by_key(|pod| pod.str_at(&["metadata", "creationTimestamp"])));
    by_node
}

/// A DaemonSet as it was seen.
pub(super) struct ObservedDaemonSet<'s> {
    set: &'s Value,
    /// The verdict about each node.
    nodes: BTreeMap<&'s str, NodeVerdict>,
    pods: BTreeMap<&'s str, Vec<&'s Value>>,
    /// The hash of the current template.
    hash: &'s str,
    now: Timestamp,
}

/// Whether a DaemonSet may have a pod on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeVerdict {
    Yes,
    /// Existing pods may stay.
    ToStay,
    No,
}

/// Whether a node allows a pod of a DaemonSet.
pub(super) fn allowed(set: &Value, node: &Value) -> NodeVerdict {
    let spec = set.at(&["spec", "template", "spec"]).unwrap_or(&Value::Null);
    let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
    let name = node.str_at(&["metadata", "name"]);
    if !["", name].contains(&spec.str_at(&["nodeName"])) {
        return NodeVerdict::No;
    }
    let tolerations = tolerations(spec);
    let taints = node.items_at(&["spec", "taints"]);
    if !nodes::is_selected(spec, name, &labels) || nodes::untolerated(taints, &tolerations, &["NoExecute"]).is_some() {
        return NodeVerdict::No;
    }
    match nodes::untolerated(taints, &tolerations, &["NoSchedule"]) {
        Some(_) => NodeVerdict::ToStay,
        None => NodeVerdict::Yes,
    }
}

/// What the pods of a DaemonSet tolerate.
fn tolerations(spec: &Value) -> Vec<Value> {
    let mut tolerations = spec.items_at(&["tolerations"]).to_vec();
    let on_host = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    let network = on_host.then_some(("node.kubernetes.io/network-unavailable", "NoSchedule"));
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let added = object! { "key" => key, "operator" => "Exists", "effect" => effect };
        if !tolerations.contains(&added) {
            tolerations.push(added);
        }
    }
    tolerations
}

/// A pod of the set for a node.
pub(super) fn new_pod(set: &Value, node: &str, hash: &str, reference: Value) -> Value {
    let template = set.at(&["spec", "template"]).cloned().unwrap_or_default();
    let mut pod = pods::of_template(&template, set, reference);
    let labels = pod.make_object().entry("metadata").make_object().entry("labels").make_object();
    labels.insert(POD_HASH, Value::from(hash));
    let generation = set.str_at(&["metadata", "annotations", "deprecated.daemonset.template.generation"]);
    labels.insert(GENERATION, Value::from(if generation.is_empty() { "1" } else { generation }));
    let spec = pod.make_object().entry("spec").make_object();
    let tolerations = tolerations(&Value::Object(spec.clone()));
    spec.insert("tolerations", Value::Array(tolerations));
    let field = object! { "key" => "metadata.name", "operator" => "In", "values" => vec![Value::from(node)] };
    let affinity = spec.entry("affinity").make_object().entry("nodeAffinity").make_object();
    let required = affinity.entry("requiredDuringSchedulingIgnoredDuringExecution").make_object();
    let mut terms = required.get("nodeSelectorTerms").and_then(Value::as_array).unwrap_or_default().to_vec();
    if terms.is_empty() {
        terms.push(object! {});
    }
    for term in &mut terms {
        term.make_object().insert("matchFields", Value::Array(vec![field.clone()]));
    }
    required.insert("nodeSelectorTerms", Value::Array(terms));
    pod
}

/// The plan.
#[derive(Debug, Default, PartialEq)]
pub(super) struct DaemonPlan<'p> {
    /// The nodes that get a pod.
    pub create: BTreeSet<&'p str>,
    /// These pods, by their names.
    pub delete: BTreeMap<&'p str, &'p Value>,
}

impl<'p> DaemonPlan<'p> {
    fn remove(&mut self, pod: &'p Value) {
        self.delete.insert(pod.str_at(&["metadata", "name"]), pod);
    }

    fn remove_all(&mut self, pods: impl IntoIterator<Item = &'p Value>) {
        pods.into_iter().for_each(|pod| self.remove(pod));
    }
}

pub(super) fn plan<'s>(seen: &ObservedDaemonSet<'s>) -> DaemonPlan<'s> {
    let mut plan = DaemonPlan::default();
    let surges = seen.amount("maxSurge") > 0;
    for (name, allowed) in &seen.nodes {
        let there = seen.pods.get(name).map(Vec::as_slice).unwrap_or_default();
        let (over, running): (Vec<&Value>, Vec<&Value>) =
            there.iter().copied().filter(|pod| !is_going(pod)).partition(|pod| pods::is_over(pod));
        plan.remove_all(over);
        if *allowed == NodeVerdict::No {
            plan.remove_all(running);
            continue;
        }
        let is_missing = if surges { running.is_empty() } else { there.is_empty() };
        if surges {
            plan.remove_all(seen.surplus(&running));
        } else {
            plan.remove_all(running.into_iter().skip(1));
        }
        if is_missing && *allowed == NodeVerdict::Yes {
            plan.create.insert(name);
        }
    }
    let on_gone = seen.pods.iter().filter(|(node, _)| !seen.nodes.contains_key(*node)).flat_map(|(_, pods)| pods);
    plan.remove_all(on_gone.copied().filter(|pod| !is_going(pod)));
    roll(seen, &mut plan);
    plan
}

/// Keeps failed pods on nodes where another failed shortly before; returns for how long.
pub(super) fn hold_back(
    seen: &ObservedDaemonSet<'_>,
    plan: &mut DaemonPlan<'_>,
    failures: &mut BackOff,
) -> Option<Duration> {
    let (uid, generation) =
        (seen.set.str_at(&["metadata", "uid"]), int_at(seen.set, &["status", "observedGeneration"]));
    let mut again = None;
    plan.delete.retain(|_, pod| {
        let node = node_of(pod);
        let may_stay = seen.nodes.get(node).is_some_and(|allowed| *allowed != NodeVerdict::No);
        if !may_stay || pod.str_at(&["status", "phase"]) != "Failed" {
            return true;
        }
        let key = format!("{uid}/{generation}/{node}");
        let pause = failures.left(&key, seen.now);
        if pause.is_none() {
            failures.begin(key, seen.now);
        }
        again = sooner(again, pause);
        pause.is_none()
    });
    again
}

/// Replaces pods of older templates: those that are not available anyway, and as many others as may be unavailable.
fn roll<'s>(seen: &ObservedDaemonSet<'s>, plan: &mut DaemonPlan<'s>) {
    if seen.set.str_at(&["spec", "updateStrategy", "type"]) != "RollingUpdate" {
        return;
    }
    let surge = seen.amount("maxSurge");
    if surge > 0 {
        return surge_over(seen, surge, plan);
    }
    let most = seen.amount("maxUnavailable").max(1);
    let (mut missing, mut old) = (0, Vec::new());
    for name in seen.wanted() {
        let there = seen.pods.get(name).map(Vec::as_slice).unwrap_or_default();
        let running = there.iter().find(|pod| !is_going(pod) && !pods::is_over(pod));
        let Some(pod) = running else {
            missing += 1;
            continue;
        };
        let is_available = seen.availability(pod) == Availability::Yes;
        missing += i64::from(!is_available);
        if pod.str_at(&["metadata", "labels", POD_HASH]) != seen.hash {
            old.push((is_available, *pod));
        }
    }
    let spare = usize::try_from(most - missing).unwrap_or_default();
    let (available, others): (Vec<_>, Vec<_>) = old.into_iter().partition(|(is_available, _)| *is_available);
    plan.remove_all(others.into_iter().chain(available.into_iter().take(spare)).map(|(_, pod)| pod));
}

/// Creates new pods next to old ones, within the surge limit; an old one is deleted once its successor is available.
fn surge_over<'s>(seen: &ObservedDaemonSet<'s>, most: i64, plan: &mut DaemonPlan<'s>) {
    let (mut surging, mut available) = (0, 0);
    let (mut at_once, mut candidates, mut homeless) = (Vec::new(), Vec::new(), Vec::new());
    for (name, there) in &seen.pods {
        let (new, old) = seen.by_age(there.iter().copied().filter(|pod| !is_going(pod)));
        if new.len() > 1 || old.len() > 1 {
            surging += 1;
            continue;
        }
        let is_available = |pod: &&&Value| seen.availability(pod) == Availability::Yes;
        available += i64::from(old.first().or(new.first()).is_some_and(|pod| is_available(&pod)));
        let Some(old) = old.first() else { continue };
        let is_wanted = seen.nodes.get(name) == Some(&NodeVerdict::Yes);
        match (new.first(), is_available(&old)) {
            (Some(new), _) if is_available(&new) => plan.remove(old),
            (Some(_), _) => surging += 1,
            (None, false) if is_wanted => at_once.push(*name),
            (None, false) => plan.remove(old),
            (None, true) if is_wanted => candidates.push(*name),
            (None, true) => homeless.push(*old),
        }
    }
    // Where the set has moved to other nodes, those that are left stay until there are enough.
    let spare = usize::try_from(available - seen.wanted().count() as i64).unwrap_or_default();
    homeless.into_iter().take(spare).for_each(|pod| plan.remove(pod));
    candidates.truncate(usize::try_from(most - surging).unwrap_or_default());
    plan.create.extend(at_once.into_iter().chain(candidates));
}

impl<'s> ObservedDaemonSet<'s> {
    pub fn new(
        set: &'s Value,
        nodes: &'s BTreeMap<Arc<str>, NodeVerdict>,
        found: &'s [Value],
        hash: &'s str,
        now: Timestamp,
    ) -> Self {
        let nodes = nodes.iter().map(|(name, verdict)| (&**name, *verdict)).collect();
        ObservedDaemonSet { set, nodes, pods: by_node(found), hash, now }
    }

    /// The names of the nodes that must have a pod.
    fn wanted(&self) -> impl Iterator<Item = &'s str> {
        self.nodes.iter().filter(|(_, allowed)| **allowed == NodeVerdict::Yes).map(|(name, _)| *name)
    }

    /// An amount of the rolling update, relative to the nodes that must have a pod.
    fn amount(&self, field: &str) -> i64 {
        let rolling = self.set.at(&["spec", "updateStrategy", "rollingUpdate", field]);
        amount_of(rolling.filter(|amount| !amount.is_null()), self.wanted().count() as i64, true)
    }

    /// Pods of the current template, and those of older ones.
    fn by_age<'p>(&self, pods: impl Iterator<Item = &'p Value>) -> (Vec<&'p Value>, Vec<&'p Value>) {
        pods.partition(|pod| pod.str_at(&["metadata", "labels", POD_HASH]) == self.hash)
    }

    /// The surplus pods on a node that may have one pod of each template: all but the oldest of each, and the old one
    /// if it is no longer needed.
    fn surplus<'p>(&self, running: &[&'p Value]) -> Vec<&'p Value> {
        let (new, old) = self.by_age(running.iter().copied());
        let mut surplus: Vec<&Value> = new.iter().skip(1).chain(old.iter().skip(1)).copied().collect();
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (!pods::is_ready(old) || self.availability(new) == Availability::Yes)
        {
            surplus.push(old);
        }
        surplus
    }

    fn availability(&self, pod: &Value) -> Availability {
        pods::availability(pod, int_at(self.set, &["spec", "minReadySeconds"]), self.now)
    }
}

pub(super) fn status_of(seen: &ObservedDaemonSet<'_>) -> (Value, Option<Duration>) {
    let (mut wanted, mut current, mut misplaced, mut ready, mut updated, mut available) = (0, 0, 0, 0, 0, 0);
    let mut again = None;
    for (name, allowed) in &seen.nodes {
        let there = seen.pods.get(name).and_then(|pods| pods.first());
        if *allowed != NodeVerdict::Yes {
            misplaced += i64::from(there.is_some());
            continue;
        }
        wanted += 1;
        let Some(pod) = there else { continue };
        current += 1;
        updated += i64::from(pod.str_at(&["metadata", "labels", POD_HASH]) == seen.hash);
        ready += i64::from(pods::is_ready(pod));
        match seen.availability(pod) {
            Availability::Yes => available += 1,
            Availability::In(pause) => again = sooner(again, Some(pause)),
            Availability::No => {}
        }
    }
    let mut status = object! {
        "currentNumberScheduled" => current,
        "desiredNumberScheduled" => wanted,
        "numberMisscheduled" => misplaced,
        "numberReady" => ready,
        "observedGeneration" => int_at(seen.set, &["metadata", "generation"]),
    };
    let fields = status.make_object();
    let counts = [
        ("updatedNumberScheduled", updated),
        ("numberAvailable", available),
        ("numberUnavailable", wanted - available),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).for_each(|(name, count)| _ = fields.insert(name, count.into()));
    conditions::put(&mut status, conditions::of(seen.set).to_vec());
    (status, again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    fn set() -> Value {
        read(
            "metadata: {name: s, namespace: d}\n\
             spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}, \
             template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {role: web}}}}",
        )
    }

    fn node(name: &str, rest: &str) -> Value {
        read(&format!("metadata: {{name: {name}, labels: {{role: web}}}}\nspec: {{{rest}}}"))
    }

    fn pod(name: &str, node: &str, hash: &str) -> Value {
        read(&format!(
            "metadata: {{name: {name}, labels: {{{POD_HASH}: {hash}}}}}\nspec: {{nodeName: {node}}}\n\
             status: {{phase: Running, conditions: [{{type: Ready, status: 'True'}}]}}"
        ))
    }

    fn verdicts(set: &Value, nodes: &[Value]) -> BTreeMap<Arc<str>, NodeVerdict> {
        nodes.iter().map(|node| (node.str_at(&["metadata", "name"]).into(), allowed(set, node))).collect()
    }

    fn planned(nodes: &[Value], found: &[Value]) -> (Vec<String>, Vec<String>) {
        planned_of(&set(), nodes, found)
    }

    /// The nodes that get a pod, and the pods to delete.
    fn planned_of(set: &Value, nodes: &[Value], found: &[Value]) -> (Vec<String>, Vec<String>) {
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let nodes = verdicts(set, nodes);
        let seen = ObservedDaemonSet::new(set, &nodes, found, "new", now);
        let plan = plan(&seen);
        let owned = |name: &&str| (*name).to_owned();
        (plan.create.iter().map(owned).collect(), plan.delete.keys().map(owned).collect())
    }

    #[test]
    fn each_node_that_allows_it_has_one() {
        let tainted = "taints: [{key: k, effect: NoSchedule}]";
        let evicting = "taints: [{key: k, effect: NoExecute}]";
        let cordoned = "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]";
        let nodes = [node("a", ""), node("b", tainted), node("c", evicting), node("d", cordoned)];
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(planned(&nodes, &[]), (names(&["a", "d"]), names(&[])));
        let found = ["a", "b", "c", "d", "gone"].map(|node| pod(&format!("on-{node}"), node, "new"));
        assert_eq!(planned(&nodes, &found), (names(&[]), names(&["on-c", "on-gone"])));
        let twice = [pod("first", "a", "new"), pod("second", "a", "new")];
        assert_eq!(planned(&nodes[..1], &twice), (names(&[]), names(&["second"])));
    }

    #[test]
    fn pods_that_fail_again_and_again_stay_longer_each_time() {
        let (set, nodes) = (set(), [node("a", ""), node("b", "taints: [{key: k, effect: NoExecute}]")]);
        let failed = ["a", "b"].map(|node| {
            let mut pod = pod(&format!("on-{node}"), node, "new");
            pod.make_object().insert("status", read("{phase: Failed}"));
            pod
        });
        let nodes = verdicts(&set, &nodes);
        let mut failures = BackOff::new(1, 60);
        let mut at = |millis: i64| {
            let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
            let seen =
                ObservedDaemonSet::new(&set, &nodes, &failed, "new", start + jiff::SignedDuration::from_millis(millis));
            let mut plan = plan(&seen);
            let pause = hold_back(&seen, &mut plan, &mut failures);
            (plan.delete.keys().copied().collect::<Vec<_>>().join(" "), pause.map_or(0, |pause| pause.as_millis()))
        };
        // Where none may stay, none waits.
        assert_eq!(at(0), ("on-a on-b".to_owned(), 0));
        assert_eq!(at(400), ("on-b".to_owned(), 600));
        assert_eq!(at(1000), ("on-a on-b".to_owned(), 0));
        assert_eq!(at(1500), ("on-b".to_owned(), 1500));
    }

    #[test]
    fn old_pods_are_replaced_a_few_at_a_time() {
        let nodes = ["a", "b", "c"].map(|name| node(name, ""));
        let found = ["a", "b", "c"].map(|node| pod(&format!("on-{node}"), node, "old"));
        assert_eq!(planned(&nodes, &found).1, ["on-a"]);
        assert_eq!(planned(&nodes, &found[1..]), (vec!["a".to_owned()], Vec::new()));
    }

    #[test]
    fn new_pods_come_before_old_ones_go_where_there_may_be_more() {
        let mut set = set();
        let strategy = set.at_mut(&["spec", "updateStrategy"]).expect("it has one");
        strategy.make_object().insert("rollingUpdate", read("{maxSurge: 1, maxUnavailable: 0}"));
        let nodes = ["a", "b", "c"].map(|name| node(name, ""));
        let old = ["a", "b", "c"].map(|node| pod(&format!("on-{node}"), node, "old"));
        let unready = |mut pod: Value| {
            pod.make_object().insert("status", read("{phase: Running}"));
            pod
        };
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let check = |more: &[Value], create: &[&str], delete: &[&str]| {
            let found: Vec<Value> = old.iter().chain(more).cloned().collect();
            assert_eq!(planned_of(&set, &nodes, &found), (names(create), names(delete)));
        };
        check(&[], &["a"], &[]);
        check(&[unready(pod("new-a", "a", "new"))], &[], &[]);
        check(&[pod("new-a", "a", "new")], &["b"], &["on-a"]);
        // An old one that is of no use has a successor at once.
        let found = [old[0].clone(), unready(old[1].clone()), old[2].clone()];
        assert_eq!(planned_of(&set, &nodes, &found), (names(&["a", "b"]), names(&[])));
        let found = [unready(old[0].clone()), unready(pod("new-a", "a", "new")), old[1].clone(), old[2].clone()];
        assert_eq!(planned_of(&set, &nodes, &found).1, ["on-a"]);
    }

    #[test]
    fn a_pod_is_for_its_node() {
        let pod = new_pod(&set(), "n", "h", object! {});
        assert_eq!(node_of(&pod), "n");
        assert_eq!(pod.items_at(&["spec", "tolerations"]).len(), TOLERATED.len());
    }

    #[test]
    fn the_status_counts_nodes() {
        let (set, nodes) = (set(), ["a", "b"].map(|name| node(name, "")));
        let found = [pod("p", "a", "new")];
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let (status, _) = status_of(&ObservedDaemonSet::new(&set, &verdicts(&set, &nodes), &found, "new", now));
        let counts = ["desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberUnavailable"];
        assert_eq!(counts.map(|count| int_at(&status, &[count])), [2, 1, 1, 1]);
    }

    #[test]
    fn a_pod_that_may_only_stay_is_misplaced() {
        let (set, nodes) = (set(), [node("a", "taints: [{key: k, effect: NoSchedule}]"), node("b", "")]);
        let found = [pod("p", "a", "new"), pod("q", "b", "old")];
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let (status, _) = status_of(&ObservedDaemonSet::new(&set, &verdicts(&set, &nodes), &found, "new", now));
        let counts = ["desiredNumberScheduled", "numberMisscheduled", "numberAvailable", "updatedNumberScheduled"];
        assert_eq!(counts.map(|count| int_at(&status, &[count])), [1, 1, 1, 0]);
    }
}
