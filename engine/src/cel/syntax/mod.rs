//! Turns tokens into a concrete tree by the grammar of CEL, and reports faults as an ANTLR parser does.
//!
//! [`grammar`] is the recursive descent, one function per rule; [`recovery`] decides what to report and where to
//! continue after a fault; [`tree`] is the result. Parts that are missing because of a fault are `None` in the tree.
//! The depth is bounded by [`DEPTH_MAX`], so no text overflows the stack.

pub(crate) mod grammar;
pub(crate) mod place;
pub(crate) mod recovery;
pub(crate) mod tree;

/// How deep a rule of the grammar may be nested within itself.
pub const DEPTH_MAX: u16 = 250;
/// How many faults are reported. One more stops reading.
const REPORTS_MAX: u32 = 100;
/// How many times reading continues after a fault. One more fault stops it.
const RECOVERIES_MAX: u32 = 30;
/// How many tokens one recovery may skip.
const SKIPPED_MAX: u32 = 256;
