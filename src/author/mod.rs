//! The tools of those who write definitions, without their input and output.
//!
//! In: definitions and objects. Out: what the server would say to them, and why. Nothing here reads a file or a clock: the
//! command line does that.

pub mod catalog;
pub mod check;
pub mod diff;
pub mod explain;
pub mod fix;
pub mod lint;
pub mod suite;

pub use catalog::{Catalog, Kind};
pub use check::{BuiltIn, Checked, Options, Rejected, RuleRun, create, define, update};
