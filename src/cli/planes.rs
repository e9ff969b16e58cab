//! The control planes of a process beside the main one: created empty or as copies of others, each
//! with a port of its own.
//!
//! Input: which one is wanted. Output: its address, and the credentials for it. All of them run the same
//! code with the same options; they share compiled definitions, documents, the processors and the
//! threads. Each has its own database, clock, users, limits of requests in flight, and controllers,
//! which start with the first request.
//!
//! # Which credentials are valid where
//!
//! A control plane accepts no credentials of another one, except for those that are part of the
//! copied data:
//!
//! - Each has a certificate authority of its own, whose key never leaves the process. The only
//!   certificates that it signed are the server's and that of the administrator in the kubeconfig.
//!   So no client certificate of one control plane is valid in another, and a client that trusts
//!   one server trusts no other. Nothing in a copy depends on the old authority: the one that is
//!   published in namespaces is updated as on any start.
//! - Service account tokens are in use, and in Secrets that are copied. So a copy accepts those
//!   that its origin had issued before, for accounts that it has; it signs with a key of its own,
//!   and the origin keeps its key. A token that is issued later is valid only where it was issued.
//!   The time of issue is in the token's id, to the microsecond by the machine's clock
//!   (`auth::jwt`), since the clocks of control planes may be set.
//! - The users of `--token-auth-file` are options of the process, and valid in all control planes.
//!   The files of `--service-account-signing-key-file` and `--service-account-key-file` apply to
//!   the main one, and to its copies for tokens that were issued before.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::{Notify, OnceCell, mpsc};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::credentials::{ADMIN, IssuedCredentials, SECRET_NAMES};
use super::server::{Server, reachable};
use super::service_network;
use super::serving_failure::ServingFailure;
use super::workloads::Workloads;
use crate::audit;
use crate::auth::{Authorizer, TokenIssuer};
use crate::controllers::{self, NodePlan, Switches};
use crate::http::{self, App, Issuing, MAIN, Plane, PlaneRequest, Shared, WantedWorkloads, missing};
use crate::memory::Portion;
use crate::meta::Status;
use crate::registry::Registry;
use crate::server::{Connections, Gate, Kubeconfig, OpenConnections};
use crate::store::{Config, Location, Storage, StoreError};

/// How many control planes there may be beside the main one.
const PLANES_MAX: usize = 4_096;
/// How many TLS sessions each of them remembers.
const SESSIONS: usize = 8;

/// What a copy is made of.
#[derive(Clone)]
pub struct Origin {
    pub registry: Arc<Registry>,
    pub issuer: Arc<TokenIssuer>,
    /// The authorizer for requests and admission.
    pub authorizer: Arc<dyn Authorizer>,
}

/// The control planes beside the main one.
pub struct Planes {
    server: Arc<Server>,
    /// The address that they listen on.
    ip: IpAddr,
    main: Origin,
    shared: Shared,
    /// The limit of open connections.
    places: OpenConnections,
    logs: Arc<[audit::Log]>,
    known: Mutex<BTreeMap<Arc<str>, PlaneState>>,
    /// Each operation that creates or ends a control plane holds a clone; the receiver ends when
    /// this and the last clone are dropped.
    at_work: Mutex<Option<mpsc::Sender<Infallible>>>,
    all_done: tokio::sync::Mutex<mpsc::Receiver<Infallible>>,
}

enum PlaneState {
    /// The name is taken: the control plane is being created or ended.
    Changing,
    Running(Box<Running>),
}

struct Running {
    plane: Arc<Plane>,
    origin: Origin,
    connections: Connections<axum::Router>,
    controllers: JoinHandle<()>,
    /// What it takes beside its objects.
    _memory: Portion,
}

impl Running {
    /// Ends the watches, waits for the requests, and closes the database.
    async fn end(self) {
        self.connections.shut_down(None).await;
        self.controllers.abort();
        // Wait for them: otherwise they might find the database closed.
        _ = self.controllers.await;
        self.origin.registry.storage.close().await;
    }
}

/// A name that is reserved while its control plane is created or ended; the process waits for it
/// before it ends.
struct Taken {
    planes: Arc<Planes>,
    name: Arc<str>,
    _at_work: mpsc::Sender<Infallible>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut known = self.planes.known();
        if let Some(PlaneState::Changing) = known.get(&self.name) {
            known.remove(&self.name);
        }
    }
}

