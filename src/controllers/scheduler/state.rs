//! The scheduler's state of nodes and the pods on them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::budget::Budget;
use super::pod::{Amounts, Pod, parse};
use crate::controllers::pods;
use crate::value::{Map, Value, json};

/// A node with its pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeInfo {
    pub name: String,
    pub labels: Map,
    pub taints: Vec<Value>,
    pub is_unschedulable: bool,
    pub allocatable: Amounts,
    pub used: Amounts,
    pub pods: BTreeMap<String, Pod>,
    /// How many of them have anti-affinity: mostly none, and then nothing has to be checked.
    pub repelling: usize,
}

impl NodeInfo {
    fn take_in(&mut self, node: &Value) {
        let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object);
        self.labels = labels.cloned().unwrap_or_default();
        self.taints = node.items_at(&["spec", "taints"]).to_vec();
        self.is_unschedulable = node.at(&["spec", "unschedulable"]).and_then(Value::as_bool) == Some(true);
        let allocatable = node.at(&["status", "allocatable"]).and_then(Value::as_object);
        let amounts = allocatable.into_iter().flat_map(Map::iter);
        self.allocatable = amounts.map(|(name, amount)| (name.to_owned(), parse(name, amount))).collect();
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).and_then(Value::as_str)
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

    /// Whether it is equivalent for pods that need a node, except for the pods on it.
    fn offers_the_same(&self, other: &NodeInfo) -> bool {
        (&self.labels, &self.taints, self.is_unschedulable, &self.allocatable)
            == (&other.labels, &other.taints, other.is_unschedulable, &other.allocatable)
    }
}

/// What may help a pod that found no node, besides a change of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Awaits {
    departures: bool,
    arrivals: bool,
    labels: bool,
    domains: bool,
    volumes: bool,
}

impl Awaits {
    const NOTHING: Awaits =
        Awaits { departures: false, arrivals: false, labels: false, domains: false, volumes: false };
    /// Only a change of a node helps.
    pub const NODE: Awaits = Awaits::NOTHING;
    /// Other pods use what it needs.
    pub const ROOM: Awaits = Awaits { departures: true, ..Awaits::NOTHING };
    /// It has affinity to other pods, or, if there are none, may be the first of them.
    pub const COMPANY: Awaits = Awaits { departures: true, arrivals: true, labels: true, ..Awaits::NOTHING };
    /// It has anti-affinity to other pods.
    pub const DISTANCE: Awaits = Awaits { departures: true, labels: true, ..Awaits::NOTHING };
    /// It must be spread together with other pods.
    pub const BALANCE: Awaits =
        Awaits { departures: true, arrivals: true, labels: true, domains: true, ..Awaits::NOTHING };
    /// Its claims have no volumes.
    pub const VOLUMES: Awaits = Awaits { volumes: true, ..Awaits::NOTHING };

    /// What a pod waits for that was refused for both reasons.
    pub fn and(self, other: Awaits) -> Awaits {
        Awaits {
            departures: self.departures || other.departures,
            arrivals: self.arrivals || other.arrivals,
            labels: self.labels || other.labels,
            domains: self.domains || other.domains,
            volumes: self.volumes || other.volumes,
        }
    }

    fn may_come_by(self, event: Event) -> bool {
        match event {
            Event::NodeOffers => true,
            Event::NodeGone => self.domains,
            Event::PodCame => self.arrivals,
            Event::PodGone => self.departures,
            Event::Relabelled => self.labels,
            Event::Volume => self.volumes,
        }
    }
}

/// A pod that found no node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub awaits: Awaits,
    /// Its requirements at that time ([`asked`]): a change of its status is not a reason to try again.
    pub asked: u64,
}

/// A hash of a pod's requirements: everything that clients may change.
pub(super) fn asked(pod: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in [pod.get("spec"), pod.at(&["metadata", "labels"]), pod.at(&["metadata", "annotations"])] {
        json::encode(part.unwrap_or(&Value::Null)).hash(&mut hasher);
    }
    hasher.finish()
}

/// An event that pods may have been waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A node was added or has changed.
    NodeOffers,
    /// There is one domain less to fill.
    NodeGone,
    PodCame,
    PodGone,
    /// A pod, or its namespace, has other labels, or is being deleted.
    Relabelled,
    /// A claim or a class has changed.
    Volume,
}

