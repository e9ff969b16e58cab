//! Tokens to a concrete tree, by the grammar of CEL, with faults reported as an ANTLR parser reports them.
//!
//! [`grammar`] is the recursive descent, one function per rule; [`recovery`] decides what to report and where to go on
//! after a fault; [`tree`] is what comes out. Parts that are missing for a fault are `None` in the tree. The depth is
//! bounded by [`DEPTH_MAX`], so no text overflows the stack.

pub(crate) mod grammar;
pub(crate) mod place;
pub(crate) mod recovery;
pub(crate) mod tree;

/// How deep a rule of the grammar may stand within itself.
pub const DEPTH_MAX: u16 = 250;
/// How many faults are reported before reading stops.
const REPORTS_MAX: u32 = 100;
/// How many times reading goes on after a fault.
const RECOVERIES_MAX: u32 = 30;
/// How many tokens one recovery may skip.
const SKIPPED_MAX: u32 = 256;
