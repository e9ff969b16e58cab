//! `DefaultIngressClass`: an Ingress without a class gets the default one; if there are several,
//! the newest.
//!
//! Source: `plugin/pkg/admission/network/defaultingressclass`, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use super::is_about;
use crate::admission::{Admission, Attributes, Objects, Operation, ScopedResource};
use crate::kinds::ingress_classes;
use crate::meta::Status;
use crate::value::Value;

const CLASSES: ScopedResource<'static> =
    ScopedResource { group: "networking.k8s.io", plural: "ingressclasses", namespace: "" };

pub struct DefaultIngressClass {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for DefaultIngressClass {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if attributes.operation == Operation::Create && is_about(attributes, "networking.k8s.io", "ingresses") {
            let classes = self.objects.list_fields(CLASSES, &ingress_classes::READ).await?;
            ingress_classes::set_default(object, classes.iter());
        }
        Ok(())
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}
