//! Hints: for which nodes or zones of origin each endpoint is meant.
//!
//! Source: `k8s.io/endpointslice/trafficdist` and `k8s.io/endpointslice/topologycache`, release 1.37.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use super::layout::Slice;
use crate::controllers::services::ZONE;
use crate::kinds::pod_object::conditions;
use crate::meta::quantity::Quantity;
use crate::object;
use crate::value::Value;

/// By how much the load of a zone may exceed its share.
const OVERLOAD: f64 = 0.2;

/// Which hints a service wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hints {
    None,
    SameZone,
    SameNode,
    /// Each zone has endpoints in proportion to its CPUs.
    ByProcessors,
}

impl Hints {
    pub fn of(service: &Value) -> Self {
        let annotation = |name: &str| service.at(&["metadata", "annotations", name]).and_then(Value::as_str);
        let mode = annotation("service.kubernetes.io/topology-aware-hints");
        if let Some("Auto" | "auto") = mode.or_else(|| annotation("service.kubernetes.io/topology-mode")) {
            return Hints::ByProcessors;
        }
        match service.str_at(&["spec", "trafficDistribution"]) {
            "PreferClose" | "PreferSameZone" => Hints::SameZone,
            "PreferSameNode" => Hints::SameNode,
            _ => Hints::None,
        }
    }
}

/// Assigns each endpoint to its own zone, or to its own node first; endpoints that are not ready stay as they are.
pub(super) fn point_nearby(hints: Hints, slices: &mut [Slice]) {
    for slice in slices.iter_mut() {
        for endpoint in &mut slice.endpoints {
            let wanted = match hints {
                Hints::ByProcessors => continue,
                Hints::None => None,
                Hints::SameZone | Hints::SameNode if !is_ready(endpoint) => continue,
                Hints::SameZone => hint([("forZones", "zone")].into_iter(), endpoint),
                Hints::SameNode => hint([("forZones", "zone"), ("forNodes", "nodeName")].into_iter(), endpoint),
            };
            slice.is_changed |= set(endpoint, wanted);
        }
    }
}

fn hint<'n>(lists: impl Iterator<Item = (&'n str, &'n str)>, endpoint: &Value) -> Option<Value> {
    let mut hints = object! {};
    for (list, field) in lists.filter(|(_, field)| !endpoint.str_at(&[field]).is_empty()) {
        hints.make_object().insert(list, Value::Array(vec![object! { "name" => endpoint.str_at(&[field]) }]));
    }
    (hints != object! {}).then_some(hints)
}

/// Sets the hints of an endpoint; returns whether they changed.
fn set(endpoint: &mut Value, hints: Option<Value>) -> bool {
    if endpoint.get("hints") == hints.as_ref() {
        return false;
    }
    match hints {
        Some(hints) => _ = endpoint.make_object().insert("hints", hints),
        None => _ = endpoint.make_object().remove("hints"),
    }
    true
}

fn for_zone(zone: &str) -> Option<Value> {
    Some(object! { "forZones" => vec![object! { "name" => zone }] })
}

fn is_ready(endpoint: &Value) -> bool {
    endpoint.at(&["conditions", "ready"]).and_then(Value::as_bool) == Some(true)
}

/// The CPUs of each node that serves endpoints.
#[derive(Debug, Default)]
pub(super) struct Zones(BTreeMap<String, Share>);

#[derive(Debug, PartialEq)]
struct Share {
    zone: String,
    milli_cpus: i64,
}

impl Share {
    /// The share of a node; `None` for one that is not ready, or is for the control plane.
    fn of(node: &Value) -> Option<Self> {
        let label = |name: &str| node.at(&["metadata", "labels", name]).and_then(Value::as_str);
        let is_apart = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]
            .iter()
            .any(|name| label(name).is_some());
        let cpus = Quantity::parse(node.str_at(&["status", "allocatable", "cpu"]));
        let share = Share {
            zone: label(ZONE).unwrap_or_default().to_owned(),
            milli_cpus: cpus.map_or(0, |cpus| cpus.milli_value()),
        };
        (!is_apart && conditions::is_true(node, "Ready")).then_some(share)
    }
}

impl Zones {
    /// Records a node, or its removal; returns whether that changes anything.
    pub fn take_in(&mut self, name: &str, node: Option<&Value>) -> bool {
        let share = node.and_then(Share::of);
        if self.0.get(name) == share.as_ref() {
            return false;
        }
        match share {
            Some(share) => _ = self.0.insert(name.to_owned(), share),
            None => _ = self.0.remove(name),
        }
        true
    }

