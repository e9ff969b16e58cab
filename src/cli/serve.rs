//! `skiff serve`: the API server.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, io};

use clap::{Args, ValueEnum};

use super::admission::{Admission, SERVICE_ACCOUNT};
use super::credentials::{Credentials, MergedContext};
use super::database::Database;
use super::print::tell;
use super::seed::Seed;
use super::server::Server;
use super::service_network::Network;
use super::serving_failure::ServingFailure;
use super::temporary::Temporary;
use super::ui::Ui;
use super::users::Users;
use super::workloads::Workloads;
use crate::audit;
use crate::controllers::{NodePlan, Switches};
use crate::http::Limits;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::memory::{Memory, parse_bytes};
use crate::meta::gate::Gates;
use crate::meta::minor::{Minor, MinorError};
use crate::registry::{Lifetimes, required_collections};
use crate::store::{Config, Durability};

/// Serve the Kubernetes API for CustomResourceDefinitions and their objects
///
/// Starts an API server with TLS, writes a kubeconfig for it, and says when it is ready.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff serve --crds crd-examples\n  export KUBECONFIG=$PWD/.skiff/kubeconfig\n  kubectl api-resources\n\n  \
                  skiff serve --crds config/crd --crds config/samples --watch --merge-kubeconfig"
)]
pub struct Serve {
    #[command(flatten)]
    database: Database,

    /// Address or host, and port to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6443", value_parser = address)]
    listen: SocketAddr,

    /// Also serve plain HTTP on this loopback address: every local process then has admin rights
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    insecure_listen: Option<SocketAddr>,

    /// The kubeconfig to write [default: kubeconfig in the data folder]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Also add a context to the kubeconfig that kubectl uses ($KUBECONFIG, or ~/.kube/config), and make it the current one
    #[arg(long, value_name = "CONTEXT", num_args = 0..=1, require_equals = true, default_missing_value = "skiff")]
    merge_kubeconfig: Option<String>,

    /// End with the process that started this one, and leave no data folder behind: it is made anew, and removed at the end. With
    /// its number, also where that process ends before this one has begun to watch it
    #[arg(long, value_name = "PID", num_args = 0..=1, require_equals = true, conflicts_with = "merge_kubeconfig")]
    temporary: Option<Option<NonZeroU32>>,

    /// Files or folders with CustomResourceDefinitions, and objects, to apply before the server is ready; examples of suites
    /// (valid/ and invalid/ beside a crd.yaml) are left out
    #[arg(long, value_name = "PATH")]
    crds: Vec<PathBuf>,

    /// Apply what changes in these files, too, as long as the server runs
    #[arg(long, requires = "crds")]
    watch: bool,

    /// When a write counts as done: once it is on disk, or once the operating system has it
    #[arg(long, value_enum, default_value_t = DurabilityArg::Full)]
    durability: DurabilityArg,
    /// Which versions of built-in kinds are served, beside the stable ones: `api/beta=true`, `api/alpha=true`, `GROUP/VERSION=false`.
    #[arg(long, value_name = "GROUP/VERSION=true|false,...", value_parser = RuntimeConfig::parse, default_value = "", hide_default_value = true)]
    runtime_config: RuntimeConfig,

    /// Speak for an older Kubernetes, from 1.29 on: its versions of built-in kinds, its rules for definitions, its /version
    #[arg(long, value_name = "[kube=]MINOR", value_parser = emulated, default_value_t)]
    emulated_version: Minor,

    /// Feature gates of kube-apiserver to open or to close; those that mean nothing here are taken
    #[arg(long, value_name = "GATE=true|false,...", default_value = "", hide_default_value = true)]
    feature_gates: String,

    #[command(flatten)]
    admission: Admission,

    #[command(flatten)]
    users: Users,

    #[command(flatten)]
    workloads: Workloads,

    #[command(flatten)]
    ui: Ui,

    /// Where to write a line of audit.k8s.io/v1 JSON for each request; - is standard output
    #[arg(long, value_name = "FILE")]
    audit_log_path: Option<PathBuf>,

    /// Which requests the audit log has, and how much of them: an audit.k8s.io/v1 Policy [default: every request, at level
    /// Metadata]
    #[arg(long, value_name = "FILE", requires = "audit_log_path")]
    audit_policy_file: Option<PathBuf>,

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

/// Why a version can't be emulated.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EmulatedError {
    /// It is the version of a component other than kube-apiserver.
    #[error("component not registered: {0}")]
    Component(String),
    /// The minor version is invalid or not supported.
    #[error(transparent)]
    Minor(#[from] MinorError),
}

/// Parses `1.34` or `kube=1.34`, as in kube-apiserver's `--emulated-version`.
///
/// # Errors
///
/// Another component, or a version that can't be emulated.
pub fn emulated(text: &str) -> Result<Minor, EmulatedError> {
    match text.split_once('=') {
        None => Ok(Minor::parse(text)?),
        Some(("kube", minor)) => Ok(Minor::parse(minor)?),
        Some((component, _)) => Err(EmulatedError::Component(component.to_owned())),
    }
}

impl Serve {
    /// Serves until it is told to stop. Exit codes: 0 for a clean end, 1 for a failure, 2 for wrong
    /// use.
    pub async fn run(mut self) -> ExitCode {
        if self.workloads.is_cluster() {
            self.admission.switch_on(SERVICE_ACCOUNT);
        }
        if let Some(fault) = self.ui.fault() {
            tell(fault);
            return ExitCode::from(2);
        }
        if self.insecure_listen.is_some_and(|address| !address.ip().is_loopback()) {
            tell("--insecure-listen takes a loopback address, as every process that reaches it has admin rights");
            return ExitCode::from(2);
        }
        match Gates::parse(&self.feature_gates, self.emulated_version) {
            Ok(gates) => self.emulated_version = self.emulated_version.with_gates(gates),
            Err(fault) => {
                tell(fault);
                return ExitCode::from(2);
            }
        }
        if let Err(fault) = self.admission.settle(self.emulated_version) {
            tell(fault);
            return ExitCode::from(2);
        }
        let switches = match self.workloads.switches() {
            Ok(switches) => switches,
            Err(unknown) => {
                tell(unknown);
                return ExitCode::from(2);
            }
        };
        let nodes = match self.workloads.stages() {
            Ok(stages) => NodePlan { stages, ..self.workloads.nodes() },
            Err(why) => {
                tell(why);
                return ExitCode::from(2);
            }
        };
        // Held until the server has ended.
        let _temporary =
            match self.temporary.map(|parent| Temporary::begin(&self.database.data_dir, parent)).transpose() {
                Ok(temporary) => temporary,
                Err(error) => {
                    tell(format_args!("can't make the folder `{}`: {error}", self.database.data_dir.display()));
                    return ExitCode::FAILURE;
                }
            };
        match self.server(switches, nodes) {
            Ok(server) => server.run().await,
            Err(ServingFailure(message)) => {
                tell(message);
                ExitCode::FAILURE
            }
        }
    }

