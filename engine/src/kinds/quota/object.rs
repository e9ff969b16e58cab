//! An object as quotas see it. What they ask about it is found once, however many there are.

use std::cell::OnceCell;

use crate::kinds::pod::aggregate::Totals;
use crate::kinds::resources;
use crate::value::Value;

use super::usage::{Counted, Unspecified};

/// An object that quotas may count.
pub(super) struct CountedObject<'o> {
    pub resource: Counted<'o>,
    pub object: &'o Value,
    usage: OnceCell<Totals>,
    unspecified: OnceCell<Unspecified<'o>>,
    is_best_effort: OnceCell<bool>,
    has_affinity_elsewhere: OnceCell<bool>,
}

impl<'o> CountedObject<'o> {
    pub fn new(resource: Counted<'o>, object: &'o Value) -> Self {
        CountedObject {
            resource,
            object,
            usage: OnceCell::new(),
            unspecified: OnceCell::new(),
            is_best_effort: OnceCell::new(),
            has_affinity_elsewhere: OnceCell::new(),
        }
    }

    /// How much it uses of each resource.
    pub fn usage(&self) -> &Totals {
        self.usage.get_or_init(|| self.resource.usage(self.object))
    }

    /// What its containers do not specify.
    pub fn unspecified(&self) -> &Unspecified<'o> {
        self.unspecified.get_or_init(|| self.resource.unspecified(self.object))
    }

    /// Whether, as a pod, it requests and limits neither CPU nor memory.
    pub fn is_best_effort(&self) -> bool {
        *self.is_best_effort.get_or_init(|| is_best_effort(self.object))
    }

    /// Whether, as a pod, it has an affinity to pods of other namespaces.
    pub fn has_affinity_elsewhere(&self) -> bool {
        *self.has_affinity_elsewhere.get_or_init(|| has_affinity_elsewhere(self.object))
    }
}

/// Whether neither the pod nor a container requests or limits CPU or memory.
fn is_best_effort(pod: &Value) -> bool {
    let asks = |resources: &Value| {
        ["requests", "limits"]
            .iter()
            .any(|list| ["cpu", "memory"].iter().any(|name| resources::parse(resources.at(&[list, name])).signum() > 0))
    };
    if let Some(own) = pod.at(&["spec", "resources"]).filter(|own| !own.is_null()) {
        return !asks(own);
    }
    let mut containers = ["containers", "initContainers"].iter().flat_map(|list| pod.items_at(&["spec", list]));
    !containers.any(|container| container.get("resources").is_some_and(asks))
}

/// Whether a pod has an affinity to pods of other namespaces.
fn has_affinity_elsewhere(pod: &Value) -> bool {
    let is_elsewhere = |term: &Value| {
        let selects = term.get("namespaceSelector").is_some_and(|selector| !selector.is_null());
        selects || !term.items_at(&["namespaces"]).is_empty()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let terms = |list: &str| pod.items_at(&["spec", "affinity", kind, list]).iter();
        terms("requiredDuringSchedulingIgnoredDuringExecution").any(is_elsewhere)
            || terms("preferredDuringSchedulingIgnoredDuringExecution")
                .any(|term| term.get("podAffinityTerm").is_some_and(is_elsewhere))
    })
}
