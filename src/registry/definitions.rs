//! The resources that exist: the built-in kinds, and those compiled from the definitions in the store.
//!
//! A custom resource is read on first use, and again when its definition has another revision: so a changed schema
//! takes effect with the write that changed it, in every process. Its schemas are compiled when a request needs one of
//! them; where memory is short, those that were not used for longest are forgotten.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use memchr::memmem;

use crate::admission::{Namespaces, Phase};
use crate::crd::{self, Definition as CustomResourceDefinition, definition};
use crate::kinds::runtime_config::RuntimeConfig;
use crate::kinds::{self, strategy::Custom};
use crate::meta::Status;
use crate::meta::minor::Minor;
use crate::store::{At, Collection, SnapshotError, Storage, Stored};
use crate::value::json;
use crate::work;

use super::conversion::Conversion;
use super::known_resources::KnownResources;
use super::resource::{Resource, StoredDefinition};
use super::{BuiltIn, Registry, Target, store_failed};

/// The group of CustomResourceDefinitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Their resource.
pub const PLURAL: &str = "customresourcedefinitions";
/// Where they are stored.
static DEFINITIONS: LazyLock<Collection> = LazyLock::new(|| Collection::new(GROUP, PLURAL));
/// Where namespaces are stored.
static NAMESPACES: LazyLock<Collection> = LazyLock::new(|| Collection::new("", "namespaces"));

/// The table of what is served.
pub struct Definitions {
    built_in: Arc<[BuiltIn]>,
    /// The version of Kubernetes that the server speaks for.
    pub minor: Minor,
    /// A missing one is read; a stale one replaced.
    pub(super) known: KnownResources,
    /// Distinguishes what is compiled here from what a copy compiles: after the copy, the same generation may mean
    /// another schema.
    lineage: i64,
}

/// The lineage of the next copy.
static LINEAGES: AtomicI64 = AtomicI64::new(1);

impl Definitions {
    /// The built-in kinds that `config` serves, and no other yet.
    pub fn new(config: &RuntimeConfig) -> Self {
        let built_in = BuiltIn::all(config).into();
        Definitions { built_in, minor: config.minor(), known: KnownResources::default(), lineage: 0 }
    }

    /// The definitions of another control plane, with the same built-in kinds and no others.
    pub fn beside(&self) -> Self {
        let (built_in, lineage) = (Arc::clone(&self.built_in), LINEAGES.fetch_add(1, Ordering::Relaxed));
        Definitions { built_in, minor: self.minor, known: KnownResources::default(), lineage }
    }

    /// The definitions of a copy of the database, with everything that is known so far.
    ///
    /// It must be called before the database is copied, so that every revision in it means the same in both.
    pub fn copy(&self) -> Self {
        Definitions { known: self.known.clone(), ..self.beside() }
    }

    /// The collections whose objects guard writes of other objects.
    pub fn guards() -> [Collection; 2] {
        [DEFINITIONS.clone(), NAMESPACES.clone()]
    }

    /// Where definitions are stored.
    pub fn collection(&self) -> Collection {
        DEFINITIONS.clone()
    }

    /// Where namespaces are stored.
    pub fn namespaces(&self) -> Collection {
        NAMESPACES.clone()
    }

    /// Whether a group's resources come with the server.
    pub fn is_built_in(&self, group: &str) -> bool {
        self.built_in.iter().any(|built_in| built_in.kind.group == group)
    }

    fn built_in(&self, group: &str, plural: &str) -> Option<&BuiltIn> {
        self.built_in.iter().find(|built_in| built_in.kind.group == group && built_in.kind.plural == plural)
    }
}

impl Registry {
    /// The resource `plural` of `group`; `None` if it doesn't exist, or its names are not accepted yet.
    pub async fn resolve(&self, group: &str, plural: &str) -> Result<Option<Arc<Resource>>, Status> {
        if let Some(built_in) = self.definitions.built_in(group, plural) {
            return Ok(Some(Arc::clone(built_in.resource())));
        }
        if group.is_empty() {
            return Ok(None);
        }
        let name = [plural, ".", group].concat();
        let collection = self.definitions.collection();
        let stored = self.storage.get(&collection, &name).await;
        let stored = stored.map_err(|error| store_failed(&collection, "get", error))?;
        if self.memory.is_short() {
            self.definitions.known.forget_schemas();
        }
        match stored {
            Some(stored) => Ok(self.resource_of(&stored)?.inspect(|resource| resource.note_use())),
            None => {
                self.definitions.known.remove(&name);
                Ok(None)
            }
        }
    }

