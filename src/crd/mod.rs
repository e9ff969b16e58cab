//! CustomResourceDefinitions: from what its author wrote to what is served.

mod served;

pub use served::{Column, Names, Scale, Scope, ServedVersion};
