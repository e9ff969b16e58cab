//! Templates of claims in a StatefulSet, and the volumes that its pods have because of them.
//!
//! Source: `pkg/apis/apps/validation` and `pkg/apis/apps/v1` of Kubernetes 1.37.

use std::collections::BTreeSet;

use crate::kinds::defaults;
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::quantity::Quantity;
use crate::object;
use crate::value::Value;
use crate::work;

/// Sets the defaults of a claim, and the type that Go writes of one.
pub fn set_defaults(claim: &mut Value) {
    let fields = claim.make_object();
    fields.insert("apiVersion", Value::from("v1"));
    fields.insert("kind", Value::from("PersistentVolumeClaim"));
    defaults::set(defaults::structure(claim, "status"), "phase", "Pending");
    defaults::set(defaults::structure(claim, "spec"), "volumeMode", "Filesystem");
}

/// What is wrong with the specs of the claims.
pub fn validate(_templates: &FieldRef<'_>) -> ErrorList {
    ErrorList::new()
}

/// The template of pods with a volume for each claim in `spec`, without what the controller sets.
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

/// Amounts of bytes that are no whole numbers. The reference names the field otherwise in an update.
pub fn warnings(claim: &FieldRef<'_>, is_update: bool) -> Vec<String> {
    let part = if is_update { ".Spec" } else { "" };
    let resources = claim.value().and_then(|claim| claim.at(&["spec", "resources"]));
    let warning = |list: &&str| {
        let amount = resources?.at(&[list, "storage"])?.as_str()?;
        is_fractional(amount).then(|| {
            let path = format!("{}{part}.resources.{list}[storage]", claim.path());
            format!("{path}: fractional byte value \"{amount}\" is invalid, must be an integer")
        })
    };
    ["requests", "limits"].iter().filter_map(warning).collect()
}

/// Whether there is a part of a byte in the amount.
fn is_fractional(amount: &str) -> bool {
    Quantity::parse(amount).is_ok_and(|quantity| quantity.as_approximate_f64().fract() != 0.0)
}
