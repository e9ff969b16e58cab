//! Garbage: objects are deleted after or before their owners, or their references are removed, as the deletion of the
//! owner requests.
//!
//! It reads the changes of every kind, including custom ones, and records the references between objects ([`graph`]).
//! The action for an object is decided from what is stored at that moment ([`decide()`]), and written with its uid and
//! resourceVersion as preconditions: repeating it has no effect, and after a restart everything that was left is found.
//!
//! The graph is an index of the objects that have owners, by their owners' uids, and of those that wait for dependents;
//! nothing of any other object. At the start it is read from the rows whose bytes contain `"ownerReferences"` or one of
//! the two finalizers, which the database selects; later it follows the feed. References and finalizers are cut out of
//! the stored bytes, and the rest is not decoded. The action for an object is a pure function of its state and that of
//! its owners at that moment (`decide`), read row by row if a collection is not in memory, and written with uid and
//! resourceVersion as preconditions: doing it twice, or in two replicas, has the same effect as once. An owner's
//! finalizer is acted on only when its change has arrived in the feed, so every older dependent of any kind is in the
//! index. (Collections in a database of their own have revisions of their own: a change comes with all that was visible
//! in the others then.)
//!
//! Source: the garbage collector of Kubernetes 1.37.

mod decide;
mod event;
mod graph;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::stream::{self, StreamExt as _};
use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError};
use tokio::time::Instant;

use self::decide::{Action, Owner, decide};
use self::graph::{Graph, Id, Presence};
use super::changes::Controller;
use super::identity::{CONTROLLER_MANAGER, service_account};
use super::metadata::{self, FOREGROUND, Going, ORPHAN, blocks, finalizers, references};
use super::queue::{InNamespace as _, Progress, Queue};
use crate::meta::Status;
use crate::meta::api_version::group_version;
use crate::object;
use crate::registry::{
    DeleteRequest, FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings,
};
use crate::store::{ChangeEvent, Collection, Moment, StoreError, Stored};
use crate::value::{Value, json};
use crate::work;

/// From how many dependents a reference is removed concurrently.
const FORGETTING_AT_ONCE: usize = 128;
/// What it takes to look for an owner: its kind, then the object.
const STEPS_PER_OWNER: usize = 50;
/// How long the references of an object are, in bytes of JSON, if they are many; and how many such objects are handled at
/// once.
const MANY_REFERENCES_BYTES: usize = 64 << 10;
const MANY_REFERENCES_AT_ONCE: usize = 2;
/// The texts of which the stored bytes contain one if an object has owners or waits for dependents.
const TEXTS: [&str; 3] = ["\"ownerReferences\"", "\"orphan\"", "\"foregroundDeletion\""];
/// Its service account.
const ACCOUNT: &str = "generic-garbage-collector";
/// Events have no owners: they expire.
const EVENTS: [&str; 2] = ["/events", "events.k8s.io/events"];

/// Collects garbage.
pub(super) struct Garbage {
    registry: Arc<Registry>,
    graph: Mutex<Graph>,
    /// Permits to handle an object with many references, and to take one of those from it.
    many_references: Semaphore,
    forgets_many: Semaphore,
}

/// A key is an object that has owners, or waits for its dependents.
impl Controller for Garbage {
    type Key = Id;
    const AT_ONCE: usize = 128;
    const TASK: &str = "collecting garbage";

    async fn begin(&self, queue: &mut Queue<Id>) -> Result<Moment, Status> {
        // What it knew before is not counted twice.
        *self.graph() = Graph::new(&self.registry.memory);
        let mut graph = Graph::new(&self.registry.memory);
        let seen = self.registry.storage.scan(&TEXTS, |collection, stored| {
            if !EVENTS.contains(&collection.as_str()) {
                let id = Id { collection, key: Arc::clone(&stored.key) };
                graph.put(id, &stored, &mut Vec::new());
            }
        });
        let seen = seen.await.map_err(unreadable)?;
        let now = Instant::now();
        graph.all().into_iter().for_each(|id| queue.add(id, now));
        *self.graph() = graph;
        Ok(seen)
    }

    fn note(&self, change: &ChangeEvent, queue: &mut Queue<Id>) {
        let now = Instant::now();
        if change.collection == self.registry.definitions.collection() {
            // Objects may be waiting because the kinds of their owners were not served.
            queue.wake_all(now);
        }
        let mut open = Vec::new();
        let id = Id { collection: change.collection.clone(), key: Arc::clone(&change.key) };
        match &change.stored {
            Some(_) if EVENTS.contains(&id.collection.as_str()) => {}
            Some(stored) => self.graph().put(id, stored, &mut open),
            None => self.graph().remove(&id, &change.uid, &mut open),
        }
        open.into_iter().for_each(|id| queue.add(id, now));
    }

