//! Regular expressions in Go's syntax.

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern;

impl PartialEq for Pattern {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
