//! Evicts pods from nodes with taints that they do not tolerate, at once or after the time for which they do.
//!
//! Source: `pkg/controller/tainteviction` of Kubernetes 1.37.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::client::{Client, NODES, PODS, is_going, key_of, left, sooner, time_at};
use super::first_error::FirstError;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use super::{nodes, pods};
use crate::kinds::pod_object::conditions::{self, Condition};
use crate::meta::{Status, time};
use crate::store::{ChangeEvent, Collection};
use crate::value::{Value, json};

struct TaintEviction {
    client: Client,
    /// The pods of each node.
    bound: Mutex<Bound>,
}

#[derive(Default)]
struct Bound {
    pods: BTreeMap<String, BTreeSet<String>>,
    nodes: BTreeMap<String, String>,
    /// Since when pods have been tolerating the taints of their node for a limited time.
    tolerating: BTreeMap<String, Timestamp>,
}

impl TaintEviction {
    fn bound(&self) -> MutexGuard<'_, Bound> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key is the name of a node.
impl Reconciler for TaintEviction {
    const TASK: &str = "evicting pods from tainted nodes";

    fn collections(&self) -> Vec<Collection> {
        vec![NODES.collection(), PODS.collection()]
    }

    fn forget(&self) {
        *self.bound() = Bound::default();
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if NODES.is(&change.collection) {
            return vec![change.key.to_string()];
        }
        if !PODS.is(&change.collection) {
            return Vec::new();
        }
        let mut bound = self.bound();
        let known = bound.nodes.get(&*change.key).cloned();
        match (&change.stored, known) {
            // A pod stays on its node.
            (Some(_), Some(_)) => Vec::new(),
            (Some(stored), None) => {
                let node = json::decode(&stored.bytes).ok().map(|pod| pod.str_at(&["spec", "nodeName"]).to_owned());
                let Some(node) = node.filter(|node| !node.is_empty()) else { return Vec::new() };
                bound.nodes.insert(change.key.to_string(), node.clone());
                bound.pods.entry(node.clone()).or_default().insert(change.key.to_string());
                vec![node]
            }
            (None, Some(node)) => {
                bound.nodes.remove(&*change.key);
                bound.tolerating.remove(&*change.key);
                if let Entry::Occupied(mut pods) = bound.pods.entry(node) {
                    pods.get_mut().remove(&*change.key);
                    if pods.get().is_empty() {
                        pods.remove();
                    }
                }
                Vec::new()
            }
            (None, None) => Vec::new(),
        }
    }

    async fn reconcile(&self, name: &str) -> Result<Progress, Status> {
        let Some(node) = self.client.get(NODES, name).await? else { return Ok(Progress::Done) };
        let taints: Vec<Value> = node.items_at(&["spec", "taints"]).to_vec();
        let bound: Vec<String> = self.bound().pods.get(name).into_iter().flatten().cloned().collect();
        let is_tainted = taints.iter().any(|taint| taint.str_at(&["effect"]) == "NoExecute");
        let (mut again, mut failed, now) = (None, FirstError::default(), self.client.now());
        for key in bound {
            let handled = if is_tainted {
                self.reconcile_pod(&key, &taints, now).await
            } else {
                self.cancel(&key).await.map(|()| None)
            };
            again = sooner(again, failed.keep(handled).flatten());
        }
        failed.end()?;
        Ok(again.map_or(Progress::Done, Progress::After))
    }
}

impl TaintEviction {
    /// Evicts a pod of a tainted node, unless it tolerates the taints; returns for how long it still does.
    async fn reconcile_pod(&self, key: &str, taints: &[Value], now: Timestamp) -> Result<Option<Duration>, Status> {
        let Some(pod) = self.client.get(PODS, key).await? else { return Ok(None) };
        let known = self.bound().tolerating.get(key).copied();
        match stays(&pod, taints, known.unwrap_or(now), now) {
            Stay::ForGood => self.cancel(key).await?,
            Stay::For(pause) => {
                self.bound().tolerating.entry(key.to_owned()).or_insert(now);
                return Ok(Some(pause));
            }
            Stay::No => {
                if nodes::untolerated(taints, pod.items_at(&["spec", "tolerations"]), &["NoExecute"]).is_some() {
                    self.cancel(key).await?;
                }
                // A pod that can't be evicted now is evicted at the next attempt: its time does not start again.
                self.evict(&pod).await?;
                self.bound().tolerating.remove(key);
            }
        }
        Ok(None)
    }

    /// Reports that a pod will not be evicted after all, if it was scheduled for that.
    async fn cancel(&self, key: &str) -> Result<(), Status> {
        if self.bound().tolerating.remove(key).is_none() {
            return Ok(());
        }
        let Some(pod) = self.client.get(PODS, key).await? else { return Ok(()) };
        if !is_going(&pod) {
            let message = format!("Cancelling deletion of Pod {key}");
            self.client.tell_normal(&pod, "TaintManagerEviction", message);
        }
        Ok(())
    }

