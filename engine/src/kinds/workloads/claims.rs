//! The claim templates of a StatefulSet, and the volumes that its pods have because of them.
//!
//! Source: `pkg/apis/apps/validation` and `pkg/apis/apps/v1` of Kubernetes 1.37.

use std::collections::BTreeSet;

use crate::kinds::storage::claim;
use crate::kinds::{defaults, resources};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::object;
use crate::value::Value;
use crate::work;

/// Sets the defaults of a claim, and the API version and kind, which Go writes in it.
pub fn set_defaults(claim: &mut Value) {
    let fields = claim.make_object();
    fields.insert("apiVersion", Value::from("v1"));
    fields.insert("kind", Value::from("PersistentVolumeClaim"));
    let status = defaults::structure(claim, "status");
    defaults::set(status, "phase", "Pending");
    for list in ["capacity", "allocatedResources"] {
        resources::set_list_defaults(defaults::field(status, list));
    }
    let spec = defaults::structure(claim, "spec");
    defaults::set_pointer(spec, "volumeMode", "Filesystem");
    resources::set_requirements_defaults(spec);
}

/// Validates the specs of the claims.
pub fn validate(templates: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for template in templates.items() {
        errors.extend(claim::validate_spec(&template.field("spec"), &claim::ClaimValidationOptions::default()));
    }
    errors
}

/// The pod template with a volume for each claim in `spec`, and without the fields that the controller sets.
pub fn mounted(template: &Value, spec: Option<&Value>) -> Value {
    let claims = spec.map(|spec| spec.items_at(&["volumeClaimTemplates"])).unwrap_or_default();
    let names: BTreeSet<&str> = claims.iter().map(|claim| claim.str_at(&["metadata", "name"])).collect();
    work::steps(claims.len());
    let mut template = template.clone();
    let Some(Value::Object(pod)) = template.get_mut("spec") else { return template };
    pod.remove("subdomain");
    pod.remove("hostname");
    if names.is_empty() {
        return template;
    }
    let claimed = |name: &&str| {
        let source = object! { "claimName" => *name };
        object! { "name" => *name, "persistentVolumeClaim" => source }
    };
    let mut volumes: Vec<Value> = names.iter().map(claimed).collect();
    let own = pod.get("volumes").and_then(Value::as_array).unwrap_or_default();
    volumes.extend(own.iter().filter(|volume| !names.contains(volume.str_at(&["name"]))).cloned());
    pod.insert("volumes", Value::Array(volumes));
    template
}

/// The warnings about a claim. In an update, the reference adds `Spec` to the path.
pub fn warnings(template: &FieldRef<'_>, is_update: bool) -> Vec<String> {
    let spec = template.value().and_then(|template| template.get("spec"));
    let part = template.path().child("Spec");
    let path = if is_update { part } else { *template.path() };
    claim::warnings(&FieldRef::new(spec, path))
}
