//! The arguments of `skiff serve` about admission: which plugins are asked, and where webhooks may be.

use std::sync::Arc;

use clap::Args;
use ipnet::IpNet;

use crate::admission::{Chain, NamespaceLifecycle, Objects, OwnerReferences, Webhooks, plugins};
use crate::auth::Authorizer;
use crate::registry::{StoredNamespaces, StoredObjects, StoredWebhooks};
use crate::store::Storage;
use crate::webhook::{Client, ServiceAddress};

const NAMESPACE_LIFECYCLE: &str = "NamespaceLifecycle";
const RESOURCE_QUOTA: &str = "ResourceQuota";
const LIMIT_RANGER: &str = "LimitRanger";
const DEFAULT_STORAGE_CLASS: &str = "DefaultStorageClass";
const STORAGE_OBJECT_IN_USE_PROTECTION: &str = "StorageObjectInUseProtection";
const CLAIM_RESIZE: &str = "PersistentVolumeClaimResize";
const OWNER_REFERENCES: &str = "OwnerReferencesPermissionEnforcement";
const DEFAULT_INGRESS_CLASS: &str = "DefaultIngressClass";
const MUTATING_WEBHOOKS: &str = "MutatingAdmissionWebhook";
const VALIDATING_WEBHOOKS: &str = "ValidatingAdmissionWebhook";
/// Every admission plugin, in the order in which they are asked, and whether it is on by default.
const PLUGINS: [(&str, bool); 10] = [
    (NAMESPACE_LIFECYCLE, true),
    (LIMIT_RANGER, true),
    (DEFAULT_STORAGE_CLASS, true),
    (STORAGE_OBJECT_IN_USE_PROTECTION, true),
    (OWNER_REFERENCES, false),
    (CLAIM_RESIZE, true),
    (DEFAULT_INGRESS_CLASS, true),
    (MUTATING_WEBHOOKS, true),
    (VALIDATING_WEBHOOKS, true),
    (RESOURCE_QUOTA, true),
];

/// kube-apiserver's other plugins: what they do is not done here, so that they may be off and on as one likes.
const OTHERS: [&str; 32] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultTolerationSeconds",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "JobValidation",
    "LimitPodHardAntiAffinityTopology",
    "MutatingAdmissionPolicy",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NodeDeclaredFeatureValidator",
    "NodeRestriction",
    "PersistentVolumeLabel",
    "PodGroupProtection",
    "PodGroupWorkloadExists",
    "PodNodeSelector",
    "PodResizeValidator",
    "PodSecurity",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "Priority",
    "RuntimeClass",
    "ServiceAccount",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
];

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
}

impl Admission {
    /// What is wrong with the names of plugins.
    pub fn fault(&self) -> Option<String> {
        let named = || self.enable_admission_plugins.iter().chain(&self.disable_admission_plugins);
        let is_known =
            |name: &String| PLUGINS.iter().any(|(known, _)| known == name) || OTHERS.contains(&name.as_str());
        if let Some(unknown) = named().find(|name| !is_known(name)) {
            let known = PLUGINS.map(|(name, _)| name).join(", ");
            return Some(format!("unknown admission plugin `{unknown}`; known are: {known}"));
        }
        let both = self.enable_admission_plugins.iter().find(|name| self.disable_admission_plugins.contains(name))?;
        Some(format!("admission plugin `{both}` is to be both on and off"))
    }

    /// Whether nothing is made in a namespace that does not exist.
    pub fn guards_namespaces(&self) -> bool {
        self.is_on(NAMESPACE_LIFECYCLE)
    }

    fn is_on(&self, plugin: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| name == plugin);
        let is_default = PLUGINS.contains(&(plugin, true));
        is_named(&self.enable_admission_plugins) || (is_default && !is_named(&self.disable_admission_plugins))
    }

    /// What calls webhooks.
    pub fn client(&self) -> Arc<Client> {
        Arc::new(Client::new(self.webhook_services.clone(), self.webhook_denied.clone()))
    }

    /// The plugins that are on.
    pub fn chain(&self, storage: &Storage, authorizer: Arc<dyn Authorizer>, client: &Arc<Client>) -> Chain {
        let mut chain = Chain::default();
        if self.guards_namespaces() {
            chain.0.push(Box::new(NamespaceLifecycle { namespaces: StoredNamespaces(storage.clone()) }));
        }
        let objects: Arc<dyn Objects> = Arc::new(StoredObjects(storage.clone()));
        if self.is_on(LIMIT_RANGER) {
            chain.0.push(Box::new(plugins::LimitRanger { objects: Arc::clone(&objects) }));
        }
        if self.is_on(DEFAULT_STORAGE_CLASS) {
            chain.0.push(Box::new(plugins::DefaultStorageClass { objects: Arc::clone(&objects) }));
        }
        if self.is_on(STORAGE_OBJECT_IN_USE_PROTECTION) {
            chain.0.push(Box::new(plugins::StorageObjectInUseProtection));
        }
        if self.is_on(OWNER_REFERENCES) {
            chain.0.push(Box::new(OwnerReferences { authorizer: Arc::clone(&authorizer) }));
        }
        if self.is_on(CLAIM_RESIZE) {
            chain.0.push(Box::new(plugins::PersistentVolumeClaimResize { objects: Arc::clone(&objects) }));
        }
        if self.is_on(DEFAULT_INGRESS_CLASS) {
            chain.0.push(Box::new(plugins::DefaultIngressClass { objects: Arc::clone(&objects) }));
        }
        chain.0.push(Box::new(Webhooks {
            source: StoredWebhooks::new(storage.clone()),
            client: Arc::clone(client),
            authorizer,
            mutating: self.is_on(MUTATING_WEBHOOKS),
            validating: self.is_on(VALIDATING_WEBHOOKS),
        }));
        if self.is_on(RESOURCE_QUOTA) {
            chain.0.push(Box::new(plugins::ResourceQuota { objects }));
        }
        chain
    }
}
