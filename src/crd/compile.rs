//! From a definition to the versions that are served.

use std::sync::Arc;

use super::definition::{Definition, Spec, Version};
use super::{Scope, ServedVersion};
use crate::schema::convert::to_structural;
use crate::schema::default::prune_defaults;
use crate::schema::structural::Structural;

/// Whether a definition is served: its names are accepted, or were when it was established.
pub fn is_served(definition: &Definition) -> bool {
    definition.is_true("NamesAccepted") || definition.is_true("Established")
}

/// Whether objects can no longer be created.
pub fn is_terminating(definition: &Definition) -> bool {
    definition.is_being_deleted() || definition.is_true("Terminating")
}

/// Every declared version, under the accepted names. A schema that can't be made structural specifies nothing; validation
/// lets none be stored.
pub fn compile(definition: &Definition) -> Vec<ServedVersion> {
    let spec = &definition.spec;
    let generation = definition.metadata.get("generation").and_then(|generation| generation.as_i64());
    spec.versions
        .iter()
        .map(|version| ServedVersion {
            group: spec.group.clone(),
            version: version.name.clone(),
            names: definition.status.accepted_names.clone(),
            scope: if spec.scope == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
            schema_generation: generation.unwrap_or_default(),
            served: version.served,
            storage: version.storage,
            structural: Arc::new(structural(version)),
            rules: Default::default(),
            preserve_unknown_fields: spec.preserve_unknown_fields,
            status: version.subresources.as_ref().is_some_and(|subresources| subresources.status),
            scale: version.subresources.as_ref().and_then(|subresources| subresources.scale.clone()),
            columns: version.columns.clone(),
            selectable_fields: version.selectable_fields.clone(),
            deprecation_warning: version.deprecated.then(|| deprecation_warning(spec, version)),
        })
        .collect()
}

fn structural(version: &Version) -> Structural {
    let schema = version.schema.as_ref().and_then(Option::as_ref);
    let mut structural = schema.and_then(|schema| to_structural(schema).ok()).unwrap_or_default();
    prune_defaults(&mut structural);
    structural
}

/// `example.com/v1 Foo is deprecated; use example.com/v2 Foo`, or what the definition says.
fn deprecation_warning(spec: &Spec, deprecated: &Version) -> String {
    if let Some(warning) = &deprecated.deprecation_warning {
        return warning.clone();
    }
    let (group, kind) = (&spec.group, &spec.names.kind);
    let newer = spec.versions.iter().filter(|version| {
        version.served && !version.deprecated && priority(&version.name) > priority(&deprecated.name)
    });
    let message = format!("{group}/{} {kind} is deprecated", deprecated.name);
    match newer.max_by_key(|version| priority(&version.name)) {
        Some(newest) => format!("{message}; use {group}/{} {kind}", newest.name),
        None => message,
    }
}

/// Orders versions as Kubernetes does: stable over beta over alpha, then by number; any other name below, by its bytes
/// in reverse.
pub fn priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let other = (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return other };
    let (major, stability, minor) = match (rest.split_once("beta"), rest.split_once("alpha")) {
        (Some((major, minor)), _) => (major, 2, minor),
        (None, Some((major, minor))) => (major, 1, minor),
        (None, None) => (rest, 3, "0"),
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match (is_number(major) && is_number(minor), major.parse(), minor.parse()) {
        (true, Ok(major), Ok(minor)) => (stability, major, minor, std::cmp::Reverse(String::new())),
        _ => other,
    }
}
