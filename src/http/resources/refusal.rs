//! Why a request has no object as its answer.

use crate::meta::Status;

use super::super::query::QueryError;

/// Why a request has no object as its answer.
pub(super) enum RequestRefusal {
    Status(Box<Status>),
    /// The user may not do it.
    Denied(Box<Status>),
    /// Whether the user may do it can't be decided.
    Undecided(String),
    /// Nothing is there, in plain text.
    NotFoundText,
}

impl From<Status> for RequestRefusal {
    fn from(status: Status) -> Self {
        RequestRefusal::Status(Box::new(status))
    }
}

impl From<QueryError> for RequestRefusal {
    fn from(error: QueryError) -> Self {
        RequestRefusal::from(match error {
            QueryError::BadRequest(message) => Status::bad_request(&message),
            QueryError::Invalid { kind, errors } => Status::invalid("meta.k8s.io", kind, "", &errors),
        })
    }
}
