//! Structural schemas: one file per pass over a [`structural::Structural`] and a value.

pub mod of_type;
pub mod strict;
pub mod json_schema;
pub(crate) mod rare;
pub mod structural;
pub mod convert;
pub mod check;

pub use crate::meta::{format, pattern};

pub mod coerce;
pub mod prune;
pub mod default;
pub(crate) mod pending;
pub mod validate;
pub mod correlate;
pub(crate) mod ratchet;
pub mod list_type;
pub(crate) mod field_path;
pub mod declare;
pub mod form;
pub mod rules;

pub mod openapi;

#[cfg(test)]
mod arbitrary;
