//! Structural schemas: one file per pass over a [`structural::Structural`] and a value.

pub mod typed;
pub mod strict;
pub mod json_schema;
pub mod structural;
pub mod convert;
pub mod check;

pub mod pattern;
pub mod format;

pub mod coerce;
pub mod prune;
pub mod default;
pub mod validate;
pub mod correlate;
pub mod ratchet;
pub mod list_type;
pub mod rules;

pub mod openapi;

#[cfg(test)]
mod arbitrary;
