//! Allocates and releases the node ports of a service.
//!
//! Source: `initNodePorts`, `updateNodePorts` and the functions beside them in `pkg/registry/core/service/storage/alloc.go`,
//! release 1.37.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::defaults::{items, structure};
use crate::kinds::services::{
    allocates_node_ports, field, may_have_node_ports, needs_health_check, node_ports, number, put, spec, text,
};
use crate::meta::field::{Error, Path};
use crate::value::Value;

use super::{AllocationError, Refusal, held_ports};

/// The node ports that can be allocated.
pub trait Ports {
    /// Takes a port.
    ///
    /// # Errors
    ///
    /// The port is taken, or outside the range.
    fn take(&mut self, port: i64) -> Result<(), Refusal>;

    /// Takes any port.
    ///
    /// # Errors
    ///
    /// No port is left.
    fn take_any(&mut self) -> Result<i64, Refusal>;

    /// Releases a port.
    fn give_back(&mut self, port: i64);
}

/// Allocates the node ports that a service needs in addition to the old ones, and releases those that it no longer has.
///
/// # Errors
///
/// A port cannot be allocated. Nothing is taken then.
pub fn allocate_node_ports(new: &mut Value, old: Option<&Value>, ports: &mut dyn Ports) -> Result<(), AllocationError> {
    match old {
        None if may_have_node_ports(new) => allocate_first(new, ports)?,
        None => {}
        Some(old) => {
            if may_have_node_ports(old) && matches!(text(new, "type"), "ExternalName" | "ClusterIP") {
                node_ports(old).into_iter().for_each(|port| ports.give_back(port));
            }
            if may_have_node_ports(new) {
                allocate_more(new, old, ports)?;
            }
        }
    }
    let was_checked = old.is_some_and(needs_health_check);
    match (was_checked, needs_health_check(new)) {
        (false, true) => allocate_health_port(new, ports),
        (true, false) => {
            let port = old.map_or(0, |old| number(spec(old), "healthCheckNodePort"));
            ports.give_back(port);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Releases all node ports of a service.
pub fn give_back_node_ports(service: &Value, ports: &mut dyn Ports) {
    held_ports(service).for_each(|port| ports.give_back(port));
}

/// Allocates the node ports of a new service: ports with the same number and different protocols share a node port.
fn allocate_first(service: &mut Value, ports: &mut dyn Ports) -> Result<(), AllocationError> {
    let allocates = allocates_node_ports(service);
    let mut asked: BTreeMap<i64, i64> = BTreeMap::new();
    for port in super::super::ports(service).iter().filter(|port| number(port, "nodePort") != 0) {
        asked.entry(number(port, "port")).or_insert(number(port, "nodePort"));
    }
    let mut shared: BTreeMap<i64, i64> = BTreeMap::new();
    for (index, port) in items(structure(service, "spec"), "ports").enumerate() {
        let (own, given) = (number(port, "port"), number(port, "nodePort"));
        if given == 0 && !allocates {
            continue;
        }
        let taken = match (shared.get(&own), asked.get(&own)) {
            (Some(shared), _) if given == 0 || given == *shared => *shared,
            (Some(_), _) => take(ports, index, given)?,
            (None, Some(asked)) => take(ports, index, *asked)?,
            (None, None) => take_any(ports)?,
        };
        shared.entry(own).or_insert(taken);
        port.make_object().insert("nodePort", Value::Int(taken));
    }
    Ok(())
}

/// Allocates the new node ports of a changed service, and releases those that it no longer has.
fn allocate_more(new: &mut Value, old: &Value, ports: &mut dyn Ports) -> Result<(), AllocationError> {
    let allocates = allocates_node_ports(new);
    let mut known: BTreeSet<i64> = node_ports(old).into_iter().collect();
    let before = known.clone();
    let mut pairs = BTreeSet::new();
    for (index, port) in items(structure(new, "spec"), "ports").enumerate() {
        let given = number(port, "nodePort");
        if given == 0 && !allocates {
            continue;
        }
        let node_port = match given {
            0 => take_any(ports)?,
            given if known.insert(given) => take(ports, index, given)?,
            given => given,
        };
        port.make_object().insert("nodePort", Value::Int(node_port));
        let protocol = port.str_at(&["protocol"]);
        if !pairs.insert((protocol.to_owned(), node_port)) {
            return Err(AllocationError::Plain(format!("duplicate nodePort: {{{protocol} {node_port}}}")));
        }
    }
    let after: BTreeSet<i64> = node_ports(new).into_iter().collect();
    before.difference(&after).for_each(|port| ports.give_back(*port));
    Ok(())
}

fn take(ports: &mut dyn Ports, index: usize, port: i64) -> Result<i64, AllocationError> {
    let refused = |why: Refusal| {
        let spec = Path::new("spec");
        let list = spec.child("ports");
        let item = list.index(index);
        AllocationError::Invalid(Error::invalid(&item.child("nodePort"), port, why.to_string()).into())
    };
    ports.take(port).map(|()| port).map_err(refused)
}

fn take_any(ports: &mut dyn Ports) -> Result<i64, AllocationError> {
    ports.take_any().map_err(|why| AllocationError::Internal(format!("failed to allocate a nodePort: {why}")))
}

/// Allocates the health check port, on which a node reports whether it takes traffic.
fn allocate_health_port(service: &mut Value, ports: &mut dyn Ports) -> Result<(), AllocationError> {
    let asked = field(service, "healthCheckNodePort").and_then(Value::as_i64).unwrap_or_default();
    let taken = match asked {
        0 => ports.take_any().map_err(|why| format!("failed to allocate a HealthCheck NodePort {asked}: {why}")),
        _ => {
            let failed = |why| format!("failed to allocate requested HealthCheck NodePort {asked}: {why}");
            ports.take(asked).map(|()| asked).map_err(failed)
        }
    };
    put(service, "healthCheckNodePort", Some(Value::Int(taken.map_err(AllocationError::Internal)?)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{DryRun, IpRange, allocate_cluster_ips};
    use super::*;
    use crate::object;
    use crate::value::yaml;

    fn service(text: &str) -> Value {
        object! {
            "metadata" => object! { "name" => "a" }, "spec" => yaml::decode(text.as_bytes()).expect("it is YAML"),
        }
    }

    /// Checks the ports of a service after allocation, with 30001 taken, or the error.
    #[track_caller]
    fn check(new: &str, old: Option<&str>, expected: &str) {
        let (mut new, old) = (service(new), old.map(service));
        let is_taken = |port| port == 30_001;
        let told = match allocate_node_ports(&mut new, old.as_ref(), &mut DryRun::new(&[], &is_taken)) {
            Ok(()) => format!("{:?} {}", node_ports(&new), number(spec(&new), "healthCheckNodePort")),
            Err(AllocationError::Invalid(errors)) => errors.aggregate(),
            Err(AllocationError::Internal(why) | AllocationError::Plain(why)) => why,
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn ports_of_one_number_share_a_node_port() {
        check(
            "{type: NodePort, ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP, nodePort: 30053}, {port: 80}]}",
            None,
            "[30053, 30053, 30054] 0",
        );
        check("{type: ClusterIP, ports: [{port: 80}]}", None, "[] 0");
        check("{type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 80}]}", None, "[] 0");
    }

    #[test]
    fn a_port_that_is_taken_is_refused() {
        let why = "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated";
        check("{type: NodePort, ports: [{port: 80, nodePort: 30001}]}", None, why);
        check("{type: NodePort, ports: [{port: 80, nodePort: 30001}]}", Some("{type: ClusterIP}"), why);
        check(
            "{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30001}",
            None,
            "failed to allocate requested HealthCheck NodePort 30001: provided port is already allocated",
        );
    }

    #[test]
    fn an_update_takes_what_is_new_alone() {
        let old = Some("{type: NodePort, ports: [{port: 80, nodePort: 30001}]}");
        check("{type: NodePort, ports: [{port: 80, nodePort: 30001}, {port: 81}]}", old, "[30001, 32769] 0");
        check(
            "{type: NodePort, ports: [{port: 80, nodePort: 30001, protocol: TCP}, \
             {port: 81, nodePort: 30001, protocol: TCP}]}",
            old,
            "duplicate nodePort: {TCP 30001}",
        );
    }

    #[test]
    fn a_dry_run_shows_the_network_instead_of_an_address() {
        let ranges = [IpRange::parse("10.0.0.0/24").expect("it is a range")];
        let told = |spec: &str| {
            let mut new = service(spec);
            match allocate_cluster_ips(&mut new, None, &mut DryRun::new(&ranges, &|_| false)) {
                Err(AllocationError::Invalid(errors)) => errors.aggregate(),
                _ => text(&new, "clusterIP").to_owned(),
            }
        };
        assert_eq!(told("{type: ClusterIP, ipFamilies: [IPv4]}"), "10.0.0.0");
        assert_eq!(
            told("{type: ClusterIP, clusterIP: 10.1.0.1, clusterIPs: [10.1.0.1], ipFamilies: [IPv4]}"),
            "spec.clusterIPs: Invalid value: [\"10.1.0.1\"]: failed to allocate IP 10.1.0.1: the provided IP (10.1.0.1) is \
             not in the valid range. The range of valid IPs is 10.0.0.0/24"
        );
    }
}
