//! Objects in the store, as admission plugins look them up.

use async_trait::async_trait;

use super::store_failed;
use crate::admission::Objects;
use crate::meta::Status;
use crate::store::{At, Collection, SnapshotError, Storage, Stored};
use crate::value::{Value, json};

/// Objects without a namespace.
pub struct StoredObjects(pub Storage);

fn read(stored: &Stored) -> Result<Value, Status> {
    json::decode(&stored.bytes).map_err(|error| Status::internal_error(&format!("{}: {error}", stored.key)))
}

#[async_trait]
impl Objects for StoredObjects {
    async fn get(&self, group: &str, plural: &str, name: &str) -> Result<Option<Value>, Status> {
        let collection = Collection::new(group, plural);
        let stored = self.0.get(&collection, name).await;
        let stored = stored.map_err(|error| store_failed(&collection, "get", error))?;
        stored.map(|stored| read(&stored)).transpose()
    }

    async fn list(&self, group: &str, plural: &str) -> Result<Vec<Value>, Status> {
        let collection = Collection::new(group, plural);
        let snapshot = self.0.snapshot(&collection, At::Newest).await;
        let snapshot = snapshot.map_err(|error| match error {
            SnapshotError::Expired { .. } => Status::internal_error("the newest state has expired"),
            SnapshotError::Store(error) => store_failed(&collection, "list", error),
        })?;
        snapshot.range("", None).map(|stored| read(stored)).collect()
    }
}
