//! ReplicationController, core/v1.
//!
//! Source: defaults, validation, strategy and columns of Kubernetes 1.37.

use crate::crd::{SelectorForm, ServedVersion};
use crate::kinds::strategy::{Strategy, Subresource, Table};
use crate::kinds::workloads::{self, cells, selector, status, template};
use crate::kinds::{Kind, Part, checks, defaults, metadata, pod, prepare};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "replicationcontrollers",
    singular: "replicationcontroller",
    short_names: &["rc"],
    categories: &["all"],
    status: true,
    parts: &[Part::scale(SelectorForm::Labels)],
    selectable_fields: &[".status.replicas"],
    example: r"
metadata: {name: example}
spec:
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com/web}]}}
",
    ..Kind::new("", "v1", "ReplicationController", &ReplicationController)
}];

struct ReplicationController;

impl Strategy for ReplicationController {
    fn set_typed_defaults(&self, object: &mut Value) {
        set_labels(object);
        let spec = defaults::structure(object, "spec");
        defaults::set(spec, "replicas", 1);
        if let Some(template) = defaults::field(spec, "template") {
            pod::set_template_defaults(template);
        }
    }

    fn keep_empty(&self, sent: &Value, decoded: &mut Value) {
        let has_selector = decoded.at(&["spec", "selector"]).is_some();
        template::keep_labels(sent, decoded, |_| has_selector);
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        prepare::for_create(object, &self.zero(version));
        template::drop_disabled_fields(version.minor, object, None);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_long);
        errors.extend(validate_spec(object, &template::options(version.minor, object, None)));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        if subresource == Subresource::Status {
            prepare::keep(new, old, &["spec"]);
            set_labels(new);
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
        errors.extend(match subresource {
            Subresource::Status => status::validate_replicas(new, &[]),
            _ => validate_spec(new, &template::options(version.minor, new, Some(old))),
        });
        errors
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        match old {
            // The reference swaps the old and the new template.
            Some(old) if subresource != Subresource::Status && workloads::generation_differs(new, old) => {
                template::warnings(old, Some(new))
            }
            old => workloads::warnings(Subresource::Status, new, old),
        }
    }

    fn select(&self, object: &Value, field: &str) -> Option<String> {
        (field == "status.replicas").then(|| cells::int(object, &["status", "replicas"]).to_string())
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn stored_as(&self) -> Option<&'static str> {
        Some("controllers")
    }

    /// Older versions of Kubernetes left the pods in place.
    fn orphans_dependents(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        Some(Table {
            columns: cells::of_replicas(),
            cells: |controller| {
                cells::replicas_row(controller, &selector::set_cell(controller.at(&["spec", "selector"])))
            },
        })
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        workloads::reset_fields(subresource)
    }
}

/// Sets the controller's labels and its selector to the labels of the template, if it has none.
fn set_labels(controller: &mut Value) {
    let Some(labels) = controller.at(&["spec", "template", "metadata", "labels"]).cloned() else { return };
    let spec = defaults::structure(controller, "spec");
    if spec.get("selector").is_none() {
        spec.make_object().insert("selector", labels.clone());
    }
    let metadata = defaults::structure(controller, "metadata");
    if metadata.get("labels").is_none() {
        metadata.make_object().insert("labels", labels);
    }
}

fn validate_spec(controller: &Value, options: &template::PodValidationOptions) -> ErrorList {
    let root = FieldRef::root(controller);
    let spec = root.field("spec");
    let mut errors = ErrorList::new();
    errors.extend(checks::not_negative(&spec.field("minReadySeconds")));
    let set = spec.field("selector");
    if set.is_empty() {
        errors.push(set.required(""));
    }
    errors.extend(checks::not_negative(&spec.field("replicas")));
    let template = spec.field("template");
    if !template.is_set() {
        errors.push(template.required(""));
        return errors;
    }
    let metadata = template.field("metadata");
    let labels = metadata.field("labels");
    if !selector::set_matches(&set, labels.value()) {
        errors.push(selector::unmatched(&labels));
    }
    errors.extend(template::validate_running(&template, options, "ReplicationController"));
    errors
}
