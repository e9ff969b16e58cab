//! The messages that are not types of the published Go modules: the envelope of an object, and the OpenAPI document.

mod envelope;
mod open_api;

pub use open_api::OPEN_API_V2;

pub(super) use envelope::UNKNOWN;
