//! PodDisruptionBudgets: how many pods are healthy, and how many may be disrupted.
//!
//! A change of a pod concerns the budgets that cover it by its labels, before or after. What matters of a pod that is
//! covered is kept until it changes: it is decoded once, however many budgets cover it, and no two at the same time.
//!
//! Source: `pkg/controller/disruption` of Kubernetes 1.37.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::amounts::amount_of;
use super::client::{Client, Kind, PODS, controller_of, int_at, is_going, left, place, read, sooner, written};
use super::conditions::{self, DesiredCondition};
use super::kept_selector::KeptSelector;
use super::pods;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::selector_text::go_selector;
use super::workload::{ControllerContext, Running};
use crate::kinds::pod_object::eviction;
use crate::meta::selector::{LabelSelector, PackedLabels};
use crate::meta::{Revision, Status};
use crate::object;
use crate::registry::Subresource;
use crate::store::{ChangeEvent, Collection, Stored};
use crate::value::{Map, Value, go_quote, json};
use crate::work;

const BUDGETS: Kind = Kind("policy", "poddisruptionbudgets");
const REPLICA_SETS: Kind = Kind("apps", "replicasets");
/// How long an evicted pod may take until its deletion is seen.
const DELETION_S: i64 = 120;

struct Disruption {
    client: Client,
    known: Mutex<KnownBudgets>,
}

#[derive(Default)]
struct KnownBudgets {
    /// The budgets by their keys, with what they select.
    budgets: BTreeMap<String, KeptSelector>,
    /// The pods of namespaces with budgets, by their keys.
    pods: BTreeMap<Arc<str>, KnownPod>,
    /// The collections of the controllers that were asked for their number of pods.
    scaled: BTreeSet<Collection>,
    /// The keys of pods for which several budgets were reported.
    told: BTreeSet<String>,
}

impl KnownBudgets {
    /// The budgets of a namespace.
    fn budgets_in(&self, namespace: &str) -> impl Iterator<Item = (&String, &KeptSelector)> {
        let prefix = format!("{namespace}/");
        self.budgets.range(prefix.clone()..).take_while(move |(key, _)| key.starts_with(&prefix))
    }

    /// Records a budget, or that it is gone.
    fn note_budget(&mut self, change: &ChangeEvent) {
        match &change.stored {
            Some(budget) => _ = self.budgets.insert(change.key.to_string(), selector_of(budget)),
            None => _ = self.budgets.remove(&*change.key),
        }
        let Some((namespace, _)) = change.key.split_once('/') else { return };
        if self.budgets_in(namespace).next().is_none() {
            let prefix = format!("{namespace}/");
            self.pods.retain(|key, _| !key.starts_with(&prefix));
        }
    }

    /// Records a pod, or that it is gone; returns the keys of the budgets that covered it before, and of those that do
    /// now.
    fn note_pod(&mut self, namespace: &str, change: &ChangeEvent) -> Vec<String> {
        let before = self.pods.remove(&change.key);
        if change.stored.is_none() {
            self.told.remove(&*change.key);
        }
        if self.budgets_in(namespace).next().is_none() {
            return Vec::new();
        }
        let now = change.stored.as_deref().map(KnownPod::new);
        let states = [before.as_ref(), now.as_ref()];
        let may_cover = |selector: &KeptSelector| states.iter().flatten().any(|pod| selector.may_select(&pod.labels));
        let budgets = self.budgets_in(namespace);
        let about = budgets.filter(|(_, selector)| may_cover(selector));
        let about = about.map(|(key, _)| key.clone()).collect();
        self.pods.extend(now.map(|now| (Arc::clone(&change.key), now)));
        about
    }
}

/// A pod in a namespace with budgets.
struct KnownPod {
    /// At its last change that was noted.
    labels: PackedLabels,
    /// What it was when a budget covered it, and at which revision.
    seen: Option<(Revision, Arc<CoveredPod>)>,
}

impl KnownPod {
    fn new(stored: &Stored) -> Self {
        KnownPod { labels: stored.sorted_labels().clone(), seen: None }
    }

    /// What matters of the pod in this state.
    ///
    /// Errors: what is stored can't be decoded.
    fn seen_as(&mut self, stored: &Stored) -> Result<Arc<CoveredPod>, Status> {
        if let Some((revision, seen)) = &self.seen
            && *revision == stored.revision
        {
            return Ok(Arc::clone(seen));
        }
        let seen = Arc::new(CoveredPod::of(Arc::clone(&stored.key), &read(stored)?));
        self.seen = Some((stored.revision, Arc::clone(&seen)));
        Ok(seen)
    }
}