    async fn reconcile(&self, id: &Id) -> Result<Progress, Status> {
        match self.reconcile_object(id).await {
            // It is gone: a change will follow that shows this.
            Err(status) if status.code == 404 => Ok(Progress::Done),
            outcome => outcome,
        }
    }
}

/// A referenced owner.
struct Found {
    reference: Value,
    owner: Owner,
    /// The collection of its kind, if that is served and namespaced.
    collection: Option<Collection>,
}

impl Garbage {
    pub fn new(registry: Arc<Registry>) -> Self {
        let graph = Mutex::new(Graph::new(&registry.memory));
        let [many_references, forgets_many] = [(); 2].map(|()| Semaphore::new(MANY_REFERENCES_AT_ONCE));
        Garbage { registry, graph, many_references, forgets_many }
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes the action for an object.
    async fn reconcile_object(&self, id: &Id) -> Result<Progress, Status> {
        let Some(item) = self.read(&id.collection, &id.key).await? else { return Ok(Progress::Done) };
        let Ok(_turn) = self.turn_for(&item) else { return Ok(Progress::Failed) };
        let going = metadata::going(&item);
        let references = references(&item);
        if going == Going::Otherwise || (going == Going::No && references.is_empty()) {
            return Ok(Progress::Done);
        }
        // If the object has begun to wait since the newest change that was read, it is handled with that change: by
        // then every older dependent is known.
        if going != Going::No && !self.graph().waits(&item.uid, going) {
            return Ok(Progress::Done);
        }
        let Some(target) = self.target(id).await? else { return Ok(Progress::Done) };
        let mut found = Vec::with_capacity(references.len());
        if going == Going::No {
            for reference in references {
                work::steps(STEPS_PER_OWNER);
                found.push(self.find_owner(&target, reference).await?);
            }
        }
        let owners: Vec<Owner> = found.iter().map(|found| found.owner).collect();
        let dependents = self.graph().describe(&item.uid);
        let action = decide(going, &owners, dependents);
        self.act(action, &target, &item, &found).await?;
        if action == Action::LookAgain {
            return Ok(Progress::Waits);
        }
        found.retain(|found| matches!(found.owner, Owner::Absent | Owner::OutOfReach));
        self.report_misplaced(&target, &item, &found).await?;
        Ok(Progress::Done)
    }

    /// Few of the objects with many references are handled at a time; an error if others are. They are tried again, as
    /// they would hold up those of others if they waited here.
    fn turn_for(&self, item: &Stored) -> Result<Option<SemaphorePermit<'_>>, TryAcquireError> {
        if has_many_references(item) { self.many_references.try_acquire().map(Some) } else { Ok(None) }
    }

    async fn act(&self, action: Action, target: &Target, item: &Stored, found: &[Found]) -> Result<(), Status> {
        let all = || found.iter().map(|found| found.reference.clone());
        match action {
            Action::Leave | Action::LookAgain => Ok(()),
            Action::OrphanDependents => {
                self.orphan_dependents(&item.uid).await?;
                self.remove_finalizer(target, item, ORPHAN).await
            }
            Action::EndForeground => self.remove_finalizer(target, item, FOREGROUND).await,
            Action::RemoveReferences => {
                let kept = found.iter().filter(|found| found.owner == Owner::Solid);
                let kept = kept.map(|found| found.reference.clone()).collect();
                self.set_list(target, item, "ownerReferences", kept).await
            }
            // The deletion follows when this change arrives.
            Action::DeleteForeground { unblock: true } if all().any(|reference| blocks(&reference)) => {
                self.set_list(target, item, "ownerReferences", all().map(unblock).collect()).await
            }
            Action::DeleteForeground { .. } => self.delete(target, item, "Foreground").await,
            Action::Delete => self.delete(target, item, policy_of(item)).await,
        }
    }

    async fn read(&self, collection: &Collection, key: &str) -> Result<Option<Arc<Stored>>, Status> {
        self.registry.storage.peek(collection, key).await.map_err(unreadable)
    }

    /// The object as a target; `None` where its kind is no longer served.
    async fn target(&self, id: &Id) -> Result<Option<Target>, Status> {
        let Some((group, plural)) = id.collection.as_str().split_once('/') else { return Ok(None) };
        let Some(resource) = self.registry.resolve(group, plural).await? else { return Ok(None) };
        // This avoids webhooks: the stored version needs no conversion.
        let version = Arc::clone(resource.storage());
        let name = id.key.split_once('/').map_or(&*id.key, |(_, name)| name).to_owned();
        let namespace = id.namespace().to_owned();
        Ok(Some(Target { resource, version, subresource: Subresource::Main, namespace, name }))
    }

