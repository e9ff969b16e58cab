//! Plugins of a default kube-apiserver that change or refuse objects of built-in kinds.

mod certificates;
mod default_ingress_class;
mod default_storage_class;
mod limit_ranger;
mod node_restriction;
mod persistent_volume_claim_resize;
mod pod_topology_labels;
mod resource_quota;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

pub use certificates::{
    CertificateApproval, CertificateSigning, CertificateSubjectRestriction, ClusterTrustBundleAttest,
};
pub use default_ingress_class::DefaultIngressClass;
pub use default_storage_class::DefaultStorageClass;
pub use limit_ranger::LimitRanger;
pub use node_restriction::NodeRestriction;
pub use persistent_volume_claim_resize::PersistentVolumeClaimResize;
pub use pod_topology_labels::PodTopologyLabels;
pub use resource_quota::{Charges, ResourceQuota};
pub use service_account::ServiceAccount;
pub use storage_object_in_use_protection::StorageObjectInUseProtection;
pub use taint_nodes_by_condition::TaintNodesByCondition;

use super::Attributes;
use crate::meta::Status;

/// Whether the request is about objects of a kind themselves, and not about a part of them.
fn is_about(attributes: &Attributes<'_>, group: &str, plural: &str) -> bool {
    let version = attributes.version;
    attributes.subresource.is_empty() && version.group == group && version.names.plural == plural
}

fn forbidden(attributes: &Attributes<'_>, name: &str, why: &str) -> Status {
    let name = if attributes.name.is_empty() { name } else { attributes.name };
    Status::forbidden(&attributes.version.group, &attributes.version.names.plural, name, why)
}
