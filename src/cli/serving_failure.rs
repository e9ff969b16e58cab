//! Why a server can't be started, in words.

use std::fmt;

/// What is worth telling before the process ends.
pub struct ServingFailure(pub String);

impl<E: fmt::Display> From<E> for ServingFailure {
    fn from(error: E) -> Self {
        ServingFailure(error.to_string())
    }
}
