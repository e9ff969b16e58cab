//! Endpoints that users write for a service without a selector, mirrored as EndpointSlices.
//!
//! Source: `pkg/controller/endpointslicemirroring` of Kubernetes 1.37.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use super::client::{Client, Kind, int_at, is_going};
use super::family::reference;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::services::SERVICES;
use super::slices::{Changes, Identity, MANAGED_BY, SERVICE_NAME, SLICES, Slices, identity, key_of_ports, prefix};
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::{Map, Value};

const ENDPOINTS: Kind = Kind("", "endpoints");
const TYPE: (&str, &str) = ("v1", "Endpoints");
const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Annotations of Endpoints that only concern the Endpoints themselves.
const OWN_ANNOTATIONS: [&str; 2] =
    ["endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration"];
/// How many addresses of a subset are mirrored.
const ADDRESSES_MAX: usize = 1_000;

struct Mirror {
    client: Client,
    slices: Slices,
}

impl Reconciler for Mirror {
    const TASK: &str = "mirroring endpoints";

    fn collections(&self) -> Vec<Collection> {
        [SLICES, ENDPOINTS].map(Kind::collection).into()
    }

    fn forget(&self) {
        self.slices.forget();
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if SLICES.is(&change.collection) {
            return self.slices.note(change);
        }
        let is_about = SERVICES.is(&change.collection) || ENDPOINTS.is(&change.collection);
        if is_about { vec![change.key.to_string()] } else { Vec::new() }
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let there = self.slices.of(&self.client, key).await?;
        let endpoints = self.client.get(ENDPOINTS, key).await?.filter(is_mirrored);
        let service = self.client.get(SERVICES, key).await?.filter(is_without_selector);
        let (Some(endpoints), Some(_)) = (endpoints, service) else {
            let changes = Changes { delete: there, ..Changes::default() };
            self.slices.write(&self.client, key, &changes).await?;
            return Ok(Progress::Done);
        };
        let wanted = wanted(&endpoints);
        self.tell_of_left_out(&endpoints, &wanted);
        let changes = compared(&endpoints, wanted.slices, there);
        match self.slices.write(&self.client, key, &changes).await {
            // What is invalid would be refused again, until the Endpoints change. Kubernetes gives up after 15 attempts.
            Err(refused) if refused.code == 422 => {
                tracing::warn!(message = refused.message, key, "endpoints can't be mirrored");
                Ok(Progress::Done)
            }
            outcome => outcome.map(|()| Progress::Done),
        }
    }
}

impl Mirror {
    fn tell_of_left_out(&self, endpoints: &Value, wanted: &MirroredSlices) {
        if wanted.invalid > 0 {
            let message = format!("Skipped {} invalid IP addresses when mirroring to EndpointSlices", wanted.invalid);
            self.client.tell_warning(endpoints, "InvalidIPAddress", message);
        }
        if wanted.left_out > wanted.invalid {
            let message = format!(
                "A max of {ADDRESSES_MAX} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were skipped",
                wanted.left_out
            );
            self.client.tell_warning(endpoints, "TooManyAddressesToMirror", message);
        }
    }
}

/// Whether Endpoints are mirrored: old leader election locks are not.
fn is_mirrored(endpoints: &Value) -> bool {
    endpoints.str_at(&["metadata", "labels", SKIP]) != "true"
        && endpoints.at(&["metadata", "annotations", LEADER]).is_none()
}

fn is_without_selector(service: &Value) -> bool {
    service.at(&["spec", "selector"]).is_none_or(Value::is_null)
}

/// The slices that mirror Endpoints: one for each set of ports and each address family, with the endpoints by their
/// identities.
#[derive(Debug, Default)]
struct MirroredSlices {
    slices: BTreeMap<SliceKey, Slice>,
    /// How many addresses are invalid, and how many are not mirrored for any reason.
    invalid: usize,
    left_out: usize,
}

