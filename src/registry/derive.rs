//! From what is stored to what is served.
//!
//! Stored bytes are the object in the version it was stored in, without its resourceVersion. What a client gets is derived
//! from them: defaults of the version they are stored in, conversion, pruning by the version asked for. Derived bytes are
//! kept with the row, by version and generation of the schemas.

use std::sync::Arc;

use crate::crd::ServedVersion;
use crate::crd::write::{self, Origin};
use crate::meta::{Revision, Status};
use crate::store::{Encoded, Stored};
use crate::value::{Value, json};

use super::{Registry, Resource};

impl Registry {
    /// The object of `stored` in `version`, ready to be sent; its resourceVersion is put in as it is written.
    pub async fn encoded(
        &self,
        resource: &Resource,
        version: &ServedVersion,
        stored: &Arc<Stored>,
    ) -> Result<Encoded, Status> {
        let generation = resource.schema_generation();
        if let Some(encoded) = stored.derived(&version.version, generation) {
            return Ok(encoded);
        }
        let raw = decode_stored(stored)?;
        let derived = self.derive_value(resource, version, raw.clone()).await?;
        let encoded = match derived == raw {
            true => stored.raw(),
            false => Encoded::new(json::encode(&derived)),
        };
        stored.keep_derived(&version.version, generation, encoded.clone());
        Ok(encoded)
    }

    /// The object of `stored` in `version`, with its resourceVersion.
    pub async fn derive(&self, resource: &Resource, version: &ServedVersion, stored: &Stored) -> Result<Value, Status> {
        let mut object = self.derive_value(resource, version, decode_stored(stored)?).await?;
        set_resource_version(&mut object, stored.revision);
        Ok(object)
    }

    /// What a client gets for the stored form `raw`.
    pub async fn derive_value(&self, resource: &Resource, version: &ServedVersion, mut raw: Value) -> Result<Value, Status> {
        if resource.definition.is_none() {
            return Ok(raw);
        }
        write::decode(&mut raw, &resource.versions, Origin::Store).map_err(|error| Status::internal_error(&error))?;
        self.convert_to(resource, version, raw).await
    }

    /// `object` in `version`; the unknown fields that conversion brought are gone.
    pub async fn convert_to(&self, resource: &Resource, version: &ServedVersion, object: Value) -> Result<Value, Status> {
        if object.str_at(&["apiVersion"]) == version.api_version() {
            return Ok(object);
        }
        let mut converted = self.convert.convert(object, version).await?;
        if resource.definition.is_some() {
            write::coerce(&mut converted, &resource.versions, Origin::Request)
                .map_err(|error| Status::internal_error(&error))?;
        }
        Ok(converted)
    }
}

/// The stored form of an object.
fn decode_stored(stored: &Stored) -> Result<Value, Status> {
    json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))
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
