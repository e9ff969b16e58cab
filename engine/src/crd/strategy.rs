//! How definitions are prepared before they are stored.
//!
//! Source: the strategies of apiextensions-apiserver 1.37.

use std::sync::Arc;

use super::definition::{Definition, Spec, Status, Version, WebhookConversion};
use super::names::condition;
use crate::meta::gate::Gate;
use crate::schema::json_schema::JsonSchema;
use crate::value::Value;

/// The finalizer that keeps a definition until its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A new definition has no status except its storage version, and generation 1.
pub fn prepare_create(definition: &mut Definition) {
    definition.status = Status::default();
    definition.metadata.make_object().insert("generation", Value::Int(1));
    drop_disabled(definition, None);
    note_storage_version(definition);
}

/// A write keeps the status; if it changes the spec, it raises the generation.
pub fn prepare_update(new: &mut Definition, old: &Definition) {
    new.status = old.status.clone();
    drop_disabled(new, Some(old));
    if !asks_for_same(&new.spec, &old.spec) {
        let generation = old.metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
        new.metadata.make_object().insert("generation", Value::Int(generation.saturating_add(1)));
    }
    note_storage_version(new);
}

/// Whether two specs are equal as Go compares them: a conversion without review versions has none or an empty list.
fn asks_for_same(new: &Spec, old: &Spec) -> bool {
    let filled = |spec: &Spec| {
        let mut conversion = spec.conversion.clone();
        if let Some(conversion) = &mut conversion {
            let is_filled =
                |webhook: &WebhookConversion| webhook.client_config.is_some() || !webhook.review_versions.is_empty();
            conversion.webhook = conversion.webhook.take().filter(is_filled);
        }
        conversion
    };
    filled(new) == filled(old) && *new == Spec { conversion: new.conversion.clone(), ..old.clone() }
}

/// A write to `/status` keeps the spec, and the metadata except for finalizers and ownership.
pub fn prepare_status_update(new: &mut Definition, old: &Definition) {
    new.spec = old.spec.clone();
    let is_told = |status: &Status| {
        status.observed_generation != 0 || status.conditions.iter().any(|condition| condition.observed_generation != 0)
    };
    if !new.minor.opens(Gate::CrdObservedGenerationTracking) && !is_told(&old.status) {
        new.status.observed_generation = 0;
        new.status.conditions.iter_mut().for_each(|condition| condition.observed_generation = 0);
    }
}

/// The definition after its first deletion request; `None` if it is being deleted already.
pub fn begin_delete(definition: &Definition, now: &str) -> Option<Definition> {
    if definition.is_being_deleted() {
        return None;
    }
    let mut marked = definition.clone();
    let metadata = marked.metadata.make_object();
    metadata.insert("deletionTimestamp", Value::from(now));
    let finalizers = metadata.entry("finalizers");
    if !matches!(finalizers, Value::Array(_)) {
        *finalizers = Value::Array(Vec::new());
    }
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|name| name.as_str() == Some(CLEANUP_FINALIZER))
    {
        finalizers.push(Value::from(CLEANUP_FINALIZER));
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    marked.set_condition(condition("Terminating", "True", "InstanceDeletionPending", message), now);
    Some(marked)
}

/// Drops fields that the feature gates of an older version of Kubernetes disable, unless they were set before.
fn drop_disabled(new: &mut Definition, old: Option<&Definition>) {
    let versions = old.map_or(&[][..], |old| &old.spec.versions);
    if !new.minor.opens(Gate::CustomResourceFieldSelectors)
        && versions.iter().all(|old| old.selectable_fields.is_empty())
    {
        new.spec.versions.iter_mut().for_each(|version| version.selectable_fields.clear());
    }
    let names_it = |old: &Version| schema_of(old).is_some_and(|schema| schema.names_optional_old_self());
    if !new.minor.opens(Gate::CrdValidationRatcheting) && !versions.iter().any(names_it) {
        let schemas = new.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()?.as_mut());
        schemas
            .filter(|schema| schema.names_optional_old_self())
            .for_each(|schema| Arc::make_mut(schema).forget_optional_old_self());
    }
}

