//! The annotations of a pod that control its course, as in kwok: `pod-create`, `pod-ready`, `pod-complete`,
//! `pod-delete` and `pod-container-running-failed`, each with `.stage.kwok.x-k8s.io/delay` as a suffix.

use std::time::Duration;

use super::probes::Onset;
use crate::meta::duration;
use crate::value::Value;

pub(super) const CREATE: &str = "pod-create";
pub(super) const READY: &str = "pod-ready";
pub(super) const COMPLETE: &str = "pod-complete";
pub(super) const DELETE: &str = "pod-delete";
pub(super) const FAIL: &str = "pod-container-running-failed";

/// The setting of a stage in the annotations of a pod, or else in its labels; empty if there is none.
pub(super) fn setting<'p>(pod: &'p Value, stage: &str, what: &str) -> &'p str {
    let slash = if what.is_empty() { "" } else { "/" };
    let name = format!("{stage}.stage.kwok.x-k8s.io{slash}{what}");
    let found = ["annotations", "labels"].map(|list| pod.str_at(&["metadata", list, name.as_str()]));
    found.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// The delay of a stage, in Go's notation (`1m30s`).
pub(super) fn delay(pod: &Value, stage: &str, default: Duration) -> Duration {
    let nanoseconds = duration::parse_go(setting(pod, stage, "delay")).ok().and_then(|nanos| u64::try_from(nanos).ok());
    nanoseconds.map_or(default, Duration::from_nanos)
}

/// Whether the pod goes through a stage: not through one of the weight 0.
pub(super) fn is_enabled(pod: &Value, stage: &str) -> bool {
    setting(pod, stage, "weight") != "0"
}

/// When a container is started and ready: as the annotations of its pod say, or its probes.
pub(super) fn onset(pod: &Value, container: &Value) -> Onset {
    if !is_enabled(pod, READY) {
        return Onset { ready: None, ..Onset::of(container) };
    }
    match setting(pod, READY, "delay") {
        "" => Onset::of(container),
        _ => Onset { started: Duration::ZERO, ready: Some(delay(pod, READY, Duration::ZERO)) },
    }
}
