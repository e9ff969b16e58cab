//! The template of pods, which every workload contains, and what a Pod has in common with it.
//!
//! Input: a pod's spec or a template in the form that its Go type gives it (empty values are absent). Output: its
//! defaults, errors and warnings. The kinds of workloads, and Pod itself, call this for their `template` and `spec`.
//!
//! Source: `pkg/apis/core/v1/defaults.go`, `pkg/apis/core/validation` and `pkg/api/pod` of Kubernetes 1.36, with the types of 1.37.

mod options;
mod forgiven;
mod container_lists;
mod image;
pub(crate) mod aggregate;
mod defaults;
mod volume_defaults;
pub(crate) mod volumes;
mod spec;
pub(crate) mod annotations;
mod container_context;
pub(crate) mod containers;
mod ports;
mod env;
mod mounts;
mod probes;
mod restart;
mod claims;
mod resources;
mod security;
pub(crate) mod profiles;
mod windows;
mod os;
mod affinity;
mod spread;
pub(crate) mod tolerations;
mod dns;
mod warnings;
mod disabled;

use super::defaults::{items, structure};
use super::resources as lists;
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::object_meta;
use crate::value::Value;

pub(crate) use container_lists::{CONTAINER_LISTS, STATUS_LISTS};
pub use forgiven::merges_label_keys;
pub use options::PodValidationOptions;
pub(crate) use restart::RESTART_ALL;
pub use volume_defaults::set_network_defaults;

/// Sets the defaults of a template: those of its spec.
pub fn set_template_defaults(template: &mut Value) {
    defaults::set_spec_defaults(structure(template, "spec"));
    defaults::drop_init_container_annotations(template);
}

/// Sets the defaults of a Pod: those of its spec, and those that templates don't have.
pub fn set_pod_defaults(pod: &mut Value) {
    let spec = structure(pod, "spec");
    defaults::set_only_in_pods(spec);
    defaults::set_spec_defaults(spec);
    defaults::drop_init_container_annotations(pod);
    let Some(status) = pod.get_mut("status") else { return };
    for list in STATUS_LISTS {
        for status in items(status, list) {
            lists::set_list_defaults(status.get_mut("allocatedResources"));
            lists::set_requirements_defaults(status);
        }
    }
    lists::set_list_defaults(status.get_mut("allocatedResources"));
    lists::set_requirements_defaults(status);
}

/// The errors of a template (`PodTemplateSpec`) of any kind.
pub fn validate_template(template: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let (metadata, spec) = (template.field("metadata"), template.field("spec"));
    // Errors in a template's metadata omit the word `metadata`.
    let of_metadata =
        |name| FieldRef::new(metadata.value().and_then(|value| value.get(name)), template.path().child(name));
    let (labels, annotations) = (of_metadata("labels"), of_metadata("annotations"));
    let mut errors = object_meta::validate_labels(labels.value().unwrap_or(&Value::Null), labels.path());
    let texts = annotations.value().unwrap_or(&Value::Null);
    errors.extend(object_meta::validate_annotations(texts, annotations.path()));
    errors.extend(annotations::validate(&annotations, &spec, options));
    errors.extend(validate_pod_spec(&spec, None, options));
    errors.extend(profiles::validate_seccomp_match(metadata.value(), &spec));
    errors.extend(profiles::validate_app_armor_match(metadata.value(), &spec));
    let ephemeral = spec.field("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("ephemeral containers not allowed in pod template"));
    }
    errors
}

/// The errors of the annotations that mean something for a pod with this spec.
pub fn validate_annotations(
    annotations: &FieldRef<'_>,
    spec: &FieldRef<'_>,
    options: &PodValidationOptions,
) -> ErrorList {
    annotations::validate(annotations, spec, options)
}

/// The errors of a pod's spec. `metadata` is that of the Pod; a template has none.
pub fn validate_pod_spec(spec: &FieldRef<'_>, metadata: Option<&Value>, options: &PodValidationOptions) -> ErrorList {
    spec::validate(spec, metadata, options)
}

/// Warnings about a template.
pub fn template_warnings(template: &FieldRef<'_>, _old: Option<&Value>) -> Vec<String> {
    warnings::of(template, true)
}

/// Warnings about a Pod.
pub fn pod_warnings(pod: &FieldRef<'_>, _old: Option<&Value>) -> Vec<String> {
    warnings::of(pod, false)
}

/// The total requests of a pod: those of its containers, unless it has pod-level ones, and its overhead.
pub fn requests(spec: &Value) -> aggregate::Totals {
    let mut totals = aggregate::of_containers(spec, "requests");
    let listed = |path: &[&str]| spec.at(path).and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, quantity) in listed(&["resources", "requests"]).iter() {
        totals.insert(name.to_owned(), lists::parse(Some(quantity)));
    }
    for (name, quantity) in listed(&["overhead"]).iter() {
        let overhead = lists::parse(Some(quantity));
        let total = totals.get(name).and_then(|total| total.add(&overhead).ok()).unwrap_or(overhead);
        totals.insert(name.to_owned(), total);
    }
    totals
}

/// Takes out of a template the fields of features that are off, unless `old` has them.
pub fn drop_disabled_template_fields(minor: Minor, new: &mut Value, old: Option<&Value>) {
    if let Some(spec) = new.get_mut("spec") {
        disabled::drop_fields(minor, spec, old.and_then(|old| old.get("spec")));
    }
}

/// Takes out of a Pod the fields of features that are off, unless `old` has them.
pub fn drop_disabled_pod_fields(minor: Minor, new: &mut Value, old: Option<&Value>) {
    drop_disabled_template_fields(minor, new, old);
    if let Some(status) = new.get_mut("status") {
        disabled::drop_status_fields(minor, status, old);
    }
}

/// The errors of a list of tolerations.
pub fn validate_tolerations(list: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    tolerations::validate(list, options)
}

#[cfg(test)]
mod tests;
