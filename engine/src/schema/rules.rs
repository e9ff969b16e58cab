//! `x-kubernetes-validations`: the rules of a schema, compiled once and run over each object.

pub mod compile;
mod tree;
mod evaluate;
pub(crate) mod trace;

pub use evaluate::{CostLimits, RuleEvaluation, RuleFindings};
pub use tree::{LazyRules, Rules};

use super::structural::Structural;
use crate::value::Value;
use crate::work;

/// Whether `schema` has a rule at any node.
pub fn any(schema: &Structural) -> bool {
    work::step();
    !schema.validations.is_empty()
        || schema.items.as_deref().is_some_and(any)
        || schema.properties.values().any(any)
        || schema.additional_properties.as_ref().and_then(|schema| schema.structural()).is_some_and(any)
}

/// Whether there is a rule about a part of `value`; rules about absent parts don't count.
fn any_about(schema: &Structural, value: &Value) -> bool {
    work::step();
    let has_items = value.as_array().is_some_and(|items| !items.is_empty());
    let has_fields = value.as_object().is_some_and(|fields| !fields.is_empty());
    let values = || schema.additional_properties.as_ref().and_then(|schema| schema.structural());
    !schema.validations.is_empty()
        || has_items && schema.items.as_deref().is_some_and(any)
        || has_fields && values().is_some_and(any)
        || value.as_object().is_some_and(|fields| {
            let mut properties = fields.iter().filter_map(|(name, value)| Some((schema.properties.get(name)?, value)));
            properties.any(|(schema, value)| any_about(schema, value))
        })
}
