//! Objects that are not stored: they say what is served.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::{Registry, store_failed};
use crate::kinds;
use crate::meta::{Revision, Status};
use crate::value::{Value, json};

impl Registry {
    /// An APIService for each version of each group that is served, sorted by name, and the revision that shows them.
    ///
    /// They are as old as the namespace `default`, which is to say as the database.
    pub async fn api_services(&self) -> Result<(Vec<Value>, Revision), Status> {
        let namespaces = self.definitions.namespaces();
        let first = self.storage.get(&namespaces, "default").await;
        let first = first.map_err(|error| store_failed(&namespaces, "get", error))?;
        let first = first.and_then(|stored| json::decode(&stored.bytes).ok()).unwrap_or_default();
        let since = first.str_at(&["metadata", "creationTimestamp"]);
        let mut served = BTreeSet::new();
        for resource in self.resources().await? {
            let is_built_in = resource.definition.is_none();
            for version in resource.versions.iter().filter(|version| version.served) {
                served.insert((version.version.clone(), version.group.clone(), is_built_in));
            }
        }
        let revision = self.storage.revision(&self.definitions.collection());
        let services = served.iter().map(|(version, group, is_built_in)| {
            let mut service = kinds::local_api_service(group, version, *is_built_in, since);
            let metadata = service.make_object().entry("metadata").make_object();
            let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
            let uid = Uuid::from_u128(digest(name)).to_string();
            metadata.insert("creationTimestamp", Value::from(since));
            metadata.insert("resourceVersion", Value::String(revision.to_string()));
            metadata.insert("uid", Value::String(uid));
            service
        });
        Ok((services.collect(), revision))
    }
}

/// The first 16 bytes of a digest: the same name has the same uid each time.
fn digest(name: &str) -> u128 {
    use sha2::{Digest, Sha256};
    Sha256::digest(name).iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte))
}
