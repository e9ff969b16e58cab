//! The arguments of `skiff serve` for admission: which plugins are enabled, and the addresses of
//! webhooks.
//!
//! The table has each plugin by kube-apiserver's name, whether it is enabled by default, and how it
//! is built, in the order in which the plugins are called. Names that only kube-apiserver has are
//! accepted and do nothing. A plugin decides by pure functions of `kinds` (`limits`, `quota`,
//! `pod_object::priority`) and looks up other objects through `admission::Objects`, which reads the
//! view. A quota's usage is written before the object, as in Kubernetes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use ipnet::IpNet;

use super::cluster::{Config, KubeconfigError};
use crate::admission::configuration::ConfigurationError;
use crate::admission::policies::{Hook, MutatingPolicies, ValidatingPolicies};
use crate::admission::static_manifests::ManifestsError;
use crate::admission::webhooks::{self, WebhookKind};
use crate::admission::{
    Admission as Step, Chain, Configuration, DefaultTolerationSeconds, Figures, NamespaceLifecycle,
    NodeDeclaredFeatureValidator, Objects, OwnerReferences, PodResizeValidator, PodSecurity, PodSecuritySettings,
    Priority, RuntimeClass, Webhooks, plugins, static_manifests,
};
use crate::auth::Authorizer;
use crate::kinds::pod_object::namespace_tolerations::ClusterTolerations;
use crate::kinds::pod_object::tolerations::Seconds;
use crate::kinds::quota::LimitedResources;
use crate::memory::Memory;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::policy::{Mutating, Policy, Validating};
use crate::registry::{StoredNamespaces, StoredObjects, StoredPolicies, StoredWebhooks};
use crate::store::Storage;
use crate::value::{Value, go_quote};
use crate::webhook::{Address, Credentials, Endpoint, EndpointAccess, ServiceAddress, WebhookClient};

const NAMESPACE_LIFECYCLE: &str = "NamespaceLifecycle";
const EVENT_RATE_LIMIT: &str = "EventRateLimit";
const IMAGE_POLICY: &str = "ImagePolicyWebhook";
/// The plugins for policies have the names of their kinds.
const MUTATING_POLICIES: &str = "MutatingAdmissionPolicy";
const VALIDATING_POLICIES: &str = "ValidatingAdmissionPolicy";
const MUTATING_WEBHOOKS: &str = "MutatingAdmissionWebhook";
const VALIDATING_WEBHOOKS: &str = "ValidatingAdmissionWebhook";
/// The plugin that kube-apiserver enables by default and `skiff serve` does not.
pub const SERVICE_ACCOUNT: &str = "ServiceAccount";

/// What plugins are built from.
struct PluginParts {
    minor: Minor,
    storage: Storage,
    memory: Arc<Memory>,
    objects: Arc<dyn Objects>,
    authorizer: Arc<dyn Authorizer>,
    client: Arc<WebhookClient>,
    figures: Arc<Figures>,
    toleration_seconds: Seconds,
    settings: Settings,
}

/// The settings of plugins from the configuration file.
#[derive(Clone, Default)]
struct Settings {
    pod_security: PodSecuritySettings,
    node_selectors: plugins::NodeSelectors,
    tolerations: ClusterTolerations,
    event_rate_limit: plugins::EventRateLimit,
    limited_resources: LimitedResources,
    validating_policies: Arc<[Hook<Validating>]>,
    mutating_policies: Arc<[Hook<Mutating>]>,
    validating_webhooks: Vec<Arc<webhooks::Configuration>>,
    mutating_webhooks: Vec<Arc<webhooks::Configuration>>,
    /// The credentials for calls to validating webhooks, then those for mutating ones.
    callers: [Arc<Credentials>; 2],
    /// Set if the plugin is enabled.
    image_policy: Option<(plugins::ImagePolicy, Endpoint)>,
}

impl PluginParts {
    fn policies<P: Policy>(&self, in_files: &Arc<[Hook<P>]>) -> StoredPolicies<P> {
        StoredPolicies::new(self.storage.clone(), Arc::clone(in_files), self.minor, &self.memory)
    }

