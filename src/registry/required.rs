//! What requests of all users depend on: where it can't be read, nobody is served.

use crate::auth::rbac;
use crate::store::Collection;

use super::definitions;

const ADMISSION: &str = "admissionregistration.k8s.io";

/// The collections that the server reads for requests about other objects. They are read whatever memory is left, and
/// stay in memory; a write that makes them larger than half of what may stay is refused.
pub fn required_collections() -> Vec<Collection> {
    let required = [
        (definitions::GROUP, definitions::PLURAL),
        ("", "namespaces"),
        (rbac::GROUP, "clusterroles"),
        (rbac::GROUP, "roles"),
        (rbac::GROUP, "clusterrolebindings"),
        (rbac::GROUP, "rolebindings"),
        (ADMISSION, "mutatingadmissionpolicies"),
        (ADMISSION, "mutatingadmissionpolicybindings"),
        (ADMISSION, "validatingadmissionpolicies"),
        (ADMISSION, "validatingadmissionpolicybindings"),
        (ADMISSION, "mutatingwebhookconfigurations"),
        (ADMISSION, "validatingwebhookconfigurations"),
        ("apiregistration.k8s.io", "apiservices"),
        ("", "limitranges"),
        ("", "resourcequotas"),
        ("networking.k8s.io", "ingressclasses"),
        ("scheduling.k8s.io", "priorityclasses"),
        ("storage.k8s.io", "storageclasses"),
    ];
    required.into_iter().map(|(group, plural)| Collection::new(group, plural)).collect()
}
