//! kubeskiff: a small Kubernetes API server for CustomResourceDefinitions, and the engine behind it as a library.
//!
//! The layers, from words to edges, stand in `ARCHITECTURE.md`; `tests/tidy.rs` holds the table of allowed imports.

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

pub mod policy;
pub mod kinds;
pub mod author;

#[cfg(feature = "server")]
pub mod processor;
#[cfg(feature = "server")]
pub mod memory;
#[cfg(feature = "server")]
pub mod store;
#[cfg(feature = "server")]
pub mod webhook;
#[cfg(feature = "server")]
pub mod admission;
#[cfg(feature = "server")]
pub mod auth;
#[cfg(feature = "server")]
pub mod audit;

#[cfg(feature = "server")]
pub mod registry;
#[cfg(feature = "server")]
pub mod controllers;

#[cfg(feature = "server")]
pub mod http;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod cli;
