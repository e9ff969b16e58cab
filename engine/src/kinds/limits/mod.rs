//! What the limits of a namespace do to pods and claims.
//!
//! In: a LimitRange and an object. Out: the object with defaults, or why it is refused.
//!
//! Source: `plugin/pkg/admission/limitranger`, release 1.36.

mod constraints;

use std::collections::BTreeSet;

use crate::value::{Map, Value};
use crate::work;

use super::pod::aggregate::{self, Totals};
use super::{defaults, resources};
use constraints::{Asked, LimitType};

/// Where a pod says what it was given.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Gives the containers of a pod the requests and limits that a range has for those that name none.
pub fn set_pod_defaults(range: &Value, pod: &mut Value) {
    let (requests, limits) = (of_containers(range, "defaultRequest"), of_containers(range, "default"));
    let mut notes = Vec::new();
    let Some(spec) = defaults::field(pod, "spec") else { return };
    for (list, called) in [("containers", "container"), ("initContainers", "init container")] {
        for container in defaults::items(spec, list) {
            let name = container.str_at(&["name"]).to_owned();
            let set = fill(container, "limits", &limits);
            let asked = fill(container, "requests", &requests);
            for (what, names) in [("request", asked), ("limit", set)] {
                if !names.is_empty() {
                    notes.push(format!("{} {what} for {called} {name}", names.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        let annotations = defaults::structure(defaults::structure(pod, "metadata"), "annotations");
        annotations.make_object().insert(ANNOTATION, Value::String(note));
    }
}

/// The limits of a range for a type of objects.
fn limits_for<'r>(range: &'r Value, type_: &'r str) -> impl Iterator<Item = &'r Value> {
    range.items_at(&["spec", "limits"]).iter().filter(move |limit| limit.str_at(&["type"]) == type_)
}

/// One list of all limits for containers.
fn of_containers(range: &Value, list: &str) -> Map {
    let mut amounts = Map::new();
    for limit in limits_for(range, "Container") {
        let list = limit.get(list).and_then(Value::as_object);
        for (name, amount) in list.into_iter().flat_map(Map::iter) {
            amounts.insert(name, amount.clone());
        }
    }
    amounts
}

/// Fills in the amounts that a list of a container lacks, and returns their names.
fn fill(container: &mut Value, list: &str, amounts: &Map) -> Vec<String> {
    let mut names = Vec::new();
    if amounts.is_empty() {
        return names;
    }
    let own = defaults::structure(defaults::structure(container, "resources"), list).make_object();
    for (name, amount) in amounts.iter() {
        work::step();
        if !own.contains_key(name) {
            own.insert(name, amount.clone());
            names.push(name.to_owned());
        }
    }
    names
}

/// Why a pod does not keep to a range.
pub fn check_pod(range: &Value, pod: &Value) -> Option<String> {
    let mut faults = Vec::new();
    for limit in range.items_at(&["spec", "limits"]) {
        match limit.str_at(&["type"]) {
            "Container" => {
                let lists = ["containers", "initContainers"];
                for container in lists.iter().flat_map(|list| pod.items_at(&["spec", list])) {
                    let read = |list: &str| read(container.at(&["resources", list]));
                    let asked = Asked { requests: read("requests"), limits: read("limits") };
                    faults.extend(asked.check(limit, LimitType::Container));
                }
            }
            "Pod" => {
                let asked = Asked { requests: of_pod(pod, "requests"), limits: of_pod(pod, "limits") };
                faults.extend(asked.check(limit, LimitType::Pod));
            }
            _ => {}
        }
    }
    join(faults)
}

/// Why a claim does not keep to a range.
pub fn check_claim(range: &Value, claim: &Value) -> Option<String> {
    let requests = read(claim.at(&["spec", "resources", "requests"]));
    let asked = Asked { requests, limits: Totals::new() };
    join(limits_for(range, "PersistentVolumeClaim").flat_map(|limit| asked.check(limit, LimitType::Claim)).collect())
}

fn read(list: Option<&Value>) -> Totals {
    let list = list.and_then(Value::as_object);
    let entries = list.into_iter().flat_map(Map::iter);
    entries.map(|(name, amount)| (name.to_owned(), resources::parse(Some(amount)))).collect()
}

/// What a pod asks for: its containers together, unless it says so itself.
fn of_pod(pod: &Value, list: &str) -> Totals {
    let Some(spec) = pod.get("spec") else { return Totals::new() };
    let mut totals = aggregate::of_containers(spec, list);
    let own = read(spec.at(&["resources", list]));
    totals.extend(own.into_iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")));
    totals
}

/// Errors as Go joins them: each once.
fn join(faults: Vec<String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut faults: Vec<String> = faults.into_iter().filter(|fault| seen.insert(fault.clone())).collect();
    if faults.len() > 1 { Some(format!("[{}]", faults.join(", "))) } else { faults.pop() }
}