/// The ports, as one text, and the family.
type SliceKey = (String, &'static str);

#[derive(Debug, Default)]
struct Slice {
    ports: Vec<Value>,
    endpoints: BTreeMap<Identity, Value>,
}

fn wanted(endpoints: &Value) -> MirroredSlices {
    let mut wanted = MirroredSlices::default();
    for subset in endpoints.items_at(&["subsets"]) {
        let ports: Vec<Value> = subset.items_at(&["ports"]).iter().map(port_of).collect();
        let lists = [("addresses", true), ("notReadyAddresses", false)];
        let addresses = lists.iter().flat_map(|(list, ready)| subset.items_at(&[list]).iter().map(|it| (it, *ready)));
        let mut added = 0;
        let mut by_family: BTreeMap<&'static str, BTreeMap<Identity, Value>> = BTreeMap::new();
        for (address, is_ready) in addresses {
            if added >= ADDRESSES_MAX {
                wanted.left_out += 1;
                continue;
            }
            let Ok(ip) = address.str_at(&["ip"]).parse::<IpAddr>() else {
                wanted.invalid += 1;
                wanted.left_out += 1;
                continue;
            };
            added += 1;
            let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
            let endpoint = endpoint_of(address, &ip.to_string(), is_ready);
            by_family.entry(family).or_default().insert(identity(&endpoint), endpoint);
        }
        // The ports may be thousands: their text is made once for all addresses.
        let key = key_of_ports(&ports);
        for (family, endpoints) in by_family {
            let slice = wanted.slices.entry((key.clone(), family)).or_default();
            slice.ports.clone_from(&ports);
            slice.endpoints.extend(endpoints);
        }
    }
    wanted
}

fn port_of(port: &Value) -> Value {
    let mut found = object! {
        "name" => port.str_at(&["name"]),
        "protocol" => port.str_at(&["protocol"]),
        "port" => int_at(port, &["port"]),
    };
    if !port.str_at(&["appProtocol"]).is_empty() {
        found.make_object().insert("appProtocol", Value::from(port.str_at(&["appProtocol"])));
    }
    found
}

fn endpoint_of(address: &Value, ip: &str, is_ready: bool) -> Value {
    let mut endpoint = object! {
        "addresses" => vec![Value::from(ip)],
        "conditions" => object! { "ready" => is_ready },
    };
    let fields = endpoint.make_object();
    for field in ["targetRef", "nodeName", "hostname"] {
        if let Some(given) = address.get(field).filter(|given| !given.is_null()) {
            fields.insert(field, given.clone());
        }
    }
    endpoint
}

/// Compares the wanted slices with the existing ones. A slice with the same ports and family is kept, and an unneeded
/// one of the same family is reused.
fn compared(endpoints: &Value, wanted: BTreeMap<SliceKey, Slice>, there: Vec<Value>) -> Changes {
    let mut changes = Changes::default();
    let mut by_place: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
    for slice in there {
        let place = (key_of_ports(slice.items_at(&["ports"])), slice.str_at(&["addressType"]).to_owned());
        by_place.entry(place).or_default().push(slice);
    }
    let mut unmet = Vec::new();
    for ((ports, family), slice) in wanted {
        match by_place.get_mut(&(ports, family.to_owned())).and_then(|slices| slices.pop()) {
            Some(known) => changes.update.extend(filled(endpoints, known, &slice)),
            None => unmet.push((family, slice)),
        }
    }
    let mut left: BTreeMap<String, VecDeque<Value>> = BTreeMap::new();
    for ((_, family), slices) in by_place {
        left.entry(family).or_default().extend(slices);
    }
    for (family, slice) in unmet {
        match left.get_mut(family).and_then(VecDeque::pop_front) {
            Some(known) => changes.update.extend(filled(endpoints, known, &slice)),
            None => changes.create.extend(filled(endpoints, new_slice(endpoints, family), &slice)),
        }
    }
    changes.delete = left.into_values().flatten().collect();
    if is_going(endpoints) {
        changes.create.clear();
    }
    changes
}

/// A slice with the wanted content; `None` if it already has it.
fn filled(endpoints: &Value, mut known: Value, slice: &Slice) -> Option<Value> {
    let (labels, annotations) = (labels_of(endpoints), annotations_of(endpoints));
    let has = |field: &str| known.at(&["metadata", field]).and_then(Value::as_object).cloned().unwrap_or_default();
    let is_ours = |owner: &Value| owner.str_at(&["uid"]) == endpoints.str_at(&["metadata", "uid"]);
    let present: BTreeMap<_, _> = known.items_at(&["endpoints"]).iter().map(|it| (identity(it), it)).collect();
    let says_so = known.at(&["metadata", "resourceVersion"]).is_some()
        && present.len() == slice.endpoints.len()
        && slice.endpoints.iter().all(|(identity, endpoint)| present.get(identity) == Some(&endpoint))
        && key_of_ports(known.items_at(&["ports"])) == key_of_ports(&slice.ports)
        && (has("labels"), has("annotations")) == (labels.clone(), annotations.clone())
        && known.items_at(&["metadata", "ownerReferences"]).iter().any(is_ours);
    if says_so {
        return None;
    }
    let fields = known.make_object();
    fields.insert("endpoints", Value::Array(slice.endpoints.values().cloned().collect()));
    fields.insert("ports", Value::Array(slice.ports.clone()));
    let metadata = fields.entry("metadata").make_object();
    metadata.insert("labels", labels.into());
    metadata.insert("ownerReferences", Value::Array(vec![reference(TYPE, endpoints)]));
    if annotations.is_empty() {
        metadata.remove("annotations");
    } else {
        metadata.insert("annotations", annotations.into());
    }
    Some(known)
}

fn labels_of(endpoints: &Value) -> Map {
    let mut labels = endpoints.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
    labels.insert(SERVICE_NAME, Value::from(endpoints.str_at(&["metadata", "name"])));
    labels.insert(MANAGED_BY, Value::from(MANAGER));
    labels
}

fn annotations_of(endpoints: &Value) -> Map {
    let annotations = endpoints.at(&["metadata", "annotations"]).and_then(Value::as_object);
    let mut annotations = annotations.cloned().unwrap_or_default();
    for name in OWN_ANNOTATIONS {
        annotations.remove(name);
    }
    annotations
}

fn new_slice(endpoints: &Value, family: &str) -> Value {
    object! {
        "apiVersion" => "discovery.k8s.io/v1",
        "kind" => "EndpointSlice",
        "addressType" => family,
        "metadata" => object! {
            "generateName" => prefix(endpoints.str_at(&["metadata", "name"])),
            "namespace" => endpoints.str_at(&["metadata", "namespace"]),
        },
    }
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let client = context.client("endpointslicemirroring-controller");
    let mirror = Mirror { client, slices: Slices::of_manager(MANAGER) };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), mirror))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::fixture::{client, read, store};
    use crate::registry::fixture;

    fn endpoints(subsets: &str) -> Value {
        read(&format!(
            "metadata: {{name: db, namespace: d, uid: u, labels: {{a: b}}, annotations: {{note: x, \
             kubectl.kubernetes.io/last-applied-configuration: y}}}}\nsubsets: {subsets}"
        ))
    }

    fn changes(endpoints: &Value, there: &[Value]) -> Changes {
        compared(endpoints, wanted(endpoints).slices, there.to_vec())
    }

    fn counts(changes: &Changes) -> [usize; 3] {
        [changes.create.len(), changes.update.len(), changes.delete.len()]
    }

    /// The stored slices after such changes.
    fn stored(changes: Changes) -> Vec<Value> {
        let mut slices = changes.create;
        for slice in &mut slices {
            slice.make_object().entry("metadata").make_object().insert("resourceVersion", Value::from("1"));
        }
        slices
    }

    const PORTS: &str = "ports: [{name: sql, port: 5432, protocol: TCP}]";

    #[test]
    fn each_family_has_a_slice() {
        let both = endpoints(&format!(
            "[{{addresses: [{{ip: 10.0.0.1, nodeName: n}}, {{ip: 'fd00::1'}}], notReadyAddresses: [{{ip: 10.0.0.2}}], {PORTS}}}]"
        ));
        let made = changes(&both, &[]);
        assert_eq!(counts(&made), [2, 0, 0]);
        let first = &made.create[0];
        assert_eq!((first.str_at(&["addressType"]), first.items_at(&["endpoints"]).len()), ("IPv4", 2));
        let ready =
            |at: usize| first.items_at(&["endpoints"])[at].at(&["conditions", "ready"]).and_then(Value::as_bool);
        assert_eq!([ready(0), ready(1)], [Some(true), Some(false)]);
        assert_eq!(first.str_at(&["metadata", "labels", SERVICE_NAME]), "db");
        assert_eq!(first.at(&["metadata", "annotations"]), Some(&read("{note: x}")));
        assert_eq!(first.items_at(&["metadata", "ownerReferences"])[0].str_at(&["kind"]), "Endpoints");
        assert_eq!(counts(&changes(&both, &stored(made))), [0; 3]);
    }

    #[test]
    fn a_slice_follows_its_endpoints() {
        let one = endpoints(&format!("[{{addresses: [{{ip: 10.0.0.1}}], {PORTS}}}]"));
        let slices = stored(changes(&one, &[]));
        let other = endpoints(&format!("[{{addresses: [{{ip: 10.0.0.9}}], {PORTS}}}]"));
        assert_eq!(counts(&changes(&other, &slices)), [0, 1, 0]);
        let moved = endpoints("[{addresses: [{ip: 10.0.0.1}], ports: [{name: sql, port: 5433, protocol: TCP}]}]");
        assert_eq!(counts(&changes(&moved, &slices)), [0, 1, 0]);
        assert_eq!(counts(&changes(&endpoints("[]"), &slices)), [0, 0, 1]);
        let mut relabelled = one.clone();
        relabelled.make_object().entry("metadata").make_object().insert("labels", read("{a: c}"));
        assert_eq!(counts(&changes(&relabelled, &slices)), [0, 1, 0]);
    }

    #[test]
    fn what_is_not_mirrored_is_counted() {
        let addresses: Vec<String> = (0..1_002).map(|at| format!("{{ip: 10.0.{}.{}}}", at / 250, at % 250)).collect();
        let found = wanted(&endpoints(&format!("[{{addresses: [{{ip: host}}, {}]}}]", addresses.join(", "))));
        assert_eq!((found.invalid, found.left_out), (1, 3));
        let leader = read(&format!("metadata: {{annotations: {{{LEADER}: x}}}}"));
        let skipped = read(&format!("metadata: {{labels: {{{SKIP}: 'true'}}}}"));
        assert_eq!([&leader, &skipped, &endpoints("[]")].map(is_mirrored), [false, false, true]);
    }

    #[test]
    fn the_text_of_the_ports_is_made_once_for_all_addresses() {
        let steps_for = |addresses: usize| {
            let addresses: Vec<String> =
                (0..addresses).map(|at| format!("{{ip: 10.0.{}.{}}}", at / 250, at % 250)).collect();
            let ports: Vec<String> =
                (1..=1_000).map(|at| format!("{{name: p{at}, port: {at}, protocol: TCP}}")).collect();
            let text = format!("[{{addresses: [{}], ports: [{}]}}]", addresses.join(", "), ports.join(", "));
            let endpoints = endpoints(&text);
            let (made, steps) = crate::work::counted(|| changes(&endpoints, &[]));
            assert_eq!((counts(&made), made.create[0].items_at(&["ports"]).len()), ([1, 0, 0], 1_000));
            steps
        };
        let (one, hundred) = (steps_for(1), steps_for(100));
        assert!(hundred < 2 * one, "{one} and {hundred} steps");
    }

    #[tokio::test]
    async fn what_is_refused_as_invalid_waits_for_a_change() {
        let registry = fixture::registry().await;
        let client = client(&registry);
        let service = "{apiVersion: v1, kind: Service, metadata: {name: db, namespace: default, uid: u}, spec: {ports: [{port: 1}]}}";
        store(&registry, SERVICES, "default/db", &read(service)).await;
        // Two ports of one name are invalid in a slice.
        let endpoints = "{apiVersion: v1, kind: Endpoints, metadata: {name: db, namespace: default, uid: u}, subsets: [{addresses: [{ip: \
                         10.0.0.1}], ports: [{name: a, port: 1, protocol: TCP}, {name: a, port: 2, protocol: TCP}]}]}";
        store(&registry, ENDPOINTS, "default/db", &read(endpoints)).await;
        let mirror = Mirror { client, slices: Slices::of_manager(MANAGER) };
        assert_eq!(mirror.reconcile("default/db").await.ok(), Some(Progress::Done));
    }
}
