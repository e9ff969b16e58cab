//! Allocates cluster IPs and node ports, each of which only one service can have.
//!
//! Input: a service, its old object, the ranges, and what the caller knows to be taken. Output: the service with its
//! addresses and ports, and which of them were taken or released. Nothing is written here: the caller writes them
//! together with the service, with preconditions, and retries if another request was faster.
//!
//! Source: `pkg/registry/core/service/storage/alloc.go`, `ipallocator` and `portallocator`, release 1.37.

mod dry_run;
mod ip_range;
mod node_ports;
mod port_range;

pub use dry_run::DryRun;
pub use ip_range::{IpRange, RangeError};
pub use node_ports::{Ports, allocate_node_ports, give_back_node_ports};
pub use port_range::PortRange;

use std::fmt;
use std::net::IpAddr;

use crate::kinds::network::addresses::parse_lenient;
use crate::meta::field::{Error, ErrorList, Path};
use crate::value::{Value, go_quote};

use super::families::keeps_preference;
use super::family::Family;
use super::{NONE, is_external_name, needs_health_check, number, put, spec, texts};

/// Why no address or port can be allocated for a service.
#[derive(Debug)]
pub enum AllocationError {
    /// The requested address or port cannot be allocated.
    Invalid(ErrorList),
    /// Nothing is left, or the service contradicts itself: with Kubernetes' message.
    Internal(String),
    /// The same as [`AllocationError::Internal`], but Kubernetes returns it without the reason of an internal error.
    Plain(String),
}

/// Why an address or a port cannot be taken, with Kubernetes' message.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing is left in the range.
    Full,
    /// Another Service has the address.
    AddressTaken,
    /// Another Service has the port.
    PortTaken,
    /// The address is not of the range's family.
    OtherNetwork,
    /// The address or port is outside the range; holds the message.
    OutOfRange(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Full => out.write_str("range is full"),
            Refusal::AddressTaken => out.write_str("provided IP is already allocated"),
            Refusal::PortTaken => out.write_str("provided port is already allocated"),
            Refusal::OtherNetwork => out.write_str("the provided network does not match the current range"),
            Refusal::OutOfRange(why) => out.write_str(why),
        }
    }
}

/// The addresses that can be allocated.
pub trait Addresses {
    /// Takes an address.
    ///
    /// # Errors
    ///
    /// The address is taken, or outside the ranges.
    fn take(&mut self, ip: IpAddr) -> Result<(), Refusal>;

    /// Takes any address of a family.
    ///
    /// # Errors
    ///
    /// No address is left.
    fn take_any(&mut self, family: Family) -> Result<IpAddr, Refusal>;

    /// Releases an address.
    fn give_back(&mut self, ip: IpAddr);
}

/// Allocates the cluster IPs that a service needs in addition to the old ones, and releases those that it no longer
/// has.
///
/// # Errors
///
/// An address cannot be allocated. Nothing is taken then.
pub fn allocate_cluster_ips(
    new: &mut Value,
    old: Option<&Value>,
    addresses: &mut dyn Addresses,
) -> Result<(), AllocationError> {
    let Some(old) = old.filter(|old| !is_external_name(old)) else {
        return allocate_all(new, addresses);
    };
    if keeps_preference(new, old) || texts(old, "clusterIPs").first() == Some(&NONE) {
        return Ok(());
    }
    if is_external_name(new) {
        give_back(old, addresses, 0);
        return Ok(());
    }
    match (texts(old, "ipFamilies").len(), texts(new, "ipFamilies").len()) {
        (1, 2) => allocate_from(new, addresses, 1),
        (2, 1) => {
            give_back(old, addresses, 1);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn allocate_all(service: &mut Value, addresses: &mut dyn Addresses) -> Result<(), AllocationError> {
    if is_external_name(service) || texts(service, "clusterIPs").first() == Some(&NONE) {
        return Ok(());
    }
    allocate_from(service, addresses, 0)
}

/// Allocates the cluster IPs of the families from index `first` on.
fn allocate_from(service: &mut Value, addresses: &mut dyn Addresses, first: usize) -> Result<(), AllocationError> {
    let mut ips: Vec<String> = texts(service, "clusterIPs").into_iter().map(str::to_owned).collect();
    let families: Vec<_> = texts(service, "ipFamilies").into_iter().map(Family::named).collect();
    ips.resize(ips.len().max(families.len()), String::new());
    let asked = ips.clone();
    for (index, family) in families.into_iter().enumerate().skip(first) {
        let Some(family) = family else { continue };
        let given = allocate_one(&asked[index], family, addresses);
        ips[index] = given.map_err(|why| refused(service, &asked, index, &why))?;
    }
    put(service, "clusterIP", ips.first().map(|ip| Value::from(ip.as_str())));
    put(service, "clusterIPs", Some(ips.into_iter().map(Value::String).collect::<Vec<_>>().into()));
    Ok(())
}

fn allocate_one(asked: &str, family: Family, addresses: &mut dyn Addresses) -> Result<String, Refusal> {
    if asked.is_empty() {
        return addresses.take_any(family).map(|ip| ip.to_string());
    }
    let ip = parse_lenient(asked).ok_or(Refusal::OtherNetwork)?;
    addresses.take(ip).map(|()| asked.to_owned())
}

/// The error for an address that cannot be allocated: the requested one, or any.
fn refused(service: &Value, asked: &[String], index: usize, why: &Refusal) -> AllocationError {
    let detail = match asked.get(index).map_or("", String::as_str) {
        "" if *why == Refusal::Full => {
            let name = go_quote(service.str_at(&["metadata", "name"]));
            return AllocationError::Internal(format!("failed to allocate a serviceIP for Service {name}: {why}"));
        }
        "" => format!("failed to allocate IP: {why}"),
        ip => format!("failed to allocate IP {ip}: {why}"),
    };
    let shown: Vec<Value> = asked.iter().map(|ip| Value::from(ip.as_str())).collect();
    let spec = Path::new("spec");
    AllocationError::Invalid(Error::invalid(&spec.child("clusterIPs"), shown, detail).into())
}

/// The cluster IPs in a service's spec.
pub fn held_addresses(service: &Value) -> impl Iterator<Item = IpAddr> {
    texts(service, "clusterIPs").into_iter().filter_map(parse_lenient)
}

/// The node ports in a service's spec, including the health check port.
pub fn held_ports(service: &Value) -> impl Iterator<Item = i64> {
    let health_port = needs_health_check(service).then(|| number(spec(service), "healthCheckNodePort"));
    super::node_ports(service).into_iter().chain(health_port.filter(|port| *port != 0))
}

/// Releases the cluster IPs of a service from index `first` on.
pub fn give_back(service: &Value, addresses: &mut dyn Addresses, first: usize) {
    held_addresses(service).skip(first).for_each(|ip| addresses.give_back(ip));
}
