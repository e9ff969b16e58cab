//! Selectors of nodes, by their labels or their names: of pods, of volumes and of devices.
//!
//! Source: `pkg/apis/core/validation` and `pkg/api/node`, release 1.36.

use crate::kinds::checks;
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

/// Labels of nodes that are no longer set, and what to use instead.
const DEPRECATED_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#),
    ("beta.kubernetes.io/os", r#"deprecated since v1.14; use "kubernetes.io/os" instead"#),
    (
        "failure-domain.beta.kubernetes.io/region",
        r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#,
    ),
    ("failure-domain.beta.kubernetes.io/zone", r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#),
    ("beta.kubernetes.io/instance-type", r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
    ("node-role.kubernetes.io/master", r#"use "node-role.kubernetes.io/control-plane" instead"#),
];

/// A `NodeSelector`. `checks_values` says whether values must be valid label values; invalid ones that were there
/// before are forgiven.
pub fn validate(selector: &FieldRef<'_>, checks_values: bool) -> ErrorList {
    let terms = selector.field("nodeSelectorTerms");
    let mut errors = ErrorList::new();
    if terms.is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.items() {
        errors.extend(validate_term(&term, checks_values));
    }
    errors
}

/// A `NodeSelectorTerm`.
pub fn validate_term(term: &FieldRef<'_>, checks_values: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    for requirement in term.field("matchExpressions").items() {
        errors.extend(validate_requirement(&requirement, checks_values));
    }
    for requirement in term.field("matchFields").items() {
        errors.extend(validate_field_requirement(&requirement));
    }
    errors
}

/// A requirement of the labels.
fn validate_requirement(requirement: &FieldRef<'_>, checks_values: bool) -> ErrorList {
    let (operator, values) = (requirement.field("operator"), requirement.field("values"));
    let mut errors = ErrorList::new();
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            errors.push(values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.push(operator.invalid_as_json("not a valid selector operator")),
    }
    errors.extend(label_name(&requirement.field("key")));
    for value in values.items().filter(|_| checks_values) {
        errors.extend(checks::named(&value, names::is_valid_label_value));
    }
    errors
}

/// The key of a label, which may be absent.
pub fn label_name(key: &FieldRef<'_>) -> ErrorList {
    checks::named(key, names::is_qualified_name)
}

/// A requirement of the node's name, the only field that it may be of.
fn validate_field_requirement(requirement: &FieldRef<'_>) -> ErrorList {
    let (operator, values) = (requirement.field("operator"), requirement.field("values"));
    let mut errors = ErrorList::new();
    match operator.text() {
        "In" | "NotIn" if values.len() != 1 => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(values.required(why));
        }
        "In" | "NotIn" => {}
        _ => errors.push(operator.invalid_as_json("not a valid selector operator")),
    }
    let key = requirement.field("key");
    if key.text() != "metadata.name" {
        errors.push(key.invalid("not a valid field selector key"));
        return errors;
    }
    for value in values.items() {
        errors.extend(checks::named(&value, names::is_dns1123_subdomain));
    }
    errors
}

/// Whether a value in the terms of a selector is not one of a label.
pub fn has_invalid_value(selector: Option<&Value>) -> bool {
    let terms = selector.map(|selector| selector.items_at(&["nodeSelectorTerms"])).unwrap_or_default();
    let expressions = terms.iter().flat_map(|term| term.items_at(&["matchExpressions"]));
    let mut values = expressions.flat_map(|expression| expression.items_at(&["values"]));
    values.any(|value| !names::is_valid_label_value(value.as_str().unwrap_or_default()).is_empty())
}

/// The warning about a label that is no longer set.
pub fn deprecation(key: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.iter().find(|(label, _)| *label == key).map(|(_, what)| *what)
}

/// Warnings about a term; about its values only if validation does not check them.
pub fn term_warnings(term: &FieldRef<'_>, checks_values: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for expression in term.field("matchExpressions").items() {
        let key = expression.field("key");
        if let Some(what) = deprecation(key.text()) {
            warnings.push(format!("{}: {} is {what}", key.path(), key.text()));
        }
        for value in expression.field("values").items().filter(|_| checks_values) {
            let faults = names::is_valid_label_value(value.text()).into_iter();
            warnings.extend(faults.map(|fault| format!("{}: {} is invalid, {fault}", value.path(), value.text())));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::json;

    #[track_caller]
    fn check(selector: &str, expect: &str) {
        let selector = json::decode(selector.as_bytes()).expect("the test is JSON");
        assert_eq!(validate(&FieldRef::root(&selector), true).aggregate(), expect);
    }

    #[test]
    fn requirements_have_the_values_that_their_operator_needs() {
        check(r#"{}"#, "nodeSelectorTerms: Required value: must have at least one node selector term");
        let term =
            |list: &str, requirement: &str| format!(r#"{{"nodeSelectorTerms": [{{"{list}": [{requirement}]}}]}}"#);
        let by_label = |requirement: &str| term("matchExpressions", requirement);
        check(&by_label(r#"{"key": "a", "operator": "In", "values": ["b"]}"#), "");
        check(
            &by_label(r#"{"key": "a", "operator": "Gt"}"#),
            "nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
        );
        check(
            &by_label(r#"{"key": "a", "operator": "<"}"#),
            r#"nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "\u003c": not a valid selector operator"#,
        );
        check(
            &term("matchFields", r#"{"key": "metadata.uid", "operator": "In", "values": ["b"]}"#),
            r#"nodeSelectorTerms[0].matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key"#,
        );
    }
}
