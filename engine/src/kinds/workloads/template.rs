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

/// The template of an object whose spec has one.
pub fn of(object: &Value) -> Option<&Value> {
    object.at(&["spec", "template"])
}

/// Sets the defaults of the template in a spec.
pub fn set_defaults(spec: &mut Value) {
    pod::set_template_defaults(defaults::structure(spec, "template"));
}

/// The options of that version for the template of `new`, which replaces that of `old`, if there is one.
pub fn options(minor: Minor, new: &Value, old: Option<&Value>) -> PodValidationOptions {
    PodValidationOptions::for_template(minor, of(new), old.and_then(of))
}

/// Takes the fields of features that are off out of the template.
pub fn drop_disabled_fields(minor: Minor, new: &mut Value, old: Option<&Value>) {
    if let Some(template) = new.at_mut(&["spec", "template"]) {
        pod::drop_disabled_template_fields(minor, template, old.and_then(of));
    }
}

/// Keeps labels that were sent empty, if the selector does not select by none: the error shows them so.
pub fn keep_empty_labels(sent: &Value, decoded: &mut Value) {
    keep_labels(sent, decoded, |sent| {
        let root = FieldRef::root(sent);
        let spec = root.field("spec");
        selector::compile(&spec.field("selector")).is_some_and(|selector| !selector.matches(None))
    });
}

/// Keeps labels that were sent empty, if `is_fault` says that they are an error.
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

/// The errors of a template of pods that always run; `kind` names what it belongs to.
pub fn validate_running(template: &FieldRef<'_>, options: &PodValidationOptions, kind: &str) -> ErrorList {
    let mut errors = pod::validate_template(template, options);
    errors.extend(check_running(template, kind));
    errors
}

/// A pod that always runs is restarted, and has no deadline.
pub fn check_running(template: &FieldRef<'_>, kind: &str) -> Vec<Error> {
    let spec = template.field("spec");
    let (policy, deadline) = (spec.field("restartPolicy"), spec.field("activeDeadlineSeconds"));
    let restarts = (policy.text() != "Always").then(|| policy.not_supported(&["Always"]));
    let ends =
        deadline.is_set().then(|| deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported")));
    restarts.into_iter().chain(ends).collect()
}

/// The errors of the labels and annotations of a template; the reference names them without `metadata`.
pub fn validate_metadata(template: &FieldRef<'_>) -> ErrorList {
    let nothing = Value::Null;
    let metadata = template.field("metadata");
    let (labels, annotations) = (metadata.field("labels"), metadata.field("annotations"));
    let path = template.path();
    let mut errors = object_meta::validate_labels(labels.value().unwrap_or(&nothing), &path.child("labels"));
    let annotations = annotations.value().unwrap_or(&nothing);
    errors.extend(object_meta::validate_annotations(annotations, &path.child("annotations")));
    errors
}

/// What the one who wrote the template of `object` is warned of.
pub fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    pod::template_warnings(&spec.field("template"), old.and_then(of))
}
