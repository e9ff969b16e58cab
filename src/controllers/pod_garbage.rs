//! Orphaned pods: those of nodes that are gone, those without a node that are being deleted, and finished ones beyond a
//! limit.
//!
//! DIFFERS: kube-controller-manager checks every 20 s, and this controller on changes; a node that is gone has the same
//! 40 s to come back, and a pod without a node is removed after the 20 s that this may take there.
//!
//! Source: `pkg/controller/podgc` of Kubernetes 1.37.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::client::{Client, NODES, PODS, is_going, left, time_at};
use super::first_error::FirstError;
use super::pods;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::kinds::pod_object::conditions::{self, Condition};
use crate::meta::{Status, time};
use crate::store::{ChangeEvent, Collection, Stored};
use crate::value::{Value, json};

/// How long a node may be missing before its pods are deleted.
const QUARANTINE_S: i64 = 40;
/// How long a pod that is being deleted and has no node may wait for its finalizers.
const UNSCHEDULED_S: i64 = 20;
/// How many pods that have ended are kept: the default of `--terminated-pod-gc-threshold`.
const ENDED_MAX: usize = 12_500;
/// The key that is handled when a pod has ended.
const ENDED: &str = "\u{0}ended";
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

struct PodGarbage {
    client: Client,
    known: Mutex<KnownPods>,
}

#[derive(Default)]
struct KnownPods {
    /// The nodes that exist.
    nodes: BTreeSet<String>,
    /// The pods of each node, whether or not it exists.
    bound: BTreeMap<String, BTreeSet<String>>,
    /// The node of each of them.
    places: HashMap<String, String>,
    /// Pods that have ended, in the order of deletion.
    ended: BTreeSet<Ended>,
    /// The entry of each of them.
    ends: HashMap<String, Ended>,
    /// Since when nodes with pods are missing.
    missing: HashMap<String, Timestamp>,
}

/// A pod that has ended: evicted ones are deleted first, then the oldest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ended {
    was_not_evicted: bool,
    made: String,
    key: String,
}

impl KnownPods {
    /// Records a pod, or its deletion.
    fn take_in(&mut self, key: &str, pod: Option<&Value>) {
        if let Some(node) = self.places.remove(key)
            && let Some(pods) = self.bound.get_mut(&node)
        {
            pods.remove(key);
            if pods.is_empty() {
                self.bound.remove(&node);
            }
        }
        if let Some(ended) = self.ends.remove(key) {
            self.ended.remove(&ended);
        }
        let Some(pod) = pod else { return };
        let node = pod.str_at(&["spec", "nodeName"]);
        if !node.is_empty() {
            self.bound.entry(node.to_owned()).or_default().insert(key.to_owned());
            self.places.insert(key.to_owned(), node.to_owned());
        }
        if pods::is_over(pod) {
            let was_evicted =
                pod.str_at(&["status", "phase"]) == "Failed" && pod.str_at(&["status", "reason"]) == "Evicted";
            let made = pod.str_at(&["metadata", "creationTimestamp"]).to_owned();
            let ended = Ended { was_not_evicted: !was_evicted, made, key: key.to_owned() };
            self.ended.insert(ended.clone());
            self.ends.insert(key.to_owned(), ended);
        }
    }

    /// Records a node, or its deletion: a node that has come back is no longer missing, and its time starts again if it
    /// disappears again.
    fn take_in_node(&mut self, name: &str, is_there: bool) {
        if is_there {
            self.nodes.insert(name.to_owned());
            self.missing.remove(name);
        } else {
            self.nodes.remove(name);
        }
    }

    /// The keys of finished pods beyond the limit.
    fn surplus(&self, most: usize) -> Vec<String> {
        let surplus = self.ended.len().saturating_sub(most);
        self.ended.iter().take(surplus).map(|ended| ended.key.clone()).collect()
    }

    fn pods_of(&self, node: &str) -> Vec<String> {
        self.bound.get(node).into_iter().flatten().cloned().collect()
    }
}

impl PodGarbage {
    fn known(&self) -> MutexGuard<'_, KnownPods> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key is the name of a node, `namespace/name` of a pod, or [`ENDED`].
impl Reconciler for PodGarbage {
    const TASK: &str = "collecting pods";

    fn collections(&self) -> Vec<Collection> {
        vec![NODES.collection(), PODS.collection()]
    }

