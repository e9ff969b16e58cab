//! Plugins that change or refuse objects of built-in kinds.

mod always_deny;
mod always_pull_images;
mod certificates;
mod default_ingress_class;
mod default_storage_class;
mod deny_service_external_ips;
mod event_rate_limit;
mod extended_resource_toleration;
mod image_policy_webhook;
mod limit_pod_hard_anti_affinity_topology;
mod limit_ranger;
mod namespace_auto_provision;
mod namespace_exists;
mod node_restriction;
mod persistent_volume_claim_resize;
mod pod_node_selector;
mod pod_toleration_restriction;
mod pod_topology_labels;
mod resource_quota;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

pub use always_deny::AlwaysDeny;
pub use always_pull_images::AlwaysPullImages;
pub use certificates::{
    CertificateApproval, CertificateSigning, CertificateSubjectRestriction, ClusterTrustBundleAttest,
};
pub use default_ingress_class::DefaultIngressClass;
pub use default_storage_class::DefaultStorageClass;
pub use deny_service_external_ips::DenyServiceExternalIps;
pub use event_rate_limit::EventRateLimit;
pub use extended_resource_toleration::ExtendedResourceToleration;
pub use image_policy_webhook::{ImagePolicy, ImagePolicyError, ImagePolicyWebhook};
pub use limit_pod_hard_anti_affinity_topology::LimitPodHardAntiAffinityTopology;
pub use limit_ranger::LimitRanger;
pub use namespace_auto_provision::NamespaceAutoProvision;
pub use namespace_exists::NamespaceExists;
pub use node_restriction::NodeRestriction;
pub use persistent_volume_claim_resize::PersistentVolumeClaimResize;
pub use pod_node_selector::{NodeSelectors, PodNodeSelector};
pub use pod_toleration_restriction::{PodTolerationRestriction, cluster_tolerations};
pub use pod_topology_labels::PodTopologyLabels;
pub use resource_quota::{Charges, ResourceQuota, limited_resources};
pub use service_account::ServiceAccount;
pub use storage_object_in_use_protection::StorageObjectInUseProtection;
pub use taint_nodes_by_condition::TaintNodesByCondition;

use super::{Attributes, Objects, ScopedResource, forbidden};
use crate::meta::Status;
use crate::value::Value;

/// Whether the request is about objects of a resource, and not about a subresource.
fn is_about(attributes: &Attributes<'_>, group: &str, plural: &str) -> bool {
    let version = attributes.version;
    attributes.subresource.is_empty() && version.group == group && version.names.plural == plural
}

/// The namespace that a request writes to.
async fn namespace(objects: &dyn Objects, attributes: &Attributes<'_>) -> Result<Value, Status> {
    let name = attributes.namespace;
    let found = objects.get(ScopedResource { group: "", plural: "namespaces", namespace: "" }, name).await?;
    found.ok_or_else(|| Status::not_found("", "namespaces", name))
}
