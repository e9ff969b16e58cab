//! CustomResourceDefinition, apiextensions.k8s.io/v1.

use std::sync::Arc;

use crate::crd::definition;
use crate::crd::write::ReadError;
use crate::crd::{Definition, Scope, ServedVersion, defaults, strategy, validate, warnings};
use crate::meta::field::ErrorList;
use crate::meta::minor::Minor;
use crate::value::Value;

use crate::kinds::strategy::{Decoded, Strategy, Subresource};
use crate::kinds::{Form, Kind};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "customresourcedefinitions",
    singular: "customresourcedefinition",
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    scope: Scope::Cluster,
    status: true,
    form: Form::Definition,
    example: r"
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
",
    ..Kind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", &CustomResourceDefinition)
}];

struct CustomResourceDefinition;

/// Reads the definition from a value that has already passed [`Strategy::decode`].
fn typed(version: &ServedVersion, object: &Value) -> Definition {
    definition::read_in(version.minor, object)
}

/// Does the same where the result does not depend on the version of Kubernetes.
fn typed_newest(object: &Value) -> Definition {
    definition::read_in(Minor::NEWEST, object)
}

/// Applies `change` to the typed form of `object`; fields that are not in the type are lost.
fn change(version: &ServedVersion, object: &mut Value, change: impl FnOnce(&mut Definition)) {
    let mut definition = typed(version, object);
    change(&mut definition);
    *object = definition.encode();
}

impl Strategy for CustomResourceDefinition {
    fn decode(&self, object: Value, versions: &[Arc<ServedVersion>]) -> Result<Decoded, ReadError> {
        let minor = versions.first().map_or(Minor::NEWEST, |version| version.minor);
        let (mut definition, findings) = definition::decode_in(minor, &object)?;
        defaults::set_defaults(&mut definition);
        Ok(Decoded { object: definition.encode(), findings, is_typed: true })
    }

    fn zero(&self, _: &ServedVersion) -> Value {
        Definition::default().encode()
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        change(version, object, strategy::prepare_create);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        validate::create(&typed(version, object))
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        let old = typed(version, old);
        change(version, new, |new| match subresource {
            Subresource::Status => strategy::prepare_status_update(new, &old),
            _ => strategy::prepare_update(new, &old),
        });
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        let (new, old) = (typed(version, new), typed(version, old));
        match subresource {
            Subresource::Status => validate::update_status(&new, &old),
            _ => validate::update(&new, &old),
        }
    }

    fn warnings(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: Option<&Value>,
    ) -> Vec<String> {
        if subresource == Subresource::Status {
            return Vec::new();
        }
        let new = typed(version, new);
        match old {
            None => warnings::create(&new),
            Some(old) => warnings::update(&new, &typed(version, old)),
        }
    }

    fn precondition_failed(&self) -> Option<&'static str> {
        Some("precondition failed")
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn begin_delete(&self, object: &Value, now: &str) -> Option<Value> {
        strategy::begin_delete(&typed_newest(object), now).map(|definition| definition.encode())
    }
}
