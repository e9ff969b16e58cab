//! What `#[skiff::test]` makes of a function.

use std::fmt::{self, Debug};
use std::future::Future;
use std::io::{self, Write as _};
use std::thread;

use kube::Client;
use tokio::runtime::{Builder, Runtime};

use crate::{ControlPlane, Error, Options, shared};

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

/// What a test returns, or what prepares one.
pub trait Outcome {
    /// Why it has failed, if it has.
    fn failure(&self) -> Option<String>;
}

impl Outcome for () {
    fn failure(&self) -> Option<String> {
        None
    }
}

impl<T, E: Debug> Outcome for Result<T, E> {
    fn failure(&self) -> Option<String> {
        self.as_ref().err().map(|error| format!("{error:?}"))
    }
}

/// Runs a test with a control plane of its own, in the server that tests with the same options share. Where it fails, what the
/// control plane was asked goes to standard error.
///
/// # Panics
///
/// There is no control plane, or the test panics.
pub fn run<T: Outcome>(options: Options, test: impl AsyncFnOnce(ControlPlane) -> T) -> T {
    let runtime = runtime();
    let plane = plane(&runtime, options);
    run_in(&runtime, plane, test)
}

/// [`run`], with a copy of a control plane that `prepare` has prepared, once for all tests of the process with the same options.
///
/// # Panics
///
/// There is no control plane, it can't be prepared, or the test panics.
pub fn run_prepared<A, P, F, T>(options: Options, prepare: F, test: impl AsyncFnOnce(ControlPlane) -> T) -> T
where
    A: FromPlane,
    P: Future<Output: Outcome>,
    F: FnOnce(A) -> P + 'static,
    T: Outcome,
{
    let runtime = runtime();
    let make = |options| {
        let plane = plane(&runtime, options);
        let outcome = run_in(&runtime, plane.clone(), async |plane| prepare(A::from_plane(&plane).await).await);
        if let Some(why) = outcome.failure() {
            fail(format_args!("the control plane can't be prepared: {why}"));
        }
        plane
    };
    let plane = if options.own_process {
        make(options)
    } else {
        let prepared = shared::prepared::<F>(&options.clone(), || make(options));
        made(runtime.block_on(prepared.fork()))
    };
    run_in(&runtime, plane, test)
}

fn run_in<T: Outcome>(runtime: &Runtime, plane: ControlPlane, test: impl AsyncFnOnce(ControlPlane) -> T) -> T {
    let told = TellOnFailure(plane.clone());
    let outcome = runtime.block_on(test(plane));
    if outcome.failure().is_some() {
        told.tell();
    }
    outcome
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("the system has threads and descriptors")
}

/// A control plane for a test.
fn plane(runtime: &Runtime, options: Options) -> ControlPlane {
    if options.own_process {
        return made(ControlPlane::start(options));
    }
    let server = shared::server(&options.clone(), || made(ControlPlane::start(options)));
    made(runtime.block_on(server.fork()))
}

fn made(plane: Result<ControlPlane, Error>) -> ControlPlane {
    plane.unwrap_or_else(|error| fail(format_args!("{error}")))
}

#[expect(clippy::panic, reason = "a test without a control plane has failed")]
fn fail(why: fmt::Arguments<'_>) -> ! {
    panic!("{why}")
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
