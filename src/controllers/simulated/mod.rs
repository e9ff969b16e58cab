//! Nodes that nothing is behind: they are ready, and so is what is bound to them. No image and no command is run.
//!
//! A pod on one goes through the stages that files say ([`stages`]); where it fits none, it goes the usual way, which its annotations
//! change ([`stage`]).
//!
//! Simulated is a node with kwok's annotation, and those of `--simulate-nodes`, which are made at the start. Nothing is
//! renewed while nothing happens: such nodes have no leases, and nobody judges them by the time of their last word.

mod node;
mod plan;
mod stage;
mod stages;
mod query;
mod template;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use self::node::Block;
use self::stage::{Addresses, Step};
use self::stages::{Deed, Told};
use self::template::Context;
use super::client::{Client, NODES, PODS, written};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{Means, Running};
use crate::kinds::pod_object::simulated;
use crate::meta::Status;
use crate::store::{Collection, Entry};
use crate::value::{Value, json};

pub use self::plan::{NodePlan, PlanError};
pub use self::stages::{Stage, StageError};

/// What every bound pod's bytes contain.
const BOUND: &[u8] = b"\"nodeName\":\"";
/// How many pods a node has room for, where it does not say so.
const PODS_MAX: i64 = 110;

struct Simulated {
    client: Client,
    plan: NodePlan,
    nodes: Mutex<Nodes>,
}

#[derive(Default)]
struct Nodes {
    known: BTreeMap<String, Node>,
    /// Those of the plan that were made: one that somebody deletes stays away.
    made: BTreeSet<String>,
    next: u32,
    /// The node and the address of each pod.
    pods: HashMap<String, (String, Ipv4Addr)>,
    /// The stage that each pod is in, if it is in one.
    stays: HashMap<String, Stay>,
}

/// A pod in a stage.
#[derive(Clone, Copy)]
struct Stay {
    stage: usize,
    since: Timestamp,
}

struct Node {
    block: Block,
    used: BTreeSet<Ipv4Addr>,
}

impl Simulated {
    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pods_max(&self) -> i64 {
        let pods = self.plan.capacity.iter().find(|(name, _)| name == "pods");
        pods.and_then(|(_, amount)| amount.parse().ok()).unwrap_or(PODS_MAX)
    }

    /// Makes a node of the plan, or has one that is there say that it is ready.
    async fn reconcile_node(&self, name: &str) -> Result<Progress, Status> {
        let now = written(self.client.now());
        let Some(node) = self.client.get(NODES, name).await? else {
            let is_new = self.plan.names().any(|planned| planned == name) && self.nodes().made.insert(name.to_owned());
            if is_new {
                let block = self.nodes().block_of(name, self.pods_max());
                self.client.create(NODES, &node::new(&self.plan, name, &block, &now)).await?;
            }
            return Ok(Progress::Done);
        };
        if !simulated::is_simulated(&node) {
            return Ok(Progress::Done);
        }
        let (is_first, block) = {
            let mut nodes = self.nodes();
            nodes.made.insert(name.to_owned());
            (!nodes.known.contains_key(name), nodes.block_of(name, self.pods_max()))
        };
        let status = node::status_of(&node, &self.plan.capacity, &block, &now);
        self.client.update_status(NODES, &node, status).await?;
        if is_first {
            self.begin_pods_of(name).await?;
        }
        Ok(Progress::Done)
    }

    /// Sees to the pods that were bound to a node before it was known.
    async fn begin_pods_of(&self, node: &str) -> Result<(), Status> {
        let mark = format!("\"nodeName\":{}", json::encode_to_string(&Value::from(node)));
        let mark = mark.as_bytes();
        let has_mark = |bytes: &[u8]| bytes.windows(mark.len()).any(|window| window == mark);
        for pod in self.client.list(PODS, "", |stored| has_mark(&stored.bytes)).await? {
            self.reconcile_pod(&super::client::key_of(&pod)).await?;
        }
        Ok(())
    }

