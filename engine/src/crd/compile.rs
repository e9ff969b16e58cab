//! From a definition to the versions that are served.

use std::sync::Arc;

use super::definition::{Definition, Spec, Version};
use super::{LazySchema, MakeSchemas, Names, Scope, ServedVersion};
use crate::schema::convert::to_structural;
use crate::schema::default::prune_defaults;
use crate::schema::json_schema::JsonSchema;
use crate::schema::structural::Structural;
use crate::work;

/// The most bytes of short names and categories over all versions of a definition. Kubernetes has no such limit.
pub const REPEATED_NAMES_BYTES_MAX: usize = 1 << 20;

/// Whether a definition is served: its names are accepted, or were when it was established.
pub fn is_served(definition: &Definition) -> bool {
    definition.is_true("NamesAccepted") || definition.is_true("Established")
}

/// Whether objects can no longer be created.
pub fn is_terminating(definition: &Definition) -> bool {
    definition.is_being_deleted() || definition.is_true("Terminating")
}

/// Every declared version, under the accepted names. A schema that can't be made structural specifies nothing;
/// validation refuses such a definition.
pub fn compile(definition: &Definition) -> Vec<ServedVersion> {
    compile_with(definition, |_| None)
}

/// The same with the structural schemas in `made`, so that those are not made again.
pub fn compile_with(
    definition: &Definition,
    made: impl Fn(&Arc<JsonSchema>) -> Option<Arc<Structural>>,
) -> Vec<ServedVersion> {
    let schemas = schemas_with(definition, made).into_iter().map(LazySchema::from);
    versions(definition, schemas)
}

/// The same with schemas that `make` makes when the first of them is needed: those of all versions, in their order, as
/// [`schemas`] makes them.
pub fn outline(definition: &Definition, make: Arc<MakeSchemas>) -> Vec<ServedVersion> {
    versions(definition, LazySchema::all_of(&make, definition.spec.versions.len()))
}

/// The structural schema of each declared version.
pub fn schemas(definition: &Definition) -> Vec<Arc<Structural>> {
    schemas_with(definition, |_| None)
}

fn schemas_with(
    definition: &Definition,
    made: impl Fn(&Arc<JsonSchema>) -> Option<Arc<Structural>>,
) -> Vec<Arc<Structural>> {
    let structural = |schema: &Arc<JsonSchema>| made(schema).unwrap_or_else(|| Arc::new(structural(schema)));
    let of = |version: &Version| version.schema.as_ref().and_then(Option::as_ref).map(structural).unwrap_or_default();
    definition.spec.versions.iter().map(of).collect()
}

fn versions(definition: &Definition, schemas: impl Iterator<Item = LazySchema>) -> Vec<ServedVersion> {
    let spec = &definition.spec;
    let generation = definition.metadata.get("generation").and_then(|generation| generation.as_i64());
    let names = Arc::new(served_names(definition));
    let newest = newest(spec);
    spec.versions
        .iter()
        .zip(schemas)
        .map(|(version, structural)| ServedVersion {
            group: spec.group.clone(),
            version: version.name.clone(),
            names: Arc::clone(&names),
            scope: if spec.scope == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
            schema_generation: generation.unwrap_or_default(),
            served: version.served,
            storage: version.storage,
            structural,
            rules: Default::default(),
            preserve_unknown_fields: spec.preserve_unknown_fields,
            status: version.subresources.as_ref().is_some_and(|subresources| subresources.status),
            scale: version.subresources.as_ref().and_then(|subresources| subresources.scale.clone()),
            columns: version.columns.clone(),
            selectable_fields: version.selectable_fields.clone(),
            deprecation_warning: version.deprecated.then(|| deprecation_warning(spec, version, newest)),
            minor: definition.minor,
        })
        .collect()
}

fn structural(schema: &JsonSchema) -> Structural {
    let mut structural = to_structural(schema).unwrap_or_default();
    prune_defaults(&mut structural);
    structural
}

/// The names of a definition. If all versions together repeat too many, which was once allowed, only those that
/// requests need remain.
fn served_names(definition: &Definition) -> Names {
    let names = definition.status.accepted_names.clone();
    if repeated_names_bytes(&names, &definition.spec.versions) > REPEATED_NAMES_BYTES_MAX {
        Names { short_names: Vec::new(), categories: Vec::new(), ..names }
    } else {
        names
    }
}

/// The size of the short names and categories in discovery, which repeats them for each version.
pub fn repeated_names_bytes(names: &Names, versions: &[Version]) -> usize {
    let bytes: usize = names.short_names.iter().chain(&names.categories).map(|name| name.len() + 3).sum();
    bytes.saturating_mul(versions.len())
}

/// The version that replaces deprecated ones.
fn newest(spec: &Spec) -> Option<&Version> {
    let current = spec.versions.iter().filter(|version| version.served && !version.deprecated);
    current.inspect(|_| work::step()).max_by_key(|version| priority(&version.name))
}

/// `example.com/v1 Foo is deprecated; use example.com/v2 Foo`, or what the definition says.
fn deprecation_warning(spec: &Spec, deprecated: &Version, newest: Option<&Version>) -> String {
    if let Some(warning) = &deprecated.deprecation_warning {
        return warning.clone();
    }
    let (group, kind) = (&spec.group, &spec.names.kind);
    let message = format!("{group}/{} {kind} is deprecated", deprecated.name);
    match newest.filter(|newest| priority(&newest.name) > priority(&deprecated.name)) {
        Some(newest) => format!("{message}; use {group}/{} {kind}", newest.name),
        None => message,
    }
}

/// Orders versions as Kubernetes does: stable over beta over alpha, then by number; all other names last, in reverse
/// order of their bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_times_the_versions_take_ten_times_the_steps() {
        let steps = |count| {
            let mut definition = Definition::default();
            let version =
                |at| Version { name: format!("v{at}"), served: true, deprecated: at % 2 == 0, ..Version::default() };
            definition.spec.versions = (1..=count).map(version).collect();
            let (versions, steps) = work::counted(|| compile(&definition));
            let warning = versions[1].deprecation_warning.clone().unwrap_or_default();
            assert!(warning.ends_with(&format!("use /v{} ", count - 1)), "{warning}");
            steps
        };
        assert!(steps(1000) < 13 * steps(100), "{} {}", steps(100), steps(1000));
    }
}