    /// The state of the owner that an object refers to. A namespaced owner must be in the object's namespace.
    async fn find_owner(&self, dependent: &Target, reference: Value) -> Result<Found, Status> {
        let place = self.graph().place_of(reference.str_at(&["uid"]));
        // Its kind may be gone as well.
        if matches!(place, Presence::Gone(id) if ["", &*dependent.namespace].contains(&id.namespace())) {
            return Ok(Found { reference, owner: Owner::Absent, collection: None });
        }
        let api_version = reference.str_at(&["apiVersion"]);
        let (group, version) = group_version(api_version);
        let resource = self.registry.resolve_kind(group, version, reference.str_at(&["kind"])).await?;
        let Some(resource) = resource else {
            return Ok(Found { reference, owner: Owner::Unknown, collection: None });
        };
        let is_namespaced = resource.first().is_namespaced();
        let name = reference.str_at(&["name"]);
        let key = match (is_namespaced, &*dependent.namespace) {
            (false, _) => Some(name.to_owned()),
            (true, "") => None,
            (true, namespace) => Some(format!("{namespace}/{name}")),
        };
        let owner = match key {
            None => Owner::OutOfReach,
            Some(key) => match self.read(&resource.collection, &key).await? {
                Some(stored) if *stored.uid != *reference.str_at(&["uid"]) => Owner::Absent,
                Some(stored) if metadata::going(&stored) == Going::Foreground => Owner::Waiting,
                Some(_) => Owner::Solid,
                None => Owner::Absent,
            },
        };
        let collection = is_namespaced.then(|| resource.collection.clone());
        Ok(Found { reference, owner, collection })
    }

    /// Deletes the object if it has not changed since this was decided.
    async fn delete(&self, target: &Target, item: &Stored, policy: &str) -> Result<(), Status> {
        let options = DeleteRequest {
            uid: Some(item.uid.to_string()),
            resource_version: Some(item.revision.to_string()),
            propagation_policy: Some(policy.to_owned()),
            ..DeleteRequest::default()
        };
        let (user, mut warnings) = (service_account(ACCOUNT), Warnings::default());
        self.registry.delete(target, &user, &options, &mut warnings).await.map(drop)
    }

