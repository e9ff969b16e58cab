//! The stored pods and volumes, as the node authorizer keeps them in memory.
//!
//! A request of a node takes snapshots of the store, which are only a few pointers, and reads what has changed; without
//! nodes nothing is read, and where memory does not hold it, everybody else is served.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use async_trait::async_trait;
use futures_util::future::try_join_all;

use super::policy::{each_change, each_object, state_of};
use super::store_failed;
use crate::auth::node::{Edges, Graph, NodeRules, node_of};
use crate::auth::{Attributes, Authorizer, Decision, Rules, UserInfo};
use crate::memory::{Growth, Memory, Portion};
use crate::meta::Status;
use crate::meta::minor::Minor;
use crate::store::{At, Collection, Snapshot, SnapshotError, Storage, Stored};
use crate::value::json;
use crate::work;

/// The resources that link to nodes.
const SOURCES: [(&str, &str); 5] = [
    ("", "pods"),
    ("", "persistentvolumes"),
    ("storage.k8s.io", "volumeattachments"),
    ("resource.k8s.io", "resourceslices"),
    ("certificates.k8s.io", "podcertificaterequests"),
];
/// The error about the rules of a node.
const RULES_UNKNOWN: &str = "node authorizer does not support user rule resolution";

/// Authorizes nodes by what is in a database; what it does not allow, other authorizers may.
pub struct StoredNodes {
    storage: Storage,
    collections: [Collection; SOURCES.len()],
    rules: NodeRules,
    /// The state of the store as of the last request.
    newest: RwLock<Arc<[Snapshot]>>,
    /// Held while the newest state is read.
    refreshing: tokio::sync::Mutex<()>,
    seen: RwLock<SourceSnapshots>,
    /// Held while changes are taken in: other nodes wait for it without a thread.
    taking_in: tokio::sync::Mutex<()>,
}

/// What was read: one snapshot for each source, none before the first time.
struct SourceSnapshots {
    snapshots: Arc<[Snapshot]>,
    graph: Graph,
    /// The memory of the graph.
    counted: Portion,
    /// The objects that it has no memory for, and how much they would take. Nodes may not read what they need.
    left_out: HashMap<(&'static str, Box<str>), usize>,
}

impl StoredNodes {
    pub fn new(storage: Storage, minor: Minor, memory: &Memory) -> Self {
        StoredNodes {
            storage,
            collections: SOURCES.map(|(group, plural)| Collection::new(group, plural)),
            rules: NodeRules::of(minor),
            newest: RwLock::default(),
            refreshing: tokio::sync::Mutex::default(),
            seen: RwLock::new(SourceSnapshots::within(memory)),
            taking_in: tokio::sync::Mutex::default(),
        }
    }

    fn newest(&self) -> Arc<[Snapshot]> {
        Arc::clone(&self.newest.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn has_seen(&self, newest: &[Snapshot]) -> bool {
        are_same(&self.seen().snapshots, newest)
    }

    /// Takes in what changed up to the state of [`Self::newest`]. All nodes wait for it, so it is not ended with the
    /// request that does it.
    async fn take_in(&self) {
        if self.has_seen(&self.newest()) {
            return;
        }
        let _taking_in = self.taking_in.lock().await;
        let newest = self.newest();
        if self.has_seen(&newest) {
            return;
        }
        work::essential(|| {
            let (before, keys) = {
                let seen = self.seen();
                (Arc::clone(&seen.snapshots), seen.graph.keys().clone())
            };
            let take = |plural: &'static str, key: &str, stored: Option<&Stored>| {
                // An object that can't be decoded links to nothing.
                let object = stored.and_then(|stored| json::decode(&stored.bytes).ok());
                let edges = keys.edges(plural, object.as_ref());
                self.seen.write().unwrap_or_else(PoisonError::into_inner).set(plural, key, edges);
            };
            each_changed(&newest, &before, take);
            let fitting = self.seen().fitting();
            for (plural, key, bytes) in &fitting {
                if self.seen().has_room_for(*bytes) {
                    take(plural, key, object_of(&newest, plural, key));
                }
            }
            self.seen.write().unwrap_or_else(PoisonError::into_inner).snapshots = newest;
        });
    }

    fn seen(&self) -> RwLockReadGuard<'_, SourceSnapshots> {
        self.seen.read().unwrap_or_else(PoisonError::into_inner)
    }