impl Planes {
    /// No control planes yet, beside `main`; all have the options of `server`.
    pub fn new(
        server: Arc<Server>,
        ip: IpAddr,
        main: Origin,
        shared: Shared,
        places: OpenConnections,
        logs: Arc<[audit::Log]>,
    ) -> Self {
        let (at_work, all_done) = mpsc::channel(1);
        let (at_work, all_done) = (Mutex::new(Some(at_work)), tokio::sync::Mutex::new(all_done));
        Planes { server, ip, main, shared, places, logs, known: Mutex::default(), at_work, all_done }
    }

    /// Ends all control planes, including those that are being created; from then on none can be
    /// created.
    pub async fn end(&self) {
        drop(lock(&self.at_work).take());
        _ = self.all_done.lock().await.recv().await;
        let all = std::mem::take(&mut *self.known());
        let running = all.into_values().filter_map(|known| match known {
            PlaneState::Running(running) => Some(running.end()),
            PlaneState::Changing => None,
        });
        join_all(running).await;
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, PlaneState>> {
        lock(&self.known)
    }

    /// Reserves a name, or a generated one.
    fn take(self: &Arc<Self>, name: Option<String>) -> Result<Taken, Status> {
        let at_work = self.at_work()?;
        let mut known = self.known();
        if known.len() >= PLANES_MAX {
            return Err(Status::bad_request(&format!("there are {PLANES_MAX} control planes, which is the most")));
        }
        let made_up = || format!("plane-{}", &Uuid::new_v4().simple().to_string()[..8]);
        let name: Arc<str> = name.unwrap_or_else(made_up).into();
        match known.entry(Arc::clone(&name)) {
            Entry::Occupied(_) => Err(Status::already_exists("", "planes", &name)),
            Entry::Vacant(free) => {
                free.insert(PlaneState::Changing);
                Ok(Taken { planes: Arc::clone(self), name, _at_work: at_work })
            }
        }
    }

    /// Takes a running control plane by name, to end it; `None` if there is none.
    fn take_running(self: &Arc<Self>, name: &str) -> Result<Option<(Taken, Box<Running>)>, Status> {
        let at_work = self.at_work()?;
        let mut known = self.known();
        let Some(found) = known.get_mut(name) else { return Ok(None) };
        match std::mem::replace(found, PlaneState::Changing) {
            PlaneState::Running(running) => {
                let name = Arc::clone(&running.plane.name);
                Ok(Some((Taken { planes: Arc::clone(self), name, _at_work: at_work }, running)))
            }
            PlaneState::Changing => Ok(None),
        }
    }

    /// A guard to hold while a control plane is created or ended. Errors: the process is stopping.
    fn at_work(&self) -> Result<mpsc::Sender<Infallible>, Status> {
        lock(&self.at_work).clone().ok_or_else(|| Status::service_unavailable("the server is stopping"))
    }

    fn origin(&self, name: &str) -> Result<Origin, Status> {
        if name == MAIN {
            return Ok(self.main.clone());
        }
        match self.known().get(name) {
            Some(PlaneState::Running(running)) => Ok(running.origin.clone()),
            Some(PlaneState::Changing) | None => Err(missing(name)),
        }
    }

    async fn begin(&self, name: &Arc<str>, wanted: PlaneRequest) -> Result<Running, Failed> {
        let PlaneRequest { from, path, workloads, .. } = wanted;
        let beside = self.beside(workloads.as_ref())?;
        let memory = self.server.store.memory.for_plane().map_err(|full| Failed::Status(full.into()))?;
        let origin = from.as_deref().map(|from| self.origin(from)).transpose().map_err(Failed::Status)?;
        let listener = TcpListener::bind(SocketAddr::new(self.ip, 0)).await.map_err(told)?;
        let address = listener.local_addr().map_err(told)?;
        let origin = self.origin_of_new(origin, path).await?;
        let begun = self.serve((name, from), (listener, address), origin.clone(), beside, memory).await;
        if begun.is_err() {
            origin.registry.storage.close().await;
        }
        begun
    }

    /// The controllers and nodes of a new control plane: the requested ones, or those of the
    /// process.
    fn beside(&self, wanted: Option<&WantedWorkloads>) -> Result<(Switches, NodePlan), Failed> {
        let server = &self.server;
        let Some(wanted) = wanted else { return Ok((server.switches, server.nodes.clone())) };
        let invalid = |why: &dyn std::fmt::Display| Failed::Status(Status::bad_request(&why.to_string()));
        let workloads = Workloads::of_plane(wanted).map_err(|error| invalid(&error))?;
        let switches = workloads.switches().map_err(|unknown| invalid(&unknown))?;
        let stages = Arc::clone(&server.nodes.stages);
        Ok((switches, NodePlan { stages, ..workloads.nodes() }))
    }

    /// The state of a new control plane: a copy of `from`, or empty.
    async fn origin_of_new(&self, from: Option<Origin>, path: Option<PathBuf>) -> Result<Origin, Failed> {
        let clock = from.as_ref().map(|from| from.registry.clock.copy()).unwrap_or_default();
        let config = Config {
            durability: self.server.store.durability,
            history: self.server.store.history,
            memory: Arc::clone(&self.server.store.memory),
            required: Arc::clone(&self.server.store.required),
            clock: clock.clone(),
            is_beside: true,
            ..Config::new(path.map_or(Location::Memory, Location::File))
        };
        let (users, minor) = (&self.server.users, self.server.runtime_config.minor());
        let Some(from) = from else {
            let storage = Storage::open(&config).await?;
            let issuer = Arc::new(users.kept_token_issuer(&storage, None).await.map_err(told)?);
            let (authorizer, policy) = users.authorizer((&storage, &config.memory), minor, None);
            let definitions = self.main.registry.definitions.beside();
            let registry = self.server.registry(storage, definitions, policy, Arc::clone(&authorizer), clock);
            return Ok(Origin { registry: Arc::new(registry), issuer, authorizer });
        };
        // Read all definitions first, so the copy need not; and take what was derived from the stored
        // objects before these are copied.
        from.registry.resources().await.map_err(Failed::Status)?;
        let definitions = from.registry.definitions.copy();
        let known = from.registry.policy.as_ref().map(|policy| policy.current());
        let deferred = OnceCell::new_with(from.registry.deferred.initialized().then_some(()));
        let storage = from.registry.storage.fork(&config, &SECRET_NAMES).await?;
        let issuer = Arc::new(users.kept_token_issuer(&storage, Some(&from.issuer)).await.map_err(told)?);
        let (authorizer, policy) = users.authorizer((&storage, &config.memory), minor, known);
        let registry = self.server.registry(storage, definitions, policy, Arc::clone(&authorizer), clock);
        Ok(Origin { registry: Arc::new(Registry { deferred, ..registry }), issuer, authorizer })
    }

    /// Populates a new control plane if it is empty, and starts to serve it.
    async fn serve(
        &self,
        (name, from): (&Arc<str>, Option<String>),
        (listener, address): (TcpListener, SocketAddr),
        origin: Origin,
        (switches, nodes): (Switches, NodePlan),
        memory: Portion,
    ) -> Result<Running, Failed> {
        let server = &self.server;
        let (registry, issuer) = (Arc::clone(&origin.registry), Arc::clone(&origin.issuer));
        let credentials = IssuedCredentials::load(&registry.storage, address).await.map_err(told)?;
        let IssuedCredentials { authority, tls, administrator } = credentials;
        let begin = Arc::new(Notify::new());
        if from.is_none() {
            server.populate(&registry).await?;
            service_network::make(&registry, service_network::advertised(address)).await;
        }
        let url = format!("https://{}", reachable(address));
        let tokens = Arc::new(server.users.tokens(&registry, &issuer).map_err(told)?);
        let authorizer = Arc::clone(&origin.authorizer);
        let app = App::with(registry, authorizer, Arc::clone(&tokens), server.limits, Arc::clone(&self.logs));
        let app = app.with_issuing(Issuing { issuer, key_set_url: format!("{url}/openid/v1/jwks") });
        let app = app.beside(Arc::clone(name), self.shared.clone(), Arc::clone(&begin));
        let app = app.at(service_network::told(address));
        let gate = Gate::new(tokens).with_anonymous(server.users.lets_anonymous_in());
        let gate = gate.with_early_refusals(app.early_refusals());
        let connections = Connections::among(http::router(app), gate, self.places.half());
        connections.listen(listener, tls.remembering(SESSIONS));
        let authority_pem = authority.certificate_pem().to_owned();
        let kubeconfig =
            Kubeconfig { server: &url, authority_pem: &authority_pem, user: ADMIN, identity: &administrator };
        let kubeconfig = kubeconfig.to_yaml();
        let authority = controllers::Authority {
            certificate_pem: authority_pem.clone(),
            signer: Some(Arc::new(authority)),
            issuer: Some(Arc::clone(&origin.issuer)),
        };
        // Started last, as they would keep running if a previous step failed.
        let controllers = controllers::start(Arc::clone(&origin.registry), switches, nodes, authority, begin);
        let plane = Plane { name: Arc::clone(name), from, url, kubeconfig, authority_pem, created: Timestamp::now() };
        Ok(Running { plane: Arc::new(plane), origin, connections, controllers, _memory: memory })
    }
}

impl Taken {
    /// Creates the control plane of this name.
    async fn make(self, wanted: PlaneRequest) -> Result<Arc<Plane>, Status> {
        let running = self.planes.begin(&self.name, wanted).await.map_err(Failed::into_status)?;
        let plane = Arc::clone(&running.plane);
        self.planes.known().insert(Arc::clone(&self.name), PlaneState::Running(Box::new(running)));
        Ok(plane)
    }

