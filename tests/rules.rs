//! Properties of rules: types hold, costs stay within the estimate, results are those of another interpreter, hostile
//! expressions end.
//!
//! A test binary of its own: its allocator counts.

#[path = "rules/generator.rs"]
mod generator;
#[path = "rules/properties.rs"]
mod properties;
#[path = "rules/differential.rs"]
mod differential;
#[path = "rules/hostile.rs"]
mod hostile;
#[path = "rules/allocation.rs"]
mod allocation;
