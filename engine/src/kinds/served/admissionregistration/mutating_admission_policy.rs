//! MutatingAdmissionPolicy, admissionregistration.k8s.io/v1, v1beta1 and v1alpha1: expressions that change objects.
//!
//! Source: `pkg/apis/admissionregistration/validation`, release 1.36.

use crate::crd::{Scope, ServedVersion};
use crate::kinds::policies::{self, Compiler};
use crate::kinds::strategy::{Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata, prepare, semantic, static_names};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::policy::mutation::MutationType;
use crate::value::Value;

const REINVOCATION: [&str; 2] = ["IfNeeded", "Never"];
/// The patch types, each with the field of its expression.
const PATCHES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA1, &V1ALPHA1];

static V1: Kind = form("v1", true);
static V1BETA1: Kind = form("v1beta1", false);
static V1ALPHA1: Kind = form("v1alpha1", false);

const fn form(version: &'static str, is_default: bool) -> Kind {
    Kind {
        plural: "mutatingadmissionpolicies",
        singular: "mutatingadmissionpolicy",
        categories: &["api-extensions"],
        scope: Scope::Cluster,
        example: "metadata: {name: example}\nspec:\n  reinvocationPolicy: Never\n  matchConstraints:\n    resourceRules:\n    - \
                  {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}\n  mutations:\n  - \
                  {patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"remove\", path: \"/spec\"}]'}}",
        forms: &KINDS,
        is_default,
        ..Kind::new(policies::GROUP, version, "MutatingAdmissionPolicy", &MutatingAdmissionPolicy)
    }
}

struct MutatingAdmissionPolicy;

impl Strategy for MutatingAdmissionPolicy {
    fn set_typed_defaults(&self, object: &mut Value) {
        policies::set_policy_defaults(object);
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::first_generation(object);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = validate(version.minor, object, None);
        errors.extend(static_names::check_new_name(version, object));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        prepare::count_generation(new, old, &["spec"]);
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        validate(version.minor, new, Some(old))
    }

    fn warnings(&self, version: &ServedVersion, _: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        static_names::warnings(version, new, old)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn table(&self) -> Option<Table> {
        Some(policies::policy_table("mutations", |object| policies::policy_cells(object, "mutations")))
    }
}

fn validate(minor: Minor, object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = metadata::validate_plain(object, false, names::name_is_dns1123_subdomain);
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    errors.extend(policies::validate_head(&spec, true));
    let mut compiler = Compiler::new(minor, &spec, old);
    if old.is_none_or(|old| !semantic::equal_untyped(object.at(&["spec"]), old.at(&["spec"]))) {
        errors.extend(compiler.conditions(&spec.field("matchConditions")));
    }
    errors.extend(compiler.variables(&spec.field("variables")));
    let mutations = spec.field("mutations");
    if mutations.is_empty() {
        errors.push(mutations.required("mutations must contain at least one item"));
    }
    for mutation in mutations.items() {
        errors.extend(validate_mutation(&compiler, &mutation));
    }
    let again = spec.field("reinvocationPolicy");
    if again.text().is_empty() {
        errors.push(again.required(""));
    } else if !REINVOCATION.contains(&again.text()) {
        errors.push(again.not_supported(&REINVOCATION));
    }
    errors
}

fn validate_mutation(compiler: &Compiler, mutation: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = mutation.field("patchType");
    if kind.text().is_empty() {
        errors.push(kind.required(""));
        return errors;
    }
    let Some(patch_type) = MutationType::named(kind.text()) else {
        errors.push(kind.not_supported(&PATCHES));
        return errors;
    };
    let patch = mutation.field(patch_type.field());
    let expression = patch.field("expression");
    if !patch.is_set() {
        errors.push(patch.required(format!("must be specified when patchType is {}", kind.text())));
    } else if expression.text().trim().is_empty() {
        errors.push(expression.required(""));
    } else {
        errors.extend(compiler.patch_fault(&expression, patch_type));
    }
    let other = match patch_type {
        MutationType::ApplyConfiguration => MutationType::JsonPatch,
        MutationType::JsonPatch => MutationType::ApplyConfiguration,
    };
    let patch = mutation.field(other.field());
    if patch.is_set() {
        let why = format!("must not be specified when patchType is {}", kind.text());
        errors.push(Error::invalid(patch.path(), format!("{{{}}}", other.field()), why));
    }
    errors
}
