//! Which nodes are possible for a pod, and why the others are not.
//!
//! The order and the texts of reasons are those of the plugins of kube-scheduler 1.37.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::pod::Pod;
use super::refusal::{Refused, never, not_now};
use super::state::{Awaits, NodeInfo, State};
use crate::controllers::nodes;
use crate::meta::selector::LabelSelector;
use crate::object;
use crate::value::Value;
use crate::work;

/// A pod that needs a node.
pub(super) struct PendingPod<'w> {
    pub object: &'w Value,
    pub pod: Pod,
    /// The node affinity of its volumes.
    pub volumes: Vec<Value>,
}

impl<'w> PendingPod<'w> {
    pub fn of(object: &'w Value) -> Self {
        PendingPod { object, pod: Pod::of(object), volumes: Vec::new() }
    }

    pub fn spec(&self) -> &Value {
        self.object.get("spec").unwrap_or(&Value::Null)
    }

    pub fn affinity(&self, kind: &str, strength: &str) -> &[Value] {
        self.object.items_at(&["spec", "affinity", kind, &format!("{strength}DuringSchedulingIgnoredDuringExecution")])
    }
}

/// Whether a pod may go to a node, with the pods in `node`: `state` may have it with other pods.
pub(super) fn fits(wanted: &PendingPod<'_>, node: &NodeInfo, state: &State) -> Result<(), Refused> {
    fits_node(wanted, node)?;
    if has_port_taken(wanted, node) {
        return not_now(Awaits::ROOM, vec!["node(s) didn't have free ports for the requested pod ports".to_owned()]);
    }
    has_room(wanted, node, state)?;
    reaches_volumes(wanted, node)?;
    spreads(wanted, node, state)?;
    keeps_company(wanted, node, state)
}

/// Whether a pod of the node uses a port that the pod requests, on a common address.
fn has_port_taken(wanted: &PendingPod<'_>, node: &NodeInfo) -> bool {
    if wanted.pod.ports.is_empty() {
        return false;
    }
    let mut asked: HashMap<(&str, i64), BTreeSet<&str>> = HashMap::new();
    for (protocol, address, number) in &wanted.pod.ports {
        work::step();
        asked.entry((protocol.as_str(), *number)).or_default().insert(address);
    }
    let is_any = |address: &str| address.is_empty() || address == "0.0.0.0";
    let mut taken = node.pods.values().flat_map(|pod| &pod.ports).inspect(|_| work::step());
    taken.any(|(protocol, address, number)| {
        let addresses = asked.get(&(protocol.as_str(), *number));
        addresses.is_some_and(|addresses| {
            is_any(address)
                || addresses.contains(address.as_str())
                || ["", "0.0.0.0"].iter().any(|any| addresses.contains(any))
        })
    })
}

/// Whether the node itself allows the pod, regardless of other pods.
fn fits_node(wanted: &PendingPod<'_>, node: &NodeInfo) -> Result<(), Refused> {
    if nodes::is_ruled_out_by_name(wanted.spec(), &node.name) {
        return never(Awaits::NODE, "node(s) didn't satisfy plugin(s) [NodeAffinity]");
    }
    let tolerations = wanted.object.items_at(&["spec", "tolerations"]);
    let unschedulable = object! { "key" => "node.kubernetes.io/unschedulable", "effect" => "NoSchedule" };
    if node.is_unschedulable && !tolerations.iter().any(|it| nodes::tolerates(it, &unschedulable)) {
        return never(Awaits::NODE, "node(s) were unschedulable");
    }
    if nodes::untolerated(&node.taints, tolerations, &["NoSchedule", "NoExecute"]).is_some() {
        return never(Awaits::NODE, "node(s) had untolerated taint(s)");
    }
    if nodes::is_selected(wanted.spec(), &node.name, &node.labels) {
        Ok(())
    } else {
        never(Awaits::NODE, "node(s) didn't match Pod's node affinity/selector")
    }
}

