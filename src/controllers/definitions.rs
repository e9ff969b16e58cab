//! Definitions: names are accepted, definitions established, and those being deleted emptied; the APIServices of their
//! versions are seen to.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::changes::Controller;
use super::changes::queue_all;
use super::first_error::FirstError;
use super::identity::{MANAGER, user};
use super::queue::{Progress, Queue};
use crate::crd::definition::Condition;
use crate::crd::names::{self, condition};
use crate::crd::strategy::CLEANUP_FINALIZER;
use crate::crd::{Definition, Names, approval, definition};
use crate::meta::{Revision, Status};
use crate::registry::{ListRequest, Registry, Subresource, Target};
use crate::store::{At, ChangeEvent, Moment, Stored};
use crate::value::{Value, json};

/// Decides on definitions, and empties those that are being deleted.
pub(super) struct Definitions {
    registry: Arc<Registry>,
    /// By group.
    known: Mutex<HashMap<String, KnownGroup>>,
}

/// The definitions of a group, by name. Those for which nothing is left to do are kept: they are decoded again only when
/// they have changed.
type KnownGroup = BTreeMap<Arc<str>, KnownDefinition>;

struct KnownDefinition {
    revision: Revision,
    accepted: Names,
    /// Whether nothing is left to do until it changes.
    is_settled: bool,
}

impl KnownDefinition {
    fn of(definition: &Definition, revision: Revision) -> Self {
        let accepted = definition.status.accepted_names.clone();
        let has_names = definition.spec.names == accepted && definition.is_true("Established");
        let is_recorded = || approval::record(definition, "").is_none();
        KnownDefinition { revision, accepted, is_settled: has_names && !definition.is_being_deleted() && is_recorded() }
    }
}

/// A key is a group: names only conflict within a group, so a change is handled without reading the definitions of
/// other groups.
impl Controller for Definitions {
    type Key = String;
    const AT_ONCE: usize = 16;
    const TASK: &str = "seeing to definitions";

    async fn begin(&self, queue: &mut Queue<String>) -> Result<Moment, Status> {
        queue_all(&self.registry, &self.registry.definitions.collection(), queue, |name| group_of(name).to_owned())
            .await
    }

    fn note(&self, change: &ChangeEvent, queue: &mut Queue<String>) {
        if change.collection == self.registry.definitions.collection() {
            queue.add(group_of(&change.key).to_owned(), Instant::now());
        } else if change.stored.is_none()
            && let Some((group, _)) = change.collection.as_str().split_once('/')
        {
            queue.wake_early(group, Instant::now());
        }
    }

    async fn reconcile(&self, group: &String) -> Result<Progress, Status> {
        let collection = self.registry.definitions.collection();
        let snapshot = self.registry.storage.snapshot(&collection, At::Newest).await;
        let snapshot = snapshot.map_err(|_| failed(&"definitions can't be read"))?;
        let stored: Vec<_> = snapshot.range("", None).filter(|stored| group_of(&stored.key) == group).collect();
        let synced = self.sync_group(group, &stored).await;
        let registered = self.registry.register_versions(group).await;
        synced.and_then(|progress| registered.map(|()| progress))
    }
}

/// The group of a definition: its name is `plural.group`.
fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

