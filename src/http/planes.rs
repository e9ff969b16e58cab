//! The control planes of a process beside the main one, as requests for them need them.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::meta::Status;

/// The control plane that the process began with. It is not in the list, and can't be deleted.
pub const MAIN: &str = "main";

/// A control plane that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaneRequest {
    /// One is made up where there is none.
    pub name: Option<String>,
    /// What it is a copy of; nothing for an empty one.
    pub from: Option<String>,
    /// The file to keep it in; none for memory.
    pub path: Option<PathBuf>,
    /// What runs beside its requests; `None` for what runs in all of the process.
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
    /// That of its administrator.
    pub kubeconfig: String,
    pub authority_pem: String,
    /// By the machine's clock.
    pub created: Timestamp,
}

/// The control planes of a process beside the main one.
#[async_trait]
pub trait Planes: Send + Sync {
    /// Makes one, and returns when it answers. It is made also where nobody waits for that any longer.
    ///
    /// Errors: 400 for controllers that are not known, 404 for one that is to be copied and is not there, 409 for a name that is taken, what its
    /// database says, 503 where the process ends.
    async fn create(self: Arc<Self>, wanted: PlaneRequest) -> Result<Arc<Plane>, Status>;

    /// All, in the order of their names.
    fn list(&self) -> Vec<Arc<Plane>>;

    fn get(&self, name: &str) -> Option<Arc<Plane>>;

    /// Ends one, and returns when it is gone with its memory; a file stays. It ends also where nobody waits for that any
    /// longer, and its name is taken until then. `None` where there is none of that name.
    ///
    /// Errors: 503 where the process ends.
    async fn delete(self: Arc<Self>, name: &str) -> Result<Option<Arc<Plane>>, Status>;
}

/// The answer about one that is not there.
pub fn missing(name: &str) -> Status {
    Status::not_found("", "planes", name)
}
