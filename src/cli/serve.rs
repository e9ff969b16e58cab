//! `skiff serve`: the API server.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use async_trait::async_trait;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::admission::Admission;
use super::database::Database;
use super::definitions::{each, is_definition};
use super::documents;
use super::log::Log;
use super::print::{output, tell};
use super::service_network::{self, Network};
use super::users::Users;
use crate::audit;
use crate::auth::{Authorizer, UserInfo};
use crate::controllers::{self, Switches};
use crate::http::{self, App, Issuing, Limits};
use crate::kinds::runtime_config::RuntimeConfig;
use crate::memory::{Memory, parse_bytes};
use crate::meta::Status;
use crate::registry::{Advertised, BuiltIn, Converter, Definitions, Registry, Resource, StoredPolicy};
use crate::server::{
    Authority, Connections, Gate, Kubeconfig, Secrets, SecretsError, Tls, connections_max, stop_requested,
};
use crate::store::{Config, Durability, Storage};

/// The user in the kubeconfig.
const ADMIN: &str = "skiff-admin";

/// Serve the Kubernetes API for CustomResourceDefinitions and their objects
///
/// Starts an API server with TLS, writes a kubeconfig for it, and says when it is ready.
#[derive(Args)]
#[command(
    after_help = "Example:\n  skiff serve --crds crd-examples\n  export KUBECONFIG=.skiff/kubeconfig\n  kubectl api-resources"
)]
pub struct Serve {
    #[command(flatten)]
    database: Database,

    /// Address and port to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,

    /// Also serve plain HTTP on this loopback address: every local process then has admin rights
    #[arg(long, value_name = "ADDR:PORT")]
    insecure_listen: Option<SocketAddr>,

    /// The kubeconfig to write [default: kubeconfig in the data folder]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Files or folders with CustomResourceDefinitions to register before the server is ready
    #[arg(long, value_name = "PATH")]
    crds: Vec<PathBuf>,

    /// When a write counts as done: once it is on disk, or once the operating system has it
    #[arg(long, value_enum, default_value_t = DurabilityArg::Full)]
    durability: DurabilityArg,
    /// Which versions of built-in kinds are served, beside the stable ones: `api/beta=true`, `api/alpha=true`, `GROUP/VERSION=false`.
    #[arg(long, value_name = "GROUP/VERSION=true|false,...", value_parser = RuntimeConfig::parse, default_value = "", hide_default_value = true)]
    runtime_config: RuntimeConfig,

    #[command(flatten)]
    admission: Admission,

    #[command(flatten)]
    users: Users,

    /// Controllers to run, by kube-controller-manager's names: * for all, NAME, -NAME for all but that
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "*", allow_hyphen_values = true)]
    controllers: Vec<String>,

    /// Where to write a line of audit.k8s.io/v1 JSON for each request; - is standard output
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,

    /// How many requests that change nothing may be at work at once, watches apart; 0 for any number
    #[arg(long, value_name = "N", default_value_t = Limits::default().read_only)]
    max_requests_inflight: usize,

    /// How many requests that change something may be at work at once; 0 for any number
    #[arg(long, value_name = "N", default_value_t = Limits::default().mutating)]
    max_mutating_requests_inflight: usize,

    /// How many seconds a request may take, watches apart
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().request_timeout.as_secs())]
    request_timeout: u64,

    #[command(flatten)]
    network: Network,

    /// How much memory the server may use, as in 512Mi: near it, requests wait and are then refused, and objects are read
    /// from the database again [default: what the system gives the process]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory_limit: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DurabilityArg {
    Full,
    Relaxed,
}

/// What is worth telling before the process ends.
struct Failure(String);

impl<E: fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(error.to_string())
    }
}

