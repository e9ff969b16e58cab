//! `AlwaysDeny`: no object is written or deleted, and no connection is allowed.
//!
//! DIFFERS: the server itself may write. kube-apiserver continues without the objects that it
//! creates at startup.
//! Source: `plugin/pkg/admission/deny`, release 1.37.

use async_trait::async_trait;

use super::forbidden;
use crate::admission::{Admission, Attributes};
use crate::meta::Status;
use crate::value::Value;

const WHY: &str = "admission control is denying all modifications";
const SERVER: &str = "system:apiserver";

pub struct AlwaysDeny;

#[async_trait]
impl Admission for AlwaysDeny {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        deny(attributes, object)
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        deny(attributes, object)
    }

    fn takes_connections(&self) -> bool {
        true
    }
}

fn deny(attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
    if attributes.user.name == SERVER {
        return Ok(());
    }
    Err(forbidden(attributes, object, WHY))
}
