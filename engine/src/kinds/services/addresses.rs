//! IPAddress objects, which record that a service has a cluster IP.

use std::net::IpAddr;

use super::Family;
use crate::object;
use crate::value::Value;

const FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const ALLOCATOR: &str = "ipallocator.k8s.io";

/// Makes the object that records that a service has the address.
pub fn of_service(ip: IpAddr, namespace: &str, name: &str) -> Value {
    let labels = object! { FAMILY => family(ip).name(), MANAGED_BY => ALLOCATOR };
    let parent = object! { "resource" => "services", "namespace" => namespace, "name" => name };
    object! {
        "apiVersion" => "networking.k8s.io/v1",
        "kind" => "IPAddress",
        "metadata" => object! { "name" => ip.to_string(), "labels" => labels },
        "spec" => object! { "parentRef" => parent },
    }
}

/// Whether the server allocated the address, instead of someone else creating the object.
pub fn is_managed(address: &Value) -> bool {
    address.str_at(&["metadata", "labels", MANAGED_BY]) == ALLOCATOR
}

/// Whether it has the labels of an address that the server has allocated.
pub fn has_labels(address: &Value, ip: IpAddr) -> bool {
    is_managed(address) && address.str_at(&["metadata", "labels", FAMILY]) == family(ip).name()
}

/// The family of an address.
pub fn family(ip: IpAddr) -> Family {
    if ip.is_ipv4() { Family::V4 } else { Family::V6 }
}

/// The namespace and the name of the service that an IPAddress belongs to; `None` if it belongs to something else.
pub fn service_of(address: &Value) -> Option<(&str, &str)> {
    let parent = |field: &str| address.str_at(&["spec", "parentRef", field]);
    let is_service = (parent("group"), parent("resource")) == ("", "services");
    is_service.then(|| (parent("namespace"), parent("name")))
}

/// Whether an IPAddress belongs to this service.
pub fn is_of_service(address: &Value, namespace: &str, name: &str) -> bool {
    service_of(address) == Some((namespace, name))
}
