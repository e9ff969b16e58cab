//! Which pods each service selects, and their addresses and ports.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::client::{Client, Kind, NODES, PODS, is_going, key_of, place, time_at};
use super::{conditions, pods};
use crate::meta::Status;
use crate::meta::selector::{Labels as _, PackedLabels};
use crate::object;
use crate::store::{ChangeEvent, Stored};
use crate::value::{Value, json};

pub(super) const SERVICES: Kind = Kind("", "services");
/// The label of nodes with their zone.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

/// The services, by what they select, and the pods that are selected.
///
/// For a pod, only the services that select one of its labels are checked, and a service reads only its own pods: these
/// are searched for once, and then updated from the feed.
#[derive(Default)]
pub(super) struct Services {
    index: Mutex<ServiceIndex>,
}

#[derive(Default)]
struct ServiceIndex {
    services: HashMap<String, KnownService>,
    /// The services of a namespace that select a label, by one that each selects.
    by_label: HashMap<Label, BTreeSet<String>>,
    /// The services of each pod, in its last known state.
    members: HashMap<Arc<str>, BTreeSet<String>>,
}

/// The namespace, the name and the value of a label.
type Label = (String, String, String);

struct KnownService {
    selector: PackedLabels,
    label: Label,
    pods: BTreeSet<Arc<str>>,
    /// Whether the pods that existed before it have been searched for.
    is_complete: bool,
}

impl Services {
    fn index(&self) -> MutexGuard<'_, ServiceIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn forget(&self) {
        *self.index() = ServiceIndex::default();
    }

    /// Records a change; returns the keys of the services that it concerns.
    pub fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if SERVICES.is(&change.collection) {
            let service = change.stored.as_ref().and_then(|stored| json::decode(&stored.bytes).ok());
            self.index().take_in_service(&change.key, service.as_ref());
            return vec![change.key.to_string()];
        }
        if !PODS.is(&change.collection) {
            return Vec::new();
        }
        self.index().take_in_pod(&change.key, change.stored.as_deref())
    }

    /// The pods behind a service, by their names.
    pub async fn members(&self, client: &Client, service: &Value) -> Result<Vec<Member>, Status> {
        let (Some(selector), key) = (selector(service), key_of(service)) else { return Ok(Vec::new()) };
        let known = self.index().pods_of(&key);
        let keys = match known {
            Some(keys) => keys,
            None => {
                let is_selected = |stored: &Stored| selector.are_among(stored.sorted_labels());
                let pods = client.stored(PODS, service.str_at(&["metadata", "namespace"]), is_selected).await?;
                let keys: Vec<Arc<str>> = pods.iter().map(|pod| Arc::clone(&pod.key)).collect();
                self.index().complete(&key, keys.iter().cloned());
                keys
            }
        };
        let mut zones: HashMap<String, Option<String>> = HashMap::new();
        let mut members = Vec::new();
        for key in keys {
            let Some(pod) = client.get(PODS, &key).await? else { continue };
            if !selector.are_among(&pod.at(&["metadata", "labels"])) {
                continue;
            }
            let node = pod.str_at(&["spec", "nodeName"]);
            if !zones.contains_key(node) {
                let found = if node.is_empty() { None } else { client.get(NODES, node).await? };
                let zone = found.map(|node| node.str_at(&["metadata", "labels", ZONE]).to_owned());
                zones.insert(node.to_owned(), zone);
            }
            members.extend(member(service, &pod, zones[node].as_deref()));
        }
        Ok(members)
    }
}

impl ServiceIndex {
    fn take_in_service(&mut self, key: &str, service: Option<&Value>) {
        let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
        let first = service.and_then(|service| service.at(&["spec", "selector"])?.as_object()?.iter().next());
        let label = first.map(|(name, value)| {
            (namespace.to_owned(), name.to_owned(), value.as_str().unwrap_or_default().to_owned())
        });
        let selected = service.and_then(selector).zip(label);
        let is_same = |known: &KnownService| selected.as_ref().is_some_and(|(selector, _)| *selector == known.selector);
        if self.services.get(key).is_some_and(is_same) {
            return;
        }
        if let Some(known) = self.services.remove(key) {
            self.forget_service(key, &known);
        }
        if let Some((selector, label)) = selected {
            self.by_label.entry(label.clone()).or_default().insert(key.to_owned());
            self.services
                .insert(key.to_owned(), KnownService { selector, label, pods: BTreeSet::new(), is_complete: false });
        }
    }

    fn forget_service(&mut self, key: &str, known: &KnownService) {
        if let Some(services) = self.by_label.get_mut(&known.label) {
            services.remove(key);
            if services.is_empty() {
                self.by_label.remove(&known.label);
            }
        }
        for pod in &known.pods {
            if let Some(services) = self.members.get_mut(pod) {
                services.remove(key);
                if services.is_empty() {
                    self.members.remove(pod);
                }
            }
        }
    }

