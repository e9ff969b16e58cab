//! What services are allocated: cluster IPs and node ports, each of which belongs to at most one service.
//!
//! An address is taken by the IPAddress object of its name, a node port by an entry in one of [`SHARDS`] internal
//! objects. Both are written in the transaction that writes the service, under guards, and released in the one that
//! deletes it: so nothing is taken twice, or lost, whoever else writes to the database. If another request was faster,
//! this one starts over, and finds other ones. A dry run takes nothing.
//!
//! - What a service takes is decided by `kinds::services::allocate`, which is pure: its inputs are the service, its
//!   previous state, the ranges and what is taken; its results are the service, and what it has taken and released.
//! - An address is taken by the IPAddress of its name, a node port by an entry in one of 32 internal objects. Their
//!   writes are **joined** to that of the service (`Guard::Joined`, `Storage::write_together`): the store makes all of
//!   them in one transaction, or none. If another server was faster, a guard fails and the request finds other ones. So
//!   there is no bitmap, and nothing to repair after a kill.
//! - If `--store-override` puts them into different databases, what is taken is written before the service, and what is
//!   released after it; if the process ends in between, something stays taken, but nothing is taken twice.
//! - `registry::service_repair` checks every ten seconds whether the two agree, since any client may change addresses.
//!   It skips the check if nothing has changed since the last one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;
use uuid::Uuid;

use crate::kinds::services::allocate::{
    Addresses, AllocationError, DryRun, IpRange, PortRange, Ports, RangeError, Refusal, allocate_cluster_ips,
    allocate_node_ports, give_back, give_back_node_ports,
};
use crate::kinds::services::{Families, Family, align, settle_families};
use crate::kinds::services::{addresses, ranges};
use crate::meta::Status;
use crate::object;
use crate::store::{self, At, Collection, Guard, Snapshot};
use crate::value::{Map, Value, json};

use super::built_in::IP_ADDRESS;
use super::{DeleteRequest, Registry, Subresource, Target};

/// The group of IPAddress and ServiceCIDR objects.
pub(super) const GROUP: &str = "networking.k8s.io";
/// The manager of the fields that are written here.
pub(super) const MANAGER: &str = "kube-apiserver";
/// How many objects the node ports are spread over: the fewer there are, the more often requests must start over.
const SHARDS: i64 = 32;

/// Ranges of cluster IPs: one, or one of each family, the one that services get by default first.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceRanges(Vec<IpRange>);

/// Why a text does not contain the ranges of a cluster, in kube-apiserver's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ServiceRangesError {
    #[error("service-cluster-ip-range[{0}] is not a valid cidr")]
    NotRange(usize),
    #[error("service-cluster-ip-range[{0}]: {1}")]
    TooLarge(usize, RangeError),
    #[error("--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family")]
    OneFamily,
    #[error("--service-cluster-ip-range must not contain more than two entries")]
    TooMany,
    #[error(
        "error determining service IP ranges for {0} service cidr: the service cluster IP range must be at least 8 IP addresses"
    )]
    TooSmall(&'static str),
}

impl FromStr for ServiceRanges {
    type Err = ServiceRangesError;

    /// Parses comma-separated ranges.
    fn from_str(text: &str) -> Result<Self, ServiceRangesError> {
        let parse = |(at, range): (usize, &str)| match IpRange::parse(range.trim()) {
            Ok(range) => Ok(range),
            Err(RangeError::Prefix(_)) => Err(ServiceRangesError::NotRange(at)),
            Err(why) => Err(ServiceRangesError::TooLarge(at, why)),
        };
        let ranges = text.split(',').enumerate().map(parse).collect::<Result<Vec<_>, _>>()?;
        match ranges.as_slice() {
            [first, second] if first.family() == second.family() => return Err(ServiceRangesError::OneFamily),
            [_, _, _, ..] => return Err(ServiceRangesError::TooMany),
            _ => {}
        }
        match ranges.iter().zip(["primary", "secondary"]).find(|(range, _)| range.is_too_small()) {
            Some((_, which)) => Err(ServiceRangesError::TooSmall(which)),
            None => Ok(ServiceRanges(ranges)),
        }
    }
}

/// The ranges that a cluster has for its services.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceNetwork {
    ranges: ServiceRanges,
    ports: PortRange,
}

impl ServiceNetwork {
    pub fn new(ranges: ServiceRanges, ports: PortRange) -> Self {
        ServiceNetwork { ranges, ports }
    }

    pub fn ranges(&self) -> &[IpRange] {
        &self.ranges.0
    }

    pub fn ports(&self) -> PortRange {
        self.ports
    }

