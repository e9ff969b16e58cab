//! Which nodes a pod may go to, why not to the others, and which of them is best.
//!
//! The order and the texts of reasons are those of the plugins of kube-scheduler 1.37. DIFFERS: how good a node is is reckoned
//! simply; see `score`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::budget::broken_by;
use super::pod::Pod;
use super::state::{Awaits, NodeInfo, State};
use crate::controllers::nodes;
use crate::meta::selector::LabelSelector;
use crate::object;
use crate::value::Value;
use crate::work;

/// A pod that looks for a place.
pub(super) struct PendingPod<'w> {
    pub object: &'w Value,
    pub pod: Pod,
    /// The node affinity of its volumes.
    pub volumes: Vec<Value>,
}

impl<'w> PendingPod<'w> {
    pub fn of(object: &'w Value) -> Self {
        PendingPod { object, pod: Pod::of(object), volumes: Vec::new() }
    }

    fn spec(&self) -> &Value {
        self.object.get("spec").unwrap_or(&Value::Null)
    }

    fn affinity(&self, kind: &str, strength: &str) -> &[Value] {
        self.object.items_at(&["spec", "affinity", kind, &format!("{strength}DuringSchedulingIgnoredDuringExecution")])
    }
}

/// Why a pod can't go to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub reasons: Vec<String>,
    /// Whether it could if other pods were not there.
    pub may_be_preempted: bool,
    /// What may change that.
    pub awaits: Awaits,
}

/// It can't, whichever pods go.
fn never(awaits: Awaits, reason: impl Into<String>) -> Result<(), Refused> {
    Err(Refused { reasons: vec![reason.into()], may_be_preempted: false, awaits })
}

fn not_now(awaits: Awaits, reasons: Vec<String>) -> Result<(), Refused> {
    if reasons.is_empty() { Ok(()) } else { Err(Refused { reasons, may_be_preempted: true, awaits }) }
}

/// What a pod awaits that these nodes refused.
pub(super) fn awaited(refused: &BTreeMap<String, Refused>) -> Awaits {
    refused.values().map(|why| why.awaits).fold(Awaits::NODE, Awaits::and)
}

/// Whether a pod may go to a node, as the node is in `node`: `state` may have it with other pods.
pub(super) fn fits(wanted: &PendingPod<'_>, node: &NodeInfo, state: &State) -> Result<(), Refused> {
    fits_node(wanted, node)?;
    if has_port_taken(wanted, node) {
        return not_now(Awaits::ROOM, vec!["node(s) didn't have free ports for the requested pod ports".to_owned()]);
    }
    has_room(wanted, node, state)?;
    reaches_volumes(wanted, node)?;
    spreads(wanted, node, state)?;
    keeps_company(wanted, node, state)
}

/// Whether a pod of the node has a port that the pod asks for, on an address of both.
fn has_port_taken(wanted: &PendingPod<'_>, node: &NodeInfo) -> bool {
    if wanted.pod.ports.is_empty() {
        return false;
    }
    let mut asked: HashMap<(&str, i64), BTreeSet<&str>> = HashMap::new();
    for (protocol, address, number) in &wanted.pod.ports {
        work::step();
        asked.entry((protocol.as_str(), *number)).or_default().insert(address);
    }
    let is_any = |address: &str| address.is_empty() || address == "0.0.0.0";
    let mut taken = node.pods.values().flat_map(|pod| &pod.ports).inspect(|_| work::step());
    taken.any(|(protocol, address, number)| {
        let addresses = asked.get(&(protocol.as_str(), *number));
        addresses.is_some_and(|addresses| {
            is_any(address)
                || addresses.contains(address.as_str())
                || ["", "0.0.0.0"].iter().any(|any| addresses.contains(any))
        })
    })
}

/// Why a pod goes to no node that asks for several by name at once.
const CONFLICT: &str = "pod affinity terms conflict";

/// Whether the node itself allows the pod, whatever else is there.
fn fits_node(wanted: &PendingPod<'_>, node: &NodeInfo) -> Result<(), Refused> {
    if nodes::is_ruled_out_by_name(wanted.spec(), &node.name) {
        return never(Awaits::NODE, "node(s) didn't satisfy plugin(s) [NodeAffinity]");
    }
    let tolerations = wanted.object.items_at(&["spec", "tolerations"]);
    let unschedulable = object! { "key" => "node.kubernetes.io/unschedulable", "effect" => "NoSchedule" };
    if node.is_unschedulable && !tolerations.iter().any(|it| nodes::tolerates(it, &unschedulable)) {
        return never(Awaits::NODE, "node(s) were unschedulable");
    }
    if nodes::untolerated(&node.taints, tolerations, &["NoSchedule", "NoExecute"]).is_some() {
        return never(Awaits::NODE, "node(s) had untolerated taint(s)");
    }
    if nodes::is_selected(wanted.spec(), &node.name, &node.labels) {
        Ok(())
    } else {
        never(Awaits::NODE, "node(s) didn't match Pod's node affinity/selector")
    }
}

