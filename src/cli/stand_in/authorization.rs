//! The authorizers as configured by the flags of kube-apiserver.
//!
//! Source: `pkg/kubeapiserver/options/authorization.go` and `pkg/kubeapiserver/authorizer`, release
//! 1.36.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::super::admission::{EndpointError, endpoint};
use super::super::users::AuthorizationMode;
use super::authorization_configuration::{
    self as configuration, ConfigurationError, Configured, ConfiguredWebhook, MODES,
};
use super::files::{Aggregate, PathError};
use super::flags::Flags;
use crate::auth::{
    AccessReviewVersion, AccessWebhook, Answering, Figures, NamedAuthorizer, PolicyFault, PolicyList, Verdict,
};
use crate::memory::Memory;
use crate::meta::minor::Minor;
use crate::value::go_quote;
use crate::webhook::WebhookClient;

/// The flags that a configuration file replaces.
const REPLACED: [&str; 5] = [
    "authorization-mode",
    "authorization-webhook-config-file",
    "authorization-webhook-version",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
];
/// The name of the webhook that the flags configure.
const NAME: &str = "default";
/// The defaults of its flags.
const VERSION: &str = "v1beta1";
const TIMEOUT: Duration = Duration::from_secs(30);
const AUTHORIZED_TTL: Duration = Duration::from_secs(5 * 60);
const UNAUTHORIZED_TTL: Duration = Duration::from_secs(30);

/// Why the authorizers can't be set up, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizationError {
    #[error(
        "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"
    )]
    Replaced,
    #[error(transparent)]
    File(#[from] PathError),
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    Modes(#[from] Aggregate<ModeError>),
    #[error("invalid authorization config: {0}")]
    Config(AuthorizerError),
}

/// What is wrong with the flags about modes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModeError {
    #[error("authorization-mode {} is not a valid mode", go_quote(.0))]
    Unknown(String),
    #[error("authorization-mode ABAC's authorization policy file not passed")]
    NoPolicyFile,
    #[error("authorization-mode Webhook's authorization config file not passed")]
    NoWebhookFile,
    #[error("cannot specify --{flag} without mode {mode}")]
    Without { flag: &'static str, mode: &'static str },
    #[error("authorization-mode [{}] has mode specified more than once", quoted(.0))]
    Repeated(Vec<String>),
}

/// Why an authorizer can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizerError {
    #[error(transparent)]
    File(#[from] PathError),
    #[error("{}", .fault.of_file(.path))]
    Policies { path: String, fault: PolicyFault },
    #[error(
        "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
    )]
    NotInCluster,
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error("unsupported webhook authorizer version {}, supported versions are \"v1\", \"v1beta1\"", go_quote(.0))]
    Version(String),
}

fn quoted(modes: &[String]) -> String {
    let quoted: Vec<_> = modes.iter().map(|mode| go_quote(mode)).collect();
    quoted.join(" ")
}

/// The authorizers in the order in which they are asked. Calls of webhooks are counted in
/// `figures`, and their answers in `memory`.
///
/// # Errors
///
/// Flags contradict each other, or a file is invalid.
pub fn authorization_modes(
    flags: &Flags,
    minor: Minor,
    (figures, memory): (&Arc<Figures>, &Arc<Memory>),
) -> Result<Vec<AuthorizationMode>, AuthorizationError> {
    let configured = match flags.text("authorization-config") {
        Some(_) if flags.names().any(|name| REPLACED.contains(&name)) => {
            return Err(AuthorizationError::Replaced);
        }
        Some(path) => configuration::parse(&read(path)?, minor)?,
        None => of_flags(flags)?,
    };
    let with = AuthorizationSetup {
        client: Arc::new(WebhookClient::new(Vec::new(), Vec::new(), Arc::clone(memory))),
        figures: Arc::clone(figures),
        minor,
    };
    let ready = configured.into_iter().map(|one| make(one, flags, &with));
    ready.collect::<Result<_, _>>().map_err(AuthorizationError::Config)
}

fn read(path: &str) -> Result<Vec<u8>, PathError> {
    fs::read(path).map_err(PathError::open(path))
}

