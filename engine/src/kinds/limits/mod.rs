//! The effect of a namespace's limits on pods and claims.
//!
//! Input: a LimitRange and an object. Output: the object with defaults, or why it is refused.
//!
//! Source: `plugin/pkg/admission/limitranger`, release 1.36.

mod constraints;

use std::collections::BTreeSet;

use crate::meta::OBJECT_BYTES_MAX;
use crate::meta::field::ERRORS_BYTES_MAX;
use crate::value::{Map, Value};
use crate::work;

use super::pod::aggregate::{self, Totals};
use super::{defaults, resources};
use constraints::{AskedResources, LimitType};

/// Bytes of names and amounts that a pod may be given: with more of them it is not an object that is stored.
pub const GIVEN_BYTES_MAX: usize = OBJECT_BYTES_MAX;

/// The annotation of a pod that lists the values it was given.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The values that ranges give a pod exceed what it may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch;

/// Sets the requests and limits of a range for the containers of a pod that have none.
///
/// # Errors
///
/// They take more than [`GIVEN_BYTES_MAX`] bytes; once they do, no more are set.
pub fn set_pod_defaults(range: &Value, pod: &mut Value) -> Result<(), TooMuch> {
    let mut room = GIVEN_BYTES_MAX;
    let (requests, limits) = (of_containers(range, "defaultRequest"), of_containers(range, "default"));
    let mut notes = Vec::new();
    let Some(spec) = defaults::field(pod, "spec") else { return Ok(()) };
    for (list, called) in [("containers", "container"), ("initContainers", "init container")] {
        for container in defaults::items(spec, list) {
            let name = container.str_at(&["name"]).to_owned();
            let set = fill(container, "limits", &limits, &mut room)?;
            let asked = fill(container, "requests", &requests, &mut room)?;
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
    Ok(())
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

/// Fills in the amounts that a list of a container lacks, as long as there is room for them, and returns their names.
fn fill(container: &mut Value, list: &str, amounts: &Map, room: &mut usize) -> Result<Vec<String>, TooMuch> {
    let mut names = Vec::new();
    if amounts.is_empty() {
        return Ok(names);
    }
    let own = defaults::structure(defaults::structure(container, "resources"), list).make_object();
    for (name, amount) in amounts.iter() {
        work::step();
        if !own.contains_key(name) {
            let bytes = name.len() + amount.as_str().map_or(0, str::len);
            *room = room.checked_sub(bytes).ok_or(TooMuch)?;
            own.insert(name, amount.clone());
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Why a pod does not keep to a range; of many faults, as many as fit into an answer.
pub fn check_pod(range: &Value, pod: &Value) -> Option<String> {
    let mut faults = Faults::default();
    for limit in range.items_at(&["spec", "limits"]) {
        match limit.str_at(&["type"]) {
            "Container" => {
                let lists = ["containers", "initContainers"];
                for container in lists.iter().flat_map(|list| pod.items_at(&["spec", list])) {
                    let read = |list: &str| read(container.at(&["resources", list]));
                    let asked = AskedResources { requests: read("requests"), limits: read("limits") };
                    asked.check(limit, LimitType::Container, &mut faults);
                }
            }
            "Pod" => {
                let asked = AskedResources { requests: of_pod(pod, "requests"), limits: of_pod(pod, "limits") };
                asked.check(limit, LimitType::Pod, &mut faults);
            }
            _ => {}
        }
    }
    faults.join()
}

/// Why a claim does not keep to a range.
pub fn check_claim(range: &Value, claim: &Value) -> Option<String> {
    let requests = read(claim.at(&["spec", "resources", "requests"]));
    let asked = AskedResources { requests, limits: Totals::new() };
    let mut faults = Faults::default();
    for limit in limits_for(range, "PersistentVolumeClaim") {
        asked.check(limit, LimitType::Claim, &mut faults);
    }
    faults.join()
}

fn read(list: Option<&Value>) -> Totals {
    let list = list.and_then(Value::as_object);
    let entries = list.into_iter().flat_map(Map::iter);
    entries.map(|(name, amount)| (name.to_owned(), resources::parse(Some(amount)))).collect()
}

/// The resources that a pod asks for: the total of its containers, unless the pod has its own.
fn of_pod(pod: &Value, list: &str) -> Totals {
    let Some(spec) = pod.get("spec") else { return Totals::new() };
    let mut totals = aggregate::of_containers(spec, list);
    let own = read(spec.at(&["resources", list]));
    totals.extend(own.into_iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")));
    totals
}

/// Faults, each once, up to [`ERRORS_BYTES_MAX`] of text.
#[derive(Debug, Default)]
struct Faults {
    found: Vec<String>,
    seen: BTreeSet<String>,
    bytes: usize,
}

impl Faults {
    fn push(&mut self, fault: String) {
        if !self.is_full() && self.seen.insert(fault.clone()) {
            self.bytes += fault.len();
            self.found.push(fault);
        }
    }

    fn is_full(&self) -> bool {
        self.bytes > ERRORS_BYTES_MAX
    }

    /// The faults as Go joins errors.
    fn join(mut self) -> Option<String> {
        if self.found.len() > 1 { Some(format!("[{}]", self.found.join(", "))) } else { self.found.pop() }
    }
}
