//! The words of the Kubernetes API: names, metadata, statuses, selectors, revisions, field errors; and the small languages
//! that its texts are written in: times, durations, quantities, versions, addresses, URLs, patterns, formats.

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

/// How long an object may be as it is stored, in bytes of JSON: the largest body of a request, and room for what the server
/// adds to it.
///
/// DIFFERS: etcd takes 1.5 MiB for a request of its own.
pub const OBJECT_BYTES_MAX: usize = 4 << 20;
