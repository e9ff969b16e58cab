//! The messages, one file a kind, and those that several kinds share.

mod metadata;
mod status;
mod options;
mod discovery;
mod object_reference;
mod namespace;
mod config_map;
mod secret;
mod service_account;
mod event;
mod lease;
mod scale;
mod definition;
mod json_schema;
mod envelope;
mod open_api;

pub use open_api::OPEN_API_V2;
pub use options::DELETE_OPTIONS;

pub(super) use envelope::UNKNOWN;

use super::table::Message;

/// A kind: `apiVersion`, `kind` and its message.
type Type = (&'static str, &'static str, &'static Message);

/// The kinds of every file.
static TYPES: [&[Type]; 11] = [
    status::TYPES,
    metadata::TYPES,
    discovery::TYPES,
    namespace::TYPES,
    config_map::TYPES,
    secret::TYPES,
    service_account::TYPES,
    event::TYPES,
    lease::TYPES,
    scale::TYPES,
    definition::TYPES,
];

/// The message of a kind; `None` for kinds that have none, as all custom ones.
pub fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let mut types = TYPES.iter().flat_map(|types| types.iter());
    types.find(|(known, name, _)| *known == api_version && *name == kind).map(|(.., message)| *message)
}

#[cfg(test)]
mod tests;
