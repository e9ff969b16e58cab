//! The default course of a pod on a simulated node without stages: its next step, and when.
//!
//! Input: a pod, its addresses, the time. Output: its next status, or when to look again. All state is in the pod.
//!
//! A pod runs at once and is ready once its probes have succeeded ([`probes`]), and a Job's pod then ends successfully,
//! unless its annotations say otherwise ([`annotations`]).
//!
//! Conditions and reasons: the kubelet of Kubernetes 1.37.

mod probes;
mod status;
mod annotations;
mod step;
mod start;
mod restart;
mod readiness;
mod end;

use jiff::Timestamp;

use self::status::with_readiness;
use self::step::Due;
use super::addresses::Addresses;
use crate::controllers::client::{is_going, sooner};
use crate::controllers::pods;
use crate::value::Value;

pub(super) use self::end::deletion_since;
pub(super) use self::step::Step;

/// The next step of a pod on a simulated node.
pub(super) fn next(pod: &Value, at: Addresses, now: Timestamp) -> Step {
    if is_going(pod) {
        return end::delete(pod, now);
    }
    if pods::is_over(pod) {
        return Step::Nothing;
    }
    let deadline = match end::deadline(pod, now) {
        Some(Due::Now) => return Step::Status(end::expired(pod, now)),
        Some(Due::In(pause)) => Some(pause),
        None => None,
    };
    let step = match pod.str_at(&["status", "phase"]) {
        "Running" => run(pod, now),
        _ => start::start(pod, at, now),
    };
    match (step, deadline) {
        (Step::Nothing, Some(pause)) => Step::After(pause),
        (Step::After(one), other) => Step::After(sooner(Some(one), other).unwrap_or(one)),
        (step, _) => step,
    }
}

/// A pod that runs.
fn run(pod: &Value, now: Timestamp) -> Step {
    let steps = [
        restart::restart(pod, now),
        restart::fail(pod, now),
        start::start_ephemeral(pod, now),
        readiness::pass_probes(pod, now),
        end::complete(pod, now),
    ];
    let mut pause = None;
    for step in steps {
        match step {
            Step::After(left) => pause = sooner(pause, Some(left)),
            Step::Nothing => {}
            step => return step,
        }
    }
    let settled = with_readiness(pod.clone(), now);
    match pause {
        _ if pod.get("status") != Some(&settled) => Step::Status(settled),
        Some(pause) => Step::After(pause),
        None => Step::Nothing,
    }
}

#[cfg(test)]
mod tests;
