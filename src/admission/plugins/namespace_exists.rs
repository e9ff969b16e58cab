//! `NamespaceExists`: nothing is written or deleted in a namespace that does not exist.
//!
//! Source: `plugin/pkg/admission/namespace/exists`, release 1.37.

use std::sync::Arc;

use async_trait::async_trait;

use super::namespace;
use crate::admission::{Admission, Attributes, Objects};
use crate::meta::Status;
use crate::value::Value;

pub struct NamespaceExists {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for NamespaceExists {
    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        let version = attributes.version;
        let is_namespace = version.group.is_empty() && version.names.plural == "namespaces";
        if attributes.namespace.is_empty() || is_namespace {
            return Ok(());
        }
        namespace(&*self.objects, attributes).await.map(drop)
    }
}
