//! Claims that are made for a pod: an ephemeral volume has the template of one.

use crate::kinds::storage::claim;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::{names, object_meta};
use crate::value::{Value, go_quote};

use super::source::Context;

/// Metadata that a template must not have, as JSON and errors name it, in the order of Go's struct.
const FORBIDDEN_METADATA: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

/// The source of an ephemeral volume.
pub fn ephemeral(source: &FieldRef<'_>) -> ErrorList {
    let template = source.field("volumeClaimTemplate");
    if template.is_set() { validate_claim_template(&template) } else { [template.required("")].into_iter().collect() }
}

/// The claim has the names of pod and volume, which must be one together.
pub fn claim_name(volume: &FieldRef<'_>, context: &Context<'_>) -> ErrorList {
    if context.pod_name.is_empty() || context.volume_name.is_empty() {
        return ErrorList::new();
    }
    let claim = format!("{}-{}", context.pod_name, context.volume_name);
    let at = volume.path().child("name");
    let faults = names::is_dns1123_subdomain(&claim).into_iter();
    let why = |fault: String| format!("PVC name {}: {fault}", go_quote(&claim));
    faults.map(|fault| Error::invalid(&at, context.volume_name, why(fault))).collect()
}

/// What is wrong with the template of a claim. Of its metadata only labels and annotations are used.
pub fn validate_claim_template(template: &FieldRef<'_>) -> ErrorList {
    let mut errors = template_metadata(&template.field("metadata"));
    errors.extend(claim::validate_spec(&template.field("spec"), &claim::Options::default()));
    errors
}

fn template_metadata(metadata: &FieldRef<'_>) -> ErrorList {
    let (annotations, labels) = (metadata.field("annotations"), metadata.field("labels"));
    let value = |field: &FieldRef<'_>| field.value().cloned().unwrap_or(Value::Null);
    let mut errors = object_meta::validate_annotations(&value(&annotations), annotations.path());
    errors.extend(object_meta::validate_labels(&value(&labels), labels.path()));
    for (name, called) in FORBIDDEN_METADATA {
        if metadata.field(name).is_set() {
            errors.push(Error::forbidden(&metadata.path().child(called), "cannot be set"));
        }
    }
    errors
}