    fn families(&self) -> Families {
        let primary = self.ranges().first().map_or(Family::V4, IpRange::family);
        Families { primary, is_dual: self.ranges().len() > 1 }
    }
}

impl Default for ServiceNetwork {
    /// The defaults of kube-apiserver.
    fn default() -> Self {
        let ranges = IpRange::parse("10.0.0.0/24").into_iter().collect();
        ServiceNetwork { ranges: ServiceRanges(ranges), ports: PortRange::default() }
    }
}

pub(super) fn addresses() -> Collection {
    Collection::new(GROUP, "ipaddresses")
}

/// The ranges of cluster IPs.
pub(super) fn stored_ranges() -> Collection {
    Collection::new(GROUP, "servicecidrs")
}

/// The objects that record which service has which node port.
pub(super) fn shards() -> Collection {
    Collection::new("", "servicenodeports")
}

/// What is available, and what a service takes and releases.
pub(super) struct Holdings<'r> {
    /// `namespace/name` of the service.
    owner: (&'r str, &'r str),
    /// The ranges that addresses are currently allocated from.
    ranges: Vec<IpRange>,
    addresses: Snapshot,
    ports: PortRange,
    stored: Snapshot,
    shards: BTreeMap<String, Map>,
    taken: BTreeSet<IpAddr>,
    freed: BTreeSet<IpAddr>,
}

impl Addresses for Holdings<'_> {
    fn take(&mut self, ip: IpAddr) -> Result<(), Refusal> {
        if self.ranges.iter().all(|range| range.refuse(ip).is_some()) {
            return Err(Refusal::OtherNetwork);
        }
        if self.is_free(ip) {
            self.taken.insert(ip);
            Ok(())
        } else {
            Err(Refusal::AddressTaken)
        }
    }

    fn take_any(&mut self, family: Family) -> Result<IpAddr, Refusal> {
        let of_family = self.ranges.iter().filter(|range| range.family() == family);
        let free = of_family.flat_map(|range| range.candidates(random())).find(|ip| self.is_free(*ip));
        self.taken.extend(free);
        free.ok_or(Refusal::Full)
    }

    fn give_back(&mut self, ip: IpAddr) {
        self.freed.insert(ip);
    }
}

impl Ports for Holdings<'_> {
    fn take(&mut self, port: i64) -> Result<(), Refusal> {
        if let Some(refusal) = self.ports.refuse(port) {
            return Err(refusal);
        }
        if self.has_port(port) {
            return Err(Refusal::PortTaken);
        }
        self.claim_port(port);
        Ok(())
    }

    fn take_any(&mut self) -> Result<i64, Refusal> {
        let port = self.ports.candidates(random()).find(|port| !self.has_port(*port)).ok_or(Refusal::Full)?;
        Ports::take(self, port).map(|()| port)
    }

    fn give_back(&mut self, port: i64) {
        let owner = format!("{}/{}", self.owner.0, self.owner.1);
        if self.owner_of(port).as_deref() == Some(&owner) {
            self.shard(port).remove(&port.to_string());
        }
    }
}

fn random() -> u64 {
    Uuid::new_v4().as_u64_pair().1.reverse_bits()
}

fn shard_key(port: i64) -> String {
    format!("{:02}", port.rem_euclid(SHARDS))
}

/// The ports of a shard, by their numbers, each with the service that has it.
pub(super) fn ports_in(shard: Option<&store::Stored>) -> Map {
    let object = shard.and_then(|shard| json::decode(&shard.bytes).ok());
    object.and_then(|object| object.get("ports").and_then(Value::as_object).cloned()).unwrap_or_default()
}

impl Holdings<'_> {
    fn is_free(&self, ip: IpAddr) -> bool {
        !self.taken.contains(&ip) && self.taken_by(ip).is_none()
    }

    fn has_port(&mut self, port: i64) -> bool {
        self.owner_of(port).is_some()
    }

    /// The IPAddress that takes an address, as it is stored.
    pub(super) fn taken_by(&self, ip: IpAddr) -> Option<&store::Stored> {
        find(&self.addresses, &ip.to_string())
    }

    /// `namespace/name` of the service that has a port.
    pub(super) fn owner_of(&mut self, port: i64) -> Option<String> {
        self.shard(port).get(&port.to_string()).map(|owner| owner.as_str().unwrap_or_default().to_owned())
    }

    /// Takes an address if it is free, whatever the ranges.
    pub(super) fn claim_address(&mut self, ip: IpAddr) {
        self.taken.insert(ip);
    }

    /// Takes a port if it is free, whatever the range.
    pub(super) fn claim_port(&mut self, port: i64) {
        let owner = Value::from(format!("{}/{}", self.owner.0, self.owner.1));
        self.shard(port).insert(port.to_string(), owner);
    }

    /// The shard of a port, read on first use.
    fn shard(&mut self, port: i64) -> &mut Map {
        let key = shard_key(port);
        let Holdings { stored, shards, .. } = self;
        shards.entry(key).or_insert_with_key(|key| ports_in(find(stored, key)))
    }
}

