//! Services of the type LoadBalancer get an address, as a cloud would give them one.
//!
//! Nothing listens there. Each has an address of its own, of those behind [`BASE_IPV4`] and [`BASE_IPV6`], for as long as it is
//! of this type; one that names an address (`spec.loadBalancerIP`) has that, unless another has it: then it waits. The addresses of a
//! number, one of each family, go together: no two services have one each. A service of another class (`spec.loadBalancerClass`) is
//! left to others until it goes or is of another type.
//!
//! Source: `k8s.io/cloud-provider/controllers/service` of Kubernetes 1.37.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client::{Client, is_going, read};
use super::finalizers;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::services::SERVICES;
use super::workload::{Means, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{Collection, FeedEntry};
use crate::value::Value;

/// The finalizer of services that have an address.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
const TYPE: &str = "LoadBalancer";
/// What the number of a service is added to. Numbers begin at 1: no service has this address itself.
const BASE_IPV4: u32 = u32::from_be_bytes([172, 30, 0, 0]);
/// As [`BASE_IPV4`].
const BASE_IPV6: u128 = 0xfd1e_0000_0000_0000_0000_0000_0000_0000;
/// The last number: that of the last address but one of `172.30.0.0/16`.
const NUMBER_MAX: u16 = u16::MAX - 1;

struct LoadBalancers {
    client: Client,
    pool: Mutex<Pool>,
}

/// What is taken by a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// The addresses that are made of a number.
    Number(u16),
    /// An address that no number makes.
    Elsewhere(IpAddr),
}

impl Place {
    fn of(address: IpAddr) -> Self {
        let number = match address {
            IpAddr::V4(address) => u32::from(address).checked_sub(BASE_IPV4).map(u128::from),
            IpAddr::V6(address) => u128::from(address).checked_sub(BASE_IPV6),
        };
        let number = number.and_then(|number| u16::try_from(number).ok());
        number.filter(|number| (1..=NUMBER_MAX).contains(number)).map_or(Place::Elsewhere(address), Place::Number)
    }

    fn number(self) -> Option<u16> {
        match self {
            Place::Number(number) => Some(number),
            Place::Elsewhere(_) => None,
        }
    }
}

/// The places of services: no two have the same.
#[derive(Default)]
struct Pool {
    places: BTreeMap<String, Place>,
    // INVARIANT: the values of `places`.
    taken: BTreeSet<Place>,
}

/// Why a service has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    AllTaken,
    /// The one that it names is another's, or goes with one that is.
    Taken(IpAddr),
}

impl fmt::Display for Lack {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::AllTaken => write!(out, "no address is left"),
            Lack::Taken(address) => match Place::of(*address) {
                Place::Elsewhere(address) => write!(out, "another service has the address {address}"),
                Place::Number(number) => {
                    let (ipv4, ipv6) = (ipv4_of(number), ipv6_of(number));
                    write!(out, "another service has one or both of {ipv4} and {ipv6}, which go together")
                }
            },
        }
    }
}

impl Pool {
    fn release(&mut self, key: &str) {
        if let Some(place) = self.places.remove(key) {
            self.taken.remove(&place);
        }
    }

    /// Takes a place for a service, instead of the one that it had; not one that another has.
    fn claim(&mut self, key: &str, place: Place) -> bool {
        if self.places.get(key) == Some(&place) {
            return true;
        }
        if !self.taken.insert(place) {
            return false;
        }
        if let Some(old) = self.places.insert(key.to_owned(), place) {
            self.taken.remove(&old);
        }
        true
    }

    /// Takes in how a service is stored now.
    fn note(&mut self, key: &str, service: &Value) {
        let said = place_of(service);
        let named = named_address(service).map(Place::of);
        // One that has just been given the address that it names does not say so yet, and keeps it.
        let is_outdated = named.is_some() && named.as_ref() != self.places.get(key);
        if !is_concerned(service) || (is_outdated && named != said) {
            self.release(key);
        } else if is_wanted(service)
            && let Some(place) = said.filter(|place| named.is_some() || place.number().is_some())
        {
            self.claim(key, place);
        }
    }