/// The authorizers that the flags name, if there is no configuration file.
fn of_flags(flags: &Flags) -> Result<Vec<Configured>, Aggregate<ModeError>> {
    let mut modes = flags.list("authorization-mode");
    if modes.is_empty() {
        modes.push("AlwaysAllow".to_owned());
    }
    Aggregate::refuse(faults(flags, &modes))?;
    let named = modes.into_iter().map(|mode| match mode.as_str() {
        "Webhook" => Configured::Webhook(webhook_of_flags(flags)),
        _ => Configured::Mode(mode),
    });
    Ok(named.collect())
}

fn faults(flags: &Flags, modes: &[String]) -> Vec<ModeError> {
    let has = |mode: &str| modes.iter().any(|one| one == mode);
    let (policies, webhook) =
        (flags.text("authorization-policy-file"), flags.text("authorization-webhook-config-file"));
    let mut faults = Vec::new();
    for mode in modes {
        if !MODES.contains(&mode.as_str()) {
            faults.push(ModeError::Unknown(mode.clone()));
        }
        if mode == "ABAC" && policies.is_none() {
            faults.push(ModeError::NoPolicyFile);
        }
        if mode == "Webhook" && webhook.is_none() {
            faults.push(ModeError::NoWebhookFile);
        }
    }
    if policies.is_some() && !has("ABAC") {
        faults.push(ModeError::Without { flag: "authorization-policy-file", mode: "ABAC" });
    }
    if webhook.is_some() && !has("Webhook") {
        faults.push(ModeError::Without { flag: "authorization-webhook-config-file", mode: "Webhook" });
    }
    if modes.iter().enumerate().any(|(at, mode)| modes[..at].contains(mode)) {
        faults.push(ModeError::Repeated(modes.to_vec()));
    }
    faults
}

fn webhook_of_flags(flags: &Flags) -> ConfiguredWebhook {
    let ttl = |name: &str, default: Duration| flags.duration(name).unwrap_or(default);
    ConfiguredWebhook {
        name: NAME.to_owned(),
        kubeconfig: flags.text("authorization-webhook-config-file").map(str::to_owned),
        version: flags.text("authorization-webhook-version").unwrap_or(VERSION).to_owned(),
        timeout: TIMEOUT,
        authorized_ttl: ttl("authorization-webhook-cache-authorized-ttl", AUTHORIZED_TTL),
        unauthorized_ttl: ttl("authorization-webhook-cache-unauthorized-ttl", UNAUTHORIZED_TTL),
        on_failure: Verdict::NoOpinion,
        conditions: Vec::new(),
    }
}

/// What webhooks need beside their configuration.
struct AuthorizationSetup {
    client: Arc<WebhookClient>,
    figures: Arc<Figures>,
    minor: Minor,
}

fn make(
    configured: Configured,
    flags: &Flags,
    with: &AuthorizationSetup,
) -> Result<AuthorizationMode, AuthorizerError> {
    match configured {
        Configured::Webhook(webhook) => webhook_mode(webhook, with),
        Configured::Mode(mode) => match mode.as_str() {
            "AlwaysAllow" => Ok(AuthorizationMode::AlwaysAllow),
            "AlwaysDeny" => Ok(AuthorizationMode::AlwaysDeny),
            "Node" => Ok(AuthorizationMode::Node),
            "RBAC" => Ok(AuthorizationMode::Rbac),
            _ => abac_mode(flags.text("authorization-policy-file").unwrap_or_default()),
        },
    }
}

