//! The stored roles and bindings, as the authorizer keeps them in memory.
//!
//! Each request first loads what has changed since the last one: if nothing has, that takes four pointer comparisons.
//! So a role is in force as soon as the write that created it is answered, without any notification.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use tokio::sync::Mutex;

use super::store_failed;
use crate::auth::rbac::{GROUP, RbacPolicy};
use crate::auth::{Attributes, Authorizer, Decision, Rules, UserInfo};
use crate::meta::Status;
use crate::store::{At, Collection, Snapshot, SnapshotError, Storage, Stored};
use crate::value::json;

/// Where roles and bindings are stored.
const PLURALS: [&str; 4] = ["clusterroles", "roles", "clusterrolebindings", "rolebindings"];
/// How many of these are roles.
const ROLES: usize = 2;

/// Authorizes by the roles and bindings in a database.
pub struct StoredPolicy {
    storage: Storage,
    collections: [Collection; 4],
    seen: RwLock<Arc<LoadedRoles>>,
    /// Held while changes are loaded.
    refreshing: Mutex<()>,
}

/// What was loaded. Changes are made to a copy, which is cheap, so that readers don't wait.
#[derive(Clone, Default)]
struct LoadedRoles {
    /// One for each collection; empty before the first time.
    snapshots: Vec<Snapshot>,
    policy: RbacPolicy,
}

/// The policy as it was at one moment.
pub struct Current(Arc<LoadedRoles>);

impl std::ops::Deref for Current {
    type Target = RbacPolicy;

    fn deref(&self) -> &RbacPolicy {
        &self.0.policy
    }
}

impl StoredPolicy {
    pub fn new(storage: Storage) -> Self {
        let collections = PLURALS.map(|plural| Collection::new(GROUP, plural));
        StoredPolicy { storage, collections, seen: RwLock::default(), refreshing: Mutex::default() }
    }

    /// The policy of a copy of a database. `known` was loaded before the copy was made, so every revision in it means
    /// the same in both.
    pub fn beginning_with(known: Current, storage: Storage) -> Self {
        StoredPolicy { seen: RwLock::new(known.0), ..StoredPolicy::new(storage) }
    }

    /// What was loaded last.
    pub fn current(&self) -> Current {
        Current(Arc::clone(&self.seen.read().unwrap_or_else(PoisonError::into_inner)))
    }

    async fn snapshots(&self) -> Result<Vec<Snapshot>, Status> {
        let failed = |collection: &Collection, error| match error {
            SnapshotError::Store(error) => store_failed(collection, "get", error),
            SnapshotError::Expired { .. } => Status::internal_error("the roles can't be read"),
        };
        try_join_all(self.collections.iter().map(async |collection| {
            let snapshot = self.storage.snapshot(collection, At::Newest).await;
            snapshot.map_err(|error| failed(collection, error))
        }))
        .await
    }

    fn is_seen(&self, snapshots: &[Snapshot]) -> bool {
        let seen = &self.current().0.snapshots;
        seen.len() == snapshots.len() && seen.iter().zip(snapshots).all(|(seen, now)| seen.is_same(now))
    }
}

impl LoadedRoles {
    fn take_in(&mut self, snapshots: Vec<Snapshot>) {
        for (at, now) in snapshots.iter().enumerate() {
            let takes = |key: &str, stored: Option<&Stored>| take_in(&mut self.policy, at < ROLES, key, stored);
            match self.snapshots.get(at) {
                Some(before) => each_change(now, before, takes),
                None => each_object(now, takes),
            }
        }
        self.snapshots = snapshots;
    }
}

pub(super) fn each_change(now: &Snapshot, before: &Snapshot, mut takes: impl FnMut(&str, Option<&Stored>)) {
    now.changes_since(before).for_each(|(key, stored)| takes(key, stored.map(|stored| &**stored)));
}

pub(super) fn each_object(now: &Snapshot, mut takes: impl FnMut(&str, Option<&Stored>)) {
    now.range("", None).for_each(|stored| takes(&stored.key, Some(stored)));
}

/// An object that can't be decoded grants nothing.
fn take_in(policy: &mut RbacPolicy, is_role: bool, key: &str, stored: Option<&Stored>) {
    let object = stored.and_then(|stored| json::decode(&stored.bytes).ok());
    match (is_role, object) {
        (true, Some(role)) => policy.set_role(key, &role),
        (true, None) => policy.remove_role(key),
        (false, Some(binding)) => policy.set_binding(key, &binding),
        (false, None) => policy.remove_binding(key),
    }
}

#[async_trait]
impl Authorizer for StoredPolicy {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        self.current().decide(user, attributes)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        self.current().rules_for(user, namespace)
    }

    async fn refresh(&self) -> Result<(), Status> {
        if self.is_seen(&self.snapshots().await?) {
            return Ok(());
        }
        let _refreshing = self.refreshing.lock().await;
        // Read while the lock is held: they are not older than what was loaded.
        let snapshots = self.snapshots().await?;
        if !self.is_seen(&snapshots) {
            let mut seen = LoadedRoles::clone(&self.current().0);
            seen.take_in(snapshots);
            *self.seen.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(seen);
        }
        Ok(())
    }
}
