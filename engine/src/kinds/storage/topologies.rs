//! Topologies: the nodes from which storage is accessible, by their labels.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::kinds::node_selector;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

/// The warnings about a `LabelSelector` of nodes.
pub fn label_selector_warnings(selector: &FieldRef<'_>) -> Vec<String> {
    let mut warnings = node_selector::term_warnings(selector, false);
    let labels = selector.field("matchLabels");
    for (label, _) in labels.entries() {
        if let Some(message) = node_selector::deprecation(label) {
            warnings.push(format!("{}: {message}", labels.path().child(label)));
        }
    }
    warnings
}

/// The values of each key of a topology.
type Topology<'t> = BTreeMap<&'t str, BTreeSet<&'t str>>;

/// Validates the topologies of a storage class: terms, each with expressions that list the values of a label.
pub fn validate_topologies(topologies: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    // The reference starts with as many empty terms as there are terms, so an empty term counts as a duplicate.
    let mut seen: HashMap<Topology<'_>, usize> = HashMap::from([(Topology::new(), topologies.len())]);
    for term in topologies.items() {
        let expressions = term.field("matchLabelExpressions");
        errors.extend(validate_topology(&expressions));
        let Some(value) = term.value() else { continue };
        let count = seen.entry(topology(value)).or_default();
        // It reports one error per equal term before.
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
        errors.extend(node_selector::label_name(&key));
        if !keys.insert(key.text().to_owned()) {
            errors.push(key.duplicate());
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::field::Path;
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