/// What matters of a pod to the budgets that cover it.
struct CoveredPod {
    key: Arc<str>,
    is_ready: bool,
    is_going: bool,
    /// The reference to its controller.
    controller: Option<Value>,
}

impl CoveredPod {
    fn of(key: Arc<str>, pod: &Value) -> Self {
        let (is_ready, is_going, controller) = (pods::is_ready(pod), is_going(pod), controller_of(pod).cloned());
        CoveredPod { key, is_ready, is_going, controller }
    }

    /// The namespace and the name.
    fn place(&self) -> (&str, &str) {
        self.key.split_once('/').unwrap_or(("", &self.key))
    }
}

/// How many pods there should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expected {
    pods: i64,
    /// Whether some have no controller; these are not counted.
    has_unmanaged: bool,
}

impl Reconciler for Disruption {
    const TASK: &str = "computing the status of PodDisruptionBudgets";

    fn collections(&self) -> Vec<Collection> {
        vec![BUDGETS.collection(), PODS.collection()]
    }

    fn forget(&self) {
        *self.known() = KnownBudgets::default();
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        let mut known = self.known();
        if BUDGETS.is(&change.collection) {
            known.note_budget(change);
            return vec![change.key.to_string()];
        }
        let Some((namespace, _)) = change.key.split_once('/') else { return Vec::new() };
        if PODS.is(&change.collection) {
            return known.note_pod(namespace, change);
        }
        if !known.scaled.contains(&change.collection) {
            return Vec::new();
        }
        // Which of them it concerns becomes clear when they are handled.
        known.budgets_in(namespace).map(|(key, _)| key.clone()).collect()
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(budget) = self.client.get(BUDGETS, key).await? else { return Ok(Progress::Done) };
        let namespace = budget.str_at(&["metadata", "namespace"]);
        let covered = self.covered(namespace, eviction::selector(&budget).as_ref()).await?;
        self.tell_of_several(key, namespace, &covered).await?;
        let now = self.client.now();
        if covered.is_empty() && was_told_otherwise(&budget) {
            self.client.tell_normal(&budget, "NoPods", "No matching pods found".to_owned());
        }
        let expected = self.expected(&budget, &covered).await?;
        match &expected {
            Err(why) => {
                let message = format!("Failed to calculate the number of expected pods: {why}");
                self.client.tell_warning(&budget, "CalculateExpectedPodCountFailed", message);
            }
            Ok(Expected { has_unmanaged: true, .. }) => {
                self.client.tell_warning(&budget, "UnmanagedPods", unmanaged_pods(&budget));
            }
            Ok(_) => {}
        }
        let expected = expected.map(|expected| expected.pods);
        let (status, again) = status_of(&budget, &covered, expected, now);
        self.client.update_status(BUDGETS, &budget, status).await?;
        Ok(again.map_or(Progress::Done, Progress::After))
    }
}

/// Why it is not known how many pods a budget may expect, in the words of kube-controller-manager.
#[derive(Debug, thiserror::Error)]
enum ExpectedCountError {
    #[error("found no controllers for pod {}", go_quote(.0))]
    NoController(String),
    #[error("no matches for kind {} in version {}", go_quote(.kind), go_quote(.version))]
    NotServed { kind: String, version: String },
    #[error("{0} does not implement the scale subresource")]
    NoScale(String),
    #[error("{0}")]
    Refused(String),
}

impl Disruption {
    fn known(&self) -> MutexGuard<'_, KnownBudgets> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pods of a namespace that a selector covers; without a selector, none.
    async fn covered(&self, namespace: &str, selector: Option<&LabelSelector>) -> Result<Vec<Arc<CoveredPod>>, Status> {
        let found = self.client.stored(PODS, namespace, |_| true).await?;
        let mut known = self.known();
        let mut covered = Vec::new();
        for stored in found {
            let pod = known.pods.entry(Arc::clone(&stored.key)).or_insert_with(|| KnownPod::new(&stored));
            if selector.is_some_and(|selector| selector.matches(stored.sorted_labels())) {
                covered.push(pod.seen_as(&stored)?);
            }
        }
        Ok(covered)
    }

