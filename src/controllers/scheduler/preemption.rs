//! Which pods make room for one of a higher priority.

use std::collections::BTreeMap;

use super::budget::broken_by;
use super::filter::{PendingPod, fits};
use super::pod::Pod;
use super::refusal::Refused;
use super::state::State;

/// The cost of making room on a node.
struct Loss {
    /// How many victims violate a budget, their highest priority, and their number.
    price: (usize, i64, usize),
    node: String,
    /// The victims.
    keys: Vec<String>,
}

/// Which pods of lower priority would have to be removed from which node to make a pod fit: the least important ones.
///
/// Of the nodes, the one with the fewest violations of disruption budgets, then the one whose most important victim is
/// the least important, and then the one with the fewest. On a node, those that violate a budget are the first to be
/// spared.
/// Source: `SelectVictimsOnNode` and `pickOneNodeForPreemption` of kube-scheduler 1.37.
pub(super) fn victims(
    wanted: &PendingPod<'_>,
    refused: &BTreeMap<String, Refused>,
    state: &State,
) -> Option<(String, Vec<String>)> {
    let mut best: Option<Loss> = None;
    for (name, _) in refused.iter().filter(|(_, why)| why.may_be_preempted) {
        let Some(node) = state.nodes.get(name) else { continue };
        let mut without = node.clone();
        let is_less = |pod: &&Pod| pod.priority < wanted.pod.priority;
        let mut less: Vec<Pod> = node.pods.values().filter(is_less).cloned().collect();
        less.iter().for_each(|pod| _ = without.remove(&pod.key));
        if less.is_empty() || fits(wanted, &without, state).is_err() {
            continue;
        }
        less.sort_by_key(|pod| std::cmp::Reverse(pod.priority));
        let breaking = broken_by(&less, &state.budgets);
        less.sort_by_key(|pod| !breaking.contains(&pod.key));
        let mut gone = Vec::new();
        for pod in less {
            let (key, priority) = (pod.key.clone(), pod.priority);
            without.add(pod);
            if fits(wanted, &without, state).is_err() {
                without.remove(&key);
                gone.push((priority, key));
            }
        }
        let most = gone.iter().map(|(priority, _)| *priority).max().unwrap_or(i64::MIN);
        let broken = gone.iter().filter(|(_, key)| breaking.contains(key)).count();
        let keys: Vec<String> = gone.into_iter().map(|(_, key)| key).collect();
        let price = (broken, most, keys.len());
        if best.as_ref().is_none_or(|known| price < known.price) {
            best = Some(Loss { price, node: name.clone(), keys });
        }
    }
    best.map(|loss| (loss.node, loss.keys))
}
