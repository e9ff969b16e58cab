//! Which nodes are possible for a pod, and why the others are not.
//!
//! The order and the texts of reasons are those of the plugins of kube-scheduler 1.37.

use std::collections::{BTreeSet, HashMap};

use super::neighbours::Neighbours;
use super::pending::PendingPod;
use super::pod::Pod;
use super::refusal::{Refused, never, not_now};
use super::state::{Awaits, NodeInfo, State};
use crate::controllers::nodes;
use crate::object;
use crate::value::Value;
use crate::work;

/// Whether a pod may go to a node, with the pods in `node` and in `near`: `state` may have it with other pods.
pub(super) fn fits(
    wanted: &PendingPod<'_>,
    node: &NodeInfo,
    near: &Neighbours<'_>,
    state: &State,
) -> Result<(), Refused> {
    fits_node(wanted, node)?;
    if has_port_taken(wanted, node) {
        return not_now(Awaits::ROOM, vec!["node(s) didn't have free ports for the requested pod ports".to_owned()]);
    }
    has_room(wanted, node, state)?;
    reaches_volumes(wanted, node)?;
    spreads(wanted, node, near)?;
    keeps_company(node, near)
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

/// Whether the required topology spread constraints hold.
fn spreads(wanted: &PendingPod<'_>, node: &NodeInfo, near: &Neighbours<'_>) -> Result<(), Refused> {
    const REASON: &str = "node(s) didn't match pod topology spread constraints";
    for spread in near.spreads.iter().filter(|spread| spread.is_required()) {
        let Some(count) = spread.count_of(node) else {
            return never(Awaits::NODE, format!("{REASON} (missing required label)"));
        };
        if !spread.allows(wanted, count) {
            return not_now(Awaits::BALANCE, vec![REASON.to_owned()]);
        }
    }
    Ok(())
}

/// Whether required affinity and anti-affinity hold, those of the pod, and those of the existing pods.
fn keeps_company(node: &NodeInfo, near: &Neighbours<'_>) -> Result<(), Refused> {
    if !near.has_company(node) {
        return never(Awaits::COMPANY, "node(s) didn't match pod affinity rules");
    }
    if near.has_avoided(node) {
        return not_now(Awaits::DISTANCE, vec!["node(s) didn't match pod anti-affinity rules".to_owned()]);
    }
    if near.has_repelling(node) {
        let reason = "node(s) didn't satisfy existing pods anti-affinity rules";
        return not_now(Awaits::DISTANCE, vec![reason.to_owned()]);
    }
    Ok(())
}
