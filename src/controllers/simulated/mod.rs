//! Simulated nodes without machines: they are ready, and so are the pods bound to them. No image and no command is run.
//!
//! They and the pods on them go through the stages from files ([`stages`]); a pod that fits none takes the default
//! course, which its annotations can change ([`mod@pod`]). Stages of other kinds are followed, too ([`others`]).
//!
//! A node with kwok's annotation is simulated, and so are those of `--simulate-nodes`, which are created at the start.
//! Nothing is renewed while nothing happens: such nodes have no leases, and no heartbeats are expected of them.

mod addresses;
mod node_conditions;
mod node;
mod plan;
mod pod;
mod stages;
mod query;
mod template;
mod follow;
mod others;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memchr::memmem;

use self::addresses::Addresses;
use self::follow::Followed;
use self::node::AddressBlock;
use self::pod::Step;
use self::template::TemplateContext;
use super::client::{Client, NODES, PODS, written};
use super::first_error::FirstError;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::kinds::pod_object::simulated;
use crate::meta::Status;
use crate::store::{ChangeEvent, Collection};
use crate::value::{Value, json};

pub use self::plan::{NodePlan, PlanError};
pub use self::stages::{Stage, StageError};

/// A text that the bytes of every bound pod contain.
const BOUND: &[u8] = b"\"nodeName\":\"";
/// How many pods a node has room for, by default.
const PODS_MAX: i64 = 110;

struct Simulated {
    client: Client,
    plan: NodePlan,
    nodes: Mutex<Nodes>,
    stages_of_nodes: Followed,
    stages_of_pods: Followed,
}

#[derive(Default)]
struct Nodes {
    known: BTreeMap<String, SimulatedNode>,
    /// The nodes of the plan that were created: if one is deleted, it is not created again.
    made: BTreeSet<String>,
    next: u32,
    /// The node and the address of each pod.
    pods: HashMap<String, (String, Ipv4Addr)>,
}

struct SimulatedNode {
    block: AddressBlock,
    used: BTreeSet<Ipv4Addr>,
    /// Whether the pods that were bound to it before it was known are all begun.
    has_begun: bool,
}

impl Simulated {
    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release_pod(&self, key: &str) {
        self.nodes().release(key);
        self.stages_of_pods.release(key);
    }

    fn pods_max(&self) -> i64 {
        let pods = self.plan.capacity.iter().find(|(name, _)| name == "pods");
        pods.and_then(|(_, amount)| amount.parse().ok()).unwrap_or(PODS_MAX)
    }

    /// Creates a node of the plan, or makes an existing one ready.
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
        let (has_begun, block) = {
            let mut nodes = self.nodes();
            nodes.made.insert(name.to_owned());
            let block = nodes.block_of(name, self.pods_max());
            (nodes.known.get(name).is_some_and(|node| node.has_begun), block)
        };
        let status = node::status_of(&node, &self.plan.capacity, &block, &now);
        self.client.update_status(NODES, &node, status).await?;
        let begun = if has_begun { Ok(()) } else { self.begin_pods_of(name).await };
        let addresses = Addresses { host: block.node, pod: block.node };
        let progress = self.follow(&self.stages_of_nodes, name, &node, addresses).await?.unwrap_or(Progress::Done);
        begun.map(|()| progress)
    }

    /// Moves a node or a pod through its stages; `None` if it is in none.
    async fn follow(
        &self,
        followed: &Followed,
        key: &str,
        object: &Value,
        addresses: Addresses,
    ) -> Result<Option<Progress>, Status> {
        let context = TemplateContext { now: self.client.now(), addresses: Some(addresses) };
        followed.follow(&self.client, key, object, &context).await
    }

    /// Handles the pods that were bound to a node before it was known.
    async fn begin_pods_of(&self, node: &str) -> Result<(), Status> {
        let mark = format!("\"nodeName\":{}", json::encode_to_string(&Value::from(node)));
        let mark = mark.as_bytes();
        let has_mark = |bytes: &[u8]| memmem::find(bytes, mark).is_some();
        let mut failed = FirstError::default();
        for pod in self.client.stored(PODS, "", |stored| has_mark(&stored.bytes)).await? {
            failed.keep(self.reconcile_pod(&pod.key).await);
        }
        failed.end()?;
        _ = self.nodes().known.get_mut(node).map(|node| node.has_begun = true);
        Ok(())
    }

    async fn reconcile_pod(&self, key: &str) -> Result<Progress, Status> {
        let Some(pod) = self.client.get(PODS, key).await? else {
            self.release_pod(key);
            return Ok(Progress::Done);
        };
        let known = pod.str_at(&["status", "podIP"]).parse().ok();
        let Some(addresses) = self.nodes().place(key, pod.str_at(&["spec", "nodeName"]), known) else {
            return Ok(Progress::Done);
        };
        if let Some(progress) = self.follow(&self.stages_of_pods, key, &pod, addresses).await? {
            return Ok(progress);
        }
        match pod::next(&pod, addresses, self.client.now()) {
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

impl Nodes {
    /// The addresses of a node, which is known from now on.
    fn block_of(&mut self, name: &str, pods_max: i64) -> AddressBlock {
        if let Some(node) = self.known.get(name) {
            return node.block.clone();
        }
        let block = AddressBlock::of(self.next, pods_max);
        self.next += 1;
        self.known
            .insert(name.to_owned(), SimulatedNode { block: block.clone(), used: BTreeSet::new(), has_begun: false });
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

    fn forget(&self) {
        self.stages_of_nodes.begin_anew();
        self.stages_of_pods.begin_anew();
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if NODES.is(&change.collection) {
            if change.stored.is_none() {
                self.nodes().known.remove(&*change.key);
                self.stages_of_nodes.release(&change.key);
            }
            return vec![change.key.to_string()];
        }
        if !PODS.is(&change.collection) {
            return Vec::new();
        }
        let is_bound = |bytes: &[u8]| memmem::find(bytes, BOUND).is_some();
        match &change.stored {
            Some(stored) if !is_bound(&stored.bytes) => Vec::new(),
            Some(_) => vec![change.key.to_string()],
            None => {
                self.release_pod(&change.key);
                Vec::new()
            }
        }
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        if key.contains('/') { self.reconcile_pod(key).await } else { self.reconcile_node(key).await }
    }
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let client = context.client("kubelet");
    let (of_pods, rest): (Vec<_>, Vec<_>) =
        context.nodes.stages.iter().cloned().partition(|stage| stage.of.is_core("Pod"));
    let (of_nodes, others) = rest.into_iter().partition(|stage| stage.of.is_core("Node"));
    let simulated = Simulated {
        client: client.clone(),
        plan: context.nodes.clone(),
        nodes: Mutex::default(),
        stages_of_nodes: Followed::new(of_nodes, client.now()),
        stages_of_pods: Followed::new(of_pods, client.now()),
    };
    let run = super::reconcile::run(Arc::clone(&context.registry), simulated);
    let follow = others::run(Arc::clone(&context.registry), client, others);
    Box::pin(async {
        tokio::join!(run, follow);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
