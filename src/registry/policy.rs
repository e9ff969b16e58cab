//! The stored roles and bindings, as the authorizer keeps them in memory.
//!
//! Each request first loads what has changed since the last one: if nothing has, that takes four pointer comparisons.
//! So a role is in force as soon as the write that created it is answered, without any notification.
//!
//! A binding with 40,000 subjects takes a tenth of a second to load. So a write of this process loads what it has
//! changed itself, before it is answered ([`GrantChange`]). Until then the others go on with what was loaded before, if
//! nothing else has changed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError, RwLock};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::try_join_all;
use tokio::sync::Mutex;

use super::store_failed;
use crate::auth::rbac::{GROUP, RbacPolicy};
use crate::auth::{Attributes, Authorizer, Decision, Rules, UserInfo};
use crate::memory::{Memory, Portion};
use crate::meta::Status;
use crate::store::{At, Collection, Op, Snapshot, SnapshotError, Storage, Stored, Write};
use crate::value::Value;
use crate::value::json::{self, Tape, TextTree};
use crate::work;

/// Where roles and bindings are stored.
const PLURALS: [&str; 4] = ["clusterroles", "roles", "clusterrolebindings", "rolebindings"];
/// How many of these are roles.
const ROLES: usize = 2;

/// The fields of roles and bindings that decisions depend on.
const GRANTING: [&str; 3] = ["roleRef", "rules", "subjects"];

/// Authorizes by the roles and bindings in a database.
pub struct StoredPolicy {
    storage: Storage,
    collections: [Collection; 4],
    seen: RwLock<Arc<LoadedRoles>>,
    /// What writes of this process change that have begun and not loaded it.
    changes: SyncMutex<BTreeMap<ChangeKey, Option<Bytes>>>,
    /// How many of them there were.
    changes_begun: AtomicU64,
    /// The memory that the policy takes. It is held while changes are loaded: everybody waits for that, so it is neither
    /// ended nor made to wait with the request that does it.
    refreshing: Mutex<Portion>,
}

/// What was loaded. Changes are made to a copy, which is cheap, so that readers don't wait.
#[derive(Clone, Default)]
struct LoadedRoles {
    /// One for each collection; empty before the first time.
    snapshots: Vec<Snapshot>,
    policy: RbacPolicy,
}

/// Which of the collections a write changes, under which key, and its number.
type ChangeKey = (usize, Arc<str>, u64);

/// The policy as it was at one moment.
pub struct Current(Arc<LoadedRoles>);

impl std::ops::Deref for Current {
    type Target = RbacPolicy;

    fn deref(&self) -> &RbacPolicy {
        &self.0.policy
    }
}

impl StoredPolicy {
    pub fn new(storage: Storage, memory: &Memory) -> Self {
        let collections = PLURALS.map(|plural| Collection::new(GROUP, plural));
        StoredPolicy {
            storage,
            collections,
            seen: RwLock::default(),
            changes: SyncMutex::default(),
            changes_begun: AtomicU64::default(),
            refreshing: Mutex::new(memory.for_grants()),
        }
    }

    /// The policy of a copy of a database. `known` was loaded before the copy was made, so every revision in it means
    /// the same in both.
    pub fn beginning_with(known: Current, storage: Storage, memory: &Memory) -> Self {
        let mut counted = memory.for_grants();
        // Whatever becomes of the origin, this is still there.
        counted.resize(counted_bytes(&known));
        let refreshing = Mutex::new(counted);
        StoredPolicy { seen: RwLock::new(known.0), refreshing, ..StoredPolicy::new(storage, memory) }
    }