    fn forget(&self) {
        *self.known() = KnownPods::default();
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if NODES.is(&change.collection) {
            let mut known = self.known();
            known.take_in_node(&change.key, change.stored.is_some());
            return vec![change.key.to_string()];
        }
        if !PODS.is(&change.collection) {
            return Vec::new();
        }
        let decode = |stored: &Arc<Stored>| json::decode(&stored.bytes).ok();
        let pod = change.stored.as_ref().and_then(decode);
        let mut known = self.known();
        known.take_in(&change.key, pod.as_ref());
        let Some(pod) = pod else { return Vec::new() };
        let node = pod.str_at(&["spec", "nodeName"]);
        let about_pod = if node.is_empty() {
            is_going(&pod).then(|| change.key.to_string())
        } else {
            // Nothing is to be done for a pod that stays on a node that is there.
            let is_settled = known.nodes.contains(node) && !is_going(&pod);
            (!is_settled).then(|| node.to_owned())
        };
        let about_ended = (known.ended.len() > ENDED_MAX).then(|| ENDED.to_owned());
        about_pod.into_iter().chain(about_ended).collect()
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        if key == ENDED {
            let surplus = self.known().surplus(ENDED_MAX);
            self.collect(surplus, |_| true, None).await?;
            return Ok(Progress::Done);
        }
        if key.contains('/') {
            return self.reconcile_unscheduled(key).await;
        }
        self.reconcile_node(key).await
    }
}

impl PodGarbage {
    async fn reconcile_unscheduled(&self, key: &str) -> Result<Progress, Status> {
        let is_unscheduled = |pod: &Value| is_going(pod) && pod.str_at(&["spec", "nodeName"]).is_empty();
        let Some(pod) = self.client.get(PODS, key).await?.filter(is_unscheduled) else { return Ok(Progress::Done) };
        let since = time_at(&pod, &["metadata", "deletionTimestamp"]);
        if let Some(pause) = since.and_then(|since| left(since, UNSCHEDULED_S, self.client.now())) {
            return Ok(Progress::After(pause));
        }
        self.collect(vec![key.to_owned()], is_unscheduled, None).await?;
        Ok(Progress::Done)
    }

    async fn reconcile_node(&self, name: &str) -> Result<Progress, Status> {
        let node = self.client.get(NODES, name).await?;
        let bound = self.known().pods_of(name);
        match node {
            Some(node) => {
                if is_out_of_service(&node) {
                    self.collect(bound, is_going, None).await?;
                }
                Ok(Progress::Done)
            }
            None if bound.is_empty() => {
                self.known().missing.remove(name);
                Ok(Progress::Done)
            }
            None => {
                let now = self.client.now();
                let since = *self.known().missing.entry(name.to_owned()).or_insert(now);
                if let Some(pause) = left(since, QUARANTINE_S, now) {
                    return Ok(Progress::After(pause));
                }
                let why = Condition {
                    kind: "DisruptionTarget",
                    status: "True",
                    reason: "DeletionByPodGC",
                    message: "PodGC: node no longer exists",
                };
                self.collect(bound, |pod| pod.str_at(&["spec", "nodeName"]) == name, Some(why)).await?;
                self.known().missing.remove(name);
                Ok(Progress::Done)
            }
        }
    }

    /// Deletes those pods immediately that are still wanted gone; one that can't be deleted does not keep the others.
    async fn collect(
        &self,
        keys: Vec<String>,
        is_wanted: impl Fn(&Value) -> bool,
        why: Option<Condition<'_>>,
    ) -> Result<(), Status> {
        let mut failed = FirstError::default();
        for key in keys {
            failed.keep(self.collect_one(&key, &is_wanted, why.as_ref()).await);
        }
        failed.end()
    }

