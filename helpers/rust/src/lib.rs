//! A Kubernetes API server for each test, which is there in milliseconds and gone with the test.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{Api, Client};
//!
//! #[skiff::test]
//! async fn nothing_is_there(client: Client) -> Result<(), kube::Error> {
//!     let maps: Api<ConfigMap> = Api::namespaced(client, "none");
//!     assert!(maps.list(&Default::default()).await?.items.is_empty());
//!     Ok(())
//! }
//!
//! #[skiff::test(crds = ["config/crd"], arguments = ["--authorization-mode=RBAC"])]
//! async fn definitions_are_served(plane: skiff::ControlPlane) {
//!     assert!(plane.url().starts_with("https://"));
//! }
//! ```
//!
//! A test asks for a [`kube::Client`], the [`ControlPlane`], or both. Where it fails, what its control plane was asked is
//! printed. All tests of a process with the same settings have one server, in which each gets a control plane, in milliseconds;
//! with `own_process = true`, a test starts a server of its own.
//!
//! What takes long to prepare is prepared once, by a function that asks for the same as a test, and copied for each:
//!
//! ```
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use kube::{Api, Client};
//! async fn installed(client: Client) -> Result<(), kube::Error> {
//!     let maps: Api<ConfigMap> = Api::default_namespaced(client);
//!     // …
//!     # let _ = maps;
//!     Ok(())
//! }
//!
//! #[skiff::test(prepared = installed)]
//! async fn it_is_there(client: Client) {
//!     // …
//!     # let _ = client;
//! }
//! ```
//!
//! The server is the program `skiff`: the one that the variable `SKIFF` names, else the one on the `PATH`. It ends with the
//! process of the tests, also when that is killed.

#![warn(missing_docs)]

mod clock;
mod faults;
mod fork;
mod plane;
mod program;
mod run;
mod shared;

pub use clock::Clock;
pub use faults::{End, Fault, Injected, Lost};
pub use fork::Workloads;
pub use kubeskiff_test_macros::test;
pub use plane::{ControlPlane, Error, Options};
pub use program::program;
pub use run::{FromPlane, Outcome, run, run_prepared};
