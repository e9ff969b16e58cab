//! How an object is stored: created, changed, or removed with its last finalizer.

use std::sync::Arc;

use crate::kinds::{self, prepare};
use crate::meta::{OBJECT_BYTES_MAX, Revision, Status};
use crate::store::{self, Collection, Encoded, Guard, Stored, WriteError};
use crate::value::{Value, json};
use crate::write::metadata::metadata_mut;

use super::super::derive::{Undecodable, remove_resource_version, set_resource_version};
use super::super::{Registry, Resource, Target, Written, store_failed};
use super::kept::RawField;

/// The expected length of a new object's JSON; it may well be longer.
const NEW_BYTES: usize = 4 << 10;
/// By how many bytes a change is expected to lengthen an object.
const GROWTH_BYTES: usize = 256;

/// Copies the parts that an update does not change from the stored object, as the version of the request may not be
/// able to express them.
fn keep_stored(target: &Target, raw: &mut Value, stored: &Stored) {
    let storage = target.resource.storage();
    let left_alone = target.resource.strategy.leaves_alone(target.subresource);
    if left_alone.is_empty() || target.version.version == storage.version || *stored.stored_version != *storage.version
    {
        return;
    }
    let Ok(old) = json::decode(&stored.bytes) else { return };
    prepare::keep(raw, &old, left_alone);
}

impl Registry {
    /// Stores the new object, together with the writes that allocate what it has.
    pub(super) async fn commit_new(
        &self,
        target: &Target,
        (mut object, kept): (Value, &RawField),
        (name, dry_run): (&str, bool),
        mut guards: Vec<Guard>,
        claims: Vec<store::Write>,
    ) -> Result<Option<Written>, Status> {
        let (version, resource) = (&target.version, &target.resource);
        resource.strategy.complete(&mut object);
        let key = target.key_of(name);
        let failed = |error| store_failed(&resource.collection, "create", error);
        let taken = self.storage.get(&resource.collection, &key).await.map_err(failed)?;
        if let Some(existing) = taken {
            let mut status = match object.str_at(&["metadata", "generateName"]) {
                "" => Status::already_exists(&version.group, &version.names.plural, name),
                _ => Status::generate_name_conflict(&version.group, &version.names.plural, name),
            };
            let existing =
                self.derive(resource, version, &existing).await.map_err(|error| error.refuse_change(&existing))?;
            if existing.at(&["metadata", "deletionTimestamp"]).is_some() {
                status.message = format!("object is being deleted: {}", status.message);
            }
            return Err(status);
        }
        let claimed =
            object.at(&["metadata", "resourceVersion"]).filter(|claimed| claimed.as_str() != Some("")).cloned();
        remove_resource_version(&mut object);
        let stored = self.convert_to(resource, resource.storage(), object).await;
        let mut stored = stored.map_err(|error| Undecodable::from(error).refuse_write())?;
        if resource.definition.is_none() {
            kinds::settle_stored(&mut stored);
        }
        if dry_run {
            let object = self.derive_value(resource, version, stored).await;
            let mut object = object.map_err(Undecodable::refuse_write)?;
            if let Some(claimed) = claimed {
                metadata_mut(&mut object).insert("resourceVersion", claimed);
            }
            return Ok(Some(Written { created: true, object, encoded: None }));
        }
        guards.push(Guard::Absent);
        let encoded = kept.encode(resource.strategy, &stored, NEW_BYTES);
        let (put, encoded) = self.put_to_send(target, &stored, &encoded, OBJECT_BYTES_MAX)?;
        let write = store::Write {
            collection: resource.collection.clone(),
            key: key.as_str().into(),
            op: store::Op::Put(put),
            guards,
        };
        match self.store(write, claims).await {
            Ok(committed) => self.written(target, true, (stored, encoded), committed.revision).await.map(Some),
            Err(WriteError::GuardFailed) => Ok(None),
            Err(error) => Err(write_failed(&resource.collection, "create", error)),
        }
    }

    /// Stores the changed object, together with the writes that allocate what it has and release what it no longer has,
    /// unless the same bytes and version are already stored.
    pub(in crate::registry) async fn commit_change(
        &self,
        target: &Target,
        (new, kept): (Value, &RawField),
        stored: Arc<Stored>,
        (mut guards, claims): (Vec<Guard>, Vec<store::Write>),
        dry_run: bool,
    ) -> Result<Option<Written>, Status> {
        let resource = &target.resource;
        let mut raw = new;
        resource.strategy.complete(&mut raw);
        remove_resource_version(&mut raw);
        let raw = self.convert_to(resource, resource.storage(), raw).await;
        let mut raw = raw.map_err(|error| Undecodable::from(error).refuse_write())?;
        keep_stored(target, &mut raw, &stored);
        if resource.definition.is_none() {
            kinds::settle_stored(&mut raw);
        }
        // No-op is decided against the raw stored bytes: an unchanged PUT persists defaults added since.
        let encoded = kept.encode(resource.strategy, &raw, stored.bytes.len() + GROWTH_BYTES);
        let unchanged = *stored.stored_version == *resource.storage().version && *encoded.bytes() == stored.bytes;
        if unchanged || dry_run {
            return self.written(target, false, (raw, None), stored.revision).await.map(Some);
        }
        guards.push(Guard::At { revision: stored.revision });
        // An object from before the limit may still be made smaller.
        let bytes_max = stored.bytes.len().max(OBJECT_BYTES_MAX);
        let (put, encoded) = self.put_to_send(target, &raw, &encoded, bytes_max)?;
        let write = store::Write {
            collection: resource.collection.clone(),
            key: stored.key.clone(),
            op: store::Op::Put(put),
            guards,
        };
        match self.store(write, claims).await {
            Ok(committed) => self.written(target, false, (raw, encoded), committed.revision).await.map(Some),
            Err(WriteError::GuardFailed) => Ok(None),
            Err(error) => Err(write_failed(&resource.collection, "update", error)),
        }
    }

