//! The objects in the store, for lookups by admission plugins.

use std::sync::Arc;

use async_trait::async_trait;

use crate::admission::{Listed, Objects, ScopedResource, TextFilter};
use crate::memory::{Memory, Reservation};
use crate::meta::Status;
use crate::object;
use crate::store::{
    At, Collection, CollectionPart, Encoded, Guard, KeyRange, Op, PartReader, PartRequest, PartSize, Put,
    SnapshotError, Storage, Stored, Write, WriteError,
};
use crate::value::{Value, json};

use super::derive::{remove_resource_version, set_resource_version};
use super::store_failed;
use super::write::write_failed;

/// How much memory listed objects take, as a multiple of the length of their text.
const LISTED_COPIES: usize = 12;
/// What some fields of an object take.
const FIELDS_BYTES: usize = 600;
/// Up to this many bytes are listed without a memory reservation.
const UNCOUNTED_BYTES_MAX: usize = 64 << 10;

pub struct StoredObjects {
    pub storage: Storage,
    pub memory: Arc<Memory>,
}

impl StoredObjects {
    async fn part(&self, place: ScopedResource<'_>) -> Result<CollectionPart, Status> {
        let collection = Collection::new(place.group, place.plural);
        let (range, size) = (KeyRange::of(&key_of(place, "")), PartSize::All);
        let request = PartRequest { at: At::Newest, range, size, reader: PartReader::Check };
        self.storage.part(&collection, request).await.map_err(|error| match error {
            SnapshotError::Expired { .. } => Status::internal_error("the newest state has expired"),
            SnapshotError::Store(error) => store_failed(&collection, "list", error),
        })
    }

    async fn stored(&self, place: ScopedResource<'_>, name: &str) -> Result<Option<Arc<Stored>>, Status> {
        let collection = Collection::new(place.group, place.plural);
        let stored = self.storage.get(&collection, &key_of(place, name)).await;
        stored.map_err(|error| store_failed(&collection, "get", error))
    }

    async fn reserve(&self, bytes: usize) -> Result<Option<Reservation>, Status> {
        if bytes <= UNCOUNTED_BYTES_MAX {
            return Ok(None);
        }
        let reserved = self.memory.for_listed(bytes.saturating_mul(LISTED_COPIES)).await;
        reserved.map(Some).map_err(Status::from)
    }
}

#[async_trait]
impl Objects for StoredObjects {
    async fn get(&self, place: ScopedResource<'_>, name: &str) -> Result<Option<Value>, Status> {
        self.stored(place, name).await?.map(|stored| decode(&stored.bytes)).transpose()
    }

    /// Decodes nothing else of the object.
    async fn labels(&self, place: ScopedResource<'_>, name: &str) -> Result<Value, Status> {
        let Some(stored) = self.stored(place, name).await? else { return Ok(Value::Null) };
        if stored.is_damaged() {
            return decode(&stored.bytes);
        }
        stored.metadata_field("\"labels\"").map_or(Ok(Value::Null), decode)
    }

    async fn any_of(&self, place: ScopedResource<'_>, wanted: TextFilter<'_>) -> Result<bool, Status> {
        let part = self.part(place).await?;
        let mut stored = part.objects();
        Ok(stored.any(|stored| wanted(&stored.bytes)))
    }

    async fn list_of(&self, place: ScopedResource<'_>, wanted: TextFilter<'_>) -> Result<Listed, Status> {
        let part = self.part(place).await?;
        let stored: Vec<_> = part.objects().filter(|stored| wanted(&stored.bytes)).cloned().collect();
        // The holder of memory for objects must not ask for more of it.
        drop(part);
        let reserved = self.reserve(stored.iter().map(|stored| stored.bytes.len()).sum()).await?;
        let listed = stored.into_iter().map(|stored| {
            let mut object = decode(&stored.bytes)?;
            set_resource_version(&mut object, stored.revision);
            Ok(object)
        });
        Ok(Listed::new(listed.collect::<Result<_, Status>>()?, reserved))
    }

