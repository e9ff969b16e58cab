//! From what is stored to what is served.
//!
//! Stored bytes are the object in the version it was stored in, without its resourceVersion. What a client gets is
//! derived from them: defaults of the storage version, conversion, pruning by the requested version. Derived bytes are
//! kept with the row, by version and generation of the schemas.

use std::sync::Arc;

use thiserror::Error;

use crate::admission::FormError;
use crate::apply::{OWNED_FIELDS, PASSED_ON};
use crate::crd::ServedVersion;
use crate::crd::write::{self, Origin, ReadError};
use crate::meta::{Cause, Revision, Status};
use crate::store::{Collection, Encoded, StoreError, Stored};
use crate::value::{Value, json};

use super::{Registry, Resource};

/// The size limit of an object in the form in which it is served. Stored objects with their defaults are well below it;
/// the answer of a webhook may exceed it once encoded.
const DERIVED_BYTES_MAX: usize = 8 << 20;

/// How many unreadable objects a list tells of.
pub(super) const UNREADABLE_MAX: usize = 100;
/// After how many bytes of reasons it tells of no more: those of a webhook may be long.
pub(super) const UNREADABLE_BYTES_MAX: usize = 256 << 10;

/// Fields that a deletion copies: it reads the metadata alone, unless admission or the kind asks for more.
const PASSED_ON_BY_DELETION: &[&[&str]] = &[OWNED_FIELDS, &["spec"], &["status"], &["data"]];

/// Why an object can't be converted to a version, in Kubernetes' words.
#[derive(Clone, Debug, Error)]
pub enum Undecodable {
    /// What is stored is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Json(#[from] json::JsonError),
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It can't be converted.
    #[error(transparent)]
    Form(#[from] FormError),
    /// Its definition no longer has the version that it is stored in.
    #[error("request to convert CR from an invalid group/version: {0}")]
    FormerVersion(String),
    /// It exceeds the size limit for objects that are served.
    #[error("the object has {bytes} bytes in the version that is asked for, more than {DERIVED_BYTES_MAX}")]
    TooLarge { bytes: usize },
}

impl Undecodable {
    /// The answer to a write whose object can't be converted.
    pub fn refuse_write(self) -> Status {
        Status::plain(500, &self.to_string())
    }

    /// The answer to a change that can't read the stored object.
    pub fn refuse_change(self, stored: &Stored) -> Status {
        Status::plain(500, &format!("object not decodable revision={}: {}", stored.revision, self))
    }

    /// The answer to a read of one object.
    pub fn refuse_read(self, collection: &Collection, stored: &Stored) -> Status {
        let why = self.describe(collection, stored);
        let mut status = Status::internal_error(&why);
        status.details.get_or_insert_default().causes = vec![Cause { message: why, ..Cause::default() }];
        status
    }

    /// The store's message about the object.
    fn describe(&self, collection: &Collection, stored: &Stored) -> String {
        format!(
            "StorageError: corrupt object, Code: 7, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: object not decodable \
             revision={}: {}",
            store_key(collection, stored),
            stored.revision,
            self
        )
    }
}

/// The answer to a list with unreadable objects: the message has the first one, the causes have all, or the first ones if
/// it `is_cut`.
///
/// Source: `corruptObjErrAggregator` of `pkg/storage/etcd3` in apiserver 1.37.
pub(super) fn refuse_list(resource: &Resource, unreadable: &[(Arc<Stored>, Undecodable)], is_cut: bool) -> Status {
    let version = resource.storage();
    let collection = &resource.collection;
    let mut causes: Vec<Cause> = unreadable
        .iter()
        .map(|(stored, error)| Cause {
            reason: "UnexpectedServerResponse".into(),
            field: store_key(collection, stored),
            message: error.describe(collection, stored),
        })
        .collect();
    let first = causes.first().map(|cause| cause.message.as_str()).unwrap_or_default();
    let others = match causes.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let plural = version.qualified_plural();
    let message = format!("failed to read one or more {plural} from the storage: {first}{others}");
    if is_cut {
        let message = "too many errors, the list is truncated".to_owned();
        causes.push(Cause { reason: "FieldValueTooMany".into(), message, ..Cause::default() });
    }
    let mut status = Status::plain(500, &message);
    status.reason = "StorageReadError".into();
    let details = status.details.get_or_insert_default();
    details.name = "list".to_owned();
    details.group = version.group.clone();
    details.kind = version.names.plural.clone();
    details.causes = causes;
    status
}

/// Why an object that can be read is not deleted as an unreadable one.
pub(super) fn readable(collection: &Collection, stored: &Stored) -> String {
    format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not \
         allowed because the object is decodable from storage",
        store_key(collection, stored)
    )
}

