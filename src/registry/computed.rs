//! Objects that describe what is served. They are not stored until a client changes them.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::identity::{API_SERVER_MANAGER, own_user};
use super::{Registry, Target, store_failed};
use crate::auth::UserInfo;
use crate::crd::ServedVersion;
use crate::kinds::strategy::Subresource;
use crate::kinds::{self, Computed, ServiceObject};
use crate::meta::{Revision, Status, names};
use crate::object;
use crate::store::At;
use crate::value::{Value, json};
use futures_util::future::BoxFuture;

pub(super) const GROUP: &str = "apiregistration.k8s.io";

impl Registry {
    /// The objects of a computed kind as of now, and the revision of that state.
    pub async fn computed(&self, computed: Computed) -> Result<(Vec<Value>, Option<Revision>), Status> {
        Ok(match computed {
            Computed::Services(object) => {
                let (services, revision) = self.api_services(object).await?;
                (services, Some(revision))
            }
            Computed::Components(objects) => (objects(), None),
        })
    }

    /// An APIService for each served version of each group except their own, sorted by name, and the revision of that
    /// state.
    ///
    /// They are as old as the namespace `default`, that is, as the database.
    async fn api_services(&self, object: ServiceObject) -> Result<(Vec<Value>, Revision), Status> {
        let namespaces = self.definitions.namespaces();
        let first = self.storage.get(&namespaces, "default").await;
        let first = first.map_err(|error| store_failed(&namespaces, "get", error))?;
        let first = first.and_then(|stored| json::decode(&stored.bytes).ok()).unwrap_or_default();
        let since = first.str_at(&["metadata", "creationTimestamp"]);
        let mut served = BTreeSet::new();
        for resource in self.resources().await?.iter().filter(|resource| resource.storage().group != GROUP) {
            let is_built_in = resource.definition.is_none();
            for version in resource.versions.iter().filter(|version| version.served) {
                served.insert((version.version.clone(), version.group.clone(), is_built_in));
            }
        }
        let revision = self.storage.revision(&self.definitions.collection());
        let stored = self.stored_services().await?;
        let name = |service: &Value| service.str_at(&["metadata", "name"]).to_owned();
        let known: BTreeSet<_> = stored.iter().map(name).collect();
        let services = served.iter().map(|(version, group, is_built_in)| {
            let mut service = object(group, version, *is_built_in, since);
            let metadata = service.make_object().entry("metadata").make_object();
            let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
            let uid = Uuid::from_u128(digest(name)).to_string();
            metadata.insert("creationTimestamp", Value::from(since));
            metadata.insert("resourceVersion", Value::String(revision.to_string()));
            metadata.insert("uid", Value::String(uid));
            service
        });
        let made = services.filter(|service| !known.contains(service.str_at(&["metadata", "name"])));
        let mut services: Vec<Value> = made.chain(stored.iter().cloned()).collect();
        services.sort_by_key(name);
        Ok((services, revision))
    }

    async fn stored_services(&self) -> Result<Vec<Value>, Status> {
        let target = self.own_target(GROUP, "apiservices", "").await?;
        let collection = &target.resource.collection;
        let snapshot = self.storage.snapshot(collection, At::Newest).await;
        let snapshot = snapshot.map_err(|_| Status::internal_error("the APIServices can't be read"))?;
        let mut services = Vec::new();
        for stored in snapshot.range("", None) {
            let service = self.derive(&target.resource, &target.version, stored).await;
            services.push(service.map_err(|error| error.refuse_read(collection, stored))?);
        }
        Ok(services)
    }

    /// Stores the object of `target`, which has been computed for each read until now, because it is about to be
    /// changed.
    pub fn store_computed<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.store_computed_once(target))
    }

    /// [`Registry::store_computed`] before a client creates an object of this name: the client must find that it
    /// exists.
    pub(super) async fn store_computed_of_client(
        &self,
        target: &Target,
        user: &UserInfo,
        name: &str,
    ) -> Result<(), Status> {
        let version = &target.version;
        let is_name = names::is_path_segment(name, false).is_empty();
        if service_object(version).is_none() || user.name == own_user().name || !is_name {
            return Ok(());
        }
        self.store_computed(&Target { name: name.to_owned(), ..target.clone() }).await
    }

    async fn store_computed_once(&self, target: &Target) -> Result<(), Status> {
        let main = Target { subresource: Subresource::Main, ..target.clone() };
        let Some(object) = service_object(&target.version) else { return Ok(()) };
        if target.name.is_empty() || self.stored(&main).await?.is_some() {
            return Ok(());
        }
        let (services, _) = self.api_services(object).await?;
        let Some(service) = services.into_iter().find(|service| service.str_at(&["metadata", "name"]) == target.name)
        else {
            return Ok(());
        };
        let metadata = object! {
            "name" => target.name.as_str(),
            "labels" => service.at(&["metadata", "labels"]).cloned().unwrap_or_default(),
        };
        let service = object! { "metadata" => metadata, "spec" => service.get("spec").cloned().unwrap_or_default() };
        let version = &target.version;
        match self.create_own(&version.group, &version.names.plural, "", API_SERVER_MANAGER, service).await {
            Err(status) if status.is_already_exists() => Ok(()),
            done => done,
        }
    }
}

/// The function that computes the objects of a kind for the groups and versions that are served.
pub(super) fn service_object(version: &ServedVersion) -> Option<ServiceObject> {
    match kinds::find(&version.group, &version.names.plural)?.computed? {
        Computed::Services(object) => Some(object),
        Computed::Components(_) => None,
    }
}

/// The first 16 bytes of a digest: the same name has the same uid each time.
fn digest(name: &str) -> u128 {
    use sha2::{Digest, Sha256};
    Sha256::digest(name).iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte))
}
