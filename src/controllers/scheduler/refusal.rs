//! Why a pod can't go to nodes, and how that is told.
//!
//! The texts are those of kube-scheduler 1.37.

use std::collections::BTreeMap;

use super::state::Awaits;

/// Why a pod can't go to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub reasons: Vec<String>,
    /// Whether it could if other pods were not there.
    pub may_be_preempted: bool,
    /// What may change that.
    pub awaits: Awaits,
}

/// It can't, whichever pods go.
pub(super) fn never(awaits: Awaits, reason: impl Into<String>) -> Result<(), Refused> {
    Err(Refused { reasons: vec![reason.into()], may_be_preempted: false, awaits })
}

pub(super) fn not_now(awaits: Awaits, reasons: Vec<String>) -> Result<(), Refused> {
    if reasons.is_empty() { Ok(()) } else { Err(Refused { reasons, may_be_preempted: true, awaits }) }
}

/// What a pod awaits that these nodes refused.
pub(super) fn awaited(refused: &BTreeMap<String, Refused>) -> Awaits {
    refused.values().map(|why| why.awaits).fold(Awaits::NODE, Awaits::and)
}

/// Why a pod goes to no node that asks for several by name at once.
pub(super) const CONFLICT: &str = "pod affinity terms conflict";

/// What the plugin of resource claims says of a pod that has none, before the one that preempts.
const NO_CLAIMS: &str = "no new claims to deallocate";

/// What is told of a pod that finds no place: why, and whether others could make room.
pub(super) fn told(refused: &BTreeMap<String, Refused>, preempts: bool) -> String {
    let reasons = reasons(refused);
    if refused.is_empty() {
        return reasons;
    }
    if !preempts {
        return format!("{reasons} {NO_CLAIMS}, preemption: not eligible due to preemptionPolicy=Never.");
    }
    let helpful = refused.values().map(|why| {
        if why.may_be_preempted {
            "No preemption victims found for incoming pod".to_owned()
        } else {
            "Preemption is not helpful for scheduling".to_owned()
        }
    });
    format!("{reasons} {NO_CLAIMS}, preemption: {}", counted(helpful, refused.len()))
}

/// What is told of a pod that waits for others to go from the node that it is to have.
pub(super) fn told_while_others_go(refused: &BTreeMap<String, Refused>) -> String {
    let reasons = reasons(refused);
    format!("{reasons} {NO_CLAIMS}, preemption: not eligible due to a terminating pod on the nominated node.")
}

/// Why a pod finds no place.
pub(super) fn reasons(refused: &BTreeMap<String, Refused>) -> String {
    match refused.len() {
        0 => "no nodes available to schedule pods".to_owned(),
        // It is told before any node is looked at, and so not counted.
        nodes if refused.values().all(|why| why.reasons == [CONFLICT]) => {
            format!("0/{nodes} nodes are available: {CONFLICT}.")
        }
        nodes => counted(refused.values().flat_map(|why| why.reasons.iter().cloned()), nodes),
    }
}

/// Reasons, each once, with how many nodes have it.
fn counted(reasons: impl Iterator<Item = String>, nodes: usize) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    reasons.for_each(|reason| *counts.entry(reason).or_default() += 1);
    let mut texts: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    texts.sort();
    format!("0/{nodes} nodes are available: {}.", texts.join(", "))
}
