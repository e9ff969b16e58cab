//! Patches: JSON Patch (RFC 6902), JSON Merge Patch (RFC 7386) and strategic merge patch, with the leniencies of the
//! reference.
//!
//! In: an object and a patch as it was sent. Out: the patched object, which nobody has validated yet; of the first two as
//! JSON text, which may repeat fields, where the patch does, and hold numbers that no double can hold.

pub mod json_patch;
pub mod merge_patch;
pub mod strategic_merge;
mod list;
mod written;

use std::fmt;

use crate::value::json;

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchError {
    /// 400: it is no patch.
    Decode(String),
    /// 413.
    TooManyOperations(String),
    /// 422: it does not apply to the object. To clients the reference does not tell why, of the patches of webhooks it does.
    Apply(String),
}

impl PatchError {
    fn decode(why: impl fmt::Display) -> Self {
        PatchError::Decode(format!("error decoding patch: {why}"))
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatchError::Decode(text) | PatchError::TooManyOperations(text) | PatchError::Apply(text) => {
                out.write_str(text)
            }
        }
    }
}

impl std::error::Error for PatchError {}

/// The text of a patch, if it is JSON. Numbers may be out of range.
fn text_of(bytes: &[u8]) -> Result<String, PatchError> {
    match json::decode(bytes) {
        Err(error @ json::Error::Syntax { .. }) => Err(PatchError::decode(error)),
        Ok(_) | Err(json::Error::Range(_)) => Ok(json::text_of(bytes).into_owned()),
    }
}
