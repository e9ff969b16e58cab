//! The terms of affinity and anti-affinity: which pods each of them is about.

use crate::meta::selector::{LabelSelector, PackedLabels};
use crate::value::{Map, Value};
use crate::work;

/// A term of affinity or anti-affinity, decoded once.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    /// The label of nodes whose values are the domains.
    pub key: String,
    selector: LabelSelector,
    /// The names of the namespaces that it is about, sorted.
    namespaces: Box<[String]>,
    /// The labels of further namespaces that it is about.
    by_labels: Option<LabelSelector>,
}

impl Term {
    /// A term of a pod in `namespace`.
    pub fn of(term: &Value, namespace: &str) -> Self {
        let named = term.items_at(&["namespaces"]);
        work::steps(1 + named.len());
        let by_labels = term.get("namespaceSelector").filter(|selector| !selector.is_null()).map(decoded);
        let mut namespaces: Vec<String> = named.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        if namespaces.is_empty() && by_labels.is_none() {
            namespaces.push(namespace.to_owned());
        }
        namespaces.sort_unstable();
        Term {
            key: term.str_at(&["topologyKey"]).to_owned(),
            selector: selector_of(term),
            namespaces: namespaces.into(),
            by_labels,
        }
    }

    /// Whether it is about a pod: the name and the labels of its namespace, if these are known, and its labels.
    pub fn is_about(&self, namespace: (&str, Option<&Map>), labels: &PackedLabels) -> bool {
        work::step();
        let (name, of_namespace) = namespace;
        let by_labels = || {
            let none = Map::default();
            self.by_labels.as_ref().is_some_and(|selector| selector.matches(of_namespace.unwrap_or(&none)))
        };
        let is_named = self.namespaces.binary_search_by(|known| known.as_str().cmp(name)).is_ok();
        (is_named || by_labels()) && self.selector.matches(labels)
    }
}

/// What a term or a constraint selects; without a selector, nothing.
pub(super) fn selector_of(term: &Value) -> LabelSelector {
    term.get("labelSelector").filter(|selector| !selector.is_null()).map_or_else(nothing, decoded)
}

fn decoded(selector: &Value) -> LabelSelector {
    LabelSelector::decode(selector).unwrap_or_else(|_| nothing())
}

/// A selector that matches nothing.
fn nothing() -> LabelSelector {
    LabelSelector::parse("!a,a").unwrap_or_default()
}
