//! Services: the rules for their fields taken together.
//!
//! A service is a union of types that share fields: which of them a type may have, which get defaults, and which are
//! removed when the type changes. Input: services as a typed decode returns them. Output: changed services, field
//! errors, warnings, columns. Cluster IPs and node ports are allocated in [`allocate`], given what the caller knows to
//! be taken.
//!
//! Source: `pkg/registry/core/service`, `pkg/api/service` and `pkg/apis/core/validation`, release 1.37.

pub mod addresses;
pub mod allocate;
pub mod ranges;
mod cluster_ips;
mod columns;
mod defaults;
mod family;
mod families;
mod transition;
mod validate;
mod warnings;

pub use cluster_ips::check_cluster_ips;
pub use columns::table;
pub use defaults::set_defaults;
pub use families::{Families, settle_families};
pub use family::Family;
pub use transition::{align, complete, drop_dependent_fields};
pub use validate::{validate_create, validate_status_update, validate_update};
pub use warnings::warnings;

use crate::value::Value;

/// The cluster IP of a headless service.
pub const NONE: &str = "None";

/// The spec of a service.
fn spec(service: &Value) -> &Value {
    service.get("spec").unwrap_or(&Value::Null)
}

/// A field of the spec, for reading.
fn field<'v>(service: &'v Value, name: &str) -> Option<&'v Value> {
    spec(service).get(name).filter(|value| !value.is_null())
}

/// A string field of the spec; empty if it is absent.
fn text<'v>(service: &'v Value, name: &str) -> &'v str {
    spec(service).str_at(&[name])
}

/// The strings in a list of the spec.
fn texts<'v>(service: &'v Value, name: &str) -> Vec<&'v str> {
    spec(service).items_at(&[name]).iter().map(|item| item.as_str().unwrap_or_default()).collect()
}

/// The ports of a service.
pub fn ports(service: &Value) -> &[Value] {
    spec(service).items_at(&["ports"])
}

/// A number in a port; 0 if it is absent.
fn number(port: &Value, name: &str) -> i64 {
    port.get(name).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether a field of the spec is equal in two services; null is equal to absent.
fn is_same(new: &Value, old: &Value, name: &str) -> bool {
    field(new, name) == field(old, name)
}

/// Sets a field of the spec, or removes it.
fn put(service: &mut Value, name: &str, value: Option<Value>) {
    let spec = service.make_object().entry("spec").make_object();
    match value {
        Some(value) => _ = spec.insert(name, value),
        None => _ = spec.remove(name),
    }
}

/// Whether the service's type is `ExternalName`.
pub fn is_external_name(service: &Value) -> bool {
    text(service, "type") == "ExternalName"
}

fn is_balancer(service: &Value) -> bool {
    text(service, "type") == "LoadBalancer"
}

/// Whether a service of this type can have node ports.
fn may_have_node_ports(service: &Value) -> bool {
    matches!(text(service, "type"), "NodePort" | "LoadBalancer")
}

/// Whether node ports are allocated if none are specified.
fn allocates_node_ports(service: &Value) -> bool {
    match text(service, "type") {
        "NodePort" => true,
        "LoadBalancer" => field(service, "allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        _ => false,
    }
}

/// Whether the service has a health check, by which a balancer learns which nodes take traffic.
fn needs_health_check(service: &Value) -> bool {
    is_balancer(service) && text(service, "externalTrafficPolicy") == "Local"
}

/// Whether the service is reachable from outside the cluster.
fn is_externally_accessible(service: &Value) -> bool {
    let has_external_ips = || !spec(service).items_at(&["externalIPs"]).is_empty();
    may_have_node_ports(service) || (text(service, "type") == "ClusterIP" && has_external_ips())
}

/// Whether the service is headless.
fn is_headless(service: &Value) -> bool {
    texts(service, "clusterIPs") == [NONE]
}

fn has_selector(service: &Value) -> bool {
    field(service, "selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty())
}

/// The node ports that are set, in the order of the ports.
pub fn node_ports(service: &Value) -> Vec<i64> {
    ports(service).iter().map(|port| number(port, "nodePort")).filter(|port| *port != 0).collect()
}