/// The key of an object as messages show it.
fn store_key(collection: &Collection, stored: &Stored) -> String {
    format!("/{}/{}", collection.as_str(), stored.key)
}

impl Registry {
    /// The object of `stored` in `version`, ready to be sent; its resourceVersion is put in as it is written.
    pub async fn encoded(
        &self,
        resource: &Resource,
        version: &ServedVersion,
        stored: &Arc<Stored>,
    ) -> Result<Encoded, Undecodable> {
        match known(resource, version, stored) {
            Some(encoded) => Ok(encoded),
            None => self.encoded_anew(resource, version, stored).await,
        }
    }

    /// [`Registry::encoded`] as of now: a webhook is called, whatever it answered before.
    pub async fn encoded_anew(
        &self,
        resource: &Resource,
        version: &ServedVersion,
        stored: &Arc<Stored>,
    ) -> Result<Encoded, Undecodable> {
        let generation = resource.schema_generation();
        let raw = decode_stored(stored, PASSED_ON)?;
        if resource.is_served_raw(version, &raw) {
            stored.note_served_raw(generation);
            return Ok(stored.raw());
        }
        let derived = self.derive_value(resource, version, raw).await?;
        let encoded = within_bound(Encoded::of(&derived))?;
        // Equal bytes are shared.
        let is_shared = *encoded.bytes() == stored.bytes;
        let (encoded, own_bytes) = if is_shared { (stored.raw(), 0) } else { (encoded.clone(), encoded.bytes().len()) };
        // Where there is no memory to keep it, it is made for each reader.
        if let Some(counted) = self.memory.for_derived(own_bytes) {
            stored.keep_derived((resource.api_version_of(version), generation), encoded.clone(), counted);
        }
        Ok(encoded)
    }

    /// The object of `stored` in `version`, with its resourceVersion.
    pub async fn derive(
        &self,
        resource: &Resource,
        version: &ServedVersion,
        stored: &Stored,
    ) -> Result<Value, Undecodable> {
        self.derive_leaving(resource, version, stored, PASSED_ON).await
    }

    /// [`Registry::derive`] for a deletion, which leaves most of the object undecoded if it is known to be served as
    /// stored. Kinds that keep JSON as it was sent are decoded: undecoded parts have to be compact and sorted.
    pub(super) async fn derive_for_deletion(
        &self,
        resource: &Resource,
        version: &ServedVersion,
        stored: &Stored,
    ) -> Result<Value, Undecodable> {
        let is_canonical = resource.strategy.raw_field().is_empty();
        let passed_on = if is_canonical { PASSED_ON_BY_DELETION } else { PASSED_ON };
        self.derive_leaving(resource, version, stored, passed_on).await
    }

