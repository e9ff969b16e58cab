//! ReplicaSet, apps/v1.
//!
//! Source: defaults, validation, strategy and columns of Kubernetes 1.37.

use crate::crd::{SelectorForm, ServedVersion};
use crate::kinds::strategy::{Strategy, Subresource, Table};
use crate::kinds::workloads::{self, cells, selector, status, template};
use crate::kinds::{Kind, Part, checks, defaults, metadata, prepare};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "replicasets",
    singular: "replicaset",
    short_names: &["rs"],
    categories: &["all"],
    status: true,
    parts: &[Part::scale(SelectorForm::Requirements)],
    example: r"
metadata: {name: example}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com/web}]}}
",
    ..Kind::new("apps", "v1", "ReplicaSet", &ReplicaSet)
}];

struct ReplicaSet;

impl Strategy for ReplicaSet {
    fn set_typed_defaults(&self, object: &mut Value) {
        let spec = defaults::structure(object, "spec");
        defaults::set(spec, "replicas", 1);
        template::set_defaults(spec);
    }

    fn keep_empty(&self, sent: &Value, decoded: &mut Value) {
        template::keep_empty_labels(sent, decoded);
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        prepare::for_create(object, &self.zero(version));
        template::drop_disabled_fields(version.minor, object, None);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        errors.extend(validate_spec(object, &template::options(version.minor, object, None)));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        if subresource == Subresource::Status {
            prepare::keep(new, old, &["spec"]);
            workloads::status::drop_disabled(version.minor, new, old);
            return;
        }
        template::drop_disabled_fields(version.minor, new, Some(old));
        workloads::prepare_update(new, old);
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        if subresource == Subresource::Status {
            errors.extend(status::validate_replicas(new, &["terminatingReplicas"]));
            return errors;
        }
        errors.extend(validate_spec(new, &template::options(version.minor, new, Some(old))));
        let (new_root, old_root) = (FieldRef::root(new), FieldRef::root(old));
        let (new_spec, old_spec) = (new_root.field("spec"), old_root.field("spec"));
        errors.extend(selector::immutable(&new_spec.field("selector"), &old_spec.field("selector")));
        errors
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        workloads::warnings(subresource, new, old)
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        workloads::reset_fields(subresource)
    }
}

fn validate_spec(set: &Value, options: &template::PodValidationOptions) -> ErrorList {
    let root = FieldRef::root(set);
    let spec = root.field("spec");
    let mut errors = ErrorList::new();
    errors.extend(checks::not_negative(&spec.field("replicas")));
    errors.extend(checks::not_negative(&spec.field("minReadySeconds")));
    errors.extend(workloads::validate_selected_template(&spec, options, "ReplicaSet"));
    errors
}

fn table() -> Table {
    Table {
        columns: cells::of_replicas(),
        cells: |set| {
            let selector = selector::cell(set.at(&["spec", "selector"]));
            cells::replicas_row(set, &selector)
        },
    }
}