    /// The fraction of all CPUs that each zone has; `None` if that is not known for a node, or if there are not several
    /// zones.
    fn ratios(&self) -> Option<BTreeMap<&str, f64>> {
        let mut cpus: BTreeMap<&str, i64> = BTreeMap::new();
        for share in self.0.values() {
            if share.zone.is_empty() || share.milli_cpus == 0 {
                return None;
            }
            *cpus.entry(&share.zone).or_default() += share.milli_cpus;
        }
        let total: i64 = cpus.values().sum();
        let ratios = cpus.iter().map(|(zone, cpus)| (*zone, *cpus as f64 / total as f64));
        (cpus.len() > 1 && total > 0).then(|| ratios.collect())
    }
}

/// Why endpoints can't be shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unshared {
    NodesUnknown,
    TooFew { endpoints: usize, zones: usize },
    Overload { endpoints: usize, zones: usize },
    NoZone,
    NoHints,
}

impl fmt::Display for Unshared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unshared::NodesUnknown => out
                .write_str("Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"),
            Unshared::TooFew { endpoints, zones } => {
                write!(out, "Insufficient number of endpoints ({endpoints} endpoints, {zones} zones)")
            }
            Unshared::Overload { endpoints, zones } => write!(
                out,
                "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold \
                 ({endpoints} endpoints, {zones} zones)"
            ),
            Unshared::NoZone => out.write_str("One or more endpoints do not have a zone specified"),
            Unshared::NoHints => out.write_str("No hints allocated for zones"),
        }
    }
}

/// How many endpoints a zone should have.
struct Allocation {
    desired: f64,
    minimum: usize,
    maximum: usize,
}

/// Distributes endpoints over the zones in proportion to their CPUs. If that can't be done, no endpoint has a hint.
pub(super) fn share_out(zones: &Zones, slices: &mut [Slice]) -> Result<(), Unshared> {
    let shared = try_to_share(zones, slices);
    if shared.is_err() {
        for slice in slices.iter_mut() {
            for endpoint in &mut slice.endpoints {
                slice.is_changed |= set(endpoint, None);
            }
        }
    }
    shared
}

fn try_to_share(zones: &Zones, slices: &mut [Slice]) -> Result<(), Unshared> {
    let ready = slices.iter().flat_map(|slice| &slice.endpoints).filter(|endpoint| is_ready(endpoint)).count();
    let allocations = allocations(zones, ready)?;
    let mut allocated = keep_present(&allocations, slices);
    // Each endpoint is for its own zone first.
    for endpoint in slices.iter_mut().filter(|slice| slice.is_changed).flat_map(|slice| &mut slice.endpoints) {
        if !is_ready(endpoint) {
            continue;
        }
        let zone = endpoint.str_at(&["zone"]).to_owned();
        if zone.is_empty() {
            return Err(Unshared::NoZone);
        }
        set(endpoint, for_zone(&zone));
        *allocated.entry(zone).or_default() += 1;
    }
    let (giving, receiving) = moves(&allocations, &allocated);
    move_over(slices, giving, receiving);
    if allocated.is_empty() { Err(Unshared::NoHints) } else { Ok(()) }
}

fn allocations(zones: &Zones, endpoints: usize) -> Result<BTreeMap<&str, Allocation>, Unshared> {
    let ratios = zones.ratios().ok_or(Unshared::NodesUnknown)?;
    let zones = ratios.len();
    if zones > endpoints {
        return Err(Unshared::TooFew { endpoints, zones });
    }
    let allocation = |ratio: f64| {
        let desired = ratio * endpoints as f64;
        let minimum = (desired * (1.0 / (1.0 + OVERLOAD))).ceil();
        Allocation { desired: desired.max(minimum), minimum: minimum as usize, maximum: 0 }
    };
    let mut allocations: BTreeMap<&str, Allocation> =
        ratios.into_iter().map(|(zone, ratio)| (zone, allocation(ratio))).collect();
    let least: usize = allocations.values().map(|allocation| allocation.minimum).sum();
    let Some(spare) = endpoints.checked_sub(least) else { return Err(Unshared::Overload { endpoints, zones }) };
    allocations.values_mut().for_each(|allocation| allocation.maximum = allocation.minimum + spare);
    Ok(allocations)
}

/// Counts the hints of slices that need not change; others are marked.
fn keep_present(allocations: &BTreeMap<&str, Allocation>, slices: &mut [Slice]) -> BTreeMap<String, usize> {
    let mut allocated: BTreeMap<String, usize> = BTreeMap::new();
    for slice in slices.iter_mut().filter(|slice| !slice.is_changed) {
        match present(allocations, &allocated, &slice.endpoints) {
            Some(counts) => {
                counts.into_iter().for_each(|(zone, count)| *allocated.entry(zone).or_default() += count);
            }
            None => slice.is_changed = true,
        }
    }
    allocated
}

