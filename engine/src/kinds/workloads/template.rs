//! The pod template of a workload: its restart policy, its deadline, its labels.
//!
//! Source: `pkg/apis/apps/validation` of Kubernetes 1.37.

use super::selector;
use crate::kinds::{defaults, pod};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::object_meta;
use crate::value::{Map, Value};

pub use crate::kinds::pod::PodValidationOptions;

/// The pod template in an object's spec.
pub fn of(object: &Value) -> Option<&Value> {
    object.at(&["spec", "template"])
}

/// Sets the defaults of the template in a spec.
pub fn set_defaults(spec: &mut Value) {
    pod::set_template_defaults(defaults::structure(spec, "template"));
}

/// The options for validating the template of `new`, which replaces that of `old`, if there is one, in version `minor`.
pub fn options(minor: Minor, new: &Value, old: Option<&Value>) -> PodValidationOptions {
    PodValidationOptions::for_template(minor, of(new), old.and_then(of))
}

/// Removes the fields of features that are off from the template.
pub fn drop_disabled_fields(minor: Minor, new: &mut Value, old: Option<&Value>) {
    if let Some(template) = new.at_mut(&["spec", "template"]) {
        pod::drop_disabled_template_fields(minor, template, old.and_then(of));
    }
}

/// Keeps labels that were sent empty if the selector does not match them: the error shows them as empty.
pub fn keep_empty_labels(sent: &Value, decoded: &mut Value) {
    keep_labels(sent, decoded, |sent| {
        let root = FieldRef::root(sent);
        let spec = root.field("spec");
        selector::compile(&spec.field("selector")).is_some_and(|selector| !selector.matches(None))
    });
}

/// Keeps labels that were sent empty, if `is_fault` says that they cause an error.
pub fn keep_labels(sent: &Value, decoded: &mut Value, is_fault: impl Fn(&Value) -> bool) {
    const LABELS: [&str; 4] = ["spec", "template", "metadata", "labels"];
    let is_empty = sent.at(&LABELS).and_then(Value::as_object).is_some_and(Map::is_empty);
    if is_empty
        && is_fault(sent)
        && let Some(template) = decoded.at_mut(&LABELS[..2])
    {
        defaults::structure(defaults::structure(template, "metadata"), "labels");
    }
}

/// Validates a template of pods that always run; `kind` names the kind it belongs to.
pub fn validate_running(template: &FieldRef<'_>, options: &PodValidationOptions, kind: &str) -> ErrorList {
    let mut errors = pod::validate_template(template, options);
    errors.extend(check_running(template, kind));
    errors
}

/// Checks that pods that always run are restarted, and have no deadline.
pub fn check_running(template: &FieldRef<'_>, kind: &str) -> Vec<Error> {
    let spec = template.field("spec");
    let (policy, deadline) = (spec.field("restartPolicy"), spec.field("activeDeadlineSeconds"));
    let restarts = (policy.text() != "Always").then(|| policy.not_supported(&["Always"]));
    let ends =
        deadline.is_set().then(|| deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported")));
    restarts.into_iter().chain(ends).collect()
}

/// Validates the labels and annotations of a template; the reference leaves `metadata` out of their paths.
pub fn validate_metadata(template: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let nothing = Value::Null;
    let metadata = template.field("metadata");
    let labels = metadata.field("labels");
    let path = template.path();
    let mut errors = object_meta::validate_labels(labels.value().unwrap_or(&nothing), &path.child("labels"));
    let found = metadata.value().and_then(|metadata| metadata.get("annotations"));
    let annotations = FieldRef::new(found, path.child("annotations"));
    errors.extend(object_meta::validate_annotations(annotations.value().unwrap_or(&nothing), annotations.path()));
    errors.extend(pod::validate_annotations(&annotations, &template.field("spec"), options));
    errors
}

/// The warnings about the template of `object`.
pub fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    pod::template_warnings(&spec.field("template"), old.and_then(of))
}
