//! `DefaultIngressClass`: an ingress that names no class gets the one that is marked as the default.
//!
//! Source: `plugin/pkg/admission/network/defaultingressclass`, release 1.37.

use async_trait::async_trait;

use super::{Admission, Attributes, Operation};
use crate::kinds::set_default_class;
use crate::meta::Status;
use crate::value::Value;

/// Where the plugin learns of classes.
#[async_trait]
pub trait Classes: Send + Sync {
    /// Every class of ingresses.
    async fn classes(&self) -> Result<Vec<Value>, Status>;
}

pub struct DefaultIngressClass<C> {
    pub classes: C,
}

#[async_trait]
impl<C: Classes> Admission for DefaultIngressClass<C> {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let version = attributes.version;
        let is_ingress = version.group == "networking.k8s.io" && version.names.plural == "ingresses";
        if is_ingress && attributes.operation == Operation::Create && attributes.subresource.is_empty() {
            set_default_class(object, self.classes.classes().await?.iter());
        }
        Ok(())
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}