/// How many hints of endpoints each zone has; `None` if an endpoint has none, or a zone would have too many.
fn present(
    allocations: &BTreeMap<&str, Allocation>,
    allocated: &BTreeMap<String, usize>,
    endpoints: &[Value],
) -> Option<BTreeMap<String, usize>> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for endpoint in endpoints.iter().filter(|endpoint| is_ready(endpoint)) {
        let zones = endpoint.items_at(&["hints", "forZones"]);
        if zones.is_empty() {
            return None;
        }
        zones.iter().for_each(|zone| *counts.entry(zone.str_at(&["name"]).to_owned()).or_default() += 1);
    }
    let fits = |(zone, count): (&String, &usize)| {
        let already = allocated.get(zone).copied().unwrap_or_default();
        allocations.get(zone.as_str()).is_some_and(|allocation| count + already <= allocation.maximum)
    };
    counts.iter().all(fits).then_some(counts)
}

/// By zone, how many endpoints it gives to others or receives from them.
type Moves = BTreeMap<String, usize>;

fn moves(allocations: &BTreeMap<&str, Allocation>, allocated: &BTreeMap<String, usize>) -> (Moves, Moves) {
    let (mut surplus, mut missing) = (BTreeMap::new(), BTreeMap::new());
    for (zone, allocation) in allocations {
        let has = allocated.get(*zone).copied().unwrap_or_default() as f64;
        match has.total_cmp(&allocation.desired) {
            Ordering::Greater => _ = surplus.insert(*zone, has - allocation.desired),
            Ordering::Less => _ = missing.insert(*zone, allocation.desired - has),
            Ordering::Equal => {}
        }
    }
    let (mut giving, mut receiving) = (Moves::new(), Moves::new());
    while let (Some((giver, to_give)), Some((receiver, to_receive))) = (most(&mut surplus), most(&mut missing)) {
        if *to_give < 0.5 || *to_receive < 0.5 || *to_give < 1.0 && *to_receive < 1.0 {
            break;
        }
        (*to_give, *to_receive) = (*to_give - 1.0, *to_receive - 1.0);
        *giving.entry(giver.to_owned()).or_default() += 1;
        *receiving.entry(receiver.to_owned()).or_default() += 1;
    }
    (giving, receiving)
}

/// The zone with the largest positive amount.
fn most<'z, 'm>(amounts: &'m mut BTreeMap<&'z str, f64>) -> Option<(&'z str, &'m mut f64)> {
    let positive = amounts.iter_mut().filter(|(_, amount)| **amount > 0.0);
    let most = positive.reduce(|best, other| if *other.1 > *best.1 { other } else { best });
    most.map(|(zone, amount)| (*zone, amount))
}

