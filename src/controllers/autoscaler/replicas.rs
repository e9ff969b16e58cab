//! How many replicas a metric proposes.
//!
//! Pure: the pods and the time are parameters. Source: `pkg/controller/podautoscaler/replica_calculator.go`, release
//! 1.37.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::super::client::{is_going, time_at};
use super::super::pods;
use super::metrics::OfPods;
use crate::kinds::pod_object::conditions;
use crate::meta::quantity::Quantity;
use crate::value::Value;

/// How long after its start the CPU usage of a pod means little.
const STARTING: SignedDuration = SignedDuration::from_mins(5);
/// How long after its start a pod may not have been ready yet.
const FIRST_READY: SignedDuration = SignedDuration::from_secs(30);
/// How far use may be from the target.
const TOLERANCE: f64 = 0.1;

/// How far the ratio of use to the target may be from one, below and above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerances {
    down: f64,
    up: f64,
}

impl Tolerances {
    /// The tolerances of an autoscaler.
    pub fn of(spec: &Value) -> Self {
        let asked = |direction: &str| {
            let text = spec.str_at(&["behavior", direction, "tolerance"]);
            Quantity::parse(text).map_or(TOLERANCE, |quantity| quantity.as_approximate_f64())
        };
        Tolerances { down: asked("scaleDown"), up: asked("scaleUp") }
    }

    fn holds(self, ratio: f64) -> bool {
        (1.0 - self.down) <= ratio && ratio <= (1.0 + self.up)
    }
}

/// The result of a metric of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub replicas: i64,
    /// What a pod uses on average, in thousandths.
    pub average: i64,
    /// As a percentage of its requests; 0 if these do not count.
    pub utilization: i64,
}

/// Why a metric has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReplicasError {
    #[error("no metrics returned matched known pods")]
    Unmatched,
    #[error("unable to calculate ready pods: no pods returned by selector while calculating replica count")]
    WithoutReadyPods,
    #[error("no pods returned by selector while calculating replica count")]
    WithoutPods,
    #[error("did not receive metrics for targeted pods (pods might be unready)")]
    Unmeasured,
    #[error("missing request for {resource} in container {container} of Pod {pod}")]
    Unrequested { resource: String, container: String, pod: String },
    #[error("container {container} not found in Pod {pod}")]
    UnknownContainer { container: String, pod: String },
}

/// What the number of replicas is computed from.
#[derive(Clone, Copy)]
pub(super) struct Scene<'s> {
    /// The pods of the target.
    pub pods: &'s [&'s Value],
    /// The replicas that the target currently wants.
    pub current: i64,
    pub tolerances: Tolerances,
    pub now: Timestamp,
}

/// The pods by what is known of them.
#[derive(Debug, Default)]
struct Groups {
    ready: i64,
    unready: BTreeSet<String>,
    missing: BTreeSet<String>,
    ignored: BTreeSet<String>,
}

