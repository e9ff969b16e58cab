//! What the pods that have nodes mean for one that needs a node: counted once, by domain, and then looked up for each
//! node.
//!
//! A domain is a value of a label of nodes. What is counted are the pods that the pod's terms of affinity and its
//! constraints are about, and the pods whose anti-affinity is about it.
//!
//! Source: `PreFilter` and `PreScore` of the plugins of kube-scheduler 1.37.

use std::collections::{BTreeMap, HashMap};

use super::pending::PendingPod;
use super::pod::Pod;
use super::state::{NodeInfo, State};
use super::term::{Term, selector_of};
use crate::controllers::nodes;
use crate::meta::selector::LabelSelector;
use crate::value::Value;
use crate::work;

/// Amounts by the names of labels, and their values.
#[derive(Default)]
struct Domains<'s>(HashMap<&'s str, HashMap<&'s str, i64>>);

impl<'s> Domains<'s> {
    /// Adds an amount to the domain of a node, if it is in one.
    fn add(&mut self, key: &'s str, node: &'s NodeInfo, amount: i64) {
        let Some(domain) = node.label(key) else { return };
        let domains = self.0.entry(key).or_default();
        let known = domains.entry(domain).or_default();
        *known += amount;
        if *known == 0 {
            domains.remove(domain);
        }
    }

    /// The amount of the domain of a node.
    fn of(&self, key: &str, node: &NodeInfo) -> i64 {
        work::step();
        let domain = node.label(key).and_then(|domain| self.0.get(key)?.get(domain));
        domain.copied().unwrap_or_default()
    }

    /// The sum of the amounts of all domains of a node.
    fn sum_of(&self, node: &NodeInfo) -> i64 {
        self.0.keys().map(|key| self.of(key, node)).sum()
    }

    fn is_empty(&self) -> bool {
        self.0.values().all(HashMap::is_empty)
    }
}

/// How many pods that a topology spread constraint is about are in each domain.
pub(super) struct Spread<'s> {
    constraint: &'s Value,
    selector: LabelSelector,
    by_affinity: bool,
    by_taints: bool,
    counts: HashMap<&'s str, i64>,
    /// How many domains have how many pods.
    domains: BTreeMap<i64, usize>,
}

impl<'s> Spread<'s> {
    fn new(constraint: &'s Value) -> Self {
        let honours = |policy: &str, default: &str| {
            let said = constraint.str_at(&[policy]);
            (if said.is_empty() { default } else { said }) == "Honor"
        };
        Spread {
            constraint,
            selector: selector_of(constraint),
            by_affinity: honours("nodeAffinityPolicy", "Honor"),
            by_taints: honours("nodeTaintsPolicy", "Ignore"),
            counts: HashMap::new(),
            domains: BTreeMap::new(),
        }
    }

    /// The domain of a node; `None` if pods on it are not counted.
    fn domain_of(&self, wanted: &PendingPod<'_>, node: &'s NodeInfo) -> Option<&'s str> {
        work::step();
        let domain = node.label(self.constraint.str_at(&["topologyKey"]))?;
        let tolerations = wanted.object.items_at(&["spec", "tolerations"]);
        let is_out = self.by_affinity && !nodes::is_selected(wanted.spec(), &node.name, &node.labels)
            || self.by_taints && nodes::untolerated(&node.taints, tolerations, &["NoSchedule", "NoExecute"]).is_some();
        (!is_out).then_some(domain)
    }

    /// Counts pods on a node.
    fn count(&mut self, wanted: &PendingPod<'_>, node: &'s NodeInfo, pods: impl Iterator<Item = &'s Pod>, times: i64) {
        let Some(domain) = self.domain_of(wanted, node) else { return };
        let is_counted = |pod: &&Pod| {
            work::step();
            pod.namespace == wanted.pod.namespace && !pod.is_going && self.selector.matches(&pod.labels)
        };
        let added = times * pods.filter(is_counted).count() as i64;
        let before = self.counts.get(domain).copied();
        if let Some(before) = before
            && let Some(domains) = self.domains.get_mut(&before)
        {
            *domains -= 1;
            if *domains == 0 {
                self.domains.remove(&before);
            }
        }
        let after = before.unwrap_or_default() + added;
        self.counts.insert(domain, after);
        *self.domains.entry(after).or_default() += 1;
    }

    /// Whether it must hold.
    pub fn is_required(&self) -> bool {
        self.constraint.str_at(&["whenUnsatisfiable"]) == "DoNotSchedule"
    }

    /// How many pods are in the domain of a node; `None` if it is in none.
    pub fn count_of(&self, node: &NodeInfo) -> Option<i64> {
        work::step();
        let domain = node.label(self.constraint.str_at(&["topologyKey"]))?;
        Some(self.counts.get(domain).copied().unwrap_or_default())
    }

    /// Whether it holds with the pod in a domain that has `count` pods without it.
    pub fn allows(&self, wanted: &PendingPod<'_>, count: i64) -> bool {
        let number = |field: &str| self.constraint.get(field).and_then(Value::as_i64).unwrap_or(1);
        let fewest = self.domains.keys().next().copied().unwrap_or_default();
        let fewest = if (self.counts.len() as i64) < number("minDomains") { 0 } else { fewest };
        let itself = i64::from(self.selector.matches(&wanted.pod.labels));
        count + itself - fewest <= number("maxSkew")
    }
}

