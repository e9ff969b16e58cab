//! Nodes: what their conditions say stands in their taints.
//!
//! DIFFERS: a node that says nothing any more stays as it is: nobody waits for its leases.
//!
//! Source: `pkg/controller/nodelifecycle` of Kubernetes 1.37.

use std::sync::Arc;

use super::client::{Client, NODES, written};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{Means, Running};
use crate::kinds::pod_object::conditions;
use crate::meta::Status;
use crate::object;
use crate::store::{Collection, Entry};
use crate::value::Value;

/// The status of a condition for which a node has a taint.
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
}

/// A key is the name of a node.
impl Reconciler for Lifecycle {
    const TASK: &str = "looking after nodes";

    fn collections(&self) -> Vec<Collection> {
        vec![NODES.collection()]
    }

    fn note(&self, change: &Entry) -> Vec<String> {
        if NODES.is(&change.collection) { vec![change.key.to_string()] } else { Vec::new() }
    }

    async fn reconcile(&self, name: &str) -> Result<Progress, Status> {
        let Some(node) = self.client.get(NODES, name).await? else { return Ok(Progress::Done) };
        if let Some(tainted) = tainted(&node, &written(self.client.now())) {
            self.client.update(NODES, &tainted).await?;
        }
        Ok(Progress::Done)
    }
}

/// The node with the taints that its conditions ask for; `None` where it has them.
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
    // A node that has said nothing yet keeps what it was made with.
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
            let mut taint = object! { "key" => key, "effect" => effect };
            // Who tolerates it for a while is counted from here.
            if effect == "NoExecute" || key == UNSCHEDULABLE {
                taint.make_object().insert("timeAdded", now.clone());
            }
            taints.push(taint);
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
pub(super) fn start(means: &Means) -> Running {
    let lifecycle = Lifecycle { client: means.client("node-controller") };
    Box::pin(super::reconcile::run(Arc::clone(&means.registry), lifecycle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
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
    }
}