    fn webhooks(&self, kind: WebhookKind) -> Box<dyn Step> {
        let mutating = kind == WebhookKind::Mutating;
        let settings = &self.settings;
        let in_files = if mutating { &settings.mutating_webhooks } else { &settings.validating_webhooks };
        Box::new(Webhooks {
            source: StoredWebhooks::new(self.storage.clone(), kind, in_files.as_slice().into(), &self.memory),
            client: Arc::clone(&self.client),
            credentials: Arc::clone(&settings.callers[usize::from(mutating)]),
            authorizer: Arc::clone(&self.authorizer),
            figures: Arc::clone(&self.figures),
            kind,
        })
    }
}

/// A plugin: its name in kube-apiserver, whether it is enabled by default, and how it is built.
type Plugin = (&'static str, bool, fn(&PluginParts) -> Box<dyn Step>);

/// All admission plugins, in the order in which they are called.
const PLUGINS: [Plugin; 37] = [
    ("NamespaceAutoProvision", false, |parts| {
        Box::new(plugins::NamespaceAutoProvision { objects: Arc::clone(&parts.objects) })
    }),
    (NAMESPACE_LIFECYCLE, true, |parts| {
        Box::new(NamespaceLifecycle { namespaces: StoredNamespaces(parts.storage.clone()) })
    }),
    ("NamespaceExists", false, |parts| Box::new(plugins::NamespaceExists { objects: Arc::clone(&parts.objects) })),
    ("LimitPodHardAntiAffinityTopology", false, |_| Box::new(plugins::LimitPodHardAntiAffinityTopology)),
    ("LimitRanger", true, |parts| Box::new(plugins::LimitRanger { objects: Arc::clone(&parts.objects) })),
    // DIFFERS: enabled in kube-apiserver. Unless the server runs as in a cluster, no pods run here,
    // and tests create them in namespaces without service accounts, as under envtest, which
    // disables the plugin.
    (SERVICE_ACCOUNT, false, |parts| Box::new(plugins::ServiceAccount { objects: Arc::clone(&parts.objects) })),
    ("NodeRestriction", false, |parts| {
        let (objects, authorizer) = (Arc::clone(&parts.objects), Arc::clone(&parts.authorizer));
        Box::new(plugins::NodeRestriction { objects, authorizer })
    }),
    ("TaintNodesByCondition", true, |_| Box::new(plugins::TaintNodesByCondition)),
    ("AlwaysPullImages", false, |_| Box::new(plugins::AlwaysPullImages)),
    (IMAGE_POLICY, false, |parts| {
        let settings = parts.settings.image_policy.clone();
        let (policy, endpoint) = settings.expect("what is on was configured at the start");
        Box::new(plugins::ImagePolicyWebhook::new(policy, endpoint, Arc::clone(&parts.client)))
    }),
    ("PodSecurity", true, |parts| {
        let settings = parts.settings.pod_security.clone();
        Box::new(PodSecurity { objects: Arc::clone(&parts.objects), settings })
    }),
    ("PodNodeSelector", false, |parts| {
        let selectors = parts.settings.node_selectors.clone();
        Box::new(plugins::PodNodeSelector { objects: Arc::clone(&parts.objects), selectors })
    }),
    ("Priority", true, |parts| Box::new(Priority { objects: Arc::clone(&parts.objects) })),
    ("DefaultTolerationSeconds", true, |parts| Box::new(DefaultTolerationSeconds(parts.toleration_seconds))),
    ("PodTolerationRestriction", false, |parts| {
        let cluster = parts.settings.tolerations.clone();
        Box::new(plugins::PodTolerationRestriction { objects: Arc::clone(&parts.objects), cluster })
    }),
    (EVENT_RATE_LIMIT, false, |parts| Box::new(parts.settings.event_rate_limit.clone())),
    ("ExtendedResourceToleration", false, |_| Box::new(plugins::ExtendedResourceToleration)),
    ("DefaultStorageClass", true, |parts| {
        Box::new(plugins::DefaultStorageClass { objects: Arc::clone(&parts.objects) })
    }),
    ("StorageObjectInUseProtection", true, |_| Box::new(plugins::StorageObjectInUseProtection)),
    ("OwnerReferencesPermissionEnforcement", false, |parts| {
        Box::new(OwnerReferences { authorizer: Arc::clone(&parts.authorizer) })
    }),
    ("PersistentVolumeClaimResize", true, |parts| {
        Box::new(plugins::PersistentVolumeClaimResize { objects: Arc::clone(&parts.objects) })
    }),
    ("RuntimeClass", true, |parts| Box::new(RuntimeClass { objects: Arc::clone(&parts.objects) })),
    ("CertificateApproval", true, |parts| {
        Box::new(plugins::CertificateApproval { authorizer: Arc::clone(&parts.authorizer) })
    }),
    ("CertificateSigning", true, |parts| {
        Box::new(plugins::CertificateSigning { authorizer: Arc::clone(&parts.authorizer) })
    }),
    ("ClusterTrustBundleAttest", true, |parts| {
        Box::new(plugins::ClusterTrustBundleAttest { authorizer: Arc::clone(&parts.authorizer) })
    }),
    ("CertificateSubjectRestriction", true, |_| Box::new(plugins::CertificateSubjectRestriction)),
    ("DefaultIngressClass", true, |parts| {
        Box::new(plugins::DefaultIngressClass { objects: Arc::clone(&parts.objects) })
    }),
    ("DenyServiceExternalIPs", false, |_| Box::new(plugins::DenyServiceExternalIps)),
    ("PodTopologyLabels", true, |parts| Box::new(plugins::PodTopologyLabels { objects: Arc::clone(&parts.objects) })),
    ("NodeDeclaredFeatureValidator", true, |parts| {
        Box::new(NodeDeclaredFeatureValidator { objects: Arc::clone(&parts.objects) })
    }),
    ("PodResizeValidator", true, |parts| Box::new(PodResizeValidator { objects: Arc::clone(&parts.objects) })),
    (MUTATING_POLICIES, true, |parts| {
        Box::new(MutatingPolicies {
            source: parts.policies(&parts.settings.mutating_policies),
            authorizer: Arc::clone(&parts.authorizer),
            figures: Arc::clone(&parts.figures),
        })
    }),
    (MUTATING_WEBHOOKS, true, |parts| parts.webhooks(WebhookKind::Mutating)),
    (VALIDATING_POLICIES, true, |parts| {
        Box::new(ValidatingPolicies {
            source: parts.policies(&parts.settings.validating_policies),
            authorizer: Arc::clone(&parts.authorizer),
            figures: Arc::clone(&parts.figures),
        })
    }),
    (VALIDATING_WEBHOOKS, true, |parts| parts.webhooks(WebhookKind::Validating)),
    ("ResourceQuota", true, |parts| {
        let limited = parts.settings.limited_resources.clone();
        Box::new(plugins::ResourceQuota::new(Arc::clone(&parts.objects), limited))
    }),
    ("AlwaysDeny", false, |_| Box::new(plugins::AlwaysDeny)),
];

/// kube-apiserver's other plugins: they are not implemented here, so they may be enabled and
/// disabled at will.
const OTHERS: [&str; 5] =
    ["AlwaysAdmit", "JobValidation", "PersistentVolumeLabel", "PodGroupProtection", "PodGroupWorkloadExists"];

#[derive(Args)]
pub struct Admission {
    /// Where a service that webhooks are configured with really listens, for all of its ports or for one; may be given
    /// several times
    #[arg(long = "webhook-service", value_name = "NAMESPACE/NAME[:PORT]=HOST:PORT")]
    pub webhook_services: Vec<ServiceAddress>,

    /// Addresses that webhooks are never called at, such as 169.254.0.0/16, whatever name leads there; may be given several
    /// times
    #[arg(long = "webhook-deny-cidr", value_name = "CIDR")]
    pub webhook_denied: Vec<IpNet>,

    /// Admission plugins to switch on, by kube-apiserver's names: with OwnerReferencesPermissionEnforcement, who names an
    /// owner must be allowed to delete the object, and who blocks the owner's deletion to update its finalizers
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub enable_admission_plugins: Vec<String>,

    /// Admission plugins to switch off, by kube-apiserver's names: without NamespaceLifecycle objects can be made in
    /// namespaces that do not exist; MutatingAdmissionWebhook and ValidatingAdmissionWebhook call webhooks
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub disable_admission_plugins: Vec<String>,

    /// An AdmissionConfiguration, with what PodSecurity, ResourceQuota, ImagePolicyWebhook, EventRateLimit, PodNodeSelector and
    /// PodTolerationRestriction are told, with folders of policies and webhooks, and with who calls webhooks
    #[arg(long, value_name = "FILE")]
    pub admission_control_config_file: Option<PathBuf>,

    /// How long pods tolerate that their node is not ready, unless they say it themselves
    #[arg(long, value_name = "SECONDS", default_value_t = Seconds::DEFAULT)]
    pub default_not_ready_toleration_seconds: i64,

    /// How long pods tolerate that their node is not reached, unless they say it themselves
    #[arg(long, value_name = "SECONDS", default_value_t = Seconds::DEFAULT)]
    pub default_unreachable_toleration_seconds: i64,

    #[arg(skip)]
    settings: Settings,
}

impl Admission {
    /// Enables and disables the named plugins, and reads their configuration file for a server of
    /// `minor`.
    ///
    /// # Errors
    ///
    /// A name is unknown, or the file is invalid.
    pub fn new(on: Vec<String>, off: Vec<String>, file: Option<PathBuf>, minor: Minor) -> Result<Self, AdmissionError> {
        let mut admission = Admission {
            webhook_services: Vec::new(),
            webhook_denied: Vec::new(),
            enable_admission_plugins: on,
            disable_admission_plugins: off,
            admission_control_config_file: file,
            default_not_ready_toleration_seconds: Seconds::DEFAULT,
            default_unreachable_toleration_seconds: Seconds::DEFAULT,
            settings: Settings::default(),
        };
        admission.settle(minor)?;
        Ok(admission)
    }

    /// Enables a plugin that is neither enabled nor disabled by an argument.
    pub fn switch_on(&mut self, plugin: &'static str) {
        let named = [&self.enable_admission_plugins, &self.disable_admission_plugins];
        if !named.iter().any(|names| names.iter().any(|name| name == plugin)) {
            self.enable_admission_plugins.push(plugin.to_owned());
        }
    }

    /// Checks the names of plugins, and reads their configuration file.
    ///
    /// # Errors
    ///
    /// A name is unknown, or the file is invalid.
    pub fn settle(&mut self, minor: Minor) -> Result<(), AdmissionError> {
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        let configuration = self.admission_control_config_file.as_deref().map(Configuration::read).transpose()?;
        let configuration = configuration.unwrap_or_default();
        let told = |plugin: &'static str| configuration.of(plugin);
        let settings = &mut self.settings;
        if let Some(value) = told("PodSecurity") {
            settings.pod_security = PodSecuritySettings::parse(value).map_err(failed("PodSecurity"))?;
        }
        if let Some(value) = told("PodNodeSelector") {
            settings.node_selectors = plugins::NodeSelectors::parse(value).map_err(failed("PodNodeSelector"))?;
        }
        if let Some(value) = told("PodTolerationRestriction") {
            settings.tolerations = plugins::cluster_tolerations(value).map_err(failed("PodTolerationRestriction"))?;
        }
        if let Some(value) = told("ResourceQuota") {
            settings.limited_resources = plugins::limited_resources(value).map_err(failed("ResourceQuota"))?;
        }
        self.settle_manifests(&configuration, minor)?;
        if self.is_on(IMAGE_POLICY) {
            let policy = image_policy(told(IMAGE_POLICY)).map_err(failed(IMAGE_POLICY))?;
            self.settings.image_policy = Some(policy);
        }
        if self.is_on(EVENT_RATE_LIMIT) {
            self.settings.event_rate_limit =
                plugins::EventRateLimit::parse(told(EVENT_RATE_LIMIT)).map_err(failed(EVENT_RATE_LIMIT))?;
        }
        Ok(())
    }

    /// Reads the static manifests of policies and webhooks, and the credentials for webhooks.
    fn settle_manifests(&mut self, configuration: &Configuration, minor: Minor) -> Result<(), AdmissionError> {
        let told = |plugin: &'static str| configuration.of(plugin).filter(|_| self.is_on(plugin));
        let (mutating, validating) = (told(MUTATING_POLICIES), told(VALIDATING_POLICIES));
        let (mutating_webhooks, validating_webhooks) = (told(MUTATING_WEBHOOKS), told(VALIDATING_WEBHOOKS));
        let settings = &mut self.settings;
        if let Some(value) = mutating {
            let read = static_manifests::policies(value, MUTATING_POLICIES, minor);
            settings.mutating_policies = read.map_err(failed(MUTATING_POLICIES))?;
        }
        if let Some(value) = validating {
            let read = static_manifests::policies(value, VALIDATING_POLICIES, minor);
            settings.validating_policies = read.map_err(failed(VALIDATING_POLICIES))?;
        }
        if let Some(value) = mutating_webhooks {
            let read = static_manifests::webhooks(value, WebhookKind::Mutating, minor);
            settings.mutating_webhooks = read.map_err(failed(MUTATING_WEBHOOKS))?;
            settings.callers[1] = callers(value).map_err(failed(MUTATING_WEBHOOKS))?;
        }
        if let Some(value) = validating_webhooks {
            let read = static_manifests::webhooks(value, WebhookKind::Validating, minor);
            settings.validating_webhooks = read.map_err(failed(VALIDATING_WEBHOOKS))?;
            settings.callers[0] = callers(value).map_err(failed(VALIDATING_WEBHOOKS))?;
        }
        Ok(())
    }

    /// What is wrong with the names of plugins, in kube-apiserver's words.
    fn fault(&self) -> Option<AdmissionError> {
        let (on, off) = (&self.enable_admission_plugins, &self.disable_admission_plugins);
        let is_known =
            |name: &String| PLUGINS.iter().any(|(known, ..)| known == name) || OTHERS.contains(&name.as_str());
        let unknown = |flag: &'static str, names: &[String]| -> Vec<AdmissionError> {
            let unknown = names.iter().filter(|name| !is_known(name));
            unknown.map(|name| AdmissionError::Unknown { flag, name: name.clone() }).collect()
        };
        let mut faults = unknown("enable-admission-plugins", on);
        faults.extend(unknown("disable-admission-plugins", off));
        let both: BTreeSet<&str> = on.iter().filter(|name| off.contains(name)).map(String::as_str).collect();
        if !both.is_empty() {
            faults.push(AdmissionError::OnAndOff(both.into_iter().map(str::to_owned).collect()));
        }
        match faults.len() {
            0 | 1 => faults.pop(),
            _ => Some(AdmissionError::Several(faults)),
        }
    }

    /// Whether no object can be created in a namespace that does not exist.
    pub fn guards_namespaces(&self) -> bool {
        self.is_on(NAMESPACE_LIFECYCLE)
    }

    fn is_on(&self, plugin: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| name == plugin);
        let is_default = PLUGINS.iter().any(|(name, is_default, _)| *name == plugin && *is_default);
        is_named(&self.enable_admission_plugins) || (is_default && !is_named(&self.disable_admission_plugins))
    }

    /// The client that calls webhooks.
    pub fn client(&self, memory: &Arc<Memory>) -> Arc<WebhookClient> {
        let (services, denied) = (self.webhook_services.clone(), self.webhook_denied.clone());
        Arc::new(WebhookClient::new(services, denied, Arc::clone(memory)))
    }

    /// The chain of the enabled plugins that exist in the minor version.
    pub fn chain(
        &self,
        minor: Minor,
        (storage, memory): (&Storage, &Arc<Memory>),
        authorizer: Arc<dyn Authorizer>,
        client: &Arc<WebhookClient>,
    ) -> Chain {
        let figures = Arc::new(Figures::with(client.old_certificates.clone()));
        let parts = PluginParts {
            minor,
            storage: storage.clone(),
            memory: Arc::clone(memory),
            objects: Arc::new(StoredObjects { storage: storage.clone(), memory: Arc::clone(memory) }),
            authorizer,
            client: Arc::clone(client),
            figures: Arc::clone(&figures),
            toleration_seconds: Seconds {
                not_ready: self.default_not_ready_toleration_seconds,
                unreachable: self.default_unreachable_toleration_seconds,
            },
            settings: self.settings.clone(),
        };
        // The plugins for policies do nothing if the feature gate of the same name is closed.
        let is_gated = |name: &str| Gate::all().any(|gate| gate.name() == name && !minor.opens(gate));
        let wanted = PLUGINS.iter().filter(|(name, ..)| self.is_on(name) && !is_gated(name));
        Chain::new(wanted.map(|(name, _, make)| (*name, make(&parts))), figures)
    }
}