/// Moves endpoints from zones that have too many to others.
fn move_over(slices: &mut [Slice], mut giving: Moves, mut receiving: Moves) {
    let endpoints = slices.iter_mut().filter(|slice| slice.is_changed).flat_map(|slice| &mut slice.endpoints);
    for endpoint in endpoints.filter(|endpoint| is_ready(endpoint)) {
        let Some(to_give) = giving.get_mut(endpoint.str_at(&["zone"])).filter(|left| **left > 0) else { continue };
        let Some((receiver, to_receive)) = receiving.iter_mut().find(|(_, left)| **left > 0) else { return };
        (*to_give, *to_receive) = (*to_give - 1, *to_receive - 1);
        set(endpoint, for_zone(receiver));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::services::tests::read;

    fn slices(zones: &[&str]) -> Vec<Slice> {
        let endpoint = |zone: &&str| read(&format!("{{zone: {zone}, nodeName: here, conditions: {{ready: true}}}}"));
        vec![Slice::fixture(zones.iter().map(endpoint).collect())]
    }

    fn hinted(slices: &[Slice]) -> Vec<String> {
        let all = slices.iter().flat_map(|slice| &slice.endpoints);
        let zones = |endpoint: &Value| {
            let names = endpoint.items_at(&["hints", "forZones"]).iter().map(|zone| zone.str_at(&["name"]).to_owned());
            names.collect::<Vec<_>>().join("+")
        };
        all.map(zones).collect()
    }

    fn zones(nodes: &[(&str, i64)]) -> Zones {
        let mut zones = Zones::default();
        for (number, (zone, cpus)) in nodes.iter().enumerate() {
            let node = read(&format!(
                "metadata: {{labels: {{{ZONE}: {zone}}}}}\n\
                 status: {{allocatable: {{cpu: '{cpus}'}}, conditions: [{{type: Ready, status: 'True'}}]}}"
            ));
            assert!(zones.take_in(&number.to_string(), Some(&node)));
        }
        zones
    }

    #[test]
    fn a_service_says_which_hints_it_wants() {
        let check = |text: &str, expected| assert_eq!(Hints::of(&read(text)), expected, "{text}");
        check("spec: {}", Hints::None);
        check("spec: {trafficDistribution: PreferClose}", Hints::SameZone);
        check("spec: {trafficDistribution: PreferSameZone}", Hints::SameZone);
        check("spec: {trafficDistribution: PreferSameNode}", Hints::SameNode);
        let annotated = |annotations: &str| {
            format!("metadata: {{annotations: {{{annotations}}}}}\nspec: {{trafficDistribution: PreferClose}}")
        };
        check(&annotated("service.kubernetes.io/topology-mode: Auto"), Hints::ByProcessors);
        let both = "service.kubernetes.io/topology-mode: Auto, service.kubernetes.io/topology-aware-hints: Disabled";
        check(&annotated(both), Hints::SameZone);
    }

    #[test]
    fn endpoints_serve_their_own_zone_and_node() {
        let mut found = slices(&["a", "b"]);
        found[0].is_changed = false;
        point_nearby(Hints::SameZone, &mut found);
        assert_eq!((hinted(&found), found[0].is_changed), (vec!["a".to_owned(), "b".to_owned()], true));
        found[0].is_changed = false;
        point_nearby(Hints::SameZone, &mut found);
        assert!(!found[0].is_changed);
        point_nearby(Hints::SameNode, &mut found);
        assert_eq!(
            found[0].endpoints[0].at(&["hints"]),
            Some(&read("{forZones: [{name: a}], forNodes: [{name: here}]}"))
        );
        // An unready endpoint stays as it is, and without a preference there are no hints.
        found[0].endpoints[0].make_object().insert("conditions", read("{ready: false}"));
        point_nearby(Hints::SameZone, &mut found);
        assert_eq!(found[0].endpoints[0].items_at(&["hints", "forNodes"]).len(), 1);
        point_nearby(Hints::None, &mut found);
        assert_eq!(hinted(&found), ["", ""]);
    }

    #[test]
    fn zones_have_endpoints_as_they_have_processors() {
        let zones = zones(&[("a", 4), ("a", 4), ("b", 8)]);
        let mut even = slices(&["a", "b", "a", "b"]);
        assert_eq!(share_out(&zones, &mut even), Ok(()));
        assert_eq!(hinted(&even), ["a", "b", "a", "b"]);
        let mut uneven = slices(&["a", "a", "a", "b"]);
        assert_eq!(share_out(&zones, &mut uneven), Ok(()));
        assert_eq!(hinted(&uneven), ["b", "a", "a", "b"]);
        // What fits stays.
        uneven[0].is_changed = false;
        assert_eq!(share_out(&zones, &mut uneven), Ok(()));
        assert!(!uneven[0].is_changed);
    }

    #[test]
    fn endpoints_that_cannot_be_shared_out_have_no_hints() {
        let check = |zones: &Zones, endpoints: &[&str], expected| {
            let mut found = slices(endpoints);
            point_nearby(Hints::SameZone, &mut found);
            assert_eq!(share_out(zones, &mut found), Err(expected));
            assert!(hinted(&found).iter().all(String::is_empty));
        };
        let two = zones(&[("a", 4), ("b", 4)]);
        check(&zones(&[("a", 4)]), &["a", "a"], Unshared::NodesUnknown);
        check(&zones(&[("a", 4), ("''", 4)]), &["a", "a"], Unshared::NodesUnknown);
        check(&two, &["a"], Unshared::TooFew { endpoints: 1, zones: 2 });
        check(&two, &["a", "''"], Unshared::NoZone);
        let three = zones(&[("a", 1), ("b", 1), ("c", 1)]);
        check(&three, &["a", "b", "c", "a"], Unshared::Overload { endpoints: 4, zones: 3 });
    }

    #[test]
    fn nodes_that_are_not_ready_have_no_share() {
        let mut zones = zones(&[("a", 4), ("b", 4)]);
        assert!(zones.ratios().is_some());
        let unready = read(&format!("metadata: {{labels: {{{ZONE}: b}}}}\nstatus: {{allocatable: {{cpu: '4'}}}}"));
        assert!(zones.take_in("1", Some(&unready)));
        assert!(!zones.take_in("1", None));
        assert!(zones.ratios().is_none());
    }
}