impl Scene<'_> {
    /// Whether there are pods that will count later.
    pub fn has_unready(&self, resource: &str) -> bool {
        let all: OfPods = self.pods.iter().map(|pod| (pod.str_at(&["metadata", "name"]).to_owned(), 0)).collect();
        !self.groups(&all, resource).unready.is_empty()
    }

    /// Replicas by a percentage of the pods' requests; `container` is empty for all of them.
    ///
    /// # Errors
    /// Why there are none.
    pub fn by_utilization(
        &self,
        mut used: OfPods,
        resource: &str,
        container: &str,
        target: i64,
    ) -> Result<Proposal, ReplicasError> {
        let groups = self.take_away(&mut used, resource)?;
        let requests = self.requests(container, resource)?;
        let ratio_of = |used: &OfPods| {
            let known = || used.iter().filter_map(|(pod, used)| Some((used, requests.get(pod)?)));
            let (total, requested, count) =
                known().fold((0_i64, 0_i64, 0), |(total, requested, count), (used, request)| {
                    (total.saturating_add(*used), requested.saturating_add(*request), count + 1)
                });
            if requested == 0 {
                return Err(ReplicasError::Unmatched);
            }
            let utilization = total.saturating_mul(100) / requested;
            Ok((utilization as f64 / target as f64, utilization, total / count))
        };
        let (ratio, utilization, average) = ratio_of(&used)?;
        let fallback = |pod: &str| requests.get(pod).copied().unwrap_or_default().saturating_mul(target.max(100)) / 100;
        let replicas = match self.without_doubt(&groups, ratio) {
            Some(replicas) => replicas,
            None => {
                guess(&mut used, &groups, ratio, fallback);
                self.doubted(ratio, ratio_of(&used)?.0, used.len())
            }
        };
        Ok(Proposal { replicas, average, utilization })
    }

    /// Replicas by what a pod uses on average, in thousandths.
    ///
    /// # Errors
    /// Why there are none.
    pub fn by_average(&self, mut used: OfPods, resource: &str, target: i64) -> Result<Proposal, ReplicasError> {
        let groups = self.take_away(&mut used, resource)?;
        let ratio_of = |used: &OfPods| {
            let total = used.values().fold(0_i64, |total, used| total.saturating_add(*used));
            let average = total / used.len() as i64;
            (average as f64 / target as f64, average)
        };
        let (ratio, average) = ratio_of(&used);
        let replicas = match self.without_doubt(&groups, ratio) {
            Some(replicas) => replicas,
            None => {
                guess(&mut used, &groups, ratio, |_| target);
                self.doubted(ratio, ratio_of(&used).0, used.len())
            }
        };
        Ok(Proposal { replicas, average, utilization: 0 })
    }

    /// Replicas by a value that all of them share, in thousandths.
    ///
    /// # Errors
    /// Why there are none.
    pub fn by_value(&self, used: i64, target: i64) -> Result<i64, ReplicasError> {
        let ratio = used as f64 / target as f64;
        if self.current == 0 {
            return Ok(up(ratio));
        }
        if self.tolerances.holds(ratio) {
            return Ok(self.current);
        }
        if self.pods.is_empty() {
            return Err(ReplicasError::WithoutReadyPods);
        }
        let is_ready = |pod: &&&Value| pod.str_at(&["status", "phase"]) == "Running" && pods::is_ready(pod);
        Ok(up(ratio * self.pods.iter().filter(is_ready).count() as f64))
    }

    /// Replicas by a value of which each one should have `target`, and the share of each of `counted`.
    pub fn by_share(&self, used: i64, target: i64, counted: i64) -> (i64, i64) {
        let ratio = used as f64 / (target as f64 * counted as f64);
        let replicas = if self.tolerances.holds(ratio) { counted } else { up(used as f64 / target as f64) };
        (replicas, (used as f64 / counted as f64).ceil() as i64)
    }

    /// Removes values that do not count, and groups the pods.
    fn take_away(&self, used: &mut OfPods, resource: &str) -> Result<Groups, ReplicasError> {
        if self.pods.is_empty() {
            return Err(ReplicasError::WithoutPods);
        }
        let groups = self.groups(used, resource);
        used.retain(|pod, _| !groups.ignored.contains(pod) && !groups.unready.contains(pod));
        if used.is_empty() {
            return Err(ReplicasError::Unmeasured);
        }
        Ok(groups)
    }

    fn groups(&self, used: &OfPods, resource: &str) -> Groups {
        let mut groups = Groups::default();
        for pod in self.pods {
            let name = pod.str_at(&["metadata", "name"]).to_owned();
            let phase = pod.str_at(&["status", "phase"]);
            if is_going(pod) || phase == "Failed" {
                groups.ignored.insert(name);
            } else if phase == "Pending" {
                groups.unready.insert(name);
            } else if !used.contains_key(&name) {
                groups.missing.insert(name);
            } else if resource == "cpu" && self.is_starting(pod) {
                groups.unready.insert(name);
            } else {
                groups.ready += 1;
            }
        }
        groups
    }

    /// Whether the CPU usage of a pod is that of its start.
    fn is_starting(&self, pod: &Value) -> bool {
        let (Some(ready), Some(start)) = (conditions::find(pod, "Ready"), time_at(pod, &["status", "startTime"]))
        else {
            return true;
        };
        let is_unready = ready.str_at(&["status"]) == "False";
        let since = time_at(ready, &["lastTransitionTime"]).unwrap_or(Timestamp::MIN);
        let after = |pause: SignedDuration| start.checked_add(pause).unwrap_or(Timestamp::MAX);
        if after(STARTING) > self.now { is_unready } else { is_unready && after(FIRST_READY) > since }
    }

    /// The replicas if all pods that count are measured.
    fn without_doubt(&self, groups: &Groups, ratio: f64) -> Option<i64> {
        if !groups.missing.is_empty() || (!groups.unready.is_empty() && ratio > 1.0) {
            return None;
        }
        Some(if self.tolerances.holds(ratio) { self.current } else { up(ratio * groups.ready as f64) })
    }

    /// The replicas if some values were guessed: the direction never changes.
    fn doubted(&self, before: f64, ratio: f64, counted: usize) -> i64 {
        let turns = (before < 1.0 && ratio > 1.0) || (before > 1.0 && ratio < 1.0);
        if self.tolerances.holds(ratio) || turns {
            return self.current;
        }
        let replicas = up(ratio * counted as f64);
        let turns = (ratio < 1.0 && replicas > self.current) || (ratio > 1.0 && replicas < self.current);
        if turns { self.current } else { replicas }
    }

    /// What the pods request, in thousandths.
    fn requests(&self, container: &str, resource: &str) -> Result<BTreeMap<String, i64>, ReplicasError> {
        let requests =
            |pod: &&Value| Ok((pod.str_at(&["metadata", "name"]).to_owned(), request(pod, container, resource)?));
        self.pods.iter().map(requests).collect()
    }
}

