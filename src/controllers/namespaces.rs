//! Namespaces: those being deleted are emptied.

use std::sync::Arc;

use tokio::time::timeout;

use super::{RETRY_AFTER, user};
use crate::meta::{Revision, Status};
use crate::registry::{DeleteOptions, ListRequest, Registry, Subresource, Target};
use crate::store::At;
use crate::value::json;

/// Acts on every namespace that is being deleted.
pub(super) async fn run(registry: &Arc<Registry>) {
    let collection = registry.definitions.namespaces();
    let mut after = Revision::default();
    loop {
        let pending = match sync(registry).await {
            Ok((revision, pending)) => {
                after = after.max(revision);
                pending
            }
            Err(status) => {
                tracing::warn!(message = status.message, "namespaces could not be seen to, it will be tried again");
                true
            }
        };
        let Ok(mut changes) = registry.storage.watch(&collection, after).await else {
            after = registry.storage.revision();
            continue;
        };
        match pending {
            true => _ = timeout(RETRY_AFTER, changes.next()).await,
            false => _ = changes.next().await,
        }
    }
}

/// Empties what is being deleted; returns the revision it looked at, and whether something is left to wait for.
async fn sync(registry: &Arc<Registry>) -> Result<(Revision, bool), Status> {
    let snapshot = registry.storage.snapshot(&registry.definitions.namespaces(), At::Newest).await;
    let snapshot = snapshot.map_err(|_| Status::internal_error("namespaces can't be read"))?;
    let mut pending = false;
    for stored in snapshot.range("", None) {
        let namespace = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
        if namespace.at(&["metadata", "deletionTimestamp"]).is_none() {
            continue;
        }
        match empty(registry, &stored.key).await? {
            true => finish(registry, &stored.key).await?,
            false => pending = true,
        }
    }
    Ok((snapshot.revision(), pending))
}

/// Deletes everything in a namespace; true once nothing is left.
async fn empty(registry: &Arc<Registry>, namespace: &str) -> Result<bool, Status> {
    let mut empty = true;
    for resource in registry.resources().await? {
        let version = Arc::clone(resource.storage());
        if !version.is_namespaced() {
            continue;
        }
        let target = Target {
            resource,
            version,
            subresource: Subresource::Main,
            namespace: namespace.to_owned(),
            name: String::new(),
        };
        let everything = ListRequest::default();
        registry.delete_collection(&target, &user(), &everything, &DeleteOptions::default()).await?;
        empty &= registry.list(&target, &everything).await?.items.is_empty();
    }
    Ok(empty)
}

/// Takes the namespace's own finalizer away, so that it goes.
async fn finish(registry: &Arc<Registry>, name: &str) -> Result<(), Status> {
    let resource = registry.resolve("", "namespaces").await?.ok_or_else(Status::not_found_generic)?;
    let version = Arc::clone(resource.storage());
    let target =
        Target { resource, version, subresource: Subresource::Finalize, namespace: String::new(), name: name.to_owned() };
    match registry.finalize_namespace(&target, &user()).await {
        Err(status) if status.code != 404 => Err(status),
        _ => Ok(()),
    }
}
