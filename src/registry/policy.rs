//! The stored roles and bindings, as the authorizer keeps them in memory.
//!
//! Each request first loads what has changed since the last one: if nothing has, that takes four pointer comparisons.
//! So a role is in force as soon as the write that created it is answered, without any notification.
//!
//! A binding with 40,000 subjects takes a tenth of a second to load. So a write of this process loads what it has
//! changed itself, before it is answered ([`GrantChange`]), and until then the others go on with what was loaded before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use tokio::sync::Mutex;

use super::store_failed;
use crate::auth::rbac::{GROUP, RbacPolicy};
use crate::auth::{Attributes, Authorizer, Decision, Rules, UserInfo};
use crate::memory::{Memory, Portion};
use crate::meta::Status;
use crate::store::{At, Collection, Snapshot, SnapshotError, Storage, Stored};
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
    /// How many writes of this process have begun and not loaded what they change.
    changes: AtomicUsize,
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
        let refreshing = Mutex::new(memory.for_grants());
        StoredPolicy { storage, collections, seen: RwLock::default(), changes: AtomicUsize::default(), refreshing }
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

    /// Begins a write to a collection; `None` if no decision depends on it.
    pub(super) fn begin_change(&self, collection: &Collection) -> Option<GrantChange<'_>> {
        self.collections.contains(collection).then(|| {
            self.changes.fetch_add(1, Ordering::SeqCst);
            GrantChange(self)
        })
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

    /// Whether what has changed is loaded by a write that is not answered yet.
    fn is_being_loaded(&self) -> bool {
        self.changes.load(Ordering::SeqCst) > 0 && !self.current().0.snapshots.is_empty()
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
pub(super) struct GrantChange<'p>(&'p StoredPolicy);

impl GrantChange<'_> {
    /// Puts the change in force, after it is stored and before it is answered.
    ///
    /// # Errors
    ///
    /// The roles can't be read.
    pub async fn load(self) -> Result<(), Status> {
        self.0.load().await
    }
}

impl Drop for GrantChange<'_> {
    fn drop(&mut self) {
        self.0.changes.fetch_sub(1, Ordering::SeqCst);
    }
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

    async fn refresh(&self) -> Result<(), Status> {
        if self.is_seen(&self.snapshots().await?) || self.is_being_loaded() {
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

    #[tokio::test]
    async fn nobody_waits_for_what_a_write_that_is_not_answered_loads() {
        let bindings = Collection::new(GROUP, "clusterrolebindings");
        let (registry, policy) = serve_roles().await;
        assert!(policy.begin_change(&Collection::new("", "pods")).is_none());
        bind(&registry, "a", 1).await;
        let change = policy.begin_change(&bindings).expect("bindings grant roles");
        assert_eq!(decoded(&policy).await, 2, "nothing was loaded before");
        bind(&registry, "a", 2).await;
        assert_eq!(decoded(&policy).await, 0);
        assert!(may_read(&policy, "u0").await && !may_read(&policy, "u1").await);
        change.load().await.expect("the roles can be read");
        assert!(may_read(&policy, "u1").await);

        let ended = policy.begin_change(&bindings);
        bind(&registry, "a", 3).await;
        drop(ended);
        assert_eq!(decoded(&policy).await, 1);
        assert!(may_read(&policy, "u2").await);
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
