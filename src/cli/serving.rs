//! An API server, from what it is to be until it is told to stop: what `skiff serve` and a stand-in for kube-apiserver share.

use std::io::IsTerminal as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use async_trait::async_trait;
use axum::Router;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::admission::Admission;
use super::log::Log;
use super::planes::{Origin, Planes};
use super::playground::{CONNECTIONS_MAX, PlaygroundPage};
use super::print::{output, tell};
use super::seed::Seed;
use super::service_network::{self, Network};
use super::ui::{Opened, PageRequest};
use super::users::{SIGNING_KEY, Users};
use crate::audit;
use crate::auth::{Authorizer, RequestHeader, TokenIssuer, Tokens, UserInfo};
use crate::clock::Clock;
use crate::controllers::{self, ControllerName, NodePlan, Switches};
use crate::http::{self, App, Issuing, Limits, Shared};
use crate::kinds::default_roles::Extent;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::meta::Status;
use crate::registry::{Advertised, Converter, Definitions, Lifetimes, Registry, Resource, StoredPolicy};
use crate::server::{
    AUTHORITY_SECRET, AllowedOrigins, Authority, CertificateError, Connections, Gate, Identity, Kubeconfig,
    NamedIdentity, OpenConnections, Secrets, SecretsError, Tls, Trust, connections_max, stop_requested, threads,
};
use crate::store::{Config, Storage};

/// The user in the kubeconfig.
pub const ADMIN: &str = "skiff-admin";
/// The keys that each control plane has of its own.
pub const SECRET_NAMES: [&str; 2] = [AUTHORITY_SECRET, SIGNING_KEY];
/// How long a server may take to end that is to end at once: answers on their way are sent, and no more.
const DRAIN_AT_ONCE: Duration = Duration::from_millis(5);

/// What a server is to be.
pub struct Server {
    pub listen: SocketAddr,
    /// Where plain HTTP is served as well.
    pub insecure_listen: Option<SocketAddr>,
    /// Where a page for browsers is served, and whether it may change objects.
    pub ui: Option<PageRequest>,
    pub store: Config,
    pub papers: Papers,
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

/// How it shows who it is, and whom it believes.
pub enum Papers {
    /// By an authority of its own, with a kubeconfig for its administrator, and perhaps a context in another.
    Own { kubeconfig: PathBuf, merged: Option<MergedContext> },
    /// By what others gave it.
    Given(Box<Given>),
}

/// A context in a kubeconfig that has others, too.
#[derive(Clone)]
pub struct MergedContext {
    pub file: PathBuf,
    pub name: String,
}

/// Certificates that others made.
pub struct Given {
    pub identity: Identity,
    /// The certificates for names of their own.
    pub named: Vec<NamedIdentity>,
    pub trust: Trust,
    pub request_header: RequestHeader,
    /// The origins of web pages that may read answers.
    pub allowed_origins: Arc<AllowedOrigins>,
}

/// What is worth telling before the process ends.
pub struct ServingFailure(pub String);

impl<E: fmt::Display> From<E> for ServingFailure {
    fn from(error: E) -> Self {
        ServingFailure(error.to_string())
    }
}

impl Server {
    /// Serves until it is told to stop. Exit codes: 0 for a clean end, 1 for a failure.
    pub async fn run(self) -> ExitCode {
        let made = self.made.clone();
        match self.logged().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(ServingFailure(message)) => {
                tell(message);
                if let Some(folder) = made {
                    // Nothing in it is worth a second message.
                    _ = fs::remove_dir_all(folder);
                }
                ExitCode::FAILURE
            }
        }
    }

    async fn logged(self) -> Result<(), ServingFailure> {
        let log = Log::begin()?;
        let served = self.serve().await;
        log.flush();
        served
    }

