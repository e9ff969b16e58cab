//! `apiVersion`: the group and the version of an object.

use thiserror::Error;

/// An `apiVersion` with more than one slash.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unexpected GroupVersion string: {0}")]
pub struct ApiVersionError(String);

/// The group and version of an `apiVersion`.
///
/// # Errors
///
/// It has more than one slash.
pub fn split_api_version(api_version: &str) -> Result<(&str, &str), ApiVersionError> {
    match api_version.matches('/').count() {
        0 => Ok(("", api_version)),
        1 => Ok(api_version.split_once('/').unwrap_or(("", api_version))),
        _ => Err(ApiVersionError(api_version.to_owned())),
    }
}

/// The group and version of an `apiVersion`, well formed or not: the text before the first slash, and after it.
pub fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The group of an `apiVersion`, well formed or not; empty for the core group.
pub fn group_of(api_version: &str) -> &str {
    group_version(api_version).0
}