    /// Begins a write; `None` if no decision depends on it.
    pub(super) fn begin_change(&self, write: &Write) -> Option<GrantChange<'_>> {
        let collection = self.collections.iter().position(|own| *own == write.collection)?;
        let key = (collection, Arc::clone(&write.key), self.changes_begun.fetch_add(1, Ordering::Relaxed));
        let bytes = match &write.op {
            Op::Put(put) => Some(put.object.bytes().clone()),
            Op::Delete => None,
        };
        self.changes().insert(key.clone(), bytes);
        Some(GrantChange { policy: self, key })
    }

    fn changes(&self) -> MutexGuard<'_, BTreeMap<ChangeKey, Option<Bytes>>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was loaded last.
    pub fn current(&self) -> Current {
        Current(Arc::clone(&self.seen.read().unwrap_or_else(PoisonError::into_inner)))
    }

    async fn snapshots(&self) -> Result<Vec<Snapshot>, Status> {
        let failed = |collection: &Collection, error| match error {
            SnapshotError::Store(error) => store_failed(collection, "get", error),
            SnapshotError::Expired { .. } => Status::internal_error("the roles can't be read"),
        };
        try_join_all(self.collections.iter().map(async |collection| {
            let snapshot = self.storage.snapshot(collection, At::Newest).await;
            snapshot.map_err(|error| failed(collection, error))
        }))
        .await
    }

    fn is_seen(&self, snapshots: &[Snapshot]) -> bool {
        let seen = &self.current().0.snapshots;
        seen.len() == snapshots.len() && seen.iter().zip(snapshots).all(|(seen, now)| seen.is_same(now))
    }

    /// Whether all that has changed is loaded by writes that are not answered yet.
    fn is_being_loaded(&self, now: &[Snapshot]) -> bool {
        let (current, changes) = (self.current(), self.changes());
        let seen = &current.0.snapshots;
        let is_made = |collection: usize, key: &Arc<str>, stored: Option<&Arc<Stored>>| {
            let of_key = (collection, Arc::clone(key), 0)..=(collection, Arc::clone(key), u64::MAX);
            changes.range(of_key).any(|(_, bytes)| match (bytes, stored) {
                (Some(bytes), Some(stored)) => is_same(bytes, &stored.bytes),
                (None, None) => true,
                _ => false,
            })
        };
        let mut all = seen.iter().zip(now).enumerate();
        !changes.is_empty()
            && seen.len() == now.len()
            && all.all(|(at, (seen, now))| now.changes_since(seen).all(|(key, stored)| is_made(at, key, stored)))
    }

    /// Loads what has changed since the last time.
    async fn load(&self) -> Result<(), Status> {
        let mut counted = self.refreshing.lock().await;
        // Read while the lock is held: they are not older than what was loaded.
        let snapshots = self.snapshots().await?;
        if !self.is_seen(&snapshots) {
            let mut seen = LoadedRoles::clone(&self.current().0);
            work::essential(|| seen.take_in(snapshots));
            counted.resize(counted_bytes(&seen.policy));
            *self.seen.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(seen);
        }
        Ok(())
    }
}

/// A write that changes a role or a binding.
///
/// Dropped without [`GrantChange::load`], it leaves its change to the next request.
pub(super) struct GrantChange<'p> {
    policy: &'p StoredPolicy,
    key: ChangeKey,
}

impl GrantChange<'_> {
    /// Puts the change in force, after it is stored and before it is answered.
    ///
    /// # Errors
    ///
    /// The roles can't be read.
    pub async fn load(self) -> Result<(), Status> {
        self.policy.load().await
    }
}

impl Drop for GrantChange<'_> {
    fn drop(&mut self) {
        self.policy.changes().remove(&self.key);
    }
}

/// Whether the bytes are equal; those of a state usually are the ones that were written.
fn is_same(written: &Bytes, stored: &Bytes) -> bool {
    written.len() == stored.len() && (written.as_ptr() == stored.as_ptr() || written == stored)
}

impl LoadedRoles {
    fn take_in(&mut self, snapshots: Vec<Snapshot>) {
        for (at, now) in snapshots.iter().enumerate() {
            let mut takes = |key: &str, stored: Option<&Stored>| take_in(&mut self.policy, at < ROLES, key, stored);
            match self.snapshots.get(at) {
                Some(before) => each_change(now, before, |key, stored| {
                    if !grant_the_same(state_of(before, key), stored) {
                        takes(key, stored);
                    }
                }),
                None => each_object(now, takes),
            }
        }
        self.snapshots = snapshots;
    }
}

pub(super) fn each_change(now: &Snapshot, before: &Snapshot, mut takes: impl FnMut(&str, Option<&Stored>)) {
    now.changes_since(before).for_each(|(key, stored)| takes(key, stored.map(|stored| &**stored)));
}

pub(super) fn each_object(now: &Snapshot, mut takes: impl FnMut(&str, Option<&Stored>)) {
    now.range("", None).for_each(|stored| takes(&stored.key, Some(stored)));
}

