//! The warnings for a client that writes a service.
//!
//! Source: `pkg/api/service/warnings.go`, release 1.37.

use crate::kinds::network::addresses::{address_warning, prefix_warnings};
use crate::meta::field::Path;
use crate::value::Value;

use super::validate::TOPOLOGY_HINTS;
use super::{NONE, is_external_name, text, texts};

const SPEC: Path<'static> = Path::new("spec");

/// The warnings about a service, in the reference's order.
pub fn warnings(service: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if service.at(&["metadata", "annotations", TOPOLOGY_HINTS]).is_some() {
        warnings.push(format!(
            "annotation {TOPOLOGY_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    if !matches!(text(service, "clusterIP"), "" | NONE) {
        warnings.extend(of_addresses(service, "clusterIPs"));
    }
    let is_headless = text(service, "type") == "ClusterIP" && text(service, "clusterIP") == NONE;
    let has_external_ips = !texts(service, "externalIPs").is_empty();
    if is_headless {
        warnings.extend(of_headless(service, has_external_ips));
    }
    warnings.extend(of_addresses(service, "externalIPs"));
    if has_external_ips && !is_headless && !is_external_name(service) {
        warnings.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    warnings.extend(address_warning(&SPEC.child("loadBalancerIP"), text(service, "loadBalancerIP")));
    let ranges = SPEC.child("loadBalancerSourceRanges");
    for (index, range) in texts(service, "loadBalancerSourceRanges").into_iter().enumerate() {
        warnings.extend(prefix_warnings(&ranges.index(index), range));
    }
    warnings.extend(of_name(service, has_external_ips));
    if text(service, "trafficDistribution") == "PreferClose" {
        warnings.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned());
    }
    warnings
}

fn of_addresses(service: &Value, name: &str) -> Vec<String> {
    let path = SPEC.child(name);
    let addresses = texts(service, name).into_iter().enumerate();
    addresses.filter_map(|(index, address)| address_warning(&path.index(index), address)).collect()
}

fn of_headless(service: &Value, has_external_ips: bool) -> impl Iterator<Item = String> {
    let ignored = [
        (!text(service, "loadBalancerIP").is_empty(), "spec.loadBalancerIP"),
        (has_external_ips, "spec.externalIPs"),
        (text(service, "sessionAffinity") != NONE, "spec.SessionAffinity"),
    ];
    let ignored = ignored.into_iter().filter(|(is_ignored, _)| *is_ignored);
    ignored.map(|(_, name)| format!("{name} is ignored for headless services"))
}

fn of_name(service: &Value, has_external_ips: bool) -> Option<String> {
    match (is_external_name(service), text(service, "externalName")) {
        (true, _) if has_external_ips => {
            Some("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned())
        }
        (false, name) if !name.is_empty() => {
            Some("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned())
        }
        _ => None,
    }
}
