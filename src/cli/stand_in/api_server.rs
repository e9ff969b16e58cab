//! The stand-in for kube-apiserver: its flags, and the server that they configure.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use super::super::admission::{Admission, AdmissionError, SERVICE_ACCOUNT};
use super::super::credentials::Credentials;
use super::super::parent::end_with_parent;
use super::super::print::{note, output};
use super::super::seed::Seed;
use super::super::serve::traced;
use super::super::server::Server;
use super::super::service_network::Network;
use super::super::users::Users;
use super::audit_log::{AuditLogError, audit_log};
use super::authorization::{AuthorizationError, authorization_modes};
use super::credentials::{CredentialsError, credentials};
use super::flags::{FlagError, Flags, Manner, Table};
use super::store::{self, FindError};
use super::values::{self, RefusedValues};
use super::versions::{self, VersionError};
use crate::controllers::{NodePlan, Profile, Switches, UnknownController};
use crate::http::{Limits, version_of};
use crate::kinds::runtime_config::{RuntimeConfig, RuntimeConfigError};
use crate::memory::Memory;
use crate::meta::feature_gates::GateError;
use crate::meta::gate::Gates;
use crate::meta::minor::Minor;
use crate::registry::{Lifetimes, ServiceRangesError};
use crate::store::{Config, Durability, Location};

const DEFAULT_PORT: u16 = 6443;
const DEFAULT_SERVICE_RANGE: &str = "10.0.0.0/24";
const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const TOKEN_LIFETIME: &str = "service-account-max-token-expiration";
/// The allowed range of the flag, unless it is 0.
const TOKEN_LIFETIMES: RangeInclusive<Duration> = Duration::from_secs(60 * 60)..=Duration::from_secs(1 << 32);
/// The environment variable that names the controllers to run; kube-apiserver has none.
const CONTROLLERS: &str = "SKIFF_CONTROLLERS";
/// How long the answer of a write comes after its events. Timers count whole milliseconds, so that it takes 1.2 ms, and the
/// write as long as on kube-apiserver.
const ANSWER_DELAY: Duration = Duration::from_micros(150);
/// From this verbosity on, ignored flags are reported.
const TELLING_VERBOSITY: u64 = 2;

/// The flags that have an effect on this server.
const ACTING: [&str; 58] = [
    "admission-control",
    "admission-control-config-file",
    "anonymous-auth",
    "api-audiences",
    "audit-log-compress",
    "audit-log-format",
    "audit-log-maxage",
    "audit-log-maxbackup",
    "audit-log-maxsize",
    "audit-log-path",
    "audit-policy-file",
    "authorization-config",
    "authorization-mode",
    "authorization-policy-file",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "authorization-webhook-config-file",
    "authorization-webhook-version",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "cors-allowed-origins",
    "default-not-ready-toleration-seconds",
    "default-unreachable-toleration-seconds",
    "disable-admission-plugins",
    "enable-admission-plugins",
    "etcd-cafile",
    "etcd-prefix",
    "etcd-servers",
    "event-ttl",
    "feature-gates",
    "help",
    "max-mutating-requests-inflight",
    "max-requests-inflight",
    "request-timeout",
    "requestheader-allowed-names",
    "requestheader-client-ca-file",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    "requestheader-uid-headers",
    "requestheader-username-headers",
    "runtime-config",
    "secure-port",
    "service-account-extend-token-expiration",
    "service-account-issuer",
    "service-account-key-file",
    "service-account-max-token-expiration",
    "service-account-signing-key-file",
    "service-cluster-ip-range",
    "service-node-port-range",
    "tls-cert-file",
    "tls-private-key-file",
    "tls-sni-cert-key",
    "token-auth-file",
    "v",
    "version",
    "emulated-version",
    // Not reported as ignored: privileged pods are accepted, whatever the flag says.
    "allow-privileged",
];

/// Runs as kube-apiserver does with these arguments.
pub async fn run(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let started = start(arguments).await;
    started.unwrap_or_else(|error| {
        note(format_args!("Error: {error}"));
        ExitCode::FAILURE
    })
}

