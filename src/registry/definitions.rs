//! Which resources there are: the built-in kinds, and what the definitions in the store compile to.
//!
//! A custom resource is compiled when it is first asked for, and again when its definition has another revision: so a
//! changed schema takes effect with the write that changed it, in every process.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use futures_util::future::try_join_all;

use crate::admission::{Namespaces, Phase};
use crate::auth::UserInfo;
use crate::crd::{self, definition};
use crate::kinds::{self, Kind, strategy::Custom};
use crate::meta::Status;
use crate::object;
use crate::store::{At, Collection, SnapshotError, Storage, Stored, WatchError};
use crate::value::{Value, json};

use super::convert::Conversion;
use super::resource::{Definition, Resource};
use super::{
    Body, BuiltIn, CreateRequest, FieldValidation, Format, PatchRequest, PatchType, Registry, Subresource, Target,
    Warnings, store_failed,
};

/// The group of CustomResourceDefinitions.
pub const GROUP: &str = "apiextensions.k8s.io";
/// Their resource.
pub const PLURAL: &str = "customresourcedefinitions";

/// The table of what is served.
pub struct Definitions {
    built_in: Vec<BuiltIn>,
    /// By the name of the definition. A missing one is compiled; a stale one replaced.
    compiled: RwLock<HashMap<Arc<str>, Arc<Resource>>>,
}

impl Definitions {
    pub fn new(built_in: Vec<BuiltIn>) -> Self {
        Definitions { built_in, compiled: RwLock::default() }
    }

    /// The collections whose objects guard the writes of others.
    pub fn guards() -> [Collection; 2] {
        [Collection::new(GROUP, PLURAL), Collection::new("", "namespaces")]
    }

    /// Where definitions are stored.
    pub fn collection(&self) -> Collection {
        Collection::new(GROUP, PLURAL)
    }

