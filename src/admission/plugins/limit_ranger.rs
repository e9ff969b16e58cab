//! `LimitRanger`: containers get the default resources of their namespace's limit ranges, and pods
//! and claims must stay within the limits.
//!
//! Source: `plugin/pkg/admission/limitranger`, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use super::{forbidden, is_about};
use crate::admission::{Admission, Attributes, Listed, Objects, Operation, ScopedResource};
use crate::kinds::limits::{self, TooMuch};
use crate::meta::Status;
use crate::value::Value;

pub struct LimitRanger {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for LimitRanger {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if !is_pod(attributes) {
            return Ok(());
        }
        for range in self.ranges(attributes).await?.iter() {
            limits::set_pod_defaults(range, object).map_err(|TooMuch| Status::too_large_to_store())?;
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let is_pod = is_pod(attributes);
        let is_write = matches!(attributes.operation, Operation::Create | Operation::Update);
        let is_claim = is_write && is_about(attributes, "", "persistentvolumeclaims");
        if !(is_pod || is_claim) {
            return Ok(());
        }
        let check = if is_pod { limits::check_pod } else { limits::check_claim };
        for range in self.ranges(attributes).await?.iter() {
            if let Some(why) = check(range, object) {
                return Err(forbidden(attributes, object, &why));
            }
        }
        Ok(())
    }
}

impl LimitRanger {
    /// The limit ranges of the namespace; none for an object that is being deleted.
    async fn ranges(&self, attributes: &Attributes<'_>) -> Result<Listed, Status> {
        let is_going = |old: &Value| old.at(&["metadata", "deletionTimestamp"]).is_some();
        if attributes.old.is_some_and(is_going) {
            return Ok(Listed::default());
        }
        let place = ScopedResource { group: "", plural: "limitranges", namespace: attributes.namespace };
        self.objects.list(place).await
    }
}

/// Whether the request creates a pod or resizes one.
fn is_pod(attributes: &Attributes<'_>) -> bool {
    let is_resize = attributes.subresource == "resize" && attributes.operation == Operation::Update;
    let version = attributes.version;
    let is_pod = version.group.is_empty() && version.names.plural == "pods";
    is_pod && (is_resize || (attributes.subresource.is_empty() && attributes.operation == Operation::Create))
}
