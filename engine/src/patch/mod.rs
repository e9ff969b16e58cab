//! Patches: JSON Patch (RFC 6902), JSON Merge Patch (RFC 7386) and strategic merge patch, with the leniencies of the
//! reference.
//!
//! Input: an object and a patch as it was sent. Output: the patched object, which is not validated yet; for the first
//! two as JSON text, which may have duplicate fields, if the patch has, and numbers beyond the range of doubles.

pub mod json_patch;
pub mod merge_patch;
pub mod strategic_merge;
mod list;
mod written;

use std::fmt;

use crate::value::json;

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// 400: it is not a patch.
    #[error("error decoding patch: {0}")]
    Decode(String),
    /// 400: the same, without that prefix.
    #[error("{0}")]
    Malformed(String),
    /// 413.
    #[error("{0}")]
    TooManyOperations(String),
    /// 422: it does not apply to the object. The reference hides the reason from clients, but reports it for the
    /// patches of webhooks.
    #[error("{0}")]
    Apply(String),
    /// The same, because a test in the patch failed.
    #[error("{0}")]
    Test(String),
}

impl PatchError {
    fn decode(why: impl fmt::Display) -> Self {
        PatchError::Decode(why.to_string())
    }
}

/// The text of a patch, if it is JSON. Numbers may be out of range.
fn text_of(bytes: &[u8]) -> Result<String, PatchError> {
    match json::decode(bytes) {
        Err(error @ json::JsonError::Syntax { .. }) => Err(PatchError::decode(error)),
        Ok(_) | Err(json::JsonError::Range(_)) => Ok(json::text_of(bytes).into_owned()),
    }
}
