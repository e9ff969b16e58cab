//! Why there is no object to answer.

use crate::meta::Status;

use super::super::query::QueryError;

/// Why there is no object to answer.
pub(super) enum Refusal {
    Status(Box<Status>),
    /// The user may not do it.
    Denied(Box<Status>),
    /// Whether the user may do it can't be decided.
    Undecided(String),
    /// Nothing is there, in plain text.
    NotFoundText,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Refusal::Status(Box::new(status))
    }
}

impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Self {
        Refusal::from(match error {
            QueryError::BadRequest(message) => Status::bad_request(&message),
            QueryError::Invalid { kind, errors } => Status::invalid("meta.k8s.io", kind, "", &errors),
        })
    }
}