    async fn serve(mut self) -> Result<(), ServingFailure> {
        check_clock()?;
        let signals = stop_requested()?;
        let listener = self.listener().await?;
        let address = listener.local_addr()?;
        let storage = Storage::open(&self.store).await?;
        let papers = self.papers.show(&storage, address).await?;
        self.users.tell_if_open();
        let (authorizer, policy) = self.users.authorizer(&storage, self.runtime_config.minor(), None);
        let url = format!("https://{}", shown(address));
        let issuer = Arc::new(self.users.token_issuer(&storage).await?);
        let definitions = Definitions::new(&self.runtime_config);
        let clock = self.store.clock.clone();
        let registry = Arc::new(self.registry(storage.clone(), definitions, policy, authorizer.clone(), clock));
        let tokens = Arc::new(self.users.tokens(&registry, &issuer)?);
        let begin = Arc::new(Notify::new());
        let controllers = self.controllers(&registry, &papers, &issuer, &begin);
        let mut seed = std::mem::take(&mut self.seed);
        if !seed.is_empty() {
            // They decide on what is registered.
            begin.notify_one();
        }
        let advertised = service_network::advertised(address);
        self.populate(&registry).await?;
        let kept = service_network::keep(&registry, advertised).await;
        if !seed.is_empty() {
            seed.begin(&registry).await?;
        }

        let logs: Arc<[audit::Log]> = std::mem::take(&mut self.logs).into();
        let server = Arc::new(self);
        let (shared, places) = server.shared();
        let main = Origin { registry: Arc::clone(&registry), issuer, authorizer };
        let (app, planes) = server.app(main, (address.ip(), &url), &tokens, (&shared, &places), logs);
        let gate = server.gate(&papers, tokens).with_failed_authentication(app.failed_authentication());
        let router = http::router(app);
        let opened = open_page(server.ui, &router).await?;
        let connections = Connections::among(router, gate.clone(), places);
        papers.write_kubeconfig(&url)?;
        connections.listen(listener, papers.tls.clone());
        if let Some(address) = server.insecure_listen {
            listen_insecure(&connections, address).await?;
        }
        if let Some((path, _)) = &papers.administrator {
            announce(&registry, &url, path).await;
        }
        let pages = opened.map(|opened| serve_page(opened, gate));
        begin.notify_one();
        seed.follow(Arc::clone(&registry))?;
        let deferred = make_deferred(Arc::clone(&registry));

        let signal = signals.await?;
        tracing::info!(signal, "stopping");
        let tasks = [kept, controllers, deferred];
        Served { connections, pages, shared, tasks, planes, registry, storage, advertised }
            .end(server.ends_at_once)
            .await;
        Ok(())
    }

    fn shared(&self) -> (Shared, OpenConnections) {
        // Without an answer there is no runtime, and nothing gets here.
        let beside = threads().map_or(1, |threads| threads.blocking);
        (Shared::among(beside, Arc::clone(&self.store.memory)), OpenConnections::new(connections_max()))
    }

    /// What answers requests, and the further control planes, which share with it what is limited.
    fn app(
        self: &Arc<Self>,
        main: Origin,
        (ip, url): (IpAddr, &str),
        tokens: &Arc<Tokens>,
        (shared, places): (&Shared, &OpenConnections),
        logs: Arc<[audit::Log]>,
    ) -> (App, Arc<Planes>) {
        let (registry, authorizer) = (Arc::clone(&main.registry), Arc::clone(&main.authorizer));
        let issuing = Issuing { issuer: Arc::clone(&main.issuer), key_set_url: format!("{url}/openid/v1/jwks") };
        let planes = Planes::new(Arc::clone(self), ip, main, shared.clone(), places.clone(), Arc::clone(&logs));
        let planes = Arc::new(planes);
        let app = App::with(registry, authorizer, Arc::clone(tokens), self.limits, logs);
        let app = app.with_issuing(issuing).sharing(shared.clone()).with_planes(Arc::clone(&planes) as _);
        (app, planes)
    }

    async fn listener(&self) -> Result<TcpListener, ServingFailure> {
        let failed = |error| ServingFailure(format!("can't listen on {}: {error}", self.listen));
        TcpListener::bind(self.listen).await.map_err(failed)
    }

