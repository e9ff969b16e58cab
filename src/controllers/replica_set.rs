//! ReplicaSets and ReplicationControllers: as many pods as they specify.
//!
//! Source: `pkg/controller/replicaset` of Kubernetes 1.37, which does both.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::client::{Client, Kind, PODS, int_at, is_going, sooner, written};
use super::conditions::{self, DesiredCondition};
use super::family::{self, Family};
use super::pod_control::{create_pods, delete_pods};
use super::pods::{self, Availability};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::ControllerContext;
use crate::meta::Status;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::Value;

/// How many pods are created or deleted at a time.
const BURST_MAX: usize = 500;

/// One of the two kinds.
pub(super) struct ReplicaSets {
    kind: Kind,
    client: Client,
    family: Family,
}

impl ReplicaSets {
    /// The controller of ReplicaSets.
    pub fn new(context: &ControllerContext) -> Self {
        let kind = Kind("apps", "replicasets");
        let client = context.client("replicaset-controller");
        ReplicaSets { kind, client, family: Family::new(kind, ("apps/v1", "ReplicaSet"), PODS, pods::without_programs) }
    }

    /// The controller of ReplicationControllers.
    pub fn of_replication_controllers(context: &ControllerContext) -> Self {
        let kind = Kind("", "replicationcontrollers");
        let client = context.client("replication-controller");
        ReplicaSets {
            kind,
            client,
            family: Family::new(kind, ("v1", "ReplicationController"), PODS, pods::without_programs),
        }
    }
}

impl Reconciler for ReplicaSets {
    const TASK: &str = "keeping replicas";

    fn collections(&self) -> Vec<Collection> {
        vec![self.kind.collection(), PODS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        self.family.note(change)
    }

    fn forget(&self) {
        self.family.forget();
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(owner) = self.client.get(self.kind, key).await? else { return Ok(Progress::Done) };
        let Some(selector) = family::selector(&owner) else { return Ok(Progress::Done) };
        let pods = self.family.claimed(&self.client, &owner, &selector).await?;
        let (wanted, now) = (plan(&owner, &pods), self.client.now());
        let failure = if is_going(&owner) { None } else { self.carry_out(&owner, &wanted).await.err() };
        let (status, again) = status_of(&owner, &pods, failure.as_ref().map(|why| (&wanted, why)), now);
        self.client.update_status(self.kind, &owner, status).await?;
        match (failure, again) {
            (Some(_), _) => Ok(Progress::Failed),
            (None, Some(pause)) => Ok(Progress::After(pause)),
            (None, None) => Ok(Progress::Done),
        }
    }
}

/// The plan for the pods.
#[derive(Debug, PartialEq)]
enum ReplicaPlan {
    Create(usize),
    Delete(Vec<Value>),
}

/// Compares the pods with what is wanted.
fn plan(owner: &Value, pods: &[Value]) -> ReplicaPlan {
    let wanted = usize::try_from(int_at(owner, &["spec", "replicas"])).unwrap_or_default();
    let mut active: Vec<Value> = pods.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
    if active.len() <= wanted {
        return ReplicaPlan::Create((wanted - active.len()).min(BURST_MAX));
    }
    let surplus = (active.len() - wanted).min(BURST_MAX);
    let mut on_node: HashMap<String, usize> = HashMap::new();
    for pod in &active {
        *on_node.entry(pod.str_at(&["spec", "nodeName"]).to_owned()).or_default() += 1;
    }
    pods::in_order_of_deletion(&mut active, |pod| {
        on_node.get(pod.str_at(&["spec", "nodeName"])).copied().unwrap_or_default()
    });
    active.truncate(surplus);
    ReplicaPlan::Delete(active)
}

/// The status, and the time after which it changes without any event. `failure` is the reason if the plan failed.
fn status_of(
    owner: &Value,
    pods: &[Value],
    failure: Option<(&ReplicaPlan, &Status)>,
    now: Timestamp,
) -> (Value, Option<Duration>) {
    let labels = owner.at(&["spec", "template", "metadata", "labels"]).and_then(Value::as_object);
    let is_labelled = |pod: &Value| {
        labels.is_none_or(|labels| {
            labels.iter().all(|(name, value)| pod.at(&["metadata", "labels", name]) == Some(value))
        })
    };
    let min_ready_s = int_at(owner, &["spec", "minReadySeconds"]);
    let (mut replicas, mut labelled, mut ready, mut available, mut again) = (0, 0, 0, 0, None);
    for pod in pods.iter().filter(|pod| pods::is_active(pod)) {
        replicas += 1;
        labelled += i64::from(is_labelled(pod));
        ready += i64::from(pods::is_ready(pod));
        match pods::availability(pod, min_ready_s, now) {
            Availability::Yes => available += 1,
            Availability::In(pause) => again = sooner(again, Some(pause)),
            Availability::No => {}
        }
    }
    let mut status = object! {
        "replicas" => replicas,
        "observedGeneration" => int_at(owner, &["metadata", "generation"]),
    };
    let fields = status.make_object();
    let counts = [("fullyLabeledReplicas", labelled), ("readyReplicas", ready), ("availableReplicas", available)];
    counts.into_iter().filter(|(_, count)| *count > 0).for_each(|(name, count)| _ = fields.insert(name, count.into()));
    if owner.str_at(&["kind"]) == "ReplicaSet" {
        let ending = pods.iter().filter(|pod| is_going(pod) && !pods::is_over(pod)).count();
        fields.insert("terminatingReplicas", Value::Int(ending as i64));
    }
    let mut conditions = conditions::of(owner).to_vec();
    match failure {
        Some((plan, why)) => {
            let reason = if matches!(plan, ReplicaPlan::Create(_)) { "FailedCreate" } else { "FailedDelete" };
            let said = DesiredCondition { type_: "ReplicaFailure", status: "True", reason, message: &why.message };
            // One that is there says enough.
            if conditions::find(&conditions, "ReplicaFailure").is_none() {
                conditions::set(&mut conditions, &said, &written(now));
            }
        }
        None => conditions::remove(&mut conditions, "ReplicaFailure"),
    }
    conditions::put(&mut status, conditions);
    (status, again)
}

impl ReplicaSets {
    /// Creates or deletes pods. Errors: that of the first pod that can't be created, after which no more are tried.
    async fn carry_out(&self, owner: &Value, plan: &ReplicaPlan) -> Result<(), Status> {
        match plan {
            ReplicaPlan::Create(count) => {
                let template = owner.at(&["spec", "template"]).cloned().unwrap_or_default();
                let pods = (0..*count).map(|_| pods::of_template(&template, owner, self.family.reference(owner)));
                create_pods(&self.client, &self.family, owner, pods).await
            }
            ReplicaPlan::Delete(pods) => delete_pods(&self.client, owner, pods).await,
        }
    }
}

/// Starts the controller of ReplicaSets.
pub(super) fn start(context: &ControllerContext) -> super::workload::Running {
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), ReplicaSets::new(context)))
}

