//! What an API server is to be, and what it is built of: the same for `skiff serve`, for a stand-in for kube-apiserver, and for the
//! further control planes of either.

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
use crate::registry::{Converter, Definitions, Lifetimes, Registry, StoredPolicy};
use crate::store::{Config, Storage};

/// What a server is to be.
pub struct Server {
    pub listen: SocketAddr,
    /// Where plain HTTP is served as well.
    pub insecure_listen: Option<SocketAddr>,
    /// Where a page for browsers is served, and whether it may change objects.
    pub ui: Option<PageRequest>,
    pub store: Config,
    pub credentials: Credentials,
    /// What is applied at the start.
    pub seed: Seed,
    /// The folder that was made for this server: it goes again where the start fails.
    pub made: Option<PathBuf>,
    pub runtime_config: RuntimeConfig,
    pub admission: Admission,
    pub users: Users,
    pub network: Network,
    pub lifetimes: Lifetimes,
    pub switches: Switches,
    /// The nodes that are simulated.
    pub nodes: NodePlan,
    pub logs: Vec<audit::Log>,
    pub limits: Limits,
    /// Whether it ends without waiting for anything.
    pub ends_at_once: bool,
}

impl Server {
    /// What serves the objects in a storage.
    pub fn registry(
        &self,
        storage: Storage,
        definitions: Definitions,
        policy: Option<Arc<StoredPolicy>>,
        authorizer: Arc<dyn Authorizer>,
        clock: Clock,
    ) -> Registry {
        let client = self.admission.client();
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
            guards_namespaces,
            network: self.network.network(),
            lifetimes: self.lifetimes,
            deferred: Default::default(),
        }
    }

    /// Makes the first namespaces and, where they count, the default roles.
    pub async fn populate(&self, registry: &Arc<Registry>) -> Result<(), ServingFailure> {
        let refused = |what: &str, status: Status| ServingFailure(format!("{what}: {}", status.message));
        // Together, so that they are on disk at the cost of one.
        tokio::try_join!(registry.make_initial_namespaces(), registry.make_initial_objects())
            .map_err(|status| refused("the first objects can't be made", status))?;
        if registry.policy.is_some() {
            let extent = if self.switches.has_workloads() { Extent::Workloads } else { Extent::Server };
            let reconciled = registry.reconcile_default_roles(extent).await;
            reconciled.map_err(|status| refused("the default roles can't be made", status))?;
            if self.switches.is_on(ControllerName::Aggregation) {
                let gathered = controllers::aggregate_roles(registry).await;
                gathered.map_err(|status| refused("the default roles can't be gathered", status))?;
            }
        }
        Ok(())
    }
}

/// The address as clients reach it: one that stands for all addresses is reached on this machine.
pub fn reachable(address: SocketAddr) -> String {
    if address.ip().is_unspecified() { format!("127.0.0.1:{}", address.port()) } else { address.to_string() }
}
