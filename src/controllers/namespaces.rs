//! Namespaces: those being deleted are emptied, and their conditions show what still blocks the deletion.
//!
//! Source: the namespace controller of Kubernetes 1.37.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;

use super::changes::Controller;
use super::changes::queue_all;
use super::identity::{CONTROLLER_MANAGER, service_account};
use super::metadata::{self, Going};
use super::queue::{Progress, Queue};
use crate::kinds;
use crate::meta::{Revision, Status};
use crate::object;
use crate::registry::{DeleteRequest, ListRequest, Registry, Resource, Subresource, Target, Warnings};
use crate::store::{ChangeEvent, Collection, Moment};
use crate::value::{Value, json};

/// Its service account.
const ACCOUNT: &str = "namespace-controller";

/// The conditions of a namespace that is being deleted: what each says, with its reason, while all is well.
const CONDITIONS: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentRemoved", "All content successfully removed"),
];

/// Empties namespaces that are being deleted, and removes their own finalizer.
pub(super) struct Namespaces {
    pub registry: Arc<Registry>,
}

/// A key is the name of a namespace.
impl Controller for Namespaces {
    type Key = String;
    const AT_ONCE: usize = 16;
    const TASK: &str = "emptying a namespace";

    async fn begin(&self, queue: &mut Queue<String>) -> Result<Moment, Status> {
        queue_all(&self.registry, &self.registry.definitions.namespaces(), queue, str::to_owned).await
    }

    fn note(&self, change: &ChangeEvent, queue: &mut Queue<String>) {
        match change.key.split_once('/') {
            Some((namespace, _)) => queue.wake(namespace, Instant::now()),
            None if change.stored.is_some() && change.collection == self.registry.definitions.namespaces() => {
                queue.add(change.key.to_string(), Instant::now());
            }
            None => {}
        }
    }

    /// Continues a deletion.
    async fn reconcile(&self, name: &String) -> Result<Progress, Status> {
        let registry = &self.registry;
        let stored = registry.storage.get(&registry.definitions.namespaces(), name).await;
        let stored = stored.map_err(|error| Status::internal_error(&error.to_string()))?;
        let Some(stored) = stored else { return Ok(Progress::Done) };
        let namespace = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
        if namespace.at(&["metadata", "deletionTimestamp"]).is_none() {
            return Ok(Progress::Done);
        }
        let is_final = namespace.at(&["spec", "finalizers"]).and_then(Value::as_array).is_none_or(<[Value]>::is_empty);
        if is_final {
            return finish(registry, name).await;
        }
        let remains = empty(registry, name).await?;
        report(registry, namespace, stored.revision, &remains).await?;
        match remains {
            Remains { errors, .. } if !errors.is_empty() => Ok(Progress::Failed),
            Remains { objects, .. } if !objects.is_empty() => Ok(Progress::Waits),
            _ => finish(registry, name).await,
        }
    }
}

/// What is left of a namespace's content.
#[derive(Default)]
struct Remains {
    /// How many objects of `plural.group`.
    objects: BTreeMap<String, usize>,
    /// How many objects each finalizer blocks.
    finalizers: BTreeMap<String, usize>,
    /// Why objects could not be deleted.
    errors: BTreeSet<String>,
}

impl Remains {
    /// The content of a condition: its reason and message, if something is wrong.
    fn describe(&self, condition: &str) -> Option<(&'static str, String)> {
        let join = |texts: Vec<String>| texts.join(", ");
        match condition {
            "NamespaceDeletionContentFailure" if !self.errors.is_empty() => {
                let errors = join(self.errors.iter().cloned().collect());
                let message = format!("Failed to delete all resource types, {} remaining: {errors}", self.errors.len());
                Some(("ContentDeletionFailed", message))
            }
            "NamespaceContentRemaining" if !self.objects.is_empty() => {
                let objects = self.objects.iter();
                let objects = objects.map(|(resource, count)| format!("{resource} has {count} resource instances"));
                let message = format!("Some resources are remaining: {}", join(objects.collect()));
                Some(("SomeResourcesRemain", message))
            }
            "NamespaceFinalizersRemaining" if !self.finalizers.is_empty() => {
                let finalizers = self.finalizers.iter();
                let finalizers = finalizers.map(|(name, count)| format!("{name} in {count} resource instances"));
                let message = format!("Some finalizers are remaining: {}", join(finalizers.collect()));
                Some(("SomeFinalizersRemain", message))
            }
            _ => None,
        }
    }
}

