//! Namespaces: those being deleted are emptied, and say what still keeps them.
//!
//! Source: the namespace controller of Kubernetes 1.37.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::changes::Keys;
use super::{CONTROLLER_MANAGER, user};
use crate::meta::{Revision, Status};
use crate::object;
use crate::registry::{DeleteOptions, ListRequest, Registry, Subresource, Target};
use crate::store::At;
use crate::value::{Value, json};

/// How many namespaces are emptied at once.
const AT_ONCE: usize = 16;

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

/// Acts on every namespace that is being deleted.
pub(super) async fn run(registry: &Arc<Registry>) {
    let collection = registry.definitions.namespaces();
    let mut keys = Keys::new(vec![(collection.clone(), |_| true)]);
    loop {
        let after = registry.storage.revision();
        let snapshot = registry.storage.snapshot(&collection, At::Newest).await;
        let mut open: BTreeSet<String> =
            snapshot.iter().flat_map(|all| all.range("", None)).map(|stored| stored.key.to_string()).collect();
        let mut watching = keys.watch(registry, after).await;
        while watching {
            let mut under_way = FuturesUnordered::new();
            for name in std::mem::take(&mut open) {
                if under_way.len() == AT_ONCE {
                    open.extend(under_way.next().await.flatten());
                }
                under_way.push(try_see_to(registry, name));
            }
            while let Some(again) = under_way.next().await {
                open.extend(again);
            }
            drop(under_way);
            watching = keys.next(&mut open).await;
        }
    }
}

/// [`see_to`]; gives the name back where it is to be tried again.
async fn try_see_to(registry: &Arc<Registry>, name: String) -> Option<String> {
    let again = match see_to(registry, &name).await {
        Ok(done) => !done,
        Err(status) => {
            let message = &status.message;
            tracing::warn!(message, name, "a namespace could not be emptied, it will be tried again");
            true
        }
    };
    again.then_some(name)
}

/// Goes on with a deletion; true where nothing is left to be done.
async fn see_to(registry: &Arc<Registry>, name: &str) -> Result<bool, Status> {
    let stored = registry.storage.get(&registry.definitions.namespaces(), name).await;
    let stored = stored.map_err(|error| Status::internal_error(&error.to_string()))?;
    let Some(stored) = stored else { return Ok(true) };
    let namespace = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
    if namespace.at(&["metadata", "deletionTimestamp"]).is_none() {
        return Ok(true);
    }
    let is_final = namespace.at(&["spec", "finalizers"]).and_then(Value::as_array).is_none_or(<[Value]>::is_empty);
    if is_final {
        return finish(registry, name).await;
    }
    let remains = empty(registry, name).await?;
    report(registry, namespace, stored.revision, &remains).await?;
    match remains.is_nothing() {
        true => finish(registry, name).await,
        false => Ok(false),
    }
}

/// What is left of a namespace's content.
#[derive(Default)]
struct Remains {
    /// How many objects of `plural.group`.
    objects: BTreeMap<String, usize>,
    /// How many objects each finalizer keeps.
    finalizers: BTreeMap<String, usize>,
    /// Why objects could not be deleted.
    errors: BTreeSet<String>,
}

impl Remains {
    fn is_nothing(&self) -> bool {
        self.objects.is_empty() && self.errors.is_empty()
    }

    /// What a condition says of it: its reason and message, where not all is well.
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

/// Deletes everything in a namespace, and tells what is left.
async fn empty(registry: &Arc<Registry>, namespace: &str) -> Result<Remains, Status> {
    let mut remains = Remains::default();
    let mut seen = BTreeSet::new();
    for resource in registry.resources().await? {
        let version = Arc::clone(resource.first());
        // A kind in two groups is stored once.
        if !version.is_namespaced() || !seen.insert(resource.collection.clone()) {
            continue;
        }
        let name = format!("{}.{}", version.names.plural, version.group);
        let target = Target {
            resource,
            version,
            subresource: Subresource::Main,
            namespace: namespace.to_owned(),
            name: String::new(),
        };
        let everything = ListRequest::default();
        let options = DeleteOptions { propagation_policy: Some("Background".to_owned()), ..DeleteOptions::default() };
        if let Err(status) = registry.delete_collection(&target, &user(), &everything, &options).await {
            remains.errors.insert(status.message);
        }
        let left = registry.list(&target, &everything).await?;
        if !left.items.is_empty() {
            remains.objects.insert(name, left.items.len());
        }
        for (stored, _) in &left.items {
            let object = json::decode(&stored.bytes).unwrap_or_default();
            let finalizers = object.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
            for finalizer in finalizers.iter().filter_map(Value::as_str) {
                *remains.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
    }
    Ok(remains)
}

/// Writes what is left into the conditions. Who has changed the namespace meanwhile wins; it is looked at again.
async fn report(
    registry: &Arc<Registry>,
    mut namespace: Value,
    revision: Revision,
    remains: &Remains,
) -> Result<(), Status> {
    let now = crate::meta::time::format_seconds((registry.clock)());
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
    match registry.write_status(&target, &user(), CONTROLLER_MANAGER, namespace).await {
        Err(status) if !matches!(status.code, 404 | 409) => Err(status),
        _ => Ok(()),
    }
}

/// Takes the namespace's own finalizer away, so that it goes; true once it has gone.
async fn finish(registry: &Arc<Registry>, name: &str) -> Result<bool, Status> {
    let target = target(registry, name, Subresource::Finalize).await?;
    match registry.finalize_namespace(&target, &user()).await {
        Err(status) if status.code != 404 => Err(status),
        // What others still keep is looked at again when they change it.
        _ => Ok(true),
    }
}

async fn target(registry: &Arc<Registry>, name: &str, subresource: Subresource) -> Result<Target, Status> {
    let resource = registry.resolve("", "namespaces").await?.ok_or_else(Status::not_found_generic)?;
    let version = Arc::clone(resource.first());
    Ok(Target { resource, version, subresource, namespace: String::new(), name: name.to_owned() })
}
