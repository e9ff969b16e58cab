//! How a write passes admission: what admission needs to know of the resource, and where the webhook configurations
//! come from.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use async_trait::async_trait;

use crate::admission::matcher::NamespaceLabels;
use crate::admission::plugins::Charges;
use crate::admission::webhooks::{Configuration, WebhookKind, WebhookSource};
use crate::admission::{AdmissionNotes, Attributes, FormError, Forms, Misread, Operation, Reinvocation};
use crate::apply::{TypeSchema, validate_managed_fields};
use crate::auth::UserInfo;
use crate::crd::ServedVersion;
use crate::kinds;
use crate::meta::selector::LabelSelector;
use crate::meta::type_meta::{MissingKind, type_meta};
use crate::meta::{Revision, Status};
use crate::object;
use crate::policy::matching;
use crate::policy::mutation::Mutated;
use crate::store::{At, Collection, PartReader, SnapshotError, Storage, Stored};
use crate::value::{Value, json};
use crate::work;
use crate::write::metadata::metadata_mut;

use super::identity::API_SERVER_MANAGER;
use super::list::list_failed;
use super::mutated::RequestScope;
use super::{Registry, Resource, Subresource, Target, Warnings, store_failed};

/// A write on its way through admission.
pub(super) struct Admitted<'a> {
    pub operation: Operation,
    pub target: &'a Target,
    /// Empty while a name is still to be generated.
    pub name: &'a str,
    pub old: Option<&'a Value>,
    pub user: &'a UserInfo,
    pub dry_run: bool,
    /// The fields of the request's options.
    pub options: &'a Value,
    /// What quotas were charged for in earlier attempts.
    pub charges: &'a Charges,
}

impl Admitted<'_> {
    fn subresource(&self) -> Subresource {
        match self.operation {
            Operation::Update | Operation::Create | Operation::Connect => self.target.subresource,
            Operation::Delete => Subresource::Main,
        }
    }

    /// The options as webhooks see them, under their name.
    fn options(&self) -> Value {
        let kind = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
            Operation::Connect => return Value::Null,
        };
        let mut options = object! { "kind" => kind, "apiVersion" => "meta.k8s.io/v1" };
        let fields = self.options.as_object().into_iter().flat_map(|fields| fields.iter());
        fields.for_each(|(name, value)| _ = options.make_object().insert(name, value.clone()));
        options
    }
}

impl Registry {
    /// The result of mutating admission for `object`, which is null for a deletion.
    pub(super) async fn admit_mutating(
        &self,
        write: &Admitted<'_>,
        object: &mut Value,
        warnings: &mut Warnings,
    ) -> Result<(), Status> {
        let told = AdmissionNotes::default();
        let (options, forms) = (write.options(), self.forms(write));
        let reinvocation = Reinvocation::default();
        let attributes = attributes(write, &options, &forms, &told, &reinvocation);
        let outcome = self.admission.mutate(&attributes, object).await;
        if let (Ok(()), Some(owners)) = (&outcome, told.owners_before()) {
            restore_broken_owners(object, owners, &told);
            warnings.note_replaced();
        }
        warnings.absorb(told.into_notes());
        outcome
    }

    /// Whether admission lets `object` pass.
    pub(super) async fn admit_validating(
        &self,
        write: &Admitted<'_>,
        object: &Value,
        warnings: &mut Warnings,
    ) -> Result<(), Status> {
        let told = AdmissionNotes::default();
        let (options, forms) = (write.options(), self.forms(write));
        let reinvocation = Reinvocation::default();
        let attributes = attributes(write, &options, &forms, &told, &reinvocation);
        let outcome = self.admission.validate(&attributes, object).await;
        warnings.absorb(told.into_notes());
        outcome
    }

    fn forms<'a>(&'a self, write: &Admitted<'a>) -> ResourceForms<'a> {
        ResourceForms {
            registry: self,
            resource: &write.target.resource,
            subresource: write.subresource(),
            version: &write.target.version,
        }
    }
}

fn attributes<'a>(
    write: &Admitted<'a>,
    options: &'a Value,
    forms: &'a ResourceForms<'_>,
    told: &'a AdmissionNotes,
    reinvocation: &'a Reinvocation,
) -> Attributes<'a> {
    Attributes {
        operation: write.operation,
        version: &write.target.version,
        subresource: write.subresource().name(),
        namespace: &write.target.namespace,
        name: write.name,
        old: write.old,
        user: write.user,
        dry_run: write.dry_run,
        options,
        forms,
        told,
        reinvocation,
        charges: write.charges,
    }
}

