//! kubeskiff: a small Kubernetes API server for CustomResourceDefinitions, and its command line.
//!
//! The engine is a separate package; its modules are re-exported here under their own names.
//! `ARCHITECTURE.md` describes the layers, and `tests/tidy.rs` holds the table of allowed imports.

pub use kubeskiff_engine::{
    apply, author, cel, crd, kinds, meta, object, patch, policy, protobuf, schema, types, value, work, write,
};

pub mod processor;
pub mod clock;
pub mod memory;
pub mod private;
pub mod packed;
pub mod store;
pub mod webhook;
pub mod admission;
pub mod auth;
pub mod audit;

pub mod registry;
pub mod controllers;

pub mod http;
pub mod server;
pub mod cli;
