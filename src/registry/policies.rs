//! The stored policies and bindings, as admission keeps them in memory.
//!
//! Each write first compares the two collections with the loaded ones, which takes two pointer comparisons. If one
//! differs, the bindings and policies that have changed are read again. So a policy is in force as soon as the
//! write that created it is answered, on every server of a database.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError, RwLock};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use tokio::sync::Mutex;

use super::derive::set_resource_version;
use super::in_force::{Begun, GROUP, bytes_of_binding, bytes_of_policy};
use super::store_failed;
use crate::admission::policies::{Hook, NamespaceLookup, PolicySource};
use crate::memory::{Memory, Portion};
use crate::meta::minor::Minor;
use crate::meta::{Revision, Status};
use crate::policy::environment::show_namespace;
use crate::policy::{Policy, PolicyBinding};
use crate::store::{At, Collection, Snapshot, SnapshotError, Storage, Stored};
use crate::value::{Value, json};
use crate::work;

/// How many decoded namespaces are kept.
const NAMESPACES_MAX: usize = 1024;

/// The policies of a kind in a database.
pub struct StoredPolicies<P> {
    storage: Storage,
    /// Policies, then bindings.
    collections: [Collection; 2],
    in_files: Arc<[Hook<P>]>,
    /// The version of Kubernetes whose evaluation rules apply.
    minor: Minor,
    seen: RwLock<Arc<LoadedPolicies<P>>>,
    /// What was read by requests that ended before all was: the next one goes on.
    begun: Begun<KnownPolicy<P>>,
    /// The memory that the policies take. It is held while changes are loaded.
    refreshing: Mutex<Portion>,
    /// Namespaces by their names.
    namespaces: SyncMutex<HashMap<Arc<str>, ReadNamespace>>,
}

/// A namespace, and the revision that it was read at.
type ReadNamespace = (Revision, Arc<Value>);

/// A policy as it was read at a revision.
struct KnownPolicy<P> {
    revision: Revision,
    /// How much memory it takes, or would take if it were bound.
    bytes: usize,
    /// `None` if it is not bound: a binding may come at any time, so it is counted.
    policy: Option<Arc<P>>,
}

/// A binding as it was read at a revision.
#[derive(Clone)]
struct KnownBinding {
    revision: Revision,
    /// How much memory it takes.
    bytes: usize,
    binding: Arc<PolicyBinding>,
}

impl<P> Clone for KnownPolicy<P> {
    fn clone(&self) -> Self {
        KnownPolicy { policy: self.policy.clone(), ..*self }
    }
}

/// What was loaded.
struct LoadedPolicies<P> {
    /// One for each collection; empty before the first time.
    snapshots: Vec<Snapshot>,
    /// By their names.
    policies: HashMap<Arc<str>, KnownPolicy<P>>,
    /// By their names.
    bindings: HashMap<Arc<str>, KnownBinding>,
    /// How much memory policies and bindings take.
    bytes: usize,
    hooks: Arc<[Hook<P>]>,
}

impl<P: Policy> StoredPolicies<P> {
    /// The stored policies, and those from files, evaluated by the rules of that minor.
    pub fn new(storage: Storage, in_files: Arc<[Hook<P>]>, minor: Minor, memory: &Memory) -> Self {
        let collections = [P::POLICIES, P::BINDINGS].map(|plural| Collection::new(GROUP, plural));
        let seen = LoadedPolicies::of_files(Arc::default());
        StoredPolicies {
            storage,
            collections,
            in_files,
            minor,
            seen: RwLock::new(Arc::new(seen)),
            begun: Begun::default(),
            refreshing: Mutex::new(memory.for_policies()),
            namespaces: SyncMutex::default(),
        }
    }

    async fn snapshots(&self) -> Result<Vec<Snapshot>, Status> {
        let failed = |collection: &Collection, error| match error {
            SnapshotError::Store(error) => store_failed(collection, "list", error),
            SnapshotError::Expired { .. } => Status::internal_error("the newest state has expired"),
        };
        try_join_all(self.collections.iter().map(async |collection| {
            let snapshot = self.storage.snapshot(collection, At::Newest).await;
            snapshot.map_err(|error| failed(collection, error))
        }))
        .await
    }