/// Why admission can't be set up as requested.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    #[error("{flag} plugin {} is unknown", go_quote(name))]
    Unknown { flag: &'static str, name: String },
    #[error("[{}] in enable-admission-plugins and disable-admission-plugins overlapped", .0.join(" "))]
    OnAndOff(Vec<String>),
    #[error("[{}]", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<AdmissionError>),
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error("failed to apply admission: couldn't init admission plugin {plugin:?}: {source}")]
    Plugin { plugin: &'static str, source: Box<PluginError> },
}

/// Why a plugin can't be enabled.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    Manifests(#[from] ManifestsError),
    #[error(transparent)]
    ImagePolicy(#[from] plugins::ImagePolicyError),
    #[error(transparent)]
    Endpoint(Box<EndpointError>),
    #[error(
        "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
    )]
    NoKubeconfig,
}

impl From<EndpointError> for PluginError {
    fn from(error: EndpointError) -> Self {
        PluginError::Endpoint(Box::new(error))
    }
}

/// Why a kubeconfig leads to no service.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    #[error("the server `{0}` of the kubeconfig is not an https address")]
    NotHttps(String),
}

/// The error for a plugin that can't be enabled.
fn failed<E: Into<PluginError>>(plugin: &'static str) -> impl FnOnce(E) -> AdmissionError {
    move |error| AdmissionError::Plugin { plugin, source: Box::new(error.into()) }
}