    async fn reconcile_pod(&self, key: &str) -> Result<Progress, Status> {
        let Some(pod) = self.client.get(PODS, key).await? else {
            self.nodes().release(key);
            return Ok(Progress::Done);
        };
        let known = pod.str_at(&["status", "podIP"]).parse().ok();
        let Some(addresses) = self.nodes().place(key, pod.str_at(&["spec", "nodeName"]), known) else {
            return Ok(Progress::Done);
        };
        if let Some(progress) = self.follow_stage(key, &pod, addresses).await? {
            return Ok(progress);
        }
        match stage::next(&pod, addresses, self.client.now()) {
            Step::Nothing => Ok(Progress::Done),
            Step::After(pause) => Ok(Progress::After(pause)),
            Step::Delete => self.client.delete(PODS, &pod, Some(0)).await.map(|()| Progress::Done),
            Step::Status(status) => {
                self.client.update_status(PODS, &pod, status).await?;
                // What follows at once is not waited for: the change brings it up.
                Ok(Progress::Done)
            }
        }
    }
}

impl Simulated {
    /// Has a pod stay in the stage that it is in, or go on from it; `None` where it is in none.
    async fn follow_stage(&self, key: &str, pod: &Value, at: Addresses) -> Result<Option<Progress>, Status> {
        let (stages, now) = (&self.plan.stages, self.client.now());
        if stages.is_empty() {
            return Ok(None);
        }
        let Some(stay) = self.nodes().stay(key, stages, pod, now) else { return Ok(None) };
        let stage = &stages[stay.stage];
        let spent = Duration::try_from(now.duration_since(stay.since)).unwrap_or_default();
        if let Some(left) = stage.delay(pod, now).checked_sub(spent).filter(|left| !left.is_zero()) {
            return Ok(Some(Progress::After(left)));
        }
        self.nodes().stays.remove(key);
        let context = Context { now, node: at.host, pod: at.pod };
        match stage.deeds(pod, &context) {
            Ok(deeds) => {
                for deed in deeds {
                    self.carry_out(deed, pod).await?;
                }
            }
            Err(why) => tracing::warn!(key, "{why}"),
        }
        // What it is in next is told by the change.
        Ok(Some(Progress::Done))
    }

    async fn carry_out(&self, deed: Deed, pod: &Value) -> Result<(), Status> {
        match deed {
            Deed::Tell(Told { is_warning, reason, message }) => {
                let type_ = if is_warning { "Warning" } else { "Normal" };
                self.client.tell(pod, type_, reason, message);
                Ok(())
            }
            Deed::Patch(part, type_, bytes) => self.client.patch(PODS, part, pod, (type_, bytes)).await.map(drop),
            Deed::Delete => self.client.delete(PODS, pod, Some(0)).await,
        }
    }
}

impl Nodes {
    /// The stage that a pod is in, and since when: the one that it was in, as long as it fits that.
    fn stay(&mut self, key: &str, stages: &[Stage], pod: &Value, now: Timestamp) -> Option<Stay> {
        let known = self.stays.get(key).copied().filter(|stay| stages[stay.stage].fits(pod));
        let stay = known.or_else(|| stages::stage_of(stages, pod).map(|stage| Stay { stage, since: now }));
        match stay {
            Some(stay) => _ = self.stays.insert(key.to_owned(), stay),
            None => _ = self.stays.remove(key),
        }
        stay
    }

    /// The addresses of a node, which is known from now on.
    fn block_of(&mut self, name: &str, pods_max: i64) -> Block {
        if let Some(node) = self.known.get(name) {
            return node.block.clone();
        }
        let block = Block::of(self.next, pods_max);
        self.next += 1;
        self.known.insert(name.to_owned(), Node { block: block.clone(), used: BTreeSet::new() });
        block
    }

    /// The addresses of a pod on a simulated node; it keeps those that it has.
    fn place(&mut self, key: &str, node: &str, known: Option<Ipv4Addr>) -> Option<Addresses> {
        let found = self.known.get_mut(node)?;
        let host = found.block.node;
        if let Some((_, pod)) = self.pods.get(key).filter(|(at, _)| at == node) {
            return Some(Addresses { host, pod: *pod });
        }
        // More pods than addresses share the first.
        let free = || found.block.pods().find(|address| !found.used.contains(address));
        let pod = known.filter(|known| *known != host).or_else(free).or_else(|| found.block.pods().next())?;
        found.used.insert(pod);
        self.pods.insert(key.to_owned(), (node.to_owned(), pod));
        Some(Addresses { host, pod })
    }

