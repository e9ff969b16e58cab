//! The vocabulary of the Kubernetes API: names, metadata, statuses, selectors, revisions, field errors; and the
//! syntaxes of its texts: times, durations, quantities, versions, addresses, URLs, patterns, formats.

pub mod api_version;
pub mod field;
pub(crate) mod field_ref;
mod error_list;
pub mod json_path;
pub mod gate;
pub mod minor;
pub mod feature_gates;
pub mod names;
mod number;
pub mod object_meta;
mod revision;
pub mod scheme;
pub mod selector;
mod status;
pub mod time;
pub mod unmarshal;
pub mod type_meta;
pub mod duration;
pub mod time_zone;
pub(crate) mod cron;
pub mod quantity;
pub mod semver;
pub mod address;
pub mod url;
mod automaton;
pub mod pattern;
pub mod format;

pub use number::{NumberError, atoi, parse_int, parse_uint};
pub use revision::Revision;
pub use status::{Cause, Details, Status};

/// The maximum size of a stored object, in bytes of JSON: the largest request body, and room for what the server adds
/// to it.
///
/// DIFFERS: etcd accepts requests of at most 1.5 MiB.
pub const OBJECT_BYTES_MAX: usize = 4 << 20;