    /// Removes the stored object, as its last finalizer is gone, and releases what is allocated to it; returns the
    /// revision of the removal, or `None` if the object has changed meanwhile.
    pub(in crate::registry) async fn delete_now(
        &self,
        target: &Target,
        stored: &Arc<Stored>,
        mut guards: Vec<Guard>,
        dry_run: bool,
    ) -> Result<Option<Revision>, Status> {
        if dry_run {
            return Ok(Some(stored.revision));
        }
        let released = self.release(target, stored).await?;
        guards.push(Guard::At { revision: stored.revision });
        let collection = &target.resource.collection;
        let write =
            store::Write { collection: collection.clone(), key: stored.key.clone(), op: store::Op::Delete, guards };
        match self.store(write, released).await {
            Ok(committed) => {
                if *collection == self.definitions.collection() {
                    self.forget_deleted(&stored.key);
                }
                self.after_deletion(target, &stored.key).await;
                Ok(Some(committed.revision))
            }
            Err(WriteError::GuardFailed) => Ok(None),
            Err(error) => Err(write_failed(collection, "delete", error)),
        }
    }

    /// Writes to the store. What roles and bindings grant is in force when it returns.
    async fn store(&self, write: store::Write, others: Vec<store::Write>) -> Result<store::Committed, WriteError> {
        let change = self.policy.as_ref().and_then(|policy| policy.begin_change(&write));
        let committed = self.storage.write_together(write, others).await?;
        if let Some(change) = change {
            // The write is stored, so an error is left to the next request, which tries again.
            _ = Box::pin(change.load()).await;
        }
        Ok(committed)
    }

    /// The stored form of `object`, which is in its storage version.
    ///
    /// Errors: it is larger than [`OBJECT_BYTES_MAX`].
    pub(in crate::registry) fn put(&self, resource: &Resource, object: &Value) -> Result<store::Op, Status> {
        let encoded = Encoded::of_expected(object, NEW_BYTES);
        if encoded.bytes().len() > OBJECT_BYTES_MAX {
            return Err(Status::too_large_to_store());
        }
        Ok(store::Op::Put(self.put_encoded(resource, object, &encoded)))
    }

    /// [`Registry::put`] of an object that is marked for deletion, with its JSON: the mark must not make it too large
    /// to be deleted.
    pub(in crate::registry) fn put_marked(&self, resource: &Resource, object: &Value, encoded: &Encoded) -> store::Op {
        store::Op::Put(self.put_encoded(resource, object, encoded))
    }

    /// [`Registry::put`] of `object` with its JSON; also returns what the client of `target` gets, if that is the same.
    fn put_to_send(
        &self,
        target: &Target,
        object: &Value,
        encoded: &Encoded,
        bytes_max: usize,
    ) -> Result<(store::Put, Option<Encoded>), Status> {
        if encoded.bytes().len() > bytes_max {
            return Err(Status::too_large_to_store());
        }
        let resource = &target.resource;
        let mut put = self.put_encoded(resource, object, encoded);
        if !resource.is_served_raw(resource.storage(), object) {
            return Ok((put, None));
        }
        put.served_under = Some(resource.schema_generation());
        // Built-in kinds are sent with a different order of fields.
        let is_sent = resource.is_custom() && Arc::ptr_eq(&target.version, resource.storage());
        let encoded = is_sent.then(|| put.object.clone());
        Ok((put, encoded))
    }

    fn put_encoded(&self, resource: &Resource, object: &Value, encoded: &Encoded) -> store::Put {
        let version = resource.storage();
        store::Put {
            object: encoded.clone(),
            uid: object.str_at(&["metadata", "uid"]).into(),
            stored_version: store::interned(&version.version),
            schema_generation: version.schema_generation,
            expires_at_ms: self.lifetimes.of(resource.strategy).map(|lifetime| {
                let lifetime_ms = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
                self.clock.now().as_millisecond().saturating_add(lifetime_ms)
            }),
            served_under: None,
        }
    }

    /// The answer to a write that stored `object` at `revision`; `encoded` is what the client gets, if that is known.
    async fn written(
        &self,
        target: &Target,
        created: bool,
        (object, encoded): (Value, Option<Encoded>),
        revision: Revision,
    ) -> Result<Written, Status> {
        let derived = match &encoded {
            Some(_) => Ok(object),
            None => self.derive_value(&target.resource, &target.version, object).await,
        };
        let mut object = derived.map_err(Undecodable::refuse_write)?;
        set_resource_version(&mut object, revision);
        Ok(Written { created, object, encoded: encoded.map(|encoded| (encoded, revision)) })
    }
}

/// The answer to a failed write.
pub(in crate::registry) fn write_failed(collection: &Collection, operation: &str, error: WriteError) -> Status {
    const RETRY_AFTER_SECONDS: u32 = 1;
    match error {
        WriteError::Busy => {
            Status::too_many_requests("too many writes are waiting, please try again later", RETRY_AFTER_SECONDS)
        }
        WriteError::GuardFailed => Status::internal_error("a guard failed that no step can meet"),
        WriteError::Store(error) => store_failed(collection, operation, error),
    }
}