    fn release(&mut self, key: &str) {
        self.stays.remove(key);
        if let Some((node, address)) = self.pods.remove(key)
            && let Some(node) = self.known.get_mut(&node)
        {
            node.used.remove(&address);
        }
    }
}

/// A key is the name of a node, or `namespace/name` of a pod.
impl Reconciler for Simulated {
    const TASK: &str = "simulating nodes";
    const AT_ONCE: usize = 64;

    fn collections(&self) -> Vec<Collection> {
        vec![NODES.collection(), PODS.collection()]
    }

    fn first_keys(&self) -> Vec<String> {
        self.plan.names().collect()
    }

    fn note(&self, change: &Entry) -> Vec<String> {
        if NODES.is(&change.collection) {
            if change.stored.is_none() {
                self.nodes().known.remove(&*change.key);
            }
            return vec![change.key.to_string()];
        }
        if !PODS.is(&change.collection) {
            return Vec::new();
        }
        let is_bound = |bytes: &[u8]| bytes.windows(BOUND.len()).any(|window| window == BOUND);
        match &change.stored {
            Some(stored) if !is_bound(&stored.bytes) => Vec::new(),
            Some(_) => vec![change.key.to_string()],
            None => {
                self.nodes().release(&change.key);
                Vec::new()
            }
        }
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        if key.contains('/') { self.reconcile_pod(key).await } else { self.reconcile_node(key).await }
    }
}

/// Starts it.
pub(super) fn start(means: &Means) -> Running {
    let client = means.client("kubelet");
    let simulated = Simulated { client, plan: means.nodes.clone(), nodes: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&means.registry), simulated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_stays_in_its_stage_as_long_as_it_fits() {
        let stage = |name: &str, phase: &str| {
            let text = format!(
                "{{apiVersion: kwok.x-k8s.io/v1alpha1, kind: Stage, metadata: {{name: {name}}}, spec: {{resourceRef: {{kind: Pod}}, \
                 selector: {{matchExpressions: [{{key: .status.phase, operator: In, values: [{phase}]}}]}}}}}}"
            );
            let object = crate::value::yaml::decode(text.as_bytes()).expect("YAML");
            Stage::read(&object).expect("it is understood").expect("it is a stage")
        };
        let stages = [stage("a", "Pending"), stage("b", "Running")];
        let mut nodes = Nodes::default();
        let mut stay = |phase: &str, second: i64| {
            let pod = crate::object! { "status" => crate::object! { "phase" => phase } };
            let stay = nodes.stay("d/p", &stages, &pod, Timestamp::from_second(second).expect("a time"));
            stay.map(|stay| (stay.stage, stay.since.as_second()))
        };
        assert_eq!([stay("Pending", 1), stay("Pending", 2)], [Some((0, 1)), Some((0, 1))]);
        assert_eq!([stay("Running", 3), stay("Failed", 4), stay("Running", 5)], [Some((1, 3)), None, Some((1, 5))]);
    }

    #[test]
    fn a_pod_has_an_address_of_its_node_until_it_is_gone() {
        let mut nodes = Nodes::default();
        nodes.block_of("n", 110);
        let mut place = |key: &str, known: Option<Ipv4Addr>| nodes.place(key, "n", known).map(|at| at.pod.to_string());
        assert_eq!(place("d/a", None).as_deref(), Some("10.64.0.2"));
        assert_eq!(place("d/b", None).as_deref(), Some("10.64.0.3"));
        assert_eq!(place("d/a", None).as_deref(), Some("10.64.0.2"));
        assert_eq!(place("d/c", Some(Ipv4Addr::new(10, 64, 0, 9))).as_deref(), Some("10.64.0.9"));
        nodes.release("d/a");
        assert_eq!(nodes.place("d/d", "n", None).map(|at| at.pod.to_string()).as_deref(), Some("10.64.0.2"));
        assert!(nodes.place("d/e", "elsewhere", None).is_none());
    }
}