    /// Reports once for each pod that other budgets cover it besides the first one by name, which is that of `key`.
    async fn tell_of_several(&self, key: &str, namespace: &str, covered: &[Arc<CoveredPod>]) -> Result<(), Status> {
        let chosen = key.rsplit('/').next().unwrap_or_default();
        for pod in self.newly_shared(key, namespace, covered) {
            if let Some(pod) = self.client.get(PODS, &pod).await? {
                self.client.tell_warning(&pod, "MultiplePodDisruptionBudgets", several_budgets(&pod, chosen));
            }
        }
        Ok(())
    }

    /// The keys of the pods for which that was not reported yet. From now on it counts as reported.
    fn newly_shared(&self, key: &str, namespace: &str, covered: &[Arc<CoveredPod>]) -> Vec<Arc<str>> {
        let mut known = self.known();
        let is_shared = |known: &KnownBudgets, pod: &KnownPod| {
            let mut covering = known.budgets_in(namespace).filter(|(_, selector)| {
                work::step();
                selector.kept().is_some_and(|selector| selector.matches(&pod.labels))
            });
            covering.next().is_some_and(|(first, _)| first == key) && covering.next().is_some()
        };
        let shared = covered.iter().filter(|pod| {
            !known.told.contains(&*pod.key) && known.pods.get(&pod.key).is_some_and(|pod| is_shared(&known, pod))
        });
        let shared: Vec<Arc<str>> = shared.map(|pod| Arc::clone(&pod.key)).collect();
        known.told.extend(shared.iter().map(ToString::to_string));
        shared
    }

    /// How many pods there should be according to their controllers, if the budget depends on it.
    ///
    /// Errors: a pod whose controller does not define a number.
    async fn expected(
        &self,
        budget: &Value,
        covered: &[Arc<CoveredPod>],
    ) -> Result<Result<Expected, ExpectedCountError>, Status> {
        let is_needed = budget.at(&["spec", "maxUnavailable"]).is_some_and(|it| !it.is_null())
            || matches!(budget.at(&["spec", "minAvailable"]), Some(Value::String(_)));
        if !is_needed {
            return Ok(Ok(Expected { pods: covered.len() as i64, has_unmanaged: false }));
        }
        let mut has_unmanaged = false;
        let mut asked = BTreeSet::new();
        let mut scales: BTreeMap<String, i64> = BTreeMap::new();
        for pod in covered {
            let Some(owner) = &pod.controller else {
                has_unmanaged = true;
                continue;
            };
            if !asked.insert(owner.str_at(&["uid"])) {
                continue;
            }
            let (namespace, name) = pod.place();
            match self.scale_of(owner, namespace).await? {
                Ok(Some((uid, replicas))) => _ = scales.insert(uid, replicas),
                Ok(None) => return Ok(Err(ExpectedCountError::NoController(name.to_owned()))),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(Expected { pods: scales.values().sum(), has_unmanaged }))
    }

    /// The number of pods that a controller should have, and the uid of the object that defines it: a ReplicaSet's
    /// Deployment, or its own Scale; `None` if it is gone.
    ///
    /// Errors: its kind is not served, or it has no Scale.
    async fn scale_of(
        &self,
        owner: &Value,
        namespace: &str,
    ) -> Result<Result<Option<(String, i64)>, ExpectedCountError>, Status> {
        let mut owner = owner.clone();
        if owner.str_at(&["kind"]) == "ReplicaSet" {
            let key = format!("{namespace}/{}", owner.str_at(&["name"]));
            let set = self.client.get(REPLICA_SETS, &key).await?;
            let deployment = set.as_ref().and_then(controller_of).filter(|it| it.str_at(&["kind"]) == "Deployment");
            owner = deployment.cloned().unwrap_or(owner);
        }
        let Some(mut target) = self.client.target_of(&owner, namespace).await? else {
            let (kind, version) = (owner.str_at(&["kind"]), owner.str_at(&["apiVersion"]));
            return Ok(Err(ExpectedCountError::NotServed { kind: kind.to_owned(), version: version.to_owned() }));
        };
        if target.version.scale.is_none() {
            let (group, plural) = (&target.version.group, &target.version.names.plural);
            let resource = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
            return Ok(Err(ExpectedCountError::NoScale(resource)));
        }
        self.known().scaled.insert(target.resource.collection.clone());
        target.subresource = Subresource::Scale;
        let scale = match self.client.registry.get_value(&target, None).await {
            Ok(scale) => scale,
            Err(status) if status.code == 404 => return Ok(Ok(None)),
            Err(status) => return Ok(Err(ExpectedCountError::Refused(status.message))),
        };
        let uid = scale.str_at(&["metadata", "uid"]);
        let is_it = uid == owner.str_at(&["uid"]);
        Ok(Ok(is_it.then(|| (uid.to_owned(), int_at(&scale, &["spec", "replicas"])))))
    }
}

/// Whether the status of a budget does not yet show that it covers no pods.
fn was_told_otherwise(budget: &Value) -> bool {
    let seen = int_at(budget, &["status", "observedGeneration"]);
    seen != int_at(budget, &["metadata", "generation"]) || int_at(budget, &["status", "expectedPods"]) > 0
}

/// What a stored budget selects.
fn selector_of(budget: &Stored) -> KeptSelector {
    let budget = json::decode(&budget.bytes).unwrap_or_default();
    KeptSelector::of(budget.at(&["spec", "selector"]), || eviction::selector(&budget))
}

/// The message for a pod that several budgets cover.
fn several_budgets(pod: &Value, chosen: &str) -> String {
    let (namespace, name) = place(pod);
    let [namespace, name, chosen] = [namespace, name, chosen].map(go_quote);
    format!("Pod {namespace}/{name} matches multiple PodDisruptionBudgets.  Chose {chosen} arbitrarily.")
}

/// The message about pods that a budget covers and that have no controller.
fn unmanaged_pods(budget: &Value) -> String {
    let selector = go_selector(budget.at(&["spec", "selector"]));
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, the status of \
         the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \
         \".spec.minAvailable\" field of the PDB to an integer value."
    )
}

