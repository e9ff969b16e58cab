//! CustomResourceDefinitions: from what its author wrote to what is served.

mod served;
pub mod definition;
pub mod defaults;
pub mod names;
pub mod approval;
pub mod strategy;
pub mod validate;
pub mod bounds;
pub mod warnings;
mod compile;
mod lazy_schema;
pub mod conversion_review;
pub mod review_answer;
pub mod nested;
pub mod write;

pub(in crate::crd) use compile::{REPEATED_NAMES_BYTES_MAX, repeated_names_bytes};
pub use compile::{compile, compile_with, is_served, is_terminating, outline, priority, schemas};
pub use definition::Definition;
pub use lazy_schema::{LazySchema, MakeSchemas};
pub use served::{Column, Names, Scale, Scope, SelectorForm, ServedVersion, has_schemas, without_schemas};