/// Restores the owners of fields if admission left them in an invalid state.
///
/// Source: `k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/admission.go`, release 1.37.
fn restore_broken_owners(object: &mut Value, before: Option<&Value>, told: &AdmissionNotes) {
    if object.at(&["metadata", "managedFields"]) == before {
        return;
    }
    let Err(why) = validate_managed_fields(object) else { return };
    let metadata = metadata_mut(object);
    match before {
        Some(entries) => _ = metadata.insert("managedFields", entries.clone()),
        None => _ = metadata.remove("managedFields"),
    }
    told.warn(&format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating \
         admission controller; please fix your requests: {why}"
    ));
}

/// The versions of a resource.
struct ResourceForms<'a> {
    registry: &'a Registry,
    resource: &'a Resource,
    subresource: Subresource,
    version: &'a ServedVersion,
}

impl ResourceForms<'_> {
    fn scope(&self) -> RequestScope<'_> {
        RequestScope { resource: self.resource, subresource: self.subresource, version: self.version }
    }
}

#[async_trait]
impl Forms for ResourceForms<'_> {
    fn versions(&self) -> Vec<Arc<ServedVersion>> {
        let has_it = |version: &&Arc<ServedVersion>| match self.subresource {
            Subresource::Main | Subresource::Part(_) => true,
            Subresource::Status => version.status,
            Subresource::Scale => version.scale.is_some(),
        };
        self.resource.versions.iter().filter(has_it).cloned().collect()
    }

    async fn convert(&self, object: Value, to: &ServedVersion) -> Result<Value, FormError> {
        self.registry.convert_to(self.resource, to, object).await
    }

    fn decode(&self, object: Value) -> Result<Value, FormError> {
        let (_, kind) = type_meta(&object)?;
        if kind.is_empty() {
            return Err(MissingKind::of(&json::encode(&object)).into());
        }
        match self.subresource {
            Subresource::Scale => Ok(object),
            // The body sent to a subresource has a different kind from the resource.
            Subresource::Part(_) if self.resource.versions.iter().all(|version| version.names.kind != kind) => {
                Ok(object)
            }
            _ => Ok(self.resource.strategy.set_defaults(object, &self.resource.versions)?.object),
        }
    }

    fn differ(&self, one: &Value, other: &Value) -> bool {
        one != other && self.typed(one) != self.typed(other)
    }

    async fn version_of(&self, group: &str, version: &str, kind: &str) -> Result<Option<Arc<ServedVersion>>, Status> {
        let resource = self.registry.resolve_kind(group, version, kind).await?;
        Ok(resource.and_then(|resource| resource.served(version).cloned()))
    }

    fn types(&self, object: &Value, version: &ServedVersion) -> Option<Cow<'_, TypeSchema>> {
        self.scope().types(object, version)
    }

    fn read(&self, before: &Value, mutated: Mutated) -> Result<Value, Misread> {
        self.scope().read(before, mutated)
    }

    async fn find(&self, version: &ServedVersion, namespace: &str, name: &str) -> Result<Option<Value>, Status> {
        let Some(target) = self.other(version, namespace, name).await? else { return Ok(None) };
        match self.registry.stored(&target).await? {
            Some(stored) => self.registry.read_stored(&target, &stored).await.map(Some),
            None => Ok(None),
        }
    }

    async fn select(
        &self,
        version: &ServedVersion,
        namespace: &str,
        labels: &LabelSelector,
    ) -> Result<Vec<Value>, Status> {
        let Some(target) = self.other(version, namespace, "").await? else { return Ok(Vec::new()) };
        let part = self.registry.part(&target, At::Newest, PartReader::Check).await;
        let part = part.map_err(|error| list_failed(&target.resource.collection, error))?;
        let mut selected = Vec::new();
        for stored in part.objects() {
            work::step();
            let object = self.registry.read_stored(&target, stored).await?;
            if matching::matches(labels, object.at(&["metadata", "labels"])) {
                selected.push(object);
            }
        }
        Ok(selected)
    }

    async fn make_namespace(&self, name: &str) -> Result<(), Status> {
        let namespace = object! { "metadata" => object! { "name" => name } };
        match self.registry.create_own("", "namespaces", "", API_SERVER_MANAGER, namespace).await {
            Err(status) if status.is_already_exists() => Ok(()),
            done => done,
        }
    }

    fn settle(&self, object: Value) -> Result<Value, FormError> {
        match self.subresource {
            Subresource::Scale => Ok(object),
            _ => Ok(self.resource.strategy.settle(object, &self.resource.versions)?),
        }
    }
}

