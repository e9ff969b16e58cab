//! Which of the nodes that a pod may go to is best.
//!
//! DIFFERS: kube-scheduler adds up the scores of its plugins; the score of a node is computed in a simpler way here, see `score`.

use std::collections::BTreeMap;

use super::filter::fits;
use super::neighbours::Neighbours;
use super::pending::PendingPod;
use super::pod::Pod;
use super::refusal::{CONFLICT, Refused, never};
use super::state::{Awaits, NodeInfo, State};
use crate::controllers::nodes;
use crate::value::Value;

/// How good a node is for a pod: its preferences, few pods of the same controller, much free capacity.
fn score(wanted: &PendingPod<'_>, node: &NodeInfo, near: &Neighbours<'_>) -> f64 {
    let weight = |term: &Value| term.get("weight").and_then(Value::as_i64).unwrap_or_default();
    let preferred = wanted.affinity("nodeAffinity", "preferred").iter();
    let preferred = preferred.filter(|term| {
        let preference = term.get("preference").unwrap_or(&Value::Null);
        nodes::matches_term(preference, &node.name, &node.labels)
    });
    let mut score: i64 = preferred.map(weight).sum();
    score += near.attraction(node);
    let tolerations = wanted.object.items_at(&["spec", "tolerations"]);
    if nodes::untolerated(&node.taints, tolerations, &["PreferNoSchedule"]).is_some() {
        score -= 300;
    }
    score -= 200 * near.spreads.iter().filter_map(|spread| spread.count_of(node)).sum::<i64>();
    // This counts less than a regular preference with weight 100.
    let alike = |pod: &&Pod| !pod.owner.is_empty() && pod.owner == wanted.pod.owner;
    score -= 50 * node.pods.values().filter(alike).count() as i64;
    score as f64 + 100.0 * free(wanted, node)
}

/// Which fraction of the node is free with the pod on it, from 0 to 1.
fn free(wanted: &PendingPod<'_>, node: &NodeInfo) -> f64 {
    let part = |name: &str, used: i64| {
        let allocatable = node.allocatable.get(name).copied().unwrap_or_default() as f64;
        if allocatable > 0.0 { ((allocatable - used as f64) / allocatable).max(0.0) } else { 0.0 }
    };
    let used = |name: &str| [&node.used, &wanted.pod.requests].iter().filter_map(|amounts| amounts.get(name)).sum();
    (part("cpu", used("cpu")) + part("memory", used("memory")) + part("pods", node.pods.len() as i64 + 1)) / 3.0
}

/// The best node for a pod, or the reasons why no node is possible, by node.
pub(super) fn choose(wanted: &PendingPod<'_>, state: &State) -> Result<String, BTreeMap<String, Refused>> {
    let mut refused = BTreeMap::new();
    let mut best: Option<(f64, &NodeInfo)> = None;
    let has_conflict = nodes::has_conflicting_names(wanted.spec());
    let near = Neighbours::of(wanted, state);
    for node in state.nodes() {
        let outcome = if has_conflict { never(Awaits::NODE, CONFLICT) } else { fits(wanted, node, &near, state) };
        match outcome {
            Ok(()) => {
                let score = score(wanted, node, &near);
                if best.is_none_or(|(known, _)| score > known) {
                    best = Some((score, node));
                }
            }
            Err(why) => _ = refused.insert(node.name.clone(), why),
        }
    }
    best.map(|(_, node)| node.name.clone()).ok_or(refused)
}

#[cfg(test)]
mod tests;
