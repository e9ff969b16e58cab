//! The current path of a walk, as errors write it: `spec.items[0].name`.
//!
//! Input: the steps of a walk, down and back up. Output: the path as text, and a hash of that text, in time
//! proportional to each step: a path may be as long as the text that is walked, and so must not be compared or copied
//! at each field.

use std::fmt::Write;

use crate::work;

/// Prime and offset of 128-bit FNV-1a. Of two paths with the same hash, the second is not reported.
const FNV_PRIME: u128 = 0x1000000000000000000013b;
const FNV_START: u128 = 0x6c62272e07bb014262b821756295c58d;

/// A path and its hash.
#[derive(Clone, Debug)]
pub struct PathText {
    text: String,
    hash: u128,
}

/// The end of a path, to truncate it to later.
#[derive(Clone, Copy, Debug)]
pub struct PathEnd {
    length: usize,
    hash: u128,
}

impl Default for PathText {
    fn default() -> Self {
        PathText { text: String::new(), hash: FNV_START }
    }
}

impl PathText {
    /// Appends a field.
    pub fn push_field(&mut self, name: &str) {
        if !self.text.is_empty() {
            self.push_str(".");
        }
        self.push_str(name);
    }

    /// Appends an item.
    pub fn push_index(&mut self, index: usize) {
        let start = self.text.len();
        // Writing to a text can't fail.
        let _ = write!(self.text, "[{index}]");
        self.hash_from(start);
    }

    pub fn push_str(&mut self, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.hash_from(start);
    }

    /// The current end of the path.
    pub fn end(&self) -> PathEnd {
        PathEnd { length: self.text.len(), hash: self.hash }
    }

    /// Comes back to `end`.
    pub fn truncate(&mut self, end: PathEnd) {
        self.text.truncate(end.length);
        self.hash = end.hash;
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The hash of the path; equal texts have equal hashes.
    pub fn hash(&self) -> u128 {
        self.hash
    }

    fn hash_from(&mut self, start: usize) {
        let added = &self.text.as_bytes()[start..];
        work::bytes(added.len());
        self.hash = added.iter().fold(self.hash, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(FNV_PRIME));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash that a path of this text has.
    fn hash_of(text: &str) -> u128 {
        let mut path = PathText::default();
        path.push_str(text);
        path.hash()
    }

    #[test]
    fn a_path_has_the_hash_of_its_text() {
        let mut path = PathText::default();
        path.push_field("spec");
        let end = path.end();
        path.push_field("items");
        path.push_index(7);
        assert_eq!((path.as_str(), path.hash()), ("spec.items[7]", hash_of("spec.items[7]")));
        path.truncate(end);
        assert_eq!((path.as_str(), path.hash()), ("spec", hash_of("spec")));
    }
}