/// Deletes everything in a namespace, and returns what is left.
async fn empty(registry: &Arc<Registry>, namespace: &str) -> Result<Remains, Status> {
    let mut remains = Remains::default();
    let mut seen = BTreeSet::new();
    for resource in registry.resources().await? {
        let version = Arc::clone(resource.first());
        // A kind in two groups is stored once.
        if !version.is_namespaced() || !seen.insert(resource.collection.clone()) {
            continue;
        }
        let mut left = Left::of(registry, &resource.collection, namespace).await?;
        if left.has_undeleted {
            if let Err(status) = delete_all(registry, &resource, namespace).await {
                remains.errors.insert(status.message);
            }
            left = Left::of(registry, &resource.collection, namespace).await?;
        }
        if left.objects == 0 {
            continue;
        }
        remains.objects.insert(format!("{}.{}", version.names.plural, version.group), left.objects);
        for (finalizer, count) in left.finalizers {
            *remains.finalizers.entry(finalizer).or_default() += count;
        }
    }
    Ok(remains)
}

/// What is left of a collection in a namespace.
#[derive(Default)]
struct Left {
    objects: usize,
    /// Whether any object was not deleted yet; others wait for finalizers.
    has_undeleted: bool,
    /// How many objects have each finalizer.
    finalizers: BTreeMap<String, usize>,
}

impl Left {
    async fn of(registry: &Registry, collection: &Collection, namespace: &str) -> Result<Self, Status> {
        let mut left = Left::default();
        let mut pages = registry.storage.pages(collection, &format!("{namespace}/"));
        let unreadable = |_| Status::internal_error("the content of a namespace can't be read");
        while let Some(page) = pages.next().await.map_err(unreadable)? {
            for stored in page.objects() {
                left.objects += 1;
                left.has_undeleted |= metadata::going(stored) != Going::Otherwise;
                for finalizer in metadata::finalizers(stored) {
                    *left.finalizers.entry(finalizer).or_default() += 1;
                }
            }
        }
        Ok(left)
    }
}

async fn delete_all(registry: &Registry, resource: &Arc<Resource>, namespace: &str) -> Result<(), Status> {
    let version = Arc::clone(resource.first());
    let (namespace, name) = (namespace.to_owned(), String::new());
    let resource = Arc::clone(resource);
    let target = Target { resource, version, subresource: Subresource::Main, namespace, name };
    let options = DeleteRequest { propagation_policy: Some("Background".to_owned()), ..DeleteRequest::default() };
    let user = service_account(ACCOUNT);
    let (mut list, mut warnings, mut outcome) = (ListRequest::in_pages(), Warnings::default(), Ok(()));
    loop {
        let page = registry.list(&target, &list).await?;
        let deleted = registry.delete_listed(&target, &page, &user, &options, &mut warnings).await;
        // What fails on one page does not keep the others.
        outcome = outcome.and(deleted);
        let Some(next) = page.next_at_newest(&target) else { return outcome };
        list.at = next;
    }
}

/// Writes what is left into the conditions. If a client has changed the namespace meanwhile, nothing is written, and it
/// is handled again.
async fn report(
    registry: &Arc<Registry>,
    mut namespace: Value,
    revision: Revision,
    remains: &Remains,
) -> Result<(), Status> {
    let now = crate::meta::time::format_seconds(registry.clock.now());
    let before = namespace.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    let mut conditions = before.clone();
    for (type_, reason, message) in CONDITIONS {
        let (status, reason, message) = match remains.describe(type_) {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", reason, message.to_owned()),
        };
        let known = conditions.iter_mut().find(|condition| condition.str_at(&["type"]) == type_);
        let since = known.as_ref().filter(|known| known.str_at(&["status"]) == status);
        let since = since.map_or(now.as_str(), |known| known.str_at(&["lastTransitionTime"])).to_owned();
        let condition = object! {
            "type" => type_,
            "status" => status,
            "lastTransitionTime" => since,
            "reason" => reason,
            "message" => message,
        };
        match known {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
    }
    if conditions == before {
        return Ok(());
    }
    namespace.make_object().entry("status").make_object().insert("conditions", Value::Array(conditions));
    let metadata = namespace.make_object().entry("metadata").make_object();
    metadata.insert("resourceVersion", Value::String(revision.to_string()));
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let target = target(registry, &name, Subresource::Status).await?;
    let user = service_account(ACCOUNT);
    match registry.write_status(&target, &user, CONTROLLER_MANAGER, namespace).await {
        Err(status) if !matches!(status.code, 404 | 409) => Err(status),
        _ => Ok(()),
    }
}

/// Removes the namespace's own finalizer, so that the namespace is deleted.
async fn finish(registry: &Arc<Registry>, name: &str) -> Result<Progress, Status> {
    let target = target(registry, name, Subresource::Part(kinds::namespaces::FINALIZE)).await?;
    match registry.finalize_namespace(&target, &service_account(ACCOUNT)).await {
        Err(status) if status.code != 404 => Err(status),
        // What others still keep is looked at again when they change it.
        _ => Ok(Progress::Done),
    }
}

async fn target(registry: &Arc<Registry>, name: &str, subresource: Subresource) -> Result<Target, Status> {
    let resource = registry.resolve("", "namespaces").await?.ok_or_else(Status::not_found_generic)?;
    let version = Arc::clone(resource.first());
    Ok(Target { resource, version, subresource, namespace: String::new(), name: name.to_owned() })
}
