//! ValidatingAdmissionPolicyBinding, admissionregistration.k8s.io/v1, and v1beta1 and v1alpha1 in older minor versions:
//! where a policy applies, and with which parameters.
//!
//! Source: `pkg/apis/admissionregistration/validation`, release 1.36.

use std::collections::BTreeSet;

use crate::crd::Scope;
use crate::kinds::{Kind, defaults, metadata, policies};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA1, &V1ALPHA1];

static V1: Kind = form();
static V1BETA1: Kind = form().former("v1beta1");
static V1ALPHA1: Kind = form().former("v1alpha1");

const fn form() -> Kind {
    Kind {
        plural: "validatingadmissionpolicybindings",
        singular: "validatingadmissionpolicybinding",
        categories: &["api-extensions"],
        scope: Scope::Cluster,
        example: "metadata: {name: example}\nspec: {policyName: example, validationActions: [Deny]}",
        forms: &KINDS,
        ..Kind::new(policies::GROUP, "v1", "ValidatingAdmissionPolicyBinding", &STRATEGY)
    }
}

static STRATEGY: policies::BindingStrategy = policies::BindingStrategy { set_defaults, validate };

fn set_defaults(object: &mut Value) {
    let resources = defaults::field(object, "spec").and_then(|spec| defaults::field(spec, "matchResources"));
    if let Some(resources) = resources {
        policies::set_match_defaults(resources);
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = metadata::validate_plain(object, false, names::name_is_dns1123_subdomain);
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    errors.extend(policies::validate_binding(&spec));
    errors.extend(validate_actions(&spec.field("validationActions")));
    errors
}

fn validate_actions(actions: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for action in actions.items() {
        if !ACTIONS.contains(&action.text()) {
            errors.push(action.not_supported(&ACTIONS));
        }
        if !seen.insert(action.text().to_owned()) {
            errors.push(action.duplicate_as_json());
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        errors.push(actions.invalid(why));
    }
    if seen.is_empty() {
        errors.push(actions.required("at least one validation action is required"));
    }
    errors
}