/// Everything.
#[derive(Debug, Default)]
pub(super) struct State {
    /// By name. Pods may be bound to a node before that is known; one that does not exist is kept while it has pods.
    pub nodes: BTreeMap<String, NodeInfo>,
    /// Those of `nodes` that exist.
    pub known: BTreeSet<String>,
    /// The node of each pod.
    places: HashMap<String, String>,
    /// The labels of namespaces.
    pub namespaces: HashMap<String, Map>,
    /// Budgets for disruptions.
    pub budgets: BTreeMap<String, Budget>,
    /// Pods that found no node, and what they wait for.
    pub waiting: BTreeMap<String, Waiting>,
    /// Pods that were assigned to a node, but whose binding has not been seen in a change yet.
    assumed: BTreeSet<String>,
    /// The nominated node of each pod that waits for room on it.
    pub nominated: BTreeMap<String, (String, Pod)>,
}

impl State {
    /// Records a node, or its deletion.
    pub fn take_in_node(&mut self, name: &str, node: Option<&Value>) -> Option<Event> {
        let Some(node) = node else {
            if self.nodes.get(name).is_some_and(|node| node.pods.is_empty()) {
                self.nodes.remove(name);
            }
            return self.known.remove(name).then_some(Event::NodeGone);
        };
        let is_new = self.known.insert(name.to_owned());
        let known = self.nodes.entry(name.to_owned()).or_default();
        let mut changed = NodeInfo { name: name.to_owned(), ..NodeInfo::default() };
        changed.take_in(node);
        let same = !is_new && known.offers_the_same(&changed);
        (changed.used, changed.pods) = (std::mem::take(&mut known.used), std::mem::take(&mut known.pods));
        changed.repelling = known.repelling;
        *known = changed;
        (!same).then_some(Event::NodeOffers)
    }

    /// Records a bound pod, or that it is gone or has ended.
    pub fn take_in_pod(&mut self, key: &str, pod: Option<&Value>) -> Option<Event> {
        let was_assumed = self.assumed.remove(key);
        let node = pod.filter(|pod| !pods::is_over(pod)).map(|pod| pod.str_at(&["spec", "nodeName"]));
        match (node, pod) {
            (Some(node), Some(pod)) if !node.is_empty() => {
                let pod = Pod::of(pod);
                let known = self.nodes.get(node).and_then(|node| node.pods.get(key));
                let counts_alike = known.map(|known| known.counts_as(&pod));
                self.place(node, pod);
                match counts_alike {
                    Some(true) if !was_assumed => None,
                    Some(false) => Some(Event::Relabelled),
                    _ => Some(Event::PodCame),
                }
            }
            _ => self.take_away(key).then_some(Event::PodGone),
        }
    }

    /// Records the labels of a namespace, or its deletion.
    pub fn take_in_namespace(&mut self, name: &str, labels: Option<Map>) -> Option<Event> {
        let before = match labels.clone() {
            Some(labels) => self.namespaces.insert(name.to_owned(), labels),
            None => self.namespaces.remove(name),
        };
        // While it is new, nothing is in it.
        let is_changed = before.is_some() && labels.is_some() && before != labels;
        is_changed.then_some(Event::Relabelled)
    }

    /// The keys of the pods that may find a node after an event.
    pub fn woken_by(&self, event: Option<Event>) -> Vec<String> {
        let waiting = self.waiting.iter().filter(|(_, pod)| event.is_some_and(|event| pod.awaits.may_come_by(event)));
        waiting.map(|(key, _)| key.clone()).collect()
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

    /// Removes a pod from its node; returns whether it was on one.
    pub fn take_away(&mut self, key: &str) -> bool {
        self.nominated.remove(key);
        self.assumed.remove(key);
        let Some(name) = self.places.remove(key) else { return false };
        let Some(node) = self.nodes.get_mut(&name) else { return false };
        let was_there = node.remove(key).is_some();
        if node.pods.is_empty() && !self.known.contains(&name) {
            self.nodes.remove(&name);
        }
        was_there
    }

    /// The nodes that exist.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeInfo> {
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
        assert_eq!(state.take_in_pod("d/p", Some(&pod)), Some(Event::PodCame));
        assert_eq!(state.nodes().count(), 0);
        let node = read("metadata: {name: here}\nstatus: {allocatable: {cpu: '2'}}");
        assert_eq!([(); 2].map(|()| state.take_in_node("here", Some(&node))), [Some(Event::NodeOffers), None]);
        let used = |state: &State| state.nodes["here"].used.clone();
        assert_eq!(used(&state), Amounts::from([("cpu".to_owned(), 510), ("memory".to_owned(), 1024)]));
        state.take_in_pod("d/p", Some(&pod));
        assert_eq!(used(&state)["cpu"], 510);
        let mut over = pod;
        over.make_object().insert("status", read("{phase: Succeeded}"));
        assert_eq!([Some(&over), None].map(|pod| state.take_in_pod("d/p", pod)), [Some(Event::PodGone), None]);
        assert_eq!(used(&state)["cpu"], 0);
    }

