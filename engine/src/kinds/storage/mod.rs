//! What the kinds of storage share: the specs of volumes and claims, classes, the names of drivers.
//!
//! Source: `pkg/apis/core/validation`, `pkg/apis/storage/validation`, `pkg/api/persistentvolume*` and `pkg/api/storage` of
//! Kubernetes 1.36.

pub mod access_modes;
pub mod claim;
pub mod class;
pub mod columns;
pub mod drivers;
pub mod topologies;
pub mod volume;
