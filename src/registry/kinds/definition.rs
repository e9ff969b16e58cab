//! CustomResourceDefinition, apiextensions.k8s.io/v1.

use std::sync::Arc;

use crate::apply::TypeSchema;
use crate::crd::definition::{self, API_VERSION, KIND};
use crate::crd::{Definition, Names, Scope, ServedVersion, defaults, strategy, validate, warnings};
use crate::meta::field::ErrorList;
use crate::schema::structural::Structural;
use crate::store::Collection;
use crate::value::Value;

use super::super::Resource;
use super::super::definitions::{GROUP, PLURAL};
use super::super::strategy::{Decoded, Strategy, Subresource};

pub(super) fn resource() -> Resource {
    let version = ServedVersion {
        group: GROUP.to_owned(),
        version: API_VERSION.trim_start_matches(GROUP).trim_start_matches('/').to_owned(),
        names: Names {
            plural: PLURAL.to_owned(),
            singular: "customresourcedefinition".to_owned(),
            kind: KIND.to_owned(),
            list_kind: format!("{KIND}List"),
            short_names: vec!["crd".to_owned(), "crds".to_owned()],
            categories: vec!["api-extensions".to_owned()],
        },
        scope: Scope::Cluster,
        schema_generation: 0,
        served: true,
        storage: true,
        // Its schema is recursive, so not structural: the type itself is the schema.
        structural: Arc::new(Structural::default()),
        rules: Default::default(),
        preserve_unknown_fields: true,
        status: true,
        scale: None,
        columns: Vec::new(),
        selectable_fields: Vec::new(),
        deprecation_warning: None,
    };
    let types = TypeSchema::of_custom_resource_definition();
    Resource::new(
        Collection::new(GROUP, PLURAL),
        vec![Arc::new(version)],
        vec![types],
        Arc::new(CustomResourceDefinition),
    )
}

struct CustomResourceDefinition;

/// The definition in a value that has passed [`Strategy::decode`] before.
fn typed(object: &Value) -> Definition {
    definition::decode(object).map(|(definition, _)| definition).unwrap_or_default()
}

/// Changes the typed form of `object`; what the type does not hold stays.
fn change(object: &mut Value, change: impl FnOnce(&mut Definition)) {
    let mut definition = typed(object);
    change(&mut definition);
    *object = definition.encode();
}

impl Strategy for CustomResourceDefinition {
    fn decode(&self, object: Value, _: &[Arc<ServedVersion>]) -> Result<Decoded, String> {
        let (mut definition, findings) = definition::decode(&object)?;
        defaults::set_defaults(&mut definition);
        Ok(Decoded { object: definition.encode(), findings, is_typed: true })
    }

    fn zero(&self, _: &ServedVersion) -> Value {
        Definition::default().encode()
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        change(object, strategy::prepare_create);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        validate::create(&typed(object))
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        let old = typed(old);
        change(new, |new| match subresource {
            Subresource::Status => strategy::prepare_status_update(new, &old),
            Subresource::Main | Subresource::Scale | Subresource::Finalize => strategy::prepare_update(new, &old),
        });
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        match subresource {
            Subresource::Status => validate::update_status(&typed(new), &typed(old)),
            Subresource::Main | Subresource::Scale | Subresource::Finalize => {
                validate::update(&typed(new), &typed(old))
            }
        }
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        if subresource == Subresource::Status {
            return Vec::new();
        }
        let new = typed(new);
        match old {
            None => warnings::create(&new),
            Some(old) => warnings::update(&new, &typed(old)),
        }
    }

    fn precondition_failed(&self) -> Option<&'static str> {
        Some("precondition failed")
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        match subresource {
            Subresource::Status => &[&["spec"]],
            Subresource::Main | Subresource::Scale | Subresource::Finalize => &[&["status"]],
        }
    }

    fn begin_delete(&self, object: &Value, now: &str) -> Option<Value> {
        strategy::begin_delete(&typed(object), now).map(|definition| definition.encode())
    }
}
