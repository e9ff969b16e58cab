//! The messages that are no built-in kinds: what answers and options look like, definitions, documents.

mod partial;
mod status;
mod options;
mod discovery;
mod scale;
mod token_request;
mod definition;
mod json_schema;
mod envelope;
mod open_api;

pub use definition::{DEFINITION, DEFINITION_LIST};
pub use open_api::OPEN_API_V2;
pub use options::DELETE_OPTIONS;
pub use scale::SCALE;
pub use token_request::TOKEN_REQUEST;

pub(super) use envelope::UNKNOWN;

use crate::types::Message;

/// A kind: `apiVersion`, `kind` and its message.
type Type = (&'static str, &'static str, &'static Message);

/// The kinds of every file.
static TYPES: [&[Type]; 5] = [status::TYPES, partial::TYPES, discovery::TYPES, scale::TYPES, token_request::TYPES];

/// The message of what is no built-in kind: a Status, what discovery answers, metadata alone, a Scale.
pub fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let mut types = TYPES.iter().flat_map(|types| types.iter());
    types.find(|(known, name, _)| *known == api_version && *name == kind).map(|(.., message)| *message)
}
