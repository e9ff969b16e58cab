//! MutatingAdmissionPolicyBinding, admissionregistration.k8s.io/v1, v1beta1 and v1alpha1: where a policy applies, and
//! with which parameters.
//!
//! Source: `pkg/apis/admissionregistration/validation`, release 1.36.

use crate::crd::Scope;
use crate::kinds::{Kind, defaults, metadata, policies};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA1, &V1ALPHA1];

static V1: Kind = form("v1", true);
static V1BETA1: Kind = form("v1beta1", false);
static V1ALPHA1: Kind = form("v1alpha1", false);

const fn form(version: &'static str, is_default: bool) -> Kind {
    Kind {
        plural: "mutatingadmissionpolicybindings",
        singular: "mutatingadmissionpolicybinding",
        categories: &["api-extensions"],
        scope: Scope::Cluster,
        example: "metadata: {name: example}\nspec: {policyName: example}",
        forms: &KINDS,
        is_default,
        ..Kind::new(policies::GROUP, version, "MutatingAdmissionPolicyBinding", &STRATEGY)
    }
}

static STRATEGY: policies::BindingStrategy = policies::BindingStrategy { set_defaults, validate };

fn set_defaults(object: &mut Value) {
    let is_alpha = object.str_at(&["apiVersion"]).ends_with("/v1alpha1");
    let Some(spec) = defaults::field(object, "spec") else { return };
    if let Some(resources) = defaults::field(spec, "matchResources") {
        policies::set_match_defaults(resources);
    }
    if let Some(parameters) = defaults::field(spec, "paramRef").filter(|_| is_alpha) {
        defaults::set_pointer(parameters, "parameterNotFoundAction", "Deny");
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = metadata::validate_plain(object, false, names::name_is_dns1123_subdomain);
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    errors.extend(policies::validate_binding(&spec));
    let resources = spec.field("matchResources");
    if resources.is_set() {
        errors.extend(policies::validate_mutable(&resources));
    }
    errors
}