    async fn evict(&self, pod: &Value) -> Result<(), Status> {
        let message = "Taint manager: deleting due to NoExecute taint";
        let said = Condition { kind: "DisruptionTarget", status: "True", reason: "DeletionByTaintManager", message };
        let mut marked = pod.clone();
        conditions::set(&mut marked, &said, &time::format_seconds(self.client.now()));
        let status = marked.get("status").cloned().unwrap_or_default();
        self.client.update_status(PODS, pod, status).await?;
        let message = format!("Marking for deletion Pod {}", key_of(pod));
        self.client.tell_normal(pod, "TaintManagerEviction", message);
        self.client.delete(PODS, pod, None).await
    }
}

/// How long a pod may stay on a tainted node.
#[derive(Debug, PartialEq, Eq)]
enum Stay {
    ForGood,
    For(Duration),
    No,
}

/// How long a pod may stay that has been on the node with its current taints since `since`: a taint may be older by its
/// own time.
fn stays(pod: &Value, taints: &[Value], since: Timestamp, now: Timestamp) -> Stay {
    if is_going(pod) || pods::is_over(pod) {
        return Stay::ForGood;
    }
    let tolerations = pod.items_at(&["spec", "tolerations"]);
    if nodes::untolerated(taints, tolerations, &["NoExecute"]).is_some() {
        return Stay::No;
    }
    let tolerations = nodes::Tolerations::of(tolerations);
    let mut shortest: Option<Duration> = None;
    for taint in taints.iter().filter(|taint| taint.str_at(&["effect"]) == "NoExecute") {
        let about = tolerations.about(taint);
        let seconds = about.filter_map(|toleration| toleration.get("tolerationSeconds").and_then(Value::as_i64)).min();
        let Some(seconds) = seconds else { continue };
        match left(time_at(taint, &["timeAdded"]).unwrap_or(since), seconds.max(0), now) {
            Some(pause) => shortest = sooner(shortest, Some(pause)),
            None => return Stay::No,
        }
    }
    shortest.map_or(Stay::ForGood, Stay::For)
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    // It has the account of the controller that it once was a part of.
    let client = context.client("node-controller").called("taint-eviction-controller");
    let eviction = TaintEviction { client, bound: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), eviction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::fixture::{client, read, store, store_pod};
    use crate::registry::fixture;

    #[test]
    fn pods_stay_as_long_as_they_tolerate_it() {
        let taints = [read("{key: k, effect: NoExecute, timeAdded: '2026-01-01T00:00:00Z'}")];
        let check = |tolerations: &str, expected: Stay| {
            let now = "2026-01-01T00:01:00Z".parse().expect("a time");
            let pod = read(&format!("spec: {{tolerations: {tolerations}}}"));
            assert_eq!(stays(&pod, &taints, now, now), expected);
            // Without a word of the taint the time counts from when the pod was seen on the node.
            let since = "2026-01-01T00:00:00Z".parse().expect("a time");
            assert_eq!(stays(&pod, &[read("{key: k, effect: NoExecute}")], since, now), expected);
        };
        check("[]", Stay::No);
        check("[{key: k, operator: Exists}]", Stay::ForGood);
        check("[{key: k, operator: Exists, tolerationSeconds: 300}]", Stay::For(Duration::from_secs(240)));
        check("[{key: k, operator: Exists, tolerationSeconds: 30}]", Stay::No);
    }

    #[tokio::test]
    async fn the_time_of_a_pod_does_not_begin_anew_where_it_can_not_be_evicted_yet() {
        let registry = fixture::registry().await;
        let node =
            "{apiVersion: v1, kind: Node, metadata: {name: n, uid: u}, spec: {taints: [{key: k, effect: NoExecute}]}}";
        store(&registry, NODES, "n", &read(node)).await;
        // A condition keeps its status from being written.
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default, uid: u}, spec: {nodeName: n, containers: [{name: c, \
                   image: i}], tolerations: [{operator: Exists, tolerationSeconds: 30}]}, status: {conditions: [{type: not qualified}]}}";
        store(&registry, PODS, "default/p", &read(pod)).await;
        let eviction = TaintEviction { client: client(&registry), bound: Mutex::default() };
        let since: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        eviction.bound().pods.entry("n".to_owned()).or_default().insert("default/p".to_owned());
        eviction.bound().tolerating.insert("default/p".to_owned(), since);
        assert!(eviction.reconcile("n").await.is_err());
        assert_eq!(eviction.bound().tolerating.get("default/p"), Some(&since));
    }

    #[tokio::test]
    async fn a_pod_that_can_not_be_evicted_holds_up_no_other() {
        let registry = fixture::registry().await;
        let node = "{apiVersion: v1, kind: Node, metadata: {name: node-0, uid: u}, spec: {taints: [{key: k, effect: NoExecute}]}}";
        store(&registry, NODES, "node-0", &read(node)).await;
        let eviction = TaintEviction { client: client(&registry), bound: Mutex::default() };
        for (name, is_writable) in [("a", false), ("b", true)] {
            store_pod(&registry, name, "node-0", is_writable).await;
            eviction.bound().pods.entry("node-0".to_owned()).or_default().insert(format!("default/{name}"));
        }
        assert!(eviction.reconcile("node-0").await.is_err());
        let is_evicted = |pod: Option<Value>| pod.is_none_or(|pod| is_going(&pod));
        let [a, b] = ["default/a", "default/b"].map(|key| eviction.client.get(PODS, key));
        assert!(!is_evicted(a.await.expect("it is read")) && is_evicted(b.await.expect("it is read")));
    }
}
