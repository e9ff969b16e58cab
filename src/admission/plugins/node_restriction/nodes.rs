//! A node's own Node object: the node may not set the labels and taints that decide what
//! runs on it.

use std::collections::BTreeSet;

use super::{NodeRefusal, name_of, quoted};
use crate::admission::{Attributes, Operation};
use crate::kinds::semantic;
use crate::value::Value;

/// Labels with a Kubernetes prefix that a kubelet sets.
const LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
const LABEL_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const RESTRICTED_DOMAIN: &str = "node-restriction.kubernetes.io";

pub fn check(node: &str, attributes: &Attributes<'_>, object: &Value) -> Result<(), NodeRefusal> {
    let requested = name_of(attributes, object);
    if requested != node {
        let (node, requested) = (quoted(node), quoted(requested));
        return Err(NodeRefusal::Forbidden(format!("node {node} is not allowed to modify node {requested}")));
    }
    match attributes.operation {
        Operation::Create => check_new(node, object),
        Operation::Update => check_changed(node, attributes.old.unwrap_or(&Value::Null), object),
        Operation::Delete | Operation::Connect => Ok(()),
    }
}

fn check_new(node: &str, object: &Value) -> Result<(), NodeRefusal> {
    let shown = quoted(node);
    if config_source(object).is_some() {
        let why = format!("node {shown} is not allowed to create pods with a non-nil configSource");
        return Err(NodeRefusal::Forbidden(why));
    }
    let labels = forbidden_labels(object, &Value::Null);
    if labels.is_empty() {
        return Ok(());
    }
    let labels = labels.join(", ");
    Err(NodeRefusal::Forbidden(format!("node {shown} is not allowed to set the following labels: {labels}")))
}

fn check_changed(node: &str, old: &Value, object: &Value) -> Result<(), NodeRefusal> {
    let shown = quoted(node);
    let is_other = |path: &[&str]| !semantic::equal_untyped(object.at(path), old.at(path));
    let source = config_source(object);
    let labels = forbidden_labels(object, old);
    let why = if source.is_some() && !semantic::equal_untyped(source, config_source(old)) {
        format!("node {shown} is not allowed to update configSource to a new non-nil configSource")
    } else if is_other(&["spec", "taints"]) {
        format!("node {shown} is not allowed to modify taints")
    } else if is_other(&["metadata", "ownerReferences"]) {
        format!("node {shown} is not allowed to modify ownerReferences")
    } else if labels.is_empty() {
        return Ok(());
    } else {
        format!("is not allowed to modify labels: {}", labels.join(", "))
    };
    Err(NodeRefusal::Forbidden(why))
}

fn config_source(node: &Value) -> Option<&Value> {
    node.at(&["spec", "configSource"]).filter(|source| !source.is_null())
}

/// The labels that were changed and that a node may not set.
fn forbidden_labels(new: &Value, old: &Value) -> Vec<String> {
    let labels = |node: &Value| -> BTreeSet<(String, String)> {
        let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object);
        let entries = labels.into_iter().flat_map(|labels| labels.iter());
        entries.map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or_default().to_owned())).collect()
    };
    let (new, old) = (labels(new), labels(old));
    let changed: BTreeSet<String> = new.symmetric_difference(&old).map(|(key, _)| key.clone()).collect();
    changed.into_iter().filter(|label| is_forbidden(label)).collect()
}

fn is_forbidden(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |outer: &str| domain == outer || domain.ends_with(&format!(".{outer}"));
    let is_kubelets = LABELS.contains(&label) || LABEL_DOMAINS.iter().any(|outer| is_in(outer));
    is_in(RESTRICTED_DOMAIN) || ((is_in("kubernetes.io") || is_in("k8s.io")) && !is_kubelets)
}
