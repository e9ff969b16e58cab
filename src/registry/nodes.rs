//! The stored pods and volumes, as the node authorizer keeps them in memory.
//!
//! A request of a node takes snapshots of the store, which are only a few pointers, and reads what has changed; without
//! nodes nothing is read, and where memory does not hold it, everybody else is served.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use async_trait::async_trait;
use futures_util::future::try_join_all;

use super::policy::{each_change, each_object, state_of};
use super::store_failed;
use crate::auth::node::{Edges, Graph, NodeRules, node_of};
use crate::auth::{Attributes, Authorizer, Decision, Rules, UserInfo};
use crate::memory::{Growth, Memory, Portion};
use crate::meta::Status;
use crate::meta::minor::Minor;
use crate::store::{At, Collection, HandOut, Revocable, Snapshot, SnapshotError, Storage, Stored, TakenBack};
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
    seen: RwLock<SourceSnapshots>,
    /// Held while changes are taken in: other nodes wait for it without a thread.
    taking_in: tokio::sync::Mutex<()>,
}

/// What was taken in.
struct SourceSnapshots {
    /// The state of each source that the graph is made of; empty before the first time.
    held: Vec<Revocable<Snapshot>>,
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
            seen: RwLock::new(SourceSnapshots::within(memory)),
            taking_in: tokio::sync::Mutex::default(),
        }
    }

    /// Takes in what has changed. All nodes wait for it, so it is not ended with the request that does it.
    async fn take_in(&self) -> Result<(), Status> {
        let newest = self.snapshots().await?;
        if self.seen().is_same(&newest) {
            return Ok(());
        }
        let _taking_in = self.taking_in.lock().await;
        // Read while the lock is held: they are not older than what was taken in.
        let newest = self.snapshots().await?;
        if self.seen().is_same(&newest) {
            return Ok(());
        }
        work::essential(|| {
            let before = self.seen().states();
            if before.is_none() {
                // What has changed since is not known any more.
                self.change().forget();
            }
            let keys = self.seen().graph.keys().clone();
            let take = |plural: &'static str, key: &str, stored: Option<&Stored>| {
                // An object that can't be decoded links to nothing.
                let object = stored.and_then(|stored| json::decode(&stored.bytes).ok());
                let edges = keys.edges(plural, object.as_ref());
                self.change().set(plural, key, edges);
            };
            each_changed(&newest, before.as_deref().unwrap_or_default(), take);
            let fitting = self.seen().fitting();
            for (plural, key, bytes) in &fitting {
                if self.seen().has_room_for(*bytes) {
                    take(plural, key, object_of(&newest, plural, key));
                }
            }
            let held = self.hand_out(newest);
            self.change().held = held;
        });
        Ok(())
    }

    /// Holds states until too much has changed since.
    fn hand_out(&self, states: Vec<Snapshot>) -> Vec<Revocable<Snapshot>> {
        let states = self.collections.iter().zip(states);
        let held = states.map(|(collection, state)| {
            let of = HandOut { collection, revision: state.revision(), bytes: None, user: None };
            self.storage.hand_out(&of, state)
        });
        held.collect()
    }

    fn change(&self) -> RwLockWriteGuard<'_, SourceSnapshots> {
        self.seen.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> RwLockReadGuard<'_, SourceSnapshots> {
        self.seen.read().unwrap_or_else(PoisonError::into_inner)
    }

    async fn snapshots(&self) -> Result<Vec<Snapshot>, Status> {
        try_join_all(self.collections.iter().map(async |collection| {
            let snapshot = self.storage.snapshot(collection, At::Newest).await;
            snapshot.map_err(|error| match error {
                SnapshotError::Store(error) => store_failed(collection, "get", error),
                SnapshotError::Expired { .. } => Status::internal_error("what nodes need can't be read"),
            })
        }))
        .await
    }
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
        SourceSnapshots { held: Vec::new(), graph: Graph::default(), counted, left_out: HashMap::new() }
    }

    /// The states that the graph is made of; `None` before the first time, and if one was taken back.
    fn states(&self) -> Option<Vec<Snapshot>> {
        let states: Result<Vec<_>, TakenBack> = self.held.iter().map(|held| held.with(|state| state.clone())).collect();
        states.ok().filter(|states| states.len() == SOURCES.len())
    }

    fn is_same(&self, newest: &[Snapshot]) -> bool {
        let mut same =
            self.held.iter().zip(newest).map(|(held, now)| held.with(|state| state.is_same(now)) == Ok(true));
        self.held.len() == newest.len() && same.all(|is_same| is_same)
    }

    /// Begins anew.
    fn forget(&mut self) {
        self.held.clear();
        self.graph.forget_objects();
        self.left_out.clear();
        self.counted.resize(0);
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
        if let Err(status) = self.take_in().await {
            return Decision { error: status.message, ..Decision::NO_OPINION };
        }
        let decide = || self.rules.decide(user, attributes, &self.seen().graph);
        let mut decided = decide();
        if decided.is_err() && self.taking_in.try_lock().is_err() {
            // Another request may be making all of it anew.
            drop(self.taking_in.lock().await);
            decided = decide();
        }
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
        nodes.snapshots().await.expect("the store works");
        let attributes = may_read("s4999");
        let mut deciding = pin!(nodes.authorize(&node, &attributes));
        let polled = Meter::new(Impatient).run(|| deciding.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        let decided = polled.ok().map(|polled| matches!(polled, Poll::Ready(decision) if decision == Decision::ALLOW));
        assert_eq!(decided, Some(true), "it is not ended");
        let delete = Write { collection: pods, key: "default/p".into(), op: Op::Delete, guards: Vec::new() };
        nodes.storage.write(delete).await.expect("it is written");
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
