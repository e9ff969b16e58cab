//! Which pods make room for one of a higher priority.

use std::collections::BTreeMap;

use super::budget::broken_by;
use super::filter::fits;
use super::neighbours::Neighbours;
use super::pending::PendingPod;
use super::pod::Pod;
use super::refusal::Refused;
use super::state::{NodeInfo, State};

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
    let mut near = Neighbours::of(wanted, state);
    let mut best: Option<Loss> = None;
    for (name, _) in refused.iter().filter(|(_, why)| why.may_be_preempted) {
        let Some(node) = state.nodes.get(name) else { continue };
        let mut less: Vec<&Pod> = node.pods.values().filter(|pod| pod.priority < wanted.pod.priority).collect();
        if less.is_empty() {
            continue;
        }
        less.sort_by_key(|pod| std::cmp::Reverse(pod.priority));
        let breaking = broken_by(&less, &state.budgets);
        less.sort_by_key(|pod| !breaking.contains(&pod.key));
        near.count(node, less.iter().copied(), -1);
        let gone = not_spared(wanted, node, &less, &mut near, state);
        near.count(node, gone.as_ref().unwrap_or(&less).iter().copied(), 1);
        let Some(gone) = gone else { continue };
        let most = gone.iter().map(|pod| pod.priority).max().unwrap_or(i64::MIN);
        let broken = gone.iter().filter(|pod| breaking.contains(&pod.key)).count();
        let keys: Vec<String> = gone.iter().map(|pod| pod.key.clone()).collect();
        let price = (broken, most, keys.len());
        if best.as_ref().is_none_or(|known| price < known.price) {
            best = Some(Loss { price, node: name.clone(), keys });
        }
    }
    best.map(|loss| (loss.node, loss.keys))
}

/// Which of the pods `less` on a node can't stay there beside the wanted one: each that can is spared, in this order.
/// `None` if it does not even fit without all of them.
///
/// In `near` they are not counted; afterwards, those that are spared are.
fn not_spared<'s>(
    wanted: &PendingPod<'_>,
    node: &'s NodeInfo,
    less: &[&'s Pod],
    near: &mut Neighbours<'s>,
    state: &State,
) -> Option<Vec<&'s Pod>> {
    let mut without = node.clone();
    less.iter().for_each(|pod| _ = without.remove(&pod.key));
    fits(wanted, &without, near, state).ok()?;
    let mut gone = Vec::new();
    for pod in less {
        without.add((*pod).clone());
        near.count(node, [*pod].into_iter(), 1);
        if fits(wanted, &without, near, state).is_err() {
            without.remove(&pod.key);
            near.count(node, [*pod].into_iter(), -1);
            gone.push(*pod);
        }
    }
    Some(gone)
}