    /// Removes the references to an owner from all its dependents.
    async fn orphan_dependents(&self, uid: &str) -> Result<(), Status> {
        let dependents = self.graph().dependents_of(uid);
        let forgetting = dependents.into_iter().map(|id| async move { self.forget(&id, uid).await });
        let mut forgetting = stream::iter(forgetting).buffer_unordered(FORGETTING_AT_ONCE);
        while let Some(outcome) = forgetting.next().await {
            match outcome {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes the references to an owner from a dependent.
    async fn forget(&self, id: &Id, uid: &str) -> Result<(), Status> {
        let Some(mut item) = self.read(&id.collection, &id.key).await? else { return Ok(()) };
        let _turn = if has_many_references(&item) {
            drop(item);
            let turn = self.forgets_many.acquire().await;
            let Some(now) = self.read(&id.collection, &id.key).await? else { return Ok(()) };
            item = now;
            turn.ok()
        } else {
            None
        };
        let Some(target) = self.target(id).await? else { return Ok(()) };
        let mut kept = references(&item);
        let before = kept.len();
        kept.retain(|reference| reference.str_at(&["uid"]) != uid);
        if kept.len() == before { Ok(()) } else { self.set_list(&target, &item, "ownerReferences", kept).await }
    }

    async fn remove_finalizer(&self, target: &Target, item: &Stored, name: &str) -> Result<(), Status> {
        let kept = finalizers(item).into_iter().filter(|finalizer| finalizer != name);
        self.set_list(target, item, "finalizers", kept.map(Value::String).collect()).await
    }

    /// Replaces a list in the metadata of an object that has not changed; an empty list is removed.
    async fn set_list(&self, target: &Target, item: &Stored, field: &str, items: Vec<Value>) -> Result<(), Status> {
        let list = if items.is_empty() { Value::Null } else { Value::Array(items) };
        let mut metadata = object! {
            "uid" => item.uid.to_string(),
            "resourceVersion" => item.revision.to_string(),
        };
        metadata.make_object().insert(field, list);
        let request = PatchRequest {
            patch_type: PatchType::Merge,
            bytes: json::encode(&object! { "metadata" => metadata }).into(),
            field_validation: FieldValidation::Ignore,
            manager: CONTROLLER_MANAGER.to_owned(),
            force: false,
            dry_run: false,
            options: Value::Null,
        };
        let user = service_account(ACCOUNT);
        self.registry.patch(target, &user, &request, &mut Warnings::default()).await.map(drop)
    }

    /// Records which owners are in a different namespace from the one where a reference looks for them.
    async fn report_misplaced(&self, target: &Target, item: &Stored, owners: &[Found]) -> Result<(), Status> {
        let places = self.places_of(owners).await?;
        for owner in owners {
            match places.get(owner.reference.str_at(&["uid"])) {
                Some(Presence::At(id)) if id.namespace() != target.namespace => {
                    event::record_misplaced(&self.registry, target, item, &owner.reference).await;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The places of owners in a namespace, by uid. Those that are unknown are looked for in one pass over each
    /// collection.
    async fn places_of<'f>(&self, owners: &'f [Found]) -> Result<HashMap<&'f str, Presence>, Status> {
        let mut places = HashMap::new();
        let mut unknown: HashMap<&Collection, HashSet<&str>> = HashMap::new();
        for owner in owners {
            let uid = owner.reference.str_at(&["uid"]);
            let Some(collection) = &owner.collection else { continue };
            match self.graph().place_of(uid) {
                Presence::Unknown => _ = unknown.entry(collection).or_default().insert(uid),
                place => _ = places.insert(uid, place),
            }
        }
        for (collection, mut uids) in unknown {
            let mut pages = self.registry.storage.pages(collection, "");
            let unreadable = |_| Status::internal_error("owners can't be read");
            while !uids.is_empty()
                && let Some(page) = pages.next().await.map_err(unreadable)?
            {
                for stored in page.objects() {
                    let Some(uid) = uids.take(&*stored.uid) else { continue };
                    let place =
                        Presence::At(Arc::new(Id { collection: collection.clone(), key: Arc::clone(&stored.key) }));
                    self.graph().found(uid, place.clone());
                    places.insert(uid, place);
                }
            }
            uids.into_iter().for_each(|uid| self.graph().found(uid, Presence::NotFound));
        }
        Ok(places)
    }
}

fn has_many_references(item: &Stored) -> bool {
    item.metadata_field("\"ownerReferences\"").is_some_and(|text| text.len() > MANY_REFERENCES_BYTES)
}

fn unreadable(error: StoreError) -> Status {
    Status::internal_error(&error.to_string())
}

/// The deletion policy that an object's finalizers ask for.
fn policy_of(item: &Stored) -> &'static str {
    let finalizers = finalizers(item);
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    match (has(ORPHAN), has(FOREGROUND)) {
        (true, _) => "Orphan",
        (false, true) => "Foreground",
        (false, false) => "Background",
    }
}

/// The reference, which no longer blocks its owner.
fn unblock(mut reference: Value) -> Value {
    if blocks(&reference) {
        reference.make_object().insert("blockOwnerDeletion", Value::Bool(false));
    }
    reference
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::fixture;
    use crate::store::Encoded;

    #[tokio::test]
    async fn the_owners_of_an_object_are_looked_for_in_one_pass() {
        const OBJECTS: usize = 200;
        const OWNERS: usize = 150;
        let registry = fixture::registry().await;
        let maps = fixture::target(&registry, "", "configmaps").await.resource.collection.clone();
        for at in 0..OBJECTS {
            let (key, uid) = (format!("other/m{at}"), format!("u{at}"));
            fixture::store(&registry.storage, &maps, (&key, &uid), Encoded::new("{}")).await;
        }
        // Half of them are in another namespace, the others nowhere.
        let uids: Vec<String> = (0..OWNERS).map(|at| format!("u{}", at + OBJECTS - OWNERS / 2)).collect();
        let reference = |uid: &String| object! { "uid" => uid.as_str(), "kind" => "ConfigMap", "apiVersion" => "v1" };
        let references: Vec<Value> = uids.iter().map(reference).collect();
        let dependent = object! { "metadata" => object! { "ownerReferences" => references.clone() } };
        let dependent = Encoded::new(json::encode(&dependent));
        fixture::store(&registry.storage, &maps, ("here/a", "a"), dependent).await;

        let garbage = Garbage::new(Arc::clone(&registry));
        let stored = registry.storage.get(&maps, "here/a").await.expect("it reads").expect("it is there");
        let id = Id { collection: maps.clone(), key: Arc::clone(&stored.key) };
        garbage.graph().put(id, &stored, &mut Vec::new());
        let found = |reference| Found { reference, owner: Owner::Absent, collection: Some(maps.clone()) };
        let owners: Vec<Found> = references.into_iter().map(found).collect();
        let mut looking = Box::pin(garbage.places_of(&owners));
        let (places, steps) = work::counted(|| futures_util::FutureExt::now_or_never(looking.as_mut()));
        let places = places.expect("nothing is waited for").expect("it reads");
        assert!(steps < 2 * OBJECTS as u64, "{steps}");
        assert_eq!(places.len(), OWNERS / 2);
        assert!(uids.iter().all(|uid| garbage.graph().place_of(uid) != Presence::Unknown));
    }
}
