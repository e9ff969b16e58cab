//! Revisions in queries.

use crate::meta::{Revision, field, parse_uint};

/// A resourceVersion in a query; the error is Kubernetes' text.
pub(super) fn resource_version(text: &str) -> Result<u64, String> {
    let path = field::Path::new("resourceVersion");
    parse_uint(text).map_err(|error| field::Error::invalid(&path, text, error).to_string())
}

pub(super) fn revision(number: u64) -> Revision {
    Revision::new(i64::try_from(number).unwrap_or(i64::MAX))
}
