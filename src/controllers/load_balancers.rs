//! Services of the type LoadBalancer get an address, as a cloud would give them one.
//!
//! Nothing listens there. As long as it has this type, each service has its own address for each of its families, after
//! [`BASE_IPV4`] and [`BASE_IPV6`]; the families are independent. A service with `spec.loadBalancerIP` gets that
//! address, unless another has it: then it waits. A service of another class (`spec.loadBalancerClass`) is left to
//! others until it goes or is of another type.
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
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::Value;

/// The finalizer of services that have an address.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
const TYPE: &str = "LoadBalancer";
/// The address to which numbers are added. They begin at 1: no service has this address itself.
const BASE_IPV4: u32 = u32::from_be_bytes([172, 30, 0, 0]);
/// As [`BASE_IPV4`].
const BASE_IPV6: u128 = 0xfd1e_0000_0000_0000_0000_0000_0000_0000;
/// The last number: that of the second to last address of `172.30.0.0/16`.
const NUMBER_MAX: u16 = u16::MAX - 1;

struct LoadBalancers {
    client: Client,
    pool: Mutex<Pool>,
}

/// The addresses of services: no two have the same.
#[derive(Default)]
struct Pool {
    /// One of each family, or the requested one.
    held: BTreeMap<String, Vec<IpAddr>>,
    // INVARIANT: the values of `held`.
    taken: BTreeSet<IpAddr>,
}

/// Why a service has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoAddress {
    AllTaken,
    /// The requested one belongs to another service.
    Taken(IpAddr),
}

impl fmt::Display for NoAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAddress::AllTaken => write!(out, "no address is left"),
            NoAddress::Taken(address) => write!(out, "another service has the address {address}"),
        }
    }
}

impl Pool {
    fn release(&mut self, key: &str) {
        for address in self.held.remove(key).unwrap_or_default() {
            self.taken.remove(&address);
        }
    }

