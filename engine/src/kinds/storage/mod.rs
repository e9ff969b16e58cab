//! What the storage kinds have in common: the specs of volumes and claims, classes, the names of drivers.
//!
//! Source: `pkg/apis/core/validation`, `pkg/apis/storage/validation`, `pkg/api/persistentvolume*` and `pkg/api/storage` of
//! Kubernetes 1.36.

pub(crate) mod access_modes;
pub(crate) mod attributes_class;
pub(crate) mod claim;
pub mod class;
pub(crate) mod columns;
pub(crate) mod drivers;
pub(crate) mod topologies;
pub(crate) mod volume;
