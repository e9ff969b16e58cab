//! Revisions: the content of a resourceVersion.

use std::fmt;

/// A point in the order of all writes of one database. Clients see it as an opaque resourceVersion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(i64);

impl Revision {
    /// The revision of this number.
    pub const fn new(number: i64) -> Self {
        Revision(number)
    }

    /// The number.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The one before this.
    pub const fn before(self) -> Self {
        Revision(self.0.saturating_sub(1))
    }

    /// The one after this.
    pub const fn next(self) -> Self {
        Revision(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}