/// Whether the resources of the node suffice. Room that is being made for others of no less priority is taken.
fn has_room(wanted: &PendingPod<'_>, node: &NodeInfo, state: &State) -> Result<(), Refused> {
    let promised: Vec<&Pod> = state
        .nominated
        .values()
        .filter(|(name, pod)| *name == node.name && pod.priority >= wanted.pod.priority && pod.key != wanted.pod.key)
        .map(|(_, pod)| pod)
        .collect();
    let mut reasons = Vec::new();
    let mut is_too_small = false;
    let places = node.allocatable.get("pods").copied().unwrap_or_default();
    if (node.pods.len() + promised.len() + 1) as i64 > places {
        reasons.push("Too many pods".to_owned());
    }
    for (name, amount) in &wanted.pod.requests {
        work::steps(1 + promised.len());
        let allocatable = node.allocatable.get(name).copied().unwrap_or_default();
        let promised: i64 = promised.iter().filter_map(|pod| pod.requests.get(name)).sum();
        let used = node.used.get(name).copied().unwrap_or_default() + promised;
        if *amount > allocatable - used {
            reasons.push(format!("Insufficient {name}"));
            is_too_small |= *amount > allocatable;
        }
    }
    match not_now(Awaits::ROOM, reasons) {
        Err(refused) if is_too_small => Err(Refused { may_be_preempted: false, ..refused }),
        outcome => outcome,
    }
}

/// Whether the volumes of the pod can be reached from the node.
fn reaches_volumes(wanted: &PendingPod<'_>, node: &NodeInfo) -> Result<(), Refused> {
    let allows = |terms: &Value| {
        let mut terms = terms.items_at(&["nodeSelectorTerms"]).iter();
        terms.any(|term| nodes::matches_term(term, &node.name, &node.labels))
    };
    if wanted.volumes.iter().all(allows) {
        Ok(())
    } else {
        never(Awaits::VOLUMES, "node(s) didn't match PersistentVolume's node affinity")
    }
}

/// Whether a constraint of spreading must hold.
fn is_required(constraint: &Value) -> bool {
    constraint.str_at(&["whenUnsatisfiable"]) == "DoNotSchedule"
}

/// Whether the constraints of spreading that must hold do.
fn spreads(wanted: &PendingPod<'_>, node: &NodeInfo, state: &State) -> Result<(), Refused> {
    const REASON: &str = "node(s) didn't match pod topology spread constraints";
    for constraint in wanted.object.items_at(&["spec", "topologySpreadConstraints"]).iter().filter(|it| is_required(it))
    {
        let key = constraint.str_at(&["topologyKey"]);
        let Some(domain) = node.labels.get(key).and_then(Value::as_str) else {
            return never(Awaits::NODE, format!("{REASON} (missing required label)"));
        };
        let selector = selector_of(constraint);
        let counts = counts_by_domain(wanted, constraint, &selector, node, state);
        let number = |field: &str, default| constraint.get(field).and_then(Value::as_i64).unwrap_or(default);
        let fewest = counts.values().min().copied().unwrap_or_default();
        let fewest = if (counts.len() as i64) < number("minDomains", 1) { 0 } else { fewest };
        let itself = i64::from(selector.matches(|name| wanted.pod.label(name)));
        if counts.get(domain).copied().unwrap_or_default() + itself - fewest > number("maxSkew", 1) {
            return not_now(Awaits::BALANCE, vec![REASON.to_owned()]);
        }
    }
    Ok(())
}

fn selector_of(term: &Value) -> LabelSelector {
    let nothing = || LabelSelector::parse("!a,a").unwrap_or_default();
    match term.get("labelSelector").filter(|selector| !selector.is_null()) {
        Some(selector) => LabelSelector::decode(selector).unwrap_or_else(|_| nothing()),
        None => nothing(),
    }
}

