//! Rules that a marker only names (`+k8s:customValidation`): like the reference, this has a function for each.
//!
//! Input: a field with its changed value. Output: the errors. The field's other markers are read elsewhere.
//!
//! Source: `pkg/apis/lifecycle/v1alpha1/validation.go` of Kubernetes, release 1.37.

use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::types::{Field, Message};
use crate::work;

/// The function of a rule: the errors of a value.
pub(super) type Custom = fn(&FieldRef<'_>) -> ErrorList;

/// Domains that Kubernetes keeps for itself, with all below them.
const RESERVED: [&str; 2] = ["k8s.io", "kubernetes.io"];

/// The rule for a field of a type.
pub(super) fn rule_of(message: &Message, field: &Field) -> Option<Custom> {
    match (message.package, message.name, field.json) {
        ("v1alpha1", "EvictionRequestSpec", "requester") => Some(reserved_domains),
        _ => None,
    }
}

/// Refuses a key in a domain that is reserved: `example.k8s.io/drain`.
fn reserved_domains(key: &FieldRef<'_>) -> ErrorList {
    work::bytes(key.text().len());
    let domain = key.text().split('/').next().unwrap_or_default().to_lowercase();
    let domain = domain.trim().trim_end_matches('.');
    let is_below =
        |reserved: &str| domain.strip_suffix(reserved).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let is_reserved = RESERVED.into_iter().any(is_below);
    is_reserved.then(|| key.invalid("domain names *.k8s.io, *.kubernetes.io are reserved")).into_iter().collect()
}
