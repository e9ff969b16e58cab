//! Which faults of a definition are forgiven: a new one is fully validated; an update may keep faults that were stored
//! when they were still allowed.
//!
//! Source: apiextensions-apiserver 1.37.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::conversion::{is_valid_ca_bundle, names_known_review_version};
use super::internal::{InternalSpec, review_versions};
use super::list_type;
use super::options::ValidationOptions;
use super::selectable::SELECTABLE_FIELDS_MAX;
use super::walk::is_valid_type;
use crate::crd::definition::{Definition, Spec, Version};
use crate::crd::{REPEATED_NAMES_BYTES_MAX, repeated_names_bytes};
use crate::meta::field::Path;
use crate::meta::minor::Minor;
use crate::schema::check::validate_structural;
use crate::schema::convert::to_structural;
use crate::schema::default::prune_defaults;
use crate::schema::json_schema::JsonSchema;
use crate::schema::rules::compile::Preexisting;

/// The version of Kubernetes that began to check the CA bundle of a webhook.
const CA_BUNDLE_SINCE: Minor = Minor::of(31);
/// The version of Kubernetes that began to allow updates to keep too many selectable fields.
const ANY_NUMBER_SINCE: Minor = Minor::of(35);

impl ValidationOptions {
    pub fn for_create(new: &Definition) -> Self {
        ValidationOptions {
            require_known_review_version: true,
            require_immutable_names: false,
            require_schema: true,
            require_valid_property_type: true,
            require_structural: true,
            require_pruned_defaults: true,
            require_atomic_set_type: true,
            require_map_list_keys_map_set: true,
            // Until it is established, a definition may still lack a valid bundle.
            require_valid_ca_bundle: false,
            require_few_names: true,
            any_number_of_selectable_fields: Arc::default(),
            preexisting_expressions: Arc::default(),
            versions_as_before: Arc::default(),
            keeps_costs: false,
            allow_dear_expressions: false,
            minor: new.minor,
        }
    }

    pub fn for_update(new: &Definition, old: &Definition) -> Self {
        let minor = new.minor;
        let (new, spec) = (InternalSpec::of(new), InternalSpec::of(old));
        let mut preexisting_expressions = Preexisting::default();
        spec.schemas().for_each(|schema| preexisting_expressions.note(minor, schema));
        let reviews = old.spec.conversion.as_ref().map_or(&[][..], review_versions);
        let is_established = old.is_true("Established");
        let has_items_fault =
            |schema: &JsonSchema| !list_type::validate_items_of_sets_and_maps(schema, &Path::ROOT).is_empty();
        ValidationOptions {
            require_known_review_version: reviews.is_empty() || names_known_review_version(reviews),
            require_immutable_names: is_established,
            require_schema: all_versions_have_schema(&spec),
            require_valid_property_type: !spec.any_schema(|schema| !is_valid_type(&schema.type_)),
            require_structural: spec.schemas().all(is_structural),
            require_pruned_defaults: !spec.schemas().any(has_unpruned_defaults),
            require_atomic_set_type: !spec.any_schema(list_type::has_non_atomic_items),
            require_map_list_keys_map_set: !spec.any_schema(has_items_fault),
            require_valid_ca_bundle: minor >= CA_BUNDLE_SINCE && is_established && has_valid_ca_bundle(old),
            require_few_names: !repeats_too_many_names(&old.spec),
            any_number_of_selectable_fields: if minor < ANY_NUMBER_SINCE {
                Arc::default()
            } else {
                Arc::new(unchanged_beyond_limit(&new, &spec))
            },
            preexisting_expressions: Arc::new(preexisting_expressions),
            versions_as_before: Arc::new(with_unchanged_schema(&new, &spec)),
            keeps_costs: false,
            allow_dear_expressions: false,
            minor,
        }
    }
}

fn all_versions_have_schema(spec: &InternalSpec<'_>) -> bool {
    spec.shared.open_api_schema().is_some()
        || spec.versions.iter().all(|version| version.own.open_api_schema().is_some())
}

fn is_structural(schema: &JsonSchema) -> bool {
    to_structural(schema).is_ok_and(|schema| validate_structural(&Path::ROOT, &schema).is_empty())
}

fn has_unpruned_defaults(schema: &JsonSchema) -> bool {
    if !has_defaults(schema) {
        return false;
    }
    let Ok(schema) = to_structural(schema) else { return false };
    if !validate_structural(&Path::ROOT, &schema).is_empty() {
        return false;
    }
    let mut pruned = schema.clone();
    prune_defaults(&mut pruned);
    pruned != schema
}

/// Whether there is a default at any depth.
pub fn has_defaults(schema: &JsonSchema) -> bool {
    schema.any(&mut |schema| schema.default.is_some())
}

/// True also if there is no bundle.
fn has_valid_ca_bundle(definition: &Definition) -> bool {
    let webhook = definition.spec.conversion.as_ref().and_then(|conversion| conversion.webhook.as_ref());
    let bundle = webhook.and_then(|webhook| webhook.client_config.as_ref()?.ca_bundle.as_deref());
    bundle.is_none_or(is_valid_ca_bundle)
}

/// Whether discovery would repeat too many short names and categories.
pub fn repeats_too_many_names(spec: &Spec) -> bool {
    repeated_names_bytes(&spec.names, &spec.versions) > REPEATED_NAMES_BYTES_MAX
}

fn with_unchanged_schema(new: &InternalSpec<'_>, old: &InternalSpec<'_>) -> HashSet<String> {
    let (new_schemas, old_schemas) = (new.schemas_by_version(), old.schemas_by_version());
    let names = new.versions.iter().map(|version| &version.version.name);
    let is_unchanged = |name: &&String| {
        let (new, old) = (new_schemas.of(name), old_schemas.of(name));
        new.is_some() && new == old
    };
    names.filter(is_unchanged).cloned().collect()
}

fn unchanged_beyond_limit(new: &InternalSpec<'_>, old: &InternalSpec<'_>) -> HashSet<String> {
    let is_kept = |new: &[String], old: &[String]| old.len() > SELECTABLE_FIELDS_MAX && new == old;
    let mut kept = HashSet::new();
    if is_kept(new.shared.selectable_fields, old.shared.selectable_fields) {
        kept.insert(String::new());
    }
    // The last of several versions with the same name counts.
    let old: HashMap<_, _> = old.versions.iter().map(|old| (&old.version.name, old)).collect();
    for new in &new.versions {
        let Version { name, .. } = new.version;
        if old.get(name).is_some_and(|old| is_kept(new.own.selectable_fields, old.own.selectable_fields)) {
            kept.insert(name.clone());
        }
    }
    kept
}