/// How many pods that a constraint is about are in each domain of its key; `changed` stands for the node of its name.
fn counts_by_domain(
    wanted: &PendingPod<'_>,
    constraint: &Value,
    selector: &LabelSelector,
    changed: &NodeInfo,
    state: &State,
) -> BTreeMap<String, i64> {
    let honours = |policy: &str, default: &str| {
        let said = constraint.str_at(&[policy]);
        (if said.is_empty() { default } else { said }) == "Honor"
    };
    let (by_affinity, by_taints) = (honours("nodeAffinityPolicy", "Honor"), honours("nodeTaintsPolicy", "Ignore"));
    let tolerations = wanted.object.items_at(&["spec", "tolerations"]);
    let mut counts = BTreeMap::new();
    for node in state.nodes().map(|node| if node.name == changed.name { changed } else { node }) {
        work::steps(1 + node.pods.len());
        let Some(domain) = node.labels.get(constraint.str_at(&["topologyKey"])).and_then(Value::as_str) else {
            continue;
        };
        let is_out = by_affinity && !nodes::is_selected(wanted.spec(), &node.name, &node.labels)
            || by_taints && nodes::untolerated(&node.taints, tolerations, &["NoSchedule", "NoExecute"]).is_some();
        if is_out {
            continue;
        }
        let is_counted = |pod: &&Pod| {
            pod.namespace == wanted.pod.namespace && !pod.is_going && selector.matches(|name| pod.label(name))
        };
        *counts.entry(domain.to_owned()).or_default() += node.pods.values().filter(is_counted).count() as i64;
    }
    counts
}

/// Whether required affinity and anti-affinity hold, the pod's own and that of those who are there.
fn keeps_company(wanted: &PendingPod<'_>, node: &NodeInfo, state: &State) -> Result<(), Refused> {
    if !is_drawn_to(wanted, node, state) {
        return never(Awaits::COMPANY, "node(s) didn't match pod affinity rules");
    }
    for term in wanted.affinity("podAntiAffinity", "required") {
        let about = |pod: &Pod| is_about(term, &wanted.pod.namespace, pod, state);
        let domain = in_domain(term.str_at(&["topologyKey"]), node, state);
        if domain.iter().any(|other| other.pods.values().any(about)) {
            return not_now(Awaits::DISTANCE, vec!["node(s) didn't match pod anti-affinity rules".to_owned()]);
        }
    }
    let all = state.nodes().map(|other| if other.name == node.name { node } else { other });
    for other in all.filter(|other| other.repelling > 0) {
        for there in other.pods.values() {
            let repels = |term: &Value| {
                work::step();
                let label = |node: &NodeInfo| node.labels.get(term.str_at(&["topologyKey"])).cloned();
                let same = label(other).is_some() && label(other) == label(node);
                same && is_about(term, &there.namespace, &wanted.pod, state)
            };
            if there.repels.iter().any(repels) {
                return not_now(
                    Awaits::DISTANCE,
                    vec!["node(s) didn't satisfy existing pods anti-affinity rules".to_owned()],
                );
            }
        }
    }
    Ok(())
}

/// Whether the node has the company that the pod must have: pods that all its terms are about. The first of those that want to be
/// together is with itself.
fn is_drawn_to(wanted: &PendingPod<'_>, node: &NodeInfo, state: &State) -> bool {
    let terms = wanted.affinity("podAffinity", "required");
    let is_company = |pod: &Pod| terms.iter().all(|term| is_about(term, &wanted.pod.namespace, pod, state));
    let has_company = |other: &&NodeInfo| other.pods.values().any(is_company);
    let all = state.nodes().map(|other| if other.name == node.name { node } else { other });
    let company: BTreeSet<&str> = if terms.is_empty() {
        BTreeSet::new()
    } else {
        all.filter(has_company).map(|other| other.name.as_str()).collect()
    };
    let is_there = |term: &Value| {
        let domain = in_domain(term.str_at(&["topologyKey"]), node, state);
        domain.iter().any(|other| company.contains(other.name.as_str()))
    };
    let has_label = |term: &Value| node.labels.contains_key(term.str_at(&["topologyKey"]));
    let is_first = || is_company(&wanted.pod) && !state.nodes().any(|other| other.pods.values().any(is_company));
    terms.iter().all(has_label) && (terms.iter().all(is_there) || is_first())
}

/// The nodes with the same value of a label as `node`, which stands for the one of its name.
fn in_domain<'s>(key: &str, node: &'s NodeInfo, state: &'s State) -> Vec<&'s NodeInfo> {
    let Some(domain) = node.labels.get(key) else { return Vec::new() };
    let all = state.nodes().map(|other| if other.name == node.name { node } else { other });
    all.inspect(|_| work::step()).filter(|other| other.labels.get(key) == Some(domain)).collect()
}

