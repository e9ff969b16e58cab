//! `DenyServiceExternalIPs`: a service may keep the external IPs that it has, but not get
//! others.
//!
//! Source: `plugin/pkg/admission/network/denyserviceexternalips`, release 1.37.

use std::collections::HashSet;

use async_trait::async_trait;

use super::{forbidden, is_about};
use crate::admission::{Admission, Attributes, Operation};
use crate::meta::Status;
use crate::value::Value;

pub struct DenyServiceExternalIps;

#[async_trait]
impl Admission for DenyServiceExternalIps {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if attributes.operation == Operation::Delete || !is_about(attributes, "", "services") {
            return Ok(());
        }
        let old = attributes.old.map(addresses).unwrap_or_default();
        if addresses(object).is_subset(&old) {
            return Ok(());
        }
        Err(forbidden(attributes, object, "Use of external IPs is denied by admission control"))
    }
}

fn addresses(service: &Value) -> HashSet<&str> {
    service.items_at(&["spec", "externalIPs"]).iter().filter_map(Value::as_str).collect()
}
