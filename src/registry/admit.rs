//! How a write passes admission: what admission needs to know of the resource.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;

use crate::admission::plugins::Charges;
use crate::admission::{AdmissionNotes, Attributes, FormError, Forms, Misread, Operation, Reinvocation};
use crate::apply::{TypeSchema, validate_managed_fields};
use crate::auth::UserInfo;
use crate::crd::ServedVersion;
use crate::kinds;
use crate::meta::Status;
use crate::meta::selector::LabelSelector;
use crate::meta::type_meta::{MissingKind, type_meta};
use crate::object;
use crate::policy::matching;
use crate::policy::mutation::Mutated;
use crate::store::{At, PartReader};
use crate::value::{Value, json};
use crate::work;
use crate::write::metadata::metadata_mut;

use super::identity::API_SERVER_MANAGER;
use super::list::list_failed;
use super::mutated::RequestScope;
use super::{Registry, Resource, Subresource, Target, Warnings};

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
