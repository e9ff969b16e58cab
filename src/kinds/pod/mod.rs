//! What every workload contains: the template of pods, and what a Pod has in common with it.
//!
//! In: a pod's spec or a template in the form that its Go type gives it (what is empty is absent). Out: its defaults, what is wrong
//! with it, what a client is warned of. The kinds of workloads, and Pod itself, call this for their `template` and `spec`.
//!
//! Source: `pkg/apis/core/v1/defaults.go`, `pkg/apis/core/validation` and `pkg/api/pod` of Kubernetes 1.36, with the types of 1.37.

mod options;
mod image;
mod aggregate;
mod defaults;
mod volume_defaults;

use super::defaults::{items, structure};
use super::resources;
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

pub use options::Options;
pub use volume_defaults::set_network_defaults;

/// Sets the defaults of a pod's spec, as every object with one has them.
pub fn set_pod_spec_defaults(spec: &mut Value) {
    defaults::set_spec_defaults(spec);
}

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
    for list in ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] {
        for status in items(status, list) {
            resources::set_list_defaults(status.get_mut("allocatedResources"));
            resources::set_requirements_defaults(status);
        }
    }
    resources::set_list_defaults(status.get_mut("allocatedResources"));
    resources::set_requirements_defaults(status);
}

/// What is wrong with a template (`PodTemplateSpec`), wherever it stands.
pub fn validate_template(_template: &FieldRef<'_>, _options: &Options) -> ErrorList {
    ErrorList::new()
}

/// What is wrong with a pod's spec. `metadata` is that of the Pod, or of its template.
pub fn validate_pod_spec(_spec: &FieldRef<'_>, _metadata: Option<&Value>, _options: &Options) -> ErrorList {
    ErrorList::new()
}

/// What the one who wrote a template is warned of; `old` is the template that it replaces.
pub fn template_warnings(_template: &FieldRef<'_>, _old: Option<&Value>) -> Vec<String> {
    Vec::new()
}

/// What the one who wrote a Pod is warned of.
pub fn pod_warnings(_pod: &FieldRef<'_>, _old: Option<&Value>) -> Vec<String> {
    Vec::new()
}

/// Takes out of a template the fields of features that are off, unless `old` has them.
pub fn drop_disabled_template_fields(_new: &mut Value, _old: Option<&Value>) {}

/// Takes out of a Pod the fields of features that are off, unless `old` has them.
pub fn drop_disabled_pod_fields(_new: &mut Value, _old: Option<&Value>) {}

/// What is wrong with a list of tolerations.
pub fn validate_tolerations(_tolerations: &FieldRef<'_>, _options: &Options) -> ErrorList {
    ErrorList::new()
}

/// What is wrong with the annotations that say something of a pod (`ValidatePodSpecificAnnotations`); `pod` is a Pod or a
/// template.
pub fn validate_pod_annotations(_pod: &FieldRef<'_>, _options: &Options) -> ErrorList {
    ErrorList::new()
}