    #[test]
    fn a_node_that_does_not_exist_is_forgotten_with_its_last_pod() {
        let mut state = State::default();
        let pod = |name: &str, node: &str| {
            read(&format!("metadata: {{name: {name}, namespace: d}}\nspec: {{nodeName: {node}}}"))
        };
        for name in ["p", "q"] {
            state.take_in_pod(&format!("d/{name}"), Some(&pod(name, "nowhere")));
        }
        state.take_in_pod("d/p", None);
        assert!(state.nodes.contains_key("nowhere"));
        // It is bound elsewhere.
        state.take_in_pod("d/q", Some(&pod("q", "elsewhere")));
        assert_eq!(state.nodes.keys().collect::<Vec<_>>(), ["elsewhere"]);
        state.take_in_pod("d/q", None);
        assert!(state.nodes.is_empty());
        // One that exists stays, until it is gone, too.
        state.take_in_node("here", Some(&read("metadata: {name: here}")));
        state.take_in_pod("d/p", Some(&pod("p", "here")));
        state.take_in_pod("d/p", None);
        assert!(state.nodes.contains_key("here"));
        state.take_in_node("here", None);
        assert!(state.nodes.is_empty());
    }

    /// One pod for each thing that pods wait for.
    fn waiting() -> State {
        let mut state = State::default();
        let kinds = [
            ("balance", Awaits::BALANCE),
            ("company", Awaits::COMPANY),
            ("distance", Awaits::DISTANCE),
            ("node", Awaits::NODE),
            ("room", Awaits::ROOM),
            ("volumes", Awaits::VOLUMES),
        ];
        state.waiting.extend(kinds.map(|(name, awaits)| (name.to_owned(), Waiting { awaits, asked: 0 })));
        state
    }

    #[test]
    fn those_are_woken_who_may_have_a_place_now() {
        let mut state = waiting();
        let pod = |more: &str| read(&format!("metadata: {{name: p, namespace: d{more}}}\nspec: {{nodeName: here}}"));
        // It is bound where it was assumed: only then is it reported.
        state.assume("here", Pod::of(&pod("")));
        let mut told = |pod: Option<&Value>| {
            let event = state.take_in_pod("d/p", pod);
            state.woken_by(event)
        };
        assert_eq!(told(Some(&pod(""))), ["balance", "company"]);
        assert!(told(Some(&pod(""))).is_empty());
        // Those that stayed away from it as it was may come.
        let labelled = ["balance", "company", "distance"];
        assert_eq!(told(Some(&pod(", labels: {a: b}"))), labelled);
        assert_eq!(told(Some(&pod(", labels: {a: b}, deletionTimestamp: now"))), labelled);
        assert_eq!(told(None), ["balance", "company", "distance", "room"]);
        assert!(told(None).is_empty());
    }

    #[test]
    fn namespaces_nodes_and_claims_wake_those_that_may_care() {
        let mut state = waiting();
        let labels = |text: &str| read(text).as_object().cloned();
        let mut told = |labels| state.take_in_namespace("d", labels);
        assert_eq!(told(labels("{}")), None);
        assert_eq!(told(labels("{team: a}")), Some(Event::Relabelled));
        assert_eq!([told(labels("{team: a}")), told(None)], [None; 2]);
        let came = state.take_in_node("here", Some(&read("metadata: {name: here}")));
        assert_eq!(state.woken_by(came).len(), 6);
        let gone = [(); 2].map(|()| state.take_in_node("here", None));
        assert_eq!(gone.map(|event| state.woken_by(event)), [vec!["balance".to_owned()], Vec::new()]);
        assert_eq!(state.woken_by(Some(Event::Volume)), ["volumes"]);
    }

    #[test]
    fn a_pod_that_lacks_several_things_waits_for_any() {
        let both = Awaits::DISTANCE.and(Awaits::VOLUMES);
        let events = [Event::PodGone, Event::PodCame, Event::Relabelled, Event::NodeGone, Event::Volume];
        assert_eq!(events.map(|event| both.may_come_by(event)), [true, false, true, false, true]);
    }
}
