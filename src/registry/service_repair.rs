//! Repairs the allocations of services that do not agree with the services' specs.
//!
//! They agree as long as only services are written. But any client may delete addresses, and a database may come from
//! an older program or a copy. Input: the newest states. Output: writes under guards, one by one; what has changed meanwhile
//! is checked again the next time.
//!
//! Source: `pkg/registry/core/service/{ipallocator,portallocator}/controller`, release 1.37.

use crate::kinds::services::addresses;
use crate::kinds::services::allocate::{held_addresses, held_ports};
use crate::meta::Status;
use crate::store::{self, Collection, Guard, Snapshot};
use crate::value::{Map, Value, json};

use super::Registry;
use super::service_network::{addresses, find, ports_in, shard_write, shards};

/// The states that were found to be consistent.
pub struct Repaired {
    services: Snapshot,
    addresses: Snapshot,
    shards: Snapshot,
}

impl Repaired {
    fn is_same(&self, other: &Repaired) -> bool {
        self.services.is_same(&other.services)
            && self.addresses.is_same(&other.addresses)
            && self.shards.is_same(&other.shards)
    }

    /// The service that is stored under `namespace/name`.
    fn service(&self, key: &str) -> Option<Value> {
        find(&self.services, key).and_then(|stored| json::decode(&stored.bytes).ok())
    }
}

impl Registry {
    /// Allocates again what services have in their specs but is not recorded, and releases what belongs to no service.
    /// Does nothing if the states are those in `known`; returns the states as they were found.
    pub async fn repair_services(&self, known: Option<Repaired>) -> Result<Repaired, Status> {
        // The services are read first: what is taken later than that is left alone.
        let services = Collection::new("", "services");
        let state = Repaired {
            services: self.newest(&services).await?,
            addresses: self.newest(&addresses()).await?,
            shards: self.newest(&shards()).await?,
        };
        if known.as_ref().is_some_and(|known| known.is_same(&state)) {
            return Ok(state);
        }
        for stored in state.services.range("", None) {
            self.repair_service(&services, stored).await?;
        }
        let freed = addresses_of_nobody(&state).into_iter().chain(ports_of_nobody(&state));
        self.write_each(freed.collect(), &[]).await;
        Ok(state)
    }

    /// Takes for a service what is in its spec and still free.
    async fn repair_service(&self, services: &Collection, stored: &store::Stored) -> Result<(), Status> {
        let Ok(service) = json::decode(&stored.bytes) else { return Ok(()) };
        let (namespace, name) = stored.key.split_once('/').unwrap_or(("", &stored.key));
        let mut holdings = self.holdings((namespace, name)).await?;
        for ip in held_addresses(&service) {
            if holdings.is_free(ip) {
                holdings.claim_address(ip);
            }
        }
        for port in held_ports(&service) {
            if !holdings.has_port(port) {
                holdings.claim_port(port);
            }
        }
        let writes = self.claims(&holdings).await?;
        let (collection, key, revision) = (services.clone(), stored.key.clone(), stored.revision);
        self.write_each(writes, &[Guard::Other { collection, key, revision }]).await;
        Ok(())
    }

    async fn write_each(&self, writes: Vec<store::Write>, guards: &[Guard]) {
        for mut write in writes {
            write.guards.extend(guards.iter().cloned());
            _ = self.storage.write(write).await;
        }
    }
}

/// Deletions of addresses that were taken for services that do not have them.
fn addresses_of_nobody(state: &Repaired) -> Vec<store::Write> {
    let known = state.addresses.range("", None).filter(|stored| stored.revision <= state.services.revision());
    let is_nobodys = |stored: &&std::sync::Arc<store::Stored>| {
        json::decode(&stored.bytes).is_ok_and(|address| addresses::is_managed(&address) && !is_held(state, &address))
    };
    let deletion = |stored: &std::sync::Arc<store::Stored>| store::Write {
        collection: addresses(),
        key: stored.key.clone(),
        op: store::Op::Delete,
        guards: vec![Guard::At { revision: stored.revision }],
    };
    known.filter(is_nobodys).map(deletion).collect()
}

fn is_held(state: &Repaired, address: &Value) -> bool {
    let parent = |field: &str| address.str_at(&["spec", "parentRef", field]);
    let (namespace, name) = (parent("namespace"), parent("name"));
    let ip = address.str_at(&["metadata", "name"]);
    addresses::is_of_service(address, namespace, name)
        && state
            .service(&format!("{namespace}/{name}"))
            .is_some_and(|service| held_addresses(&service).any(|held| held.to_string() == ip))
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
}
