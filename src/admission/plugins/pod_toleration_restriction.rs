//! `PodTolerationRestriction`: pods get the tolerations that annotations of their namespace name, and no others than it allows.
//!
//! Source: `plugin/pkg/admission/podtolerationrestriction`, release 1.37, without its file of defaults.

use std::sync::Arc;

use async_trait::async_trait;

use super::{is_about, namespace};
use crate::admission::{Admission, Attributes, Objects, Operation};
use crate::kinds::pod_object::namespace_tolerations;
use crate::meta::Status;
use crate::value::Value;

pub struct PodTolerationRestriction {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for PodTolerationRestriction {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if is_concerned(attributes) {
            let namespace = namespace(&*self.objects, attributes).await?;
            let is_new = attributes.operation == Operation::Create;
            namespace_tolerations::admit(object, &namespace, is_new).map_err(refused)?;
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if !is_concerned(attributes) {
            return Ok(());
        }
        let namespace = namespace(&*self.objects, attributes).await?;
        namespace_tolerations::validate(object, &namespace).map_err(refused)
    }
}

fn is_concerned(attributes: &Attributes<'_>) -> bool {
    attributes.operation != Operation::Delete && is_about(attributes, "", "pods")
}

/// In the reference it is an error without a code.
fn refused(why: String) -> Status {
    Status::plain(500, &why)
}