    /// The resource whose objects are of `kind` in a served version of `group`; `None` if there isn't one.
    pub async fn resolve_kind(&self, group: &str, version: &str, kind: &str) -> Result<Option<Arc<Resource>>, Status> {
        let is_it = |resource: &Resource| resource.served(version).is_some_and(|version| version.names.kind == kind);
        let mut of_group = self.definitions.built_in.iter().filter(|built_in| built_in.kind.group == group);
        if let Some(found) = of_group.find(|built_in| is_it(built_in.resource())) {
            return self.resolve(group, found.kind.plural).await;
        }
        let snapshot = self.storage.snapshot(&self.definitions.collection(), At::Newest).await;
        let snapshot = snapshot.map_err(|_| Status::internal_error("definitions can't be read"))?;
        for stored in snapshot.range("", None) {
            work::step();
            // The name of a definition is `plural.group`: those of other groups are not read for this.
            if stored.key.split_once('.').is_some_and(|(_, found)| found == group)
                && let Some(resource) = self.resource_of(stored)?
                && is_it(&resource)
            {
                return Ok(Some(resource));
            }
        }
        Ok(None)
    }

    /// Every resource that is served: the built-in ones, then the others in the order of their definitions' names.
    pub async fn resources(&self) -> Result<Vec<Arc<Resource>>, Status> {
        let collection = self.definitions.collection();
        let snapshot = self.storage.snapshot(&collection, At::Newest).await;
        let snapshot = snapshot.map_err(|error| match error {
            SnapshotError::Expired { .. } => Status::internal_error("the newest state has expired"),
            SnapshotError::Store(error) => store_failed(&collection, "list", error),
        })?;
        let built_in = self.definitions.built_in.iter();
        let mut resources: Vec<_> = built_in.map(|built_in| Arc::clone(built_in.resource())).collect();
        for stored in snapshot.range("", None) {
            work::step();
            match self.resource_of(stored) {
                Ok(resource) => resources.extend(resource),
                Err(status) => tracing::error!(status.message, "a definition is passed over"),
            }
        }
        // Another process may have deleted some.
        let is_stored = |name: &str| snapshot.range(name, None).next().is_some_and(|stored| *stored.key == *name);
        self.definitions.known.retain(snapshot.len(), is_stored);
        Ok(resources)
    }

    /// The target with its resource as it is now. Errors: 404 if the resource or its version is gone.
    pub(super) async fn refresh<'t>(&self, target: &'t Target) -> Result<Cow<'t, Target>, Status> {
        let (group, plural) = (&target.version.group, &target.version.names.plural);
        if target.resource.definition.is_none() {
            return Ok(Cow::Borrowed(target));
        }
        let gone = Status::not_found_generic;
        let resource = self.resolve(group, plural).await?.ok_or_else(gone)?;
        if Arc::ptr_eq(&resource, &target.resource) {
            return Ok(Cow::Borrowed(target));
        }
        let version = Arc::clone(resource.served(&target.version.version).ok_or_else(gone)?);
        Ok(Cow::Owned(Target { resource, version, ..target.clone() }))
    }

    /// The resource of a stored definition; `None` while its names are not accepted, or if a built-in kind has its
    /// name.
    fn resource_of(&self, stored: &Arc<Stored>) -> Result<Option<Arc<Resource>>, Status> {
        if kinds::has_name(&stored.key) {
            return Ok(None);
        }
        let known = self.definitions.known.get(&stored.key);
        if let Some(resource) = known
            && resource.definition.as_ref().is_some_and(|definition| definition.revision == stored.revision)
        {
            return Ok(Some(resource));
        }
        let minor = self.definitions.minor;
        let definition = decode_definition(stored, minor)?;
        if !crd::is_served(&definition) {
            self.definitions.known.remove(&stored.key);
            return Ok(None);
        }
        let schemas = {
            let stored = Arc::clone(stored);
            move || crd::schemas(&decode_definition(&stored, minor).expect("it was decoded before"))
        };
        let versions = crd::outline(&definition, Arc::new(schemas)).into_iter().map(Arc::new).collect::<Vec<_>>();
        let Some(first) = versions.first() else { return Ok(None) };
        let collection = Collection::new(&first.group, &first.names.plural);
        let mut resource = Resource::custom(collection, versions, &Custom);
        resource.definition = Some(StoredDefinition {
            key: Arc::clone(&stored.key),
            revision: stored.revision,
            text_bytes: stored.bytes.len(),
            digest: digest_of(&stored.bytes),
            established: definition.is_true("Established"),
            terminating: crd::is_terminating(&definition),
        });
        resource.conversion = Conversion::of(&definition);
        resource.lineage = self.definitions.lineage;
        let resource = Arc::new(resource);
        self.definitions.known.insert(Arc::clone(&stored.key), Arc::clone(&resource));
        Ok(Some(resource))
    }

    /// Drops everything in memory about a deleted definition and its objects.
    pub(super) fn forget_deleted(&self, key: &str) {
        self.definitions.known.remove(key);
        if let Some((plural, group)) = key.split_once('.') {
            self.storage.forget(&Collection::new(group, plural));
        }
    }
}

