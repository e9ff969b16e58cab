//! The objects in the store, as plugins of admission look them up.

use std::sync::Arc;

use async_trait::async_trait;

use crate::admission::{Objects, Place};
use crate::meta::Status;
use crate::store::{At, Collection, Guard, Op, Put, SnapshotError, Storage, Write, WriteError};
use crate::value::{Value, json};

use super::derive::{remove_resource_version, set_resource_version};
use super::store_failed;
use super::write::write_failed;

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
        let prefix = key_of(place, "");
        let listed = snapshot.range(&prefix, None).map(|stored| {
            let mut object = decode(&stored.bytes)?;
            set_resource_version(&mut object, stored.revision);
            Ok(object)
        });
        listed.collect()
    }

    async fn replace(&self, place: Place<'_>, mut object: Value) -> Result<bool, Status> {
        let collection = Collection::new(place.group, place.plural);
        let key = key_of(place, object.str_at(&["metadata", "name"]));
        let stored = self.0.get(&collection, &key).await.map_err(|error| store_failed(&collection, "get", error))?;
        let listed = object.str_at(&["metadata", "resourceVersion"]).to_owned();
        let Some(stored) = stored.filter(|stored| stored.revision.to_string() == listed) else { return Ok(false) };
        remove_resource_version(&mut object);
        let put = Put {
            bytes: json::encode(&object).into(),
            uid: Arc::clone(&stored.uid),
            stored_version: Arc::clone(&stored.stored_version),
            schema_generation: stored.schema_generation,
            expires_at_ms: stored.expires_at_ms,
            served_under: None,
        };
        let guards = vec![Guard::At { revision: stored.revision }];
        let write = Write { collection: collection.clone(), key: Arc::clone(&stored.key), op: Op::Put(put), guards };
        match self.0.write(write).await {
            Ok(_) => Ok(true),
            Err(WriteError::GuardFailed) => Ok(false),
            Err(error) => Err(write_failed(&collection, "update", error)),
        }
    }
}

/// The key of an object, or what the keys of a namespace begin with.
fn key_of(place: Place<'_>, name: &str) -> String {
    if place.namespace.is_empty() { name.to_owned() } else { format!("{}/{name}", place.namespace) }
}

fn decode(bytes: &[u8]) -> Result<Value, Status> {
    json::decode(bytes).map_err(|error| Status::internal_error(&error.to_string()))
}
