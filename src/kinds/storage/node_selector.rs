//! Selectors of nodes: by their labels, or by their names.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

/// Labels of nodes that have another name by now, and what is said of them.
const DEPRECATED_LABELS: [(&str, &str); 8] = [
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
];

/// What is said of a label of nodes that is no longer used.
pub fn deprecation(label: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.iter().find(|(known, _)| *known == label).map(|(_, message)| *message)
}

/// Warnings of expressions in a list at `expressions`.
pub fn expression_warnings(expressions: &FieldRef<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for expression in expressions.items() {
        let key = expression.field("key");
        if let Some(message) = deprecation(key.text()) {
            warnings.push(format!("{}: {} is {message}", key.path(), key.text()));
        }
    }
    warnings
}

/// Warnings of a `LabelSelector` of nodes.
pub fn label_selector_warnings(selector: &FieldRef<'_>) -> Vec<String> {
    let mut warnings = expression_warnings(&selector.field("matchExpressions"));
    let labels = selector.field("matchLabels");
    for (label, _) in labels.entries() {
        if let Some(message) = deprecation(label) {
            warnings.push(format!("{}: {message}", labels.path().child(label)));
        }
    }
    warnings
}

/// Warnings of the terms of a node selector.
pub fn term_warnings(terms: &FieldRef<'_>) -> Vec<String> {
    terms.items().flat_map(|term| expression_warnings(&term.field("matchExpressions"))).collect()
}

/// What is wrong with a selector. `checks_values` says whether the values of labels are looked at.
pub fn validate(selector: &FieldRef<'_>, checks_values: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let terms = selector.field("nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.items() {
        for requirement in term.field("matchExpressions").items() {
            errors.extend(by_label(&requirement, checks_values));
        }
        for requirement in term.field("matchFields").items() {
            errors.extend(by_field(&requirement));
        }
    }
    errors
}

fn by_label(requirement: &FieldRef<'_>, checks_values: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let (operator, values) = (requirement.field("operator"), requirement.field("values"));
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
        _ => errors.push(operator.invalid("not a valid selector operator")),
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

fn by_field(requirement: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (operator, values, key) =
        (requirement.field("operator"), requirement.field("values"), requirement.field("key"));
    match operator.text() {
        "In" | "NotIn" if values.len() != 1 => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(values.required(why));
        }
        "In" | "NotIn" => {}
        _ => errors.push(operator.invalid("not a valid selector operator")),
    }
    if key.text() == "metadata.name" {
        for value in values.items() {
            errors.extend(checks::named(&value, names::is_dns1123_subdomain));
        }
    } else {
        errors.push(key.invalid("not a valid field selector key"));
    }
    errors
}

/// Whether a value in the terms of a selector is not one of a label.
pub fn has_invalid_value(selector: Option<&Value>) -> bool {
    let selector = FieldRef::new(selector, Path::ROOT);
    let terms = selector.field("nodeSelectorTerms");
    terms.items().any(|term| {
        let expressions = term.field("matchExpressions");
        expressions.items().any(|expression| {
            let values = expression.field("values");
            values.texts().any(|value| !names::is_valid_label_value(value).is_empty())
        })
    })
}

/// The values of each key of a topology.
type Topology<'t> = BTreeMap<&'t str, BTreeSet<&'t str>>;

/// What is wrong with the topologies of a storage class: terms, each of expressions that are sets of values.
pub fn validate_topologies(topologies: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    // The reference begins with as many empty terms as there are terms: so none may be empty.
    let mut seen: HashMap<Topology<'_>, usize> = HashMap::from([(Topology::new(), topologies.len())]);
    for term in topologies.items() {
        let expressions = term.field("matchLabelExpressions");
        errors.extend(validate_topology(&expressions));
        let Some(value) = term.value() else { continue };
        let count = seen.entry(topology(value)).or_default();
        // It tells each of the equal ones.
        for _ in 0..if errors.is_full() { (*count).min(1) } else { *count } {
            errors.push(Error::duplicate(expressions.path(), ""));
        }
        *count += 1;
    }
    errors
}

fn topology(term: &Value) -> Topology<'_> {
    let mut topology = Topology::new();
    for expression in term.items_at(&["matchLabelExpressions"]) {
        let values = expression.items_at(&["values"]).iter().filter_map(Value::as_str);
        topology.insert(expression.str_at(&["key"]), values.collect());
    }
    topology
}

fn validate_topology(expressions: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut keys = HashSet::new();
    for expression in expressions.items() {
        let (key, values) = (expression.field("key"), expression.field("values"));
        if values.is_empty() {
            errors.push(values.required(""));
        }
        let mut seen = HashSet::new();
        for value in values.items() {
            if !seen.insert(value.text().to_owned()) {
                errors.push(value.duplicate());
            }
        }
        errors.extend(label_name(&key));
        if !keys.insert(key.text().to_owned()) {
            errors.push(key.duplicate());
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn topologies_differ_and_are_not_empty() {
        let faults = |text: &str| {
            let value = yaml::decode(text.as_bytes()).expect("YAML");
            let errors = validate_topologies(&FieldRef::new(Some(&value), Path::new("allowedTopologies")));
            errors.into_vec().into_iter().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        let term = "matchLabelExpressions: [{key: zone, values: [a, b]}]";
        assert!(faults(&format!("[{{{term}}}]")).is_empty());
        let twice = "allowedTopologies[1].matchLabelExpressions: Duplicate value: \"\"";
        assert_eq!(faults(&format!("[{{{term}}}, {{{term}}}]")), [twice]);
        assert_eq!(faults("[{}]"), ["allowedTopologies[0].matchLabelExpressions: Duplicate value: \"\""]);
        let values = "allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: \"a\"";
        assert_eq!(faults("[{matchLabelExpressions: [{key: zone, values: [a, a]}]}]"), [values]);
    }
}