    async fn snapshots(&self) -> Result<Arc<[Snapshot]>, Status> {
        let snapshots = try_join_all(self.collections.iter().map(async |collection| {
            let snapshot = self.storage.snapshot(collection, At::Newest).await;
            snapshot.map_err(|error| match error {
                SnapshotError::Store(error) => store_failed(collection, "get", error),
                SnapshotError::Expired { .. } => Status::internal_error("what nodes need can't be read"),
            })
        }));
        Ok(snapshots.await?.into())
    }

    /// Reads the state of the store for a request of a node.
    async fn read_newest(&self) -> Result<(), Status> {
        if are_same(&self.newest(), &self.snapshots().await?) {
            return Ok(());
        }
        let _refreshing = self.refreshing.lock().await;
        // Read while the lock is held: they are not older than what was noted.
        let snapshots = self.snapshots().await?;
        *self.newest.write().unwrap_or_else(PoisonError::into_inner) = snapshots;
        Ok(())
    }
}

fn are_same(some: &[Snapshot], others: &[Snapshot]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(some, other)| some.is_same(other))
}

/// Each object that changed between two states, with its plural and its key; `None` if it is gone.
fn each_changed(now: &[Snapshot], before: &[Snapshot], takes: impl Fn(&'static str, &str, Option<&Stored>)) {
    for (at, (now, (_, plural))) in now.iter().zip(SOURCES).enumerate() {
        let takes = |key: &str, stored: Option<&Stored>| takes(plural, key, stored);
        match before.get(at) {
            Some(before) if before.is_same(now) => {}
            Some(before) => each_change(now, before, takes),
            None => each_object(now, takes),
        }
    }
}

/// The object of `plural` under `key`.
fn object_of<'s>(snapshots: &'s [Snapshot], plural: &str, key: &str) -> Option<&'s Stored> {
    let (snapshot, _) = snapshots.iter().zip(SOURCES).find(|(_, (_, known))| *known == plural)?;
    state_of(snapshot, key)
}

impl SourceSnapshots {
    fn within(memory: &Memory) -> Self {
        let counted = memory.for_nodes();
        SourceSnapshots { snapshots: Arc::default(), graph: Graph::default(), counted, left_out: HashMap::new() }
    }

    /// Records what an object contributes, if there is memory for it.
    fn set(&mut self, plural: &'static str, key: &str, edges: Edges) {
        let growth = Growth { bytes_before: self.graph.bytes_of(plural, key), bytes: edges.bytes(key) };
        let edges = if self.counted.check(&growth).is_ok() {
            self.left_out.remove(&(plural, Box::from(key)));
            edges
        } else {
            if self.left_out.is_empty() {
                tracing::warn!(plural, key, "nodes may not read what this object refers to: there is no memory for it");
            }
            self.left_out.insert((plural, Box::from(key)), growth.bytes);
            Edges::default()
        };
        self.graph.set(plural, key, edges);
        self.counted.resize(self.graph.bytes());
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        self.counted.check(&Growth { bytes_before: 0, bytes }).is_ok()
    }

    /// Those of the objects without memory for each of which there is memory again, and how much they take.
    fn fitting(&self) -> Vec<(&'static str, Box<str>, usize)> {
        let fitting = self.left_out.iter().filter(|(_, bytes)| self.has_room_for(**bytes));
        fitting.map(|((plural, key), bytes)| (*plural, key.clone(), *bytes)).collect()
    }
}

