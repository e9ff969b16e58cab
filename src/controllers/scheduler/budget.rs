//! Budgets for disruptions: preemption violates none if there is another choice.
//!
//! Source: `filterPodsWithPDBViolation` of kube-scheduler 1.37.

use std::collections::{BTreeMap, BTreeSet};

use super::pod::Pod;
use crate::controllers::client::int_at;
use crate::meta::selector::{LabelSelector, Labels as _};
use crate::value::{Map, Value};

/// The disruptions that a budget allows.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    namespace: String,
    selector: LabelSelector,
    /// How many more pods may be disrupted.
    allowed: i64,
    /// The names of those that are already being disrupted.
    disrupted: BTreeSet<String>,
}

impl Budget {
    /// A budget; `None` for one that selects nothing.
    pub fn of(budget: &Value) -> Option<Self> {
        let selector = LabelSelector::decode(budget.at(&["spec", "selector"])?).ok()?;
        let disrupted = budget.at(&["status", "disruptedPods"]).and_then(Value::as_object);
        Some(Budget {
            namespace: budget.str_at(&["metadata", "namespace"]).to_owned(),
            selector,
            allowed: int_at(budget, &["status", "disruptionsAllowed"]),
            disrupted: disrupted.into_iter().flat_map(Map::keys).map(str::to_owned).collect(),
        })
        .filter(|budget| !budget.selector.is_empty())
    }

    fn covers(&self, pod: &Pod) -> bool {
        let name = pod.key.split_once('/').map_or(pod.key.as_str(), |(_, name)| name);
        pod.labels.count() > 0
            && self.namespace == pod.namespace
            && self.selector.matches(&pod.labels)
            && !self.disrupted.contains(name)
    }
}

/// The keys of the pods that violate a budget if all of `pods` are removed, in order.
pub(super) fn broken_by(pods: &[&Pod], budgets: &BTreeMap<String, Budget>) -> BTreeSet<String> {
    let mut budgets: Vec<(&Budget, i64)> = budgets.values().map(|budget| (budget, budget.allowed)).collect();
    let mut broken = BTreeSet::new();
    for pod in pods {
        for (_, left) in budgets.iter_mut().filter(|(budget, _)| budget.covers(pod)) {
            *left -= 1;
            if *left < 0 {
                broken.insert(pod.key.clone());
            }
        }
    }
    broken
}
