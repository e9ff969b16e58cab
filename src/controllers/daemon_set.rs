//! DaemonSets: a pod on each node that allows it.
//!
//! DIFFERS: with `maxSurge`, pods are replaced as with a `maxUnavailable` of the same amount.
//!
//! Source: `pkg/controller/daemon` of Kubernetes 1.37.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::amounts::amount_of;
use super::client::{Client, Kind, NODES, PODS, int_at, is_going, key_of, sooner};
use super::family::{self, Family};
use super::history::{self, POD_HASH};
use super::pod_control::{create_pods, delete_pods};
use super::pods::{self, Availability};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::switches::{Means, Running};
use super::{conditions, nodes};
use crate::meta::Status;
use crate::object;
use crate::store::{Collection, Entry};
use crate::value::Value;

const SETS: Kind = Kind("apps", "daemonsets");
const TYPE: (&str, &str) = ("apps/v1", "DaemonSet");
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

struct DaemonSets {
    client: Client,
    family: Family,
    sets: Mutex<BTreeSet<String>>,
}

impl Reconciler for DaemonSets {
    const TASK: &str = "keeping daemon sets";

    fn collections(&self) -> Vec<Collection> {
        vec![SETS.collection(), PODS.collection()]
    }

    fn note(&self, change: &Entry) -> Vec<String> {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if NODES.is(&change.collection) {
            return sets.iter().cloned().collect();
        }
        if SETS.is(&change.collection) {
            match change.stored {
                Some(_) => sets.insert(change.key.to_string()),
                None => sets.remove(&*change.key),
            };
        }
        self.family.note(change)
    }

    fn forget(&self) {
        self.family.forget();
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(set) = self.client.get(SETS, key).await? else { return Ok(Progress::Done) };
        let Some(selector) = family::selector(&set).filter(|_| !is_going(&set)) else { return Ok(Progress::Done) };
        let found = self.family.claimed(&self.client, &set, &selector).await?;
        let nodes = self.client.list(NODES, "", |_| true).await?;
        let revisions = history::revisions(&self.client, TYPE, &set).await?;
        let hash = revisions.last().map(history::hash_of).unwrap_or_default().to_owned();
        let seen = Seen { set: &set, nodes: &nodes, pods: by_node(&found), hash: &hash, now: self.client.now() };
        let plan = plan(&seen);
        for pod in plan.delete.iter().filter(|pod| pods::is_over(pod)) {
            let node = node_of(pod);
            let message = format!("Found failed daemon pod {} on node {node}, will try to kill it", key_of(pod));
            self.client.tell_warning(&set, "FailedDaemonPod", message);
        }
        delete_pods(&self.client, &set, &plan.delete).await?;
        let made = plan.create.iter().map(|node| new_pod(&set, node, &hash, self.family.reference(&set)));
        create_pods(&self.client, &self.family, &set, made.collect()).await?;
        let (status, again) = status_of(&seen);
        self.client.update_status(SETS, &set, status).await?;
        let limit = set.at(&["spec", "revisionHistoryLimit"]).and_then(Value::as_i64).unwrap_or(10);
        let live: Vec<&str> = found.iter().map(|pod| pod.str_at(&["metadata", "labels", POD_HASH])).collect();
        history::clean_up(&self.client, &revisions, limit, &live).await?;
        Ok(again.map_or(Progress::Done, Progress::After))
    }
}

/// The node that a pod is on, or is to be on.
fn node_of(pod: &Value) -> &str {
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

fn by_node(pods: &[Value]) -> BTreeMap<&str, Vec<&Value>> {
    let mut by_node: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    pods.iter().for_each(|pod| by_node.entry(node_of(pod)).or_default().push(pod));
    // The oldest stays.
    by_node.values_mut().for_each(|pods| pods.sort_by_key(|pod| pod.str_at(&["metadata", "creationTimestamp"])));
    by_node
}

struct Seen<'s> {
    set: &'s Value,
    nodes: &'s [Value],
    pods: BTreeMap<&'s str, Vec<&'s Value>>,
    /// Of the present template.
    hash: &'s str,
    now: Timestamp,
}

/// What a node says to a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Yes,
    /// What is there may stay.
    ToStay,
    No,
}