/// What all pods that have nodes mean for one that needs a node.
pub(super) struct Neighbours<'s> {
    wanted: &'s PendingPod<'s>,
    state: &'s State,
    /// The pods that all terms of its required affinity are about, by the key of each term.
    company: Domains<'s>,
    /// The pods that its required anti-affinity is about.
    avoided: Domains<'s>,
    /// The terms of the required anti-affinity of pods that are about it.
    repelling: Domains<'s>,
    /// The weights of its preferred terms: of those of anti-affinity, they are negative.
    preferred: Domains<'s>,
    /// Its topology spread constraints.
    pub spreads: Vec<Spread<'s>>,
}

impl<'s> Neighbours<'s> {
    /// Counts all pods on nodes that exist.
    pub fn of(wanted: &'s PendingPod<'s>, state: &'s State) -> Self {
        let constraints = wanted.object.items_at(&["spec", "topologySpreadConstraints"]);
        let mut near = Neighbours {
            wanted,
            state,
            company: Domains::default(),
            avoided: Domains::default(),
            repelling: Domains::default(),
            preferred: Domains::default(),
            spreads: constraints.iter().map(Spread::new).collect(),
        };
        state.nodes().for_each(|node| near.count(node, node.pods.values(), 1));
        near
    }

    /// Counts pods on a node once more, or, if `times` is -1, no longer.
    pub fn count(&mut self, node: &'s NodeInfo, pods: impl Iterator<Item = &'s Pod> + Clone, times: i64) {
        work::step();
        let (wanted, namespaces) = (self.wanted, &self.state.namespaces);
        for spread in &mut self.spreads {
            spread.count(wanted, node, pods.clone(), times);
        }
        if !wanted.has_terms() && node.repelling == 0 {
            return;
        }
        for pod in pods {
            if !wanted.attracted.is_empty() && wanted.attracted.iter().all(|term| pod.is_meant_by(term, namespaces)) {
                wanted.attracted.iter().for_each(|term| self.company.add(&term.key, node, times));
            }
            for term in wanted.pod.repels.iter().filter(|term| pod.is_meant_by(term, namespaces)) {
                self.avoided.add(&term.key, node, times);
            }
            for term in pod.repels.iter().filter(|term| wanted.pod.is_meant_by(term, namespaces)) {
                self.repelling.add(&term.key, node, times);
            }
            for (weight, term) in wanted.preferred.iter().filter(|(_, term)| pod.is_meant_by(term, namespaces)) {
                self.preferred.add(&term.key, node, weight.saturating_mul(times));
            }
        }
    }

    /// Whether the pod's required affinity is met on a node: there are pods that match all its terms. The first pod of a
    /// group with affinity to each other matches itself.
    pub fn has_company(&self, node: &NodeInfo) -> bool {
        let terms = &self.wanted.attracted;
        let is_meant = |term: &Term| self.wanted.pod.is_meant_by(term, &self.state.namespaces);
        let is_first = || self.company.is_empty() && terms.iter().all(is_meant);
        terms.iter().all(|term| node.label(&term.key).is_some())
            && (terms.iter().all(|term| self.company.of(&term.key, node) > 0) || is_first())
    }

    /// Whether there are pods near a node that the pod's required anti-affinity is about.
    pub fn has_avoided(&self, node: &NodeInfo) -> bool {
        self.avoided.sum_of(node) > 0
    }

    /// Whether there are pods near a node whose required anti-affinity is about the pod.
    pub fn has_repelling(&self, node: &NodeInfo) -> bool {
        self.repelling.sum_of(node) > 0
    }

    /// How much the preferred affinity speaks for a node, and the preferred anti-affinity against it.
    pub fn attraction(&self, node: &NodeInfo) -> i64 {
        self.preferred.sum_of(node)
    }
}
