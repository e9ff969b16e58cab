//! Dependent fields in an update of a service: fields that a client left out keep their values, and fields that the new
//! type does not have are removed.
//!
//! Source: `pkg/registry/core/service/strategy.go` and `storage/storage.go`, release 1.37.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::defaults::{items, structure};
use crate::value::Value;

use super::{
    allocates_node_ports, field, is_balancer, is_external_name, is_externally_accessible, is_same, may_have_node_ports,
    needs_health_check, node_ports, number, put, spec, text,
};

/// Aligns a service's fields with its old object and with each other, before addresses and ports are allocated.
pub fn align(new: &mut Value, old: Option<&Value>) {
    if let Some(old) = old {
        keep_allocated(new, old);
    }
    set_cluster_ips(new, old);
}

/// Copies what was allocated for the old service to fields that the new one leaves out, so that the same manifest can
/// be sent again.
fn keep_allocated(new: &mut Value, old: &Value) {
    if !is_external_name(old) && !is_external_name(new) {
        if text(new, "clusterIP").is_empty() && !text(old, "clusterIP").is_empty() {
            put(new, "clusterIP", field(old, "clusterIP").cloned());
        }
        let (given, kept) = (spec(new).items_at(&["clusterIPs"]), spec(old).items_at(&["clusterIPs"]));
        if given.is_empty() && !kept.is_empty() {
            put(new, "clusterIPs", Some(kept.to_vec().into()));
        }
    }
    if allocates_node_ports(old) && allocates_node_ports(new) {
        keep_node_ports(new, old);
    }
    let both_are_checked = needs_health_check(old) && needs_health_check(new);
    if both_are_checked && number(spec(new), "healthCheckNodePort") == 0 {
        put(new, "healthCheckNodePort", field(old, "healthCheckNodePort").cloned());
    }
}

/// Gives a port without a node port that of the old port of the same name, unless another port has it now.
fn keep_node_ports(new: &mut Value, old: &Value) {
    let given: BTreeSet<i64> = node_ports(new).into_iter().collect();
    let by_name: BTreeMap<&str, i64> =
        super::ports(old).iter().map(|port| (port.str_at(&["name"]), number(port, "nodePort"))).collect();
    for port in items(structure(new, "spec"), "ports") {
        let kept = by_name.get(port.str_at(&["name"])).copied().unwrap_or_default();
        if number(port, "nodePort") == 0 && kept != 0 && !given.contains(&kept) {
            port.make_object().insert("nodePort", Value::Int(kept));
        }
    }
}

/// Aligns the list of cluster IPs with the single one, the only field that older clients know.
fn set_cluster_ips(new: &mut Value, old: Option<&Value>) {
    let list = |service: &Value| spec(service).items_at(&["clusterIPs"]).to_vec();
    let single = text(new, "clusterIP").to_owned();
    let of_single = || Value::Array(vec![Value::from(single.as_str())]);
    let Some(old) = old else {
        if !single.is_empty() && list(new).is_empty() {
            put(new, "clusterIPs", Some(of_single()));
        }
        return;
    };
    let single_was = text(old, "clusterIP");
    if single == single_was {
        if list(new).is_empty() && !list(old).is_empty() {
            put(new, "clusterIPs", Some(list(old).into()));
        }
    } else if list(new) == list(old) {
        // The single address was cleared, or set by a client that sends back the old list.
        let is_cleared = single.is_empty() && !single_was.is_empty();
        put(new, "clusterIPs", (!is_cleared).then(of_single));
    }
}

/// Removes the fields that the new type does not have, if the client left them unchanged.
pub fn drop_dependent_fields(new: &mut Value, old: &Value) {
    if !is_external_name(old) && is_external_name(new) {
        drop_addresses(new, old);
    }
    let had_ports: BTreeSet<i64> = node_ports(old).into_iter().collect();
    if may_have_node_ports(old)
        && !may_have_node_ports(new)
        && node_ports(new).iter().all(|port| had_ports.contains(port))
    {
        for port in items(structure(new, "spec"), "ports") {
            port.make_object().remove("nodePort");
        }
    }
    let of_type: [(&str, bool); 4] = [
        ("healthCheckNodePort", needs_health_check(old) && !needs_health_check(new)),
        ("allocateLoadBalancerNodePorts", is_balancer(old) && !is_balancer(new)),
        ("loadBalancerClass", is_balancer(old) && !is_balancer(new)),
        ("externalTrafficPolicy", is_externally_accessible(old) && !is_externally_accessible(new)),
    ];
    for (name, is_lost) in of_type {
        if is_lost && is_same(new, old, name) {
            put(new, name, None);
        }
    }
}