/// Whether a term of (anti-)affinity, of a pod in `namespace`, is about a pod.
fn is_about(term: &Value, namespace: &str, pod: &Pod, state: &State) -> bool {
    work::steps(1 + term.items_at(&["namespaces"]).len());
    let named: BTreeSet<&str> = term.items_at(&["namespaces"]).iter().filter_map(Value::as_str).collect();
    let selector = term.get("namespaceSelector").filter(|selector| !selector.is_null());
    let by_labels = selector.is_some_and(|selector| {
        let labels = state.namespaces.get(&pod.namespace);
        let label = |name: &str| labels.and_then(|labels| labels.get(name)).and_then(Value::as_str);
        LabelSelector::decode(selector).is_ok_and(|selector| selector.matches(label))
    });
    let own = named.is_empty() && selector.is_none() && pod.namespace == namespace;
    (own || by_labels || named.contains(pod.namespace.as_str())) && selector_of(term).matches(|name| pod.label(name))
}

/// How good a node is for a pod: what it prefers, few pods of the same controller, much that is free.
fn score(wanted: &PendingPod<'_>, node: &NodeInfo, state: &State) -> f64 {
    let weight = |term: &Value| term.get("weight").and_then(Value::as_i64).unwrap_or_default();
    let preferred = wanted.affinity("nodeAffinity", "preferred").iter();
    let preferred = preferred.filter(|term| {
        let preference = term.get("preference").unwrap_or(&Value::Null);
        nodes::matches_term(preference, &node.name, &node.labels)
    });
    let mut score: i64 = preferred.map(weight).sum();
    for (kind, sign) in [("podAffinity", 1), ("podAntiAffinity", -1)] {
        for term in wanted.affinity(kind, "preferred") {
            let inner = term.get("podAffinityTerm").unwrap_or(&Value::Null);
            let domain = in_domain(inner.str_at(&["topologyKey"]), node, state);
            let about = |pod: &&Pod| is_about(inner, &wanted.pod.namespace, pod, state);
            let count = domain.iter().flat_map(|other| other.pods.values()).filter(about).count();
            score += sign * weight(term) * count as i64;
        }
    }
    let tolerations = wanted.object.items_at(&["spec", "tolerations"]);
    if nodes::untolerated(&node.taints, tolerations, &["PreferNoSchedule"]).is_some() {
        score -= 300;
    }
    for constraint in wanted.object.items_at(&["spec", "topologySpreadConstraints"]) {
        let counts = counts_by_domain(wanted, constraint, &selector_of(constraint), node, state);
        let domain = node.labels.get(constraint.str_at(&["topologyKey"])).and_then(Value::as_str);
        score -= 200 * domain.and_then(|domain| counts.get(domain)).copied().unwrap_or_default();
    }
    // Less than what a pod prefers in the usual way, by the weight 100.
    let alike = |pod: &&Pod| !pod.owner.is_empty() && pod.owner == wanted.pod.owner;
    score -= 50 * node.pods.values().filter(alike).count() as i64;
    score as f64 + 100.0 * free(wanted, node)
}

/// Which part of the node is free with the pod on it, from 0 to 1.
fn free(wanted: &PendingPod<'_>, node: &NodeInfo) -> f64 {
    let part = |name: &str, used: i64| {
        let allocatable = node.allocatable.get(name).copied().unwrap_or_default() as f64;
        if allocatable > 0.0 { ((allocatable - used as f64) / allocatable).max(0.0) } else { 0.0 }
    };
    let used = |name: &str| [&node.used, &wanted.pod.requests].iter().filter_map(|amounts| amounts.get(name)).sum();
    (part("cpu", used("cpu")) + part("memory", used("memory")) + part("pods", node.pods.len() as i64 + 1)) / 3.0
}

/// The best node for a pod, or why it can go to none: by node.
pub(super) fn choose(wanted: &PendingPod<'_>, state: &State) -> Result<String, BTreeMap<String, Refused>> {
    let mut refused = BTreeMap::new();
    let mut best: Option<(f64, &NodeInfo)> = None;
    let has_conflict = nodes::has_conflicting_names(wanted.spec());
    for node in state.nodes() {
        let outcome = if has_conflict { never(Awaits::NODE, CONFLICT) } else { fits(wanted, node, state) };
        match outcome {
            Ok(()) => {
                let score = score(wanted, node, state);
                if best.is_none_or(|(known, _)| score > known) {
                    best = Some((score, node));
                }
            }
            Err(why) => _ = refused.insert(node.name.clone(), why),
        }
    }
    best.map(|(_, node)| node.name.clone()).ok_or(refused)
}

/// What it costs to make room on a node.
struct Loss {
    /// How many break a budget, the highest priority, and how many there are.
    price: (usize, i64, usize),
    node: String,
    /// Those that go.
    keys: Vec<String>,
}