    fn gate(&self, papers: &Shown, tokens: Arc<Tokens>) -> Gate {
        Gate::new(tokens)
            .with_anonymous(self.users.lets_anonymous_in())
            .with_request_header(papers.request_header.clone())
            .with_allowed_origins(Arc::clone(&papers.allowed_origins))
    }

    fn controllers(
        &self,
        registry: &Arc<Registry>,
        papers: &Shown,
        issuer: &Arc<TokenIssuer>,
        begin: &Arc<Notify>,
    ) -> JoinHandle<()> {
        let authority = controllers::Authority {
            certificate_pem: papers.authority_pem.clone(),
            signer: papers.signer.clone(),
            issuer: Some(Arc::clone(issuer)),
        };
        controllers::start(Arc::clone(registry), self.switches, self.nodes.clone(), authority, Arc::clone(begin))
    }

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

/// The papers, ready to be shown.
struct Shown {
    tls: Tls,
    request_header: RequestHeader,
    allowed_origins: Arc<AllowedOrigins>,
    /// Published in every namespace.
    authority_pem: String,
    /// Who signs with the authority's key, if that is ours.
    signer: Option<Arc<dyn controllers::Sign>>,
    /// Where the kubeconfig is written, and the administrator's certificate in it.
    administrator: Option<(PathBuf, Identity)>,
    merged: Option<MergedContext>,
}

impl Papers {
    async fn show(&self, storage: &Storage, address: SocketAddr) -> Result<Shown, CertificateError> {
        match self {
            Papers::Own { kubeconfig, merged } => {
                let authority = Authority::load(&StoredSecrets(storage.clone())).await?;
                let identity = authority.issue_server(&server_names(address))?;
                let administrator = authority.issue_client(ADMIN, &[UserInfo::MASTERS])?;
                Ok(Shown {
                    tls: Tls::new(Trust::of(&authority)?, &identity)?,
                    request_header: RequestHeader::default(),
                    allowed_origins: Arc::default(),
                    authority_pem: authority.certificate_pem().to_owned(),
                    signer: Some(Arc::new(authority)),
                    administrator: Some((kubeconfig.clone(), administrator)),
                    merged: merged.clone(),
                })
            }
            Papers::Given(given) => Ok(Shown {
                tls: Tls::new(given.trust.clone(), &given.identity)?.with_named(&given.identity, &given.named)?,
                request_header: given.request_header.clone(),
                allowed_origins: Arc::clone(&given.allowed_origins),
                authority_pem: given.identity.certificate_pem.clone(),
                signer: None,
                administrator: None,
                merged: None,
            }),
        }
    }
}

impl Shown {
    fn write_kubeconfig(&self, url: &str) -> Result<(), ServingFailure> {
        let Some((path, identity)) = &self.administrator else { return Ok(()) };
        let kubeconfig = Kubeconfig { server: url, authority_pem: &self.authority_pem, user: ADMIN, identity };
        let failed = |path: &Path, why: String| ServingFailure(format!("can't write `{}`: {why}", path.display()));
        kubeconfig.write(path).map_err(|error| failed(path, error.to_string()))?;
        match &self.merged {
            Some(MergedContext { file, name }) => {
                kubeconfig.merge(file, name).map_err(|error| failed(file, error.to_string()))
            }
            None => Ok(()),
        }
    }
}

/// Says that the server is ready: in a line for programs, in some more for people.
async fn announce(registry: &Registry, url: &str, kubeconfig: &Path) {
    if !io::stdout().is_terminal() {
        _ = output(format!("ready {url}\n"), ExitCode::SUCCESS);
        return;
    }
    let mut text = format!("skiff {} serves the Kubernetes API on {url}\n", env!("CARGO_PKG_VERSION"));
    let resources = registry.resources().await.unwrap_or_default();
    let (custom, built_in): (Vec<_>, Vec<_>) = resources.iter().partition(|resource| resource.definition.is_some());
    let names = |resource: &Arc<Resource>| (resource.first().qualified_plural(), resource.first().api_version());
    let rows: Vec<_> = custom.into_iter().map(names).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, api_version) in rows {
        text.push_str(&format!("  {name:<width$}  {api_version}\n"));
    }
    text.push_str(&format!("  and {} built-in resources\n", built_in.len()));
    // Whichever folder it is pasted in.
    let kubeconfig = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    text.push_str(&format!("\n  export KUBECONFIG={}\n\n", kubeconfig.display()));
    _ = output(text, ExitCode::SUCCESS);
}

