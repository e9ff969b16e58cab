//! The validation of every pod, and of a new one.
//!
//! Source: `validatePodMetadataAndSpec` and `ValidatePodCreate`.

use crate::kinds::{metadata as own_metadata, pod as template};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::value::Value;

/// The errors of a new pod.
pub fn validate(minor: Minor, pod: &Value) -> ErrorList {
    let root = FieldRef::root(pod);
    let spec = root.field("spec");
    let mut errors = validate_metadata_and_spec(pod, &template::PodValidationOptions::for_pod(minor, pod, None));
    let ephemeral = spec.field("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("cannot be set on create"));
    }
    let node = spec.field("nodeName");
    if !node.is_empty() && !spec.field("schedulingGates").is_empty() {
        errors.push(node.forbidden("cannot be set until all schedulingGates have been cleared"));
    }
    errors.extend(template::profiles::validate_seccomp_match(pod.get("metadata"), &spec));
    errors.extend(template::profiles::validate_app_armor_match(pod.get("metadata"), &spec));
    errors
}

/// The errors of the metadata and the spec of a pod, new or changed.
pub fn validate_metadata_and_spec(pod: &Value, options: &template::PodValidationOptions) -> ErrorList {
    let root = FieldRef::root(pod);
    let spec = root.field("spec");
    let mut errors = own_metadata::validate(pod, true, names::name_is_dns1123_subdomain);
    let metadata = root.field("metadata");
    errors.extend(template::annotations::validate(&metadata.field("annotations"), &spec, options));
    errors.extend(template::validate_pod_spec(&spec, pod.get("metadata"), options));
    if spec.field("serviceAccountName").is_empty() {
        errors.extend(token_sources(&spec));
    }
    for name in ["containers", "initContainers"] {
        let list = spec.field(name);
        for container in list.items() {
            errors.extend(template::containers::validate_image_text(&container));
        }
    }
    errors
}

/// Tokens need an account.
fn token_sources(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let volumes = spec.field("volumes");
    for volume in volumes.items() {
        let projected = volume.field("projected");
        let sources = projected.field("sources");
        for source in sources.items() {
            let token = source.field("serviceAccountToken");
            if token.is_set() {
                errors.push(token.forbidden("must not be specified when serviceAccountName is not set"));
            }
        }
    }
    errors
}
