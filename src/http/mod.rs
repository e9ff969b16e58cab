//! The HTTP edge: bytes to registry calls, and back.
//!
//! One fallback takes every request. Paths, queries and headers are read by parsers of our own, as Kubernetes answers odd
//! ones in ways of its own; what is served, and who may ask for it, is decided before a body is read.

pub mod path;
pub mod query;
pub mod negotiate;
pub mod frame;
pub mod openapi;
pub mod discovery;
pub mod table;
mod stopping;
mod exchange;
mod answer;
mod documents;
mod resources;
mod watch_stream;
mod router;

pub use router::{App, router};
pub use stopping::{Stop, Stopping};
