//! PodTemplate, core/v1: a pod template as an object of its own.
//!
//! Source: `pkg/registry/core/podtemplate` and `ValidatePodTemplate`.

use crate::crd::{Column, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::workloads::selector;
use crate::kinds::{Kind, metadata, pod, semantic};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "podtemplates",
    singular: "podtemplate",
    example: "metadata: {name: example}\ntemplate: {spec: {containers: [{name: main, image: example}]}}",
    ..Kind::new("", "v1", "PodTemplate", &PodTemplate)
}];

struct PodTemplate;

fn template(object: &Value) -> Option<&Value> {
    object.get("template")
}

impl Strategy for PodTemplate {
    fn set_typed_defaults(&self, object: &mut Value) {
        pod::set_template_defaults(object.make_object().entry("template"));
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        let fields = object.make_object();
        fields.entry("metadata").make_object().insert("generation", Value::Int(1));
        pod::drop_disabled_template_fields(version.minor, fields.entry("template"), None);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        let root = FieldRef::root(object);
        let options = pod::PodValidationOptions::for_template(version.minor, template(object), None);
        errors.extend(pod::validate_template(&root.field("template"), &options));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        pod::drop_disabled_template_fields(version.minor, new.make_object().entry("template"), template(old));
        if !semantic::equal("template", template(new), template(old)) {
            let metadata = new.make_object().entry("metadata").make_object();
            let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
            metadata.insert("generation", Value::Int(generation.saturating_add(1)));
        }
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let root = FieldRef::root(new);
        let options = pod::PodValidationOptions::for_template(version.minor, template(new), template(old));
        errors.extend(pod::validate_template(&root.field("template"), &options));
        errors
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        let generation = |object: &Value| object.at(&["metadata", "generation"]).and_then(Value::as_i64);
        if old.is_some_and(|old| generation(old) == generation(new)) {
            return Vec::new();
        }
        let root = FieldRef::root(new);
        pod::template_warnings(&root.field("template"), old.and_then(template))
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![
            Column { format: "name".to_owned(), ..Column::string("Name", "") },
            Column::string("Containers", "Names of each container in the template."),
            Column::string("Images", "Images referenced by each container in the template."),
            Column::string("Pod Labels", "The labels for the pod template."),
        ];
        Some(Table { columns, cells })
    }
}

fn cells(object: &Value) -> Vec<Cell> {
    let containers = object.items_at(&["template", "spec", "containers"]);
    let joined = |field: &str| {
        let texts: Vec<&str> = containers.iter().map(|container| container.str_at(&[field])).collect();
        Cell::text(&texts.join(","))
    };
    let labels = selector::set_cell(object.at(&["template", "metadata", "labels"]));
    let name = Cell::text(object.str_at(&["metadata", "name"]));
    vec![name, joined("name"), joined("image"), Cell::text(&labels)]
}