    /// Ends the control plane of this name, which is then free.
    async fn end(self, running: Box<Running>) -> Arc<Plane> {
        let plane = Arc::clone(&running.plane);
        running.end().await;
        plane
    }
}

#[async_trait]
impl http::Planes for Planes {
    async fn create(self: Arc<Self>, mut wanted: PlaneRequest) -> Result<Arc<Plane>, Status> {
        let taken = self.take(wanted.name.take())?;
        to_its_end(taken.make(wanted)).await?
    }

    fn list(&self) -> Vec<Arc<Plane>> {
        let known = self.known();
        let running = known.values().filter_map(|known| match known {
            PlaneState::Running(running) => Some(Arc::clone(&running.plane)),
            PlaneState::Changing => None,
        });
        running.collect()
    }

    fn get(&self, name: &str) -> Option<Arc<Plane>> {
        match self.known().get(name)? {
            PlaneState::Running(running) => Some(Arc::clone(&running.plane)),
            PlaneState::Changing => None,
        }
    }

    async fn delete(self: Arc<Self>, name: &str) -> Result<Option<Arc<Plane>>, Status> {
        match self.take_running(name)? {
            Some((taken, running)) => to_its_end(taken.end(running)).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Runs `work` in a task of its own, so that a client that disconnects does not leave a database
/// half open or half closed.
async fn to_its_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, Status> {
    tokio::spawn(work).await.map_err(|error| Status::internal_error(&error.to_string()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a control plane can't be created.
enum Failed {
    Status(Status),
    Store(StoreError),
    Other(String),
}

impl Failed {
    fn into_status(self) -> Status {
        match self {
            Failed::Status(status) => status,
            // The caller's mistake: the name of the file, or a source that can't be copied.
            Failed::Store(error @ StoreError::Exists(_)) => {
                Status { code: 409, reason: "AlreadyExists".into(), ..Status::bad_request(&error.to_string()) }
            }
            Failed::Store(
                error @ (StoreError::InUse(_)
                | StoreError::Open { .. }
                | StoreError::NewerSchema { .. }
                | StoreError::Damaged { .. }
                | StoreError::Several),
            ) => Status::bad_request(&error.to_string()),
            Failed::Store(error) => Status::internal_error(&error.to_string()),
            Failed::Other(error) => Status::internal_error(&error),
        }
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Failed::Store(error)
    }
}

impl From<ServingFailure> for Failed {
    fn from(ServingFailure(why): ServingFailure) -> Self {
        Failed::Other(why)
    }
}

/// Other errors have only a text.
fn told(error: impl fmt::Display) -> Failed {
    Failed::Other(error.to_string())
}
