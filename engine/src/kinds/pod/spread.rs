//! Validation of how the pods of a workload spread over zones and nodes.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use std::collections::HashMap;

use super::{PodValidationOptions, affinity};
use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::selector::LabelSelector;

/// The constraints of a pod.
pub fn validate(constraints: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let last = last_of_each(constraints);
    for (index, constraint) in constraints.items().enumerate() {
        errors.extend(positive(&constraint.field("maxSkew")));
        let topology = constraint.field("topologyKey");
        if topology.is_empty() {
            errors.push(topology.required("can not be empty"));
        }
        let action = constraint.field("whenUnsatisfiable");
        errors.extend(checks::one_of(&action, &["DoNotSchedule", "ScheduleAnyway"]));
        if last.get(&(topology.text(), action.text())).is_some_and(|last| *last > index) {
            let path = constraint.path().child("{topologyKey, whenUnsatisfiable}");
            errors.push(Error::duplicate(&path, format!("{{{}, {}}}", topology.text(), action.text())));
        }
        errors.extend(validate_domains(&constraint.field("minDomains"), action.text()));
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let policy = constraint.field(name);
            if policy.is_set() {
                errors.extend(checks::one_of(&policy, &["Honor", "Ignore"]));
            }
        }
        errors.extend(validate_label_keys(&constraint, options));
        errors.extend(validate_selector(&constraint, options));
    }
    errors
}

/// The index of the last constraint of each kind, by its key and its action.
fn last_of_each<'v>(constraints: &FieldRef<'v>) -> HashMap<(&'v str, &'v str), usize> {
    let items = constraints.value().and_then(crate::value::Value::as_array).unwrap_or_default();
    let kinds = items.iter().map(|item| (item.str_at(&["topologyKey"]), item.str_at(&["whenUnsatisfiable"])));
    kinds.enumerate().map(|(index, kind)| (kind, index)).collect()
}

/// The label keys by the current rule; if the old pod breaks it, by the other one.
fn validate_label_keys(constraint: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let is_merged = if options.allow_match_label_keys_in_pod_topology_spread_selector_merge {
        !options.old_pod_violates_match_label_keys_validation
    } else {
        options.old_pod_violates_legacy_match_label_keys_validation
    };
    if is_merged { affinity::validate_label_keys(constraint) } else { affinity::validate_label_keys_alone(constraint) }
}

fn positive(field: &FieldRef<'_>) -> Option<Error> {
    (field.int() <= 0).then(|| Error::invalid(field.path(), field.int(), "must be greater than zero"))
}

/// How many zones there must be, for a constraint that must be kept.
fn validate_domains(count: &FieldRef<'_>, action: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    if count.is_set() {
        errors.extend(positive(count));
        if action != "DoNotSchedule" {
            let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            errors.push(count.invalid(why));
        }
    }
    errors
}

fn validate_selector(constraint: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let selector = constraint.field("labelSelector");
    match selector.value().filter(|_| !options.allow_invalid_topology_spread_constraint_label_selector) {
        Some(value) => LabelSelector::validate(value, true, selector.path()),
        None => ErrorList::new(),
    }
}
