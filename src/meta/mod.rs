//! The words of the Kubernetes API: names, metadata, statuses, selectors, revisions, field errors.

pub mod field;
pub mod json_path;
pub mod layout;
pub mod names;
mod number;
pub mod object_meta;
mod revision;
pub mod selector;
mod status;
pub mod time;

pub use number::parse_uint;
pub use revision::Revision;
pub use status::{Cause, Details, Status};