    /// A policy that can't be decoded has no effect.
    fn compile(&self, stored: &Stored, is_bound: bool) -> Option<KnownPolicy<P>> {
        if let Some(known) = self.begun.get(&stored.key, |known| known.serves(stored, is_bound)) {
            return Some(known);
        }
        let object = json::decode(&stored.bytes).ok()?;
        let policy = P::decode(&object, self.minor);
        let bytes = bytes_of_policy(&object, &policy);
        let policy = is_bound.then(|| Arc::new(policy));
        let known = KnownPolicy { revision: stored.revision, bytes, policy };
        self.begun.add(&stored.key, &known);
        Some(known)
    }

    fn current(&self) -> Arc<LoadedPolicies<P>> {
        Arc::clone(&self.seen.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was loaded, if it is the state of `snapshots`.
    fn known(&self, snapshots: &[Snapshot]) -> Option<Arc<[Hook<P>]>> {
        let current = self.current();
        let seen = &current.snapshots;
        let is_same = seen.len() == snapshots.len() && seen.iter().zip(snapshots).all(|(seen, now)| seen.is_same(now));
        is_same.then(|| Arc::clone(&current.hooks))
    }
}

impl<P: Policy> LoadedPolicies<P> {
    /// Before anything was read from the database.
    fn of_files(hooks: Arc<[Hook<P>]>) -> Self {
        let (snapshots, policies, bindings) = (Vec::new(), HashMap::new(), HashMap::new());
        LoadedPolicies { snapshots, policies, bindings, bytes: 0, hooks }
    }

    /// Reads those bindings and policies that were not read before.
    fn take_in(
        &self,
        in_files: &[Hook<P>],
        compile: impl Fn(&Stored, bool) -> Option<KnownPolicy<P>>,
        snapshots: Vec<Snapshot>,
    ) -> LoadedPolicies<P> {
        let [policies, bindings] = snapshots.as_slice() else {
            return LoadedPolicies::of_files(in_files.into());
        };
        let (mut bound, mut bytes) = (BTreeMap::<String, Vec<Arc<PolicyBinding>>>::new(), 0);
        let mut known_bindings = HashMap::new();
        for stored in bindings.range("", None) {
            work::step();
            let before = self.bindings.get(&stored.key).filter(|known| known.revision == stored.revision);
            let Some(known) = before.cloned().or_else(|| KnownBinding::read(stored)) else { continue };
            bytes += known.bytes;
            bound.entry(known.binding.policy.clone()).or_default().push(Arc::clone(&known.binding));
            known_bindings.insert(Arc::clone(&stored.key), known);
        }
        let (mut known, mut hooks) = (HashMap::new(), in_files.to_vec());
        for stored in policies.range("", None) {
            work::step();
            let bindings = bound.remove(&*stored.key);
            let before = self.policies.get(&stored.key).filter(|known| known.serves(stored, bindings.is_some()));
            let Some(policy) = before.cloned().or_else(|| compile(stored, bindings.is_some())) else { continue };
            bytes += policy.bytes;
            hooks.extend(policy.policy.clone().zip(bindings).map(|(policy, bindings)| Hook { policy, bindings }));
            known.insert(Arc::clone(&stored.key), policy);
        }
        LoadedPolicies { policies: known, bindings: known_bindings, bytes, hooks: hooks.into(), snapshots }
    }
}

impl KnownBinding {
    /// `None` if it can't be decoded: it has no effect then.
    fn read(stored: &Stored) -> Option<Self> {
        let object = json::decode(&stored.bytes).ok()?;
        let (revision, bytes) = (stored.revision, bytes_of_binding(&object));
        Some(KnownBinding { revision, bytes, binding: Arc::new(PolicyBinding::decode(&object)) })
    }
}

impl<P> KnownPolicy<P> {
    /// Whether it is the state of `stored`, compiled if it is bound.
    fn serves(&self, stored: &Stored, is_bound: bool) -> bool {
        self.revision == stored.revision && (self.policy.is_some() || !is_bound)
    }
}

#[async_trait]
impl<P: Policy> PolicySource<P> for StoredPolicies<P> {
    async fn hooks(&self) -> Result<Arc<[Hook<P>]>, Status> {
        if let Some(hooks) = self.known(&self.snapshots().await?) {
            return Ok(hooks);
        }
        let mut counted = self.refreshing.lock().await;
        // Read while the lock is held: they are not older than what was loaded.
        let snapshots = self.snapshots().await?;
        if let Some(hooks) = self.known(&snapshots) {
            return Ok(hooks);
        }
        let seen = Arc::new(self.current().take_in(
            &self.in_files,
            |stored, is_bound| self.compile(stored, is_bound),
            snapshots,
        ));
        self.begun.clear();
        counted.resize(seen.bytes);
        *self.seen.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&seen);
        Ok(Arc::clone(&seen.hooks))
    }

    fn in_files(&self) -> Arc<[Hook<P>]> {
        Arc::clone(&self.in_files)
    }
}

#[async_trait]
impl<P: Policy> NamespaceLookup for StoredPolicies<P> {
    async fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, Status> {
        let collection = Collection::new("", "namespaces");
        let stored = self.storage.get(&collection, name).await;
        let Some(stored) = stored.map_err(|error| store_failed(&collection, "get", error))? else { return Ok(None) };
        let known = || self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((revision, namespace)) = known().get(&stored.key)
            && *revision == stored.revision
        {
            return Ok(Some(Arc::clone(namespace)));
        }
        let mut namespace = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
        set_resource_version(&mut namespace, stored.revision);
        show_namespace(&mut namespace);
        let namespace = Arc::new(namespace);
        let mut known = known();
        if known.len() >= NAMESPACES_MAX {
            known.clear();
        }
        known.insert(Arc::clone(&stored.key), (stored.revision, Arc::clone(&namespace)));
        Ok(Some(namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::UserInfo;
    use crate::policy::Validating;
    use crate::registry::{DeleteRequest, Registry, Warnings, fixture};

    const POLICY: &str = r#"{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],
        "operations":["CREATE"],"resources":["pods"]}]},"validations":[{"expression":"true"}]}"#;

