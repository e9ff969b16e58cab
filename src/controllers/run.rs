//! Runs the enabled controllers, in the one process that holds the lease.

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
use super::switches::{ControllerName, Switches};
use super::workload::ControllerContext;
use crate::registry::Registry;

const LEASE: &str = "controllers";
const LEASE_TTL: Duration = Duration::from_secs(15);
const LEASE_RENEWED_EVERY: Duration = Duration::from_secs(5);

/// Runs the enabled controllers as long as this process holds the lease.
///
/// The certificate of the authority is published in every namespace. Nothing is done before `begin` is notified: the
/// start should not wait for the controllers' writes.
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
    let own = || Arc::clone(registry);
    keep(&mut running, own(), Definitions::new);
    if switches.is_on(ControllerName::Namespaces) {
        keep(&mut running, own(), |registry| Namespaces { registry });
    }
    let (accounts, publishes) = (switches.is_on(ControllerName::Accounts), switches.is_on(ControllerName::Authority));
    if accounts || publishes {
        let authority_pem = publishes.then(|| authority.certificate_pem.clone());
        let content = move |registry| NamespaceContent { registry, accounts, authority_pem: authority_pem.clone() };
        keep(&mut running, own(), content);
    }
    if switches.is_on(ControllerName::Aggregation) {
        keep(&mut running, own(), |registry| Aggregation { registry });
    }
    if switches.is_on(ControllerName::PolicyTypes) {
        keep(&mut running, own(), |registry| PolicyTypes { registry });
    }
    if switches.is_on(ControllerName::Garbage) {
        keep(&mut running, own(), Garbage::new);
    }
    if switches.has_workloads() {
        let context = ControllerContext {
            registry: Arc::clone(registry),
            recorder: Recorder::start(registry),
            nodes: nodes.clone(),
            authority: authority.clone(),
        };
        switches.start_workloads(&Arc::new(context), &mut running);
    }
    running
}

/// Keeps a controller running, which may compute for long.
fn keep<C: changes::Controller + Send + 'static>(
    running: &mut JoinSet<()>,
    registry: Arc<Registry>,
    make: impl Fn(Arc<Registry>) -> C + Send + 'static,
) {
    running.spawn(changes::keep_running(C::TASK, move || {
        registry.background.run(changes::run(registry.storage.clone(), make(Arc::clone(&registry))))
    }));
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

/// Renews the lease until another process holds it.
async fn lose_lease(registry: &Registry, holder: &str) {
    loop {
        tokio::time::sleep(LEASE_RENEWED_EVERY).await;
        if !has_lease(registry, holder).await {
            return;
        }
    }
}