/// All that ends with a server.
struct Served {
    connections: Connections<Router>,
    pages: Option<Connections<PlaygroundPage>>,
    shared: Shared,
    tasks: [JoinHandle<()>; 3],
    planes: Arc<Planes>,
    registry: Arc<Registry>,
    storage: Storage,
    advertised: Advertised,
}

impl Served {
    /// Ends it: answers on their way are sent, and nothing more where it is to end at once.
    async fn end(self, at_once: bool) {
        self.shared.processor().stop();
        let drain = at_once.then_some(DRAIN_AT_ONCE);
        let of_pages = async {
            if let Some(pages) = self.pages {
                pages.shut_down(drain).await;
            }
        };
        tokio::join!(self.connections.shut_down(drain), of_pages);
        // A server that is stopped at once may not have made the deferred objects yet: the next one does.
        self.tasks.iter().for_each(JoinHandle::abort);
        if at_once {
            return;
        }
        self.planes.end().await;
        if let Err(status) = self.registry.leave_kubernetes_service(self.advertised).await {
            tracing::warn!(status.message, "this server stays among the endpoints of the service kubernetes");
        }
        self.storage.close().await;
    }
}

fn check_clock() -> Result<(), ServingFailure> {
    if Timestamp::now() < Timestamp::UNIX_EPOCH {
        return Err(ServingFailure("the clock of this machine is before 1970".to_owned()));
    }
    Ok(())
}

async fn listen_insecure(connections: &Connections<Router>, address: SocketAddr) -> Result<(), ServingFailure> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    tell(format_args!("plain HTTP on http://{address} gives admin rights to every local process"));
    connections.listen_insecure(listener);
    Ok(())
}

async fn open_page(wanted: Option<PageRequest>, api: &Router) -> Result<Option<Opened>, ServingFailure> {
    match wanted {
        Some(wanted) => Ok(Some(Opened::new(wanted, api.clone()).await?)),
        None => Ok(None),
    }
}

/// Makes the objects that need not be there at the start: requests for them wait.
fn make_deferred(registry: Arc<Registry>) -> JoinHandle<()> {
    tokio::spawn(async move { registry.make_deferred_objects().await })
}

/// Serves a page, and says where.
fn serve_page(opened: Opened, gate: Gate) -> Connections<PlaygroundPage> {
    opened.announce();
    let pages = Connections::new(opened.page, gate, CONNECTIONS_MAX);
    pages.listen_insecure(opened.listener);
    pages
}

/// The address as clients reach it: one that stands for all addresses is reached on this machine.
pub fn shown(address: SocketAddr) -> String {
    if address.ip().is_unspecified() { format!("127.0.0.1:{}", address.port()) } else { address.to_string() }
}

/// The names that the server's certificate is for.
pub fn server_names(address: SocketAddr) -> Vec<String> {
    let mut names: Vec<String> = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "127.0.0.1",
        "::1",
    ]
    .map(str::to_owned)
    .into();
    if !address.ip().is_unspecified() && !address.ip().is_loopback() {
        names.push(address.ip().to_string());
    }
    if let Ok(host) = fs::read_to_string("/etc/hostname") {
        names.extend(Some(host.trim().to_owned()).filter(|host| !host.is_empty()));
    }
    names
}

/// Secrets in the database that every process on it shares.
pub struct StoredSecrets(pub Storage);

#[async_trait]
impl Secrets for StoredSecrets {
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, SecretsError> {
        Ok(self.0.read_secret(name).await?)
    }

    async fn insert_if_absent(&self, name: &str, candidate: Vec<u8>) -> Result<Vec<u8>, SecretsError> {
        Ok(self.0.insert_secret(name, &candidate).await?)
    }
}
