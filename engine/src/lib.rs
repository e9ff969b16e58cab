//! Kubernetes' CustomResourceDefinitions as a library: what kubeskiff is made of, without its server.
//!
//! Nothing here does I/O. The layers, from words to edges, stand in `ARCHITECTURE.md`; `tests/tidy.rs` holds the table of
//! allowed imports.

pub mod work;
pub mod value;
pub mod meta;

pub mod cel;
pub mod schema;
pub mod crd;
pub mod patch;
pub mod apply;
pub mod types;
pub mod protobuf;

pub mod kinds;
pub mod author;
