//! Claims that are made for a pod: an ephemeral volume has the template of one.

use crate::kinds::metadata;
use crate::kinds::storage::claim;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::go_quote;

use super::source::VolumeContext;

/// The source of an ephemeral volume.
pub fn ephemeral(source: &FieldRef<'_>) -> ErrorList {
    let template = source.field("volumeClaimTemplate");
    if template.is_set() { validate_claim_template(&template) } else { [template.required("")].into_iter().collect() }
}

/// The claim has the names of pod and volume, which must be one together.
pub fn claim_name(volume: &FieldRef<'_>, context: &VolumeContext<'_>) -> ErrorList {
    if context.pod_name.is_empty() || context.volume_name.is_empty() {
        return ErrorList::new();
    }
    let claim = format!("{}-{}", context.pod_name, context.volume_name);
    let at = volume.path().child("name");
    let faults = names::is_dns1123_subdomain(&claim).into_iter();
    let why = |fault: String| format!("PVC name {}: {fault}", go_quote(&claim));
    faults.map(|fault| Error::invalid(&at, context.volume_name, why(fault))).collect()
}

/// The errors of the template of a claim. Only the labels and annotations of its metadata are used.
pub fn validate_claim_template(template: &FieldRef<'_>) -> ErrorList {
    let mut errors = metadata::validate_of_template(&template.field("metadata"));
    errors.extend(claim::validate_spec(&template.field("spec"), &claim::ClaimValidationOptions::default()));
    errors
}
