//! Why nodes are not possible for a pod, and the messages for that.
//!
//! The texts are those of kube-scheduler 1.37.

use std::collections::BTreeMap;

use super::state::Awaits;

/// Why a node is not possible for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub reasons: Vec<String>,
    /// Whether it would be possible without other pods.
    pub may_be_preempted: bool,
    /// What may change that.
    pub awaits: Awaits,
}

/// The node is not possible, whichever pods are removed.
pub(super) fn never(awaits: Awaits, reason: impl Into<String>) -> Result<(), Refused> {
    Err(Refused { reasons: vec![reason.into()], may_be_preempted: false, awaits })
}

pub(super) fn not_now(awaits: Awaits, reasons: Vec<String>) -> Result<(), Refused> {
    if reasons.is_empty() { Ok(()) } else { Err(Refused { reasons, may_be_preempted: true, awaits }) }
}

/// What a pod waits for after these refusals.
pub(super) fn awaited(refused: &BTreeMap<String, Refused>) -> Awaits {
    refused.values().map(|why| why.awaits).fold(Awaits::NODE, Awaits::and)
}

/// The reason if a pod selects several nodes by name in one term.
pub(super) const CONFLICT: &str = "pod affinity terms conflict";

/// The message of the plugin for resource claims for a pod without any, before that of preemption.
const NO_CLAIMS: &str = "no new claims to deallocate";

/// The message for a pod that finds no node: the reasons, and whether other pods could make room.
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

/// The message for a pod that waits until other pods have left its nominated node.
pub(super) fn told_while_others_go(refused: &BTreeMap<String, Refused>) -> String {
    let reasons = reasons(refused);
    format!("{reasons} {NO_CLAIMS}, preemption: not eligible due to a terminating pod on the nominated node.")
}

/// Why a pod finds no node.
pub(super) fn reasons(refused: &BTreeMap<String, Refused>) -> String {
    match refused.len() {
        0 => "no nodes available to schedule pods".to_owned(),
        // This is reported before any node is checked, and so without counts.
        nodes if refused.values().all(|why| why.reasons == [CONFLICT]) => {
            format!("0/{nodes} nodes are available: {CONFLICT}.")
        }
        nodes => counted(refused.values().flat_map(|why| why.reasons.iter().cloned()), nodes),
    }
}

/// Reasons, each once, with the number of nodes that have it.
fn counted(reasons: impl Iterator<Item = String>, nodes: usize) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    reasons.for_each(|reason| *counts.entry(reason).or_default() += 1);
    let mut texts: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    texts.sort();
    format!("0/{nodes} nodes are available: {}.", texts.join(", "))
}
