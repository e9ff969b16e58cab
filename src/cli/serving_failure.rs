//! Why a server can't be started, as text.

use std::fmt;

/// The message that is printed before the process ends.
pub struct ServingFailure(pub String);

impl<E: fmt::Display> From<E> for ServingFailure {
    fn from(error: E) -> Self {
        ServingFailure(error.to_string())
    }
}
