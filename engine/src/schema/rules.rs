//! `x-kubernetes-validations`: the rules of a schema, compiled once and run over each object.

pub mod compile;
mod tree;
mod evaluate;
pub(crate) mod trace;

pub use evaluate::{Findings, Limits, Run};
pub use tree::{LazyRules, Rules};

use super::structural::Structural;

/// Whether `schema` has a rule at any node.
pub fn any(schema: &Structural) -> bool {
    !schema.validations.is_empty()
        || schema.items.as_deref().is_some_and(any)
        || schema.properties.values().any(any)
        || schema.additional_properties.as_ref().and_then(|schema| schema.structural()).is_some_and(any)
}
