//! The scopes of quotas: which objects a quota applies to.

use crate::value::Value;

use super::object::CountedObject;
use super::usage::{Counted, is_terminating};

/// Whether the object is in every scope of the quota.
pub fn all_match(quota: &Value, counted: &Counted<'_>, object: &Value) -> bool {
    all_have(quota, &CountedObject::new(*counted, object))
}

/// Whether every scope of the quota has the object.
pub(super) fn all_have(quota: &Value, counted: &CountedObject<'_>) -> bool {
    scopes_of(quota).all(|scope| scope.has(counted))
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
    pub fn has(&self, counted: &CountedObject<'_>) -> bool {
        match (counted.resource.group, counted.resource.plural) {
            ("", "pods") => self.has_pod(counted),
            ("", "persistentvolumeclaims") => self.has_claim(counted.object),
            _ => false,
        }
    }

    fn has_pod(&self, pod: &CountedObject<'_>) -> bool {
        match self.name {
            "Terminating" => is_terminating(pod.object),
            "NotTerminating" => !is_terminating(pod.object),
            "BestEffort" => pod.is_best_effort(),
            "NotBestEffort" => !pod.is_best_effort(),
            "PriorityClass" => {
                let class = pod.object.str_at(&["spec", "priorityClassName"]);
                self.selects(Some(class).filter(|class| !class.is_empty()))
            }
            "CrossNamespacePodAffinity" => pod.has_affinity_elsewhere(),
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