pub(super) fn state_of<'s>(snapshot: &'s Snapshot, key: &str) -> Option<&'s Stored> {
    snapshot.range(key, None).next().filter(|stored| *stored.key == *key).map(|stored| &**stored)
}

/// Whether two states of a role or binding say the same of who may do what, as far as that is seen without decoding
/// them: a binding with thousands of subjects is relabelled, too.
fn grant_the_same(before: Option<&Stored>, now: Option<&Stored>) -> bool {
    let (Some(before), Some(now)) = (before, now) else { return false };
    let (mut old, mut new) = (Tape::default(), Tape::default());
    let (Some(old), Some(new)) = (old.read(&before.bytes), new.read(&now.bytes)) else { return false };
    GRANTING.iter().all(|name| text_of(&old, name) == text_of(&new, name))
}

/// The JSON of a field of an object.
fn text_of<'t>(tree: &TextTree<'t>, name: &str) -> Option<&'t str> {
    tree.field(TextTree::ROOT, name).map(|field| tree.text(field))
}

/// How much of the default roles and bindings is not counted: it belongs to what each control plane takes.
const UNCOUNTED_BYTES: usize = 96 << 10;

/// How many bytes of a policy count as memory for roles and bindings.
fn counted_bytes(policy: &RbacPolicy) -> usize {
    policy.memory_bytes().saturating_sub(UNCOUNTED_BYTES)
}

/// How many bytes a role or a binding takes while it is in force, about; 0 for other objects.
pub(super) fn grant_bytes(group: &str, plural: &str, object: &Value) -> usize {
    let Some(at) = PLURALS.iter().position(|known| *known == plural).filter(|_| group == GROUP) else { return 0 };
    let mut alone = RbacPolicy::default();
    if at < ROLES {
        alone.set_role("", object)
    } else {
        alone.set_binding("", object)
    }
    alone.memory_bytes()
}

/// An object that can't be decoded grants nothing.
fn take_in(policy: &mut RbacPolicy, is_role: bool, key: &str, stored: Option<&Stored>) {
    let object = stored.and_then(|stored| json::decode(&stored.bytes).ok());
    match (is_role, object) {
        (true, Some(role)) => policy.set_role(key, &role),
        (true, None) => policy.remove_role(key),
        (false, Some(binding)) => policy.set_binding(key, &binding),
        (false, None) => policy.remove_binding(key),
    }
}

