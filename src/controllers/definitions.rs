//! Definitions: names are accepted, definitions established, and those being deleted emptied.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::time::timeout;

use super::{MANAGER, RETRY_AFTER, user};
use crate::crd::names::{self, condition};
use crate::crd::strategy::CLEANUP_FINALIZER;
use crate::crd::{Definition, approval, definition};
use crate::meta::{Revision, Status};
use crate::registry::{DeleteOptions, ListRequest, Registry, Subresource, Target};
use crate::store::At;
use crate::value::{Value, json};

/// Acts on every change of a definition, and again on what did not come to an end.
pub(super) async fn run(registry: &Arc<Registry>) {
    let collection = registry.definitions.collection();
    let mut after = Revision::default();
    loop {
        let pending = match sync(registry).await {
            Ok((revision, pending)) => {
                after = after.max(revision);
                pending
            }
            Err(status) => {
                tracing::warn!(message = status.message, "definitions could not be seen to, it will be tried again");
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

/// Brings every definition as far as it goes; returns the revision it looked at, and whether something is left to wait for.
async fn sync(registry: &Arc<Registry>) -> Result<(Revision, bool), Status> {
    let failed = |error: &dyn std::fmt::Display| Status::internal_error(&error.to_string());
    let snapshot = registry.storage.snapshot(&registry.definitions.collection(), At::Newest).await;
    let snapshot = snapshot.map_err(|_| failed(&"definitions can't be read"))?;
    let mut groups: BTreeMap<String, Vec<Definition>> = BTreeMap::new();
    for stored in snapshot.range("", None) {
        let object = json::decode(&stored.bytes).map_err(|error| failed(&error))?;
        let (mut definition, _) = definition::decode(&object).map_err(|error| failed(&error))?;
        let revision = Value::String(stored.revision.to_string());
        definition.metadata.make_object().insert("resourceVersion", revision);
        groups.entry(definition.spec.group.clone()).or_default().push(definition);
    }
    let mut pending = false;
    for definitions in groups.values_mut() {
        for at in 0..definitions.len() {
            let now = crate::meta::time::format_seconds((registry.clock)());
            if let Some(decided) = names::accept(&definitions[at], definitions.iter(), &now) {
                definitions[at] = write(registry, decided).await?;
            }
            if let Some(established) = names::establish(&definitions[at], &now) {
                definitions[at] = write(registry, established).await?;
            }
            if let Some(recorded) = approval::record(&definitions[at], &now) {
                definitions[at] = write(registry, recorded).await?;
            }
            pending |= finalize(registry, &definitions[at], &now).await?;
        }
    }
    Ok((snapshot.revision(), pending))
}

/// Writes the status (and finalizers) of a definition; what changed meanwhile wins, and is looked at again.
async fn write(registry: &Arc<Registry>, wanted: Definition) -> Result<Definition, Status> {
    let target = target(registry, wanted.name()).await?;
    match registry.write_status(&target, &user(), MANAGER, wanted.encode()).await {
        Ok(written) => Ok(definition::decode(&written.object).map_or(wanted, |(definition, _)| definition)),
        Err(status) if matches!(status.code, 404 | 409) => Ok(wanted),
        Err(status) => Err(status),
    }
}

async fn target(registry: &Arc<Registry>, name: &str) -> Result<Target, Status> {
    let resource = registry.resolve("apiextensions.k8s.io", "customresourcedefinitions").await?;
    let resource = resource.ok_or_else(Status::not_found_generic)?;
    let version = Arc::clone(resource.storage());
    Ok(Target { resource, version, subresource: Subresource::Status, namespace: String::new(), name: name.to_owned() })
}

/// Deletes the objects of a definition that is being deleted; true while some of them stay.
async fn finalize(registry: &Arc<Registry>, definition: &Definition, now: &str) -> Result<bool, Status> {
    let held = definition.metadata.get("finalizers").and_then(Value::as_array).unwrap_or_default();
    if !definition.is_being_deleted() || !held.iter().any(|name| name.as_str() == Some(CLEANUP_FINALIZER)) {
        return Ok(false);
    }
    let mut marked = definition.clone();
    if !definition.condition("Terminating").is_some_and(|known| known.reason == "InstanceDeletionInProgress") {
        let message = "CustomResource deletion is in progress";
        marked.set_condition(condition("Terminating", "True", "InstanceDeletionInProgress", message), now);
        marked = write(registry, marked).await?;
    }
    let done = if !definition.is_true("Established") {
        condition("Terminating", "False", "NeverEstablished", "resource was never established")
    } else if delete_objects(registry, definition).await? {
        condition("Terminating", "False", "InstanceDeletionCompleted", "removed all instances")
    } else {
        return Ok(true);
    };
    marked.set_condition(done, now);
    let metadata = marked.metadata.make_object();
    if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") {
        finalizers.retain(|name| name.as_str() != Some(CLEANUP_FINALIZER));
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        }
    }
    write(registry, marked).await?;
    Ok(false)
}

/// Deletes what is left of a definition's objects; true once none is.
async fn delete_objects(registry: &Arc<Registry>, definition: &Definition) -> Result<bool, Status> {
    let names = &definition.status.accepted_names;
    let Some(resource) = registry.resolve(&definition.spec.group, &names.plural).await? else { return Ok(true) };
    let version = Arc::clone(resource.storage());
    let target =
        Target { resource, version, subresource: Subresource::Main, namespace: String::new(), name: String::new() };
    let everything = ListRequest::default();
    registry.delete_collection(&target, &user(), &everything, &DeleteOptions::default()).await?;
    Ok(registry.list(&target, &everything).await?.items.is_empty())
}
