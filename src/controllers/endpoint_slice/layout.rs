//! Assigns endpoints to slices.
//!
//! Endpoints stay where they are: slices change as little as possible, since each change is sent to every node.
//!
//! Source: `reconcileByAddressType` and `reconcileByPortMapping` of `k8s.io/endpointslice`, release 1.37.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::controllers::family::reference;
use crate::controllers::services::{Member, is_headless};
use crate::controllers::slices::{Changes, Identity, MANAGED_BY, SERVICE_NAME, identity, key_of_ports, prefix};
use crate::object;
use crate::value::{Map, Value};

/// The name of the managing controller in the slices.
pub(super) const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
const TYPE: (&str, &str) = ("v1", "Service");
/// How many endpoints a slice has at most.
const ENDPOINTS_MAX: usize = 100;

/// The desired state of a slice.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slice {
    /// The stored slice; `None` if it must be created.
    there: Option<Value>,
    ports: Vec<Value>,
    pub endpoints: Vec<Value>,
    /// Whether it has to be written.
    pub is_changed: bool,
}

impl Slice {
    /// One that is being changed.
    #[cfg(test)]
    pub fn fixture(endpoints: Vec<Value>) -> Self {
        Slice { there: None, ports: Vec::new(), endpoints, is_changed: true }
    }

    fn name(&self) -> &str {
        self.there.as_ref().map(|slice| slice.str_at(&["metadata", "name"])).unwrap_or_default()
    }

    fn room(&self) -> usize {
        ENDPOINTS_MAX.saturating_sub(self.endpoints.len())
    }

    /// Takes as many endpoints as it has room for.
    fn fill(&mut self, left: &mut BTreeMap<Identity, Value>) {
        while self.room() > 0
            && let Some((_, endpoint)) = left.pop_first()
        {
            self.endpoints.push(endpoint);
            self.is_changed = true;
        }
    }
}

/// The slices of one family of addresses, and those that are no longer needed.
#[derive(Debug)]
pub(super) struct Layout {
    family: String,
    pub slices: Vec<Slice>,
    surplus: Vec<Value>,
}

/// The endpoints with one set of ports.
#[derive(Default)]
struct Group {
    ports: Vec<Value>,
    wanted: BTreeMap<Identity, Value>,
    there: Vec<Value>,
}

/// Distributes the endpoints of a service over the slices of one family; `there` are the existing ones.
pub(super) fn of(service: &Value, family: &str, members: &[Member], there: Vec<Value>) -> Layout {
    let count = there.len();
    let (ours, mut surplus): (Vec<Value>, Vec<Value>) = there.into_iter().partition(|slice| is_owned(slice, service));
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for member in members {
        let group = groups.entry(key_of_ports(&member.ports)).or_default();
        group.ports.clone_from(&member.ports);
        let is_of = |address: &&String| address.contains(':') == (family == "IPv6");
        if let Some(address) = member.addresses.iter().find(is_of).filter(|_| !member.is_lost) {
            let endpoint = endpoint(member, address);
            group.wanted.insert(identity(&endpoint), endpoint);
        }
    }
    for slice in ours {
        match groups.get_mut(&key_of_ports(slice.items_at(&["ports"]))) {
            Some(group) => group.there.push(slice),
            None => surplus.push(slice),
        }
    }
    let labels = labels_of(service);
    let mut slices = Vec::new();
    for group in groups.into_values() {
        slices.extend(place(group, &labels, &mut surplus));
    }
    let is_none_new = slices.iter().all(|slice| slice.there.is_some());
    if surplus.len() == count && is_none_new {
        keep_place(&labels, &mut slices, &mut surplus);
    }
    Layout { family: family.to_owned(), slices, surplus }
}

/// If there would be no slice, there is one without endpoints.
fn keep_place(labels: &Map, slices: &mut Vec<Slice>, surplus: &mut Vec<Value>) {
    let is_it = |slice: &Value| {
        slice.items_at(&["endpoints"]).is_empty()
            && slice.items_at(&["ports"]).is_empty()
            && slice.at(&["metadata", "labels"]).and_then(Value::as_object) == Some(labels)
    };
    if surplus.len() == 1 && is_it(&surplus[0]) {
        surplus.clear();
    } else {
        slices.push(Slice { there: None, ports: Vec::new(), endpoints: Vec::new(), is_changed: true });
    }
}

/// Whether a slice is of this service, and not of an earlier one of its name.
fn is_owned(slice: &Value, service: &Value) -> bool {
    slice.items_at(&["metadata", "ownerReferences"]).iter().any(|owner| {
        owner.str_at(&["uid"]) == service.str_at(&["metadata", "uid"]) && owner.str_at(&["kind"]) == TYPE.1
    })
}