    /// Where namespaces are stored.
    pub fn namespaces(&self) -> Collection {
        Collection::new("", "namespaces")
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
    /// The resource `plural` of `group`; `None` where there is none, or its names are not accepted yet.
    pub async fn resolve(&self, group: &str, plural: &str) -> Result<Option<Arc<Resource>>, Status> {
        let built_in = self.definitions.built_in(group, plural);
        if let Some(built_in) = built_in.filter(|built_in| !built_in.kind.yields) {
            return Ok(Some(Arc::clone(built_in.resource())));
        }
        if group.is_empty() {
            return Ok(None);
        }
        let name = format!("{plural}.{group}");
        let collection = self.definitions.collection();
        let stored = self.storage.get(&collection, &name).await;
        let stored = stored.map_err(|error| store_failed(&collection, "get", error))?;
        match stored {
            Some(stored) => self.compile(&stored),
            None => {
                self.forget(&name);
                Ok(built_in.map(|built_in| Arc::clone(built_in.resource())))
            }
        }
    }

    /// The resource whose objects are of `kind` in a served version of `group`; `None` where there is none.
    pub async fn resolve_kind(&self, group: &str, version: &str, kind: &str) -> Result<Option<Arc<Resource>>, Status> {
        let is_it = |resource: &Resource| resource.served(version).is_some_and(|version| version.names.kind == kind);
        let mut of_group = self.definitions.built_in.iter().filter(|built_in| built_in.kind.group == group);
        if let Some(found) = of_group.find(|built_in| is_it(built_in.resource())) {
            return self.resolve(group, found.kind.plural).await;
        }
        let snapshot = self.storage.snapshot(&self.definitions.collection(), At::Newest).await;
        let snapshot = snapshot.map_err(|_| Status::internal_error("definitions can't be read"))?;
        for stored in snapshot.range("", None) {
            // The name of a definition is `plural.group`: those of other groups are not compiled for this.
            if stored.key.split_once('.').is_some_and(|(_, found)| found == group)
                && let Some(resource) = self.compile(stored)?
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
        let gives_way = |kind: &Kind| {
            let name = format!("{}.{}", kind.plural, kind.group);
            kind.yields && snapshot.range(&name, None).any(|stored| *stored.key == *name)
        };
        let built_in = self.definitions.built_in.iter().filter(|built_in| !gives_way(built_in.kind));
        let mut resources: Vec<_> = built_in.map(|built_in| Arc::clone(built_in.resource())).collect();
        for stored in snapshot.range("", None) {
            resources.extend(self.compile(stored)?);
        }
        Ok(resources)
    }

    /// The target as its resource is now. Errors: 404 where the resource or its version is gone.
    pub(super) async fn refresh(&self, target: &Target) -> Result<Target, Status> {
        let (group, plural) = (&target.version.group, &target.version.names.plural);
        let yields = || self.definitions.built_in(group, plural).is_some_and(|built_in| built_in.kind.yields);
        if target.resource.definition.is_none() && !yields() {
            return Ok(target.clone());
        }
        let gone = Status::not_found_generic;
        let resource = self.resolve(group, plural).await?.ok_or_else(gone)?;
        if Arc::ptr_eq(&resource, &target.resource) {
            return Ok(target.clone());
        }
        let version = Arc::clone(resource.served(&target.version.version).ok_or_else(gone)?);
        Ok(Target { resource, version, ..target.clone() })
    }

    /// The resource of a stored definition; `None` while its names are not accepted.
    fn compile(&self, stored: &Stored) -> Result<Option<Arc<Resource>>, Status> {
        let known = self.definitions.compiled.read().unwrap_or_else(PoisonError::into_inner).get(&stored.key).cloned();
        if let Some(resource) = known
            && resource.definition.as_ref().is_some_and(|definition| definition.revision == stored.revision)
        {
            return Ok(Some(resource));
        }
        let unreadable = |error: String| Status::internal_error(&format!("definition {}: {error}", stored.key));
        let object = json::decode(&stored.bytes).map_err(|error| unreadable(error.to_string()))?;
        let (definition, _) = definition::decode(&object).map_err(unreadable)?;
        if !crd::is_served(&definition) {
            self.forget(&stored.key);
            return Ok(None);
        }
        let versions = crd::compile(&definition).into_iter().map(Arc::new).collect::<Vec<_>>();
        let Some(first) = versions.first() else { return Ok(None) };
        let collection = Collection::new(&first.group, &first.names.plural);
        let mut resource = Resource::custom(collection, versions, &Custom);
        resource.definition = Some(Definition {
            key: Arc::clone(&stored.key),
            revision: stored.revision,
            terminating: crd::is_terminating(&definition),
        });
        resource.conversion = Conversion::of(&definition);
        let resource = Arc::new(resource);
        let mut compiled = self.definitions.compiled.write().unwrap_or_else(PoisonError::into_inner);
        compiled.insert(Arc::clone(&stored.key), Arc::clone(&resource));
        Ok(Some(resource))
    }

    fn forget(&self, name: &str) {
        let known = self.definitions.compiled.read().unwrap_or_else(PoisonError::into_inner).contains_key(name);
        if known {
            self.definitions.compiled.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        }
    }
}

/// The namespaces in the store, for admission.
pub struct StoredNamespaces(pub Storage);

#[async_trait]
impl Namespaces for StoredNamespaces {
    async fn phase(&self, name: &str) -> Result<Option<Phase>, Status> {
        let collection = Collection::new("", "namespaces");
        let stored = self.0.get(&collection, name).await;
        let Some(stored) = stored.map_err(|error| store_failed(&collection, "get", error))? else { return Ok(None) };
        let namespace = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
        Ok(Some(match namespace.str_at(&["status", "phase"]) {
            "Terminating" => Phase::Terminating,
            _ => Phase::Active,
        }))
    }
}

impl Registry {
    /// Makes the namespaces that every cluster has, where they are missing.
    ///
    /// They are made together, so that they are on disk at the cost of one: in a task of their own, since who writes runs
    /// on the same thread behind it, and then finds them all.
    pub async fn make_initial_namespaces(self: &Arc<Self>) -> Result<(), Status> {
        let registry = Arc::clone(self);
        let made = tokio::spawn(async move {
            try_join_all(kinds::INITIAL_NAMESPACES.map(|name| registry.make_initial_namespace(name))).await
        });
        made.await.map_err(|error| Status::internal_error(&error.to_string()))?.map(drop)
    }

    async fn make_initial_namespace(&self, name: &str) -> Result<(), Status> {
        let collection = self.definitions.namespaces();
        let found = self.storage.get(&collection, name).await;
        if found.map_err(|error| store_failed(&collection, "get", error))?.is_some() {
            return Ok(());
        }
        match self.create_own("", "namespaces", "", OWN_MANAGER, kinds::new_namespace(name)).await {
            // Another server on the same database was faster.
            Err(status) if status.is_already_exists() => Ok(()),
            done => done,
        }
    }

    /// Registers a definition as `kubectl apply` would: it is made, or its spec brought up to date.
    pub async fn register(&self, definition: Value) -> Result<(), Status> {
        match self.create_own(GROUP, PLURAL, "", OWN_MANAGER, definition.clone()).await {
            Err(status) if status.is_already_exists() => {}
            other => return other,
        }
        let target = self.own_target(GROUP, PLURAL, definition.str_at(&["metadata", "name"])).await?;
        let request = PatchRequest {
            patch_type: PatchType::Merge,
            bytes: json::encode(&object! { "spec" => definition.get("spec").cloned().unwrap_or_default() }).into(),
            field_validation: FieldValidation::Ignore,
            manager: OWN_MANAGER.to_owned(),
            force: false,
            dry_run: false,
            options: Value::Null,
        };
        self.patch(&target, &own_user(), &request, &mut Warnings::default()).await.map(drop)
    }

    /// Waits until the controllers have decided on the definition `name`: its objects are served then. Returns why they are
    /// not, where they are not: another has its names, or it is gone.
    pub async fn wait_until_served(&self, name: &str) -> Result<Option<String>, Status> {
        let collection = self.definitions.collection();
        loop {
            let failed = |error| store_failed(&collection, "get", error);
            let seen = self.storage.revision(&collection);
            let Some(stored) = self.storage.get(&collection, name).await.map_err(failed)? else {
                return Ok(Some("it has been deleted".to_owned()));
            };
            let unreadable = |error: String| Status::internal_error(&format!("definition {name}: {error}"));
            let object = json::decode(&stored.bytes).map_err(|error| unreadable(error.to_string()))?;
            let (definition, _) = definition::decode(&object).map_err(unreadable)?;
            if definition.is_true("Established") {
                return Ok(None);
            }
            if let Some(refused) = definition.condition("NamesAccepted").filter(|known| known.status == "False") {
                return Ok(Some(refused.message.clone()));
            }
            match self.storage.watch(&collection, seen).await {
                Ok(mut changes) => _ = changes.next().await,
                // So much has happened that it is best to look again.
                Err(WatchError::Expired { .. }) => {}
                Err(WatchError::Store(error)) => return Err(failed(error)),
            }
        }
    }

    /// Creates an object for the server itself; `namespace` is empty in cluster scope.
    pub async fn create_own(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        manager: &str,
        object: Value,
    ) -> Result<(), Status> {
        let mut target = self.own_target(group, plural, "").await?;
        target.namespace = namespace.to_owned();
        let request = CreateRequest {
            body: Body { bytes: json::encode(&object).into(), format: Format::Json },
            field_validation: FieldValidation::Ignore,
            manager: manager.to_owned(),
            dry_run: false,
            options: Value::Null,
        };
        self.create(&target, &own_user(), &request, &mut Warnings::default()).await.map(drop)
    }

    pub(super) async fn own_target(&self, group: &str, plural: &str, name: &str) -> Result<Target, Status> {
        let resource = self.resolve(group, plural).await?.ok_or_else(Status::not_found_generic)?;
        let version = Arc::clone(resource.first());
        let (namespace, name) = (String::new(), name.to_owned());
        Ok(Target { resource, version, subresource: Subresource::Main, namespace, name })
    }
}

/// The manager of the fields that the server itself sets.
pub(super) const OWN_MANAGER: &str = "skiff";

pub(super) fn own_user() -> UserInfo {
    UserInfo::authenticated("system:apiserver", vec![UserInfo::MASTERS.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::fixture;
    use crate::store;

    const CONFIGURATIONS: [&str; 2] = ["admissionregistration.k8s.io", "mutatingwebhookconfigurations"];

    async fn is_custom(registry: &Registry) -> bool {
        let [group, plural] = CONFIGURATIONS;
        let resource = registry.resolve(group, plural).await.expect("definitions are there");
        let listed = registry.resources().await.expect("definitions are there");
        let collection = Collection::new(group, plural);
        assert_eq!(listed.iter().filter(|listed| listed.collection == collection).count(), 1);
        resource.is_some_and(|resource| resource.definition.is_some())
    }

    #[tokio::test]
    async fn a_definition_takes_the_place_of_a_kind_that_yields_until_it_is_gone() {
        let registry = fixture::registry().await;
        assert!(!is_custom(&registry).await);
        let [group, plural] = CONFIGURATIONS;
        let names = object! { "plural" => plural, "singular" => "x", "kind" => "X", "listKind" => "XList" };
        let schema = object! { "openAPIV3Schema" => object! { "type" => "object" } };
        let versions = object! { "name" => "v1", "served" => true, "storage" => true, "schema" => schema };
        let established = object! { "type" => "Established", "status" => "True" };
        let definition = object! {
            "metadata" => object! { "name" => format!("{plural}.{group}") },
            "spec" => object! {
                "group" => group, "scope" => "Cluster", "names" => names.clone(), "versions" => vec![versions],
            },
            "status" => object! { "acceptedNames" => names, "conditions" => vec![established] },
        };
        let write = |op| store::Write {
            collection: registry.definitions.collection(),
            key: format!("{plural}.{group}").as_str().into(),
            op,
            guards: Vec::new(),
        };
        let put = store::Put {
            bytes: store::compact_json(&definition),
            uid: "u".into(),
            stored_version: "v1".into(),
            schema_generation: 0,
            expires_at_ms: None,
        };
        registry.storage.write(write(store::Op::Put(put))).await.expect("it is stored");
        assert!(is_custom(&registry).await);
        registry.storage.write(write(store::Op::Delete)).await.expect("it is removed");
        assert!(!is_custom(&registry).await);
    }
}