/// Starts the controller of ReplicationControllers.
pub(super) fn start_replication(context: &ControllerContext) -> super::workload::Running {
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), ReplicaSets::of_replication_controllers(context)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    const NOW: &str = "2026-01-01T00:01:00Z";
    const READY: &str =
        "phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-01-01T00:00:50Z'}]";

    fn owner(spec: &str) -> Value {
        read(&format!(
            "kind: ReplicaSet\nmetadata: {{name: r, generation: 2}}\nspec: {{template: {{metadata: {{labels: {{a: b}}}}}}, {spec}}}"
        ))
    }

    fn pod(name: &str, status: &str) -> Value {
        read(&format!("metadata: {{name: {name}, labels: {{a: b}}}}\nspec: {{nodeName: here}}\nstatus: {{{status}}}"))
    }

    #[test]
    fn there_are_as_many_pods_as_are_wanted() {
        let pods = [pod("a", READY), pod("b", "phase: Pending"), pod("c", "phase: Failed")];
        let plan = |replicas: i64| plan(&owner(&format!("replicas: {replicas}")), &pods);
        assert_eq!(plan(4), ReplicaPlan::Create(2));
        assert_eq!(plan(2), ReplicaPlan::Create(0));
        assert_eq!(plan(1), ReplicaPlan::Delete(vec![pods[1].clone()]));
        assert_eq!(plan(1000), ReplicaPlan::Create(BURST_MAX));
    }

    #[test]
    fn the_status_counts_what_is_there() {
        let pods = [pod("a", READY), pod("b", "phase: Pending"), pod("c", "phase: Failed")];
        let now = NOW.parse().expect("a time");
        let (status, again) = status_of(&owner("replicas: 2, minReadySeconds: 15"), &pods, None, now);
        let expected =
            "{replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 1, observedGeneration: 2, terminatingReplicas: 0}";
        assert_eq!((status, again), (read(expected), Some(Duration::from_secs(5))));
        let failure = Status::plain(403, "no more");
        let (status, _) = status_of(&owner("replicas: 2"), &pods, Some((&ReplicaPlan::Create(1), &failure)), now);
        assert_eq!(status.at(&["availableReplicas"]), Some(&Value::Int(1)));
        let condition = &status.items_at(&["conditions"])[0];
        assert_eq!((condition.str_at(&["reason"]), condition.str_at(&["message"])), ("FailedCreate", "no more"));
    }
}
