//! `TaintNodesByCondition`: a new node takes no pods until it is ready.
//!
//! Source: `plugin/pkg/admission/nodetaint`, release 1.36.

use async_trait::async_trait;

use super::is_about;
use crate::admission::{Admission, Attributes, Operation};
use crate::meta::Status;
use crate::object;
use crate::value::Value;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const EFFECT: &str = "NoSchedule";

pub struct TaintNodesByCondition;

#[async_trait]
impl Admission for TaintNodesByCondition {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !is_about(attributes, "", "nodes") {
            return Ok(());
        }
        let is_it = |taint: &Value| taint.str_at(&["key"]) == NOT_READY && taint.str_at(&["effect"]) == EFFECT;
        if object.items_at(&["spec", "taints"]).iter().any(is_it) {
            return Ok(());
        }
        let taints = object.make_object().entry("spec").make_object().entry("taints");
        if !matches!(taints, Value::Array(_)) {
            *taints = Value::Array(Vec::new());
        }
        if let Some(taints) = taints.as_array_mut() {
            taints.push(object! { "key" => NOT_READY, "effect" => EFFECT });
        }
        Ok(())
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}
