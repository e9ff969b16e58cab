//! `ResourceQuota`: nobody uses more than the quotas of a namespace allow. What is used is written into their status.
//!
//! DIFFERS: the status is written without an entry in managedFields, and a write that is tried again after a conflict of its own is
//! counted again; a controller counts anew.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/resourcequota`, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use super::forbidden;
use crate::admission::{Admission, Attributes, Objects, Operation, Place};
use crate::kinds::quota::{self, Counted, Request};
use crate::meta::Status;
use crate::value::Value;

/// How often quotas are read again that others have written meanwhile.
const TRIES: usize = 16;

pub struct ResourceQuota {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for ResourceQuota {
    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let version = attributes.version;
        let counted =
            Counted { group: &version.group, plural: &version.names.plural, subresource: attributes.subresource };
        let is_write = matches!(attributes.operation, Operation::Create | Operation::Update);
        if attributes.namespace.is_empty() || !is_write || !counted.handles(object, attributes.old) {
            return Ok(());
        }
        let place = Place { group: "", plural: "resourcequotas", namespace: attributes.namespace };
        let request = Request { counted, object, old: attributes.old };
        for _ in 0..TRIES {
            let quotas = self.objects.list(place).await?;
            let charged = quota::charge(&quotas, &request);
            let charged = charged.map_err(|why| forbidden(attributes, object.str_at(&["metadata", "name"]), &why))?;
            if attributes.dry_run || self.write(place, charged).await? {
                return Ok(());
            }
        }
        Err(Status::internal_error("resource quota evaluation timed out"))
    }
}

impl ResourceQuota {
    /// Whether nobody wrote one of the quotas meanwhile.
    async fn write(&self, place: Place<'_>, quotas: Vec<Value>) -> Result<bool, Status> {
        for quota in quotas {
            if !self.objects.replace(place, quota).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
