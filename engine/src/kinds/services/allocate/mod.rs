//! What services are allocated of what there is once: cluster IPs and node ports.
//!
//! In: a service, the one before it, the ranges, and what the caller knows to be taken. Out: the service with its addresses
//! and ports, and which of them are now its own or no longer. Nothing is written here: the caller writes them together with
//! the service, under guards, and starts over where another was faster.
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

/// Why a service gets no address or port.
#[derive(Debug)]
pub enum AllocationError {
    /// What it asks for can't be.
    Invalid(ErrorList),
    /// There is nothing left, or the service contradicts itself: in Kubernetes' words.
    Internal(String),
    /// [`AllocationError::Internal`] that Kubernetes does not call so.
    Plain(String),
}

/// Why an address or a port is not to be had, in Kubernetes' words.
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
    /// The address or port is not within the range, which is told.
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

/// Addresses that are to be had.
pub trait Addresses {
    /// Takes an address.
    ///
    /// # Errors
    ///
    /// It is taken, or out of the ranges.
    fn take(&mut self, ip: IpAddr) -> Result<(), Refusal>;

    /// Takes any address of a family.
    ///
    /// # Errors
    ///
    /// None is left.
    fn take_any(&mut self, family: Family) -> Result<IpAddr, Refusal>;

    /// Gives an address back.
    fn give_back(&mut self, ip: IpAddr);
}

/// Allocates the cluster IPs that a service is to have beyond those of the old one, and gives back those that it has no more.
///
/// # Errors
///
/// An address that can't be had; nothing is taken then.
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

/// Allocates the cluster IPs of the families from the one at `first` on.
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

/// What is told of an address that is not to be had: the one that was asked for, or any.
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

/// The cluster IPs that a service says that it has.
pub fn held_addresses(service: &Value) -> impl Iterator<Item = IpAddr> {
    texts(service, "clusterIPs").into_iter().filter_map(parse_lenient)
}

/// The node ports that a service says that it has.
pub fn held_ports(service: &Value) -> impl Iterator<Item = i64> {
    let health_port = needs_health_check(service).then(|| number(spec(service), "healthCheckNodePort"));
    super::node_ports(service).into_iter().chain(health_port.filter(|port| *port != 0))
}

/// Gives back the cluster IPs of a service from the one at `first` on.
pub fn give_back(service: &Value, addresses: &mut dyn Addresses, first: usize) {
    held_addresses(service).skip(first).for_each(|ip| addresses.give_back(ip));
}