    /// The addresses of a service: the one that it names, or one of each of its families.
    fn addresses_of(&mut self, key: &str, service: &Value) -> Result<Vec<IpAddr>, Lack> {
        match named_address(service) {
            Some(named) if self.claim(key, Place::of(named)) => Ok(vec![named]),
            Some(named) => Err(Lack::Taken(named)),
            None => {
                let number = self.number_of(key).ok_or(Lack::AllTaken)?;
                Ok(made_addresses(service, number))
            }
        }
    }

    /// The number of a service, which it keeps; `None` where all are taken.
    fn number_of(&mut self, key: &str) -> Option<u16> {
        if let Some(number) = self.places.get(key).and_then(|place| place.number()) {
            return Some(number);
        }
        // Numbers come before other places.
        let numbers = self.taken.iter().map_while(|place| place.number());
        let free = (1..=NUMBER_MAX).zip(numbers.chain([0])).find(|(free, used)| free != used);
        let number = free.map_or(NUMBER_MAX, |(free, _)| free);
        self.claim(key, Place::Number(number)).then_some(number)
    }
}

fn is_balanced(service: &Value) -> bool {
    service.str_at(&["spec", "type"]) == TYPE
}

/// Whether a service is to have an address of this controller.
fn is_wanted(service: &Value) -> bool {
    is_balanced(service) && service.str_at(&["spec", "loadBalancerClass"]).is_empty()
}

/// Whether a service has the finalizer for no longer than until it is looked at.
fn needs_cleanup(service: &Value) -> bool {
    finalizers::has(service, FINALIZER) && (is_going(service) || !is_balanced(service))
}

/// Whether there may be something to do for a service.
fn is_concerned(service: &Value) -> bool {
    is_wanted(service) || needs_cleanup(service)
}

/// The place of the first address in the status of a service.
fn place_of(service: &Value) -> Option<Place> {
    let first = service.items_at(&["status", "loadBalancer", "ingress"]).first()?;
    first.str_at(&["ip"]).parse().ok().map(Place::of)
}

/// The address that a service names; `None` where it names none, or one that can't be read.
///
/// One of IPv4 inside IPv6 is the one of IPv4: the status must not have it otherwise.
fn named_address(service: &Value) -> Option<IpAddr> {
    let named: IpAddr = service.str_at(&["spec", "loadBalancerIP"]).parse().ok()?;
    Some(named.to_canonical())
}

fn ipv4_of(number: u16) -> Ipv4Addr {
    Ipv4Addr::from(BASE_IPV4 + u32::from(number))
}

fn ipv6_of(number: u16) -> Ipv6Addr {
    Ipv6Addr::from(BASE_IPV6 + u128::from(number))
}

/// The addresses of a number: one of each family of the service.
fn made_addresses(service: &Value, number: u16) -> Vec<IpAddr> {
    let of_family = |family: &Value| match family.as_str() {
        Some("IPv6") => IpAddr::from(ipv6_of(number)),
        _ => IpAddr::from(ipv4_of(number)),
    };
    service.items_at(&["spec", "ipFamilies"]).iter().map(of_family).collect()
}

/// Addresses as the status has them.
fn ingress(addresses: &[IpAddr]) -> Value {
    Value::Array(addresses.iter().map(|ip| object! { "ip" => ip.to_string(), "ipMode" => "VIP" }).collect())
}

/// Whether the status of a service has these addresses. `ipMode` is not looked at: where its gate is shut, it is dropped.
fn has_addresses(service: &Value, addresses: &[IpAddr]) -> bool {
    let said = service.items_at(&["status", "loadBalancer", "ingress"]).iter();
    said.map(|ingress| ingress.str_at(&["ip"])).eq(addresses.iter().map(IpAddr::to_string))
}

