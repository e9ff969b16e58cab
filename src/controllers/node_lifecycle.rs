//! Nodes: their taints follow their conditions, and the status of a silent node becomes unknown.
//!
//! A sign of life of a node is a renewed lease or a new heartbeat in its `Ready` condition. Simulated nodes send none
//! after their start, and none are expected.
//!
//! Source: `pkg/controller/nodelifecycle` of Kubernetes 1.37.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use memchr::memmem;

use super::client::{Client, Kind, NODES, PODS, left, read, written};
use super::first_error::FirstError;
use super::pods;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::kinds::pod_object::conditions::{self, Condition};
use crate::kinds::pod_object::simulated;
use crate::meta::{Status, time};
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::{Value, json};

const LEASES: Kind = Kind("coordination.k8s.io", "leases");
/// Where nodes have their leases.
const LEASE_NAMESPACE: &str = "kube-node-lease/";
/// How long a node may be silent: the defaults of `--node-monitor-grace-period` and, before its first sign of life,
/// `--node-startup-grace-period`.
const GRACE_S: i64 = 50;
const STARTUP_GRACE_S: i64 = 60;
/// The conditions that a kubelet reports.
const OF_KUBELET: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The conditions with the status for which a node gets a taint.
const TAINTS: [(&str, &str, &str); 6] = [
    ("Ready", "False", "node.kubernetes.io/not-ready"),
    ("Ready", "Unknown", "node.kubernetes.io/unreachable"),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
];
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

struct Lifecycle {
    client: Client,
    /// The last sign of life of each node.
    heard: Mutex<HashMap<String, LastHeartbeat>>,
}

/// The last sign of life of a node.
struct LastHeartbeat {
    /// When it arrived.
    at: Timestamp,
    /// The heartbeat of its `Ready` condition; `None` if it had no such condition.
    heartbeat: Option<String>,
    /// Whether it was followed by silence, and all pods of the node are marked as not ready because of that.
    has_doubted: bool,
}

/// A key is the name of a node.
impl Reconciler for Lifecycle {
    const TASK: &str = "looking after nodes";

    fn collections(&self) -> Vec<Collection> {
        vec![NODES.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if LEASES.is(&change.collection) {
            let renewed = change.stored.as_ref().and(change.key.strip_prefix(LEASE_NAMESPACE));
            let mut heard = self.heard();
            if let Some(heard) = renewed.and_then(|name| heard.get_mut(name)) {
                heard.at = self.client.now();
            }
            return Vec::new();
        }
        if !NODES.is(&change.collection) {
            return Vec::new();
        }
        match change.stored.as_ref().map(|stored| json::decode(&stored.bytes)) {
            Some(Ok(node)) => self.hear(&change.key, &node),
            Some(Err(_)) => {}
            None => {
                if self.heard().remove(&*change.key).is_some() {
                    self.tell_of(&change.key, &change.uid, "RemovingNode", "Removing", "from");
                }
            }
        }
        vec![change.key.to_string()]
    }

    async fn reconcile(&self, name: &str) -> Result<Progress, Status> {
        let Some(node) = self.client.get(NODES, name).await? else { return Ok(Progress::Done) };
        let now = self.client.now();
        let labelled = labelled(&node);
        let changed = tainted(labelled.as_ref().unwrap_or(&node), &written(now)).or(labelled);
        if let Some(changed) = changed {
            self.client.update(NODES, &changed).await?;
        }
        if simulated::is_simulated(&node) {
            return Ok(Progress::Done);
        }
        let ready = conditions::find(&node, conditions::READY);
        let grace_s = if ready.is_some() { GRACE_S } else { STARTUP_GRACE_S };
        let heard = self.heard().get(name).map_or(now, |heard| heard.at);
        if let Some(pause) = left(heard, grace_s, now) {
            return Ok(Progress::After(pause));
        }
        if let Some(status) = silent(&node, &time::format_seconds(now)) {
            self.client.write_status(NODES, &node, status).await?;
            if conditions::is_true(&node, conditions::READY) {
                let message = format!("Node {name} status is now: NodeNotReady");
                self.client.tell_normal(&node, "NodeNotReady", message);
                self.note_doubted(name, false);
            }
        }
        // A node that never reported has no pods that were ready.
        if ready.is_some_and(|ready| ready.str_at(&["reason"]) != NEVER_UPDATED) && !self.has_doubted(name) {
            self.doubt_pods_of(name).await?;
            self.note_doubted(name, true);
        }
        Ok(Progress::Waits)
    }
}

impl Lifecycle {
    fn heard(&self) -> MutexGuard<'_, HashMap<String, LastHeartbeat>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that a node was added, or that it is gone.
    fn tell_of(&self, name: &str, uid: &str, reason: &'static str, what: &str, where_: &str) {
        let metadata = object! { "name" => name, "uid" => uid };
        let node = object! { "apiVersion" => "v1", "kind" => "Node", "metadata" => metadata };
        self.client.tell_normal(&node, reason, format!("Node {name} event: {what} Node {name} {where_} Controller"));
    }

