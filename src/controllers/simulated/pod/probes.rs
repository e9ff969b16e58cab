//! When a container is started and ready by its probes, all of which succeed.
//!
//! Input: a container of a pod, or the pod's annotations instead. Output: two lengths of time, from the start of the
//! container. A liveness probe that succeeds changes nothing.
//!
//! Source: `pkg/kubelet/prober` of Kubernetes 1.37. A kubelet probes for readiness as soon as a container has started,
//! and then in each period from that moment; a startup probe waits for the end of its first period. Probes within
//! `initialDelaySeconds` are skipped.

use std::time::Duration;

use crate::controllers::client::int_at;
use crate::value::Value;

/// The default of `periodSeconds`.
const PERIOD_S: u64 = 10;

/// How long after its start a container is started and ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Onset {
    pub started: Duration,
    /// `None` if it is never ready.
    pub ready: Option<Duration>,
}

impl Onset {
    /// The times that follow from the probes of a container.
    pub fn of(container: &Value) -> Self {
        let started = container.get("startupProbe").map_or(0, |probe| ProbeTimes::of(probe).of_startup_s());
        let ready =
            container.get("readinessProbe").map_or(started, |probe| ProbeTimes::of(probe).of_readiness_s(started));
        Onset { started: Duration::from_secs(started), ready: Some(Duration::from_secs(ready)) }
    }
}

struct ProbeTimes {
    initial_delay_s: u64,
    period_s: u64,
    successes: u64,
}

impl ProbeTimes {
    fn of(probe: &Value) -> Self {
        let number = |name: &str| u64::try_from(int_at(probe, &[name])).ok().filter(|number| *number > 0);
        ProbeTimes {
            initial_delay_s: number("initialDelaySeconds").unwrap_or_default(),
            period_s: number("periodSeconds").unwrap_or(PERIOD_S),
            successes: number("successThreshold").unwrap_or(1),
        }
    }

    /// So many periods, in seconds.
    fn periods_s(&self, count: u64) -> u64 {
        self.period_s.saturating_mul(count)
    }

    /// When it succeeds as a startup probe.
    fn of_startup_s(&self) -> u64 {
        let first = self.initial_delay_s.div_ceil(self.period_s).max(1);
        self.periods_s(first.saturating_add(self.successes - 1))
    }

    /// When it succeeds as a readiness probe of a container that is started at `started_s`.
    fn of_readiness_s(&self, started_s: u64) -> u64 {
        let first = self.initial_delay_s.saturating_sub(started_s).div_ceil(self.period_s);
        started_s.saturating_add(self.periods_s(first.saturating_add(self.successes - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    /// When a container with these probes is started and ready, in seconds.
    fn check(probes: &str, expected: (u64, u64)) {
        let container = yaml::decode(format!("{{name: c, {probes}}}").as_bytes()).expect("YAML");
        let onset = Onset::of(&container);
        assert_eq!((onset.started.as_secs(), onset.ready.map(|ready| ready.as_secs())), (expected.0, Some(expected.1)));
    }

    #[test]
    fn a_container_without_probes_is_ready_at_once() {
        check("image: i", (0, 0));
        check("livenessProbe: {initialDelaySeconds: 30}", (0, 0));
    }

    #[test]
    fn readiness_is_probed_at_the_start_and_in_each_period() {
        check("readinessProbe: {}", (0, 0));
        check("readinessProbe: {initialDelaySeconds: 30, periodSeconds: 10}", (0, 30));
        check("readinessProbe: {initialDelaySeconds: 5}", (0, 10));
        check("readinessProbe: {initialDelaySeconds: 5, periodSeconds: 2}", (0, 6));
        check("readinessProbe: {periodSeconds: 3, successThreshold: 3}", (0, 6));
        check("readinessProbe: {initialDelaySeconds: 4, periodSeconds: 3, successThreshold: 2}", (0, 9));
    }

    #[test]
    fn a_startup_probe_comes_first() {
        check("startupProbe: {}", (10, 10));
        check("startupProbe: {periodSeconds: 2, initialDelaySeconds: 3}", (4, 4));
        check("startupProbe: {periodSeconds: 4}, readinessProbe: {periodSeconds: 3}", (4, 4));
        check("startupProbe: {periodSeconds: 4}, readinessProbe: {periodSeconds: 3, initialDelaySeconds: 5}", (4, 7));
    }

    #[test]
    fn the_largest_numbers_have_an_end() {
        let most = i64::MAX;
        check(&format!("readinessProbe: {{initialDelaySeconds: {most}, successThreshold: {most}}}"), (0, u64::MAX));
    }
}
