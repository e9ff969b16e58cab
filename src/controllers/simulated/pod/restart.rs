//! Containers that fail, as the annotations of their pod demand, and restart.

use std::time::Duration;

use jiff::Timestamp;

use super::annotations::{FAIL, delay, onset, setting};
use super::status::{Exit, ended, in_state, started_at, with_container, with_readiness};
use super::step::{Due, Step, due};
use crate::controllers::client::{int_at, time_at, written};
use crate::object;
use crate::value::Value;

/// The pause before the second restart in a row of a container, and the longest pause.
const BACK_OFF_FIRST_S: u64 = 10;
const BACK_OFF_MAX_S: u64 = 300;

/// A container that waits for its next start.
pub(super) fn restart(pod: &Value, now: Timestamp) -> Step {
    let Some(waiting) = in_state(pod, "waiting").next() else { return Step::Nothing };
    let since = time_at(waiting, &["lastState", "terminated", "finishedAt"]);
    match due(since, back_off(int_at(waiting, &["restartCount"])), now) {
        Due::In(pause) => Step::After(pause),
        Due::Now => {
            let name = waiting.str_at(&["name"]).to_owned();
            let container = pod.items_at(&["spec", "containers"]).iter().find(|it| it.str_at(&["name"]) == name);
            let onset = onset(pod, container.unwrap_or(&Value::Null));
            let changed = with_container(pod, &name, |status| {
                let count = int_at(status, &["restartCount"]);
                let fields = status.make_object();
                fields.insert("restartCount", Value::Int(count + 1));
                fields.insert("ready", Value::Bool(onset.ready == Some(Duration::ZERO)));
                fields.insert("started", Value::Bool(onset.started.is_zero()));
                fields.insert("state", object! { "running" => object! { "startedAt" => written(now) } });
            });
            Step::Status(with_readiness(changed, now))
        }
    }
}

/// How long a container waits after this many restarts.
pub(super) fn back_off(restarts: i64) -> Duration {
    let doubled = u32::try_from(restarts - 1).ok().map(|times| 2_u64.saturating_pow(times));
    Duration::from_secs(doubled.map_or(0, |times| (BACK_OFF_FIRST_S.saturating_mul(times)).min(BACK_OFF_MAX_S)))
}

/// A container that is to fail: the pod fails with it, unless it is restarted.
pub(super) fn fail(pod: &Value, now: Timestamp) -> Step {
    let wanted = setting(pod, FAIL, "container-name");
    let failing = in_state(pod, "running").find(|status| wanted.is_empty() || status.str_at(&["name"]) == wanted);
    let (true, Some(failing)) = (setting(pod, FAIL, "") == "true", failing) else { return Step::Nothing };
    if let Due::In(pause) = due(started_at(failing), delay(pod, FAIL, Duration::from_secs(1)), now) {
        return Step::After(pause);
    }
    let reason = setting(pod, FAIL, "reason");
    let exit = Exit {
        code: setting(pod, FAIL, "exit-code").parse().unwrap_or(1),
        reason: if reason.is_empty() { "Error" } else { reason },
        message: setting(pod, FAIL, "message"),
    };
    let starts_again = match pod.str_at(&["spec", "restartPolicy"]) {
        "Never" => false,
        "OnFailure" => exit.code != 0,
        _ => true,
    };
    if !starts_again {
        return Step::Status(ended(pod, &exit, wanted, now));
    }
    let name = failing.str_at(&["name"]).to_owned();
    let changed = with_container(pod, &name, |status| {
        let id = status.str_at(&["containerID"]).to_owned();
        let terminated = exit.state(started_at(status), now, id);
        let restarts = int_at(status, &["restartCount"]);
        let fields = status.make_object();
        fields.insert("lastState", terminated);
        fields.insert("ready", Value::Bool(false));
        fields.insert("started", Value::Bool(false));
        let pause = back_off(restarts).as_secs();
        let message = format!("back-off {pause}s restarting failed container={name}");
        let waiting = object! { "reason" => "CrashLoopBackOff", "message" => message };
        fields.insert("state", object! { "waiting" => waiting });
    });
    Step::Status(with_readiness(changed, now))
}
