//! Repairs the allocations of services that do not agree with the services' specs.
//!
//! They agree as long as only services are written. But any client may change addresses, and a database may come from
//! an older program or a copy. Input: the newest states. Output: writes under guards, one by one, and what was found, for
//! events; what has changed meanwhile is checked again the next time.
//!
//! Source: `pkg/registry/core/service/{ipallocator,portallocator}/controller`, release 1.37.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::kinds::services::addresses;
use crate::kinds::services::allocate::{IpRange, held_addresses, held_ports};
use crate::meta::Status;
use crate::store::{self, Collection, Guard, Snapshot, Stored};
use crate::value::{Map, Value, json};

use super::service_network::{GROUP, Holdings, addresses, find, ports_in, shard_write, shards, stored_ranges};
use super::{Registry, store_failed};

const OF_ADDRESSES: &str = "ipallocator-repair-controller";
const OF_PORTS: &str = "portallocator-repair-controller";

/// The states that were found, and what in them did not agree.
pub struct Repaired {
    services: Snapshot,
    addresses: Snapshot,
    shards: Snapshot,
    ranges: Snapshot,
    /// What is found the first time.
    pub findings: Vec<Finding>,
    /// The uids and messages of all that was found.
    told: BTreeSet<(String, String)>,
}

/// What did not agree: a warning about an object.
#[derive(Debug)]
pub struct Finding {
    /// The Service or the IPAddress.
    pub object: Value,
    /// The component of kube-apiserver that warns of it.
    pub component: &'static str,
    pub action: &'static str,
    pub reason: &'static str,
    pub message: String,
}

/// The reason and the message of a finding.
type Told = (&'static str, String);

/// What is to be done about the address of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    Nothing,
    /// No IPAddress takes it.
    Take,
    /// The IPAddress that takes it must be made anew.
    TakeAnew,
}

impl Repaired {
    fn is_same(&self, other: &Repaired) -> bool {
        self.services.is_same(&other.services)
            && self.addresses.is_same(&other.addresses)
            && self.shards.is_same(&other.shards)
            && self.ranges.is_same(&other.ranges)
    }

    /// The service that is stored under `namespace/name`.
    fn service(&self, key: &str) -> Option<Value> {
        find(&self.services, key).and_then(|stored| json::decode(&stored.bytes).ok())
    }

    /// Whether the service that is stored under `namespace/name` has the address.
    fn has_address(&self, key: &str, ip: &str) -> Option<bool> {
        self.service(key).map(|service| held_addresses(&service).any(|held| held.to_string() == ip))
    }

    fn has_port(&self, key: &str, port: i64) -> bool {
        self.service(key).is_some_and(|service| held_ports(&service).any(|held| held == port))
    }

    /// Leaves out the findings that were there before.
    fn leave_out_known(&mut self, known: Option<&Repaired>) {
        let told =
            |finding: &Finding| (finding.object.str_at(&["metadata", "uid"]).to_owned(), finding.message.clone());
        self.told = self.findings.iter().map(told).collect();
        if let Some(known) = known {
            self.findings.retain(|finding| !known.told.contains(&told(finding)));
        }
    }
}

impl Registry {
    /// Allocates again what services have in their specs but is not recorded, and releases what belongs to no service.
    /// Does nothing if the states are those in `known`; returns the states as they were found.
    pub async fn repair_services(&self, known: Option<Repaired>) -> Result<Repaired, Status> {
        // The services are read first: what is taken later than that is left alone.
        let services = Collection::new("", "services");
        let mut state = Repaired {
            services: self.newest(&services).await?,
            addresses: self.newest(&addresses()).await?,
            shards: self.newest(&shards()).await?,
            ranges: self.newest(&stored_ranges()).await?,
            findings: Vec::new(),
            told: BTreeSet::new(),
        };
        if let Some(known) = known.as_ref().filter(|known| known.is_same(&state)) {
            state.told.clone_from(&known.told);
            return Ok(state);
        }
        let ranges = self.ranges_in(&state.ranges, |_| true);
        let mut findings = Vec::new();
        for stored in state.services.range("", None) {
            findings.extend(self.repair_service(&state, &ranges, stored).await?);
        }
        let (freed, of_nobody): (Vec<_>, Vec<_>) = addresses_of_nobody(&state).into_iter().unzip();
        self.write_each(freed.into_iter().chain(ports_of_nobody(&state)).collect(), &[]).await;
        // Older minors have IPAddresses that nobody can read.
        if self.resolve(GROUP, "ipaddresses").await?.is_some() {
            findings.extend(of_nobody);
        }
        state.findings = findings;
        state.leave_out_known(known.as_ref());
        Ok(state)
    }

