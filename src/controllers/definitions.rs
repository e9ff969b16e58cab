//! Definitions: names are accepted, definitions established, and those being deleted emptied.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::time::timeout;

use super::{MANAGER, RETRY_AFTER, user};
use crate::crd::definition::Condition;
use crate::crd::names::{self, condition};
use crate::crd::strategy::CLEANUP_FINALIZER;
use crate::crd::{Definition, approval, definition};
use crate::meta::{Revision, Status};
use crate::registry::{DeleteOptions, ListRequest, Registry, Subresource, Target};
use crate::store::{At, Stored};
use crate::value::{Value, json};

/// What was looked at last of each group in which nothing was left to do: its definitions and their revisions.
///
/// Names are a matter within a group, so a change is seen to without reading the definitions of all others again.
type Settled = HashMap<String, Vec<(Arc<str>, Revision)>>;

/// Acts on every change of a definition, and again on what did not come to an end.
pub(super) async fn run(registry: &Arc<Registry>) {
    let collection = registry.definitions.collection();
    let (mut after, mut settled) = (Revision::default(), Settled::new());
    loop {
        let pending = match sync(registry, &mut settled).await {
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
async fn sync(registry: &Arc<Registry>, settled: &mut Settled) -> Result<(Revision, bool), Status> {
    let snapshot = registry.storage.snapshot(&registry.definitions.collection(), At::Newest).await;
    let snapshot = snapshot.map_err(|_| failed(&"definitions can't be read"))?;
    let mut groups: BTreeMap<&str, Vec<&Stored>> = BTreeMap::new();
    for stored in snapshot.range("", None) {
        // The name of a definition is `plural.group`.
        let group = stored.key.split_once('.').map_or("", |(_, group)| group);
        groups.entry(group).or_default().push(stored);
    }
    settled.retain(|group, _| groups.contains_key(group.as_str()));
    let mut pending = false;
    for (group, stored) in groups {
        let seen = stored.iter().map(|stored| (Arc::clone(&stored.key), stored.revision)).collect();
        if settled.get(group) == Some(&seen) {
            continue;
        }
        match sync_group(registry, &stored).await? {
            true => pending = true,
            // A definition that was written has another revision now, and is looked at once more.
            false => _ = settled.insert(group.to_owned(), seen),
        }
    }
    Ok((snapshot.revision(), pending))
}

/// Brings the definitions of a group as far as they go; returns whether something is left to wait for.
async fn sync_group(registry: &Arc<Registry>, stored: &[&Stored]) -> Result<bool, Status> {
    let mut definitions = stored.iter().map(|stored| decode(stored)).collect::<Result<Vec<_>, _>>()?;
    let mut pending = false;
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
    Ok(pending)
}

/// A definition with its resourceVersion.
fn decode(stored: &Stored) -> Result<Definition, Status> {
    let object = json::decode(&stored.bytes).map_err(|error| failed(&error))?;
    let (mut definition, _) = definition::decode(&object).map_err(|error| failed(&error))?;
    let revision = Value::String(stored.revision.to_string());
    definition.metadata.make_object().insert("resourceVersion", revision);
    Ok(definition)
}

fn failed(error: &dyn std::fmt::Display) -> Status {
    Status::internal_error(&error.to_string())
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
    if definition.condition("Terminating").is_none_or(|known| !IN_PROGRESS.contains(&known.reason.as_str())) {
        let message = "CustomResource deletion is in progress";
        marked.set_condition(condition("Terminating", "True", "InstanceDeletionInProgress", message), now);
        marked = write(registry, marked).await?;
    }
    let emptied = match definition.is_true("Established") {
        true => delete_objects(registry, definition).await?,
        false => Emptied::Done(condition("Terminating", "False", "NeverEstablished", "resource was never established")),
    };
    match emptied {
        Emptied::Done(condition) => marked.set_condition(condition, now),
        Emptied::NotYet => return Ok(true),
        Emptied::Failed(message) => {
            marked.set_condition(condition("Terminating", "True", "InstanceDeletionFailed", &message), now);
            write(registry, marked).await?;
            return Ok(true);
        }
    }
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

/// Reasons of `Terminating` that stay until the objects are gone.
const IN_PROGRESS: [&str; 2] = ["InstanceDeletionInProgress", "InstanceDeletionFailed"];

/// How far the objects of a definition are deleted.
enum Emptied {
    /// None is left; the condition that says so.
    Done(Condition),
    /// Some stay for their finalizers.
    NotYet,
    /// They can't be read or deleted, for this reason.
    Failed(String),
}

/// Deletes what is left of a definition's objects.
async fn delete_objects(registry: &Arc<Registry>, definition: &Definition) -> Result<Emptied, Status> {
    let done = Emptied::Done(condition("Terminating", "False", "InstanceDeletionCompleted", "removed all instances"));
    let names = &definition.status.accepted_names;
    let Some(resource) = registry.resolve(&definition.spec.group, &names.plural).await? else { return Ok(done) };
    let version = Arc::clone(resource.storage());
    let target =
        Target { resource, version, subresource: Subresource::Main, namespace: String::new(), name: String::new() };
    let everything = ListRequest::default();
    if let Err(status) = registry.list(&target, &everything).await {
        return Ok(Emptied::Failed(format!("could not list instances: {}", status.message)));
    }
    if let Err(status) = registry.delete_collection(&target, &user(), &everything, &DeleteOptions::default()).await {
        return Ok(Emptied::Failed(format!("could not issue all deletes: {}", status.message)));
    }
    Ok(match registry.list(&target, &everything).await?.items.is_empty() {
        true => done,
        false => Emptied::NotYet,
    })
}