async fn start(arguments: impl IntoIterator<Item = String>) -> Result<ExitCode, StartError> {
    let table = Table::new(Manner::Pflag, include_str!("../../../schemas/kube-apiserver-flags.txt"));
    let flags = table.parse(arguments)?;
    if flags.truth("help") == Some(true) {
        return Ok(output(help(&table), ExitCode::SUCCESS));
    }
    if flags.truth("version") == Some(true) {
        return Ok(output(told_version(env::current_exe().ok().as_deref()), ExitCode::SUCCESS));
    }
    if !flags.arguments.is_empty() {
        return Err(StartError::Arguments(flags.arguments));
    }
    tell_unused(&flags);
    end_with_parent(None)?;
    Ok(server(&flags).await?.run().await)
}

/// The output of `--version`, for the minor version that the program's folder names.
fn told_version(program: Option<&Path>) -> String {
    let version = version_of(folder_minor(program));
    format!("Kubernetes {}\n", version.split('+').next().unwrap_or_default())
}

fn help(table: &Table) -> String {
    let mut text = concat!(
        "skiff ",
        env!("CARGO_PKG_VERSION"),
        " in place of a Kubernetes API server. Every flag of kube-apiserver 1.30 to 1.37 is taken;\n",
        "at -v=2 those are named that mean nothing here.\n\nUsage:\n  kube-apiserver [flags]\n\nFlags:\n\n"
    )
    .to_owned();
    table.names().for_each(|name| text.push_str(&format!("      --{name}\n")));
    text
}

