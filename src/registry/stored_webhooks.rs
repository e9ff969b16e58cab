//! The stored webhook configurations, as admission keeps them in memory.
//!
//! Each write first compares the collection with the loaded one, which takes one pointer comparison. If it differs, the
//! configurations that have changed are read again.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::in_force::{Begun, GROUP, bytes_of_webhooks};
use super::store_failed;
use crate::admission::matcher::NamespaceLabels;
use crate::admission::webhooks::{Configuration, WebhookKind, WebhookSource};
use crate::memory::{Memory, Portion};
use crate::meta::{Revision, Status};
use crate::store::{At, Collection, Snapshot, SnapshotError, Storage, Stored};
use crate::value::{Value, json};
use crate::work;

/// The configurations of a kind in a database, and those from files.
pub struct StoredWebhooks {
    storage: Storage,
    collection: Collection,
    in_files: Arc<[Arc<Configuration>]>,
    seen: RwLock<Arc<LoadedWebhooks>>,
    /// What was read by requests that ended before all was: the next one goes on.
    begun: Begun<ReadConfiguration>,
    /// The memory that the configurations take. It is held while changes are loaded.
    refreshing: Mutex<Portion>,
}

/// What was loaded.
#[derive(Default)]
struct LoadedWebhooks {
    /// `None` before the first time.
    snapshot: Option<Snapshot>,
    /// By name.
    read: HashMap<Arc<str>, ReadConfiguration>,
    /// Those from files, then those in `read`, sorted by name.
    all: Arc<[Arc<Configuration>]>,
    /// How much memory they take.
    bytes: usize,
}

/// A configuration as it was read at a revision.
#[derive(Clone)]
struct ReadConfiguration {
    revision: Revision,
    configuration: Arc<Configuration>,
    bytes: usize,
}

impl StoredWebhooks {
    /// The stored configurations of a kind, after those from files.
    pub fn new(storage: Storage, kind: WebhookKind, in_files: Arc<[Arc<Configuration>]>, memory: &Memory) -> Self {
        let collection = Collection::new(GROUP, kind.plural());
        let refreshing = Mutex::new(memory.for_policies());
        StoredWebhooks { storage, collection, in_files, seen: RwLock::default(), begun: Begun::default(), refreshing }
    }

    async fn snapshot(&self) -> Result<Snapshot, Status> {
        let snapshot = self.storage.snapshot(&self.collection, At::Newest).await;
        snapshot.map_err(|error| match error {
            SnapshotError::Expired { .. } => Status::internal_error("the newest state has expired"),
            SnapshotError::Store(error) => store_failed(&self.collection, "list", error),
        })
    }

    fn read(&self, stored: &Stored) -> Result<ReadConfiguration, Status> {
        if let Some(known) = self.begun.get(&stored.key, |known| known.revision == stored.revision) {
            return Ok(known);
        }
        let object = json::decode(&stored.bytes);
        let object = object.map_err(|error| Status::internal_error(&format!("{}: {error}", stored.key)))?;
        let configuration = Arc::new(Configuration::decode(&object));
        let bytes = bytes_of_webhooks(&object, &configuration);
        let read = ReadConfiguration { revision: stored.revision, configuration, bytes };
        self.begun.add(&stored.key, &read);
        Ok(read)
    }

    fn current(&self) -> Arc<LoadedWebhooks> {
        Arc::clone(&self.seen.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was loaded, if it is the state of `snapshot`.
    fn known(&self, snapshot: &Snapshot) -> Option<Arc<[Arc<Configuration>]>> {
        let current = self.current();
        let is_same = current.snapshot.as_ref().is_some_and(|seen| seen.is_same(snapshot));
        is_same.then(|| Arc::clone(&current.all))
    }
}

impl LoadedWebhooks {
    /// Reads those configurations that were not read before.
    fn take_in(
        &self,
        in_files: &[Arc<Configuration>],
        read_one: impl Fn(&Stored) -> Result<ReadConfiguration, Status>,
        snapshot: Snapshot,
    ) -> Result<LoadedWebhooks, Status> {
        let (mut read, mut all, mut bytes) = (HashMap::new(), in_files.to_vec(), 0);
        for stored in snapshot.range("", None) {
            work::step();
            let known = self.read.get(&stored.key).filter(|known| known.revision == stored.revision);
            let one = known.map_or_else(|| read_one(stored), |known| Ok(known.clone()))?;
            bytes += one.bytes;
            all.push(Arc::clone(&one.configuration));
            read.insert(Arc::clone(&stored.key), one);
        }
        Ok(LoadedWebhooks { snapshot: Some(snapshot), read, all: all.into(), bytes })
    }
}

#[async_trait]
impl WebhookSource for StoredWebhooks {
    async fn configurations(&self) -> Result<Arc<[Arc<Configuration>]>, Status> {
        if let Some(known) = self.known(&self.snapshot().await?) {
            return Ok(known);
        }
        let mut counted = self.refreshing.lock().await;
        // Read while the lock is held: they are not older than what was loaded.
        let snapshot = self.snapshot().await?;
        if let Some(known) = self.known(&snapshot) {
            return Ok(known);
        }
        let seen = Arc::new(self.current().take_in(&self.in_files, |stored| self.read(stored), snapshot)?);
        self.begun.clear();
        counted.resize(seen.bytes);
        *self.seen.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&seen);
        Ok(Arc::clone(&seen.all))
    }

    fn in_files(&self) -> Arc<[Arc<Configuration>]> {
        Arc::clone(&self.in_files)
    }
}

#[async_trait]
impl NamespaceLabels for StoredWebhooks {
    async fn namespace_labels(&self, name: &str) -> Result<Option<Value>, Status> {
        let collection = Collection::new("", "namespaces");
        let stored = self.storage.get(&collection, name).await;
        let Some(stored) = stored.map_err(|error| store_failed(&collection, "get", error))? else { return Ok(None) };
        let namespace = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
        Ok(Some(namespace.at(&["metadata", "labels"]).cloned().unwrap_or_default()))
    }
}