impl LoadBalancers {
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a service its addresses. Where it gets none it is tried again: no change of this service says that one is free.
    async fn ensure(&self, key: &str, service: Value) -> Result<Progress, Status> {
        let found = self.pool().addresses_of(key, &service);
        let addresses = match found {
            Ok(addresses) => addresses,
            Err(lack) => {
                let message = format!("Error syncing load balancer: {lack}");
                self.client.tell_warning(&service, "SyncLoadBalancerFailed", message);
                return Ok(Progress::Failed);
            }
        };
        let is_held = finalizers::has(&service, FINALIZER);
        if is_held && has_addresses(&service, &addresses) {
            return Ok(Progress::Done);
        }
        self.client.tell_normal(&service, "EnsuringLoadBalancer", "Ensuring load balancer".to_owned());
        let service =
            if is_held { service } else { finalizers::add(&self.client, SERVICES, &service, FINALIZER).await? };
        self.client.tell_normal(&service, "EnsuredLoadBalancer", "Ensured load balancer".to_owned());
        self.say(service, object! { "ingress" => ingress(&addresses) }).await?;
        Ok(Progress::Done)
    }

    /// Takes the address of a service that is not of this type any more, or goes.
    async fn take(&self, service: Value) -> Result<Progress, Status> {
        self.client.tell_normal(&service, "DeletingLoadBalancer", "Deleting load balancer".to_owned());
        let service = if is_going(&service) { service } else { self.say(service, object! {}).await? };
        let service = finalizers::remove(&self.client, SERVICES, &service, FINALIZER).await?;
        self.client.tell_normal(&service, "DeletedLoadBalancer", "Deleted load balancer".to_owned());
        Ok(Progress::Done)
    }

    /// Writes the addresses of a service into its status, unless they are there; returns it as it is then.
    async fn say(&self, service: Value, balancer: Value) -> Result<Value, Status> {
        let mut status = service.get("status").cloned().unwrap_or_default();
        status.make_object().insert("loadBalancer", balancer);
        if service.get("status") == Some(&status) {
            return Ok(service);
        }
        self.client.write_status(SERVICES, &service, status).await
    }
}

impl Reconciler for LoadBalancers {
    const TASK: &str = "giving services addresses of load balancers";

    fn collections(&self) -> Vec<Collection> {
        vec![SERVICES.collection()]
    }

    fn forget(&self) {
        *self.pool() = Pool::default();
    }

    fn note(&self, change: &FeedEntry) -> Vec<String> {
        if !SERVICES.is(&change.collection) {
            return Vec::new();
        }
        // One that is gone is looked at, too: it may be given a number at this moment.
        let Some(stored) = &change.stored else { return vec![change.key.to_string()] };
        let Ok(service) = read(stored) else { return Vec::new() };
        self.pool().note(&change.key, &service);
        is_concerned(&service).then(|| change.key.to_string()).into_iter().collect()
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        match self.client.get(SERVICES, key).await? {
            Some(service) if needs_cleanup(&service) => self.take(service).await,
            Some(service) if is_wanted(&service) && !is_going(&service) => self.ensure(key, service).await,
            _ => {
                self.pool().release(key);
                Ok(Progress::Done)
            }
        }
    }
}

