//! The words of the Kubernetes API: kinds, names, metadata, statuses, selectors, field errors.

pub mod field;
