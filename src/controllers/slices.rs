//! EndpointSlices: which slice belongs to which service, and what the slices of all controllers have in common.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client::{Client, Kind, WHOLE, int_at, is_going};
use crate::meta::Status;
use crate::store::ChangeEvent;
use crate::value::Value;
use crate::work;

pub(super) const SLICES: Kind = Kind("discovery.k8s.io", "endpointslices");
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// The slices that one controller makes, by their services.
pub(super) struct Slices {
    manager: &'static str,
    index: Mutex<SliceIndex>,
}

#[derive(Default)]
struct SliceIndex {
    /// The slices of each service.
    slices: HashMap<String, BTreeSet<Arc<str>>>,
    /// The service of each slice.
    services: HashMap<Arc<str>, String>,
}

impl Slices {
    /// Those with this value of the label [`MANAGED_BY`].
    pub fn of_manager(manager: &'static str) -> Self {
        Slices { manager, index: Mutex::default() }
    }

    fn index(&self) -> MutexGuard<'_, SliceIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn forget(&self) {
        *self.index() = SliceIndex::default();
    }

    /// Records a slice, or its deletion; returns the keys of its previous and current services.
    pub fn note(&self, change: &ChangeEvent) -> Vec<String> {
        let namespace = change.key.split_once('/').map_or("", |(namespace, _)| namespace);
        let ours = change.stored.as_ref().filter(|stored| stored.label(MANAGED_BY) == Some(self.manager));
        let service = ours.and_then(|stored| stored.label(SERVICE_NAME)).map(|name| format!("{namespace}/{name}"));
        let mut index = self.index();
        let before = index.remove(&change.key);
        if let Some(service) = &service {
            index.add(service, Arc::clone(&change.key));
        }
        let about: BTreeSet<String> = before.into_iter().chain(service).collect();
        about.into_iter().collect()
    }

    /// The slices of a service, except those that are being deleted.
    pub async fn of(&self, client: &Client, service: &str) -> Result<Vec<Value>, Status> {
        let keys: Vec<Arc<str>> = self.index().slices.get(service).into_iter().flatten().cloned().collect();
        let mut found = client.get_all(SLICES, &keys, WHOLE).await?;
        found.retain(|slice| !is_going(slice) && slice.str_at(&["metadata", "labels", MANAGED_BY]) == self.manager);
        Ok(found)
    }

    /// Carries out the changes.
    pub async fn write(&self, client: &Client, service: &str, changes: &Changes) -> Result<(), Status> {
        for slice in &changes.create {
            let made = client.create(SLICES, slice).await?;
            self.index().add(service, super::client::key_of(&made).into());
        }
        for slice in &changes.update {
            client.update(SLICES, slice).await?;
        }
        for slice in &changes.delete {
            client.delete(SLICES, slice, None).await?;
        }
        Ok(())
    }
}

impl SliceIndex {
    fn add(&mut self, service: &str, slice: Arc<str>) {
        self.slices.entry(service.to_owned()).or_default().insert(Arc::clone(&slice));
        self.services.insert(slice, service.to_owned());
    }

    fn remove(&mut self, slice: &Arc<str>) -> Option<String> {
        let service = self.services.remove(slice)?;
        if let Some(slices) = self.slices.get_mut(&service) {
            slices.remove(slice);
            if slices.is_empty() {
                self.slices.remove(&service);
            }
        }
        Some(service)
    }
}

/// The changes to write.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    pub create: Vec<Value>,
    pub update: Vec<Value>,
    pub delete: Vec<Value>,
}

/// What the names of the slices of a service begin with.
pub(super) fn prefix(service: &str) -> String {
    super::pods::prefix(service)
}

/// The identity of an endpoint: address, hostname, and target.
pub(super) type Identity = (String, String, String);

pub(super) fn identity(endpoint: &Value) -> Identity {
    let address = endpoint.items_at(&["addresses"]).first().and_then(Value::as_str).unwrap_or_default();
    let target = endpoint.str_at(&["targetRef", "name"]).to_owned();
    (address.to_owned(), endpoint.str_at(&["hostname"]).to_owned(), target)
}

/// The same for the same ports, in whichever order.
pub(super) fn key_of_ports(ports: &[Value]) -> String {
    let texts = ports.iter().map(|port| {
        work::step();
        let [name, protocol, application] = ["name", "protocol", "appProtocol"].map(|field| port.str_at(&[field]));
        format!("{name}/{protocol}/{}/{application}", int_at(port, &["port"]))
    });
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Stored;
    use crate::value::{json, yaml};

    #[test]
    fn slices_are_known_by_their_services() {
        let slices = Slices::of_manager("m");
        let note = |key: &str, labels: Option<&str>| {
            let stored = labels.map(|labels| {
                let object = yaml::decode(format!("metadata: {{labels: {labels}}}").as_bytes()).expect("YAML");
                Arc::new(Stored::fixture(key, "u", json::encode(&object)))
            });
            let revision = crate::meta::Revision::new(1);
            slices.note(&ChangeEvent {
                collection: SLICES.collection(),
                key: key.into(),
                uid: "u".into(),
                revision,
                stored,
            })
        };
        let of = |service: &str, manager: &str| format!("{{{SERVICE_NAME}: {service}, {MANAGED_BY}: {manager}}}");
        assert_eq!(note("d/s", Some(&of("web", "m"))), ["d/web"]);
        assert_eq!(note("d/s", Some(&of("other", "m"))), ["d/other", "d/web"]);
        assert_eq!(note("d/t", Some(&of("web", "somebody"))), [""; 0]);
        assert_eq!(slices.index().slices.keys().collect::<Vec<_>>(), ["d/other"]);
        assert_eq!([note("d/s", None), note("d/s", None)].concat(), ["d/other"]);
    }
}