/// The credentials for calls to webhooks, from the kubeconfig that a plugin's configuration names.
fn callers(configuration: &Value) -> Result<Arc<Credentials>, EndpointError> {
    let path = configuration.str_at(&["kubeConfigFile"]);
    if path.is_empty() {
        return Ok(Arc::default());
    }
    let (users, current) = Config::users(Path::new(path))?;
    let access = |config: Config| EndpointAccess {
        identity: config.identity,
        headers: config.headers,
        ..EndpointAccess::default()
    };
    let users = users.into_iter().map(|(name, config)| (name, access(config))).collect();
    Ok(Arc::new(Credentials::new(users, current.as_deref())))
}

/// The plugin's settings, and the service that its kubeconfig names.
fn image_policy(configuration: Option<&Value>) -> Result<(plugins::ImagePolicy, Endpoint), PluginError> {
    let policy = plugins::ImagePolicy::parse(configuration)?;
    if policy.kubeconfig.is_empty() {
        return Err(PluginError::NoKubeconfig);
    }
    let endpoint = endpoint(Path::new(&policy.kubeconfig))?;
    Ok((policy, endpoint))
}

/// The service that a kubeconfig names, as an endpoint.
///
/// # Errors
///
/// The file can't be read, or the service has no https address.
pub fn endpoint(kubeconfig: &Path) -> Result<Endpoint, EndpointError> {
    let config = Config::read(Some(kubeconfig), None)?;
    if !config.server.starts_with("https://") {
        return Err(EndpointError::NotHttps(config.server));
    }
    let Config { server, authority_pem, is_insecure, server_name, identity, headers } = config;
    let access = Some(Arc::new(EndpointAccess { is_insecure, server_name, identity, headers }));
    Ok(Endpoint { address: Address::Url(server), ca_bundle: authority_pem, access })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_switched_on_unless_somebody_has_switched_it() {
        let check = |on: &[&str], off: &[&str]| {
            let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
            let mut admission = Admission::new(names(on), names(off), None, Minor::NEWEST).expect("they are known");
            admission.switch_on(SERVICE_ACCOUNT);
            admission.is_on(SERVICE_ACCOUNT)
        };
        assert!(check(&[], &[]) && check(&[SERVICE_ACCOUNT], &[]));
        assert!(!check(&[], &[SERVICE_ACCOUNT]));
    }

    #[test]
    fn unknown_plugins_and_those_switched_twice_are_told_as_kube_apiserver_does() {
        let check = |on: &[&str], off: &[&str], told: &str| {
            let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
            let refused = Admission::new(names(on), names(off), None, Minor::NEWEST);
            assert_eq!(refused.err().map(|error| error.to_string()).as_deref(), Some(told));
        };
        check(&["Foo"], &[], "enable-admission-plugins plugin \"Foo\" is unknown");
        check(
            &["Foo"],
            &["Bar"],
            "[enable-admission-plugins plugin \"Foo\" is unknown, disable-admission-plugins plugin \"Bar\" is unknown]",
        );
        let both = "[Priority] in enable-admission-plugins and disable-admission-plugins overlapped";
        check(&["Priority"], &["Priority"], both);
    }
}
