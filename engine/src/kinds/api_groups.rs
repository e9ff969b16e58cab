//! The order of API groups and their versions, as in discovery and in the fields of their APIServices, and the
//! APIServices of the groups that this server serves itself.

use crate::object;
use crate::value::Value;

/// The group that the aggregator serves itself.
const REGISTRATION: &str = "apiregistration.k8s.io";

/// The label of an APIService that the server makes, for each version that it serves: `true` for one that it keeps as it
/// should be, `onstart` for one that it only sees to at its start.
pub const MANAGED_LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";

/// The condition of a version that this server serves itself. `now` is RFC 3339.
pub fn available_here(now: &str) -> Value {
    object! {
        "type" => "Available",
        "status" => "True",
        "lastTransitionTime" => now,
        "reason" => "Local",
        "message" => "Local APIServices are always available",
    }
}

/// The priority of a group; 1,000 for one that is not built in. Source: kube-apiserver 1.36, and 1.37 for new groups.
pub(super) fn priority(group: &str, is_built_in: bool) -> i64 {
    match group {
        "" => 18_000,
        "apps" => 17_800,
        "events.k8s.io" => 17_750,
        "authentication.k8s.io" => 17_700,
        "authorization.k8s.io" => 17_600,
        "autoscaling" => 17_500,
        "batch" => 17_400,
        "certificates.k8s.io" => 17_300,
        "networking.k8s.io" => 17_200,
        "policy" => 17_100,
        "rbac.authorization.k8s.io" => 17_000,
        "storage.k8s.io" => 16_800,
        "admissionregistration.k8s.io" | "apiextensions.k8s.io" => 16_700,
        "scheduling.k8s.io" => 16_600,
        "coordination.k8s.io" => 16_500,
        "node.k8s.io" => 16_300,
        "discovery.k8s.io" | "resource.k8s.io" => 16_200,
        "flowcontrol.apiserver.k8s.io" => 16_100,
        "internal.apiserver.k8s.io" => 16_000,
        "storagemigration.k8s.io" => 15_800,
        _ if is_built_in => 15_700,
        _ => 1_000,
    }
}

/// The priority of a version within its group.
pub(super) fn version_priority(group: &str, version: &str, is_built_in: bool) -> i64 {
    match (group, version) {
        ("", _) => 1,
        ("autoscaling", "v2") => 30,
        ("resource.k8s.io" | "flowcontrol.apiserver.k8s.io", "v1") => 21,
        ("resource.k8s.io", "v1beta2") => 15,
        ("coordination.k8s.io", "v1beta1") => 13,
        ("coordination.k8s.io", "v1alpha2") | ("admissionregistration.k8s.io", "v1beta1") => 12,
        ("scheduling.k8s.io", "v1alpha3") => 2,
        ("resource.k8s.io", "v1alpha3") => 1,
        _ if !is_built_in => 100,
        (_, version) if version.contains("beta") || version.contains("alpha") => 9,
        _ => 15,
    }
}

/// The rank of a group in discovery, the greatest number first: by its priority; the aggregator's own group comes
/// directly after the group without a name. Groups that are not built in come last.
pub fn rank(group: &str) -> i64 {
    match group {
        REGISTRATION => 17_900,
        _ => priority(group, false),
    }
}
