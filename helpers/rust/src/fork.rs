//! Copies of a control plane, in the same process as the first one.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::{ControlPlane, Error};

const PATH: &str = "/skiff/v1/planes";
/// What the one is called that a process begins with.
const MAIN: &str = "main";

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
        let (first, from) = match self.as_fork() {
            None => (self, MAIN),
            Some(fork) => (&fork.first, &*fork.name),
        };
        let made = first.send("POST", PATH, Some(json!({ "from": from }))).await?;
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
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}