/// Places the endpoints of a group: those that are in a slice stay there, the others fill up the slices that change anyway, then one
/// that they all fit into, and then new ones. Slices that are left empty are added to `surplus`.
fn place(group: Group, labels: &Map, surplus: &mut Vec<Value>) -> Vec<Slice> {
    let mut left = group.wanted;
    let mut slices = Vec::new();
    for slice in group.there {
        let kept = keep(slice, labels, &mut left);
        if kept.is_changed && kept.endpoints.is_empty() {
            surplus.extend(kept.there);
        } else {
            slices.push(kept);
        }
    }
    slices.sort_by_key(|slice| (Reverse(slice.endpoints.len()), slice.name().to_owned()));
    slices.iter_mut().filter(|slice| slice.is_changed).for_each(|slice| slice.fill(&mut left));
    while !left.is_empty() {
        // They are sorted by length: the first with enough room is the one that becomes fullest.
        match slices.iter_mut().find(|slice| !slice.is_changed && slice.room() >= left.len()) {
            Some(slice) => {
                slice.endpoints = slice.endpoints.drain(..).map(without_hints).collect();
                slice.fill(&mut left);
            }
            None => {
                let ports = group.ports.clone();
                let mut slice = Slice { there: None, ports, endpoints: Vec::new(), is_changed: true };
                slice.fill(&mut left);
                slices.push(slice);
            }
        }
    }
    slices
}

/// Keeps the endpoints of a slice that are still wanted, and removes these from `left`.
fn keep(slice: Value, labels: &Map, left: &mut BTreeMap<Identity, Value>) -> Slice {
    let before = slice.items_at(&["endpoints"]);
    let mut kept = Vec::with_capacity(before.len());
    let mut is_changed = slice.at(&["metadata", "labels"]).and_then(Value::as_object) != Some(labels);
    for endpoint in before {
        match left.remove(&identity(endpoint)) {
            Some(wanted) => {
                is_changed |= without_hints(endpoint.clone()) != wanted;
                kept.push(wanted);
            }
            None => is_changed = true,
        }
    }
    let endpoints = if is_changed { kept } else { before.to_vec() };
    Slice { ports: slice.items_at(&["ports"]).to_vec(), endpoints, is_changed, there: Some(slice) }
}

fn without_hints(mut endpoint: Value) -> Value {
    endpoint.make_object().remove("hints");
    endpoint
}

fn endpoint(member: &Member, address: &str) -> Value {
    let mut endpoint = object! {
        "addresses" => vec![Value::from(address)],
        "conditions" => object! {
            "ready" => member.is_ready,
            "serving" => member.serves,
            "terminating" => member.is_going,
        },
        "targetRef" => member.target.clone(),
    };
    for (name, text) in [("nodeName", &member.node), ("zone", &member.zone), ("hostname", &member.hostname)] {
        if !text.is_empty() {
            endpoint.make_object().insert(name, Value::from(text.as_str()));
        }
    }
    endpoint
}

fn labels_of(service: &Value) -> Map {
    let mut labels = service.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
    labels.insert(SERVICE_NAME, Value::from(service.str_at(&["metadata", "name"])));
    labels.insert(MANAGED_BY, Value::from(MANAGER));
    if is_headless(service) {
        _ = labels.insert(HEADLESS, Value::from(""));
    } else {
        _ = labels.remove(HEADLESS);
    }
    labels
}

impl Layout {
    /// Adds the necessary writes. A new slice replaces one that is no longer needed.
    pub fn into_changes(self, service: &Value, changes: &mut Changes) {
        let labels = labels_of(service);
        let (mut reused, foreign): (Vec<Value>, Vec<Value>) =
            self.surplus.into_iter().partition(|slice| is_owned(slice, service));
        for slice in self.slices.into_iter().filter(|slice| slice.is_changed) {
            let there = slice.there.or_else(|| reused.pop());
            let is_new = there.is_none();
            let mut object = there.unwrap_or_else(|| new_slice(service, &self.family));
            let fields = object.make_object();
            fields.insert("endpoints", Value::Array(slice.endpoints));
            fields.insert("ports", Value::Array(slice.ports));
            fields.entry("metadata").make_object().insert("labels", labels.clone().into());
            if is_new { changes.create.push(object) } else { changes.update.push(object) }
        }
        changes.delete.extend(reused.into_iter().chain(foreign));
    }
}