    async fn list_fields(&self, place: ScopedResource<'_>, paths: &[&[&str]]) -> Result<Vec<Value>, Status> {
        let part = self.part(place).await?;
        let stored: Vec<_> = part.objects().cloned().collect();
        // The holder of memory for objects must not ask for more of it.
        drop(part);
        let largest = stored.iter().map(|stored| stored.bytes.len()).max().unwrap_or_default();
        let _reserved = self.reserve(largest + stored.len() * FIELDS_BYTES / LISTED_COPIES).await?;
        stored.iter().map(|stored| Ok(fields_of(&decode(&stored.bytes)?, paths))).collect()
    }

    async fn replace(&self, place: ScopedResource<'_>, mut object: Value) -> Result<bool, Status> {
        let collection = Collection::new(place.group, place.plural);
        let key = key_of(place, object.str_at(&["metadata", "name"]));
        let stored =
            self.storage.get(&collection, &key).await.map_err(|error| store_failed(&collection, "get", error))?;
        let listed = object.str_at(&["metadata", "resourceVersion"]).to_owned();
        let Some(stored) = stored.filter(|stored| stored.revision.to_string() == listed) else { return Ok(false) };
        remove_resource_version(&mut object);
        let put = Put {
            object: Encoded::of(&object),
            uid: Arc::clone(&stored.uid),
            stored_version: Arc::clone(&stored.stored_version),
            schema_generation: stored.schema_generation,
            expires_at_ms: stored.expires_at_ms,
            served_under: None,
        };
        let guards = vec![Guard::At { revision: stored.revision }];
        let write = Write { collection: collection.clone(), key: Arc::clone(&stored.key), op: Op::Put(put), guards };
        match self.storage.write(write).await {
            Ok(_) => Ok(true),
            Err(WriteError::GuardFailed) => Ok(false),
            Err(error) => Err(write_failed(&collection, "update", error)),
        }
    }
}

/// The key of an object, or the prefix of the keys of a namespace.
fn key_of(place: ScopedResource<'_>, name: &str) -> String {
    if place.namespace.is_empty() { name.to_owned() } else { format!("{}/{name}", place.namespace) }
}

/// The fields of an object at `paths`, but for long texts.
fn fields_of(object: &Value, paths: &[&[&str]]) -> Value {
    const TEXT_BYTES_MAX: usize = 1 << 10;
    let mut fields = object! {};
    for path in paths {
        let value = object.at(path).filter(|value| value.as_str().is_none_or(|text| text.len() <= TEXT_BYTES_MAX));
        let (Some(value), Some((last, parents))) = (value, path.split_last()) else { continue };
        let parent = parents.iter().fold(&mut fields, |parent, name| parent.make_object().entry(name));
        parent.make_object().insert(*last, value.clone());
    }
    fields
}

fn decode(bytes: &[u8]) -> Result<Value, Status> {
    json::decode(bytes).map_err(|error| Status::internal_error(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[tokio::test]
    async fn a_damaged_object_has_no_labels_but_an_error() {
        let registry = fixture::registry().await;
        let objects = StoredObjects { storage: registry.storage.clone(), memory: Arc::clone(&registry.memory) };
        let place = ScopedResource { group: "", plural: "namespaces", namespace: "" };
        for (name, bytes) in [("whole", r#"{"metadata":{"labels":{"a":"b"}}}"#), ("damaged", "")] {
            let put = Put {
                object: Encoded::new(bytes),
                uid: "u".into(),
                stored_version: "v1".into(),
                schema_generation: 0,
                expires_at_ms: None,
                served_under: None,
            };
            let collection = Collection::new("", "namespaces");
            let write = Write { collection, key: name.into(), op: Op::Put(put), guards: Vec::new() };
            registry.storage.write(write).await.expect("it is written");
        }
        assert_eq!(objects.labels(place, "whole").await.expect("it is readable").str_at(&["a"]), "b");
        assert_eq!(objects.labels(place, "damaged").await.expect_err("it is not").code, 500);
        assert_eq!(objects.labels(place, "absent").await.expect("nothing is"), Value::Null);
    }
}