    /// Takes for a service what is in its spec and still free, or taken by an IPAddress that is not as it should be.
    async fn repair_service(
        &self,
        state: &Repaired,
        ranges: &[IpRange],
        stored: &Stored,
    ) -> Result<Vec<Finding>, Status> {
        let Ok(service) = json::decode(&stored.bytes) else { return Ok(Vec::new()) };
        let owner = stored.key.split_once('/').unwrap_or(("", &stored.key));
        let mut holdings = self.holdings(owner).await?;
        let (mut findings, mut writes) = (Vec::new(), Vec::new());
        for ip in held_addresses(&service) {
            let known = holdings.taken_by(ip);
            let (told, remedy) = judge_address((state, ranges), known, (ip, owner));
            let about = |told| finding(stored, &service, (OF_ADDRESSES, "ClusterIPAllocation"), told);
            findings.extend(told.map(about));
            match (remedy, known) {
                (Remedy::TakeAnew, Some(known)) => writes.extend([deletion(known), self.claim(ip, owner).await?]),
                (Remedy::Take, _) => holdings.claim_address(ip),
                _ => {}
            }
        }
        // One port may be that of several protocols.
        for port in held_ports(&service).collect::<BTreeSet<_>>() {
            let told = self.judge_port(state, &mut holdings, (port, &stored.key));
            findings.extend(told.map(|told| finding(stored, &service, (OF_PORTS, "PortAllocation"), told)));
        }
        writes.extend(self.claims(&holdings).await?);
        let collection = Collection::new("", "services");
        if !findings.is_empty() && !self.is_newest(&collection, stored).await? {
            // What it had may have been given back since.
            return Ok(Vec::new());
        }
        let guard = Guard::Other { collection, key: stored.key.clone(), revision: stored.revision };
        self.write_each(writes, &[guard]).await;
        Ok(findings)
    }

    /// Takes a port for the service under `key` if it is free; tells what does not agree.
    fn judge_port(&self, state: &Repaired, holdings: &mut Holdings<'_>, (port, key): (i64, &str)) -> Option<Told> {
        let range = self.network.ports();
        if range.refuse(port).is_some() {
            let message = format!("Port {port} is not within the port range {range}; please recreate service");
            return Some(("PortOutOfRange", message));
        }
        let Some(owner) = holdings.owner_of(port) else {
            holdings.claim_port(port);
            return Some(("PortNotAllocated", format!("Port {port} is not allocated; repairing")));
        };
        let message = || format!("Port {port} was assigned to multiple services; please recreate service");
        (owner != key && state.has_port(&owner, port)).then(|| ("PortAlreadyAllocated", message()))
    }

    /// Whether an object is still the one that was read.
    async fn is_newest(&self, collection: &Collection, stored: &Stored) -> Result<bool, Status> {
        let newest = self.storage.get(collection, &stored.key).await;
        let newest = newest.map_err(|error| store_failed(collection, "get", error))?;
        Ok(newest.is_some_and(|newest| newest.revision == stored.revision))
    }

    async fn write_each(&self, writes: Vec<store::Write>, guards: &[Guard]) {
        for mut write in writes {
            write.guards.extend(guards.iter().cloned());
            _ = self.storage.write(write).await;
        }
    }
}

