//! Services of the type LoadBalancer get an address, as a cloud would give them one.
//!
//! Nothing listens there. Each has an address of its own, of [`FIRST_IPV4`] and those behind it, for as long as it is of this
//! type; one that names an address (`spec.loadBalancerIP`) has that. A service of another class (`spec.loadBalancerClass`) is
//! left to others.
//!
//! Source: `k8s.io/cloud-provider/controllers/service` of Kubernetes 1.37.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client::{Client, is_going, place, read};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::services::SERVICES;
use super::workload::{Means, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{Collection, Entry};
use crate::value::Value;

/// The finalizer of services that have an address.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
const TYPE: &str = "LoadBalancer";
/// The address before the first that is given.
const FIRST_IPV4: u32 = u32::from_be_bytes([172, 30, 0, 0]);
const FIRST_IPV6: u128 = 0xfd1e_0000_0000_0000_0000_0000_0000_0000;
/// The last of the numbers that addresses are made of.
const NUMBER_MAX: u16 = u16::MAX - 1;

struct LoadBalancers {
    client: Client,
    pool: Mutex<Pool>,
}

/// The numbers of services, of which their addresses are made.
#[derive(Default)]
struct Pool {
    numbers: BTreeMap<String, u16>,
    used: BTreeSet<u16>,
}

impl Pool {
    fn release(&mut self, key: &str) {
        if let Some(number) = self.numbers.remove(key) {
            self.used.remove(&number);
        }
    }

    /// Notes the number that a service has already.
    fn hold(&mut self, key: &str, number: u16) {
        if self.used.insert(number) {
            self.numbers.insert(key.to_owned(), number);
        }
    }

    /// The number of a service, which it keeps; `None` where all are taken.
    fn number_of(&mut self, key: &str) -> Option<u16> {
        if let Some(number) = self.numbers.get(key) {
            return Some(*number);
        }
        let number = (1..=NUMBER_MAX).zip(self.used.iter().chain(&[0])).find(|(free, used)| free != *used);
        let number = number.map_or(NUMBER_MAX, |(free, _)| free);
        self.used.insert(number).then(|| {
            self.numbers.insert(key.to_owned(), number);
            number
        })
    }
}

fn is_wanted(service: &Value) -> bool {
    service.str_at(&["spec", "type"]) == TYPE && service.str_at(&["spec", "loadBalancerClass"]).is_empty()
}

fn has_finalizer(service: &Value) -> bool {
    service.items_at(&["metadata", "finalizers"]).iter().any(|name| name.as_str() == Some(FINALIZER))
}

/// The number behind the first address of a service, if it is one that was given here.
fn number_of(service: &Value) -> Option<u16> {
    let first = service.items_at(&["status", "loadBalancer", "ingress"]).first()?;
    let number = match first.str_at(&["ip"]).parse().ok()? {
        IpAddr::V4(address) => u128::from(u32::from(address).checked_sub(FIRST_IPV4)?),
        IpAddr::V6(address) => u128::from(address).checked_sub(FIRST_IPV6)?,
    };
    u16::try_from(number).ok().filter(|number| (1..=NUMBER_MAX).contains(number))
}

/// The addresses of a service: one of each of its families, or the one that it names.
fn addresses(service: &Value, number: u16) -> Vec<Value> {
    let named = service.str_at(&["spec", "loadBalancerIP"]);
    let ingress = |ip: String| object! { "ip" => ip, "ipMode" => "VIP" };
    if named.parse::<IpAddr>().is_ok() {
        return vec![ingress(named.to_owned())];
    }
    let of_family = |family: &Value| match family.as_str() {
        Some("IPv6") => Ipv6Addr::from(FIRST_IPV6 + u128::from(number)).to_string(),
        _ => Ipv4Addr::from(FIRST_IPV4 + u32::from(number)).to_string(),
    };
    service.items_at(&["spec", "ipFamilies"]).iter().map(|family| ingress(of_family(family))).collect()
}

impl LoadBalancers {
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ensure(&self, key: &str, service: Value) -> Result<(), Status> {
        let Some(number) = self.pool().number_of(key) else {
            let message = "Error syncing load balancer: no address is left".to_owned();
            self.client.tell_warning(&service, "SyncLoadBalancerFailed", message);
            return Ok(());
        };
        let addresses = addresses(&service, number);
        let is_done =
            has_finalizer(&service) && service.items_at(&["status", "loadBalancer", "ingress"]) == addresses.as_slice();
        if is_done {
            return Ok(());
        }
        self.client.tell_normal(&service, "EnsuringLoadBalancer", "Ensuring load balancer".to_owned());
        let service = if has_finalizer(&service) { service } else { self.set_finalizer(&service, true).await? };
        self.client.tell_normal(&service, "EnsuredLoadBalancer", "Ensured load balancer".to_owned());
        self.say(&service, object! { "ingress" => addresses }).await
    }

    /// Takes the address of a service that is not of this type any more, or goes.
    async fn take(&self, service: Value) -> Result<(), Status> {
        self.client.tell_normal(&service, "DeletingLoadBalancer", "Deleting load balancer".to_owned());
        if !is_going(&service) {
            self.say(&service, object! {}).await?;
        }
        let service = self.set_finalizer(&service, false).await?;
        self.client.tell_normal(&service, "DeletedLoadBalancer", "Deleted load balancer".to_owned());
        Ok(())
    }

    async fn say(&self, service: &Value, balancer: Value) -> Result<(), Status> {
        let mut status = service.get("status").cloned().unwrap_or_default();
        status.make_object().insert("loadBalancer", balancer);
        self.client.update_status(SERVICES, service, status).await
    }

    async fn set_finalizer(&self, service: &Value, is_there: bool) -> Result<Value, Status> {
        let mut finalizers = service.items_at(&["metadata", "finalizers"]).to_vec();
        finalizers.retain(|name| name.as_str() != Some(FINALIZER));
        if is_there {
            finalizers.push(Value::from(FINALIZER));
        }
        let finalizers = if finalizers.is_empty() { Value::Null } else { Value::Array(finalizers) };
        let uid = service.str_at(&["metadata", "uid"]);
        let patch = object! { "metadata" => object! { "uid" => uid, "finalizers" => finalizers } };
        let (namespace, name) = place(service);
        self.client.merge(SERVICES, namespace, name, &patch).await
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

    fn note(&self, change: &Entry) -> Vec<String> {
        if !SERVICES.is(&change.collection) {
            return Vec::new();
        }
        let service = change.stored.as_ref().and_then(|stored| read(stored).ok());
        let Some(service) = service.filter(|service| is_wanted(service) || has_finalizer(service)) else {
            self.pool().release(&change.key);
            return Vec::new();
        };
        if let Some(number) = number_of(&service) {
            self.pool().hold(&change.key, number);
        }
        vec![change.key.to_string()]
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(service) = self.client.get(SERVICES, key).await? else { return Ok(Progress::Done) };
        if is_wanted(&service) && !is_going(&service) {
            self.ensure(key, service).await?;
        } else if has_finalizer(&service) {
            self.take(service).await?;
        }
        Ok(Progress::Done)
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
        pool.hold("d/b", 2);
        assert_eq!((pool.number_of("d/a"), pool.number_of("d/c"), pool.number_of("d/b")), (Some(1), Some(3), Some(2)));
        pool.release("d/a");
        assert_eq!((pool.number_of("d/e"), pool.number_of("d/f")), (Some(1), Some(4)));
        (5..=NUMBER_MAX).for_each(|number| pool.hold(&number.to_string(), number));
        assert_eq!(pool.number_of("d/g"), None);
    }

    #[test]
    fn a_service_has_an_address_of_each_of_its_families_or_the_one_that_it_names() {
        let both = read_yaml("spec: {ipFamilies: [IPv4, IPv6]}");
        let told = |service: &Value| {
            let addresses = addresses(service, 7);
            addresses.iter().map(|ingress| ingress.str_at(&["ip"]).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(told(&both), ["172.30.0.7", "fd1e::7"]);
        assert_eq!(told(&read_yaml("spec: {ipFamilies: [IPv4], loadBalancerIP: 1.2.3.4}")), ["1.2.3.4"]);
        for (ip, number) in [("172.30.1.0", Some(256)), ("fd1e::9", Some(9)), ("1.2.3.4", None), ("172.30.0.0", None)] {
            let service = read_yaml(&format!("status: {{loadBalancer: {{ingress: [{{ip: '{ip}'}}]}}}}"));
            assert_eq!(number_of(&service), number, "{ip}");
        }
    }

    #[test]
    fn a_service_of_another_class_is_left_to_others() {
        assert!(is_wanted(&read_yaml("spec: {type: LoadBalancer}")));
        assert!(!is_wanted(&read_yaml("spec: {type: LoadBalancer, loadBalancerClass: example.com/b}")));
        assert!(!is_wanted(&read_yaml("spec: {type: NodePort}")));
    }
}
