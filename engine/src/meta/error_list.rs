//! Lists of field errors of limited size.
//!
//! Input: errors, each with its field and the invalid value. Output: the first of them, up to [`ERRORS_BYTES_MAX`] of
//! text, and how many more there were. A small object may have many errors, each of which quotes the whole object.

use std::collections::HashSet;
use std::ops::{Deref, DerefMut};

use super::field::{Error, ErrorType};
use crate::work;

/// The most bytes of error texts in one answer; the first error is reported whatever its length. The reference has no
/// such limit.
pub const ERRORS_BYTES_MAX: usize = 1 << 20;

/// Errors in the order that they were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErrorList {
    errors: Vec<Error>,
    /// The length of their texts; stops growing at the limit.
    bytes: usize,
    /// The number of errors left out.
    untold: usize,
    /// The kinds of all errors, one bit each.
    kinds: u16,
}

impl ErrorList {
    /// No errors.
    pub const fn new() -> Self {
        ErrorList { errors: Vec::new(), bytes: 0, untold: 0, kinds: 0 }
    }

    /// Adds an error; if the list is full, only counts it.
    pub fn push(&mut self, error: Error) {
        let kind = error.kind;
        self.push_with(kind, || error);
    }

    /// [`ErrorList::push`] of an error of `kind` that is not made if the list is full.
    pub fn push_with(&mut self, kind: ErrorType, error: impl FnOnce() -> Error) {
        work::step();
        self.kinds |= bit(kind);
        if self.is_full() {
            self.untold += 1;
            return;
        }
        let error = error();
        let bytes = error.field.len() + error.body().len();
        work::bytes(bytes);
        if !self.errors.is_empty() && self.bytes + bytes > ERRORS_BYTES_MAX {
            // From here on none is kept, as the first errors must be the ones reported.
            self.bytes = ERRORS_BYTES_MAX;
            self.untold += 1;
            return;
        }
        self.bytes += bytes;
        self.errors.push(error);
    }

    /// [`ErrorList::push_with`] of `times` equal errors.
    pub fn push_times(&mut self, kind: ErrorType, times: usize, error: impl Fn() -> Error) {
        for done in 0..times {
            if self.is_full() {
                self.untold += times - done;
                return;
            }
            self.push_with(kind, &error);
        }
    }

    /// Adds several errors.
    pub fn extend(&mut self, errors: impl Found) {
        errors.add_to(self);
    }

    /// Whether further errors are only counted.
    pub fn is_full(&self) -> bool {
        self.bytes >= ERRORS_BYTES_MAX
    }

    /// Whether there is an error of one of these kinds, even one that was left out.
    pub fn has_any(&self, kinds: &[ErrorType]) -> bool {
        kinds.iter().any(|kind| self.kinds & bit(*kind) != 0)
    }

    /// Those that are told.
    pub fn into_vec(self) -> Vec<Error> {
        self.errors
    }

    /// The number of errors that were left out.
    pub fn untold(&self) -> usize {
        self.untold
    }

    /// All errors as one text, each message once: `[a: Required value, b: Not found: 1]`, and without brackets where there is
    /// only one; empty for none.
    pub fn aggregate(&self) -> String {
        let mut seen = HashSet::with_capacity(self.errors.len());
        let texts = self.errors.iter().map(Error::to_string);
        let mut texts: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
        if self.untold > 0 {
            texts.push(format!("and {} more errors", self.untold));
        }
        match texts.as_slice() {
            [one] => one.clone(),
            [] => String::new(),
            several => format!("[{}]", several.join(", ")),
        }
    }

    /// The errors without those whose text repeats an earlier one.
    pub fn distinct(mut self) -> Self {
        let mut seen = HashSet::with_capacity(self.errors.len());
        self.errors.retain(|error| seen.insert(error.to_string()));
        self
    }
}

/// The bit of a kind.
const fn bit(kind: ErrorType) -> u16 {
    1 << kind as u16
}

impl Deref for ErrorList {
    type Target = [Error];

    fn deref(&self) -> &[Error] {
        &self.errors
    }
}

impl DerefMut for ErrorList {
    fn deref_mut(&mut self) -> &mut [Error] {
        &mut self.errors
    }
}

/// Errors that a check found.
pub trait Found {
    fn add_to(self, list: &mut ErrorList);
}

impl<I: IntoIterator<Item = Error>> Found for I {
    fn add_to(self, list: &mut ErrorList) {
        self.into_iter().for_each(|error| list.push(error));
    }
}

impl Found for ErrorList {
    /// Errors that were left out stay counted.
    fn add_to(self, list: &mut ErrorList) {
        let ErrorList { errors, untold, kinds, .. } = self;
        list.extend(errors);
        list.kinds |= kinds;
        list.untold += untold;
        if untold > 0 {
            list.bytes = ERRORS_BYTES_MAX;
        }
    }
}

impl FromIterator<Error> for ErrorList {
    fn from_iter<I: IntoIterator<Item = Error>>(errors: I) -> Self {
        let mut list = ErrorList::new();
        list.extend(errors);
        list
    }
}

impl From<Vec<Error>> for ErrorList {
    fn from(errors: Vec<Error>) -> Self {
        ErrorList::from_iter(errors)
    }
}

impl From<Error> for ErrorList {
    fn from(error: Error) -> Self {
        ErrorList::from_iter([error])
    }
}

impl<'e> IntoIterator for &'e ErrorList {
    type Item = &'e Error;
    type IntoIter = std::slice::Iter<'e, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::field::Path;
    use crate::value::Value;

    /// Errors that each quote a text of this many bytes.
    fn errors(count: usize, bytes: usize) -> ErrorList {
        let quoted = "x".repeat(bytes);
        let path = Path::new("items");
        (0..count).map(|at| Error::invalid(&path.index(at), quoted.as_str(), "is wrong")).collect()
    }

    #[test]
    fn errors_beyond_the_bound_are_counted() {
        let found = errors(40, ERRORS_BYTES_MAX / 10);
        assert_eq!((found.len(), found.untold()), (9, 31));
        let text = found.aggregate();
        assert!(text.len() < ERRORS_BYTES_MAX && text.ends_with(": is wrong, and 31 more errors]"), "{}", text.len());
    }

    #[test]
    fn the_first_error_is_told_whatever_its_length() {
        let found = errors(3, 2 * ERRORS_BYTES_MAX);
        assert_eq!((found.len(), found.untold()), (1, 2));
    }

    #[test]
    fn a_list_within_another_keeps_its_count_and_its_kinds() {
        let mut inner = errors(40, ERRORS_BYTES_MAX / 10);
        inner.push(Error::required(&Path::new("a"), ""));
        let mut outer = ErrorList::from(Error::forbidden(&Path::new("b"), ""));
        outer.extend(inner);
        assert_eq!((outer.len(), outer.untold()), (10, 32));
        assert!(outer.has_any(&[ErrorType::Required]) && !outer.has_any(&[ErrorType::TooMany]));
    }

    #[test]
    fn ten_times_the_errors_take_ten_times_the_steps_and_no_more_memory() {
        let steps = |count| work::counted(|| errors(count, 1 << 10)).1;
        let (few, many) = (steps(10_000), steps(100_000));
        assert!(many < 11 * few, "{few} steps, then {many}");
        let size: usize = errors(100_000, 1 << 10).iter().map(|error| Value::from(error.body()).size_bytes()).sum();
        assert!(size <= ERRORS_BYTES_MAX + (ERRORS_BYTES_MAX >> 2), "{size} bytes");
    }
}