    /// Deletes a pod immediately, if it is there as wanted; it is marked as failed first, unless it had ended.
    async fn collect_one(
        &self,
        key: &str,
        is_wanted: impl Fn(&Value) -> bool,
        why: Option<&Condition<'_>>,
    ) -> Result<(), Status> {
        let Some(mut pod) = self.client.get(PODS, key).await?.filter(is_wanted) else { return Ok(()) };
        if !pods::is_over(&pod) {
            let mut failed = pod.clone();
            if let Some(why) = why {
                conditions::set(&mut failed, why, &time::format_seconds(self.client.now()));
            }
            let mut status = failed.get("status").cloned().unwrap_or_default();
            status.make_object().insert("phase", Value::from("Failed"));
            pod = self.client.write_status(PODS, &pod, status).await?;
        }
        self.client.delete(PODS, &pod, Some(0)).await
    }
}

/// Whether an unready node is marked as out of service.
fn is_out_of_service(node: &Value) -> bool {
    let is_said = |taint: &Value| taint.str_at(&["key"]) == OUT_OF_SERVICE;
    !conditions::is_true(node, conditions::READY) && node.items_at(&["spec", "taints"]).iter().any(is_said)
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let garbage = PodGarbage { client: context.client("pod-garbage-collector"), known: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), garbage))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::fixture::{client, read, store_pod};
    use crate::registry::fixture;

    #[test]
    fn of_the_pods_that_have_ended_the_evicted_and_the_oldest_go() {
        let mut known = KnownPods::default();
        let pod = |made: &str, status: &str| {
            read(&format!(
                "metadata: {{creationTimestamp: '{made}'}}\nspec: {{nodeName: node-0}}\nstatus: {{{status}}}"
            ))
        };
        for (key, made, status) in [
            ("d/young", "2026-01-03T00:00:00Z", "phase: Succeeded"),
            ("d/old", "2026-01-01T00:00:00Z", "phase: Failed"),
            ("d/evicted", "2026-01-04T00:00:00Z", "phase: Failed, reason: Evicted"),
            ("d/running", "2026-01-01T00:00:00Z", "phase: Running"),
        ] {
            known.take_in(key, Some(&pod(made, status)));
        }
        assert_eq!(known.surplus(2), ["d/evicted"]);
        assert_eq!(known.surplus(1), ["d/evicted", "d/old"]);
        assert!(known.surplus(3).is_empty());
        assert_eq!(known.pods_of("node-0").len(), 4);
        known.take_in("d/evicted", None);
        assert_eq!((known.surplus(1), known.pods_of("node-0").len()), (vec!["d/old".to_owned()], 3));
    }

    #[tokio::test]
    async fn a_pod_that_is_to_go_without_a_node_has_some_time() {
        let registry = fixture::registry().await;
        let client = client(&registry);
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default, finalizers: [example.com/held]}, \
                   spec: {containers: [{name: c, image: i}]}}";
        let pod = client.create(PODS, &read(pod)).await.expect("it is made");
        client.delete(PODS, &pod, None).await.expect("it is to go");
        let garbage = PodGarbage { client: client.clone(), known: Mutex::default() };
        let progress = garbage.reconcile("default/p").await.expect("it is looked at");
        assert!(matches!(progress, Progress::After(pause) if pause.as_secs() <= 20), "{progress:?}");
        let pod = client.get(PODS, "default/p").await.expect("it is read").expect("it is held");
        assert_eq!(pod.str_at(&["status", "phase"]), "Pending");
    }

    #[test]
    fn a_node_that_has_come_back_is_not_missing() {
        let mut known = KnownPods::default();
        known.take_in_node("node-0", true);
        known.take_in_node("node-0", false);
        known.missing.insert("node-0".to_owned(), Timestamp::UNIX_EPOCH);
        assert!(known.nodes.is_empty());
        known.take_in_node("node-0", true);
        assert!(known.nodes.contains("node-0") && known.missing.is_empty());
    }

    #[test]
    fn a_node_is_out_of_service_where_it_is_said_and_not_ready() {
        let check = |taints: &str, ready: &str| {
            let conditions = format!("status: {{conditions: [{{type: Ready, status: '{ready}'}}]}}");
            is_out_of_service(&read(&format!("spec: {{taints: [{taints}]}}\n{conditions}")))
        };
        let said = "{key: node.kubernetes.io/out-of-service, effect: NoExecute}";
        assert!(check(said, "Unknown") && check(said, "False"));
        assert!(!check(said, "True") && !check("{key: other}", "Unknown"));
    }

    #[tokio::test]
    async fn a_pod_that_can_not_be_collected_holds_up_no_other() {
        let registry = fixture::registry().await;
        let garbage = PodGarbage { client: client(&registry), known: Mutex::default() };
        for (name, is_writable) in [("a", false), ("b", true)] {
            store_pod(&registry, name, "gone", is_writable).await;
        }
        let keys = ["default/a", "default/b"].map(str::to_owned).to_vec();
        assert!(garbage.collect(keys, |_| true, None).await.is_err());
        assert!(garbage.client.get(PODS, "default/a").await.expect("it is read").is_some());
        assert!(garbage.client.get(PODS, "default/b").await.expect("it is read").is_none());
    }
}