/// Whether the resources of the node suffice. Room that is being made for other pods with at least the same priority
/// counts as taken.
fn has_room(wanted: &PendingPod<'_>, node: &NodeInfo, state: &State) -> Result<(), Refused> {
    let promised: Vec<&Pod> = state
        .nominated
        .values()
        .filter(|(name, pod)| *name == node.name && pod.priority >= wanted.pod.priority && pod.key != wanted.pod.key)
        .map(|(_, pod)| pod)
        .collect();
    let mut reasons = Vec::new();
    let mut is_too_small = false;
    let places = node.allocatable.get("pods").copied().unwrap_or_default();
    if (node.pods.len() + promised.len() + 1) as i64 > places {
        reasons.push("Too many pods".to_owned());
    }
    for (name, amount) in &wanted.pod.requests {
        work::steps(1 + promised.len());
        let allocatable = node.allocatable.get(name).copied().unwrap_or_default();
        let promised: i64 = promised.iter().filter_map(|pod| pod.requests.get(name)).sum();
        let used = node.used.get(name).copied().unwrap_or_default() + promised;
        if *amount > allocatable - used {
            reasons.push(format!("Insufficient {name}"));
            is_too_small |= *amount > allocatable;
        }
    }
    match not_now(Awaits::ROOM, reasons) {
        Err(refused) if is_too_small => Err(Refused { may_be_preempted: false, ..refused }),
        outcome => outcome,
    }
}

/// Whether the volumes of the pod can be reached from the node.
fn reaches_volumes(wanted: &PendingPod<'_>, node: &NodeInfo) -> Result<(), Refused> {
    let allows = |terms: &Value| {
        let mut terms = terms.items_at(&["nodeSelectorTerms"]).iter();
        terms.any(|term| nodes::matches_term(term, &node.name, &node.labels))
    };
    if wanted.volumes.iter().all(allows) {
        Ok(())
    } else {
        never(Awaits::VOLUMES, "node(s) didn't match PersistentVolume's node affinity")
    }
}

/// Whether a topology spread constraint must hold.
fn is_required(constraint: &Value) -> bool {
    constraint.str_at(&["whenUnsatisfiable"]) == "DoNotSchedule"
}

/// Whether the required topology spread constraints hold.
fn spreads(wanted: &PendingPod<'_>, node: &NodeInfo, state: &State) -> Result<(), Refused> {
    const REASON: &str = "node(s) didn't match pod topology spread constraints";
    for constraint in wanted.object.items_at(&["spec", "topologySpreadConstraints"]).iter().filter(|it| is_required(it))
    {
        let key = constraint.str_at(&["topologyKey"]);
        let Some(domain) = node.labels.get(key).and_then(Value::as_str) else {
            return never(Awaits::NODE, format!("{REASON} (missing required label)"));
        };
        let selector = selector_of(constraint);
        let counts = counts_by_domain(wanted, constraint, &selector, node, state);
        let number = |field: &str, default| constraint.get(field).and_then(Value::as_i64).unwrap_or(default);
        let fewest = counts.values().min().copied().unwrap_or_default();
        let fewest = if (counts.len() as i64) < number("minDomains", 1) { 0 } else { fewest };
        let itself = i64::from(selector.matches(|name| wanted.pod.label(name)));
        if counts.get(domain).copied().unwrap_or_default() + itself - fewest > number("maxSkew", 1) {
            return not_now(Awaits::BALANCE, vec![REASON.to_owned()]);
        }
    }
    Ok(())
}

pub(super) fn selector_of(term: &Value) -> LabelSelector {
    let nothing = || LabelSelector::parse("!a,a").unwrap_or_default();
    match term.get("labelSelector").filter(|selector| !selector.is_null()) {
        Some(selector) => LabelSelector::decode(selector).unwrap_or_else(|_| nothing()),
        None => nothing(),
    }
}

/// How many pods that a constraint applies to are in each domain of its key; `changed` replaces the node of the same
/// name.
pub(super) fn counts_by_domain(
    wanted: &PendingPod<'_>,
    constraint: &Value,
    selector: &LabelSelector,
    changed: &NodeInfo,
    state: &State,
) -> BTreeMap<String, i64> {
    let honours = |policy: &str, default: &str| {
        let said = constraint.str_at(&[policy]);
        (if said.is_empty() { default } else { said }) == "Honor"
    };
    let (by_affinity, by_taints) = (honours("nodeAffinityPolicy", "Honor"), honours("nodeTaintsPolicy", "Ignore"));
    let tolerations = wanted.object.items_at(&["spec", "tolerations"]);
    let mut counts = BTreeMap::new();
    for node in state.nodes().map(|node| if node.name == changed.name { changed } else { node }) {
        work::steps(1 + node.pods.len());
        let Some(domain) = node.labels.get(constraint.str_at(&["topologyKey"])).and_then(Value::as_str) else {
            continue;
        };
        let is_out = by_affinity && !nodes::is_selected(wanted.spec(), &node.name, &node.labels)
            || by_taints && nodes::untolerated(&node.taints, tolerations, &["NoSchedule", "NoExecute"]).is_some();
        if is_out {
            continue;
        }
        let is_counted = |pod: &&Pod| {
            pod.namespace == wanted.pod.namespace && !pod.is_going && selector.matches(|name| pod.label(name))
        };
        *counts.entry(domain.to_owned()).or_default() += node.pods.values().filter(is_counted).count() as i64;
    }
    counts
}