fn new_slice(service: &Value, family: &str) -> Value {
    object! {
        "apiVersion" => "discovery.k8s.io/v1",
        "kind" => "EndpointSlice",
        "addressType" => family,
        "metadata" => object! {
            "generateName" => prefix(service.str_at(&["metadata", "name"])),
            "namespace" => service.str_at(&["metadata", "namespace"]),
            "ownerReferences" => vec![reference(TYPE, service)],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::client::int_at;
    use crate::controllers::services::tests::{a_member, read};

    fn service() -> Value {
        read(
            "metadata: {name: s, namespace: d, uid: u, labels: {a: b}}\n\
             spec: {clusterIP: None, ipFamilies: [IPv4], ports: [{name: http, port: 80, targetPort: web, protocol: TCP}]}",
        )
    }

    /// Pods with these numbers.
    fn members(numbers: impl Iterator<Item = u32>) -> Vec<Member> {
        let service = service();
        let member = |number: u32| a_member(&service, &format!("p{number:03}"), &format!("10.0.0.{number}"), true);
        numbers.filter_map(member).collect()
    }

    fn changes(members: &[Member], there: &[Value]) -> Changes {
        let mut changes = Changes::default();
        of(&service(), "IPv4", members, there.to_vec()).into_changes(&service(), &mut changes);
        changes
    }

    fn counts(changes: &Changes) -> [usize; 3] {
        [changes.create.len(), changes.update.len(), changes.delete.len()]
    }

    /// The slices after such changes, with names.
    fn stored(changes: Changes) -> Vec<Value> {
        let mut slices = changes.create;
        for (number, slice) in slices.iter_mut().enumerate() {
            let metadata = slice.make_object().entry("metadata").make_object();
            metadata.insert("name", Value::String(format!("s-{number}")));
        }
        slices
    }

    fn sizes(slices: &[Value]) -> Vec<usize> {
        slices.iter().map(|slice| slice.items_at(&["endpoints"]).len()).collect()
    }

    #[test]
    fn each_slice_has_so_many_endpoints() {
        let slices = stored(changes(&members(0..150), &[]));
        assert_eq!(sizes(&slices), [100, 50]);
        let first = &slices[0].items_at(&["endpoints"])[0];
        assert_eq!((first.str_at(&["zone"]), int_at(&slices[0].items_at(&["ports"])[0], &["port"])), ("z", 8080));
        assert_eq!(slices[0].str_at(&["metadata", "labels", HEADLESS]), "");
    }

    #[test]
    fn endpoints_stay_in_their_slices() {
        let slices = stored(changes(&members(0..150), &[]));
        assert_eq!(changes(&members(0..150), &slices), Changes::default());
        // A removed endpoint leaves its place free, and a new one takes it.
        let fewer = changes(&members(1..150), &slices);
        assert_eq!((counts(&fewer), sizes(&fewer.update)), ([0, 1, 0], vec![99]));
        let other = changes(&members(1..151), &slices);
        assert_eq!((counts(&other), sizes(&other.update)), ([0, 1, 0], vec![100]));
        // One more stands where most others are that leave room for it.
        let more = changes(&members(0..151), &slices);
        assert_eq!((counts(&more), sizes(&more.update)), ([0, 1, 0], vec![51]));
        let many = changes(&members(0..210), &slices);
        assert_eq!((counts(&many), sizes(&many.create)), ([1, 0, 0], vec![60]));
    }

    #[test]
    fn a_service_without_endpoints_has_a_slice() {
        let empty = changes(&[], &[]);
        assert_eq!((counts(&empty), sizes(&empty.create)), ([1, 0, 0], vec![0]));
        let slices = stored(empty);
        assert_eq!(changes(&[], &slices), Changes::default());
        let filled = changes(&members(0..1), &slices);
        assert_eq!((counts(&filled), sizes(&filled.update)), ([0, 1, 0], vec![1]));
        let two = stored(changes(&members(0..150), &[]));
        assert_eq!(counts(&changes(&[], &two)), [0, 1, 1]);
    }

    #[test]
    fn what_is_not_of_this_service_goes() {
        let mut slices = stored(changes(&members(0..1), &[]));
        let metadata = slices[0].make_object().entry("metadata").make_object();
        metadata.insert("ownerReferences", read("[{kind: Service, uid: earlier}]"));
        assert_eq!(counts(&changes(&members(0..1), &slices)), [1, 0, 1]);
    }

    #[test]
    fn labels_follow_the_service() {
        let mut slices = stored(changes(&members(0..1), &[]));
        slices[0].make_object().entry("metadata").make_object().entry("labels").make_object().remove("a");
        let mended = changes(&members(0..1), &slices);
        assert_eq!(counts(&mended), [0, 1, 0]);
        assert_eq!(mended.update[0].str_at(&["metadata", "labels", "a"]), "b");
    }
}