    /// Records a sign of life of a node, if it is new.
    fn hear(&self, name: &str, node: &Value) {
        let ready = conditions::find(node, conditions::READY);
        let heartbeat = ready.map(|ready| ready.str_at(&["lastHeartbeatTime"]).to_owned());
        let mut heard = self.heard();
        if !heard.contains_key(name) {
            self.tell_of(name, node.str_at(&["metadata", "uid"]), "RegisteredNode", "Registered", "in");
        }
        // A condition that this controller writes for a node that never reported is not a sign of life.
        let is_own = ready.is_some_and(|ready| ready.str_at(&["reason"]) == NEVER_UPDATED);
        let is_new = heard.get(name).is_none_or(|known| known.heartbeat != heartbeat && !is_own);
        if is_new {
            heard.insert(name.to_owned(), LastHeartbeat { at: self.client.now(), heartbeat, has_doubted: false });
        }
    }

    /// Whether the pods of a silent node are marked since its last sign of life.
    fn has_doubted(&self, name: &str) -> bool {
        self.heard().get(name).is_some_and(|heard| heard.has_doubted)
    }

    fn note_doubted(&self, name: &str, has_doubted: bool) {
        _ = self.heard().get_mut(name).map(|heard| heard.has_doubted = has_doubted);
    }