    fn held_by(&self, key: &str) -> &[IpAddr] {
        self.held.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    /// Takes addresses for a service, instead of those that it had; if another service has one of them, none are taken,
    /// and that one is the error.
    fn claim(&mut self, key: &str, addresses: Vec<IpAddr>) -> Result<(), IpAddr> {
        if let Some(taken) = addresses.iter().find(|address| self.is_of_another(key, **address)) {
            return Err(*taken);
        }
        self.release(key);
        self.taken.extend(&addresses);
        self.held.insert(key.to_owned(), addresses);
        Ok(())
    }

    fn is_of_another(&self, key: &str, address: IpAddr) -> bool {
        self.taken.contains(&address) && !self.held_by(key).contains(&address)
    }

    /// Records the stored state of a service.
    fn note(&mut self, key: &str, service: &Value) {
        let said = said_addresses(service);
        let named = named_address(service);
        let is_named = |addresses: &[IpAddr]| named.is_none_or(|named| addresses == [named]);
        // One that has just been given the address that it names does not say so yet, and keeps it.
        if !is_concerned(service) || !(is_named(self.held_by(key)) || is_named(&said)) {
            self.release(key);
        } else if is_wanted(service) && !said.is_empty() && is_named(&said) {
            // An address of another service is not its own; it gets a new one when it is handled.
            let mut own: Vec<_> = said.into_iter().filter(|said| !self.is_of_another(key, *said)).collect();
            // Of a family that its status does not tell yet, it keeps what it was given.
            let is_untold = |held: &&IpAddr| !own.iter().any(|own| own.is_ipv4() == held.is_ipv4());
            let kept = self.held_by(key).iter().filter(is_untold).filter(|_| named.is_none()).copied();
            let kept: Vec<_> = kept.collect();
            own.extend(kept);
            if !own.is_empty() {
                // None of them belongs to another service.
                _ = self.claim(key, own);
            }
        }
    }

    /// The addresses of a service, which it keeps: the requested one, or one of each of its families.
    fn addresses_of(&mut self, key: &str, service: &Value) -> Result<Vec<IpAddr>, NoAddress> {
        let addresses = match named_address(service) {
            Some(named) => vec![named],
            None => {
                let families =
                    service.items_at(&["spec", "ipFamilies"]).iter().map(|family| family.as_str() != Some("IPv6"));
                families
                    .map(|is_ipv4| self.address_of_family(key, is_ipv4).ok_or(NoAddress::AllTaken))
                    .collect::<Result<_, _>>()?
            }
        };
        self.claim(key, addresses.clone()).map_err(NoAddress::Taken)?;
        Ok(addresses)
    }

    /// The address of a family that a service has, or the first that is free.
    fn address_of_family(&self, key: &str, is_ipv4: bool) -> Option<IpAddr> {
        let held = self.held_by(key).iter().find(|held| held.is_ipv4() == is_ipv4 && is_made(**held));
        held.copied().or_else(|| {
            let made = |number| made_address(is_ipv4, number);
            let mut taken = self.taken.range(made(1)..=made(NUMBER_MAX));
            (1..=NUMBER_MAX).map(made).find(|address| taken.next() != Some(address))
        })
    }
}

fn is_balanced(service: &Value) -> bool {
    service.str_at(&["spec", "type"]) == TYPE
}

/// Whether a service must get an address from this controller.
fn is_wanted(service: &Value) -> bool {
    is_balanced(service) && service.str_at(&["spec", "loadBalancerClass"]).is_empty()
}

/// Whether a service has the finalizer and no longer needs it.
fn needs_cleanup(service: &Value) -> bool {
    finalizers::has(service, FINALIZER) && (is_going(service) || !is_balanced(service))
}

/// Whether there may be something to do for a service.
fn is_concerned(service: &Value) -> bool {
    is_wanted(service) || needs_cleanup(service)
}

/// The addresses in the status of a service that may be its own: the first one if it requests an address, otherwise the
/// first of each family among those that this controller assigns.
fn said_addresses(service: &Value) -> Vec<IpAddr> {
    let said = service.items_at(&["status", "loadBalancer", "ingress"]).iter();
    let said = said.filter_map(|ingress| ingress.str_at(&["ip"]).parse().ok());
    if named_address(service).is_some() {
        return said.take(1).collect();
    }
    let made: Vec<IpAddr> = said.filter(|address| is_made(*address)).collect();
    let first = |is_ipv4: bool| made.iter().find(|address| address.is_ipv4() == is_ipv4).copied();
    first(true).into_iter().chain(first(false)).collect()
}

/// The address that a service requests; `None` if it requests none, or an invalid one.
///
/// An IPv4-mapped IPv6 address becomes the IPv4 address, as the status must not contain the mapped form.
fn named_address(service: &Value) -> Option<IpAddr> {
    let named: IpAddr = service.str_at(&["spec", "loadBalancerIP"]).parse().ok()?;
    Some(named.to_canonical())
}

/// The address of a family that has a number.
fn made_address(is_ipv4: bool, number: u16) -> IpAddr {
    if is_ipv4 {
        Ipv4Addr::from(BASE_IPV4 + u32::from(number)).into()
    } else {
        Ipv6Addr::from(BASE_IPV6 + u128::from(number)).into()
    }
}

/// Whether an address has a number.
fn is_made(address: IpAddr) -> bool {
    let is_ipv4 = address.is_ipv4();
    (made_address(is_ipv4, 1)..=made_address(is_ipv4, NUMBER_MAX)).contains(&address)
}

/// Addresses as the status has them.
fn ingress(addresses: &[IpAddr]) -> Value {
    Value::Array(addresses.iter().map(|ip| object! { "ip" => ip.to_string(), "ipMode" => "VIP" }).collect())
}

/// Whether the status of a service has these addresses. `ipMode` is ignored: it is dropped if its gate is closed.
fn has_addresses(service: &Value, addresses: &[IpAddr]) -> bool {
    let said = service.items_at(&["status", "loadBalancer", "ingress"]).iter();
    said.map(|ingress| ingress.str_at(&["ip"])).eq(addresses.iter().map(IpAddr::to_string))
}

impl LoadBalancers {
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a service its addresses. If it gets none, this is retried: no change of this service shows that an address
    /// has become free.
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

    /// Removes the address of a service that no longer has this type, or is being deleted.
    async fn take(&self, service: Value) -> Result<Progress, Status> {
        self.client.tell_normal(&service, "DeletingLoadBalancer", "Deleting load balancer".to_owned());
        let service = if is_going(&service) { service } else { self.say(service, object! {}).await? };
        let service = finalizers::remove(&self.client, SERVICES, &service, FINALIZER).await?;
        self.client.tell_normal(&service, "DeletedLoadBalancer", "Deleted load balancer".to_owned());
        Ok(Progress::Done)
    }

