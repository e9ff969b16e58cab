//! `DefaultStorageClass`: a claim without a storage class gets the default one; if there are
//! several, the newest.
//!
//! Source: `plugin/pkg/admission/storage/storageclass/setdefault`, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use super::is_about;
use crate::admission::{Admission, Attributes, Objects, Operation, ScopedResource};
use crate::kinds::storage::class;
use crate::meta::Status;
use crate::value::Value;

const CLASSES: ScopedResource<'static> =
    ScopedResource { group: "storage.k8s.io", plural: "storageclasses", namespace: "" };

pub struct DefaultStorageClass {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for DefaultStorageClass {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let is_new = attributes.operation == Operation::Create;
        if !is_new || !is_about(attributes, "", "persistentvolumeclaims") || class::of_claim(object).is_some() {
            return Ok(());
        }
        let classes = self.objects.list_fields(CLASSES, &class::READ).await?;
        class::set_default(object, &classes);
        Ok(())
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}