impl Definitions {
    pub fn new(registry: Arc<Registry>) -> Self {
        Definitions { registry, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, KnownGroup>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Advances the definitions of a group as far as possible; one that can't be written does not hold up the others.
    async fn sync_group(&self, group: &str, stored: &[&Arc<Stored>]) -> Result<Progress, Status> {
        // A group is handled once at a time.
        let before = self.known().remove(group).unwrap_or_default();
        let mut known = known_of(before, stored)?;
        let (mut progress, mut failed) = (Progress::Done, FirstError::default());
        for stored in stored {
            if known.get(&stored.key).is_some_and(|known| known.is_settled) {
                continue;
            }
            let (advanced, accepted) = advance(&self.registry, decode(stored)?, &known).await;
            if let Some(known) = known.get_mut(&stored.key) {
                known.accepted = accepted;
            }
            progress = sooner(progress, failed.keep(advanced).unwrap_or(Progress::Done));
        }
        known.retain(|_, known| known.is_settled);
        if !known.is_empty() {
            self.known().insert(group.to_owned(), known);
        }
        failed.end()?;
        Ok(progress)
    }
}

/// What is known of the definitions of a group, after those that have changed were read.
fn known_of(mut before: KnownGroup, stored: &[&Arc<Stored>]) -> Result<KnownGroup, Status> {
    let mut known = KnownGroup::default();
    for stored in stored {
        let same = before.remove(&stored.key).filter(|known| known.revision == stored.revision);
        let definition = match same {
            Some(same) => same,
            None => KnownDefinition::of(&decode(stored)?, stored.revision),
        };
        known.insert(Arc::clone(&stored.key), definition);
    }
    Ok(known)
}

/// Advances one of the definitions of a group as far as possible; returns the names that it has then.
async fn advance(
    registry: &Arc<Registry>,
    mut definition: Definition,
    group: &KnownGroup,
) -> (Result<Progress, Status>, Names) {
    let advanced = async {
        let now = crate::meta::time::format_seconds(registry.clock.now());
        let in_group = group.values().map(|known| &known.accepted);
        if let Some(decided) = names::accept(&definition, in_group, &now) {
            definition = write(registry, decided).await?;
        }
        if let Some(established) = names::establish(&definition, &now) {
            definition = write(registry, established).await?;
        }
        if let Some(recorded) = approval::record(&definition, &now) {
            definition = write(registry, recorded).await?;
        }
        finalize(registry, &definition, &now).await
    };
    (advanced.await, definition.status.accepted_names)
}

/// The progress of two definitions: that of the one that must be handled again first.
fn sooner(one: Progress, other: Progress) -> Progress {
    match (one, other) {
        (Progress::Failed, _) | (_, Progress::Failed) => Progress::Failed,
        (Progress::After(one), Progress::After(other)) => Progress::After(one.min(other)),
        (Progress::Done, other) | (Progress::Waits, other @ Progress::After(_)) => other,
        (one, _) => one,
    }
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

/// Writes the status (and finalizers) of a definition; if it has changed meanwhile, nothing is written, and it is
/// handled again.
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

/// Deletes the objects of a definition that is being deleted, and removes its finalizer once there are none.
async fn finalize(registry: &Arc<Registry>, definition: &Definition, now: &str) -> Result<Progress, Status> {
    let held = definition.metadata.get("finalizers").and_then(Value::as_array).unwrap_or_default();
    if !definition.is_being_deleted() || !held.iter().any(|name| name.as_str() == Some(CLEANUP_FINALIZER)) {
        return Ok(Progress::Done);
    }
    let mut marked = definition.clone();
    if definition.condition("Terminating").is_none_or(|known| !IN_PROGRESS.contains(&known.reason.as_str())) {
        let message = "CustomResource deletion is in progress";
        marked.set_condition(condition("Terminating", "True", "InstanceDeletionInProgress", message), now);
        marked = write(registry, marked).await?;
    }
    let emptied = if OVERLAPPING.contains(&(definition.spec.group.as_str(), definition.spec.names.plural.as_str())) {
        let message = "instances overlap with built-in resources in storage";
        Emptied::Done(condition("Terminating", "False", "OverlappingBuiltInResource", message))
    } else if definition.is_true("Established") {
        delete_objects(registry, definition).await?
    } else {
        Emptied::Done(condition("Terminating", "False", "NeverEstablished", "resource was never established"))
    };
    match emptied {
        Emptied::Done(condition) => marked.set_condition(condition, now),
        Emptied::NotYet => return wait(registry, &marked, now).await,
        Emptied::Failed(message) => {
            marked.set_condition(condition("Terminating", "True", "InstanceDeletionFailed", &message), now);
            write(registry, marked).await?;
            return Ok(Progress::Failed);
        }
    }
    release(&mut marked);
    write(registry, marked).await?;
    Ok(Progress::Done)
}

/// Removes the finalizer that keeps a definition until its objects are gone.
fn release(definition: &mut Definition) {
    let metadata = definition.metadata.make_object();
    if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") {
        finalizers.retain(|name| name.as_str() != Some(CLEANUP_FINALIZER));
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        }
    }
}

/// Waits for objects that their finalizers keep. Once they have stayed for a minute, the condition tells of them; every
/// minute, what is left is deleted again.
async fn wait(registry: &Arc<Registry>, definition: &Definition, now: &str) -> Result<Progress, Status> {
    let since =
        definition.condition("Terminating").and_then(|known| known.last_transition_time.parse::<Timestamp>().ok());
    let waited = since.map_or(SignedDuration::ZERO, |since| registry.clock.now().duration_since(since));
    let left = GONE_WITHIN.saturating_sub(waited.try_into().unwrap_or_default());
    if !left.is_zero() {
        return Ok(Progress::After(left));
    }
    let message = "could not confirm zero CustomResources remaining: context deadline exceeded";
    let told = condition("Terminating", "True", "InstanceDeletionCheck", message);
    if let Some(told) = definition.with_condition(told, now) {
        write(registry, told).await?;
    }
    Ok(Progress::After(GONE_WITHIN))
}

/// How long objects may stay before the condition tells of them.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// Groups and plurals of definitions whose objects would be stored among those of built-in kinds: none is deleted.
const OVERLAPPING: [(&str, &str); 2] =
    [("apiregistration.k8s.io", "apiservices"), ("apiextensions.k8s.io", "customresourcedefinitions")];

/// Reasons of `Terminating` that stay until the objects are gone.
const IN_PROGRESS: [&str; 3] = ["InstanceDeletionInProgress", "InstanceDeletionFailed", "InstanceDeletionCheck"];

/// The progress of deleting the objects of a definition.
enum Emptied {
    /// None is left; this is the condition for that.
    Done(Condition),
    /// Some stay because of their finalizers.
    NotYet,
    /// They can't be read or deleted, for this reason.
    Failed(String),
}

/// Deletes what is left of a definition's objects.
async fn delete_objects(registry: &Arc<Registry>, definition: &Definition) -> Result<Emptied, Status> {
    let done = Emptied::Done(condition("Terminating", "False", "InstanceDeletionCompleted", "removed all instances"));
    let names = &definition.status.accepted_names;
    // The objects of a built-in kind with that name are not its own.
    let resource = registry.resolve(&definition.spec.group, &names.plural).await?;
    let Some(resource) = resource.filter(|resource| resource.definition.is_some()) else { return Ok(done) };
    let unlisted = |why: &str| Ok(Emptied::Failed(format!("could not list instances: {why}")));
    if let Some(fault) = resource.conversion.fault() {
        let (plural, group) = (&names.plural, &definition.spec.group);
        return unlisted(&format!("unable to find a custom resource client for {plural}.{group}: {fault}"));
    }
    let version = Arc::clone(resource.storage());
    let target =
        Target { resource, version, subresource: Subresource::Main, namespace: String::new(), name: String::new() };
    let everything = ListRequest::in_pages();
    let (mut list, mut outcome) = (everything.clone(), Ok(()));
    loop {
        let page = match registry.list(&target, &list).await {
            Ok(page) => page,
            Err(status) => return unlisted(&status.message),
        };
        // What fails on one page does not keep the others.
        outcome = outcome.and(registry.delete_all_unasked(&target, &page).await);
        match page.next_at_newest(&target) {
            Some(next) => list.at = next,
            None => break,
        }
    }
    if let Err(status) = outcome {
        return Ok(Emptied::Failed(format!("could not issue all deletes: {}", status.message)));
    }
    Ok(if registry.list(&target, &everything).await?.items.is_empty() { done } else { Emptied::NotYet })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::client::Kind;
    use crate::controllers::fixture::{oversized, read, store};
    use crate::registry::fixture;

    const DEFINITIONS: Kind = Kind("apiextensions.k8s.io", "customresourcedefinitions");

    #[tokio::test]
    async fn a_definition_that_can_not_be_written_holds_up_no_other() {
        let registry = fixture::registry().await;
        for (plural, kind) in [("as", "A"), ("bs", "B")] {
            let definition = read(&format!(
                "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {plural}.g.io, uid: u}}, \
                 spec: {{group: g.io, scope: Namespaced, names: {{plural: {plural}, kind: {kind}, singular: {plural}, listKind: \
                 {kind}List}}, conversion: {{strategy: None}}, versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: \
                 {{type: object}}}}}}]}}}}"
            ));
            let definition = if plural == "as" { oversized(definition) } else { definition };
            store(&registry, DEFINITIONS, &format!("{plural}.g.io"), &definition).await;
        }
        let definitions = Definitions::new(Arc::clone(&registry));
        assert!(definitions.reconcile(&"g.io".to_owned()).await.is_err());
        let stored = registry.storage.get(&DEFINITIONS.collection(), "bs.g.io").await.expect("the store works");
        assert!(decode(&stored.expect("it is there")).is_ok_and(|definition| definition.is_true("Established")));
    }

    #[tokio::test]
    async fn a_definition_that_has_not_changed_is_not_decoded_again() {
        let registry = fixture::registry().await;
        let register = async |plural: &str| {
            let definition = read(&format!(
                "{{metadata: {{name: {plural}.g.io}}, spec: {{group: g.io, scope: Namespaced, names: {{plural: {plural}, kind: \
                 K{plural}}}, versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object}}}}}}]}}}}"
            ));
            registry.register(definition).await.expect("it is valid");
        };
        let definitions = Definitions::new(Arc::clone(&registry));
        let decoded = async || {
            let before = json::tally::decoded();
            definitions.reconcile(&"g.io".to_owned()).await.expect("nothing stands in the way");
            json::tally::decoded() - before
        };
        for plural in ["as", "bs", "cs"] {
            register(plural).await;
        }
        decoded().await;
        assert_eq!((decoded().await, decoded().await), (3, 0), "each was written");
        register("ds").await;
        let few = decoded().await;
        assert!(few < 12, "{few}");
        assert_eq!((decoded().await, decoded().await), (1, 0));
        register("as").await;
        decoded().await;
        assert_eq!(decoded().await, 0);
        let is_established = async |plural: &str| {
            let stored = registry.storage.get(&DEFINITIONS.collection(), &format!("{plural}.g.io")).await;
            decode(&stored.expect("the store works").expect("it is there")).is_ok_and(|it| it.is_true("Established"))
        };
        assert!(is_established("as").await && is_established("ds").await);
    }
}
