//! The scopes of quotas: which objects a quota applies to.

use crate::kinds::resources;
use crate::value::Value;

use super::usage::{Counted, is_terminating};

/// Whether the object is in every scope of the quota.
pub fn all_match(quota: &Value, counted: &Counted<'_>, object: &Value) -> bool {
    scopes_of(quota).all(|scope| scope.has(counted, object))
}

/// The scopes of a quota, from both fields that can contain them.
pub(super) fn scopes_of(quota: &Value) -> impl Iterator<Item = Scope<'_>> {
    let names = quota.items_at(&["spec", "scopes"]).iter().filter_map(Value::as_str);
    let selectors = quota.items_at(&["spec", "scopeSelector", "matchExpressions"]).iter();
    names.map(|name| Scope { name, operator: "Exists", values: &[] }).chain(selectors.map(Scope::of))
}

/// A scope, with the operator and the values that select its objects.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s> {
    pub name: &'s str,
    pub operator: &'s str,
    pub values: &'s [Value],
}

impl<'s> Scope<'s> {
    /// Reads a ScopedResourceSelectorRequirement.
    pub fn of(selector: &'s Value) -> Self {
        Scope {
            name: selector.str_at(&["scopeName"]),
            operator: selector.str_at(&["operator"]),
            values: selector.items_at(&["values"]),
        }
    }

    /// Whether the object is in the scope. Only pods and claims can be.
    pub fn has(&self, counted: &Counted<'_>, object: &Value) -> bool {
        match (counted.group, counted.plural) {
            ("", "pods") => self.has_pod(object),
            ("", "persistentvolumeclaims") => self.has_claim(object),
            _ => false,
        }
    }

    fn has_pod(&self, pod: &Value) -> bool {
        match self.name {
            "Terminating" => is_terminating(pod),
            "NotTerminating" => !is_terminating(pod),
            "BestEffort" => is_best_effort(pod),
            "NotBestEffort" => !is_best_effort(pod),
            "PriorityClass" => {
                let class = pod.str_at(&["spec", "priorityClassName"]);
                self.selects(Some(class).filter(|class| !class.is_empty()))
            }
            "CrossNamespacePodAffinity" => has_affinity_elsewhere(pod),
            _ => false,
        }
    }

    /// Whether a claim is in the scope: by any of the classes that it requests or has.
    fn has_claim(&self, claim: &Value) -> bool {
        const CLASSES: [&[&str]; 3] = [
            &["spec", "volumeAttributesClassName"],
            &["status", "currentVolumeAttributesClassName"],
            &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
        ];
        let mut classes = CLASSES.iter().map(|path| claim.str_at(path)).filter(|class| !class.is_empty()).peekable();
        if self.name != "VolumeAttributesClass" {
            return false;
        }
        if classes.peek().is_none() { self.selects(None) } else { classes.any(|class| self.selects(Some(class))) }
    }

    fn selects(&self, class: Option<&str>) -> bool {
        let is_among = class.is_some_and(|class| self.values.iter().any(|value| value.as_str() == Some(class)));
        match self.operator {
            "In" => is_among,
            "NotIn" => !is_among,
            "Exists" => class.is_some(),
            "DoesNotExist" => class.is_none(),
            _ => false,
        }
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
