//! The rules that hold for every node, without any binding.
//!
//! Source: `NodeRules` of `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go`, release
//! 1.36, without those that are checked for each object.

use crate::auth::rbac::{PolicyRule, RuleParts};
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;

const READ: &[&str] = &["get", "list", "watch"];

/// Verbs, groups and resources.
type NodeRule = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);

const RULES: [NodeRule; 14] = [
    (&["create"], &["authentication.k8s.io"], &["tokenreviews"]),
    (&["create"], &["authorization.k8s.io"], &["subjectaccessreviews", "localsubjectaccessreviews"]),
    (READ, &[""], &["services"]),
    (&["create", "get", "list", "watch"], &[""], &["nodes"]),
    (&["update", "patch"], &[""], &["nodes", "nodes/status"]),
    (&["create", "update", "patch"], &["", "events.k8s.io"], &["events"]),
    (READ, &[""], &["pods"]),
    (&["create", "delete"], &[""], &["pods"]),
    (&["update", "patch"], &[""], &["pods/status"]),
    (&["create"], &[""], &["pods/eviction"]),
    (&["get"], &[""], &["endpoints"]),
    (&["create", "get", "list", "watch"], &["certificates.k8s.io"], &["certificatesigningrequests"]),
    (READ, &["storage.k8s.io"], &["csidrivers"]),
    (READ, &["node.k8s.io"], &["runtimeclasses"]),
];
const OF_TRUST_BUNDLES: NodeRule = (READ, &["certificates.k8s.io"], &["clustertrustbundles"]);

/// The rules of a minor version.
pub fn rules(minor: Minor) -> Vec<PolicyRule> {
    let of_gates = Some(OF_TRUST_BUNDLES).filter(|_| minor.opens(Gate::ClusterTrustBundle));
    let rule = |(verbs, api_groups, resources)| {
        PolicyRule::new(&RuleParts { verbs, api_groups, resources, ..RuleParts::default() })
    };
    RULES.into_iter().chain(of_gates).map(rule).collect()
}