/// Whether required affinity and anti-affinity hold, those of the pod, and those of the existing pods.
fn keeps_company(wanted: &PendingPod<'_>, node: &NodeInfo, state: &State) -> Result<(), Refused> {
    if !is_drawn_to(wanted, node, state) {
        return never(Awaits::COMPANY, "node(s) didn't match pod affinity rules");
    }
    for term in wanted.affinity("podAntiAffinity", "required") {
        let about = |pod: &Pod| is_about(term, &wanted.pod.namespace, pod, state);
        let domain = in_domain(term.str_at(&["topologyKey"]), node, state);
        if domain.iter().any(|other| other.pods.values().any(about)) {
            return not_now(Awaits::DISTANCE, vec!["node(s) didn't match pod anti-affinity rules".to_owned()]);
        }
    }
    let all = state.nodes().map(|other| if other.name == node.name { node } else { other });
    for other in all.filter(|other| other.repelling > 0) {
        for there in other.pods.values() {
            let repels = |term: &Value| {
                work::step();
                let label = |node: &NodeInfo| node.labels.get(term.str_at(&["topologyKey"])).cloned();
                let same = label(other).is_some() && label(other) == label(node);
                same && is_about(term, &there.namespace, &wanted.pod, state)
            };
            if there.repels.iter().any(repels) {
                return not_now(
                    Awaits::DISTANCE,
                    vec!["node(s) didn't satisfy existing pods anti-affinity rules".to_owned()],
                );
            }
        }
    }
    Ok(())
}

/// Whether the pod's required affinity is met: there are pods that match all its terms. The first pod of a group with
/// affinity to each other matches itself.
fn is_drawn_to(wanted: &PendingPod<'_>, node: &NodeInfo, state: &State) -> bool {
    let terms = wanted.affinity("podAffinity", "required");
    let is_company = |pod: &Pod| terms.iter().all(|term| is_about(term, &wanted.pod.namespace, pod, state));
    let has_company = |other: &&NodeInfo| other.pods.values().any(is_company);
    let all = state.nodes().map(|other| if other.name == node.name { node } else { other });
    let company: BTreeSet<&str> = if terms.is_empty() {
        BTreeSet::new()
    } else {
        all.filter(has_company).map(|other| other.name.as_str()).collect()
    };
    let is_there = |term: &Value| {
        let domain = in_domain(term.str_at(&["topologyKey"]), node, state);
        domain.iter().any(|other| company.contains(other.name.as_str()))
    };
    let has_label = |term: &Value| node.labels.contains_key(term.str_at(&["topologyKey"]));
    let is_first = || is_company(&wanted.pod) && !state.nodes().any(|other| other.pods.values().any(is_company));
    terms.iter().all(has_label) && (terms.iter().all(is_there) || is_first())
}

/// The nodes with the same value of a label as `node`, which replaces the one of the same name.
pub(super) fn in_domain<'s>(key: &str, node: &'s NodeInfo, state: &'s State) -> Vec<&'s NodeInfo> {
    let Some(domain) = node.labels.get(key) else { return Vec::new() };
    let all = state.nodes().map(|other| if other.name == node.name { node } else { other });
    all.inspect(|_| work::step()).filter(|other| other.labels.get(key) == Some(domain)).collect()
}

/// Whether a term of (anti-)affinity, of a pod in `namespace`, matches a pod.
pub(super) fn is_about(term: &Value, namespace: &str, pod: &Pod, state: &State) -> bool {
    work::steps(1 + term.items_at(&["namespaces"]).len());
    let named: BTreeSet<&str> = term.items_at(&["namespaces"]).iter().filter_map(Value::as_str).collect();
    let selector = term.get("namespaceSelector").filter(|selector| !selector.is_null());
    let by_labels = selector.is_some_and(|selector| {
        let labels = state.namespaces.get(&pod.namespace);
        let label = |name: &str| labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
        LabelSelector::decode(selector).is_ok_and(|selector| selector.matches(label))
    });
    let own = named.is_empty() && selector.is_none() && pod.namespace == namespace;
    (own || by_labels || named.contains(pod.namespace.as_str())) && selector_of(term).matches(|name| pod.label(name))
}