    async fn create(registry: &Registry, plural: &str, name: &str, spec: &str) {
        let target = fixture::target(registry, GROUP, plural).await;
        let request = fixture::creation(format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{spec}}}"#));
        let created = registry.create(&target, &UserInfo::unsecured(), &request, &mut Warnings::default()).await;
        created.expect("it is valid");
    }

    #[tokio::test]
    async fn only_what_has_changed_is_decoded() {
        let registry = fixture::registry().await;
        let stored = registry.storage.clone();
        let policies = StoredPolicies::<Validating>::new(stored, Arc::default(), Minor::NEWEST, &registry.memory);
        let binding = r#"{"policyName":"p","validationActions":["Deny"]}"#;
        create(&registry, Validating::POLICIES, "p", POLICY).await;
        for name in ["a", "b", "c"] {
            create(&registry, Validating::BINDINGS, name, binding).await;
        }
        let found = async || {
            let before = json::tally::decoded();
            let hooks = policies.hooks().await.expect("the policies can be read");
            (hooks.iter().map(|hook| hook.bindings.len()).collect::<Vec<_>>(), json::tally::decoded() - before)
        };
        assert_eq!(found().await, (vec![3], 4));
        create(&registry, Validating::BINDINGS, "d", binding).await;
        assert_eq!(found().await, (vec![4], 1));
        let mut bound = fixture::target(&registry, GROUP, Validating::BINDINGS).await;
        bound.name = "a".to_owned();
        let deletion = DeleteRequest::default();
        let gone = registry.delete(&bound, &UserInfo::unsecured(), &deletion, &mut Warnings::default()).await;
        assert!(gone.is_ok());
        assert_eq!(found().await, (vec![3], 0));
        let other = r#"{"policyName":"q","validationActions":["Deny"]}"#;
        create(&registry, Validating::BINDINGS, "a", other).await;
        assert_eq!(found().await, (vec![3], 1));
        create(&registry, Validating::POLICIES, "q", POLICY).await;
        assert_eq!(found().await, (vec![3, 1], 1));
    }
}
