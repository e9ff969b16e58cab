//! The result of validation, before it becomes field errors.

use std::collections::HashSet;
use std::fmt;

use super::node::{Reading, ValuePath};
use crate::meta::field::{Error, ErrorList, ErrorType, Path};
use crate::meta::minor::Minor;
use crate::value::{Value, go_quote};
use crate::work;

/// The most bytes of faults that are kept per value; more faults are only counted. Each may quote much of the value or
/// schema.
pub(super) const FAULTS_BYTES_MAX: usize = 2 << 20;

/// What validation found, and how much it matched: of several alternatives that fail, the one with the most matches is
/// reported.
#[derive(Default)]
pub(super) struct ValidationResult {
    pub(super) faults: Vec<ValueError>,
    /// Of their texts.
    pub(super) bytes: usize,
    /// Faults beyond [`FAULTS_BYTES_MAX`].
    pub(super) untold: usize,
    pub(super) matches: u64,
    pub(super) reading: Reading,
    pub(super) minor: Minor,
    /// Whether only the first fault counts.
    pub(super) ends_at_first: bool,
}

/// An error before it is made into a field error.
pub(super) struct ValueError {
    /// The path; `None` where Kubernetes omits it.
    pub(super) place: Option<String>,
    pub(super) message: String,
    pub(super) kind: FaultKind,
}

pub(super) enum FaultKind {
    Required,
    NotSupported { value: Value, supported: Vec<String> },
    TooLong { max: i64 },
    TooMany { actual: usize, max: i64 },
    Type { value: Value },
    Invalid { value: Value },
}

/// The state of the result at some point of the walk.
pub(super) struct Mark {
    pub(super) faults: usize,
    pub(super) bytes: usize,
    pub(super) untold: usize,
}

impl FaultKind {
    /// The approximate size of the texts and values that it quotes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            FaultKind::NotSupported { value, supported } => {
                value.as_str().map_or(8, str::len) + supported.iter().map(|text| text.len() + 24).sum::<usize>()
            }
            FaultKind::Type { value } | FaultKind::Invalid { value } => value.as_str().map_or(8, str::len),
            FaultKind::Required | FaultKind::TooLong { .. } | FaultKind::TooMany { .. } => 0,
        }
    }
}

impl ValidationResult {
    pub(super) fn push(&mut self, fault: ValueError) {
        let bytes = fault.message.len() + fault.place.as_ref().map_or(0, String::len) + fault.kind.bytes();
        work::bytes(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        self.faults.push(fault);
    }

    /// Whether there is no room for another fault; if so, counts that fault.
    pub(super) fn is_full(&mut self) -> bool {
        let is_full = self.bytes >= FAULTS_BYTES_MAX;
        self.untold += usize::from(is_full);
        is_full
    }

    /// Whether validation can stop, as nothing more is needed.
    pub(super) fn has_ended(&self) -> bool {
        self.ends_at_first && !self.is_valid()
    }

    /// The number of faults found so far.
    pub(super) fn mark(&self) -> Mark {
        Mark { faults: self.faults.len(), bytes: self.bytes, untold: self.untold }
    }

    pub(super) fn has_found_since(&self, mark: &Mark) -> bool {
        self.faults.len() > mark.faults || self.untold > mark.untold
    }

    pub(super) fn forget_since(&mut self, mark: &Mark) {
        self.faults.truncate(mark.faults);
        (self.bytes, self.untold) = (mark.bytes, mark.untold);
    }

    pub(super) fn fault(&mut self, place: &ValuePath<'_>, what: impl fmt::Display, kind: FaultKind) {
        if self.is_full() {
            return;
        }
        let place = place.to_string();
        let message = format!("{place} in body {what}");
        self.push(ValueError { place: Some(place), message, kind });
    }

    pub(super) fn invalid(&mut self, place: &ValuePath<'_>, value: impl Into<Value>, what: impl fmt::Display) {
        self.fault(place, what, FaultKind::Invalid { value: value.into() });
    }

    /// `given` is the type or the text that was found instead.
    pub(super) fn wrong_type(&mut self, place: &ValuePath<'_>, expected: impl fmt::Display, given: &str) {
        let what = format!("must be of type {expected}: {}", go_quote(given));
        self.fault(place, what, FaultKind::Type { value: given.into() });
    }

    pub(super) fn placeless(&mut self, message: String) {
        if !self.is_full() {
            self.push(ValueError { place: None, message, kind: FaultKind::Invalid { value: "".into() } });
        }
    }

    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty() && self.untold == 0
    }

    pub(super) fn merge(&mut self, mut other: ValidationResult) {
        self.faults.append(&mut other.faults);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.untold += other.untold;
        self.matches += other.matches;
    }

    /// Merges errors with the same message into one.
    pub(super) fn into_errors(self, path: &Path<'_>) -> ErrorList {
        let mut seen = HashSet::new();
        let distinct = self.faults.into_iter().filter(|fault| seen.insert(fault.message.clone()));
        distinct.map(|fault| fault.into_error(path, self.minor)).collect()
    }
}

impl ValueError {
    pub(super) fn into_error(self, path: &Path<'_>, minor: Minor) -> Error {
        let child;
        let path = match self.place.as_deref() {
            None | Some("" | ".") => path,
            Some(place) => {
                child = path.child(place.strip_prefix('.').unwrap_or(place));
                &child
            }
        };
        match self.kind {
            FaultKind::Required => Error::required(path, ""),
            FaultKind::NotSupported { value, supported } => {
                let supported: Vec<&str> = supported.iter().map(String::as_str).collect();
                Error::not_supported(path, value, &supported)
            }
            FaultKind::TooLong { max } => in_words_of(minor, Error::too_long(path, max), max),
            FaultKind::TooMany { actual, max } => {
                let error = Error::too_many(path, i64::try_from(actual).unwrap_or(i64::MAX), max);
                in_words_of(minor, error, max)
            }
            FaultKind::Type { value } => Error::type_invalid(path, value, self.message),
            FaultKind::Invalid { value } => Error::invalid(path, value, self.message),
        }
    }
}

/// The error that something is longer than `max`, in that version's words: the newest one has a singular for one byte.
///
/// Source: `field.TooLong`, `field.TooMany` of apimachinery, releases 1.29 to 1.37.
pub(super) fn in_words_of(minor: Minor, mut error: Error, max: i64) -> Error {
    if minor < Minor::of(32) && error.kind == ErrorType::TooLong {
        error.detail = format!("may not be longer than {max}");
    } else if minor < Minor::of(34) && max == 1 {
        error.detail.push('s');
    }
    error
}
