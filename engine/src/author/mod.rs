//! The tools for authors of definitions, without their input and output.
//!
//! Input: definitions and objects. Output: the server's verdict on them, and its reasons. Nothing here reads a file or
//! a clock: the command line does that.
//!
//! - **A lint tells facts, not guesses.** `author::lint::decide` walks a rule with what its schema promises: bounds,
//!   enums, what is required or has a default, and which `has()` was asked before. It knows little of functions, so
//!   it may tell too much of what a rule can come to, and never too little. The tests hold that against every rule
//!   that runs over the corpus, and over made-up objects.
//! - **A fix is proved.** `author::fix` edits the text at the places of nodes and reads it again: what comes out must
//!   be the document that was meant, or the edit is left out. So it needs no writer of YAML that keeps comments.
//! - **Which of two rules is tighter** is told by form alone (`author::diff::rules`): more operands of `&&`, fewer of
//!   `||`, a narrower bound or list. What can't be seen counts as breaking.
//! - **`--from-cluster` has a client of its own** (`cli::cluster`, some 400 lines) on the hyper and rustls that
//!   webhooks use: two lists are all it asks for. kube-rs would bring a hundred crates into the program for them.

pub(crate) mod catalog;
pub mod check;
pub mod convert;
pub mod diff;
pub mod editor;
pub mod eval;
mod expected;
pub mod explain;
pub mod fix;
pub mod infer;
pub mod lint;
pub(crate) mod markup;
pub mod minors;
pub mod near;
mod misread;
pub mod playground;
pub mod policies;
mod prose;
pub mod reference;
mod sample;
mod coverage;
pub mod suite;
mod written;

pub use crate::schema::rules::trace::PartValue;
pub use catalog::{Catalog, DefinedKind, PricedKind};
pub use check::{BuiltIn, CheckOptions, Checked, Rejected, RuleRun, create, define, define_in, update};
pub use written::written_field;
