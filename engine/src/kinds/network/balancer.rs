//! The state of load balancers, which services and ingresses have.
//!
//! Source: `pkg/apis/core/validation` and `pkg/apis/networking/validation`, release 1.37.

use std::collections::BTreeSet;

use crate::kinds::checks::named;
use crate::meta::field::{ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::names::is_dns1123_subdomain;
use crate::value::Value;

use super::addresses::{address_warning, check_address, parse_lenient};

/// The addresses of a balancer, item by item; `check_mode` is called for each item after its address.
pub fn check_balancer(
    minor: Minor,
    ingress: &FieldRef<'_>,
    old: &[Value],
    check_mode: impl Fn(&FieldRef<'_>) -> ErrorList,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for item in ingress.items() {
        let (ip, hostname) = (item.field("ip"), item.field("hostname"));
        if !ip.text().is_empty() {
            let known = old.iter().map(|item| item.str_at(&["ip"]));
            errors.extend(check_address(minor, ip.path(), ip.text(), known));
        }
        errors.extend(check_mode(&item));
        if !hostname.text().is_empty() {
            errors.extend(named(&hostname, is_dns1123_subdomain));
            if parse_lenient(hostname.text()).is_some() {
                errors.push(hostname.invalid("must be a DNS name, not an IP address"));
            }
        }
    }
    errors
}

/// Warnings of the addresses in the state of a balancer.
pub fn ingress_warnings(object: &Value) -> Vec<String> {
    let status = Path::new("status");
    let balancer = status.child("loadBalancer");
    let path = balancer.child("ingress");
    let items = object.items_at(&["status", "loadBalancer", "ingress"]).iter().enumerate();
    items.filter_map(|(index, item)| address_warning(&path.index(index), item.str_at(&["ip"]))).collect()
}

/// Addresses and names of a balancer, each once and sorted, as a column shows them.
pub fn shown_addresses(object: &Value) -> String {
    let items = object.items_at(&["status", "loadBalancer", "ingress"]).iter();
    let shown = |item: &Value| match item.str_at(&["ip"]) {
        "" => item.str_at(&["hostname"]).to_owned(),
        ip => ip.to_owned(),
    };
    let addresses: BTreeSet<String> = items.map(shown).filter(|text| !text.is_empty()).collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}
