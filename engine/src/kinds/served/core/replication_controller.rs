//! ReplicationController, core/v1.
//!
//! Source: defaults, validation, strategy and columns of Kubernetes 1.37.

use crate::crd::{SelectorForm, ServedVersion};
use crate::kinds::strategy::{Strategy, Subresource, Table};
use crate::kinds::workloads::{self, cells, selector, status, template};
use crate::kinds::{Kind, Part, checks, defaults, metadata, pod, prepare};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::{Map, Value};

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
        if subresource == Subresource::Status {
            errors.extend(status::validate_replicas(new, &[]));
            return errors;
        }
        errors.extend(validate_spec(new, &template::options(version.minor, new, Some(old))));
        errors.extend(validate_not_convertible(new, old));
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

/// What annotations of the old object forbid: they name fields that another form of it could not say.
fn validate_not_convertible(new: &Value, old: &Value) -> ErrorList {
    const PREFIX: &str = "non-convertible.kubernetes.io";
    let mut errors = ErrorList::new();
    let annotations = old.at(&["metadata", "annotations"]).and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flat_map(Map::iter).filter(|(key, _)| key.starts_with(PREFIX)) {
        let Some((_, field)) = key.split_once('/').filter(|(_, field)| !field.contains('/')) else { continue };
        if !field.contains("selector") {
            let mut error = Error::not_found(&Path::new(field), value.clone());
            error.detail = "unknown non-convertible field".to_owned();
            errors.push(error);
            continue;
        }
        let (root, old_root) = (FieldRef::root(new), FieldRef::root(old));
        let (spec, old_spec) = (root.field("spec"), old_root.field("spec"));
        let set = spec.field("selector");
        if set.value() != old_spec.field("selector").value() {
            errors.push(set.invalid("cannot update non-convertible selector"));
        }
    }
    errors
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn annotations_say_which_fields_do_not_change() {
        let controller = |key: &str, selector: &str| {
            object! {
                "metadata" => object! { "annotations" => object! { key => "x" } },
                "spec" => object! { "selector" => object! { "a" => selector } },
            }
        };
        let told = |key: &str, selector: &str| {
            validate_not_convertible(&controller(key, selector), &controller(key, "b")).aggregate()
        };
        let of_selector = "non-convertible.kubernetes.io/spec.selector";
        assert_eq!(told(of_selector, "b"), "");
        assert_eq!(
            told(of_selector, "c"),
            r#"spec.selector: Invalid value: {"a":"c"}: cannot update non-convertible selector"#
        );
        assert_eq!(told("non-convertible.kubernetes.io/x", "b"), r#"x: Not found: "x": unknown non-convertible field"#);
        assert_eq!(told("non-convertible.kubernetes.io", "c"), "");
    }
}