    /// Records a pod; returns the services that selected it before, and those that do now.
    fn take_in_pod(&mut self, key: &Arc<str>, pod: Option<&Stored>) -> Vec<String> {
        let mut about = self.members.remove(key).unwrap_or_default();
        for service in &about {
            if let Some(known) = self.services.get_mut(service) {
                known.pods.remove(key);
            }
        }
        let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
        let labels = pod.map(Stored::sorted_labels).cloned().unwrap_or_default();
        let named = labels.pairs().map(|(name, value)| (namespace.to_owned(), name.to_owned(), value.to_owned()));
        let candidates: Vec<String> = named.filter_map(|label| self.by_label.get(&label)).flatten().cloned().collect();
        for service in candidates {
            let Some(known) = self.services.get_mut(&service) else { continue };
            if known.selector.are_among(&labels) {
                known.pods.insert(Arc::clone(key));
                self.members.entry(Arc::clone(key)).or_default().insert(service.clone());
                about.insert(service);
            }
        }
        about.into_iter().collect()
    }

    /// The keys of the pods of a service; `None` if they have not been searched for.
    fn pods_of(&self, service: &str) -> Option<Vec<Arc<str>>> {
        let known = self.services.get(service).filter(|known| known.is_complete)?;
        Some(known.pods.iter().cloned().collect())
    }

    /// Adds the pods that were found for a service: from now on the feed keeps them up to date.
    fn complete(&mut self, service: &str, pods: impl Iterator<Item = Arc<str>>) {
        let Some(known) = self.services.get_mut(service) else { return };
        known.is_complete = true;
        for pod in pods {
            known.pods.insert(Arc::clone(&pod));
            self.members.entry(pod).or_default().insert(service.to_owned());
        }
    }
}

/// The selector of a service; `None` if its endpoints are managed by its author.
pub(super) fn selector(service: &Value) -> Option<PackedLabels> {
    let labels = service.at(&["spec", "selector"]).and_then(Value::as_object).filter(|labels| !labels.is_empty())?;
    (service.str_at(&["spec", "type"]) != "ExternalName").then(|| PackedLabels::from(labels))
}

/// A pod behind a service.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    /// One of each family that the pod has.
    pub addresses: Vec<String>,
    /// `targetRef`.
    pub target: Value,
    pub node: String,
    pub zone: String,
    /// Its hostname among the pods of the service.
    pub hostname: String,
    /// Name, protocol, number and application protocol of each port that it has of the service's.
    pub ports: Vec<Value>,
    /// It is ready, and not being deleted.
    pub is_ready: bool,
    /// It can serve traffic.
    pub serves: bool,
    pub is_going: bool,
    /// When it became ready or unready.
    pub turned: Option<Timestamp>,
    /// Its node does not exist, and the service does not publish unready addresses.
    pub is_lost: bool,
}

/// A pod as a service sees it; `None` if it has no address, or has ended.
///
/// `zone` is that of its node, and `None` if that does not exist.
fn member(service: &Value, pod: &Value, zone: Option<&str>) -> Option<Member> {
    let addresses: Vec<String> =
        pod.items_at(&["status", "podIPs"]).iter().map(|it| it.str_at(&["ip"]).to_owned()).collect();
    if addresses.is_empty() || pods::is_over(pod) {
        return None;
    }
    let (namespace, name) = place(pod);
    let publishes = service.at(&["spec", "publishNotReadyAddresses"]).and_then(Value::as_bool) == Some(true);
    let (ready, going) = (pods::is_ready(pod), is_going(pod));
    let is_host = pod.str_at(&["spec", "subdomain"]) == service.str_at(&["metadata", "name"]);
    let ports = service.items_at(&["spec", "ports"]).iter().filter_map(|port| resolved(port, pod));
    Some(Member {
        addresses,
        target: object! {
            "kind" => "Pod",
            "namespace" => namespace,
            "name" => name,
            "uid" => pod.str_at(&["metadata", "uid"]),
        },
        node: pod.str_at(&["spec", "nodeName"]).to_owned(),
        zone: zone.unwrap_or_default().to_owned(),
        is_lost: zone.is_none() && !publishes,
        hostname: if is_host { pod.str_at(&["spec", "hostname"]).to_owned() } else { String::new() },
        ports: ports.collect(),
        is_ready: publishes || ready && !going,
        serves: ready,
        is_going: going,
        turned: conditions::find(conditions::of(pod), "Ready").and_then(|it| time_at(it, &["lastTransitionTime"])),
    })
}

