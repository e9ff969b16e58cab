//! Runs the controllers that are on, in the one process that holds the lease.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

use super::aggregation::Aggregation;
use super::authority::Authority;
use super::changes;
use super::definitions::Definitions;
use super::garbage::Garbage;
use super::namespace_content::NamespaceContent;
use super::namespaces::Namespaces;
use super::policy_types::PolicyTypes;
use super::recorder::Recorder;
use super::simulated::NodePlan;
use super::switches::{Controller, Switches};
use super::workload::Means;
use crate::processor::background;
use crate::registry::Registry;
use crate::store::Storage;

const LEASE: &str = "controllers";
const LEASE_TTL: Duration = Duration::from_secs(15);
const LEASE_RENEWED_EVERY: Duration = Duration::from_secs(5);

/// Runs the controllers that are on for as long as this process holds the lease.
///
/// The certificate of the authority is published in every namespace. Nothing is done before `begin` is notified: what controllers write is not
/// to be waited for by those who only want to start.
pub fn start(
    registry: Arc<Registry>,
    switches: Switches,
    nodes: NodePlan,
    authority: Authority,
    begin: Arc<Notify>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        begin.notified().await;
        let holder = Uuid::new_v4().to_string();
        loop {
            if has_lease(&registry, &holder).await {
                // They end when it is dropped.
                let _running = run(&registry, switches, &nodes, &authority);
                lose_lease(&registry, &holder).await;
            }
            tokio::time::sleep(LEASE_RENEWED_EVERY).await;
        }
    })
}

fn run(registry: &Arc<Registry>, switches: Switches, nodes: &NodePlan, authority: &Authority) -> JoinSet<()> {
    let mut running = JoinSet::new();
    let storage = || registry.storage.clone();
    running.spawn(run_one(storage(), Definitions { registry: Arc::clone(registry) }));
    if switches.is_on(Controller::Namespaces) {
        running.spawn(run_one(storage(), Namespaces { registry: Arc::clone(registry) }));
    }
    let (accounts, publishes) = (switches.is_on(Controller::Accounts), switches.is_on(Controller::Authority));
    if accounts || publishes {
        let content = NamespaceContent {
            registry: Arc::clone(registry),
            accounts,
            authority_pem: publishes.then(|| authority.certificate_pem.clone()),
        };
        running.spawn(run_one(storage(), content));
    }
    if switches.is_on(Controller::Aggregation) {
        running.spawn(run_one(storage(), Aggregation { registry: Arc::clone(registry) }));
    }
    if switches.is_on(Controller::PolicyTypes) {
        running.spawn(run_one(storage(), PolicyTypes { registry: Arc::clone(registry) }));
    }
    if switches.is_on(Controller::Garbage) {
        running.spawn(run_one(storage(), Garbage::new(Arc::clone(registry))));
    }
    if switches.has_workloads() {
        let means = Means {
            registry: Arc::clone(registry),
            recorder: Recorder::start(registry),
            nodes: nodes.clone(),
            authority: authority.clone(),
        };
        switches.start_workloads(&means, &mut running);
    }
    running
}

/// Runs a controller, which may compute for long.
async fn run_one<C: changes::Controller>(storage: Storage, controller: C) {
    background(changes::run(storage, controller)).await;
}

async fn has_lease(registry: &Registry, holder: &str) -> bool {
    match registry.storage.lease(LEASE, holder, LEASE_TTL).await {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(%error, "the lease of the controllers could not be renewed");
            false
        }
    }
}

/// Renews the lease until it is another's.
async fn lose_lease(registry: &Registry, holder: &str) {
    loop {
        tokio::time::sleep(LEASE_RENEWED_EVERY).await;
        if !has_lease(registry, holder).await {
            return;
        }
    }
}
