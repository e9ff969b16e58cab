//! Controllers: they watch, compare, and write what is missing. Each is idempotent and starts anew from what is stored.
//!
//! They run in one process at a time, under a lease row.
//!
//! All of them are one loop (`controllers::changes`): take in every change of every collection from the store's feed,
//! in order, and look at the keys that it is about; a key that is being looked at is not looked at twice, one that
//! failed waits 5 ms, then twice as long each time up to a minute, one that waits for others (a namespace for its
//! content, a definition for its objects, a dependent for the kind of its owner) is woken by their changes and not by
//! a clock. The feed (`store::feed`) loads nothing: the newest changes are in memory once for all, older ones are
//! read from the log, and a reader that falls behind what the log keeps starts anew. A panic over one key is a failure of
//! that key; one elsewhere ends its controller alone, which is made anew after a pause.
//!
//! Those that make workloads go on share more ([`reconcile`]): what they read and write ([`client`]), events ([`recorder`]), who
//! owns what ([`family`]). Each of them is one file, which only the table of switches names; what it decides is a pure
//! function of objects and the time.

mod queue;
mod changes;
mod metadata;
mod definitions;
mod namespaces;
mod namespace_content;
mod garbage;
mod aggregation;
mod policy_types;
mod client;
mod recorder;
mod reconcile;
mod family;
mod conditions;
mod pods;
mod template_hash;
mod amounts;
mod pod_control;
mod deployment;
mod replica_set;
mod history;
mod stateful_set;
mod daemon_set;
mod schedule;
mod index_set;
mod job;
mod cron_job;
mod time_to_live;
mod volumes;
mod quota;
mod services;
mod endpoint_slice;
mod endpoints;
mod disruption;
mod autoscaler;
mod certificate_requests;
mod account_tokens;
mod simulated;
mod nodes;
mod scheduler;
mod node_lifecycle;
mod taint_eviction;
mod switches;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use uuid::Uuid;

use self::aggregation::Aggregation;
use self::definitions::Definitions;
use self::garbage::Garbage;
use self::namespace_content::NamespaceContent;
use self::namespaces::Namespaces;
use self::policy_types::PolicyTypes;
use self::queue::Queue;
use self::recorder::Recorder;
use self::switches::Means;
use crate::auth::{TokenIssuer, UserInfo};
use crate::meta::Status;
use crate::processor::background;
use crate::registry::Registry;
use crate::store::{At, Collection, Moment};

pub use self::aggregation::aggregate_roles;
pub use self::certificate_requests::Sign;
pub use self::simulated::{NodePlan, Stage};
pub use self::switches::{Controller, Profile, Switches, UnknownController};

/// Who the controllers are to the registry.
const USER: &str = "system:apiserver";
/// The manager of the fields that they set.
const MANAGER: &str = "kube-apiserver";
/// The manager of the fields that the controllers of Kubernetes' controller manager set.
const CONTROLLER_MANAGER: &str = "kube-controller-manager";
const LEASE: &str = "controllers";
const LEASE_TTL: Duration = Duration::from_secs(15);
const LEASE_RENEWED_EVERY: Duration = Duration::from_secs(5);

/// The authority of the server's clients.
#[derive(Clone, Default)]
pub struct Authority {
    /// Its certificate.
    pub certificate_pem: String,
    /// Who signs with its key; `None` where the key is not here.
    pub signer: Option<Arc<dyn Sign>>,
    /// Who issues tokens of service accounts; `None` where none are issued.
    pub issuer: Option<Arc<TokenIssuer>>,
}

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
    let own = || Arc::clone(registry);
    keep(&mut running, own(), |registry| Definitions { registry });
    if switches.is_on(Controller::Namespaces) {
        keep(&mut running, own(), |registry| Namespaces { registry });
    }
    let (accounts, publishes) = (switches.is_on(Controller::Accounts), switches.is_on(Controller::Authority));
    if accounts || publishes {
        let authority_pem = publishes.then(|| authority.certificate_pem.clone());
        let content = move |registry| NamespaceContent { registry, accounts, authority_pem: authority_pem.clone() };
        keep(&mut running, own(), content);
    }
    if switches.is_on(Controller::Aggregation) {
        keep(&mut running, own(), |registry| Aggregation { registry });
    }
    if switches.is_on(Controller::PolicyTypes) {
        keep(&mut running, own(), |registry| PolicyTypes { registry });
    }
    if switches.is_on(Controller::Garbage) {
        keep(&mut running, own(), Garbage::new);
    }
    if switches.has_workloads() {
        let means = Means {
            registry: Arc::clone(registry),
            recorder: Recorder::start(registry),
            nodes: nodes.clone(),
            authority: authority.clone(),
        };
        switches.start_workloads(&Arc::new(means), &mut running);
    }
    running
}

/// Keeps a controller at work, which may compute for long.
fn keep<C: changes::Controller + Send + 'static>(
    running: &mut JoinSet<()>,
    registry: Arc<Registry>,
    make: impl Fn(Arc<Registry>) -> C + Send + 'static,
) {
    running.spawn(changes::keep_running(C::TASK, move || {
        background(changes::run(registry.storage.clone(), make(Arc::clone(&registry))))
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

/// Renews the lease until it is another's.
async fn lose_lease(registry: &Registry, holder: &str) {
    loop {
        tokio::time::sleep(LEASE_RENEWED_EVERY).await;
        if !has_lease(registry, holder).await {
            return;
        }
    }
}

/// Queues what each object of a collection is about, by its key; returns the moment after which changes are to be taken in.
async fn queue_all(
    registry: &Registry,
    collection: &Collection,
    queue: &mut Queue<String>,
    about: impl Fn(&str) -> String,
) -> Result<Moment, Status> {
    // Before the state is read: what changes meanwhile is seen twice rather than never.
    let before = registry.storage.now();
    let snapshot = registry.storage.snapshot(collection, At::Newest).await;
    let snapshot = snapshot.map_err(|_| Status::internal_error("what is stored can't be read"))?;
    let now = Instant::now();
    snapshot.range("", None).for_each(|stored| queue.add(about(&stored.key), now));
    Ok(before)
}

fn user() -> UserInfo {
    UserInfo::authenticated(USER, vec![UserInfo::MASTERS.to_owned()])
}

/// Who a controller of Kubernetes' controller manager is to webhooks.
fn service_account(name: &str) -> UserInfo {
    const NAMESPACE: &str = "kube-system";
    UserInfo::authenticated(UserInfo::account_name(NAMESPACE, name), UserInfo::account_groups(NAMESPACE))
}