    /// Marks the pods of a silent node as not ready.
    async fn doubt_pods_of(&self, node: &str) -> Result<(), Status> {
        let mut failed = FirstError::default();
        let mark = format!("\"nodeName\":{}", json::encode_to_string(&Value::from(node)));
        let has_mark = |bytes: &[u8]| memmem::find(bytes, mark.as_bytes()).is_some();
        for stored in self.client.stored(PODS, "", |stored| has_mark(&stored.bytes)).await? {
            let pod = read(&stored)?;
            if pod.str_at(&["spec", "nodeName"]) != node || !pods::is_ready(&pod) {
                continue;
            }
            let mut doubted = pod.clone();
            let said = Condition { kind: conditions::READY, status: "False", reason: "", message: "" };
            conditions::set(&mut doubted, &said, &time::format_seconds(self.client.now()));
            let status = doubted.get("status").cloned().unwrap_or_default();
            if failed.keep(self.client.update_status(PODS, &pod, status).await).is_some() {
                self.client.tell_warning(&pod, "NodeNotReady", "Node is not ready".to_owned());
            }
        }
        failed.end()
    }
}

/// The reason of a condition that a node never had.
const NEVER_UPDATED: &str = "NodeStatusNeverUpdated";

/// The status of a node that has fallen silent: the conditions that its kubelet reports become unknown; `None` if they
/// already are.
fn silent(node: &Value, now: &str) -> Option<Value> {
    let mut status = node.get("status").cloned().unwrap_or_default();
    let made = node.at(&["metadata", "creationTimestamp"]).cloned().unwrap_or_default();
    let mut list = status.items_at(&["conditions"]).to_vec();
    let mut is_changed = false;
    for type_ in OF_KUBELET {
        let (reason, message, heartbeat) = match list.iter().find(|it| it.str_at(&["type"]) == type_) {
            Some(known) if known.str_at(&["status"]) == "Unknown" => continue,
            Some(known) => {
                let heartbeat = known.get("lastHeartbeatTime").cloned().unwrap_or_default();
                ("NodeStatusUnknown", "Kubelet stopped posting node status.", heartbeat)
            }
            None => (NEVER_UPDATED, "Kubelet never posted node status.", made.clone()),
        };
        let said = object! {
            "type" => type_,
            "status" => "Unknown",
            "lastHeartbeatTime" => heartbeat,
            "lastTransitionTime" => now,
            "reason" => reason,
            "message" => message,
        };
        is_changed = true;
        match list.iter_mut().find(|it| it.str_at(&["type"]) == type_) {
            Some(known) => *known = said,
            None => list.push(said),
        }
    }
    status.make_object().insert("conditions", Value::Array(list));
    is_changed.then_some(status)
}

/// The node with the older names of its labels for operating system and architecture; `None` if it already has them.
fn labelled(node: &Value) -> Option<Value> {
    let mut changed = node.clone();
    for name in ["os", "arch"] {
        let said = node.str_at(&["metadata", "labels", &format!("kubernetes.io/{name}")]);
        if !said.is_empty() {
            let labels = changed.make_object().entry("metadata").make_object().entry("labels").make_object();
            labels.insert(format!("beta.kubernetes.io/{name}"), Value::from(said));
        }
    }
    (changed != *node).then_some(changed)
}

/// The node with the taints that its conditions require; `None` if it already has them.
fn tainted(node: &Value, now: &Value) -> Option<Value> {
    let status_of = |type_: &str| conditions::find(node, type_).map(|condition| condition.str_at(&["status"]));
    let is_unschedulable = node.at(&["spec", "unschedulable"]).and_then(Value::as_bool) == Some(true);
    let asked: Vec<(&str, &str)> = TAINTS
        .iter()
        .filter(|(type_, status, _)| status_of(type_) == Some(status))
        .flat_map(|(type_, _, key)| {
            let of_ready = *type_ == "Ready";
            [Some((*key, "NoSchedule")), of_ready.then_some((*key, "NoExecute"))]
        })
        .flatten()
        .chain(is_unschedulable.then_some((UNSCHEDULABLE, "NoSchedule")))
        .collect();
    let is_ours = |taint: &Value| {
        let key = taint.str_at(&["key"]);
        let effect = taint.str_at(&["effect"]);
        let by_condition = TAINTS.iter().any(|(_, _, known)| *known == key);
        key == UNSCHEDULABLE && effect == "NoSchedule" || by_condition && ["NoSchedule", "NoExecute"].contains(&effect)
    };
    let before = node.items_at(&["spec", "taints"]);
    // A node that has not reported yet keeps the taints it was created with.
    let is_silent = status_of("Ready").is_none();
    let mut taints: Vec<Value> = before
        .iter()
        .filter(|taint| {
            let is_asked = asked.contains(&(taint.str_at(&["key"]), taint.str_at(&["effect"])));
            is_asked || !is_ours(taint) || is_silent && taint.str_at(&["key"]) != UNSCHEDULABLE
        })
        .cloned()
        .collect();
    for (key, effect) in asked {
        let has = |taint: &Value| (taint.str_at(&["key"]), taint.str_at(&["effect"])) == (key, effect);
        if !taints.iter().any(has) {
            // Toleration times count from the time when the taint was added.
            taints.push(object! { "key" => key, "effect" => effect, "timeAdded" => now.clone() });
        }
    }
    if taints == before {
        return None;
    }
    let mut changed = node.clone();
    let spec = changed.make_object().entry("spec").make_object();
    if taints.is_empty() {
        _ = spec.remove("taints");
    } else {
        _ = spec.insert("taints", Value::Array(taints));
    }
    Some(changed)
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let lifecycle = Lifecycle { client: context.client("node-controller"), heard: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), lifecycle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::fixture::{client, read, store, store_pod};
    use crate::registry::fixture;

    #[test]
    fn a_silent_node_is_unknown_as_far_as_its_kubelet_vouches_for_it() {
        let check = |conditions: &str| {
            let node = format!("metadata: {{creationTimestamp: made}}\nstatus: {{conditions: [{conditions}]}}");
            let status = silent(&read(&node), "now")?;
            let told = |it: &Value| {
                ["type", "status", "reason", "lastHeartbeatTime"].map(|field| it.str_at(&[field]).to_owned()).join(" ")
            };
            Some(status.items_at(&["conditions"]).iter().map(told).collect::<Vec<_>>())
        };
        let spoke =
            "{type: Ready, status: 'True', lastHeartbeatTime: then}, {type: NetworkUnavailable, status: 'False'}";
        let expected = [
            "Ready Unknown NodeStatusUnknown then",
            "NetworkUnavailable False  ",
            "MemoryPressure Unknown NodeStatusNeverUpdated made",
            "DiskPressure Unknown NodeStatusNeverUpdated made",
            "PIDPressure Unknown NodeStatusNeverUpdated made",
        ];
        assert_eq!(check(spoke).expect("it changes"), expected);
        let unknown = OF_KUBELET.map(|type_| format!("{{type: {type_}, status: Unknown}}")).join(", ");
        assert_eq!(check(&unknown), None);
    }

    #[test]
    fn labels_stand_under_their_earlier_names_too() {
        let check = |labels: &str, expected: Option<&str>| {
            let node = |labels: &str| read(&format!("metadata: {{labels: {{{labels}}}}}"));
            assert_eq!(labelled(&node(labels)), expected.map(node), "{labels}");
        };
        check("kubernetes.io/os: linux", Some("kubernetes.io/os: linux, beta.kubernetes.io/os: linux"));
        check("kubernetes.io/os: linux, beta.kubernetes.io/os: linux", None);
        check(
            "kubernetes.io/arch: a, beta.kubernetes.io/arch: b",
            Some("kubernetes.io/arch: a, beta.kubernetes.io/arch: a"),
        );
        check("beta.kubernetes.io/arch: b", None);
    }

    #[test]
    fn conditions_stand_in_taints() {
        let check = |node: &str, expected: Option<&[&str]>| {
            let node = tainted(&read(node), &Value::from("now"));
            let taints = node.map(|node| {
                let taints = node.items_at(&["spec", "taints"]).iter();
                taints.map(|it| format!("{}:{}", it.str_at(&["key"]), it.str_at(&["effect"]))).collect::<Vec<_>>()
            });
            assert_eq!(taints, expected.map(|texts| texts.iter().map(ToString::to_string).collect()));
        };
        let ready = |status: &str| format!("status: {{conditions: [{{type: Ready, status: '{status}'}}]}}");
        let made =
            "spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}, {key: k, effect: NoSchedule}]}\n";
        check(made, None);
        check(&format!("{made}{}", ready("True")), Some(&["k:NoSchedule"]));
        check(&ready("True"), None);
        let not_ready = ["node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"];
        check(&ready("False"), Some(&not_ready));
        let cordoned = format!("spec: {{unschedulable: true}}\n{}", ready("True"));
        check(&cordoned, Some(&["node.kubernetes.io/unschedulable:NoSchedule"]));
        let added = tainted(&read(&ready("False")), &Value::from("now")).expect("it changes");
        assert!(added.items_at(&["spec", "taints"]).iter().all(|taint| taint.str_at(&["timeAdded"]) == "now"));
    }

    #[tokio::test]
    async fn a_silent_node_is_written_first_and_all_of_its_pods_then() {
        let registry = fixture::registry().await;
        let node = "{apiVersion: v1, kind: Node, metadata: {name: node-0, uid: u}, status: {conditions: [{type: Ready, status: 'True'}]}}";
        store(&registry, NODES, "node-0", &read(node)).await;
        for (name, is_writable) in [("a", false), ("b", true)] {
            store_pod(&registry, name, "node-0", is_writable).await;
        }
        let lifecycle = Lifecycle { client: client(&registry), heard: Mutex::default() };
        let heard = LastHeartbeat { at: Timestamp::UNIX_EPOCH, heartbeat: None, has_doubted: false };
        lifecycle.heard().insert("node-0".to_owned(), heard);
        // One pod can't be written; it is tried again, with the node as it then is.
        for _ in 0..2 {
            assert!(lifecycle.reconcile("node-0").await.is_err());
            let node = lifecycle.client.get(NODES, "node-0").await.expect("it is read").expect("it is there");
            assert_eq!(conditions::find(&node, conditions::READY).map(|it| it.str_at(&["status"])), Some("Unknown"));
            let is_ready = async |key: &str| {
                lifecycle.client.get(PODS, key).await.expect("it is read").is_some_and(|pod| pods::is_ready(&pod))
            };
            assert_eq!([is_ready("default/a").await, is_ready("default/b").await], [true, false]);
        }
        store_pod(&registry, "a", "node-0", true).await;
        assert_eq!(lifecycle.reconcile("node-0").await.ok(), Some(Progress::Waits));
        assert!(lifecycle.has_doubted("node-0"));
    }
}
