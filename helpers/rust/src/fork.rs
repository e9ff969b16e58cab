//! Copies of a control plane, in the same process as the first one.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::{ControlPlane, Error};

const PATH: &str = "/skiff/v1/planes";
/// What the one is called that a process begins with.
const MAIN: &str = "main";

/// What runs in a copy beside its requests, as with `skiff serve`. Where nothing is said, that is what runs in the control
/// plane that was started.
#[derive(Clone, Debug, Default)]
pub struct Workloads {
    profile: Option<String>,
    controllers: Option<Vec<String>>,
    simulate_nodes: Option<String>,
}

impl Workloads {
    /// All controllers, and nodes that are simulated.
    #[must_use]
    pub fn cluster() -> Self {
        Workloads { profile: Some("cluster".to_owned()), ..Workloads::default() }
    }

    /// The controllers that run, by kube-controller-manager's names: `*` for all of the profile, `NAME`, `-NAME` for all but
    /// that.
    #[must_use]
    pub fn controllers(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Workloads { controllers: Some(names.into_iter().map(Into::into).collect()), ..self }
    }

    /// Nodes that nothing is behind, as in `3,cpu=8,label=zone=a`.
    #[must_use]
    pub fn simulate_nodes(self, plan: impl Into<String>) -> Self {
        Workloads { simulate_nodes: Some(plan.into()), ..self }
    }
}

/// A copy, until it is dropped.
#[derive(Debug)]
pub(crate) struct Fork {
    pub first: ControlPlane,
    name: String,
    pub url: String,
    pub kubeconfig: PathBuf,
}

impl ControlPlane {
    /// A copy of this control plane as it is now, with its objects, definitions and users, in milliseconds.
    ///
    /// Neither sees what becomes of the other. It ends with its last clone.
    ///
    /// # Errors
    ///
    /// The server does not answer, or the kubeconfig of the copy can't be written.
    pub async fn fork(&self) -> Result<ControlPlane, Error> {
        self.fork_with(Workloads::default()).await
    }

    /// [`ControlPlane::fork`], with controllers and nodes of its own.
    ///
    /// # Errors
    ///
    /// As there, and where a controller or the nodes are not known.
    pub async fn fork_with(&self, workloads: Workloads) -> Result<ControlPlane, Error> {
        let (first, from) = match self.as_fork() {
            None => (self, MAIN),
            Some(fork) => (&fork.first, &*fork.name),
        };
        let Workloads { profile, controllers, simulate_nodes } = workloads;
        let wanted = json!({
            "from": from,
            "profile": profile,
            "controllers": controllers,
            "simulateNodes": simulate_nodes,
        });
        let made = first.send("POST", PATH, Some(wanted)).await?;
        let text = |field: &str| made[field].as_str().unwrap_or_default().to_owned();
        let kubeconfig = first.kubeconfig().with_file_name(format!("{}.kubeconfig", text("name")));
        write_private(&kubeconfig, &text("kubeconfig")).map_err(Error::Run)?;
        Ok(ControlPlane::of_fork(Fork { first: first.clone(), name: text("name"), url: text("url"), kubeconfig }))
    }
}

impl Fork {
    /// What it was asked.
    pub fn log(&self) -> Vec<String> {
        let prefix = format!("[{}] ", self.name);
        self.first.log().iter().filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect()
    }
}

impl Drop for Fork {
    /// On a thread of its own: a test may end where nothing can wait.
    fn drop(&mut self) {
        _ = fs::remove_file(&self.kubeconfig);
        let (first, path) = (self.first.clone(), format!("{PATH}/{}", self.name));
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            // One that is not removed ends with its process.
            runtime.map(|runtime| runtime.block_on(first.send("DELETE", &path, None::<Value>)))
        });
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    private().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

/// Files for this user alone.
#[cfg(unix)]
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Windows has no modes: those may read a file who may read its folder.
#[cfg(not(unix))]
fn private() -> OpenOptions {
    OpenOptions::new()
}
