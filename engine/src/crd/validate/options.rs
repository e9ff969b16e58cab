//! How strict validation is.

use std::collections::HashSet;
use std::sync::Arc;

use crate::meta::minor::Minor;
use crate::schema::rules::compile::Preexisting;

#[derive(Clone, Debug)]
pub struct ValidationOptions {
    /// Webhooks must name a version of ConversionReview that the server knows.
    pub require_known_review_version: bool,
    /// Scope and kind can't change.
    pub require_immutable_names: bool,
    /// Every version must have a schema.
    pub require_schema: bool,
    pub require_valid_property_type: bool,
    pub require_structural: bool,
    pub require_pruned_defaults: bool,
    /// Items of sets must be atomic.
    pub require_atomic_set_type: bool,
    /// Items of sets and maps must not be null, and keys of maps must be required or have a default.
    pub require_map_list_keys_map_set: bool,
    pub require_valid_ca_bundle: bool,
    /// Short names and categories must be few enough for discovery to repeat them for each version.
    pub require_few_names: bool,
    /// Versions that may exceed the limit of selectable fields; the empty name stands for the shared fields.
    pub any_number_of_selectable_fields: Arc<HashSet<String>>,
    /// Expressions that may use what was available when they were written.
    pub preexisting_expressions: Arc<Preexisting>,
    /// Versions whose schema has not changed.
    pub(super) versions_as_before: Arc<HashSet<String>>,
    /// The costs of each rule are returned, and the structural schemas are kept.
    pub keeps_costs: bool,
    /// Single expressions may cost more than the limit; the total may not.
    pub allow_dear_expressions: bool,
    /// The version of Kubernetes to emulate.
    pub minor: Minor,
}

impl ValidationOptions {
    pub fn keeping_costs(self) -> Self {
        ValidationOptions { keeps_costs: true, ..self }
    }

    /// The options for the schema of a version: a schema that did not change was accepted already, if only by another
    /// release.
    pub fn for_version(&self, name: &str) -> ValidationOptions {
        let is_as_before = self.versions_as_before.contains(name);
        ValidationOptions { allow_dear_expressions: is_as_before, ..self.clone() }
    }
}
