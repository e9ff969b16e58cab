//! `PersistentVolumeClaimResize`: a claim may grow once it is bound, and if its storage class
//! allows it.
//!
//! Source: `plugin/pkg/admission/storage/persistentvolume/resize`, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use super::{forbidden, is_about};
use crate::admission::{Admission, Attributes, Objects, Operation, ScopedResource};
use crate::kinds::resources;
use crate::kinds::storage::class;
use crate::meta::Status;
use crate::value::Value;

const CLASSES: ScopedResource<'static> =
    ScopedResource { group: "storage.k8s.io", plural: "storageclasses", namespace: "" };

pub struct PersistentVolumeClaimResize {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for PersistentVolumeClaimResize {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let is_update = attributes.operation == Operation::Update;
        let Some(old) = attributes.old.filter(|_| is_update && is_about(attributes, "", "persistentvolumeclaims"))
        else {
            return Ok(());
        };
        let size = |claim: &Value| resources::parse(claim.at(&["spec", "resources", "requests", "storage"]));
        if size(object) <= size(old) {
            return Ok(());
        }
        if old.str_at(&["status", "phase"]) != "Bound" {
            return Err(forbidden(attributes, object, "Only bound persistent volume claims can be expanded"));
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                   support resize";
        if self.may_grow(object, old).await? { Ok(()) } else { Err(forbidden(attributes, object, why)) }
    }
}

impl PersistentVolumeClaimResize {
    async fn may_grow(&self, claim: &Value, old: &Value) -> Result<bool, Status> {
        let name = class::of_claim(claim).unwrap_or_default();
        if name.is_empty() || class::of_claim(old) != Some(name) {
            return Ok(false);
        }
        let class = self.objects.get(CLASSES, name).await?;
        let allows = class.as_ref().and_then(|class| class.get("allowVolumeExpansion")).and_then(Value::as_bool);
        Ok(allows.unwrap_or_default())
    }
}
