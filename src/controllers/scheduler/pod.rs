//! What the scheduler needs to know of a pod.

use std::collections::{BTreeMap, HashMap};

use super::term::Term;
use crate::controllers::client::{controller_of, is_going, key_of};
use crate::kinds::pod_object::sum_of_containers;
use crate::meta::quantity::Quantity;
use crate::meta::selector::PackedLabels;
use crate::value::{Map, Value};

/// Amounts by the names of resources: thousandths of CPUs, and whole units of everything else.
pub(super) type Amounts = BTreeMap<String, i64>;

/// What matters of a pod to other pods.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pod {
    pub key: String,
    pub namespace: String,
    pub labels: PackedLabels,
    pub requests: Amounts,
    /// Protocol, address and number.
    pub ports: Vec<(String, String, i64)>,
    pub priority: i64,
    /// Its required anti-affinity.
    pub repels: Vec<Term>,
    /// The uid of its controller.
    pub owner: String,
    pub is_going: bool,
}

impl Pod {
    pub fn of(pod: &Value) -> Self {
        let spec = pod.get("spec").unwrap_or(&Value::Null);
        let repels = ["affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
        let owner = controller_of(pod);
        let namespace = pod.str_at(&["metadata", "namespace"]);
        Pod {
            key: key_of(pod),
            namespace: namespace.to_owned(),
            labels: PackedLabels::from(&pod.at(&["metadata", "labels"])),
            requests: requests(spec),
            ports: ports(spec),
            priority: spec.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            repels: spec.items_at(&repels).iter().map(|term| Term::of(term, namespace)).collect(),
            owner: owner.map(|owner| owner.str_at(&["uid"]).to_owned()).unwrap_or_default(),
            is_going: is_going(pod),
        }
    }

    /// Whether a term of another pod is about it. `namespaces` are the labels of namespaces.
    pub fn is_meant_by(&self, term: &Term, namespaces: &HashMap<String, Map>) -> bool {
        term.is_about((&self.namespace, namespaces.get(&self.namespace)), &self.labels)
    }

    /// Whether it is equivalent for the affinity of other pods.
    pub fn counts_as(&self, other: &Pod) -> bool {
        (&self.labels, self.is_going) == (&other.labels, other.is_going)
    }
}

/// What a pod asks for: for its containers, the pod overhead, and one pod slot.
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

/// Parses the amount of a resource.
pub(super) fn parse(name: &str, amount: &Value) -> i64 {
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