/// What is wrong with an address of a service, and what is to be done about it. `known` is the IPAddress that takes it.
fn judge_address(
    (state, ranges): (&Repaired, &[IpRange]),
    known: Option<&Stored>,
    (ip, (namespace, name)): (IpAddr, (&str, &str)),
) -> (Option<Told>, Remedy) {
    let family = addresses::family(ip).name();
    if ranges.iter().all(|range| range.refuse(ip).is_some()) {
        let end = "is not within any configured Service CIDR; please recreate service";
        return (Some(("ClusterIPOutOfRange", format!("Cluster IP [{family}]: {ip} {end}"))), Remedy::Nothing);
    }
    let Some(known) = known else {
        let message = format!("Cluster IP [{family}]: {ip} is not allocated; repairing");
        return (Some(("ClusterIPNotAllocated", message)), Remedy::Take);
    };
    // It may belong to a service that is newer than the known ones.
    let Some(address) = json::decode(&known.bytes).ok().filter(|_| known.revision <= state.services.revision()) else {
        return (None, Remedy::Nothing);
    };
    let parent = addresses::service_of(&address);
    let is_other = parent != Some((namespace, name));
    let parent_has_it = parent
        .filter(|_| is_other)
        .and_then(|(namespace, name)| state.has_address(&format!("{namespace}/{name}"), &ip.to_string()));
    if is_other && parent_has_it.is_none() {
        let of = format!("the ClusterIP [{family}]: {ip} for Service {namespace}/{name}");
        return (Some(("ClusterIPNotAllocated", format!("{of} has a wrong reference; repairing"))), Remedy::TakeAnew);
    }
    let told = (is_other && parent_has_it == Some(true)).then(|| {
        let message = format!("Cluster IP [{family}]:{ip} was assigned to multiple services; please recreate service");
        ("ClusterIPAlreadyAllocated", message)
    });
    (told, if addresses::has_labels(&address, ip) { Remedy::Nothing } else { Remedy::TakeAnew })
}

fn finding(
    stored: &Stored,
    object: &Value,
    (component, action): (&'static str, &'static str),
    (reason, message): Told,
) -> Finding {
    let mut object = object.clone();
    let revision = Value::String(stored.revision.to_string());
    object.make_object().entry("metadata").make_object().insert("resourceVersion", revision);
    Finding { object, component, action, reason, message }
}

fn deletion(stored: &Stored) -> store::Write {
    store::Write {
        collection: addresses(),
        key: stored.key.clone(),
        op: store::Op::Delete,
        guards: vec![Guard::At { revision: stored.revision }],
    }
}

/// Deletions of addresses that were taken for services that do not have them.
fn addresses_of_nobody(state: &Repaired) -> Vec<(store::Write, Finding)> {
    let known = state.addresses.range("", None).filter(|stored| stored.revision <= state.services.revision());
    let of_nobody = known.filter_map(|stored| {
        let address = json::decode(&stored.bytes).ok().filter(addresses::is_managed)?;
        let told = why_nobodys(state, &address)?;
        let found = finding(stored, &address, (OF_ADDRESSES, "IPAddressAllocation"), told);
        Some((deletion(stored), found))
    });
    of_nobody.collect()
}

/// Why an address that was allocated belongs to no service, if it does not.
fn why_nobodys(state: &Repaired, address: &Value) -> Option<Told> {
    let ip = address.str_at(&["metadata", "name"]);
    let Some((namespace, name)) = addresses::service_of(address) else {
        let field = |name: &str| address.str_at(&["spec", "parentRef", name]);
        let parent = format!(
            "&ParentReference{{Group:{},Resource:{},Namespace:{},Name:{},}}",
            field("group"),
            field("resource"),
            field("namespace"),
            field("name"),
        );
        let why = format!("appears to have been modified, not referencing a Service {parent}: cleaning up");
        return Some(("IPAddressNotAllocated", format!("IPAddress {ip} {why}")));
    };
    let of = format!("IPAddress: {ip} for Service {namespace}/{name}");
    match state.has_address(&format!("{namespace}/{name}"), ip) {
        None => Some(("IPAddressNotAllocated", format!("{of} appears to have leaked: cleaning up"))),
        Some(false) => Some(("IPAddressWrongReference", format!("{of} has a wrong reference; cleaning up"))),
        Some(true) => None,
    }
}