    async fn derive_leaving(
        &self,
        resource: &Resource,
        version: &ServedVersion,
        stored: &Stored,
        passed_on: &'static [&'static [&'static str]],
    ) -> Result<Value, Undecodable> {
        let mut object = if is_known_as_raw(resource, version, stored) {
            decode_stored(stored, passed_on)?
        } else {
            self.derive_value(resource, version, decode_stored(stored, PASSED_ON)?).await?
        };
        set_resource_version(&mut object, stored.revision);
        Ok(object)
    }

    /// The object of `stored` as the starting point of a change.
    ///
    /// An earlier conversion by a webhook is used again, after it has been converted back: Kubernetes does so with the
    /// objects in its watch cache, and fails in the same way.
    pub(super) async fn derive_live(
        &self,
        resource: &Resource,
        version: &ServedVersion,
        stored: &Stored,
    ) -> Result<Value, Status> {
        let known = known(resource, version, stored);
        let Some(encoded) = known.filter(|_| resource.is_converted_by_webhook(version, stored)) else {
            return self.derive(resource, version, stored).await.map_err(|error| error.refuse_change(stored));
        };
        let mut object = decode_derived(&encoded).map_err(|error| error.refuse_change(stored))?;
        let back = self.convert_to(resource, resource.storage(), object.clone()).await;
        back.map_err(|error| Undecodable::from(error).refuse_write())?;
        set_resource_version(&mut object, stored.revision);
        Ok(object)
    }

    /// What a client gets for the stored form `raw`.
    pub async fn derive_value(
        &self,
        resource: &Resource,
        version: &ServedVersion,
        mut raw: Value,
    ) -> Result<Value, Undecodable> {
        if resource.is_served_raw(version, &raw) {
            return Ok(raw);
        }
        if resource.definition.is_none() {
            return Ok(self.convert_to(resource, version, raw).await?);
        }
        let stored_as = raw.str_at(&["apiVersion"]);
        if resource.version_of(stored_as).is_none() {
            return Err(Undecodable::FormerVersion(stored_as.to_owned()));
        }
        write::decode(&mut raw, &resource.versions, Origin::Store)?;
        Ok(self.convert_to(resource, version, raw).await?)
    }

    /// `object` in `version`; without the unknown fields that the conversion added.
    pub async fn convert_to(
        &self,
        resource: &Resource,
        version: &ServedVersion,
        object: Value,
    ) -> Result<Value, FormError> {
        if version.is_named(object.str_at(&["apiVersion"])) {
            return Ok(object);
        }
        let api_version = version.api_version();
        if let Some(converted) = resource.strategy.convert(&object, &api_version) {
            return Ok(converted);
        }
        let mut converted = self.convert.convert(resource, object, &api_version).await?;
        if resource.definition.is_some() {
            write::coerce(&mut converted, &resource.versions, Origin::Request)?;
        }
        Ok(converted)
    }
}

/// Errors: the size limit for objects that are served.
fn within_bound(encoded: Encoded) -> Result<Encoded, Undecodable> {
    match encoded.bytes().len() {
        bytes if bytes > DERIVED_BYTES_MAX => Err(Undecodable::TooLarge { bytes }),
        _ => Ok(encoded),
    }
}

/// What clients get for `stored` in `version`, if that is already known.
fn known(resource: &Resource, version: &ServedVersion, stored: &Stored) -> Option<Encoded> {
    if is_known_as_raw(resource, version, stored) {
        return Some(stored.raw());
    }
    stored.derived(resource.api_version_of(version), resource.schema_generation())
}

/// Whether it is already known that clients get `stored` in `version` unchanged.
fn is_known_as_raw(resource: &Resource, version: &ServedVersion, stored: &Stored) -> bool {
    let is_stored_in = version.group == resource.storage().group && *version.version == *stored.stored_version;
    is_stored_in && stored.is_served_raw(resource.schema_generation())
}

/// The stored form of an object; the values at these paths are not decoded.
fn decode_stored(stored: &Stored, passed_on: &'static [&'static [&'static str]]) -> Result<Value, Undecodable> {
    if stored.is_damaged() {
        return Err(stored.garbled().into());
    }
    Ok(json::decode_leaving(&stored.bytes, passed_on)?)
}

/// The object in its derived form, without its resourceVersion.
pub(super) fn decode_derived(encoded: &Encoded) -> Result<Value, Undecodable> {
    Ok(json::decode_leaving(encoded.bytes(), PASSED_ON)?)
}

/// Writes `revision` into the metadata.
pub fn set_resource_version(object: &mut Value, revision: Revision) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("resourceVersion", Value::String(revision.to_string()));
    }
}

/// Takes the resourceVersion out of the metadata, for the store.
pub fn remove_resource_version(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("resourceVersion");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_served_has_a_bound() {
        let object = |bytes: usize| Encoded::new(format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "x".repeat(bytes)));
        assert!(within_bound(object(DERIVED_BYTES_MAX - 100)).is_ok());
        let Err(refused) = within_bound(object(DERIVED_BYTES_MAX)) else { panic!("it is too large") };
        assert!(refused.to_string().ends_with("more than 8388608"));
    }
}
