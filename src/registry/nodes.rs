//! The stored pods and volumes, as the node authorizer keeps them in memory.
//!
//! A request of a node takes snapshots of the store, which are only a few pointers, and reads what has changed; without
//! nodes nothing is read, and where memory does not hold it, everybody else is served.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use futures_util::future::try_join_all;

use super::policy::{each_change, each_object};
use super::store_failed;
use crate::auth::node::{Edges, Graph, NodeRules, node_of};
use crate::auth::{Attributes, Authorizer, Decision, Rules, UserInfo};
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

/// The snapshots that were read, one for each source; empty before the first time.
#[derive(Default)]
struct SourceSnapshots {
    snapshots: Arc<[Snapshot]>,
    graph: Graph,
}

impl StoredNodes {
    pub fn new(storage: Storage, minor: Minor) -> Self {
        StoredNodes {
            storage,
            collections: SOURCES.map(|(group, plural)| Collection::new(group, plural)),
            rules: NodeRules::of(minor),
            newest: RwLock::default(),
            refreshing: tokio::sync::Mutex::default(),
            seen: RwLock::default(),
            taking_in: tokio::sync::Mutex::default(),
        }
    }

    fn newest(&self) -> Arc<[Snapshot]> {
        Arc::clone(&self.newest.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn has_seen(&self, newest: &[Snapshot]) -> bool {
        are_same(&self.seen.read().unwrap_or_else(PoisonError::into_inner).snapshots, newest)
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
            let before = Arc::clone(&self.seen.read().unwrap_or_else(PoisonError::into_inner).snapshots);
            let changes = changes(&newest, &before);
            let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
            changes.into_iter().for_each(|(plural, key, edges)| seen.graph.set(plural, key, edges));
            seen.snapshots = newest;
        });
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

/// The edges of each object that changed between two states, with its plural and its key.
fn changes(now: &[Snapshot], before: &[Snapshot]) -> Vec<(&'static str, String, Edges)> {
    let mut changes = Vec::new();
    for (at, (now, (_, plural))) in now.iter().zip(SOURCES).enumerate() {
        let takes = |key: &str, stored: Option<&Stored>| {
            // An object that can't be decoded links to nothing.
            let object = stored.and_then(|stored| json::decode(&stored.bytes).ok());
            changes.push((plural, key.to_owned(), Edges::of(plural, object.as_ref())));
        };
        match before.get(at) {
            Some(before) if before.is_same(now) => {}
            Some(before) => each_change(now, before, takes),
            None => each_object(now, takes),
        }
    }
    changes
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
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
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
        let nodes = StoredNodes::new(registry.storage.clone(), Minor::NEWEST);
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
}
