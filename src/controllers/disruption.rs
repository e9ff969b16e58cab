//! PodDisruptionBudgets: how many pods are healthy, and how many may be disrupted.
//!
//! Source: `pkg/controller/disruption` of Kubernetes 1.37.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::amounts::amount_of;
use super::client::{Client, Kind, PODS, controller_of, int_at, is_going, left, sooner, written};
use super::conditions::{self, Said};
use super::pods;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::switches::{Means, Running};
use crate::kinds::pod_object::eviction;
use crate::meta::Status;
use crate::object;
use crate::store::{Collection, Entry};
use crate::value::{Map, Value};

const BUDGETS: Kind = Kind("policy", "poddisruptionbudgets");
/// The controllers whose number of pods is known, by what refers to them.
const SCALED: [(&str, Kind); 5] = [
    ("ReplicaSet", Kind("apps", "replicasets")),
    ("Deployment", Kind("apps", "deployments")),
    ("StatefulSet", Kind("apps", "statefulsets")),
    ("ReplicationController", Kind("", "replicationcontrollers")),
    ("Job", Kind("batch", "jobs")),
];
/// How long an evicted pod may take until its deletion is seen.
const DELETION_S: i64 = 120;

struct Disruption {
    client: Client,
    /// The budgets of each namespace.
    budgets: Mutex<BTreeSet<String>>,
}

impl Reconciler for Disruption {
    const TASK: &str = "reckoning disruptions";

    fn collections(&self) -> Vec<Collection> {
        vec![BUDGETS.collection(), PODS.collection()]
    }

    fn note(&self, change: &Entry) -> Vec<String> {
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        if BUDGETS.is(&change.collection) {
            match change.stored {
                Some(_) => budgets.insert(change.key.to_string()),
                None => budgets.remove(&*change.key),
            };
            return vec![change.key.to_string()];
        }
        let is_scaled = || SCALED.iter().any(|(_, kind)| kind.is(&change.collection));
        if !PODS.is(&change.collection) && !is_scaled() {
            return Vec::new();
        }
        // Which of them it is about shows when they are looked at.
        let Some((namespace, _)) = change.key.split_once('/') else { return Vec::new() };
        let prefix = format!("{namespace}/");
        let from = budgets.range(prefix.clone()..);
        from.take_while(|key| key.starts_with(&prefix)).cloned().collect()
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(budget) = self.client.get(BUDGETS, key).await? else { return Ok(Progress::Done) };
        let namespace = budget.str_at(&["metadata", "namespace"]);
        let mut covered = self.client.list(PODS, namespace, |_| true).await?;
        covered.retain(|pod| eviction::covers(&budget, pod));
        let now = self.client.now();
        let expected = self.expected(&budget, &covered).await?;
        if let Err(why) = &expected {
            self.client.tell_warning(&budget, "CalculateExpectedPodCountFailed", why.clone());
        }
        let (status, again) = status_of(&budget, &covered, expected, now);
        self.client.update_status(BUDGETS, &budget, status).await?;
        Ok(again.map_or(Progress::Done, Progress::After))
    }
}

impl Disruption {
    /// How many pods there are to be, where the budget depends on it: what their controllers say.
    ///
    /// Errors: a pod without a controller that says so.
    async fn expected(&self, budget: &Value, covered: &[Value]) -> Result<Result<i64, String>, Status> {
        let is_needed = budget.at(&["spec", "maxUnavailable"]).is_some_and(|it| !it.is_null())
            || matches!(budget.at(&["spec", "minAvailable"]), Some(Value::String(_)));
        if !is_needed {
            return Ok(Ok(covered.len() as i64));
        }
        let mut scales: BTreeMap<String, i64> = BTreeMap::new();
        for pod in covered {
            let namespace = pod.str_at(&["metadata", "namespace"]);
            let Some(mut owner) = controller_of(pod).cloned() else {
                let name = pod.str_at(&["metadata", "name"]);
                return Ok(Err(format!("found no controller ref for pod {name:?}")));
            };
            loop {
                let kind = SCALED.iter().find(|(kind, _)| *kind == owner.str_at(&["kind"]));
                let Some((_, kind)) = kind else {
                    let kind = owner.str_at(&["kind"]);
                    return Ok(Err(format!("{kind} does not implement the scale subresource")));
                };
                let key = format!("{namespace}/{}", owner.str_at(&["name"]));
                let Some(found) = self.client.get(*kind, &key).await? else { break };
                // A ReplicaSet of a Deployment counts as that; nothing else is followed, as owners may name each other.
                let is_set = owner.str_at(&["kind"]) == "ReplicaSet";
                let deployment = |next: &&Value| is_set && next.str_at(&["kind"]) == "Deployment";
                if let Some(next) = controller_of(&found).filter(deployment).cloned() {
                    owner = next;
                    continue;
                }
                let field = if owner.str_at(&["kind"]) == "Job" { "parallelism" } else { "replicas" };
                scales.insert(owner.str_at(&["uid"]).to_owned(), int_at(&found, &["spec", field]));
                break;
            }
        }
        Ok(Ok(scales.values().sum()))
    }
}