#[async_trait]
impl Authorizer for StoredNodes {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        if node_of(user).is_none() {
            return Decision::NO_OPINION;
        }
        if let Err(status) = self.read_newest().await {
            return Decision { error: status.message, ..Decision::NO_OPINION };
        }
        self.take_in().await;
        let seen = self.seen();
        let decided = self.rules.decide(user, attributes, &seen.graph);
        decided.map_or_else(|why| Decision::no_opinion(why.to_string()), |()| Decision::ALLOW)
    }

    fn rules_for(&self, user: &UserInfo, _: &str) -> Rules {
        match node_of(user) {
            Some(_) => Rules { incomplete: true, error: RULES_UNKNOWN.to_owned(), ..Rules::default() },
            None => Rules::default(),
        }
    }

    /// What nodes need is only read for their requests.
    async fn refresh(&self) -> Result<(), Status> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::auth::ResourceAttributes;
    use crate::object;
    use crate::registry::fixture;
    use crate::store::{Encoded, Op, Write};
    use crate::value::Value;
    use crate::work::{Ended, Meter, Oversee};

    /// The work is ended as soon as it may be.
    struct Impatient;

    impl Oversee for Impatient {
        fn look(&mut self) -> Result<(), Ended> {
            Err(Ended::Deadline)
        }
    }

    fn may_read(name: &str) -> Attributes<'_> {
        let of =
            ResourceAttributes { verb: "get", version: "v1", resource: "secrets", ..ResourceAttributes::default() };
        Attributes::Resource(ResourceAttributes { namespace: "default", name, ..of })
    }

    #[tokio::test]
    async fn a_request_that_is_ended_leaves_no_node_more_than_its_pods() {
        let registry = fixture::registry().await;
        let nodes = StoredNodes::new(registry.storage.clone(), Minor::NEWEST, &registry.memory);
        let node = UserInfo::authenticated("system:node:n".to_owned(), vec!["system:nodes".to_owned()]);
        let secrets = (0..5_000).map(|at| object! { "name" => format!("s{at}") }).collect::<Vec<Value>>();
        let pod = object! {
            "apiVersion" => "v1", "kind" => "Pod",
            "metadata" => object! { "namespace" => "default", "name" => "p" },
            "spec" => object! { "nodeName" => "n", "imagePullSecrets" => secrets },
        };
        let pods = Collection::new("", "pods");
        fixture::store(&nodes.storage, &pods, ("default/p", "u"), Encoded::of(&pod)).await;
        nodes.read_newest().await.expect("the store works");
        let attributes = may_read("s4999");
        let mut deciding = pin!(nodes.authorize(&node, &attributes));
        let polled = Meter::new(Impatient).run(|| deciding.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        let decided = polled.ok().map(|polled| matches!(polled, Poll::Ready(decision) if decision == Decision::ALLOW));
        assert_eq!(decided, Some(true), "it is not ended");
        let delete = Write { collection: pods, key: "default/p".into(), op: Op::Delete, guards: Vec::new() };
        nodes.storage.write(delete).await.expect("it is written");
        nodes.read_newest().await.expect("the store works");
        assert_ne!(nodes.authorize(&node, &may_read("s4999")).await, Decision::ALLOW);
    }

    #[tokio::test]
    async fn what_pods_refer_to_beyond_the_memory_for_it_is_read_once_others_are_gone() {
        const REFERENCES: usize = 10_000;
        let registry = fixture::registry().await;
        let memory = Memory::new(32 << 20);
        let nodes = StoredNodes::new(registry.storage.clone(), Minor::NEWEST, &memory);
        let node = UserInfo::authenticated("system:node:n".to_owned(), vec!["system:nodes".to_owned()]);
        let pods = Collection::new("", "pods");
        let pod = |name: &str, references: usize| {
            let secrets = (0..references).map(|at| object! { "name" => format!("{name}{at}") }).collect::<Vec<Value>>();
            object! {
                "apiVersion" => "v1", "kind" => "Pod",
                "metadata" => object! { "namespace" => "default", "name" => name },
                "spec" => object! { "nodeName" => "n", "imagePullSecrets" => secrets },
            }
        };
        for name in ["a", "b", "c", "d", "e"] {
            let key = format!("default/{name}");
            fixture::store(&nodes.storage, &pods, (&key, name), Encoded::of(&pod(name, REFERENCES))).await;
        }
        fixture::store(&nodes.storage, &pods, ("default/small", "s"), Encoded::of(&pod("small", 3))).await;
        let reads = async |name: &str| nodes.authorize(&node, &may_read(name)).await == Decision::ALLOW;
        for (name, expected) in [("a9999", true), ("c9999", true), ("d9999", false), ("e0", false), ("small2", true)] {
            assert_eq!(reads(name).await, expected, "{name}");
        }
        let delete = Write { collection: pods, key: "default/b".into(), op: Op::Delete, guards: Vec::new() };
        nodes.storage.write(delete).await.expect("it is written");
        let (fourth, fifth) = (reads("d9999").await, reads("e9999").await);
        assert!(fourth != fifth, "one of them has room now");
        assert!(!reads("b9999").await && reads("a9999").await);
    }
}