/// Completes a valid service for reading: sets the list of cluster IPs, and removes the internal traffic policy of an
/// external name, which Kubernetes once set.
pub fn complete(service: &mut Value) {
    set_cluster_ips(service, None);
    if is_external_name(service) {
        put(service, "internalTrafficPolicy", None);
    }
}

fn drop_addresses(new: &mut Value, old: &Value) {
    if is_same(new, old, "clusterIP") && is_same(new, old, "clusterIPs") {
        put(new, "clusterIP", None);
        put(new, "clusterIPs", None);
    }
    for name in ["ipFamilies", "ipFamilyPolicy"] {
        if is_same(new, old, name) {
            put(new, name, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::value::yaml;

    /// Checks the spec of a new service after `change`, given that of the old one.
    #[track_caller]
    fn check(change: fn(&mut Value, &Value), new: &str, old: &str, expected: &str) {
        let service = |text: &str| object! { "spec" => yaml::decode(text.as_bytes()).expect("it is YAML") };
        let mut changed = service(new);
        change(&mut changed, &service(old));
        assert_eq!(changed, service(expected));
    }

    #[test]
    fn what_was_allocated_stays_where_it_is_left_out() {
        check(
            keep_allocated,
            "{type: NodePort, ports: [{name: a}, {name: b, nodePort: 30001}, {name: c}]}",
            "{type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{name: a, nodePort: 30001}, \
             {name: c, nodePort: 30003}]}",
            "{type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{name: a}, \
             {name: b, nodePort: 30001}, {name: c, nodePort: 30003}]}",
        );
    }

    #[test]
    fn the_list_follows_the_single_address() {
        let update = |new: &mut Value, old: &Value| set_cluster_ips(new, Some(old));
        check(
            update,
            "{clusterIP: b, clusterIPs: [a]}",
            "{clusterIP: a, clusterIPs: [a]}",
            "{clusterIP: b, clusterIPs: [b]}",
        );
        check(update, "{clusterIPs: [a]}", "{clusterIP: a, clusterIPs: [a]}", "{}");
        check(update, "{clusterIP: a}", "{clusterIP: a, clusterIPs: [a]}", "{clusterIP: a, clusterIPs: [a]}");
        check(update, "{clusterIP: b}", "{clusterIP: a, clusterIPs: [a]}", "{clusterIP: b}");
        let create = |new: &mut Value, _: &Value| set_cluster_ips(new, None);
        check(create, "{clusterIP: None}", "{}", "{clusterIP: None, clusterIPs: [None]}");
    }

    #[test]
    fn a_type_takes_its_fields_with_it() {
        check(
            drop_dependent_fields,
            "{type: ExternalName, clusterIP: a, clusterIPs: [a], ipFamilies: [IPv4], ipFamilyPolicy: PreferDualStack, \
             externalTrafficPolicy: Local, ports: [{nodePort: 30001}]}",
            "{type: NodePort, clusterIP: a, clusterIPs: [a], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, \
             externalTrafficPolicy: Local, ports: [{nodePort: 30001}]}",
            "{type: ExternalName, ipFamilyPolicy: PreferDualStack, ports: [{}]}",
        );
        check(
            drop_dependent_fields,
            "{type: ClusterIP, healthCheckNodePort: 30002, loadBalancerClass: b, ports: [{nodePort: 30005}]}",
            "{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30001, loadBalancerClass: b, ports: []}",
            "{type: ClusterIP, healthCheckNodePort: 30002, ports: [{nodePort: 30005}]}",
        );
    }
}
