//! The defaults that a service gets when it is read.
//!
//! Source: `pkg/apis/core/v1/defaults.go`, release 1.37.

use crate::kinds::defaults::{field, items, set, structure};
use crate::object;
use crate::value::Value;

use super::{is_balancer, is_externally_accessible, number, text};

/// How long a client stays at the same endpoint, in seconds.
const AFFINITY_SECONDS: i64 = 3 * 60 * 60;

/// Sets the defaults of fields that a client left out.
pub fn set_defaults(service: &mut Value) {
    set_affinity(structure(service, "spec"));
    let spec = structure(service, "spec");
    set(spec, "type", "ClusterIP");
    for port in items(spec, "ports") {
        set(port, "protocol", "TCP");
        let target = port.get("targetPort");
        if target.is_none_or(|target| matches!(target, Value::Null | Value::Int(0)) || target.as_str() == Some("")) {
            let number = number(port, "port");
            port.make_object().insert("targetPort", Value::Int(number));
        }
    }
    if is_externally_accessible(service) {
        set(structure(service, "spec"), "externalTrafficPolicy", "Cluster");
    }
    let is_known = matches!(text(service, "type"), "ClusterIP" | "NodePort" | "LoadBalancer");
    if is_known && super::field(service, "internalTrafficPolicy").is_none() {
        structure(service, "spec").make_object().insert("internalTrafficPolicy", Value::from("Cluster"));
    }
    if is_balancer(service) {
        set(structure(service, "spec"), "allocateLoadBalancerNodePorts", true);
        set_modes(service);
    }
}

fn set_affinity(spec: &mut Value) {
    set(spec, "sessionAffinity", "None");
    match spec.str_at(&["sessionAffinity"]) {
        "None" => _ = spec.make_object().remove("sessionAffinityConfig"),
        "ClientIP" => {
            let path = ["sessionAffinityConfig", "clientIP", "timeoutSeconds"];
            if spec.at(&path).is_none_or(Value::is_null) {
                let config = object! { "clientIP" => object! { "timeoutSeconds" => AFFINITY_SECONDS } };
                spec.make_object().insert("sessionAffinityConfig", config);
            }
        }
        _ => {}
    }
}

/// Sets the mode of a load balancer's addresses: `VIP` by default.
fn set_modes(service: &mut Value) {
    let Some(balancer) = field(service, "status").and_then(|status| field(status, "loadBalancer")) else { return };
    for item in items(balancer, "ingress") {
        if !item.str_at(&["ip"]).is_empty() && field(item, "ipMode").is_none() {
            item.make_object().insert("ipMode", Value::from("VIP"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[track_caller]
    fn check(given: &str, expected: &str) {
        let yaml = |text: &str| yaml::decode(text.as_bytes()).expect("it is YAML");
        let mut service = yaml(given);
        set_defaults(&mut service);
        assert_eq!(service, yaml(expected));
    }

    #[test]
    fn a_service_is_of_the_type_cluster_ip() {
        check(
            "{spec: {ports: [{port: 80}, {port: 53, targetPort: dns, protocol: UDP}]}}",
            "{spec: {type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster, ports: \
             [{port: 80, targetPort: 80, protocol: TCP}, {port: 53, targetPort: dns, protocol: UDP}]}}",
        );
    }

    #[test]
    fn types_have_defaults_of_their_own() {
        check(
            "{spec: {type: LoadBalancer, sessionAffinity: ClientIP}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}",
            "{spec: {type: LoadBalancer, sessionAffinity: ClientIP, allocateLoadBalancerNodePorts: true, \
             sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}, externalTrafficPolicy: Cluster, \
             internalTrafficPolicy: Cluster}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4, ipMode: VIP}]}}}",
        );
        check(
            "{spec: {type: ExternalName, sessionAffinityConfig: {}}}",
            "{spec: {type: ExternalName, sessionAffinity: None}}",
        );
    }
}
