//! The configuration of an API server, and how its parts are built: shared by `skiff serve`, the
//! stand-in for kube-apiserver, and the additional control planes of either.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::admission::Admission;
use super::credentials::Credentials;
use super::seed::Seed;
use super::service_network::Network;
use super::serving_failure::ServingFailure;
use super::ui::PageRequest;
use super::users::Users;
use crate::audit;
use crate::auth::Authorizer;
use crate::clock::Clock;
use crate::controllers::{self, ControllerName, NodePlan, Switches};
use crate::http::Limits;
use crate::kinds::default_roles::Extent;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::meta::Status;
use crate::processor::BackgroundTurns;
use crate::registry::{Converter, Definitions, Lifetimes, Registry, StoredPolicy};
use crate::store::{Config, Storage};

/// The configuration of a server.
pub struct Server {
    pub listen: SocketAddr,
    /// The address that also serves plain HTTP.
    pub insecure_listen: Option<SocketAddr>,
    /// The page for browsers, and whether it may change objects.
    pub ui: Option<PageRequest>,
    pub store: Config,
    pub credentials: Credentials,
    /// The manifests that are applied at startup.
    pub seed: Seed,
    /// The folder that was created for this server: it is removed if the start fails.
    pub made: Option<PathBuf>,
    pub runtime_config: RuntimeConfig,
    pub admission: Admission,
    pub users: Users,
    pub network: Network,
    pub lifetimes: Lifetimes,
    pub switches: Switches,
    /// The simulated nodes.
    pub nodes: NodePlan,
    pub logs: Vec<audit::Log>,
    pub limits: Limits,
    /// The turns of the controllers of all control planes.
    pub background: BackgroundTurns,
    /// Whether the server ends without waiting for anything.
    pub ends_at_once: bool,
}

impl Server {
    /// Builds the registry that serves the objects in a storage.
    pub fn registry(
        &self,
        storage: Storage,
        definitions: Definitions,
        policy: Option<Arc<StoredPolicy>>,
        authorizer: Arc<dyn Authorizer>,
        clock: Clock,
    ) -> Registry {
        let client = self.admission.client(&self.store.memory);
        let chain = self.admission.chain(
            self.runtime_config.minor(),
            (&storage, &self.store.memory),
            Arc::clone(&authorizer),
            &client,
        );
        let guards_namespaces = self.admission.guards_namespaces();
        Registry {
            storage,
            definitions,
            admission: Arc::new(chain),
            convert: Arc::new(Converter(client)),
            authorizer,
            policy,
            clock,
            memory: Arc::clone(&self.store.memory),
            background: self.background.clone(),
            guards_namespaces,
            network: self.network.network(),
            lifetimes: self.lifetimes,
            deferred: Default::default(),
        }
    }

    /// Creates the initial namespaces and objects and, if RBAC is enabled, the default roles.
    pub async fn populate(&self, registry: &Arc<Registry>) -> Result<(), ServingFailure> {
        let refused = |what: &str, status: Status| ServingFailure(format!("{what}: {}", status.message));
        // Both at once, so that they share one write to disk.
        tokio::try_join!(registry.make_initial_namespaces(), registry.make_initial_objects())
            .map_err(|status| refused("the first objects can't be made", status))?;
        if registry.policy.is_some() {
            let extent = if self.switches.has_workloads() { Extent::Workloads } else { Extent::Server };
            let reconciled = registry.reconcile_default_roles(extent).await;
            reconciled.map_err(|status| refused("the default roles can't be made", status))?;
            if self.switches.is_on(ControllerName::Aggregation) {
                controllers::aggregate_default_roles(registry, extent).await;
            }
        }
        Ok(())
    }
}

/// The address as clients reach it: a server that listens on all addresses is reached on this
/// machine.
pub fn reachable(address: SocketAddr) -> String {
    if address.ip().is_unspecified() { format!("127.0.0.1:{}", address.port()) } else { address.to_string() }
}
