//! The table of passes.

mod definitions;
mod expressions;
mod metadata;
mod objects;
mod patches;
mod policies;
mod quotas;
mod requests;
mod roles;
mod values;
mod wire;

use crate::pass::Pass;

pub fn all() -> Vec<Pass> {
    [
        values::passes(),
        metadata::passes(),
        patches::passes(),
        objects::passes(),
        definitions::passes(),
        expressions::passes(),
        roles::passes(),
        policies::passes(),
        quotas::passes(),
        wire::passes(),
        requests::passes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
