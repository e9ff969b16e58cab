//! Warnings about valid pods and templates.
//!
//! Source: `pkg/api/pod/warnings.go`, release 1.36.

mod ports;
mod containers;
mod paths;

use std::collections::HashSet;

use super::affinity::{PREFERRED, REQUIRED};
use super::profiles::SECCOMP_POD;
use crate::kinds::resources::quantity;
use crate::kinds::{checks, node_selector};
use crate::meta::field_ref::FieldRef;
use crate::value::go_quote;

/// Annotations that no longer do anything.
const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    ("security.alpha.kubernetes.io/sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
    ("security.alpha.kubernetes.io/unsafe-sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
];
/// Kinds of volumes that were removed or are deprecated, each with the name of its field in the warning.
const DEPRECATED_VOLUMES: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// The warnings of a pod or, if `is_template`, of a template.
pub fn of(holder: &FieldRef<'_>, is_template: bool) -> Vec<String> {
    let spec = holder.field("spec");
    let metadata = holder.field("metadata");
    let annotations = metadata.field("annotations");
    let mut warnings = of_nodes(&spec);
    warnings.extend(of_spread(&spec));
    for (key, what) in DEPRECATED_ANNOTATIONS {
        if annotations.value().is_some_and(|annotations| annotations.get(key).is_some()) {
            warnings.push(format!("{}: {what}", annotations.path().key(key)));
        }
    }
    warnings.extend(of_volumes(&spec.field("volumes")));
    warnings.extend(paths::of(&spec.field("volumes")));
    warnings.extend(of_lists(&spec));
    let overhead = spec.field("overhead");
    for name in ["memory", "ephemeral-storage"] {
        warnings.extend(fraction(&overhead, name));
    }
    let profile = spec.field("securityContext").field("seccompProfile").is_set();
    if !profile && annotations.value().is_some_and(|annotations| annotations.get(SECCOMP_POD).is_some()) {
        let path = annotations.path().key(SECCOMP_POD);
        warnings.push(format!(r#"{path}: non-functional in v1.27+; use the "seccompProfile" field instead"#));
    }
    warnings.extend(containers::of(&spec, &annotations, is_template));
    warnings.extend(ports::of(&spec));
    let grace = spec.field("terminationGracePeriodSeconds");
    if grace.int() < 0 {
        warnings.push(format!("{}: must be >= 0; negative values are invalid and will be treated as 1", grace.path()));
    }
    warnings.extend(of_affinity(&spec.field("affinity")));
    warnings.extend(spec.field("dnsConfig").field("nameservers").items().filter_map(|ip| checks::ip_warning(&ip)));
    for alias in spec.field("hostAliases").items() {
        warnings.extend(checks::ip_warning(&alias.field("ip")));
    }
    warnings
}

/// Labels of nodes that are no longer set.
fn of_nodes(spec: &FieldRef<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (key, label) in spec.field("nodeSelector").entries() {
        warnings.extend(node_selector::deprecation(key).map(|what| format!("{}: {what}", label.path())));
    }
    let affinity = spec.field("affinity");
    let nodes = affinity.field("nodeAffinity");
    for term in nodes.field(REQUIRED).field("nodeSelectorTerms").items() {
        warnings.extend(node_selector::term_warnings(&term, false));
    }
    for term in nodes.field(PREFERRED).items() {
        warnings.extend(node_selector::term_warnings(&term.field("preference"), true));
    }
    warnings
}

fn of_spread(spec: &FieldRef<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for constraint in spec.field("topologySpreadConstraints").items() {
        let key = constraint.field("topologyKey");
        if let Some(what) = node_selector::deprecation(key.text()) {
            warnings.push(format!("{}: {} is {what}", key.path(), key.text()));
        }
        warnings.extend(without_selector(&constraint));
    }
    warnings
}

/// A selector that is not there selects nothing.
fn without_selector(holder: &FieldRef<'_>) -> Option<String> {
    let selector = holder.field("labelSelector");
    (!selector.is_set()).then(|| format!("{}: a null labelSelector results in matching no pod", selector.path()))
}

fn of_affinity(affinity: &FieldRef<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for name in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.field(name);
        for term in pods.field(REQUIRED).items() {
            warnings.extend(without_selector(&term));
        }
        for term in pods.field(PREFERRED).items() {
            warnings.extend(without_selector(&term.field("podAffinityTerm")));
        }
    }
    warnings
}

fn of_volumes(volumes: &FieldRef<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for volume in volumes.items() {
        for (index, (name, told, what)) in DEPRECATED_VOLUMES.iter().enumerate() {
            // The warning about the claim of a volume comes between these in the reference.
            if index == 7 {
                warnings.extend(of_claim_template(&volume.field("ephemeral").field("volumeClaimTemplate")));
            }
            if volume.field(name).is_set() {
                warnings.push(format!("{}: {what}", volume.path().child(told)));
            }
        }
    }
    warnings
}

fn of_claim_template(template: &FieldRef<'_>) -> Vec<String> {
    let spec = template.field("spec");
    let resources = spec.field("resources");
    ["requests", "limits"].iter().filter_map(|list| fraction(&resources.field(list), "storage")).collect()
}

/// Parts of a byte can't be had.
fn fraction(list: &FieldRef<'_>, name: &str) -> Option<String> {
    let field = list.field(name);
    let quantity = quantity(&field);
    (field.is_set() && !quantity.is_whole()).then(|| {
        let path = list.path().key(name);
        format!("{path}: fractional byte value {} is invalid, must be an integer", go_quote(&quantity.to_string()))
    })
}

/// Duplicates in lists, and secrets without a name.
fn of_lists(spec: &FieldRef<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (list, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut seen = HashSet::new();
        let list = spec.field(list);
        for item in list.items() {
            let text = item.text_of(key);
            if !seen.insert(text) {
                warnings.push(format!("{}: duplicate {key} {}", item.path().child(key), go_quote(text)));
            }
        }
    }
    for secret in spec.field("imagePullSecrets").items().filter(|secret| secret.text_of("name").is_empty()) {
        warnings.push(format!("{}: invalid empty name \"\"", secret.path().child("name")));
    }
    warnings
}

#[cfg(test)]
mod tests;
