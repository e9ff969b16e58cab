//! A controller of workloads: its names, what it needs, and how it is started.

use std::pin::Pin;
use std::sync::Arc;

use super::authority::Authority;
use super::client::Client;
use super::recorder::Recorder;
use super::simulated::NodePlan;
use crate::registry::Registry;

/// What the controllers of workloads are started with.
pub(super) struct ControllerContext {
    pub registry: Arc<Registry>,
    pub recorder: Recorder,
    /// The nodes that are simulated.
    pub nodes: NodePlan,
    /// The authority of clients, and who signs with its key and issues tokens, as far as they are here.
    pub authority: Authority,
}

impl ControllerContext {
    /// A client for the controller of that service account.
    pub fn client(&self, account: &'static str) -> Client {
        Client::new(&self.registry, &self.recorder, account)
    }
}

/// A controller that runs, for as long as it is not dropped.
pub(super) type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A controller of workloads.
pub(super) struct Workload {
    /// Its name, and an earlier or shorter one that means the same.
    pub names: [&'static str; 2],
    /// Whether simulated nodes are of no use without it.
    pub is_for_nodes: bool,
    pub start: fn(&ControllerContext) -> Running,
}

impl Workload {
    pub const fn new(names: [&'static str; 2], start: fn(&ControllerContext) -> Running) -> Self {
        Workload { names, is_for_nodes: false, start }
    }

    /// One that simulated nodes are of no use without.
    pub const fn for_nodes(names: [&'static str; 2], start: fn(&ControllerContext) -> Running) -> Self {
        Workload { names, is_for_nodes: true, start }
    }
}