fn digest_of(bytes: &[u8]) -> u64 {
    work::bytes(bytes.len());
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Reads a definition as the server's version of Kubernetes does.
pub(super) fn decode_definition(stored: &Stored, minor: Minor) -> Result<CustomResourceDefinition, Status> {
    let unreadable = |error: String| Status::internal_error(&format!("definition {}: {error}", stored.key));
    let object = json::decode(&stored.bytes).map_err(|error| unreadable(error.to_string()))?;
    definition::decode_in(minor, &object)
        .map(|(definition, _)| definition)
        .map_err(|error| unreadable(error.to_string()))
}

/// The namespaces in the store, for admission.
pub struct StoredNamespaces(pub Storage);

#[async_trait]
impl Namespaces for StoredNamespaces {
    async fn phase(&self, name: &str) -> Result<Option<Phase>, Status> {
        const TERMINATING: &[u8] = br#""phase":"Terminating""#;
        let stored = self.0.get(&NAMESPACES, name).await;
        let Some(stored) = stored.map_err(|error| store_failed(&NAMESPACES, "get", error))? else { return Ok(None) };
        // For nearly all namespaces this is known without decoding them.
        if memmem::find(&stored.bytes, TERMINATING).is_none() && !stored.is_damaged() {
            return Ok(Some(Phase::Active));
        }
        let namespace = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
        Ok(Some(match namespace.str_at(&["status", "phase"]) {
            "Terminating" => Phase::Terminating,
            _ => Phase::Active,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::registry::fixture;
    use crate::store::Encoded;

    const CONFIGURATIONS: [&str; 2] = ["admissionregistration.k8s.io", "mutatingwebhookconfigurations"];

    #[tokio::test]
    async fn a_definition_with_the_name_of_a_built_in_kind_has_no_effect() {
        let registry = fixture::registry().await;
        let [group, plural] = CONFIGURATIONS;
        let names = object! { "plural" => plural, "singular" => "x", "kind" => "X", "listKind" => "XList" };
        let schema = object! { "openAPIV3Schema" => object! { "type" => "object" } };
        let versions = object! { "name" => "v9", "served" => true, "storage" => true, "schema" => schema };
        let established = object! { "type" => "Established", "status" => "True" };
        let definition = object! {
            "metadata" => object! { "name" => format!("{plural}.{group}") },
            "spec" => object! {
                "group" => group, "scope" => "Cluster", "names" => names.clone(), "versions" => vec![versions],
            },
            "status" => object! { "acceptedNames" => names, "conditions" => vec![established] },
        };
        let (definitions, name) = (registry.definitions.collection(), format!("{plural}.{group}"));
        fixture::store(&registry.storage, &definitions, (&name, "u"), Encoded::of(&definition)).await;
        let resource = registry.resolve(group, plural).await.expect("definitions are there");
        assert!(resource.is_some_and(|resource| resource.definition.is_none()));
        assert!(registry.resolve_kind(group, "v9", "X").await.expect("definitions are there").is_none());
        let listed = registry.resources().await.expect("definitions are there");
        assert!(listed.iter().all(|listed| listed.definition.is_none()));
    }

    #[tokio::test]
    async fn a_damaged_namespace_is_in_no_phase() {
        let registry = fixture::registry().await;
        let namespaces = StoredNamespaces(registry.storage.clone());
        fixture::store(&registry.storage, &NAMESPACES, ("damaged", "u"), Encoded::new("")).await;
        assert_eq!(namespaces.phase("default").await.expect("it is readable"), Some(Phase::Active));
        assert_eq!(namespaces.phase("damaged").await.expect_err("it is not").code, 500);
        assert_eq!(namespaces.phase("absent").await.expect("it is none"), None);
    }
}