/// Starts it.
pub(super) fn start(means: &Means) -> Running {
    let balancers = LoadBalancers { client: means.client("service-controller"), pool: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&means.registry), balancers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read_yaml(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn the_first_free_number_is_given() {
        let mut pool = Pool::default();
        pool.claim("d/b", Place::Number(2));
        assert_eq!((pool.number_of("d/a"), pool.number_of("d/c"), pool.number_of("d/b")), (Some(1), Some(3), Some(2)));
        pool.release("d/a");
        assert_eq!((pool.number_of("d/e"), pool.number_of("d/f")), (Some(1), Some(4)));
    }

    #[test]
    fn a_number_that_is_free_again_is_given_where_all_were_taken() {
        let mut pool = Pool::default();
        (1..=NUMBER_MAX).for_each(|number| _ = pool.claim(&number.to_string(), Place::Number(number)));
        let service = read_yaml("spec: {type: LoadBalancer, ipFamilies: [IPv4]}");
        assert_eq!(pool.addresses_of("d/a", &service), Err(Lack::AllTaken));
        pool.release("256");
        assert_eq!(pool.addresses_of("d/a", &service), Ok(vec![IpAddr::from([172, 30, 1, 0])]));
    }

    #[test]
    fn who_writes_the_status_of_a_service_takes_one_number_at_most() {
        let mut pool = Pool::default();
        let service = |ip: &str, rest: &str| {
            read_yaml(&format!(
                "spec: {{type: LoadBalancer, ipFamilies: [IPv4]{rest}}}\nstatus: {{loadBalancer: {{ingress: [{{ip: {ip}}}]}}}}"
            ))
        };
        for last in 1..=9 {
            pool.note("d/a", &service(&format!("172.30.0.{last}"), ""));
        }
        assert_eq!((pool.taken.len(), pool.number_of("d/a")), (1, Some(9)));
        // The number of another stays with it.
        pool.note("d/b", &service("172.30.0.9", ""));
        assert_eq!((pool.taken.len(), pool.number_of("d/b")), (1, Some(1)));
        for other in [", loadBalancerIP: 1.2.3.4", ", loadBalancerClass: example.com/b"] {
            pool.note("d/b", &service("172.30.0.1", other));
            assert_eq!((pool.taken.len(), pool.places.len()), (1, 1), "{other}");
        }
    }

    #[test]
    fn a_service_has_an_address_of_each_of_its_families_or_the_one_that_it_names() {
        let mut pool = Pool::default();
        pool.claim("d/a", Place::Number(7));
        let mut check = |spec: &str, expected: &[&str]| {
            let addresses = pool.addresses_of("d/a", &read_yaml(&format!("spec: {{{spec}}}"))).expect("one is left");
            assert_eq!(addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>(), expected, "{spec}");
        };
        check("ipFamilies: [IPv4, IPv6]", &["172.30.0.7", "fd1e::7"]);
        check("ipFamilies: [IPv4], loadBalancerIP: 1.2.3.4", &["1.2.3.4"]);
        // The status must not have these as they are written.
        check("ipFamilies: [IPv4], loadBalancerIP: '::ffff:1.2.3.4'", &["1.2.3.4"]);
        check("ipFamilies: [IPv6], loadBalancerIP: 'FD00:0::1'", &["fd00::1"]);
        // What is not an address names none; the number was given up for the others.
        check("ipFamilies: [IPv4], loadBalancerIP: 01.2.3.4", &["172.30.0.1"]);
    }

    #[test]
    fn an_address_that_is_named_is_given_to_one_service() {
        let mut pool = Pool::default();
        let named =
            |ip: &str| read_yaml(&format!("spec: {{type: LoadBalancer, ipFamilies: [IPv4], loadBalancerIP: {ip}}}"));
        let given = |ip: &str| {
            let mut service = named(ip);
            service.make_object().insert("status", read_yaml(&format!("loadBalancer: {{ingress: [{{ip: {ip}}}]}}")));
            service
        };
        // One of the range, which is nobody's number then, and one beside it.
        for ip in ["172.30.0.1", "192.0.2.1"] {
            let address: IpAddr = ip.parse().expect("an address");
            assert_eq!(pool.addresses_of("d/a", &named(ip)), Ok(vec![address]));
            assert_eq!(pool.addresses_of("d/b", &named(ip)), Err(Lack::Taken(address)));
            // Its finalizer is stored before its status.
            pool.note("d/a", &named(ip));
            assert_eq!(pool.addresses_of("d/b", &named(ip)), Err(Lack::Taken(address)));
            pool.note("d/a", &given(ip));
            assert_eq!(pool.addresses_of("d/b", &named(ip)), Err(Lack::Taken(address)));
            assert_eq!(pool.number_of("d/c"), Some(2));
            pool.release("d/a");
            assert_eq!(pool.addresses_of("d/b", &named(ip)), Ok(vec![address]));
            pool.release("d/b");
        }
    }

    #[test]
    fn who_names_an_address_that_goes_with_one_of_another_is_told_so() {
        let mut pool = Pool::default();
        let named = |ip: &str| read_yaml(&format!("spec: {{type: LoadBalancer, loadBalancerIP: '{ip}'}}"));
        let mut check = |first: &str, second: &str, expected: &str| {
            pool.addresses_of("d/a", &named(first)).expect("nobody has it");
            let lack = pool.addresses_of("d/b", &named(second)).expect_err("it is taken");
            assert_eq!(lack.to_string(), expected);
        };
        let together = "another service has one or both of 172.30.0.9 and fd1e::9, which go together";
        check("172.30.0.9", "fd1e::9", together);
        check("1.2.3.4", "1.2.3.4", "another service has the address 1.2.3.4");
    }

    #[test]
    fn a_service_that_names_no_address_any_more_gets_a_number() {
        let mut pool = Pool::default();
        let status = "status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}";
        pool.note("d/a", &read_yaml(&format!("spec: {{type: LoadBalancer, loadBalancerIP: 192.0.2.1}}\n{status}")));
        let service = read_yaml(&format!("spec: {{type: LoadBalancer, ipFamilies: [IPv4]}}\n{status}"));
        pool.note("d/a", &service);
        assert_eq!(pool.addresses_of("d/a", &service), Ok(vec![IpAddr::from([172, 30, 0, 1])]));
        assert_eq!(pool.taken.len(), 1);
    }

    #[test]
    fn the_place_of_an_address_is_known() {
        let check = |ip: &str, number: Option<u16>| {
            let address: IpAddr = ip.parse().expect("an address");
            assert_eq!(Place::of(address), number.map_or(Place::Elsewhere(address), Place::Number), "{ip}");
        };
        check("172.30.1.0", Some(256));
        check("fd1e::9", Some(9));
        check("1.2.3.4", None);
        check("172.30.0.0", None);
    }

    #[test]
    fn a_service_has_its_addresses_also_without_their_mode() {
        let addresses = [IpAddr::from([172, 30, 0, 7])];
        let check = |ingress: &str, expected: bool| {
            let service = read_yaml(&format!("status: {{loadBalancer: {{ingress: {ingress}}}}}"));
            assert_eq!(has_addresses(&service, &addresses), expected, "{ingress}");
        };
        check("[{ip: 172.30.0.7, ipMode: VIP}]", true);
        check("[{ip: 172.30.0.7}]", true);
        check("[{ip: 172.30.0.8, ipMode: VIP}]", false);
        check("[{ip: 172.30.0.7}, {ip: 172.30.0.8}]", false);
        check("[]", false);
    }

    #[test]
    fn a_service_of_another_class_is_left_to_others_until_it_goes_or_changes_its_type() {
        let check = |metadata: &str, spec: &str, expected: (bool, bool)| {
            let service = read_yaml(&format!("metadata: {{finalizers: [{FINALIZER}]{metadata}}}\nspec: {{{spec}}}"));
            assert_eq!((is_wanted(&service), needs_cleanup(&service)), expected, "{metadata} {spec}");
        };
        let going = ", deletionTimestamp: '2026-01-01T00:00:00Z'";
        check("", "type: LoadBalancer", (true, false));
        check("", "type: LoadBalancer, loadBalancerClass: example.com/b", (false, false));
        check(going, "type: LoadBalancer, loadBalancerClass: example.com/b", (false, true));
        check(going, "type: LoadBalancer", (true, true));
        check("", "type: NodePort", (false, true));
        assert!(!needs_cleanup(&read_yaml("spec: {type: NodePort}")));
    }
}