impl ResourceForms<'_> {
    /// What Go decodes an object to; the object itself if it has no Go type, or does not fit it.
    fn typed<'o>(&self, object: &'o Value) -> Cow<'o, Value> {
        let is_typed = !self.resource.is_custom() || self.subresource == Subresource::Scale;
        let message = kinds::message_of(object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        let Some(message) = message.filter(|_| is_typed) else { return Cow::Borrowed(object) };
        let mut known = object.clone();
        message.forget_newer(self.version.minor, &mut known);
        message.decode(&known).map_or(Cow::Borrowed(object), |(decoded, _)| Cow::Owned(decoded))
    }

    /// Where the objects of another resource are stored; `None` if the resource is gone.
    async fn other(&self, version: &ServedVersion, namespace: &str, name: &str) -> Result<Option<Target>, Status> {
        let resource = self.registry.resolve(&version.group, &version.names.plural).await?;
        let Some(resource) = resource else { return Ok(None) };
        let Some(version) = resource.served(&version.version).cloned() else { return Ok(None) };
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Ok(Some(Target { resource, version, subresource: Subresource::Main, namespace, name }))
    }
}

/// The configurations and namespaces in the store, for admission.
pub struct StoredWebhooks {
    storage: Storage,
    /// Configurations from files.
    in_files: Vec<Arc<Configuration>>,
    /// By kind, then by name. A stale one is replaced when it is next read.
    read: Mutex<HashMap<WebhookKind, HashMap<Arc<str>, ReadConfiguration>>>,
}

/// A configuration, and the revision that it was read at.
type ReadConfiguration = (Revision, Arc<Configuration>);

impl StoredWebhooks {
    /// The stored configurations, and for each kind also those from files.
    pub fn new(storage: Storage, in_files: Vec<Arc<Configuration>>) -> Self {
        StoredWebhooks { storage, in_files, read: Mutex::default() }
    }

    /// The configuration in a row; each revision is decoded once.
    fn decoded(&self, kind: WebhookKind, stored: &Stored) -> Result<Arc<Configuration>, Status> {
        let read = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let known = read().entry(kind).or_default().get(&stored.key).cloned();
        if let Some((_, known)) = known.filter(|(revision, _)| *revision == stored.revision) {
            return Ok(known);
        }
        let decoded = json::decode(&stored.bytes);
        let decoded = decoded.map_err(|error| Status::internal_error(&format!("{}: {error}", stored.key)))?;
        let configuration = Arc::new(Configuration::decode(&decoded));
        let newest = (stored.revision, Arc::clone(&configuration));
        read().entry(kind).or_default().insert(Arc::clone(&stored.key), newest);
        Ok(configuration)
    }

    /// Forgets those that are not among `stored`.
    fn forget_others(&self, kind: WebhookKind, stored: &[&Arc<Stored>]) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let read = read.entry(kind).or_default();
        if read.len() > stored.len() {
            read.retain(|name, _| stored.iter().any(|stored| stored.key == *name));
        }
    }
}

/// The collection of the configurations of a kind.
fn configurations_of(kind: WebhookKind) -> &'static Collection {
    static MUTATING: LazyLock<Collection> = LazyLock::new(|| collection(WebhookKind::Mutating));
    static VALIDATING: LazyLock<Collection> = LazyLock::new(|| collection(WebhookKind::Validating));
    fn collection(kind: WebhookKind) -> Collection {
        Collection::new("admissionregistration.k8s.io", kind.plural())
    }
    match kind {
        WebhookKind::Mutating => &MUTATING,
        WebhookKind::Validating => &VALIDATING,
    }
}

#[async_trait]
impl WebhookSource for StoredWebhooks {
    async fn configurations(&self, kind: WebhookKind) -> Result<Vec<Arc<Configuration>>, Status> {
        let collection = configurations_of(kind);
        let snapshot = self.storage.snapshot(collection, At::Newest).await;
        let snapshot = snapshot.map_err(|error| match error {
            SnapshotError::Expired { .. } => Status::internal_error("the newest state has expired"),
            SnapshotError::Store(error) => store_failed(collection, "list", error),
        })?;
        let stored: Vec<_> = snapshot.range("", None).collect();
        let mut configurations = self.in_files.clone();
        for stored in &stored {
            configurations.push(self.decoded(kind, stored)?);
        }
        self.forget_others(kind, &stored);
        Ok(configurations)
    }

    fn in_files(&self) -> Vec<Arc<Configuration>> {
        self.in_files.clone()
    }
}

#[async_trait]
impl NamespaceLabels for StoredWebhooks {
    async fn namespace_labels(&self, name: &str) -> Result<Option<Value>, Status> {
        let collection = Collection::new("", "namespaces");
        let stored = self.storage.get(&collection, name).await;
        let Some(stored) = stored.map_err(|error| store_failed(&collection, "get", error))? else { return Ok(None) };
        let namespace = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
        Ok(Some(namespace.at(&["metadata", "labels"]).cloned().unwrap_or_default()))
    }
}
