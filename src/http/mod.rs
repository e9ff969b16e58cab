//! The HTTP edge: bytes to registry calls, and back.
//!
//! One fallback takes every request. Paths, queries and headers are read by parsers of our own, as Kubernetes answers odd
//! ones in ways of its own; what is served, and who may ask for it, is decided before a body is read.

pub mod path;
pub mod query;
pub mod negotiate;
pub mod frame;
pub mod pieces;
pub mod openapi;
pub mod discovery;
pub mod table;
mod stopping;
mod limits;
mod metrics;
mod exchange;
mod impersonation;
mod observe;
mod answer;
mod health;
mod documents;
mod issuer;
mod list_pieces;
mod resources;
mod share;
mod watch_stream;
pub mod websocket;
mod router;
#[cfg(all(test, feature = "made-up"))]
mod made_up;

pub use documents::SERVER_VERSION;
pub use exchange::PeerAddress;
pub use limits::Limits;
pub use router::{App, Issuing, audit_id, router};
pub use stopping::{Stop, Stopping};
