//! What the scheduler knows of nodes and of the pods on them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::budget::Budget;
use crate::controllers::client::{controller_of, is_going, key_of};
use crate::controllers::pods;
use crate::kinds::sum_of_containers;
use crate::meta::quantity::Quantity;
use crate::value::{Map, Value};

/// Amounts by the names of resources: thousandths of processors, and whole units of all else.
pub(super) type Amounts = BTreeMap<String, i64>;

/// A pod, as far as others care.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pod {
    pub key: String,
    pub namespace: String,
    pub labels: Map,
    pub requests: Amounts,
    /// Protocol, address and number.
    pub ports: Vec<(String, String, i64)>,
    pub priority: i64,
    /// Its required anti-affinity.
    pub repels: Vec<Value>,
    /// The uid of its controller.
    pub owner: String,
    pub is_going: bool,
}

impl Pod {
    pub fn of(pod: &Value) -> Self {
        let spec = pod.get("spec").unwrap_or(&Value::Null);
        let repels = ["affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
        let owner = controller_of(pod);
        let labels = pod.at(&["metadata", "labels"]).and_then(Value::as_object);
        Pod {
            key: key_of(pod),
            namespace: pod.str_at(&["metadata", "namespace"]).to_owned(),
            labels: labels.cloned().unwrap_or_default(),
            requests: requests(spec),
            ports: ports(spec),
            priority: spec.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            repels: spec.items_at(&repels).to_vec(),
            owner: owner.map(|owner| owner.str_at(&["uid"]).to_owned()).unwrap_or_default(),
            is_going: is_going(pod),
        }
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).and_then(Value::as_str)
    }

    /// Whether it is the same to those that look for company.
    fn counts_as(&self, other: &Pod) -> bool {
        (&self.labels, self.is_going) == (&other.labels, other.is_going)
    }
}

/// What a pod asks for: its containers, what running it takes beside, and a place.
fn requests(spec: &Value) -> Amounts {
    let mut requests: Amounts =
        sum_of_containers(spec, "requests").iter().map(|(name, amount)| (name.clone(), units(name, amount))).collect();
    let of_pod = spec.at(&["resources", "requests"]).and_then(Value::as_object).into_iter().flat_map(Map::iter);
    for (name, amount) in of_pod {
        requests.insert(name.to_owned(), parse(name, amount));
    }
    for (name, amount) in spec.get("overhead").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
        *requests.entry(name.to_owned()).or_default() += parse(name, amount);
    }
    requests.retain(|_, amount| *amount != 0);
    requests
}

fn units(name: &str, amount: &Quantity) -> i64 {
    if name == "cpu" { amount.milli_value() } else { amount.value() }
}

fn parse(name: &str, amount: &Value) -> i64 {
    amount.as_str().and_then(|amount| Quantity::parse(amount).ok()).map_or(0, |amount| units(name, &amount))
}

fn ports(spec: &Value) -> Vec<(String, String, i64)> {
    let sidecars = spec.items_at(&["initContainers"]).iter();
    let sidecars = sidecars.filter(|container| container.str_at(&["restartPolicy"]) == "Always");
    let ports = spec.items_at(&["containers"]).iter().chain(sidecars).flat_map(|it| it.items_at(&["ports"]));
    let ports = ports.filter_map(|port| {
        let number = port.get("hostPort").and_then(Value::as_i64).filter(|number| *number > 0)?;
        Some((port.str_at(&["protocol"]).to_owned(), port.str_at(&["hostIP"]).to_owned(), number))
    });
    ports.collect()
}

/// A node with its pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    pub name: String,
    pub labels: Map,
    pub taints: Vec<Value>,
    pub is_unschedulable: bool,
    pub allocatable: Amounts,
    pub used: Amounts,
    pub pods: BTreeMap<String, Pod>,
    /// How many of them keep others away: mostly none, and then nobody has to be asked.
    pub repelling: usize,
}

