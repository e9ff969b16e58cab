//! The objects in the store, as plugins of admission look them up.

use async_trait::async_trait;

use crate::admission::{Objects, Place};
use crate::meta::Status;
use crate::store::{At, Collection, SnapshotError, Storage};
use crate::value::{Value, json};

use super::store_failed;

pub struct StoredObjects(pub Storage);

#[async_trait]
impl Objects for StoredObjects {
    async fn get(&self, place: Place<'_>, name: &str) -> Result<Option<Value>, Status> {
        let collection = Collection::new(place.group, place.plural);
        let stored = self.0.get(&collection, &key_of(place, name)).await;
        let stored = stored.map_err(|error| store_failed(&collection, "get", error))?;
        stored.map(|stored| decode(&stored.bytes)).transpose()
    }

    async fn list(&self, place: Place<'_>) -> Result<Vec<Value>, Status> {
        let collection = Collection::new(place.group, place.plural);
        let snapshot = self.0.snapshot(&collection, At::Newest).await;
        let snapshot = snapshot.map_err(|error| match error {
            SnapshotError::Expired { .. } => Status::internal_error("the newest state has expired"),
            SnapshotError::Store(error) => store_failed(&collection, "list", error),
        })?;
        snapshot.range(&key_of(place, ""), None).map(|stored| decode(&stored.bytes)).collect()
    }
}

/// The key of an object, or what the keys of a namespace begin with.
fn key_of(place: Place<'_>, name: &str) -> String {
    if place.namespace.is_empty() { name.to_owned() } else { format!("{}/{name}", place.namespace) }
}

fn decode(bytes: &[u8]) -> Result<Value, Status> {
    json::decode(bytes).map_err(|error| Status::internal_error(&error.to_string()))
}
