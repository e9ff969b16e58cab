//! Containers that are started and ready once their probes have succeeded.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;

use super::annotations::onset;
use super::status::{is_in, started_at, with_readiness};
use super::step::{Due, Step, due};
use crate::controllers::client::sooner;
use crate::value::Value;

/// Containers that run and are to be started or ready later.
pub(super) fn pass_probes(pod: &Value, now: Timestamp) -> Step {
    let mut pause = None;
    let mut is_due = |status: &Value, length: Duration| match due(started_at(status), length, now) {
        Due::Now => true,
        Due::In(left) => {
            pause = sooner(pause, Some(left));
            false
        }
    };
    let is = |status: &Value, name: &str| status.get(name).and_then(Value::as_bool) == Some(true);
    let mut changed = None;
    for (list, of) in [("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")] {
        let statuses = pod.items_at(&["status", of]);
        let waits = |status: &Value| is_in(status, "running") && !(is(status, "started") && is(status, "ready"));
        if !statuses.iter().any(waits) {
            continue;
        }
        let containers = pod.items_at(&["spec", list]).iter();
        let containers: HashMap<&str, &Value> = containers.map(|it| (it.str_at(&["name"]), it)).collect();
        for (at, status) in statuses.iter().enumerate().filter(|(_, status)| waits(status)) {
            let Some(container) = containers.get(status.str_at(&["name"])) else { continue };
            let onset = onset(pod, container);
            let is_started = is(status, "started") || is_due(status, onset.started);
            let is_ready =
                is(status, "ready") || (is_started && onset.ready.is_some_and(|ready| is_due(status, ready)));
            if (is_started, is_ready) == (is(status, "started"), is(status, "ready")) {
                continue;
            }
            let changed = changed.get_or_insert_with(|| pod.clone());
            if let Some(Value::Array(statuses)) = changed.at_mut(&["status", of]) {
                let fields = statuses[at].make_object();
                fields.insert("started", Value::Bool(is_started));
                fields.insert("ready", Value::Bool(is_ready));
            }
        }
    }
    match (changed, pause) {
        (Some(changed), _) => Step::Status(with_readiness(changed, now)),
        (None, Some(pause)) => Step::After(pause),
        (None, None) => Step::Nothing,
    }
}
