//! The HTTP layer: turns bytes into registry calls, and results into bytes.
//!
//! One fallback handler takes every request. Paths, queries and headers are read by parsers of our own, as Kubernetes
//! has its own answers to malformed ones; routing and authorization are done before a body is read.

pub mod path;
pub mod query;
pub mod delete_options;
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
mod faults;
mod classify;
mod planes;
mod app;
mod document_cache;
mod shape;
mod impersonation;
mod observe;
mod authorization;
mod answer;
mod health;
mod known_document;
mod documents;
mod issuer;
mod skiff;
mod list_pieces;
mod typed_pieces;
mod resources;
mod around;
mod share;
mod watch_frame;
mod watch_stream;
mod early_refusals;
pub mod websocket;
mod router;
#[cfg(test)]
mod allocations;
#[cfg(test)]
mod made_up;

use std::borrow::Cow;

use crate::meta::minor::Minor;

pub use app::{App, Issuing, Shared};
pub use around::around;
pub use early_refusals::EarlyRefusals;
pub use exchange::{PeerAddress, audit_id};
pub use faults::Cut;
pub use limits::Limits;
pub use planes::{MAIN, Plane, PlaneRequest, Planes, WantedWorkloads, missing};
pub use router::router;
pub use stopping::{Stop, Stopping};

/// The version that the server reports: clients compare it with their own.
pub const SERVER_VERSION: &str = concat!("v1.37.2+skiff-", env!("CARGO_PKG_VERSION"));

/// The same for a server that emulates that version of Kubernetes.
pub fn version_of(minor: Minor) -> Cow<'static, str> {
    if minor == Minor::NEWEST {
        return Cow::Borrowed(SERVER_VERSION);
    }
    Cow::Owned(format!("v{minor}.0+skiff-{}", env!("CARGO_PKG_VERSION")))
}