/// Which pods of less priority would have to go from which node, so that a pod fits: those that matter least.
///
/// Of the nodes, the one where the fewest break a budget for disruptions, then the one whose most important victim is the least
/// important, and then the one with the fewest. On a node, those that break a budget are the first to stay.
/// Source: `SelectVictimsOnNode` and `pickOneNodeForPreemption` of kube-scheduler 1.37.
pub(super) fn victims(
    wanted: &PendingPod<'_>,
    refused: &BTreeMap<String, Refused>,
    state: &State,
) -> Option<(String, Vec<String>)> {
    let mut best: Option<Loss> = None;
    for (name, _) in refused.iter().filter(|(_, why)| why.may_be_preempted) {
        let Some(node) = state.nodes.get(name) else { continue };
        let mut without = node.clone();
        let is_less = |pod: &&Pod| pod.priority < wanted.pod.priority;
        let mut less: Vec<Pod> = node.pods.values().filter(is_less).cloned().collect();
        less.iter().for_each(|pod| _ = without.remove(&pod.key));
        if less.is_empty() || fits(wanted, &without, state).is_err() {
            continue;
        }
        less.sort_by_key(|pod| std::cmp::Reverse(pod.priority));
        let breaking = broken_by(&less, &state.budgets);
        less.sort_by_key(|pod| !breaking.contains(&pod.key));
        let mut gone = Vec::new();
        for pod in less {
            let (key, priority) = (pod.key.clone(), pod.priority);
            without.add(pod);
            if fits(wanted, &without, state).is_err() {
                without.remove(&key);
                gone.push((priority, key));
            }
        }
        let most = gone.iter().map(|(priority, _)| *priority).max().unwrap_or(i64::MIN);
        let broken = gone.iter().filter(|(_, key)| breaking.contains(key)).count();
        let keys: Vec<String> = gone.into_iter().map(|(_, key)| key).collect();
        let price = (broken, most, keys.len());
        if best.as_ref().is_none_or(|known| price < known.price) {
            best = Some(Loss { price, node: name.clone(), keys });
        }
    }
    best.map(|loss| (loss.node, loss.keys))
}

/// What the plugin of resource claims says of a pod that has none, before the one that preempts.
const NO_CLAIMS: &str = "no new claims to deallocate";

/// What is told of a pod that finds no place: why, and whether others could make room.
pub(super) fn told(refused: &BTreeMap<String, Refused>, preempts: bool) -> String {
    let reasons = reasons(refused);
    if refused.is_empty() {
        return reasons;
    }
    if !preempts {
        return format!("{reasons} {NO_CLAIMS}, preemption: not eligible due to preemptionPolicy=Never.");
    }
    let helpful = refused.values().map(|why| {
        if why.may_be_preempted {
            "No preemption victims found for incoming pod".to_owned()
        } else {
            "Preemption is not helpful for scheduling".to_owned()
        }
    });
    format!("{reasons} {NO_CLAIMS}, preemption: {}", counted(helpful, refused.len()))
}

/// What is told of a pod that waits for others to go from the node that it is to have.
pub(super) fn told_while_others_go(refused: &BTreeMap<String, Refused>) -> String {
    let reasons = reasons(refused);
    format!("{reasons} {NO_CLAIMS}, preemption: not eligible due to a terminating pod on the nominated node.")
}

/// Why a pod finds no place.
pub(super) fn reasons(refused: &BTreeMap<String, Refused>) -> String {
    match refused.len() {
        0 => "no nodes available to schedule pods".to_owned(),
        // It is told before any node is looked at, and so not counted.
        nodes if refused.values().all(|why| why.reasons == [CONFLICT]) => {
            format!("0/{nodes} nodes are available: {CONFLICT}.")
        }
        nodes => counted(refused.values().flat_map(|why| why.reasons.iter().cloned()), nodes),
    }
}

