//! What `skiff diff` says of definitions, held against what becomes of objects: an object that was valid and is refused, or
//! loses fields, can't come of changes that are all called safe.
//!
//! Definitions and objects are made from seeds, and those of the corpus are changed, where it is there.

#[path = "diff/generator.rs"]
mod generator;
#[path = "diff/truth.rs"]
mod truth;
#[path = "diff/corpus.rs"]
mod corpus;
