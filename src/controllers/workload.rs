//! A controller of workloads: its names, what it needs, and how it is started.

use std::pin::Pin;
use std::sync::Arc;

use super::authority::Authority;
use super::client::Client;
use super::recorder::Recorder;
use super::simulated::NodePlan;
use crate::registry::Registry;

/// The context in which workload controllers are started.
pub(super) struct ControllerContext {
    pub registry: Arc<Registry>,
    pub recorder: Recorder,
    /// The nodes that are simulated.
    pub nodes: NodePlan,
    /// The authority of clients, with the signer and the issuer of tokens, if they are available.
    pub authority: Authority,
}

impl ControllerContext {
    /// A client for the controller with that service account.
    pub fn client(&self, account: &'static str) -> Client {
        Client::new(&self.registry, &self.recorder, account)
    }
}

/// A controller that runs until it is dropped.
pub(super) type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A controller of workloads.
pub(super) struct Workload {
    /// Its name, and an earlier or shorter one that means the same.
    pub names: [&'static str; 2],
    /// Whether simulated nodes require it.
    pub is_for_nodes: bool,
    pub start: fn(&ControllerContext) -> Running,
}

impl Workload {
    pub const fn new(names: [&'static str; 2], start: fn(&ControllerContext) -> Running) -> Self {
        Workload { names, is_for_nodes: false, start }
    }

    /// One that simulated nodes require.
    pub const fn for_nodes(names: [&'static str; 2], start: fn(&ControllerContext) -> Running) -> Self {
        Workload { names, is_for_nodes: true, start }
    }
}