    fn audit_logs(&self) -> Result<Vec<audit::Log>, ServingFailure> {
        let Some(path) = &self.audit_log_path else { return Ok(Vec::new()) };
        let opened = audit::Log::open(path);
        let log = opened
            .map_err(|error| ServingFailure(format!("can't write the audit log `{}`: {error}", path.display())))?;
        let policy = self.audit_policy_file.as_deref().map(audit::Policy::read).transpose();
        let policy = policy.map_err(|error| ServingFailure(error.to_string()))?;
        Ok(vec![match policy {
            Some(policy) => log.of(policy),
            None => log,
        }])
    }

    /// Builds the server from the arguments, and creates the data folder.
    fn server(self, switches: Switches, nodes: NodePlan) -> Result<Server, ServingFailure> {
        let folder = &self.database.data_dir;
        let made = folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).last();
        let made = made.map(Path::to_owned);
        let merged = self.merge_kubeconfig.clone().map(merged).transpose()?;
        fs::create_dir_all(folder)
            .map_err(|error| ServingFailure(format!("can't make the folder `{}`: {error}", folder.display())))?;
        let kubeconfig = self.kubeconfig.clone().unwrap_or_else(|| folder.join("kubeconfig"));
        let logs = self.audit_logs().inspect_err(|_| {
            // A failed start leaves no folder behind.
            _ = made.as_deref().map(fs::remove_dir_all);
        })?;
        Ok(Server {
            listen: self.listen,
            insecure_listen: self.insecure_listen,
            ui: self.ui.wanted(),
            store: self.config(),
            credentials: Credentials::Own { kubeconfig, merged },
            limits: self.limits(),
            background: Default::default(),
            seed: Seed::new(self.crds, self.watch),
            made,
            runtime_config: self.runtime_config.for_minor(self.emulated_version),
            admission: self.admission,
            users: self.users,
            network: self.network,
            lifetimes: Lifetimes::default(),
            switches,
            nodes,
            logs: logs.into_iter().chain(traced()).collect(),
            ends_at_once: self.temporary.is_some(),
        })
    }

    fn limits(&self) -> Limits {
        Limits {
            read_only: self.max_requests_inflight,
            mutating: self.max_mutating_requests_inflight,
            request_timeout: Duration::from_secs(self.request_timeout.max(1)),
            ..Limits::default()
        }
    }

    fn config(&self) -> Config {
        let durability = match self.durability {
            DurabilityArg::Full => Durability::Full,
            DurabilityArg::Relaxed => Durability::Relaxed,
        };
        let config = self.database.config();
        let memory = self.memory_limit.map_or(config.memory, |bytes| Arc::new(Memory::new(bytes)));
        Config { durability, memory, required: required_collections().into(), ..config }
    }
}

/// Parses `ADDR:PORT`, or `HOST:PORT`, which is resolved to its first address, preferably IPv4.
fn address(text: &str) -> Result<SocketAddr, AddressError> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let mut found: Vec<SocketAddr> = text.to_socket_addrs()?.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| AddressError::Absent(text.to_owned()))
}

/// Why a text is not an address to listen on.
#[derive(Debug, thiserror::Error)]
enum AddressError {
    #[error("{0}; expected ADDR:PORT or HOST:PORT")]
    Unknown(#[from] io::Error),
    #[error("`{0}` has no address")]
    Absent(String),
}

/// The context `name` in the file that kubectl would write: of several files in $KUBECONFIG the
/// first that exists, or else the last.
fn merged(name: String) -> Result<MergedContext, ServingFailure> {
    let listed = env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
    let listed: Vec<PathBuf> =
        listed.iter().flat_map(env::split_paths).filter(|path| !path.as_os_str().is_empty()).collect();
    let file = listed.iter().find(|path| path.exists()).or_else(|| listed.last()).cloned();
    let home = || env::home_dir().map(|home| home.join(".kube/config"));
    let file = file.or_else(home).ok_or_else(|| ServingFailure("there is no $KUBECONFIG and no $HOME".to_owned()))?;
    Ok(MergedContext { file, name })
}

/// A log with one line per request on standard error, if `SKIFF_TRACE=requests` is set.
pub fn traced() -> Option<audit::Log> {
    let wanted = env::var("SKIFF_TRACE").unwrap_or_default();
    wanted.split(',').any(|word| word == "requests").then(|| audit::Log::brief(io::stderr()))
}