impl Node {
    fn take_in(&mut self, node: &Value) {
        let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object);
        self.labels = labels.cloned().unwrap_or_default();
        self.taints = node.items_at(&["spec", "taints"]).to_vec();
        self.is_unschedulable = node.at(&["spec", "unschedulable"]).and_then(Value::as_bool) == Some(true);
        let allocatable = node.at(&["status", "allocatable"]).and_then(Value::as_object);
        let amounts = allocatable.into_iter().flat_map(Map::iter);
        self.allocatable = amounts.map(|(name, amount)| (name.to_owned(), parse(name, amount))).collect();
    }

    pub fn add(&mut self, pod: Pod) {
        self.remove(&pod.key);
        for (name, amount) in &pod.requests {
            *self.used.entry(name.clone()).or_default() += amount;
        }
        self.repelling += usize::from(!pod.repels.is_empty());
        self.pods.insert(pod.key.clone(), pod);
    }

    pub fn remove(&mut self, key: &str) -> Option<Pod> {
        let pod = self.pods.remove(key)?;
        for (name, amount) in &pod.requests {
            *self.used.entry(name.clone()).or_default() -= amount;
        }
        self.repelling -= usize::from(!pod.repels.is_empty());
        Some(pod)
    }

    /// Whether it is the same to those who look for a place, its pods apart.
    fn offers_the_same(&self, other: &Node) -> bool {
        (&self.labels, &self.taints, self.is_unschedulable, &self.allocatable)
            == (&other.labels, &other.taints, other.is_unschedulable, &other.allocatable)
    }
}

/// What may give a place to a pod that found none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    /// A node that offers something else, or a pod that goes.
    Room,
    /// A pod that comes, too: this one has to be beside others, or spread with them.
    Company,
}

/// Which of the pods that wait may have a place after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    Nobody,
    /// Those that wait for company.
    Company,
    All,
}

/// Everything.
#[derive(Debug, Default)]
pub(super) struct State {
    /// By name. Pods may be bound to a node before that is known.
    pub nodes: BTreeMap<String, Node>,
    /// Those of `nodes` that are there.
    pub known: BTreeSet<String>,
    /// The node of each pod.
    places: HashMap<String, String>,
    /// The labels of namespaces.
    pub namespaces: HashMap<String, Map>,
    /// Budgets for disruptions.
    pub budgets: BTreeMap<String, Budget>,
    /// Pods that found no place, and what they wait for.
    pub waiting: BTreeMap<String, Awaits>,
    /// Pods that were given a place, and of which no change has told yet that they are bound.
    assumed: BTreeSet<String>,
    /// The node that others make room on, for a pod that waits for it.
    pub nominated: BTreeMap<String, (String, Pod)>,
}

impl State {
    /// Takes a node in, or that it is gone.
    pub fn take_in_node(&mut self, name: &str, node: Option<&Value>) -> Woken {
        let Some(node) = node else {
            if self.nodes.get(name).is_some_and(|node| node.pods.is_empty()) {
                self.nodes.remove(name);
            }
            // Pods are spread over the domains that are left.
            return if self.known.remove(name) { Woken::Company } else { Woken::Nobody };
        };
        let is_new = self.known.insert(name.to_owned());
        let known = self.nodes.entry(name.to_owned()).or_default();
        let mut changed = Node { name: name.to_owned(), ..Node::default() };
        changed.take_in(node);
        let same = !is_new && known.offers_the_same(&changed);
        (changed.used, changed.pods) = (std::mem::take(&mut known.used), std::mem::take(&mut known.pods));
        changed.repelling = known.repelling;
        *known = changed;
        if same { Woken::Nobody } else { Woken::All }
    }

    /// Takes a bound pod in, or that it is gone or over.
    pub fn take_in_pod(&mut self, key: &str, pod: Option<&Value>) -> Woken {
        let was_assumed = self.assumed.remove(key);
        let node = pod.filter(|pod| !pods::is_over(pod)).map(|pod| pod.str_at(&["spec", "nodeName"]));
        match (node, pod) {
            (Some(node), Some(pod)) if !node.is_empty() => {
                let pod = Pod::of(pod);
                let known = self.nodes.get(node).and_then(|node| node.pods.get(key));
                let counts_alike = known.map(|known| known.counts_as(&pod));
                self.place(node, pod);
                match counts_alike {
                    Some(true) if !was_assumed => Woken::Nobody,
                    // Those that stay away from it as it was may come now.
                    Some(false) => Woken::All,
                    _ => Woken::Company,
                }
            }
            _ if self.take_away(key) => Woken::All,
            _ => Woken::Nobody,
        }
    }

    /// Takes the labels of a namespace in, or that it is gone.
    pub fn take_in_namespace(&mut self, name: &str, labels: Option<Map>) -> Woken {
        let before = match labels.clone() {
            Some(labels) => self.namespaces.insert(name.to_owned(), labels),
            None => self.namespaces.remove(name),
        };
        // While it is new, nothing is in it.
        let is_changed = before.is_some() && labels.is_some() && before != labels;
        if is_changed { Woken::All } else { Woken::Nobody }
    }

