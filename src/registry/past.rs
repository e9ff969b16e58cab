//! Past states, and objects that are rewritten unchanged: the means of injected faults.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::meta::{Revision, Status};
use crate::store::{Collection, Guard, Op, Put, WatchError, Write, WriteError};
use crate::work;

use super::write::write_failed;
use super::{Registry, store_failed};

impl Registry {
    /// The revision at which a collection was as it was `changes` changes ago, or as far back as the log reaches.
    ///
    /// Errors: the database does not answer.
    pub async fn revision_before(&self, collection: &Collection, changes: usize) -> Result<Revision, Status> {
        let mut oldest = self.storage.compacted(collection);
        let mut log = loop {
            match self.storage.watch(collection, oldest).await {
                Ok(log) => break log,
                // Some of the log was compacted meanwhile.
                Err(WatchError::Expired { compacted }) if compacted > oldest => oldest = compacted,
                Err(WatchError::Expired { compacted }) => return Ok(compacted),
                Err(WatchError::Store(error)) => return Err(store_failed(collection, "list", error)),
            }
        };
        let mut last = VecDeque::new();
        while let Some(change) = log.next_visible().await {
            work::step();
            last.push_back(change.revision);
            if last.len() > changes {
                last.pop_front();
            }
        }
        Ok(match last.front() {
            Some(first) if last.len() == changes => first.before(),
            _ => oldest,
        })
    }

    /// Writes an object as it is, under a new revision, as if somebody had changed it meanwhile; does nothing if it
    /// doesn't exist.
    ///
    /// Errors: it can't be written.
    pub async fn touch(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Result<(), Status> {
        let Some(resource) = self.resolve(group, plural).await? else { return Ok(()) };
        let collection = &resource.collection;
        let is_namespaced = resource.first().is_namespaced();
        let key = if is_namespaced { format!("{namespace}/{name}") } else { name.to_owned() };
        let stored = self.storage.get(collection, &key).await;
        let stored = stored.map_err(|error| store_failed(collection, "update", error))?;
        let Some(stored) = stored else { return Ok(()) };
        let put = Put {
            object: stored.raw(),
            uid: Arc::clone(&stored.uid),
            stored_version: Arc::clone(&stored.stored_version),
            schema_generation: stored.schema_generation,
            expires_at_ms: stored.expires_at_ms,
            served_under: None,
        };
        let guards = vec![Guard::At { revision: stored.revision }];
        let key = Arc::clone(&stored.key);
        match self.storage.write(Write { collection: collection.clone(), key, op: Op::Put(put), guards }).await {
            // Another write did change it.
            Ok(_) | Err(WriteError::GuardFailed) => Ok(()),
            Err(error) => Err(write_failed(collection, "update", error)),
        }
    }
}