#[async_trait]
impl Authorizer for StoredPolicy {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        self.current().decide(user, attributes)
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        self.current().rules_for(user, namespace)
    }

    fn rules_bytes(&self, user: &UserInfo, namespace: &str) -> usize {
        self.current().rules_bytes(user, namespace)
    }

    async fn refresh(&self) -> Result<(), Status> {
        let now = self.snapshots().await?;
        if self.is_seen(&now) || self.is_being_loaded(&now) {
            return Ok(());
        }
        self.load().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::ResourceAttributes;
    use crate::object;
    use crate::processor::{ExpectedWork, Processor, metered};
    use crate::registry::{Body, DeleteRequest, FieldValidation, Format, Registry, UpdateRequest, Warnings, fixture};
    use crate::store::{Encoded, Put};

    /// To decode them takes far more steps than those after which a request may be ended.
    const SUBJECTS: usize = 2_000;

    /// Binds the users `u0` to `u{subjects}` to a role that may read pods, under a label.
    async fn bind(registry: &Registry, label: &str, subjects: usize) {
        let subjects: Vec<_> = (0..subjects).map(|at| format!(r#"{{"kind":"User","name":"u{at}"}}"#)).collect();
        let binding = format!(
            r#"{{"metadata":{{"name":"b","labels":{{"l":"{label}"}}}},"subjects":[{}],
               "roleRef":{{"apiGroup":"{GROUP}","kind":"ClusterRole","name":"r"}}}}"#,
            subjects.join(",")
        );
        put(registry, "clusterrolebindings", "b", binding).await;
    }

    async fn put(registry: &Registry, plural: &str, name: &str, text: String) {
        let mut target = fixture::target(registry, GROUP, plural).await;
        target.name = name.to_owned();
        let request = UpdateRequest {
            body: Body { bytes: text.into_bytes().into(), format: Format::Json },
            field_validation: FieldValidation::Ignore,
            manager: "test".to_owned(),
            dry_run: false,
            options: Default::default(),
        };
        registry
            .update(&target, &UserInfo::unsecured(), &request, &mut Warnings::default())
            .await
            .expect("it is valid");
    }

    async fn serve_roles() -> (Arc<Registry>, StoredPolicy) {
        let registry = fixture::registry().await;
        let role = r#"{"metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}"#;
        put(&registry, "clusterroles", "r", role.to_owned()).await;
        let policy = StoredPolicy::new(registry.storage.clone(), &registry.memory);
        (registry, policy)
    }

    /// How many objects are decoded to take in what has changed.
    async fn decoded(policy: &StoredPolicy) -> usize {
        let before = json::tally::decoded();
        policy.refresh().await.expect("the roles can be read");
        json::tally::decoded() - before
    }

    async fn may_read(policy: &StoredPolicy, user: &str) -> bool {
        let wanted = ResourceAttributes { verb: "get", resource: "pods", ..ResourceAttributes::default() };
        let user = UserInfo::authenticated(user, Vec::new());
        policy.authorize(&user, &Attributes::Resource(wanted)).await.is_allowed()
    }

    #[tokio::test]
    async fn what_changes_nothing_of_who_may_do_what_is_not_decoded() {
        let (registry, policy) = serve_roles().await;
        bind(&registry, "a", 2).await;
        assert_eq!(decoded(&policy).await, 2);
        assert!(may_read(&policy, "u1").await);
        bind(&registry, "b", 2).await;
        assert_eq!(decoded(&policy).await, 0);
        assert!(may_read(&policy, "u1").await);
        bind(&registry, "b", 1).await;
        assert_eq!(decoded(&policy).await, 1);
        assert!(may_read(&policy, "u0").await && !may_read(&policy, "u1").await);
        put(&registry, "clusterroles", "r", r#"{"metadata":{"name":"r"},"rules":[]}"#.to_owned()).await;
        assert_eq!(decoded(&policy).await, 1);
        assert!(!may_read(&policy, "u0").await);
    }

    /// A write that binds the users `u0` to `u{subjects}` to the role.
    fn write_of(subjects: usize) -> Write {
        let subjects = (0..subjects).map(|at| object! { "kind" => "User", "name" => format!("u{at}") });
        let binding = object! {
            "metadata" => object! { "name" => "b" },
            "roleRef" => object! { "kind" => "ClusterRole", "name" => "r" },
            "subjects" => Value::Array(subjects.collect()),
        };
        let put = Put {
            object: Encoded::of(&binding),
            uid: "b".into(),
            stored_version: "v1".into(),
            schema_generation: 0,
            expires_at_ms: None,
            served_under: None,
        };
        Write { op: Op::Put(put), ..deletion() }
    }

    fn deletion() -> Write {
        let collection = Collection::new(GROUP, "clusterrolebindings");
        Write { collection, key: "b".into(), op: Op::Delete, guards: Vec::new() }
    }

    #[tokio::test]
    async fn nobody_waits_for_what_a_write_that_is_not_answered_loads() {
        let (registry, policy) = serve_roles().await;
        assert!(policy.begin_change(&Write { collection: Collection::new("", "pods"), ..deletion() }).is_none());
        let store = async |write: Write| _ = registry.storage.write(write).await.expect("it is stored");
        let begin = |write: &Write| policy.begin_change(write).expect("bindings grant roles");
        store(write_of(1)).await;
        let change = begin(&write_of(2));
        assert_eq!(decoded(&policy).await, 2, "nothing was loaded before");
        store(write_of(2)).await;
        assert_eq!(decoded(&policy).await, 0);
        assert!(may_read(&policy, "u0").await && !may_read(&policy, "u1").await);
        change.load().await.expect("the roles can be read");
        assert!(may_read(&policy, "u1").await);
        let change = begin(&deletion());
        store(deletion()).await;
        assert_eq!(decoded(&policy).await, 0);
        assert!(may_read(&policy, "u0").await);
        change.load().await.expect("the roles can be read");
        assert!(!may_read(&policy, "u0").await);
    }

    #[tokio::test]
    async fn what_another_server_writes_is_in_force_beside_a_write_that_is_not_answered() {
        let (registry, policy) = serve_roles().await;
        let store = async |write: Write| _ = registry.storage.write(write).await.expect("it is stored");
        store(write_of(1)).await;
        assert_eq!(decoded(&policy).await, 2);
        let change = policy.begin_change(&write_of(2));
        store(write_of(3)).await;
        assert_eq!(decoded(&policy).await, 1, "the same binding");
        assert!(may_read(&policy, "u2").await);
        store(write_of(2)).await;
        put(&registry, "clusterroles", "r", r#"{"metadata":{"name":"r"},"rules":[]}"#.to_owned()).await;
        assert_eq!(decoded(&policy).await, 2, "its role");
        assert!(!may_read(&policy, "u0").await);
        store(write_of(3)).await;
        drop(change);
        assert_eq!(decoded(&policy).await, 1, "a write that ended before it loaded its change");
    }

    #[tokio::test]
    async fn a_write_is_in_force_when_it_returns() {
        let mut registry = Arc::into_inner(serve_roles().await.0).expect("nothing else has it");
        let policy = Arc::new(StoredPolicy::new(registry.storage.clone(), &registry.memory));
        registry.policy = Some(Arc::clone(&policy));
        bind(&registry, "a", 1).await;
        assert!(may_read(&policy, "u0").await);
        assert_eq!(decoded(&policy).await, 0);
        let mut target = fixture::target(&registry, GROUP, "clusterrolebindings").await;
        target.name = "b".to_owned();
        let deletion = DeleteRequest::default();
        let gone = registry.delete(&target, &UserInfo::unsecured(), &deletion, &mut Warnings::default()).await;
        assert!(gone.is_ok() && !may_read(&policy, "u0").await);
    }

    #[tokio::test]
    async fn roles_are_refused_where_they_have_taken_the_memory_for_them() {
        const NAMES: usize = 20_000;
        let mut registry = Arc::into_inner(fixture::registry().await).expect("nothing else has it");
        let memory = Arc::new(Memory::new(1));
        let policy = Arc::new(StoredPolicy::new(registry.storage.clone(), &memory));
        (registry.memory, registry.policy) = (Arc::clone(&memory), Some(Arc::clone(&policy)));
        let role = |name: &str, count: usize| {
            let names = (0..count).map(|at| Value::from(format!("a-name-that-is-not-short-{at}"))).collect::<Vec<_>>();
            let texts = |text: &str| vec![Value::from(text)];
            let rule = object! {
                "apiGroups" => texts(""), "resources" => texts("pods"), "verbs" => texts("get"), "resourceNames" => names,
            };
            object! { "metadata" => object! { "name" => name }, "rules" => vec![rule] }
        };
        let jane = UserInfo::authenticated("jane", Vec::new());
        let create = async |name: &str, count: usize, user: &UserInfo| {
            let target = fixture::target(&registry, GROUP, "clusterroles").await;
            let text = json::encode_to_string(&role(name, count));
            let made = registry.create(&target, user, &fixture::creation(text), &mut Warnings::default()).await;
            policy.refresh().await.expect("the roles can be read");
            made.map(drop).map_err(|status| status.code)
        };
        let mut stored = 0;
        let refused = loop {
            match create(&format!("r{stored}"), NAMES, &jane).await {
                Ok(()) => stored += 1,
                Err(code) => break code,
            }
        };
        assert_eq!((refused, stored), (429, 6), "an eighth of 32 MiB has so many of 0.7 MB");
        assert!(memory.grant_bytes() > stored * NAMES * 30);
        assert_eq!(create("small", 1, &jane).await, Ok(()));
        let controller = UserInfo::authenticated("system:serviceaccount:kube-system:aggregator", Vec::new());
        assert_eq!(create("gathered", NAMES, &controller).await, Ok(()), "it is one of the server's own");
        for at in 0..stored {
            let name = format!("r{at}");
            put(&registry, "clusterroles", &name, json::encode_to_string(&role(&name, 1))).await;
        }
        policy.refresh().await.expect("the roles can be read");
        assert_eq!(create("large", NAMES, &jane).await, Ok(()), "there is room again");
        assert!(memory.grant_bytes() < 3 * NAMES * 40);
    }

    #[tokio::test]
    async fn what_everybody_waits_for_is_not_ended_with_its_request() {
        let (registry, policy) = serve_roles().await;
        bind(&registry, "a", SUBJECTS).await;
        let share = Processor::default().share("jane", "a kind", ExpectedWork::Short);
        share.cancel();
        assert!(metered(&share, policy.refresh()).await.is_ok());
        assert!(may_read(&policy, "u1").await);
    }
}