/// What a pod requests, or one of its containers.
fn request(pod: &Value, container: &str, resource: &str) -> Result<i64, ReplicasError> {
    let amount = |holder: &Value, path: [&str; 2]| {
        let text = holder.at(&path)?.get(resource)?.as_str()?;
        Quantity::parse(text).ok().map(|quantity| quantity.milli_value())
    };
    if container.is_empty()
        && let Some(of_pod) = pod.get("spec").and_then(|spec| amount(spec, ["resources", "requests"]))
    {
        return Ok(of_pod);
    }
    let name = pod.str_at(&["metadata", "name"]);
    let stays = |it: &&Value| it.str_at(&["restartPolicy"]) == "Always";
    let initial = pod.items_at(&["spec", "initContainers"]).iter().filter(stays);
    let mut sum = 0_i64;
    for it in pod.items_at(&["spec", "containers"]).iter().chain(initial) {
        let its_name = it.str_at(&["name"]);
        if !container.is_empty() && container != its_name {
            continue;
        }
        let missing = || ReplicasError::Unrequested {
            resource: resource.to_owned(),
            container: its_name.to_owned(),
            pod: name.to_owned(),
        };
        sum = sum.saturating_add(amount(it, ["resources", "requests"]).ok_or_else(missing)?);
        if container == its_name {
            return Ok(sum);
        }
    }
    if container.is_empty() {
        Ok(sum)
    } else {
        Err(ReplicasError::UnknownContainer { container: container.to_owned(), pod: name.to_owned() })
    }
}

/// Pods without a measurement count as fully used if the others use little, and as idle if the others use much; the
/// same holds for pods that are not ready.
fn guess(used: &mut OfPods, groups: &Groups, ratio: f64, much: impl Fn(&str) -> i64) {
    if ratio < 1.0 {
        groups.missing.iter().for_each(|pod| _ = used.insert(pod.clone(), much(pod)));
    } else if ratio > 1.0 {
        groups.missing.iter().chain(&groups.unready).for_each(|pod| _ = used.insert(pod.clone(), 0));
    }
}

