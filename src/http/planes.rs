//! The additional control planes of a process, as far as requests for them need to know.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::meta::Status;

/// The control plane that the process started with. It is not in the list, and can't be deleted.
pub const MAIN: &str = "main";

/// A request for a new control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaneRequest {
    /// Generated if absent.
    pub name: Option<String>,
    /// The control plane to copy; `None` for an empty one.
    pub from: Option<String>,
    /// The file to keep it in; `None` for memory.
    pub path: Option<PathBuf>,
    /// The controllers and nodes to run; `None` for those of the whole process.
    pub workloads: Option<WantedWorkloads>,
}

/// The controllers and the nodes of a control plane, in the words of the options of `skiff serve`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedWorkloads {
    pub profile: Option<String>,
    pub controllers: Option<Vec<String>>,
    pub simulate_nodes: Option<String>,
}

/// A control plane, as its clients need it.
#[derive(Clone, Debug)]
pub struct Plane {
    pub name: Arc<str>,
    pub from: Option<String>,
    /// `https://host:port`
    pub url: String,
    /// The kubeconfig of its administrator.
    pub kubeconfig: String,
    pub authority_pem: String,
    /// By the machine's clock.
    pub created: Timestamp,
}

/// The additional control planes of a process.
#[async_trait]
pub trait Planes: Send + Sync {
    /// Creates one, and returns when it answers requests. It is created even if the caller stops waiting.
    ///
    /// Errors: 400 for controllers that are not known, 404 if the one to copy doesn't exist, 409 for a name that is
    /// taken, the errors of its database, 503 while the process stops.
    async fn create(self: Arc<Self>, wanted: PlaneRequest) -> Result<Arc<Plane>, Status>;

    /// All of them, ordered by name.
    fn list(&self) -> Vec<Arc<Plane>>;

    fn get(&self, name: &str) -> Option<Arc<Plane>>;

    /// Deletes one, and returns when it and its memory are gone; a file stays. It is deleted even if the caller stops
    /// waiting, and its name is taken until then. `None` if there is no control plane of that name.
    ///
    /// Errors: 503 while the process stops.
    async fn delete(self: Arc<Self>, name: &str) -> Result<Option<Arc<Plane>>, Status>;
}

/// The answer for one that doesn't exist.
pub fn missing(name: &str) -> Status {
    Status::not_found("", "planes", name)
}