fn schema_of(version: &Version) -> Option<&JsonSchema> {
    version.schema.as_ref()?.as_deref()
}

fn note_storage_version(definition: &mut Definition) {
    let Some(storage) = definition.spec.versions.iter().find(|version| version.storage) else { return };
    if !definition.status.stored_versions.contains(&storage.name) {
        definition.status.stored_versions.push(storage.name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::super::definition;
    use super::*;
    use crate::meta::minor::Minor;
    use crate::value::yaml;

    #[test]
    fn the_generation_that_a_status_is_about_is_told_behind_its_gate() {
        let read = |minor, status: &str| {
            let text = format!("{{metadata: {{name: as.b.c}}, status: {status}}}");
            let text = yaml::decode(text.as_bytes()).expect("the test is YAML");
            definition::decode_in(Minor::of(minor), &text).expect("it is a definition").0
        };
        let told = "{observedGeneration: 2, conditions: [{type: A, observedGeneration: 2}]}";
        let written = |minor, old: &str| {
            let mut new = read(minor, told);
            prepare_status_update(&mut new, &read(minor, old));
            (new.status.observed_generation, new.status.conditions[0].observed_generation)
        };
        assert_eq!(written(36, "{}"), (2, 2));
        assert_eq!(written(35, "{}"), (0, 0));
        assert_eq!(written(35, "{observedGeneration: 1}"), (2, 2));
    }

    #[test]
    fn an_optional_old_self_is_dropped_behind_its_gate_unless_it_was_there() {
        let read = |minor, rule: &str| {
            let text = format!(
                "{{metadata: {{name: as.b.c}}, spec: {{versions: [{{name: v1, schema: {{openAPIV3Schema: {{type: object, \
                 properties: {{a: {{type: array, items: {{type: string, x-kubernetes-validations: [{rule}]}}}}}}}}}}}}]}}}}"
            );
            let text = yaml::decode(text.as_bytes()).expect("the test is YAML");
            definition::decode_in(Minor::of(minor), &text).expect("it is a definition").0
        };
        let (told, silent) = ("{rule: oldSelf.hasValue(), optionalOldSelf: true}", "{rule: self != oldSelf}");
        let keeps = |definition: &Definition| {
            schema_of(&definition.spec.versions[0]).is_some_and(JsonSchema::names_optional_old_self)
        };
        let created = |minor| {
            let mut new = read(minor, told);
            prepare_create(&mut new);
            keeps(&new)
        };
        let updated = |minor, old| {
            let mut new = read(minor, told);
            prepare_update(&mut new, &read(minor, old));
            keeps(&new)
        };
        assert!(created(30) && updated(30, silent));
        assert!(!created(29) && !updated(29, silent) && updated(29, told));
    }

    #[test]
    fn an_empty_list_of_review_versions_is_none() {
        let read = |conversion: &str| {
            let text = format!("{{metadata: {{name: as.b.c, generation: 3}}, spec: {{conversion: {conversion}}}}}");
            let text = yaml::decode(text.as_bytes()).expect("the test is YAML");
            definition::decode_in(Minor::of(37), &text).expect("it is a definition").0
        };
        let updated = |old: &str, new: &str| {
            let mut new = read(new);
            prepare_update(&mut new, &read(old));
            new.metadata.at(&["generation"]).and_then(Value::as_i64)
        };
        let (without, empty) = ("{strategy: None}", "{strategy: None, webhook: {conversionReviewVersions: []}}");
        assert_eq!(updated(without, empty), Some(3));
        assert_eq!(updated(empty, without), Some(3));
        let named = "{strategy: None, webhook: {conversionReviewVersions: [v1]}}";
        assert_eq!(updated(without, named), Some(4));
    }
}
