//! What `#[skiff::test]` makes of a function.

use std::fmt::Debug;
use std::future::Future;
use std::io::{self, Write as _};
use std::thread;

use kube::Client;
use tokio::runtime::Builder;

use crate::{ControlPlane, Options};

/// What a test may ask for.
pub trait FromPlane {
    /// Makes it of the test's control plane.
    fn from_plane(plane: &ControlPlane) -> impl Future<Output = Self>;
}

impl FromPlane for ControlPlane {
    async fn from_plane(plane: &ControlPlane) -> Self {
        plane.clone()
    }
}

impl FromPlane for Client {
    async fn from_plane(plane: &ControlPlane) -> Self {
        plane.client().await.expect("the server has just written its kubeconfig")
    }
}

/// What a test returns.
pub trait Outcome {
    /// Whether it has failed.
    fn is_failure(&self) -> bool;
}

impl Outcome for () {
    fn is_failure(&self) -> bool {
        false
    }
}

impl<T, E: Debug> Outcome for Result<T, E> {
    fn is_failure(&self) -> bool {
        self.is_err()
    }
}

/// Runs a test with a control plane of its own. Where it fails, what the server was asked goes to standard error.
///
/// # Panics
///
/// There is no control plane, or the test panics.
pub fn run<T: Outcome>(options: Options, test: impl AsyncFnOnce(ControlPlane) -> T) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().expect("the system has threads and descriptors");
    let plane = started(options);
    let told = TellOnFailure(plane.clone());
    let outcome = runtime.block_on(test(plane));
    if outcome.is_failure() {
        told.tell();
    }
    outcome
}

#[expect(clippy::panic, reason = "a test without a control plane has failed")]
fn started(options: Options) -> ControlPlane {
    ControlPlane::start(options).unwrap_or_else(|error| panic!("{error}"))
}

/// Tells what a server was asked when a panic passes by.
struct TellOnFailure(ControlPlane);

impl TellOnFailure {
    fn tell(&self) {
        let text = format!("skiff: {} was asked\n{}\n", self.0.url(), self.0.log().join("\n"));
        // Where that can't be written there is nobody to read it.
        _ = io::stderr().write_all(text.as_bytes());
    }
}

impl Drop for TellOnFailure {
    fn drop(&mut self) {
        if thread::panicking() {
            self.tell();
        }
    }
}