fn up(number: f64) -> i64 {
    (number.ceil() as i64).min(i32::MAX.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    const NOW: &str = "2026-01-01T01:00:00Z";

    fn pod(name: &str, more: &str) -> Value {
        let text = format!(
            "metadata: {{name: {name}}}\nspec: {{containers: [{{name: c, resources: {{requests: {{cpu: '1'}}}}}}]}}\nstatus: {{phase: Running, \
             startTime: '2026-01-01T00:00:00Z', conditions: [{{type: Ready, status: 'True', lastTransitionTime: '2026-01-01T00:00:01Z'}}]}}\n{more}"
        );
        let text = if more.is_empty() { text } else { text.replacen("status: {", "was: {", 1) };
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    /// The result for pods that each request one CPU and use this many thousandths of it.
    #[track_caller]
    fn check(pods: &[Value], used: &[(&str, i64)], target: i64, expected: Result<i64, &str>) {
        let pods: Vec<&Value> = pods.iter().collect();
        let tolerances = Tolerances::of(&Value::Null);
        let now = NOW.parse().expect("a time");
        let scene = Scene { pods: &pods, current: pods.len() as i64, tolerances, now };
        let used: OfPods = used.iter().map(|(pod, used)| ((*pod).to_owned(), *used)).collect();
        let found = scene.by_utilization(used.clone(), "cpu", "", target);
        let told = found.as_ref().map(|found| found.replicas).map_err(ToString::to_string);
        assert_eq!(told, expected.map_err(str::to_owned));
        if let Ok(found) = found {
            // The same by the average, as each requests one.
            let average = scene.by_average(used, "cpu", target * 10).expect("pods are measured");
            assert_eq!((average.replicas, average.average), (found.replicas, found.average));
        }
    }

    #[test]
    fn replicas_follow_the_ratio_beyond_a_tolerance() {
        let pods = [pod("a", ""), pod("b", "")];
        check(&pods, &[("a", 1000), ("b", 1000)], 50, Ok(4));
        check(&pods, &[("a", 540), ("b", 560)], 50, Ok(2));
        check(&pods, &[("a", 560), ("b", 560)], 50, Ok(3));
        check(&pods, &[("a", 450), ("b", 450)], 50, Ok(2));
        check(&pods, &[("a", 100), ("b", 100)], 50, Ok(1));
        check(&[], &[], 50, Err("no pods returned by selector while calculating replica count"));
        check(&pods, &[], 50, Err("did not receive metrics for targeted pods (pods might be unready)"));
    }

    #[test]
    fn what_is_not_known_never_turns_the_direction() {
        let pending = pod("c", "status: {phase: Pending}");
        let pods = [pod("a", ""), pod("b", ""), pending];
        // An unready pod counts as idle if the others use much.
        check(&pods, &[("a", 1000), ("b", 1000)], 50, Ok(4));
        check(&pods, &[("a", 600), ("b", 600)], 50, Ok(3));
        // A pod without a measurement counts as busy if the others use little.
        let pods = [pod("a", ""), pod("b", ""), pod("c", "")];
        let utilization = |used: &[(&str, i64)]| {
            let pods: Vec<&Value> = pods.iter().collect();
            let (tolerances, now) = (Tolerances::of(&Value::Null), NOW.parse().expect("a time"));
            let scene = Scene { pods: &pods, current: 3, tolerances, now };
            let used = used.iter().map(|(pod, used)| ((*pod).to_owned(), *used)).collect();
            scene.by_utilization(used, "cpu", "", 50).expect("pods are measured").replicas
        };
        assert_eq!(utilization(&[("a", 10), ("b", 10)]), 3);
        assert_eq!(utilization(&[("a", 1000), ("b", 1000)]), 4);
    }

    #[test]
    fn values_of_others_are_shared() {
        let pods = [pod("a", ""), pod("b", "")];
        let pods: Vec<&Value> = pods.iter().collect();
        let now = NOW.parse().expect("a time");
        let scene = |current| Scene { pods: &pods, current, tolerances: Tolerances::of(&Value::Null), now };
        assert_eq!(scene(2).by_value(30_000, 10_000), Ok(6));
        assert_eq!(scene(2).by_value(10_500, 10_000), Ok(2));
        assert_eq!(scene(2).by_share(30_000, 10_000, 2), (3, 15_000));
        assert_eq!(scene(2).by_share(21_000, 10_000, 2), (2, 10_500));
    }

    #[test]
    fn requests_are_those_of_the_containers() {
        let pod = pod("a", "");
        assert_eq!(request(&pod, "", "cpu"), Ok(1000));
        assert_eq!(request(&pod, "c", "cpu"), Ok(1000));
        let told = |resource, container| request(&pod, container, resource).map_err(|error| error.to_string());
        assert_eq!(told("memory", ""), Err("missing request for memory in container c of Pod a".to_owned()));
        assert_eq!(told("cpu", "d"), Err("container d not found in Pod a".to_owned()));
    }
}