/// Whether a node allows a pod of a DaemonSet.
fn allowed(set: &Value, node: &Value) -> Allowed {
    let spec = set.at(&["spec", "template", "spec"]).unwrap_or(&Value::Null);
    let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
    let name = node.str_at(&["metadata", "name"]);
    if !["", name].contains(&spec.str_at(&["nodeName"])) {
        return Allowed::No;
    }
    let tolerations = tolerations(spec);
    let taints = node.items_at(&["spec", "taints"]);
    if !nodes::is_selected(spec, name, &labels) || nodes::untolerated(taints, &tolerations, &["NoExecute"]).is_some() {
        return Allowed::No;
    }
    match nodes::untolerated(taints, &tolerations, &["NoSchedule"]) {
        Some(_) => Allowed::ToStay,
        None => Allowed::Yes,
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

fn new_pod(set: &Value, node: &str, hash: &str, reference: Value) -> Value {
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

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    /// On these nodes.
    create: Vec<String>,
    delete: Vec<Value>,
}

fn plan(seen: &Seen<'_>) -> Plan {
    let mut plan = Plan::default();
    for node in seen.nodes {
        let name = node.str_at(&["metadata", "name"]);
        let there = seen.pods.get(name).map(Vec::as_slice).unwrap_or_default();
        let (over, running): (Vec<&Value>, Vec<&Value>) =
            there.iter().copied().filter(|pod| !is_going(pod)).partition(|pod| pods::is_over(pod));
        let allowed = allowed(seen.set, node);
        if allowed == Allowed::No {
            plan.delete.extend(running.into_iter().chain(over).cloned());
            continue;
        }
        plan.delete.extend(over.iter().map(|pod| (*pod).clone()));
        plan.delete.extend(running.iter().skip(1).map(|pod| (*pod).clone()));
        if there.is_empty() && allowed == Allowed::Yes {
            plan.create.push(name.to_owned());
        }
    }
    let names: BTreeSet<&str> = seen.nodes.iter().map(|node| node.str_at(&["metadata", "name"])).collect();
    let on_gone = seen.pods.iter().filter(|(node, _)| !names.contains(*node)).flat_map(|(_, pods)| pods);
    plan.delete.extend(on_gone.filter(|pod| !is_going(pod)).map(|pod| (*pod).clone()));
    roll(seen, &mut plan);
    plan
}

/// Replaces pods of older templates: those that are not available anyway, and as many others as may be missing.
fn roll(seen: &Seen<'_>, plan: &mut Plan) {
    if seen.set.str_at(&["spec", "updateStrategy", "type"]) != "RollingUpdate" {
        return;
    }
    let wanted: Vec<&Value> = seen.nodes.iter().filter(|node| allowed(seen.set, node) == Allowed::Yes).collect();
    let rolling = |field| seen.set.at(&["spec", "updateStrategy", "rollingUpdate", field]);
    let total = wanted.len() as i64;
    let amount = |field| amount_of(rolling(field), total, true);
    let most = match amount("maxUnavailable") {
        0 => amount("maxSurge").max(1),
        most => most,
    };
    let (mut missing, mut old) = (0, Vec::new());
    for node in wanted {
        let there = seen.pods.get(node.str_at(&["metadata", "name"])).map(Vec::as_slice).unwrap_or_default();
        let running = there.iter().find(|pod| !is_going(pod) && !pods::is_over(pod));
        let Some(pod) = running else {
            missing += 1;
            continue;
        };
        let is_available = seen.availability(pod) == Availability::Yes;
        missing += i64::from(!is_available);
        if pod.str_at(&["metadata", "labels", POD_HASH]) != seen.hash {
            old.push((is_available, (*pod).clone()));
        }
    }
    let spare = usize::try_from(most - missing).unwrap_or_default();
    let (available, others): (Vec<_>, Vec<_>) = old.into_iter().partition(|(is_available, _)| *is_available);
    let replaced = others.into_iter().chain(available.into_iter().take(spare)).map(|(_, pod)| pod);
    let replaced: Vec<Value> = replaced.filter(|pod| !plan.delete.contains(pod)).collect();
    plan.delete.extend(replaced);
}

impl Seen<'_> {
    fn availability(&self, pod: &Value) -> Availability {
        pods::availability(pod, int_at(self.set, &["spec", "minReadySeconds"]), self.now)
    }
}

fn status_of(seen: &Seen<'_>) -> (Value, Option<Duration>) {
    let (mut wanted, mut current, mut misplaced, mut ready, mut updated, mut available) = (0, 0, 0, 0, 0, 0);
    let mut again = None;
    for node in seen.nodes {
        let there = seen.pods.get(node.str_at(&["metadata", "name"])).and_then(|pods| pods.first());
        if allowed(seen.set, node) == Allowed::No || (there.is_none() && allowed(seen.set, node) != Allowed::Yes) {
            misplaced += i64::from(there.is_some());
            continue;
        }
        wanted += 1;
        let Some(pod) = there else { continue };
        current += 1;
        if !pods::is_ready(pod) || is_going(pod) {
            continue;
        }
        ready += 1;
        match seen.availability(pod) {
            Availability::Yes => available += 1,
            Availability::In(pause) => again = sooner(again, Some(pause)),
            Availability::No => {}
        }
    }
    for pod in seen.pods.values().filter_map(|pods| pods.first()) {
        updated += i64::from(pod.str_at(&["metadata", "labels", POD_HASH]) == seen.hash);
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

/// Starts it.
pub(super) fn start(means: &Means) -> Running {
    let family = Family::new(SETS, TYPE, PODS);
    let sets = DaemonSets { client: means.client("daemonset-controller"), family, sets: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&means.registry), sets))
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

    fn planned(nodes: &[Value], found: &[Value]) -> (Vec<String>, Vec<String>) {
        let set = set();
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let plan = plan(&Seen { set: &set, nodes, pods: by_node(found), hash: "new", now });
        let deleted = plan.delete.iter().map(|pod| pod.str_at(&["metadata", "name"]).to_owned()).collect();
        (plan.create, deleted)
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
    fn old_pods_are_replaced_a_few_at_a_time() {
        let nodes = ["a", "b", "c"].map(|name| node(name, ""));
        let found = ["a", "b", "c"].map(|node| pod(&format!("on-{node}"), node, "old"));
        assert_eq!(planned(&nodes, &found).1, ["on-a"]);
        assert_eq!(planned(&nodes, &found[1..]), (vec!["a".to_owned()], Vec::new()));
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
        let (status, _) = status_of(&Seen { set: &set, nodes: &nodes, pods: by_node(&found), hash: "new", now });
        let counts = ["desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberUnavailable"];
        assert_eq!(counts.map(|count| int_at(&status, &[count])), [2, 1, 1, 1]);
    }
}