/// Reasons, each once, with how many nodes have it.
fn counted(reasons: impl Iterator<Item = String>, nodes: usize) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    reasons.for_each(|reason| *counts.entry(reason).or_default() += 1);
    let mut texts: Vec<String> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    texts.sort();
    format!("0/{nodes} nodes are available: {}.", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    /// Three nodes in two zones, with two processors each.
    fn state() -> State {
        let mut state = State::default();
        for (name, zone) in [("a", "x"), ("b", "x"), ("c", "y")] {
            let node = format!(
                "metadata: {{name: {name}, labels: {{zone: '{zone}', name: {name}}}}}\n\
                 status: {{allocatable: {{cpu: '2', memory: 1Gi, pods: '3'}}}}"
            );
            state.take_in_node(name, Some(&read(&node)));
        }
        state
    }

    fn pod(name: &str, spec: &str) -> Value {
        read(&format!("metadata: {{name: {name}, namespace: d, labels: {{app: {name}}}}}\nspec: {{{spec}}}"))
    }

    fn put(state: &mut State, name: &str, node: &str, spec: &str) {
        state.place(node, Pod::of(&pod(name, spec)));
    }

    fn chosen(state: &State, spec: &str) -> Result<String, String> {
        let pod = pod("p", spec);
        choose(&PendingPod::of(&pod), state).map_err(|refused| told(&refused, true))
    }

    /// How many steps it takes to find a node for a pod of this spec.
    fn steps(state: &State, spec: &str) -> u64 {
        let pod = pod("p", spec);
        let wanted = PendingPod::of(&pod);
        work::counted(|| choose(&wanted, state)).1
    }

    #[test]
    fn what_is_reckoned_is_counted_and_grows_as_terms_times_pods() {
        let many = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
        let affinity = |kind: &str, count: usize| {
            let term = |_| "{topologyKey: zone, labelSelector: {matchLabels: {app: b}}}".to_owned();
            let terms = many(count, &term);
            format!("affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{terms}]}}}}")
        };
        let spread = |count: usize| {
            let constraint = |_| "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}".to_owned();
            format!("topologySpreadConstraints: [{}]", many(count, &constraint))
        };
        let ports = |address: usize, count: usize| {
            let port = |at: usize| {
                format!("{{containerPort: 1, hostPort: {}, hostIP: 10.0.{address}.{}}}", 1 + at / 200, 1 + at % 200)
            };
            format!("containers: [{{ports: [{}]}}]", many(count, &port))
        };
        let beside = |spec: &str| {
            let mut state = state();
            put(&mut state, "b", "a", spec);
            state
        };
        let plain = beside("");
        for (what, few, many, least) in [
            (
                "affinity",
                steps(&plain, &affinity("podAffinity", 100)),
                steps(&plain, &affinity("podAffinity", 1_000)),
                1_000,
            ),
            (
                "distance",
                steps(&plain, &affinity("podAntiAffinity", 100)),
                steps(&plain, &affinity("podAntiAffinity", 1_000)),
                1_000,
            ),
            ("spread", steps(&plain, &spread(100)), steps(&plain, &spread(1_000)), 1_000),
            (
                "ports",
                steps(&beside(&ports(1, 200)), &ports(2, 200)),
                steps(&beside(&ports(1, 2_000)), &ports(2, 2_000)),
                4_000,
            ),
            (
                "repelled",
                steps(&beside(&affinity("podAntiAffinity", 100)), ""),
                steps(&beside(&affinity("podAntiAffinity", 1_000)), ""),
                1_000,
            ),
        ] {
            assert!(many >= least && many < 13 * few, "{what}: {few} and {many} steps");
        }
    }

    const CPU_2: &str = "containers: [{resources: {requests: {cpu: '2'}}}]";

    #[test]
    fn a_pod_goes_where_there_is_room() {
        let mut state = state();
        assert_eq!(chosen(&State::default(), ""), Err("no nodes available to schedule pods".to_owned()));
        put(&mut state, "q", "a", CPU_2);
        put(&mut state, "r", "b", CPU_2);
        assert_eq!(chosen(&state, CPU_2).as_deref(), Ok("c"));
        put(&mut state, "s", "c", CPU_2);
        let none = "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: \
                    3 No preemption victims found for incoming pod.";
        assert_eq!(chosen(&state, CPU_2), Err(none.to_owned()));
        let too_much = CPU_2.replace("'2'", "'3'");
        let never = "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: \
                     3 Preemption is not helpful for scheduling.";
        assert_eq!(chosen(&state, &too_much), Err(never.to_owned()));
    }

    #[test]
    fn nodes_keep_pods_away() {
        let mut state = state();
        let tainted = "metadata: {name: a}\nspec: {taints: [{key: k, value: v, effect: NoSchedule}]}\nstatus: {allocatable: {pods: '1'}}";
        state.take_in_node("a", Some(&read(tainted)));
        let cordoned = "metadata: {name: b}\nspec: {unschedulable: true}\nstatus: {allocatable: {pods: '1'}}";
        state.take_in_node("b", Some(&read(cordoned)));
        assert_eq!(chosen(&state, "").as_deref(), Ok("c"));
        let told = "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, \
                    1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. \
                    no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
        assert_eq!(chosen(&state, "nodeSelector: {zone: z}"), Err(told.to_owned()));
        let tolerates = "nodeSelector: {}, tolerations: [{key: k, operator: Exists}], \
                         affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
                         [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}}}";
        assert_eq!(chosen(&state, tolerates).as_deref(), Ok("a"));
    }

    #[test]
    fn a_pod_that_is_to_go_to_certain_nodes_by_name_goes_to_no_other() {
        let state = state();
        let of = |fields: &str| {
            format!(
                "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{fields}]}}}}}}"
            )
        };
        let named = |name: &str| format!("{{matchFields: [{{key: metadata.name, operator: In, values: [{name}]}}]}}");
        let why = |spec: &str| {
            let pod = pod("p", spec);
            choose(&PendingPod::of(&pod), &state).map_err(|refused| reasons(&refused))
        };
        assert_eq!(why(&of(&named("b"))).as_deref(), Ok("b"));
        let told = "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity].";
        assert_eq!(why(&of(&named("z"))), Err(told.to_owned()));
        let both = "{matchFields: [{key: metadata.name, operator: In, values: [a]}, {key: metadata.name, operator: In, values: [b]}]}";
        let told = "0/3 nodes are available: pod affinity terms conflict.";
        assert_eq!(why(&of(both)), Err(told.to_owned()));
        // Another term that names a node is enough.
        assert_eq!(why(&of(&format!("{both}, {}", named("c")))).as_deref(), Ok("c"));
        // One term that names no node leaves all of them.
        let either = format!("{}, {{matchExpressions: [{{key: zone, operator: In, values: [z]}}]}}", named("z"));
        let told = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.";
        assert_eq!(why(&of(&either)), Err(told.to_owned()));
    }

    #[test]
    fn a_pod_prefers_company_over_being_alone_of_its_kind() {
        let mut state = state();
        let owned = |name: &str, spec: &str| {
            let mut pod = pod(name, spec);
            let owner = read("[{kind: ReplicaSet, name: r, uid: u, controller: true}]");
            pod.make_object().entry("metadata").make_object().insert("ownerReferences", owner);
            pod
        };
        put(&mut state, "web", "a", "");
        state.place("a", Pod::of(&owned("first", "")));
        let preferring = "affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: \
                          {topologyKey: name, labelSelector: {matchLabels: {app: web}}}}]}}";
        let choose_for = |spec: &str| choose(&PendingPod::of(&owned("second", spec)), &state).expect("there is room");
        assert_eq!(choose_for(preferring), "a");
        assert_ne!(choose_for(""), "a");
    }

    #[test]
    fn pods_attract_repel_and_spread() {
        let mut state = state();
        put(&mut state, "web", "c", "");
        let term = |kind: &str| {
            format!(
                "affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: \
                 [{{topologyKey: zone, labelSelector: {{matchLabels: {{app: web}}}}}}]}}}}"
            )
        };
        assert_eq!(chosen(&state, &term("podAffinity")).as_deref(), Ok("c"));
        assert_eq!(chosen(&state, &term("podAntiAffinity")).as_deref(), Ok("a"));
        put(&mut state, "own", "a", &term("podAntiAffinity").replace("web", "p"));
        assert_eq!(chosen(&state, "").as_deref(), Ok("c"));
        let spread = "topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, \
                      labelSelector: {matchLabels: {app: p}}}]";
        let mut state = super::tests::state();
        put(&mut state, "p", "c", "");
        assert!(matches!(chosen(&state, spread).as_deref(), Ok("a" | "b")));
        put(&mut state, "port", "a", "containers: [{ports: [{hostPort: 80, protocol: TCP}]}]");
        let ported = "nodeSelector: {name: a}, containers: [{ports: [{hostPort: 80, protocol: TCP}]}]";
        assert!(chosen(&state, ported).is_err_and(|why| why.contains("1 node(s) didn't have free ports")));
    }

    #[test]
    fn company_is_a_pod_that_all_terms_are_about() {
        let mut state = state();
        put(&mut state, "web", "a", "");
        let term =
            |key: &str, app: &str| format!("{{topologyKey: {key}, labelSelector: {{matchLabels: {{app: {app}}}}}}}");
        let drawn = |terms: &[String]| {
            let terms = terms.join(", ");
            format!("affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{terms}]}}}}")
        };
        assert_eq!(chosen(&state, &drawn(&[term("zone", "web"), term("name", "web")])).as_deref(), Ok("a"));
        put(&mut state, "db", "a", "");
        assert!(chosen(&state, &drawn(&[term("zone", "web"), term("zone", "db")])).is_err());
        // The first of those that want to be together may be anywhere.
        assert!(chosen(&state, &drawn(&[term("zone", "p"), term("name", "p")])).is_ok());
        assert!(chosen(&state, &drawn(&[term("none", "p")])).is_err());
    }

    #[test]
    fn a_pod_goes_where_its_volumes_are() {
        let state = state();
        let pod = pod("p", "");
        let check = |zone: &str| {
            let terms = format!(
                "{{nodeSelectorTerms: [{{matchExpressions: [{{key: zone, operator: In, values: ['{zone}']}}]}}]}}"
            );
            let wanted = PendingPod { volumes: vec![read(&terms)], ..PendingPod::of(&pod) };
            choose(&wanted, &state).map_err(|refused| reasons(&refused))
        };
        assert_eq!(check("y").as_deref(), Ok("c"));
        let why = "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity.";
        assert_eq!(check("z"), Err(why.to_owned()));
    }

    #[test]
    fn what_is_refused_says_what_it_waits_for() {
        let mut state = state();
        put(&mut state, "web", "a", "");
        let check = |state: &State, spec: &str, expected: Awaits| {
            let pod = pod("p", spec);
            let refused = choose(&PendingPod::of(&pod), state).expect_err("it is refused");
            assert_eq!(awaited(&refused), expected, "{spec}");
        };
        check(&state, &CPU_2.replace("'2'", "'3'"), Awaits::ROOM);
        check(&state, "nodeSelector: {zone: z}", Awaits::NODE);
        let term = |kind: &str, app: &str| {
            format!(
                "affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: \
                 [{{topologyKey: none, labelSelector: {{matchLabels: {{app: {app}}}}}}}]}}}}"
            )
        };
        check(&state, &term("podAffinity", "db"), Awaits::COMPANY);
        for node in ["a", "b", "c"] {
            put(&mut state, &format!("on-{node}"), node, "");
            let node = state.nodes.get_mut(node).expect("it is there");
            node.labels.insert("none", Value::from("same"));
        }
        check(&state, &term("podAntiAffinity", "web"), Awaits::DISTANCE);
        let spread = "topologySpreadConstraints: [{topologyKey: name, maxSkew: 1, minDomains: 9, whenUnsatisfiable: DoNotSchedule, \
                      labelSelector: {}}]";
        check(&state, spread, Awaits::BALANCE);
        check(&State::default(), "", Awaits::NODE);
    }

    #[test]
    fn the_least_important_make_room() {
        let mut state = state();
        put(&mut state, "high", "a", &format!("priority: 9, {CPU_2}"));
        put(&mut state, "low", "b", &format!("priority: 1, {CPU_2}"));
        put(&mut state, "mid", "c", &format!("priority: 4, {CPU_2}"));
        let victims_of = |priority: i64| {
            let pod = pod("p", &format!("priority: {priority}, {CPU_2}"));
            let wanted = PendingPod::of(&pod);
            let refused = choose(&wanted, &state).expect_err("there is no room");
            victims(&wanted, &refused, &state)
        };
        assert_eq!(victims_of(5), Some(("b".to_owned(), vec!["d/low".to_owned()])));
        assert_eq!(victims_of(1), None);
    }

    #[test]
    fn budgets_for_disruptions_are_kept_where_another_can_go() {
        let mut state = state();
        put(&mut state, "low", "a", &format!("priority: 1, {CPU_2}"));
        put(&mut state, "mid", "b", &format!("priority: 4, {CPU_2}"));
        put(&mut state, "high", "c", &format!("priority: 9, {CPU_2}"));
        let budget = |allowed: i64| {
            let text = format!(
                "metadata: {{namespace: d}}\nspec: {{selector: {{matchLabels: {{app: low}}}}}}\nstatus: {{disruptionsAllowed: {allowed}}}"
            );
            super::super::budget::Budget::of(&read(&text)).expect("it selects pods")
        };
        let victims_of = |state: &State, priority: i64| {
            let pod = pod("p", &format!("priority: {priority}, {CPU_2}"));
            let wanted = PendingPod::of(&pod);
            let refused = choose(&wanted, state).expect_err("there is no room");
            victims(&wanted, &refused, state).map(|(node, _)| node)
        };
        assert_eq!(victims_of(&state, 5).as_deref(), Some("a"));
        state.budgets.insert("d/b".to_owned(), budget(0));
        assert_eq!(victims_of(&state, 5).as_deref(), Some("b"));
        // Where nobody else can go, it is broken.
        assert_eq!(victims_of(&state, 2).as_deref(), Some("a"));
        state.budgets.insert("d/b".to_owned(), budget(1));
        assert_eq!(victims_of(&state, 5).as_deref(), Some("a"));
    }
}
