//! The stored pods and volumes, as the node authorizer keeps them in memory.
//!
//! Each request takes snapshots of the store, which are only a few pointers. Changes are read when a node sends a
//! request; without nodes nothing is read.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use async_trait::async_trait;
use futures_util::future::try_join_all;

use super::policy::{each_change, each_object};
use super::store_failed;
use crate::auth::node::{Graph, NoOpinion, NodeRules, node_of};
use crate::auth::{Attributes, Authorizer, Decision, Rules, UserInfo};
use crate::meta::Status;
use crate::meta::minor::Minor;
use crate::store::{At, Collection, Snapshot, SnapshotError, Storage, Stored};
use crate::value::json;

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
    /// Held while changes are read.
    refreshing: tokio::sync::Mutex<()>,
    seen: Mutex<SourceSnapshots>,
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
            seen: Mutex::default(),
        }
    }

    fn newest(&self) -> Arc<[Snapshot]> {
        Arc::clone(&self.newest.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a node may do it, by what is stored.
    fn decide(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Result<(), NoOpinion> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.take_in(self.newest());
        self.rules.decide(user, attributes, &seen.graph)
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

    fn is_newest(&self, snapshots: &[Snapshot]) -> bool {
        let newest = self.newest();
        newest.len() == snapshots.len() && newest.iter().zip(snapshots).all(|(newest, now)| newest.is_same(now))
    }
}

impl SourceSnapshots {
    fn take_in(&mut self, snapshots: Arc<[Snapshot]>) {
        for (at, (now, (_, plural))) in snapshots.iter().zip(SOURCES).enumerate() {
            let takes = |key: &str, stored: Option<&Stored>| {
                // An object that can't be decoded links to nothing.
                let object = stored.and_then(|stored| json::decode(&stored.bytes).ok());
                self.graph.set(plural, key, object.as_ref());
            };
            match self.snapshots.get(at) {
                Some(before) if before.is_same(now) => {}
                Some(before) => each_change(now, before, takes),
                None => each_object(now, takes),
            }
        }
        self.snapshots = snapshots;
    }
}

#[async_trait]
impl Authorizer for StoredNodes {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        if node_of(user).is_none() {
            return Decision::NO_OPINION;
        }
        self.decide(user, attributes).map_or_else(|why| Decision::no_opinion(why.to_string()), |()| Decision::ALLOW)
    }

    fn rules_for(&self, user: &UserInfo, _: &str) -> Rules {
        match node_of(user) {
            Some(_) => Rules { incomplete: true, error: RULES_UNKNOWN.to_owned(), ..Rules::default() },
            None => Rules::default(),
        }
    }

    async fn refresh(&self) -> Result<(), Status> {
        if self.is_newest(&self.snapshots().await?) {
            return Ok(());
        }
        let _refreshing = self.refreshing.lock().await;
        // Read while the lock is held: they are not older than what was noted.
        let snapshots = self.snapshots().await?;
        *self.newest.write().unwrap_or_else(PoisonError::into_inner) = snapshots;
        Ok(())
    }
}