    /// Writes the addresses of a service into its status, unless they are already there; returns the result.
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

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
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
pub(super) fn start(context: &ControllerContext) -> Running {
    let balancers = LoadBalancers { client: context.client("service-controller"), pool: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), balancers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read_yaml(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    /// The addresses that a service gets, or why it gets none.
    fn given(pool: &mut Pool, key: &str, spec: &str) -> Vec<String> {
        match pool.addresses_of(key, &read_yaml(&format!("spec: {{type: LoadBalancer, {spec}}}"))) {
            Ok(addresses) => addresses.iter().map(IpAddr::to_string).collect(),
            Err(lack) => vec![lack.to_string()],
        }
    }

    const OF_IPV4: &str = "ipFamilies: [IPv4]";

    #[test]
    fn the_first_free_address_of_each_family_is_given() {
        let mut pool = Pool::default();
        assert_eq!(given(&mut pool, "d/a", OF_IPV4), ["172.30.0.1"]);
        assert_eq!(given(&mut pool, "d/b", "ipFamilies: [IPv6, IPv4]"), ["fd1e::1", "172.30.0.2"]);
        assert_eq!(given(&mut pool, "d/c", "ipFamilies: [IPv6]"), ["fd1e::2"]);
        assert_eq!(given(&mut pool, "d/a", OF_IPV4), ["172.30.0.1"]);
        pool.release("d/a");
        assert_eq!(given(&mut pool, "d/e", OF_IPV4), ["172.30.0.1"]);
        // The address of a family that it no longer has is free.
        assert_eq!(given(&mut pool, "d/b", "ipFamilies: [IPv6]"), ["fd1e::1"]);
        assert_eq!(given(&mut pool, "d/f", OF_IPV4), ["172.30.0.2"]);
    }

    #[test]
    fn an_address_that_is_free_again_is_given_where_all_were_taken() {
        let mut pool = Pool::default();
        for number in 1..=NUMBER_MAX {
            pool.claim(&number.to_string(), vec![made_address(true, number)]).expect("it is free");
        }
        assert_eq!(given(&mut pool, "d/a", OF_IPV4), ["no address is left"]);
        pool.release("256");
        assert_eq!(given(&mut pool, "d/a", OF_IPV4), ["172.30.1.0"]);
    }

    #[test]
    fn the_writer_of_a_services_status_takes_one_address_of_a_family_at_most() {
        let mut pool = Pool::default();
        let service = |ip: &str, rest: &str| {
            read_yaml(&format!(
                "spec: {{type: LoadBalancer, ipFamilies: [IPv4]{rest}}}\nstatus: {{loadBalancer: {{ingress: [{{ip: {ip}}}, {{ip: 172.30.9.9}}]}}}}"
            ))
        };
        for last in 1..=9 {
            pool.note("d/a", &service(&format!("172.30.0.{last}"), ""));
        }
        assert_eq!((pool.taken.len(), given(&mut pool, "d/a", OF_IPV4)), (1, vec!["172.30.0.9".to_owned()]));
        // An address of another service stays with that one.
        pool.note("d/b", &service("172.30.0.9", ""));
        assert_eq!((pool.taken.len(), given(&mut pool, "d/b", OF_IPV4)), (1, vec!["172.30.0.1".to_owned()]));
        for other in [", loadBalancerIP: 1.2.3.4", ", loadBalancerClass: example.com/b"] {
            pool.note("d/b", &service("172.30.0.1", other));
            assert_eq!((pool.taken.len(), pool.held.len()), (1, 1), "{other}");
        }
    }

    #[test]
    fn a_family_that_the_status_does_not_tell_yet_keeps_its_address() {
        let mut pool = Pool::default();
        let both = "ipFamilies: [IPv4, IPv6]";
        assert_eq!(given(&mut pool, "d/a", both), ["172.30.0.1", "fd1e::1"]);
        let status = "status: {loadBalancer: {ingress: [{ip: 172.30.0.1}]}}";
        pool.note("d/a", &read_yaml(&format!("spec: {{type: LoadBalancer, {both}}}\n{status}")));
        assert_eq!(given(&mut pool, "d/b", both), ["172.30.0.2", "fd1e::2"]);
    }

    #[test]
    fn a_service_keeps_the_address_of_one_family_where_that_of_the_other_is_anothers() {
        let both = "ipFamilies: [IPv4, IPv6]";
        let status = "status: {loadBalancer: {ingress: [{ip: 172.30.0.1}, {ip: 'fd1e::7'}]}}";
        let service = read_yaml(&format!("spec: {{type: LoadBalancer, {both}}}\n{status}"));
        let mut pool = Pool::default();
        assert_eq!(given(&mut pool, "d/a", OF_IPV4), ["172.30.0.1"]);
        pool.note("d/b", &service);
        assert_eq!(pool.held_by("d/b"), [made_address(false, 7)]);
        assert_eq!(given(&mut pool, "d/b", both), ["172.30.0.2", "fd1e::7"]);
        // The service keeps what it was given instead.
        pool.note("d/b", &service);
        assert_eq!(given(&mut pool, "d/b", both), ["172.30.0.2", "fd1e::7"]);
        assert_eq!(pool.taken.len(), 3);
    }

    #[test]
    fn a_service_has_an_address_of_each_of_its_families_or_the_one_that_it_names() {
        let mut pool = Pool::default();
        pool.claim("d/a", vec![made_address(true, 7)]).expect("it is free");
        let mut check = |spec: &str, expected: &[&str]| assert_eq!(given(&mut pool, "d/a", spec), expected, "{spec}");
        check("ipFamilies: [IPv4, IPv6]", &["172.30.0.7", "fd1e::1"]);
        check("ipFamilies: [IPv4], loadBalancerIP: 1.2.3.4", &["1.2.3.4"]);
        // The status must not contain these as they are written.
        check("ipFamilies: [IPv4], loadBalancerIP: '::ffff:1.2.3.4'", &["1.2.3.4"]);
        check("ipFamilies: [IPv6], loadBalancerIP: 'FD00:0::1'", &["fd00::1"]);
        // What is not an address names none; the first was given up for the others.
        check("ipFamilies: [IPv4], loadBalancerIP: 01.2.3.4", &["172.30.0.1"]);
    }

    #[test]
    fn an_address_that_is_named_is_given_to_one_service() {
        let mut pool = Pool::default();
        let spec = |ip: &str| format!("ipFamilies: [IPv4], loadBalancerIP: '{ip}'");
        let named = |ip: &str| read_yaml(&format!("spec: {{type: LoadBalancer, {}}}", spec(ip)));
        // One of the range, which nobody else is given then, and one beside it.
        for ip in ["172.30.0.1", "192.0.2.1"] {
            let taken = [format!("another service has the address {ip}")];
            assert_eq!(given(&mut pool, "d/a", &spec(ip)), [ip]);
            assert_eq!(given(&mut pool, "d/b", &spec(ip)), taken);
            // Its finalizer is stored before its status.
            pool.note("d/a", &named(ip));
            assert_eq!(given(&mut pool, "d/b", &spec(ip)), taken);
            let mut told = named(ip);
            told.make_object().insert("status", read_yaml(&format!("loadBalancer: {{ingress: [{{ip: {ip}}}]}}")));
            pool.note("d/a", &told);
            assert_eq!(given(&mut pool, "d/b", &spec(ip)), taken);
            let free = if ip == "192.0.2.1" { "172.30.0.1" } else { "172.30.0.2" };
            assert_eq!(given(&mut pool, "d/c", OF_IPV4), [free]);
            pool.release("d/a");
            assert_eq!(given(&mut pool, "d/b", &spec(ip)), [ip]);
            pool.release("d/b");
            pool.release("d/c");
        }
        // The two families are independent of each other.
        assert_eq!(given(&mut pool, "d/a", &spec("172.30.0.9")), ["172.30.0.9"]);
        assert_eq!(given(&mut pool, "d/b", &spec("fd1e::9")), ["fd1e::9"]);
    }

    #[test]
    fn a_service_that_names_no_address_any_more_gets_one() {
        let mut pool = Pool::default();
        let status = "status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}";
        pool.note("d/a", &read_yaml(&format!("spec: {{type: LoadBalancer, loadBalancerIP: 192.0.2.1}}\n{status}")));
        assert_eq!(pool.taken.len(), 1);
        pool.note("d/a", &read_yaml(&format!("spec: {{type: LoadBalancer, ipFamilies: [IPv4]}}\n{status}")));
        assert_eq!((given(&mut pool, "d/a", OF_IPV4), pool.taken.len()), (vec!["172.30.0.1".to_owned()], 1));
    }

    #[test]
    fn an_address_that_is_made_here_is_known() {
        for (ip, expected) in
            [("172.30.1.0", true), ("fd1e::9", true), ("1.2.3.4", false), ("172.30.0.0", false), ("fd1e::ffff", false)]
        {
            assert_eq!(is_made(ip.parse().expect("an address")), expected, "{ip}");
        }
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
