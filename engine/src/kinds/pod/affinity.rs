//! Validation of affinity: the nodes and other pods that a pod should be near to, or away from.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use std::collections::{HashMap, HashSet};

use super::PodValidationOptions;
use crate::kinds::{checks, node_selector};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::meta::selector::LabelSelector;

pub const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
pub const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const WITHOUT_SELECTOR: &str = "must not be specified when labelSelector is not set";

/// The affinity of a pod.
pub fn validate(affinity: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = validate_nodes(&affinity.field("nodeAffinity"), options);
    for name in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.field(name);
        for term in pods.field(REQUIRED).items() {
            errors.extend(validate_term(&term, options));
        }
        for term in pods.field(PREFERRED).items() {
            errors.extend(validate_weight(&term));
            errors.extend(validate_term(&term.field("podAffinityTerm"), options));
        }
    }
    errors
}

fn validate_nodes(affinity: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let required = affinity.field(REQUIRED);
    if required.is_set() {
        errors.extend(node_selector::validate(&required, !options.allow_invalid_label_value_in_required_node_affinity));
    }
    for term in affinity.field(PREFERRED).items() {
        errors.extend(validate_weight(&term));
        // A preference that no node can satisfy does no harm.
        errors.extend(node_selector::validate_term(&term.field("preference"), false));
    }
    errors
}

fn validate_weight(term: &FieldRef<'_>) -> Option<Error> {
    let weight = term.field("weight");
    let is_fit = (1..=100).contains(&weight.int());
    (!is_fit).then(|| Error::invalid(weight.path(), weight.int(), "must be in the range 1-100"))
}

/// A `PodAffinityTerm`.
fn validate_term(term: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = validate_selectors(term, !options.allow_invalid_label_value_in_selector);
    let namespaces = term.path().child("namespace");
    for name in term.field("namespaces").texts() {
        let faults = names::is_dns1123_label(name).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&namespaces, name, fault)));
    }
    errors.extend(validate_label_keys(term));
    let topology = term.field("topologyKey");
    if topology.is_empty() {
        errors.push(topology.required("can not be empty"));
    }
    errors.extend(checks::named(&topology, names::is_qualified_name));
    errors
}

/// The selectors of a term.
pub fn validate_selectors(term: &FieldRef<'_>, checks_values: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["labelSelector", "namespaceSelector"] {
        let selector = term.field(name);
        if let Some(value) = selector.value() {
            errors.extend(LabelSelector::validate(value, checks_values, selector.path()));
        }
    }
    errors
}

/// The keys of labels that are compared between pods and the new one: `matchLabelKeys` and `mismatchLabelKeys`.
///
/// Keys to match were added to the selector when the pod was created; one that occurs there twice was there before.
pub fn validate_label_keys(holder: &FieldRef<'_>) -> ErrorList {
    let selector = holder.field("labelSelector");
    let (matching, different) = (holder.field("matchLabelKeys"), holder.field("mismatchLabelKeys"));
    let mut errors = ErrorList::new();
    for keys in [&matching, &different] {
        if !keys.is_empty() && !selector.is_set() {
            errors.push(keys.forbidden(WITHOUT_SELECTOR));
            continue;
        }
        for key in keys.items() {
            errors.extend(checks::named(&key, names::is_qualified_name));
        }
    }
    let indexes: HashMap<&str, usize> = matching.texts().enumerate().map(|(index, key)| (key, index)).collect();
    let labels = selector.field("matchLabels");
    let mut seen: HashSet<&str> = labels.entries().map(|(key, _)| key).collect();
    let expressions = selector.field("matchExpressions");
    for expression in expressions.value().and_then(crate::value::Value::as_array).unwrap_or_default() {
        let key = expression.str_at(&["key"]);
        if let Some(index) = indexes.get(key).filter(|_| seen.contains(key)) {
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.push(Error::invalid(&holder.path().index(*index), key, why));
        }
        seen.insert(key);
    }
    let different: HashSet<&str> = different.texts().collect();
    for key in matching.items().filter(|key| different.contains(key.text())) {
        errors.push(key.invalid("exists in both matchLabelKeys and mismatchLabelKeys"));
    }
    errors
}

/// The keys of [`validate_label_keys`] by the former rule, from before they were added to the selector: none may be in
/// it.
pub fn validate_label_keys_alone(holder: &FieldRef<'_>) -> ErrorList {
    let (selector, keys) = (holder.field("labelSelector"), holder.field("matchLabelKeys"));
    let mut errors = ErrorList::new();
    if keys.is_empty() {
        return errors;
    }
    if !selector.is_set() {
        errors.push(keys.forbidden(WITHOUT_SELECTOR));
    }
    let labels = selector.field("matchLabels");
    let mut seen: HashSet<&str> = labels.entries().map(|(key, _)| key).collect();
    let expressions = selector.value().map(|selector| selector.items_at(&["matchExpressions"])).unwrap_or_default();
    seen.extend(expressions.iter().map(|expression| expression.str_at(&["key"])));
    for key in keys.items() {
        errors.extend(checks::named(&key, names::is_qualified_name));
        if seen.contains(key.text()) {
            errors.push(key.invalid("exists in both matchLabelKeys and labelSelector"));
        }
    }
    errors
}