/// The status of a budget over the pods that it covers; and when it changes without any event.
fn status_of(
    budget: &Value,
    covered: &[Arc<CoveredPod>],
    expected: Result<i64, ExpectedCountError>,
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
            say(&mut conditions, ("False", "SyncFailed", &why.to_string()), generation, now);
            conditions::put(&mut status, conditions);
            return (status, None);
        }
    };
    let (disrupted, again) = still_disrupted(budget, covered, now);
    let is_healthy = |pod: &&Arc<CoveredPod>| pod.is_ready && !pod.is_going && !disrupted.contains_key(pod.place().1);
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

/// The evicted pods that still exist and are not yet being deleted. A pod that stays too long counts again.
fn still_disrupted(budget: &Value, covered: &[Arc<CoveredPod>], now: Timestamp) -> (Map, Option<Duration>) {
    let mut again = None;
    let mut disrupted = Map::new();
    let there: BTreeSet<&str> = covered.iter().filter(|pod| !pod.is_going).map(|pod| pod.place().1).collect();
    let known = budget.at(&["status", "disruptedPods"]).and_then(Value::as_object);
    for (name, since) in known.into_iter().flat_map(Map::iter) {
        let since_when = since.as_str().and_then(|since| since.parse().ok());
        let pause = since_when.and_then(|since| left(since, DELETION_S, now));
        if there.contains(name) && pause.is_some() {
            again = sooner(again, pause);
            disrupted.insert(name, since.clone());
        }
    }
    (disrupted, again)
}

