//! Policies of admission.

pub mod mutation;
