//! IPAddress objects, which record that a service has a cluster IP.

use std::net::IpAddr;

use super::Family;
use crate::object;
use crate::value::Value;

const MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
const ALLOCATOR: &str = "ipallocator.k8s.io";

/// Makes the object that records that a service has the address.
pub fn of_service(ip: IpAddr, namespace: &str, name: &str) -> Value {
    let family = if ip.is_ipv4() { Family::V4 } else { Family::V6 };
    let labels = object! { "ipaddress.kubernetes.io/ip-family" => family.name(), MANAGED_BY => ALLOCATOR };
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

/// Whether an IPAddress belongs to this service.
pub fn is_of_service(address: &Value, namespace: &str, name: &str) -> bool {
    let parent = |field: &str| address.str_at(&["spec", "parentRef", field]);
    (parent("group"), parent("resource"), parent("namespace"), parent("name")) == ("", "services", namespace, name)
}