impl Serve {
    /// Serves until it is told to stop. Exit codes: 0 for a clean end, 1 for a failure, 2 for wrong use.
    pub async fn run(self) -> ExitCode {
        if let Some(fault) = self.admission.fault() {
            tell(fault);
            return ExitCode::from(2);
        }
        if self.insecure_listen.is_some_and(|address| !address.ip().is_loopback()) {
            tell("--insecure-listen takes a loopback address, as every process that reaches it has admin rights");
            return ExitCode::from(2);
        }
        let switches = match Switches::parse(&self.controllers) {
            Ok(switches) => switches,
            Err(unknown) => {
                tell(unknown);
                return ExitCode::from(2);
            }
        };
        match self.logged(switches).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(Failure(message)) => {
                tell(message);
                ExitCode::FAILURE
            }
        }
    }

    async fn logged(self, switches: Switches) -> Result<(), Failure> {
        let log = Log::begin()?;
        let served = self.serve(switches).await;
        log.flush();
        served
    }

    async fn serve(self, switches: Switches) -> Result<(), Failure> {
        if Timestamp::now() < Timestamp::UNIX_EPOCH {
            return Err(Failure("the clock of this machine is before 1970".to_owned()));
        }
        let signals = stop_requested()?;
        let listener = TcpListener::bind(self.listen)
            .await
            .map_err(|error| Failure(format!("can't listen on {}: {error}", self.listen)))?;
        let address = listener.local_addr()?;
        fs::create_dir_all(&self.database.data_dir).map_err(|error| {
            Failure(format!("can't make the folder `{}`: {error}", self.database.data_dir.display()))
        })?;
        let config = self.config();
        let storage = Storage::open(&config).await?;
        let authority = Authority::load(&StoredSecrets(storage.clone())).await?;
        let (authorizer, policy) = self.users.authorizer(&storage);
        let url = format!("https://{}", shown(address));
        let issuer = Arc::new(self.users.token_issuer(&storage).await?);
        let tokens = Arc::new(self.users.tokens(&storage, &issuer)?);
        let issuing = Issuing { issuer, key_set_url: format!("{url}/openid/v1/jwks") };
        let registry = Arc::new(self.registry(storage.clone(), policy, authorizer.clone(), config.memory));
        let begin = Arc::new(Notify::new());
        let authority_pem = authority.certificate_pem().to_owned();
        let controllers = controllers::start(Arc::clone(&registry), switches, authority_pem, Arc::clone(&begin));
        if !self.crds.is_empty() {
            // They decide on what is registered.
            begin.notify_one();
        }
        let advertised = service_network::advertised(address);
        let kept = self.populate(&registry, switches, advertised).await?;

        let audit = match &self.audit_log_path {
            Some(path) => Some(
                audit::Log::open(path)
                    .map_err(|error| Failure(format!("can't write the audit log `{}`: {error}", path.display())))?,
            ),
            None => None,
        };
        let app = App::with(Arc::clone(&registry), authorizer, Arc::clone(&tokens), self.limits(), audit);
        let app = app.with_issuing(issuing);
        let processor = app.processor();
        let connections = Connections::new(http::router(app), Gate::new(tokens), connections_max());
        let tls = Tls::new(&authority, &authority.issue_server(&server_names(address))?)?;
        let kubeconfig = self.kubeconfig.clone().unwrap_or_else(|| self.database.data_dir.join("kubeconfig"));
        let identity = authority.issue_client(ADMIN, &[UserInfo::MASTERS])?;
        Kubeconfig { server: &url, authority_pem: authority.certificate_pem(), user: ADMIN, identity: &identity }
            .write(&kubeconfig)
            .map_err(|error| Failure(format!("can't write `{}`: {error}", kubeconfig.display())))?;
        connections.listen(listener, tls);
        if let Some(address) = self.insecure_listen {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            tell(format_args!("plain HTTP on http://{address} gives admin rights to every local process"));
            connections.listen_insecure(listener);
        }
        self.announce(&registry, &url, &kubeconfig).await;
        begin.notify_one();

        let signal = signals.await?;
        tracing::info!(signal, "stopping");
        processor.stop();
        connections.shut_down().await;
        kept.abort();
        if let Err(status) = registry.leave_kubernetes_service(advertised).await {
            tracing::warn!(status.message, "this server stays among the endpoints of the service kubernetes");
        }
        controllers.abort();
        storage.close().await;
        Ok(())
    }

    fn limits(&self) -> Limits {
        Limits {
            read_only: self.max_requests_inflight,
            mutating: self.max_mutating_requests_inflight,
            request_timeout: Duration::from_secs(self.request_timeout.max(1)),
        }
    }

    fn config(&self) -> Config {
        let durability = match self.durability {
            DurabilityArg::Full => Durability::Full,
            DurabilityArg::Relaxed => Durability::Relaxed,
        };
        let config = self.database.config();
        match self.memory_limit {
            Some(bytes) => Config { durability, memory: Arc::new(Memory::new(bytes)), ..config },
            None => Config { durability, ..config },
        }
    }

    fn registry(
        &self,
        storage: Storage,
        policy: Option<Arc<StoredPolicy>>,
        authorizer: Arc<dyn Authorizer>,
        memory: Arc<Memory>,
    ) -> Registry {
        let client = self.admission.client();
        let chain = self.admission.chain(&storage, authorizer, &client);
        let guards_namespaces = self.admission.guards_namespaces();
        Registry {
            storage,
            definitions: Definitions::new(BuiltIn::all(&self.runtime_config)),
            admission: Arc::new(chain),
            convert: Arc::new(Converter(client)),
            policy,
            clock: Arc::new(Timestamp::now),
            memory,
            guards_namespaces,
            network: self.network.network(),
        }
    }

    /// Makes the first namespaces and, where they count, the default roles, and the service `kubernetes`, which the returned
    /// task looks after; registers the definitions of `--crds`, and waits until they are served: a client may use them as soon
    /// as the server is ready.
    async fn populate(
        &self,
        registry: &Arc<Registry>,
        switches: Switches,
        advertised: Advertised,
    ) -> Result<JoinHandle<()>, Failure> {
        let refused = |what: &str, status: Status| Failure(format!("{what}: {}", status.message));
        // Together, so that they are on disk at the cost of one.
        tokio::try_join!(
            registry.make_initial_namespaces(),
            registry.make_initial_priority_classes(),
            registry.make_initial_objects()
        )
        .map_err(|status| refused("the first objects can't be made", status))?;
        if registry.policy.is_some() {
            let reconciled = registry.reconcile_default_roles().await;
            reconciled.map_err(|status| refused("the default roles can't be made", status))?;
            if switches.aggregation {
                let gathered = controllers::aggregate_roles(registry).await;
                gathered.map_err(|status| refused("the default roles can't be gathered", status))?;
            }
        }
        let kept = service_network::keep(registry, advertised).await;
        if self.crds.is_empty() {
            return Ok(kept);
        }
        let (mut registered, mut others) = (Vec::new(), 0);
        for (source, document) in each(&documents::read(&self.crds)?) {
            if !is_definition(&document.value) {
                others += 1;
                continue;
            }
            let name = document.value.str_at(&["metadata", "name"]).to_owned();
            let done = registry.register(document.value.clone()).await;
            done.map_err(|status| refused(&format!("`{}`: {name}", source.name), status))?;
            registered.push(name);
        }
        for name in &registered {
            let served = registry.wait_until_served(name).await;
            if let Some(why) = served.map_err(|status| refused(name, status))? {
                tell(format_args!("`{name}` is not served: {why}"));
            }
        }
        let count = registered.len();
        tell(format_args!("registered {count} CustomResourceDefinitions; {others} other documents left alone"));
        Ok(kept)
    }

    /// Says that the server is ready: in a line for programs, in some more for people.
    async fn announce(&self, registry: &Registry, url: &str, kubeconfig: &std::path::Path) {
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
        text.push_str(&format!("\n  export KUBECONFIG={}\n\n", kubeconfig.display()));
        _ = output(text, ExitCode::SUCCESS);
    }
}

/// The address as clients reach it: one that stands for all addresses is reached on this machine.
fn shown(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("127.0.0.1:{}", address.port()),
        false => address.to_string(),
    }
}

/// The names that the server's certificate is for.
fn server_names(address: SocketAddr) -> Vec<String> {
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
struct StoredSecrets(Storage);

#[async_trait]
impl Secrets for StoredSecrets {
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, SecretsError> {
        Ok(self.0.read_secret(name).await?)
    }

    async fn insert_if_absent(&self, name: &str, candidate: Vec<u8>) -> Result<Vec<u8>, SecretsError> {
        Ok(self.0.insert_secret(name, &candidate).await?)
    }
}
