//! `NamespaceAutoProvision`: creates a missing namespace for the first object that is created in
//! it.
//!
//! The server itself creates the namespace, whatever the user may do; it remains even if the object
//! is refused later. Its creation passes through admission.
//!
//! Source: `plugin/pkg/admission/namespace/autoprovision`, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use crate::admission::{Admission, Attributes, Objects, Operation, ScopedResource, forbidden};
use crate::meta::Status;
use crate::value::Value;

pub struct NamespaceAutoProvision {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for NamespaceAutoProvision {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let (version, namespace) = (attributes.version, attributes.namespace);
        let is_namespace = version.group.is_empty() && version.names.plural == "namespaces";
        let is_creation = attributes.operation == Operation::Create && !attributes.dry_run;
        if !is_creation || namespace.is_empty() || is_namespace {
            return Ok(());
        }
        let found =
            self.objects.get(ScopedResource { group: "", plural: "namespaces", namespace: "" }, namespace).await?;
        if found.is_some() {
            return Ok(());
        }
        match attributes.forms.make_namespace(namespace).await {
            Err(refusal) if refusal.code == 403 => Err(refusal),
            Err(other) => Err(forbidden(attributes, object, &other.message)),
            Ok(()) => Ok(()),
        }
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}