/// A port of a service, with the number that it has in a pod.
fn resolved(port: &Value, pod: &Value) -> Option<Value> {
    let protocol = port.str_at(&["protocol"]);
    let number = match port.get("targetPort") {
        Some(Value::Int(number)) if *number > 0 => *number,
        Some(Value::String(name)) => {
            let containers = pod.items_at(&["spec", "containers"]).iter();
            let sidecars = pod.items_at(&["spec", "initContainers"]).iter();
            let sidecars = sidecars.filter(|container| container.str_at(&["restartPolicy"]) == "Always");
            let mut ports = containers.chain(sidecars).flat_map(|container| container.items_at(&["ports"]));
            let is_it = |it: &&Value| it.str_at(&["name"]) == name && it.str_at(&["protocol"]) == protocol;
            ports.find(is_it)?.get("containerPort")?.as_i64()?
        }
        _ => port.get("port")?.as_i64()?,
    };
    let mut found = object! { "name" => port.str_at(&["name"]), "protocol" => protocol, "port" => number };
    if !port.str_at(&["appProtocol"]).is_empty() {
        found.make_object().insert("appProtocol", Value::from(port.str_at(&["appProtocol"])));
    }
    Some(found)
}

/// Whether a service has no cluster IP.
pub(super) fn is_headless(service: &Value) -> bool {
    service.str_at(&["spec", "clusterIP"]) == "None"
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::value::yaml;

    pub fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    /// A member of the service, from what follows the name of the pod in its metadata and its conditions.
    pub fn a_member(service: &Value, name: &str, address: &str, ready: bool) -> Option<Member> {
        let pod = read(&format!(
            "metadata: {{name: {name}, namespace: d, uid: {name}}}\n\
             spec: {{nodeName: here, containers: [{{ports: [{{name: web, containerPort: 8080, protocol: TCP}}]}}]}}\n\
             status: {{phase: Running, podIPs: [{{ip: {address}}}], conditions: [{{type: Ready, status: '{}'}}]}}",
            if ready { "True" } else { "False" }
        ));
        member(service, &pod, Some("z"))
    }

    #[test]
    fn ports_are_found_by_their_numbers_and_names() {
        let service = read(
            "spec: {ports: [{name: a, port: 80, targetPort: web, protocol: TCP}, {name: b, port: 81, protocol: TCP}, \
             {name: c, port: 82, targetPort: none, protocol: TCP}, {name: d, port: 83, targetPort: 9000, protocol: TCP}]}",
        );
        let member = a_member(&service, "p", "10.0.0.1", true).expect("it has an address");
        let ports: Vec<String> =
            member.ports.iter().map(|port| format!("{} {:?}", port.str_at(&["name"]), port.get("port"))).collect();
        assert_eq!(ports, ["a Some(Int(8080))", "b Some(Int(81))", "d Some(Int(9000))"]);
        assert!(a_member(&service, "p", "''", false).is_some_and(|member| !member.is_ready));
    }

    fn entry(kind: Kind, key: &str, text: Option<&str>) -> ChangeEvent {
        let stored = text.map(|text| Arc::new(Stored::fixture(key, "u", json::encode(&read(text)))));
        let revision = crate::meta::Revision::new(1);
        ChangeEvent { collection: kind.collection(), key: key.into(), uid: "u".into(), revision, stored }
    }

    #[test]
    fn pods_are_known_to_the_services_that_select_them() {
        let services = Services::default();
        let note = |kind: Kind, key: &str, text: Option<&str>| services.note(&entry(kind, key, text));
        let pods = |service: &str| services.index().pods_of(service).map(|pods| pods.len());
        let selecting = |labels: &str| format!("spec: {{selector: {{{labels}}}}}");
        note(SERVICES, "d/web", Some(&selecting("app: web, tier: front")));
        note(SERVICES, "d/all", Some(&selecting("tier: front")));
        note(SERVICES, "m/web", Some(&selecting("app: web, tier: front")));
        let front = "metadata: {labels: {app: web, tier: front, other: x}}";
        assert_eq!(note(PODS, "d/p", Some(front)), ["d/all", "d/web"]);
        assert_eq!(note(PODS, "d/q", Some("metadata: {labels: {app: web}}")), [""; 0]);
        // Before the existing pods have been searched for, the pods of a service are not known.
        assert_eq!(pods("d/web"), None);
        services.index().complete("d/web", ["d/p".into(), "d/earlier".into()].into_iter());
        assert_eq!(pods("d/web"), Some(2));
        assert_eq!(note(PODS, "d/earlier", None), ["d/web"]);
        assert_eq!(note(PODS, "d/p", Some("metadata: {labels: {tier: front}}")), ["d/all", "d/web"]);
        assert_eq!(pods("d/web"), Some(0));
        // A service that selects others has to be searched for again; one that says the same has not.
        note(SERVICES, "d/web", Some(&selecting("app: web, tier: front")));
        assert_eq!(pods("d/web"), Some(0));
        note(SERVICES, "d/web", Some(&selecting("tier: front")));
        assert_eq!(pods("d/web"), None);
        note(SERVICES, "d/web", None);
        assert_eq!(note(PODS, "d/p", None), ["d/all"]);
    }
}