/// The shards without the ports that their services do not have.
fn ports_of_nobody(state: &Repaired) -> Vec<store::Write> {
    let known = state.shards.range("", None).filter(|stored| stored.revision <= state.services.revision());
    let freed = known.filter_map(|stored| {
        let ports = ports_in(Some(stored));
        let is_held = |(port, owner): &(&str, &Value)| {
            let service = state.service(owner.as_str().unwrap_or_default());
            service.is_some_and(|service| held_ports(&service).any(|held| held.to_string() == *port))
        };
        let kept: Map = ports.iter().filter(is_held).map(|(port, owner)| (port.to_owned(), owner.clone())).collect();
        (kept.len() < ports.len()).then(|| shard_write(&stored.key, &kept, Some(stored)))
    });
    freed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::UserInfo;
    use crate::object;
    use crate::registry::{Body, CreateRequest, DeleteRequest, FieldValidation, Format, Target, Warnings, fixture};

    async fn target(registry: &Registry, name: &str) -> Target {
        let services = fixture::target(registry, "", "services").await;
        Target { namespace: "default".to_owned(), name: name.to_owned(), ..services }
    }

    /// Creates a service of the type NodePort; returns its spec, or why it is refused.
    async fn create(registry: &Registry, name: &str, ip: &str, dry_run: bool) -> Result<Value, String> {
        let service = object! {
            "metadata" => object! { "name" => name },
            "spec" => object! { "type" => "NodePort", "clusterIP" => ip, "ports" => vec![object! { "port" => 80 }] },
        };
        let request = CreateRequest {
            body: Body { bytes: json::encode(&service).into(), format: Format::Json },
            field_validation: FieldValidation::Strict,
            manager: "test".to_owned(),
            dry_run,
            options: Value::Null,
        };
        let target = Target { name: String::new(), ..target(registry, "").await };
        let created = registry.create(&target, &UserInfo::unsecured(), &request, &mut Warnings::default()).await;
        created.map(|written| written.object.get("spec").cloned().unwrap_or_default()).map_err(|status| status.message)
    }

    async fn delete(registry: &Registry, name: &str) {
        let (target, options) = (target(registry, name).await, DeleteRequest::default());
        let deleted = registry.delete(&target, &UserInfo::unsecured(), &options, &mut Warnings::default()).await;
        assert!(deleted.is_ok());
    }

    /// How many addresses and ports are taken.
    async fn taken(registry: &Registry) -> (usize, usize) {
        let shards = registry.newest(&shards()).await.expect("the store works");
        let ports = shards.range("", None).map(|shard| ports_in(Some(shard)).len()).sum();
        (registry.newest(&addresses()).await.expect("the store works").len(), ports)
    }

    #[tokio::test]
    async fn what_a_service_has_nobody_else_gets_until_it_is_deleted() {
        let registry = fixture::registry().await;
        let spec = create(&registry, "a", "10.0.0.9", false).await.expect("it is free");
        assert_eq!(spec.at(&["clusterIPs"]), Some(&Value::Array(vec![Value::from("10.0.0.9")])));
        assert_eq!(taken(&registry).await, (1, 1));
        let refused = create(&registry, "b", "10.0.0.9", false).await;
        let why = "Service \"b\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.9\"]: failed to allocate IP 10.0.0.9: \
                   provided IP is already allocated";
        assert_eq!(refused, Err(why.to_owned()));
        create(&registry, "b", "", true).await.expect("a dry run takes nothing");
        assert_eq!(taken(&registry).await, (1, 1));
        delete(&registry, "a").await;
        assert_eq!(taken(&registry).await, (0, 0));
        create(&registry, "b", "10.0.0.9", false).await.expect("it is free again");
    }

    #[tokio::test]
    async fn services_that_are_made_at_once_have_different_addresses() {
        let registry = fixture::registry().await;
        let names: Vec<String> = (0..64).map(|number| format!("s{number}")).collect();
        let made = names.iter().map(|name| create(&registry, name, "", false));
        let made = futures_util::future::join_all(made).await;
        let specs: Vec<Value> = made.into_iter().map(|spec| spec.expect("there are enough")).collect();
        let ips: std::collections::BTreeSet<&str> = specs.iter().map(|spec| spec.str_at(&["clusterIP"])).collect();
        let ports: std::collections::BTreeSet<i64> =
            specs.iter().filter_map(|spec| spec.items_at(&["ports"])[0].get("nodePort")?.as_i64()).collect();
        assert_eq!((ips.len(), ports.len()), (64, 64));
        assert_eq!(taken(&registry).await, (64, 64));
    }

    #[tokio::test]
    async fn what_was_lost_is_taken_again_and_what_is_nobodys_is_freed() {
        let registry = fixture::registry().await;
        create(&registry, "a", "10.0.0.9", false).await.expect("it is free");
        create(&registry, "b", "10.0.0.10", false).await.expect("it is free");
        let without_guards = |collection: Collection, key: &str, op| store::Write {
            collection,
            key: key.into(),
            op,
            guards: Vec::new(),
        };
        for (collection, key) in [(addresses(), "10.0.0.9"), (Collection::new("", "services"), "default/b")] {
            registry.storage.write(without_guards(collection, key, store::Op::Delete)).await.expect("it is there");
        }
        assert_eq!(taken(&registry).await, (1, 2));
        let state = registry.repair_services(None).await.expect("the store works");
        assert_eq!(taken(&registry).await, (1, 1));
        let held = registry.storage.get(&addresses(), "10.0.0.9").await.expect("the store works");
        assert!(held.is_some());
        let state = registry.repair_services(Some(state)).await.expect("the store works");
        let before = fixture::newest(&registry);
        registry.repair_services(Some(state)).await.expect("the store works");
        assert_eq!(fixture::newest(&registry), before);
    }

    /// Changes a stored object, as somebody else would who writes to the store.
    async fn change(registry: &Registry, (group, plural, key): (&str, &str, &str), change: impl Fn(&mut Value)) {
        let target = fixture::target(registry, group, plural).await;
        let collection = target.resource.collection.clone();
        let stored = registry.storage.get(&collection, key).await.expect("the store works").expect("it is there");
        let mut object = json::decode(&stored.bytes).expect("it is JSON");
        change(&mut object);
        let op = registry.put(&target.resource, &object).expect("it fits");
        let write = store::Write { collection, key: key.into(), op, guards: Vec::new() };
        registry.storage.write(write).await.expect("nothing stands in the way");
    }

    /// Repairs until nothing is found; the reasons and messages that were found.
    async fn repair(registry: &Registry) -> Vec<(&'static str, String)> {
        let (mut known, mut told) = (None, Vec::new());
        for _ in 0..3 {
            let mut state: Repaired = registry.repair_services(known).await.expect("the store works");
            told.extend(state.findings.drain(..).map(|finding| (finding.reason, finding.message)));
            known = Some(state);
        }
        told
    }

    async fn parent_of(registry: &Registry, ip: &str) -> Option<(String, String)> {
        let stored = registry.storage.get(&addresses(), ip).await.expect("the store works")?;
        let address = json::decode(&stored.bytes).expect("it is JSON");
        addresses::service_of(&address).map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
    }

    const ADDRESS: (&str, &str, &str) = ("networking.k8s.io", "ipaddresses", "10.0.0.9");
    const SERVICE: (&str, &str, &str) = ("", "services", "default/a");

    fn set(object: &mut Value, path: [&str; 3], value: &str) {
        let [first, second, third] = path;
        object.make_object().entry(first).make_object().entry(second).make_object().insert(third, Value::from(value));
    }

    #[tokio::test]
    async fn an_address_with_a_wrong_reference_or_label_is_taken_anew() {
        let wrong = "the ClusterIP [IPv4]: 10.0.0.9 for Service default/a has a wrong reference; repairing";
        for (path, value, told) in [
            (["spec", "parentRef", "resource"], "gateways", Some(("ClusterIPNotAllocated", wrong))),
            (["spec", "parentRef", "name"], "other", Some(("ClusterIPNotAllocated", wrong))),
            (["metadata", "labels", "ipaddress.kubernetes.io/ip-family"], "IPv6", None),
            (["metadata", "labels", "ipaddress.kubernetes.io/managed-by"], "x", None),
        ] {
            let registry = fixture::registry().await;
            create(&registry, "a", "10.0.0.9", false).await.expect("it is free");
            change(&registry, ADDRESS, |address| set(address, path, value)).await;
            let found = repair(&registry).await;
            let first = found.first().map(|(reason, message)| (*reason, message.as_str()));
            // The IPAddress as it was is told of by itself, too.
            assert_eq!(first, told, "{path:?}");
            assert_eq!(
                parent_of(&registry, "10.0.0.9").await,
                Some(("default".to_owned(), "a".to_owned())),
                "{path:?}"
            );
            let stored = registry.storage.get(&addresses(), "10.0.0.9").await.expect("the store works");
            let address = json::decode(&stored.expect("it is there").bytes).expect("it is JSON");
            assert!(addresses::has_labels(&address, IpAddr::from([10, 0, 0, 9])), "{path:?}");
        }
    }

    #[tokio::test]
    async fn an_address_outside_of_the_ranges_is_not_taken() {
        let registry = fixture::registry().await;
        create(&registry, "a", "10.0.0.9", false).await.expect("it is free");
        change(&registry, SERVICE, |service| {
            let spec = service.make_object().entry("spec").make_object();
            spec.insert("clusterIP", Value::from("10.9.9.9"));
            spec.insert("clusterIPs", Value::Array(vec![Value::from("10.9.9.9")]));
        })
        .await;
        let found = repair(&registry).await;
        let outside = "Cluster IP [IPv4]: 10.9.9.9 is not within any configured Service CIDR; please recreate service";
        let reference = "IPAddress: 10.0.0.9 for Service default/a has a wrong reference; cleaning up";
        let expected = [("ClusterIPOutOfRange", outside), ("IPAddressWrongReference", reference)];
        assert_eq!(found, expected.map(|(reason, message)| (reason, message.to_owned())));
        assert_eq!(taken(&registry).await.0, 0);
    }

    #[tokio::test]
    async fn what_is_shared_or_out_of_range_is_told_once() {
        let registry = fixture::registry().await;
        create(&registry, "a", "10.0.0.9", false).await.expect("it is free");
        create(&registry, "b", "10.0.0.10", false).await.expect("it is free");
        change(&registry, ("", "services", "default/b"), |service| {
            let spec = service.make_object().entry("spec").make_object();
            spec.insert("clusterIP", Value::from("10.0.0.9"));
            spec.insert("clusterIPs", Value::Array(vec![Value::from("10.0.0.9")]));
            spec.insert("ports", Value::Array(vec![object! { "port" => 80_i64, "nodePort" => 1_i64 }]));
        })
        .await;
        let found = repair(&registry).await;
        let reasons: Vec<&str> = found.iter().map(|(reason, _)| *reason).collect();
        assert_eq!(reasons, ["ClusterIPAlreadyAllocated", "PortOutOfRange", "IPAddressWrongReference"], "{found:?}");
        assert_eq!(found[1].1, "Port 1 is not within the port range 30000-32767; please recreate service");
    }
}