fn abac_mode(path: &str) -> Result<AuthorizationMode, AuthorizerError> {
    let of_file = |fault| AuthorizerError::Policies { path: path.to_owned(), fault };
    let policies = PolicyList::parse(&read(path)?).map_err(of_file)?;
    let name = NamedAuthorizer { r#type: "ABAC", name: "abac".to_owned() };
    Ok(AuthorizationMode::Ready(name, Arc::new(policies)))
}

fn webhook_mode(webhook: ConfiguredWebhook, with: &AuthorizationSetup) -> Result<AuthorizationMode, AuthorizerError> {
    let Some(kubeconfig) = &webhook.kubeconfig else { return Err(AuthorizerError::NotInCluster) };
    let unseen = |source| PathError { call: "stat", path: kubeconfig.clone(), source };
    fs::metadata(kubeconfig).map_err(unseen)?;
    let endpoint = endpoint(Path::new(kubeconfig))?;
    let version = AccessReviewVersion::named(&webhook.version)
        .ok_or_else(|| AuthorizerError::Version(webhook.version.clone()))?;
    let answering = Answering {
        version,
        timeout: webhook.timeout,
        authorized_ttl: webhook.authorized_ttl,
        unauthorized_ttl: webhook.unauthorized_ttl,
        on_failure: webhook.on_failure,
        conditions: webhook.conditions,
        minor: with.minor,
    };
    let (client, figures) = (Arc::clone(&with.client), Arc::clone(&with.figures));
    let authorizer = AccessWebhook::new(&webhook.name, figures, endpoint, client, answering);
    Ok(AuthorizationMode::Ready(NamedAuthorizer::webhook(&webhook.name), Arc::new(authorizer)))
}

#[cfg(test)]
mod tests {
    use super::super::flags::{Manner, Table};
    use super::*;

    fn modes(arguments: &[&str]) -> Result<Vec<&'static str>, String> {
        let table = Table::new(Manner::Pflag, include_str!("../../../schemas/kube-apiserver-flags.txt"));
        let flags = table.parse(arguments.iter().map(|text| (*text).to_owned())).expect("they are taken");
        let name = |mode: &AuthorizationMode| match mode {
            AuthorizationMode::AlwaysAllow => "AlwaysAllow",
            AuthorizationMode::AlwaysDeny => "AlwaysDeny",
            AuthorizationMode::Node => "Node",
            AuthorizationMode::Rbac => "RBAC",
            AuthorizationMode::Ready(..) => "ready",
        };
        let modes = authorization_modes(&flags, Minor::NEWEST, (&Arc::default(), &Arc::new(Memory::of_system())));
        modes.map(|modes| modes.iter().map(name).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn modes_are_asked_in_the_order_in_which_they_are_named() {
        assert_eq!(modes(&[]), Ok(vec!["AlwaysAllow"]));
        assert_eq!(modes(&["--authorization-mode=Node,RBAC"]), Ok(vec!["Node", "RBAC"]));
        assert_eq!(modes(&["--authorization-mode=RBAC", "--authorization-mode=Node"]), Ok(vec!["RBAC", "Node"]));
    }

    #[test]
    fn what_contradicts_itself_is_told_as_there() {
        let check = |arguments: &[&str], expected: &str| {
            assert_eq!(modes(arguments), Err(expected.to_owned()), "{arguments:?}");
        };
        check(
            &["--authorization-mode=RBAC,X,Y,RBAC"],
            "[authorization-mode \"X\" is not a valid mode, authorization-mode \"Y\" is not a valid mode, \
             authorization-mode [\"RBAC\" \"X\" \"Y\" \"RBAC\"] has mode specified more than once]",
        );
        check(&["--authorization-mode=ABAC"], "authorization-mode ABAC's authorization policy file not passed");
        check(&["--authorization-mode=Webhook"], "authorization-mode Webhook's authorization config file not passed");
        let without = |flag: &str, mode: &str| format!("cannot specify --{flag} without mode {mode}");
        check(&["--authorization-policy-file=x"], &without("authorization-policy-file", "ABAC"));
        check(&["--authorization-webhook-config-file=x"], &without("authorization-webhook-config-file", "Webhook"));
        check(
            &["--authorization-config=x", "--authorization-webhook-version=v1"],
            "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags \
             are defined",
        );
        let missing = "/nonexistent/file";
        let abac = ["--authorization-mode=ABAC", "--authorization-policy-file=/nonexistent/file"];
        check(&abac, &format!("invalid authorization config: open {missing}: no such file or directory"));
        let webhook = ["--authorization-mode=Webhook", "--authorization-webhook-config-file=/nonexistent/file"];
        check(&webhook, &format!("invalid authorization config: stat {missing}: no such file or directory"));
        check(&["--authorization-config=/nonexistent/file"], &format!("open {missing}: no such file or directory"));
    }
}
