//! Which pods each service selects, and the addresses and ports that it reaches them at.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client::{Client, Kind, NODES, PODS, is_going, place};
use super::pods;
use crate::meta::Status;
use crate::meta::selector::LabelSelector;
use crate::object;
use crate::store::Entry;
use crate::value::{Value, json};

pub(super) const SERVICES: Kind = Kind("", "services");
const ZONE: &str = "topology.kubernetes.io/zone";

/// The services, by what they select, and the pods that are selected.
#[derive(Default)]
pub(super) struct Services {
    index: Mutex<Index>,
}

#[derive(Default)]
struct Index {
    selectors: BTreeMap<String, LabelSelector>,
    /// The services of each pod, as it was last.
    members: HashMap<Arc<str>, Vec<String>>,
}

impl Services {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn forget(&self) {
        *self.index() = Index::default();
    }

    /// Takes a change in; returns the keys of the services that it is about.
    pub fn note(&self, change: &Entry) -> Vec<String> {
        let mut index = self.index();
        if SERVICES.is(&change.collection) {
            let service = change.stored.as_ref().and_then(|stored| json::decode(&stored.bytes).ok());
            match service.as_ref().and_then(selector) {
                Some(selector) => _ = index.selectors.insert(change.key.to_string(), selector),
                None => _ = index.selectors.remove(&*change.key),
            }
            return vec![change.key.to_string()];
        }
        if !PODS.is(&change.collection) {
            return Vec::new();
        }
        let before = index.members.remove(&change.key).unwrap_or_default();
        let Some(stored) = &change.stored else { return before };
        let namespace = change.key.split_once('/').map_or("", |(namespace, _)| namespace);
        let prefix = format!("{namespace}/");
        let services = index.selectors.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
        let selecting = services.filter(|(_, selector)| selector.matches(|name| stored.label(name)));
        let now: Vec<String> = selecting.map(|(key, _)| key.clone()).collect();
        let about: BTreeSet<String> = before.into_iter().chain(now.iter().cloned()).collect();
        if !now.is_empty() {
            index.members.insert(Arc::clone(&change.key), now);
        }
        about.into_iter().collect()
    }
}

/// What a service selects, if anybody but its author is to look after its endpoints.
pub(super) fn selector(service: &Value) -> Option<LabelSelector> {
    let labels =
        service.at(&["spec", "selector"]).filter(|labels| labels.as_object().is_some_and(|it| !it.is_empty()))?;
    if service.str_at(&["spec", "type"]) == "ExternalName" {
        return None;
    }
    LabelSelector::decode(&object! { "matchLabels" => labels.clone() }).ok()
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
    /// The name that it has beside those of other pods.
    pub hostname: String,
    /// Name, protocol, number and application protocol of each port that it has of the service's.
    pub ports: Vec<Value>,
    /// It is ready, and not being deleted.
    pub is_ready: bool,
    /// It would answer.
    pub serves: bool,
    pub is_going: bool,
}

/// The pods behind a service, by their names.
pub(super) async fn members(client: &Client, service: &Value) -> Result<Vec<Member>, Status> {
    let Some(selector) = selector(service) else { return Ok(Vec::new()) };
    let namespace = service.str_at(&["metadata", "namespace"]);
    let pods = client.list(PODS, namespace, |stored| selector.matches(|name| stored.label(name))).await?;
    let mut zones: HashMap<String, String> = HashMap::new();
    let mut members = Vec::new();
    for pod in &pods {
        let node = pod.str_at(&["spec", "nodeName"]);
        if !zones.contains_key(node) {
            let found = if node.is_empty() { None } else { client.get(NODES, node).await? };
            let zone = found.map(|node| node.str_at(&["metadata", "labels", ZONE]).to_owned());
            zones.insert(node.to_owned(), zone.unwrap_or_default());
        }
        members.extend(member(service, pod, &zones[node]));
    }
    Ok(members)
}

/// A pod as a service sees it; `None` where it has no address, or has ended.
fn member(service: &Value, pod: &Value, zone: &str) -> Option<Member> {
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
        zone: zone.to_owned(),
        hostname: if is_host { pod.str_at(&["spec", "hostname"]).to_owned() } else { String::new() },
        ports: ports.collect(),
        is_ready: publishes || ready && !going,
        serves: ready,
        is_going: going,
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

/// Whether a service has no address of its own.
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
        member(service, &pod, "z")
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
}