pub(super) fn find<'s>(snapshot: &'s Snapshot, key: &str) -> Option<&'s store::Stored> {
    snapshot.range(key, None).next().filter(|stored| *stored.key == *key).map(|stored| &**stored)
}

impl Registry {
    /// Allocates what a service needs; returns the writes that must be made with the service.
    ///
    /// Errors: 422 if the requested address or port is taken or not possible, 500 if nothing is left.
    pub(super) async fn allocate(
        &self,
        target: &Target,
        new: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<Vec<store::Write>, Status> {
        if !is_service(target) || target.subresource != Subresource::Main {
            return Ok(Vec::new());
        }
        let name = new.str_at(&["metadata", "name"]).to_owned();
        let told = |error| told(&name, error);
        align(new, old);
        let families = self.network.families();
        settle_families(target.version.minor, new, old, families)
            .map_err(|errors| told(AllocationError::Invalid(errors)))?;
        let mut holdings = self.holdings((&target.namespace, &name)).await?;
        if dry_run {
            let stored = &holdings.stored;
            let is_taken = |port: i64| ports_in(find(stored, &shard_key(port))).contains_key(&port.to_string());
            let mut dry_run = DryRun::new(self.network.ranges(), &is_taken);
            allocate_cluster_ips(new, old, &mut dry_run).map_err(told)?;
            allocate_node_ports(new, old, &mut dry_run).map_err(told)?;
            return Ok(Vec::new());
        }
        allocate_cluster_ips(new, old, &mut holdings).map_err(told)?;
        allocate_node_ports(new, old, &mut holdings).map_err(told)?;
        self.claims(&holdings).await
    }

    /// The writes that must be made with the deletion of a service: they release all that it has.
    pub(super) async fn release(&self, target: &Target, stored: &store::Stored) -> Result<Vec<store::Write>, Status> {
        if !is_service(target) {
            return Ok(Vec::new());
        }
        let service = json::decode(&stored.bytes).unwrap_or_default();
        let (namespace, name) = stored.key.split_once('/').unwrap_or(("", &stored.key));
        let mut holdings = self.holdings((namespace, name)).await?;
        give_back(&service, &mut holdings, 0);
        give_back_node_ports(&service, &mut holdings);
        self.claims(&holdings).await
    }

    /// Removes the Endpoints of a deleted service, so that a new service of the same name does not start with them.
    pub(super) async fn after_deletion(&self, target: &Target, key: &str) {
        if !is_service(target) {
            return;
        }
        let Ok(mut endpoints) = self.own_target("", "endpoints", "").await else { return };
        if let Some((namespace, name)) = key.split_once('/') {
            (endpoints.namespace, endpoints.name) = (namespace.to_owned(), name.to_owned());
        }
        // It doesn't matter if there are none, or if they stay.
        _ = Box::pin(self.delete_unasked(&endpoints, &DeleteRequest::default())).await;
    }

    pub(super) async fn holdings<'r>(&self, owner: (&'r str, &'r str)) -> Result<Holdings<'r>, Status> {
        Ok(Holdings {
            owner,
            ranges: self.service_ranges().await?,
            addresses: self.newest(&addresses()).await?,
            ports: self.network.ports,
            stored: self.newest(&shards()).await?,
            shards: BTreeMap::new(),
            taken: BTreeSet::new(),
            freed: BTreeSet::new(),
        })
    }

    /// The ranges that addresses are allocated from: the stored ones, or those of the server until there are any.
    async fn service_ranges(&self) -> Result<Vec<IpRange>, Status> {
        Ok(self.ranges_in(&self.newest(&stored_ranges()).await?, ranges::is_ready))
    }

    /// The stored ranges that are wanted, or those of the server until there are any.
    pub(super) fn ranges_in(&self, stored: &Snapshot, is_wanted: fn(&Value) -> bool) -> Vec<IpRange> {
        if stored.is_empty() {
            return self.network.ranges().to_vec();
        }
        let objects = stored.range("", None).filter_map(|stored| json::decode(&stored.bytes).ok());
        let wanted: Vec<Value> = objects.filter(is_wanted).collect();
        wanted.iter().flat_map(ranges::ranges).filter_map(|range| IpRange::parse(range).ok()).collect()
    }

    pub(super) async fn newest(&self, collection: &Collection) -> Result<Snapshot, Status> {
        let snapshot = self.storage.snapshot(collection, At::Newest).await;
        snapshot.map_err(|_| Status::internal_error("what is stored can't be read"))
    }

    /// The writes that record what a service takes, and release what it gives back.
    pub(super) async fn claims(&self, holdings: &Holdings<'_>) -> Result<Vec<store::Write>, Status> {
        let mut writes = Vec::new();
        for ip in &holdings.taken {
            writes.push(self.claim(*ip, holdings.owner).await?);
        }
        for ip in &holdings.freed {
            let key = ip.to_string();
            let found = find(&holdings.addresses, &key);
            let is_own = |stored: &&store::Stored| {
                let (namespace, name) = holdings.owner;
                json::decode(&stored.bytes).is_ok_and(|address| addresses::is_of_service(&address, namespace, name))
            };
            writes.extend(found.filter(is_own).map(|stored| store::Write {
                collection: addresses(),
                key: stored.key.clone(),
                op: store::Op::Delete,
                guards: vec![Guard::At { revision: stored.revision }],
            }));
        }
        let changed = holdings.shards.iter().filter_map(|(key, ports)| {
            let stored = find(&holdings.stored, key);
            (ports_in(stored) != *ports).then(|| shard_write(key, ports, stored))
        });
        writes.extend(changed);
        Ok(writes)
    }

    /// The write of the IPAddress by which a service holds an address.
    pub(super) async fn claim(&self, ip: IpAddr, (namespace, name): (&str, &str)) -> Result<store::Write, Status> {
        let served = self.resolve(GROUP, "ipaddresses").await?;
        let resource = served.unwrap_or_else(|| Arc::clone(&IP_ADDRESS));
        let version = Arc::clone(resource.first());
        let target = Target {
            resource,
            version,
            subresource: Subresource::Main,
            namespace: String::new(),
            name: ip.to_string(),
        };
        let mut object = addresses::of_service(ip, namespace, name);
        let now = self.now();
        object = self.manage_fields(&target, |fields| fields.update(None, object.clone(), MANAGER, &now)).await;
        super::write::fill_system_fields(&mut object, &now, target.resource.strategy);
        Ok(store::Write {
            collection: target.resource.collection.clone(),
            key: target.name.as_str().into(),
            op: self.put(&target.resource, &object)?,
            guards: vec![Guard::Absent],
        })
    }
}

pub(super) fn shard_write(key: &str, ports: &Map, stored: Option<&store::Stored>) -> store::Write {
    let object = object! { "metadata" => object! { "name" => key }, "ports" => ports.clone() };
    store::Write {
        collection: shards(),
        key: key.into(),
        op: store::Op::Put(store::Put {
            object: store::Encoded::of(&object),
            uid: key.into(),
            stored_version: "v1".into(),
            schema_generation: 0,
            expires_at_ms: None,
            served_under: None,
        }),
        guards: vec![stored.map_or(Guard::Absent, |stored| Guard::At { revision: stored.revision })],
    }
}

pub(super) fn is_service(target: &Target) -> bool {
    target.version.group.is_empty() && target.version.names.plural == "services"
}

/// The message for a client whose allocation failed.
fn told(name: &str, error: AllocationError) -> Status {
    match error {
        AllocationError::Invalid(errors) => Status::invalid("", "Service", name, &errors),
        AllocationError::Internal(why) => Status::internal_error(&why),
        AllocationError::Plain(why) => Status::plain(500, &why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_refused_in_the_words_of_kube_apiserver() {
        let refused = |text: &str| text.parse::<ServiceRanges>().expect_err(text).to_string();
        for text in ["a", "10.0.0.0/33"] {
            assert_eq!(refused(text), "service-cluster-ip-range[0] is not a valid cidr");
        }
        assert_eq!(refused("10.0.0.0/24,a"), "service-cluster-ip-range[1] is not a valid cidr");
        assert_eq!(
            refused("10.0.0.0/24,10.1.0.0/24"),
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family"
        );
        assert_eq!(
            refused("10.0.0.0/24,fd00::/108,10.3.0.0/24"),
            "--service-cluster-ip-range must not contain more than two entries"
        );
        let small = "service cidr: the service cluster IP range must be at least 8 IP addresses";
        for (text, which) in [("10.0.0.0/31", "primary"), ("10.0.0.0/24,fd00::/126", "secondary")] {
            assert_eq!(refused(text), format!("error determining service IP ranges for {which} {small}"));
        }
        for text in ["10.0.0.0/29", "10.0.0.0/8", "10.0.0.0/24,fd00::/125"] {
            assert!(text.parse::<ServiceRanges>().is_ok(), "{text}");
        }
    }
}