/// Why the server does not start, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Flag(#[from] FlagError),
    #[error("\"kube-apiserver\" does not take any arguments, got [{}]", quoted(.0))]
    Arguments(Vec<String>),
    #[error(transparent)]
    Parent(#[from] io::Error),
    #[error(transparent)]
    Version(#[from] VersionError),
    #[error(transparent)]
    Gate(#[from] GateError),
    #[error(transparent)]
    RuntimeConfig(#[from] RuntimeConfigError),
    #[error(transparent)]
    Values(#[from] RefusedValues),
    #[error("--secure-port {0} must be between 1 and 65535, inclusive. It cannot be turned off with 0")]
    Port(i64),
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    #[error("the {TOKEN_LIFETIME} must be between 1 hour and 2^32 seconds")]
    TokenLifetime,
    #[error(transparent)]
    ServiceRanges(#[from] ServiceRangesError),
    #[error(transparent)]
    Store(#[from] FindError),
    #[error("{CONTROLLERS}: {0}")]
    Controllers(#[from] UnknownController),
    #[error(transparent)]
    AuditLog(#[from] AuditLogError),
}

fn quoted(arguments: &[String]) -> String {
    let quoted: Vec<_> = arguments.iter().map(|text| format!("{text:?}")).collect();
    quoted.join(" ")
}

fn tell_unused(flags: &Flags) {
    let unused: Vec<_> = flags.names().filter(|name| !ACTING.contains(name)).map(|name| format!("--{name}")).collect();
    if flags.level("v").unwrap_or_default() >= TELLING_VERBOSITY && !unused.is_empty() {
        note(format_args!("skiff: flags that mean nothing here: {}", unused.join(" ")));
    }
}

/// Builds the server that the flags configure.
async fn server(flags: &Flags) -> Result<Server, StartError> {
    let runtime_config = runtime_config(flags)?;
    values::check(flags, runtime_config.minor())?;
    let listen = listen(flags)?;
    let memory = Arc::new(Memory::of_system());
    let users = users(flags, runtime_config.minor(), &memory)?;
    let credentials = credentials(flags, listen)?;
    let admission = admission(flags, runtime_config.minor())?;
    let (lifetimes, network) = (lifetimes(flags)?, network(flags)?);
    let store = store::find(&flags.list("etcd-servers"), flags.text("etcd-cafile")).await?;
    let store = store::of_prefix(store, flags.text("etcd-prefix"));
    Ok(Server {
        listen,
        insecure_listen: None,
        ui: None,
        store: Config { durability: Durability::Unsynced, memory, ..Config::new(Location::Shared(store)) },
        credentials: Credentials::Given(Box::new(credentials)),
        seed: Seed::default(),
        made: None,
        runtime_config,
        admission,
        users,
        network,
        lifetimes,
        switches: switches(&env::var(CONTROLLERS).unwrap_or_default())?,
        nodes: NodePlan::default(),
        logs: audit_log(flags)?.into_iter().chain(traced()).collect(),
        limits: limits(flags),
        background: Default::default(),
        ends_at_once: true,
    })
}

fn listen(flags: &Flags) -> Result<SocketAddr, StartError> {
    let address = flags.address("bind-address").unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let port = flags.number("secure-port").unwrap_or(DEFAULT_PORT.into());
    match u16::try_from(port) {
        Ok(port) if port > 0 => Ok(SocketAddr::new(address, port)),
        _ => Err(StartError::Port(port)),
    }
}

fn admission(flags: &Flags, minor: Minor) -> Result<Admission, StartError> {
    let mut enabled = flags.list("enable-admission-plugins");
    enabled.extend(flags.list("admission-control"));
    let disabled = flags.list("disable-admission-plugins");
    // Enabled unless someone disables it, as envtest does.
    if ![&enabled, &disabled].iter().any(|names| names.iter().any(|name| name == SERVICE_ACCOUNT)) {
        enabled.push(SERVICE_ACCOUNT.to_owned());
    }
    let file = flags.text("admission-control-config-file").map(PathBuf::from);
    let mut admission = Admission::new(enabled, disabled, file, minor)?;
    if let Some(seconds) = flags.number("default-not-ready-toleration-seconds") {
        admission.default_not_ready_toleration_seconds = seconds;
    }
    if let Some(seconds) = flags.number("default-unreachable-toleration-seconds") {
        admission.default_unreachable_toleration_seconds = seconds;
    }
    Ok(admission)
}

fn users(flags: &Flags, minor: Minor, memory: &Arc<Memory>) -> Result<Users, StartError> {
    let paths = |name: &str| flags.texts(name).into_iter().map(PathBuf::from).collect();
    let mut issuers = flags.texts("service-account-issuer");
    if issuers.is_empty() {
        issuers.push(DEFAULT_ISSUER.to_owned());
    }
    let authorization_figures = Arc::default();
    Ok(Users {
        authorization_mode: authorization_modes(flags, minor, (&authorization_figures, memory))?,
        authorization_figures,
        anonymous_auth: flags.truth("anonymous-auth").unwrap_or(true),
        token_auth_file: flags.text("token-auth-file").map(PathBuf::from),
        service_account_issuer: issuers,
        service_account_signing_key_file: flags.text("service-account-signing-key-file").map(PathBuf::from),
        service_account_key_file: paths("service-account-key-file"),
        api_audiences: flags.list("api-audiences"),
    })
}

/// The minor version in a folder's name in the form of setup-envtest: `k8s/1.36.2-linux-amd64`.
fn folder_minor(program: Option<&Path>) -> Minor {
    let folder = program.and_then(Path::parent).and_then(Path::file_name).and_then(|name| name.to_str());
    let version = folder.and_then(|name| name.split('-').next());
    version.and_then(|version| Minor::parse(version).ok()).unwrap_or_default()
}

fn runtime_config(flags: &Flags) -> Result<RuntimeConfig, StartError> {
    let emulated_version = versions::emulated(flags)?;
    let emulated_version = emulated_version.unwrap_or_else(|| folder_minor(env::current_exe().ok().as_deref()));
    versions::check_compatible(flags, emulated_version)?;
    let gates = Gates::parse(&flags.list("feature-gates").join(","), emulated_version)?;
    let emulated_version = emulated_version.with_gates(gates);
    let config = RuntimeConfig::parse(&flags.list("runtime-config").join(","))?;
    Ok(config.for_minor(emulated_version))
}

fn network(flags: &Flags) -> Result<Network, StartError> {
    // The flag has one value: the last one counts.
    let ranges = flags.text("service-cluster-ip-range").unwrap_or(DEFAULT_SERVICE_RANGE);
    let ports = flags.text("service-node-port-range").and_then(|text| text.parse().ok());
    Ok(Network { service_cluster_ip_range: ranges.parse()?, service_node_port_range: ports.unwrap_or_default() })
}

fn lifetimes(flags: &Flags) -> Result<Lifetimes, StartError> {
    let token_max = flags.duration(TOKEN_LIFETIME).filter(|given| !given.is_zero());
    if flags.is_negative(TOKEN_LIFETIME) || token_max.is_some_and(|given| !TOKEN_LIFETIMES.contains(&given)) {
        return Err(StartError::TokenLifetime);
    }
    Ok(Lifetimes {
        event: flags.duration("event-ttl"),
        token_max,
        extends_tokens: flags.truth("service-account-extend-token-expiration").unwrap_or(true),
    })
}

/// The controllers that are named; none by default.
fn switches(names: &str) -> Result<Switches, StartError> {
    let names: Vec<_> = names.split(',').map(|name| name.trim().to_owned()).collect();
    Ok(Switches::parse(&names, Profile::Server)?)
}

fn limits(flags: &Flags) -> Limits {
    let default = Limits::default();
    let number = |name: &str| flags.number(name).and_then(|number| usize::try_from(number).ok());
    Limits {
        read_only: number("max-requests-inflight").unwrap_or(default.read_only),
        mutating: number("max-mutating-requests-inflight").unwrap_or(default.mutating),
        request_timeout: flags.duration("request-timeout").unwrap_or(default.request_timeout),
        answer_delay: ANSWER_DELAY,
        ..default
    }
    .of_masters()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::ControllerName;

    fn flags(arguments: &[&str]) -> Result<Flags, FlagError> {
        let table = Table::new(Manner::Pflag, include_str!("../../../schemas/kube-apiserver-flags.txt"));
        table.parse(arguments.iter().map(|text| (*text).to_owned()))
    }

    #[test]
    fn every_flag_that_acts_is_known() {
        let table = Table::new(Manner::Pflag, include_str!("../../../schemas/kube-apiserver-flags.txt"));
        let known: Vec<_> = table.names().collect();
        assert_eq!(ACTING.iter().find(|name| !known.contains(name)), None);
        assert!(!help(&table).contains("insecure-port"));
    }

    #[test]
    fn the_port_is_never_off() {
        let told =
            |arguments: &[&str]| listen(&flags(arguments).expect("they are taken")).map_err(|error| error.to_string());
        assert_eq!(
            told(&["--secure-port", "7", "--bind-address=::1"]).map(|found| found.to_string()),
            Ok("[::1]:7".into())
        );
        let off = "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0";
        assert_eq!(told(&["--secure-port=0"]), Err(off.to_owned()));
    }

    #[test]
    fn a_folder_named_as_setup_envtest_names_them_chooses_the_minor() {
        let minor = |program: &str| folder_minor(Some(Path::new(program)));
        assert_eq!(minor("/k8s/1.34.1-linux-amd64/kube-apiserver"), Minor::of(34));
        assert_eq!(minor("/usr/local/bin/kube-apiserver"), Minor::NEWEST);
        assert_eq!(minor("/k8s/1.20.0-linux-amd64/kube-apiserver"), Minor::NEWEST);
        assert_eq!(folder_minor(None), Minor::NEWEST);
        let told = told_version(Some(Path::new("/k8s/1.34.1-linux-amd64/kube-apiserver")));
        assert_eq!(told, "Kubernetes v1.34.0\n");
    }

    #[test]
    fn the_range_that_is_given_last_counts() {
        let of = |arguments: &[&str]| {
            let found = network(&flags(arguments).expect("they are taken"));
            found.map(|found| found.service_cluster_ip_range).map_err(|error| error.to_string())
        };
        let last = "--service-cluster-ip-range=10.1.0.0/16";
        assert_eq!(of(&["--service-cluster-ip-range=10.0.0.0/24", last]), of(&[last]));
        assert!(of(&["--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/16"]).is_err());
    }

    #[test]
    fn events_and_tokens_live_as_long_as_is_said() {
        let of = |arguments: &[&str]| {
            lifetimes(&flags(arguments).expect("they are taken")).map_err(|error| error.to_string())
        };
        let found = of(&["--event-ttl=90s", "--service-account-max-token-expiration", "2h"]);
        let found = found.map(|found| (found.event, found.token_max));
        assert_eq!(found, Ok((Some(Duration::from_secs(90)), Some(Duration::from_secs(7200)))));
        let token_max = |text: &str| {
            let given = format!("--service-account-max-token-expiration={text}");
            of(&[&given]).map(|found| found.token_max)
        };
        assert_eq!([token_max("0"), token_max("1h")], [Ok(None), Ok(Some(Duration::from_secs(3600)))]);
        let told = "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds";
        assert_eq!([token_max("59m"), token_max("-2h")], [Err(told.to_owned()), Err(told.to_owned())]);
    }

    #[test]
    fn answers_of_writes_come_after_their_events() {
        assert!(!limits(&flags(&[]).expect("they are taken")).answer_delay.is_zero());
    }

    #[test]
    fn controllers_are_named() {
        assert!(switches("").is_ok_and(|found| found == Switches::NONE));
        assert!(switches("*").is_ok_and(|found| found == Switches::SERVER));
        assert!(
            switches("namespace-controller")
                .is_ok_and(|found| found.is_on(ControllerName::Namespaces) && !found.is_on(ControllerName::Garbage))
        );
    }
}
