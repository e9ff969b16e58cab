//! Structural schemas: one file per pass over a [`structural::Structural`] and a value.

pub mod json_schema;
pub mod structural;

pub mod pattern;