    /// The keys of the pods that a change may give a place.
    pub fn woken(&self, woken: Woken) -> Vec<String> {
        let is_woken = |awaits: Awaits| match woken {
            Woken::Nobody => false,
            Woken::Company => awaits == Awaits::Company,
            Woken::All => true,
        };
        self.waiting.iter().filter(|(_, awaits)| is_woken(**awaits)).map(|(key, _)| key.clone()).collect()
    }

    /// Puts a pod on a node to which it is about to be bound.
    pub fn assume(&mut self, node: &str, pod: Pod) {
        self.assumed.insert(pod.key.clone());
        self.place(node, pod);
    }

    /// Puts a pod on a node.
    pub fn place(&mut self, node: &str, pod: Pod) {
        self.nominated.remove(&pod.key);
        self.waiting.remove(&pod.key);
        if self.places.get(&pod.key).is_some_and(|known| known != node) {
            self.take_away(&pod.key.clone());
        }
        self.places.insert(pod.key.clone(), node.to_owned());
        let place = self.nodes.entry(node.to_owned()).or_default();
        place.name = node.to_owned();
        place.add(pod);
    }

    /// Takes a pod from its node; tells whether it was on one.
    pub fn take_away(&mut self, key: &str) -> bool {
        self.nominated.remove(key);
        self.assumed.remove(key);
        let Some(node) = self.places.remove(key) else { return false };
        self.nodes.get_mut(&node).is_some_and(|node| node.remove(key).is_some())
    }

    /// The nodes that are there.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.known.iter().filter_map(|name| self.nodes.get(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn a_node_knows_what_its_pods_use() {
        let mut state = State::default();
        let pod = read(
            "metadata: {name: p, namespace: d}\n\
             spec: {nodeName: here, overhead: {cpu: 10m}, containers: [{resources: {requests: {cpu: 500m, memory: 1Ki}}}]}",
        );
        // A pod may come before its node.
        assert_eq!(state.take_in_pod("d/p", Some(&pod)), Woken::Company);
        assert_eq!(state.nodes().count(), 0);
        let node = read("metadata: {name: here}\nstatus: {allocatable: {cpu: '2'}}");
        assert_eq!([(); 2].map(|()| state.take_in_node("here", Some(&node))), [Woken::All, Woken::Nobody]);
        let used = |state: &State| state.nodes["here"].used.clone();
        assert_eq!(used(&state), Amounts::from([("cpu".to_owned(), 510), ("memory".to_owned(), 1024)]));
        state.take_in_pod("d/p", Some(&pod));
        assert_eq!(used(&state)["cpu"], 510);
        let mut over = pod;
        over.make_object().insert("status", read("{phase: Succeeded}"));
        assert_eq!([Some(&over), None].map(|pod| state.take_in_pod("d/p", pod)), [Woken::All, Woken::Nobody]);
        assert_eq!(used(&state)["cpu"], 0);
    }

    #[test]
    fn who_waits_for_company_is_woken_by_pods_that_come() {
        let mut state = State::default();
        state.waiting.insert("d/alone".to_owned(), Awaits::Room);
        state.waiting.insert("d/together".to_owned(), Awaits::Company);
        let pod = |more: &str| read(&format!("metadata: {{name: p, namespace: d{more}}}\nspec: {{nodeName: here}}"));
        // It is bound where it was put before: only then is it told.
        state.assume("here", Pod::of(&pod("")));
        let mut told = |pod: Option<&Value>| {
            let woken = state.take_in_pod("d/p", pod);
            state.woken(woken)
        };
        assert_eq!(told(Some(&pod(""))), ["d/together"]);
        assert!(told(Some(&pod(""))).is_empty());
        // Those that stayed away from it as it was may come.
        assert_eq!(told(Some(&pod(", labels: {a: b}"))), ["d/alone", "d/together"]);
        assert_eq!(told(Some(&pod(", labels: {a: b}, deletionTimestamp: now"))), ["d/alone", "d/together"]);
        assert_eq!(told(None), ["d/alone", "d/together"]);
        assert!(told(None).is_empty());
    }

    #[test]
    fn labels_of_a_namespace_and_nodes_that_go_wake_those_that_may_care() {
        let mut state = State::default();
        let labels = |text: &str| read(text).as_object().cloned();
        let mut told = |labels| state.take_in_namespace("d", labels);
        assert_eq!(told(labels("{}")), Woken::Nobody);
        assert_eq!(told(labels("{team: a}")), Woken::All);
        assert_eq!([told(labels("{team: a}")), told(None)], [Woken::Nobody; 2]);
        state.take_in_node("here", Some(&read("metadata: {name: here}")));
        assert_eq!([(); 2].map(|()| state.take_in_node("here", None)), [Woken::Company, Woken::Nobody]);
    }
}