/// The status of a budget over the pods that it covers; and when it changes by itself.
fn status_of(
    budget: &Value,
    covered: &[Value],
    expected: Result<i64, String>,
    now: Timestamp,
) -> (Value, Option<Duration>) {
    let generation = int_at(budget, &["metadata", "generation"]);
    let mut conditions = conditions::of(budget).to_vec();
    let expected = match expected {
        Ok(expected) => expected,
        Err(why) => {
            let mut status = budget.get("status").cloned().unwrap_or_else(|| object! {});
            let fields = status.make_object();
            fields.insert("disruptionsAllowed", Value::Int(0));
            fields.insert("observedGeneration", Value::Int(generation));
            say(&mut conditions, ("False", "SyncFailed", &why), generation, now);
            conditions::put(&mut status, conditions);
            return (status, None);
        }
    };
    let (disrupted, again) = still_disrupted(budget, covered, now);
    let is_healthy = |pod: &&Value| {
        pods::is_ready(pod) && !is_going(pod) && !disrupted.contains_key(pod.str_at(&["metadata", "name"]))
    };
    let healthy = covered.iter().filter(is_healthy).count() as i64;
    let spec = |field: &str| budget.at(&["spec", field]).filter(|amount| !amount.is_null());
    let desired = match (spec("maxUnavailable"), spec("minAvailable")) {
        (Some(most), _) => (expected - amount_of(Some(most), expected, true)).max(0),
        (None, least @ Some(Value::String(_))) => amount_of(least, expected, true),
        (None, least) => amount_of(least, expected, true),
    };
    let allowed = if expected == 0 { 0 } else { (healthy - desired).max(0) };
    let said = if allowed > 0 { ("True", "SufficientPods", "") } else { ("False", "InsufficientPods", "") };
    say(&mut conditions, said, generation, now);
    let mut status = object! {
        "currentHealthy" => healthy,
        "desiredHealthy" => desired,
        "disruptionsAllowed" => allowed,
        "expectedPods" => expected,
        "observedGeneration" => generation,
    };
    if !disrupted.is_empty() {
        status.make_object().insert("disruptedPods", disrupted.into());
    }
    conditions::put(&mut status, conditions);
    (status, again)
}

/// The evicted pods that are still there and not yet being deleted. One that stays too long counts again.
fn still_disrupted(budget: &Value, covered: &[Value], now: Timestamp) -> (Map, Option<Duration>) {
    let mut again = None;
    let mut disrupted = Map::new();
    let known = budget.at(&["status", "disruptedPods"]).and_then(Value::as_object);
    for (name, since) in known.into_iter().flat_map(Map::iter) {
        let is_there = covered.iter().any(|pod| pod.str_at(&["metadata", "name"]) == name && !is_going(pod));
        let since_when = since.as_str().and_then(|since| since.parse().ok());
        let pause = since_when.and_then(|since| left(since, DELETION_S, now));
        if is_there && pause.is_some() {
            again = sooner(again, pause);
            disrupted.insert(name, since.clone());
        }
    }
    (disrupted, again)
}

fn say(conditions: &mut Vec<Value>, (status, reason, message): (&str, &str, &str), generation: i64, now: Timestamp) {
    let said = Said { type_: "DisruptionAllowed", status, reason, message };
    conditions::set(conditions, &said, &written(now));
    if let Some(condition) = conditions.iter_mut().find(|it| it.str_at(&["type"]) == "DisruptionAllowed") {
        let fields = condition.make_object();
        fields.insert("observedGeneration", Value::Int(generation));
        // This condition has a message, also where it says nothing.
        fields.insert("message", Value::from(message));
    }
}

/// Starts it.
pub(super) fn start(means: &Means) -> Running {
    let disruption = Disruption { client: means.client("disruption-controller"), budgets: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&means.registry), disruption))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn what_is_healthy_beyond_the_budget_may_go() {
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let pod = |name: &str, ready: &str| {
            read(&format!("metadata: {{name: {name}}}\nstatus: {{conditions: [{{type: Ready, status: '{ready}'}}]}}"))
        };
        let pods = [pod("a", "True"), pod("b", "True"), pod("c", "False")];
        let check = |budget: &str, expected: i64, counts: [i64; 3]| {
            let budget = read(&format!("metadata: {{generation: 1}}\n{budget}"));
            let (status, _) = status_of(&budget, &pods, Ok(expected), now);
            let fields = ["currentHealthy", "desiredHealthy", "disruptionsAllowed"];
            assert_eq!(fields.map(|field| int_at(&status, &[field])), counts, "{budget:?}");
            let reason = status.items_at(&["conditions"])[0].str_at(&["reason"]);
            assert_eq!(reason == "SufficientPods", counts[2] > 0);
        };
        check("spec: {minAvailable: 1}", 3, [2, 1, 1]);
        check("spec: {minAvailable: 2}", 3, [2, 2, 0]);
        check("spec: {minAvailable: 50%}", 3, [2, 2, 0]);
        check("spec: {maxUnavailable: 2}", 3, [2, 1, 1]);
        check("spec: {maxUnavailable: 34%}", 3, [2, 1, 1]);
        check("spec: {minAvailable: 0}", 3, [2, 0, 2]);
        // One that was evicted is not healthy, for a while.
        let evicted = "spec: {minAvailable: 1}\nstatus: {disruptedPods: {a: '2026-01-01T00:00:50Z'}}";
        check(evicted, 3, [1, 1, 0]);
        check(&evicted.replace("00:00:50", "00:00:00").replace("2026", "2025"), 3, [2, 1, 1]);
        let (failed, _) = status_of(&read("spec: {maxUnavailable: 1}"), &pods, Err("no".to_owned()), now);
        assert_eq!(failed.items_at(&["conditions"])[0].str_at(&["reason"]), "SyncFailed");
    }
}
