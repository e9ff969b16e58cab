//! Revisions in queries.

use crate::meta::{Revision, field, parse_uint};

/// A resourceVersion in a query.
///
/// # Errors
/// The text is not a revision.
pub(super) fn resource_version(text: &str) -> Result<u64, Box<field::Error>> {
    let path = field::Path::new("resourceVersion");
    parse_uint(text).map_err(|error| Box::new(field::Error::invalid(&path, text, error.to_string())))
}

pub(super) fn revision(number: u64) -> Revision {
    Revision::new(i64::try_from(number).unwrap_or(i64::MAX))
}