fn say(conditions: &mut Vec<Value>, (status, reason, message): (&str, &str, &str), generation: i64, now: Timestamp) {
    let said = DesiredCondition { type_: "DisruptionAllowed", status, reason, message };
    conditions::set(conditions, &said, &written(now));
    if let Some(condition) = conditions.iter_mut().find(|it| it.str_at(&["type"]) == "DisruptionAllowed") {
        let fields = condition.make_object();
        fields.insert("observedGeneration", Value::Int(generation));
        // This condition has a message even if it is empty.
        fields.insert("message", Value::from(message));
    }
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let disruption = Disruption {
        client: context.client("disruption-controller").called("controllermanager"),
        known: Mutex::default(),
    };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), disruption))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::controllers::recorder::Recorder;
    use crate::registry::fixture;
    use crate::value::yaml;

    fn disruption(registry: &Arc<crate::registry::Registry>) -> Disruption {
        let client = Client::new(registry, &Recorder::start(registry), "disruption-controller");
        Disruption { client, known: Mutex::default() }
    }

    fn change(kind: Kind, key: &str, text: Option<&str>) -> ChangeEvent {
        let stored = text.map(|text| Arc::new(Stored::fixture(key, "u", json::encode(&read(text)))));
        let (collection, revision) = (kind.collection(), Revision::new(1));
        ChangeEvent { collection, key: key.into(), uid: "u".into(), revision, stored }
    }

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn what_is_healthy_beyond_the_budget_may_go() {
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let pod = |name: &str, ready: &str| {
            let pod = read(&format!("status: {{conditions: [{{type: Ready, status: '{ready}'}}]}}"));
            Arc::new(CoveredPod::of(format!("d/{name}").into(), &pod))
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
        // An evicted pod does not count as healthy, for a while.
        let evicted = "spec: {minAvailable: 1}\nstatus: {disruptedPods: {a: '2026-01-01T00:00:50Z'}}";
        check(evicted, 3, [1, 1, 0]);
        check(&evicted.replace("00:00:50", "00:00:00").replace("2026", "2025"), 3, [2, 1, 1]);
        let (failed, _) = status_of(
            &read("spec: {maxUnavailable: 1}"),
            &pods,
            Err(ExpectedCountError::Refused("no".to_owned())),
            now,
        );
        assert_eq!(failed.items_at(&["conditions"])[0].str_at(&["reason"]), "SyncFailed");
    }

    #[tokio::test]
    async fn a_changed_pod_concerns_the_budgets_that_cover_it_before_or_after() {
        let disruption = disruption(&fixture::registry().await);
        let selecting = |app: &str| format!("spec: {{selector: {{matchLabels: {{app: {app}}}}}}}");
        for (budget, app) in [("d/a", "a"), ("d/also-a", "a"), ("d/b", "b"), ("e/a", "a")] {
            disruption.note(&change(BUDGETS, budget, Some(&selecting(app))));
        }
        let check = |pod: &str, app: Option<&str>, expected: &[&str]| {
            let pod_text = app.map(|app| format!("metadata: {{labels: {{app: {app}}}}}"));
            assert_eq!(disruption.note(&change(PODS, pod, pod_text.as_deref())), expected, "{pod} {app:?}");
        };
        check("d/p", Some("other"), &[]);
        check("d/p", Some("b"), &["d/b"]);
        check("d/p", Some("a"), &["d/a", "d/also-a", "d/b"]);
        check("d/p", Some("a"), &["d/a", "d/also-a"]);
        check("d/p", None, &["d/a", "d/also-a"]);
        check("d/p", None, &[]);
        check("without/p", Some("a"), &[]);
        // Where there are no budgets any more, nothing is kept.
        check("e/p", Some("a"), &["e/a"]);
        disruption.note(&change(BUDGETS, "e/a", None));
        assert!(disruption.known().pods.is_empty());
    }

    #[tokio::test]
    async fn a_pod_is_decoded_once_for_all_budgets_and_alone() {
        const PODS_COUNT: usize = 8;
        let registry = fixture::registry().await;
        let disruption = disruption(&registry);
        let arguments = vec![Value::from("a"); 20_000];
        for (app, name) in (0..PODS_COUNT).map(|at| ("many", format!("p{at}"))).chain([("one", "q".to_owned())]) {
            let mut pod = read(&format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: default, labels: {{app: {app}}}}}, \
                 spec: {{containers: [{{name: c, image: i}}]}}}}"
            ));
            let containers = pod.at_mut(&["spec", "containers"]).and_then(Value::as_array_mut).expect("it has some");
            containers[0].make_object().insert("args", Value::Array(arguments.clone()));
            disruption.client.create(PODS, &pod).await.expect("it is valid");
        }
        let look = |app: &str| {
            let selector = LabelSelector::parse(&format!("app={app}")).expect("a selector");
            let mut outcome = (0, 0);
            let allocated = allocation_counter::measure(|| {
                outcome = work::counted(|| {
                    let covered = disruption.covered("default", Some(&selector)).now_or_never();
                    covered.expect("nothing is waited for").expect("it is JSON").len()
                });
            });
            (outcome.0, outcome.1, allocated.bytes_max)
        };
        let (one, _, bytes_of_one) = look("one");
        let (many, steps, bytes) = look("many");
        assert_eq!((one, many), (1, PODS_COUNT));
        assert!(steps > 100_000 && bytes < 2 * bytes_of_one, "{steps} steps, {bytes} and {bytes_of_one} bytes");
        // Another budget over the same pods.
        let (again, steps, _) = look("many");
        assert!(again == PODS_COUNT && steps < 1_000, "{steps} steps");
    }

    #[test]
    fn a_budget_is_told_once_that_it_covers_no_pods() {
        let check = |status: &str, expected: bool| {
            let budget = read(&format!("metadata: {{generation: 2}}\nstatus: {status}"));
            assert_eq!(was_told_otherwise(&budget), expected, "{status}");
        };
        check("{}", true);
        check("{observedGeneration: 1}", true);
        check("{observedGeneration: 2, expectedPods: 3}", true);
        check("{observedGeneration: 2, expectedPods: 0}", false);
    }
}
