//! ValidatingAdmissionPolicy, admissionregistration.k8s.io/v1, and v1beta1 and v1alpha1 in older minor versions:
//! expressions that objects must satisfy.
//!
//! Source: `pkg/apis/admissionregistration/validation`, release 1.36.

use std::collections::BTreeSet;

use crate::cel::types::Type;
use crate::crd::{Scope, ServedVersion};
use crate::kinds::policies::{self, Compiler};
use crate::kinds::strategy::{Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, conditions, metadata, prepare, semantic, static_names};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::json_path::{JsonPath, ParseError};
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::object;
use crate::value::{Value, json};

const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ANNOTATIONS_MAX: usize = 20;
const VALUE_BYTES_MAX: usize = 5 << 10;

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA1, &V1ALPHA1];

static V1: Kind = form();
static V1BETA1: Kind = form().former("v1beta1");
static V1ALPHA1: Kind = form().former("v1alpha1");

const fn form() -> Kind {
    Kind {
        plural: "validatingadmissionpolicies",
        singular: "validatingadmissionpolicy",
        categories: &["api-extensions"],
        scope: Scope::Cluster,
        status: true,
        example: "metadata: {name: example}\nspec:\n  matchConstraints:\n    resourceRules:\n    - {apiGroups: [apps], \
                  apiVersions: [v1], operations: [CREATE], resources: [deployments]}\n  validations: [{expression: \
                  'object.spec.replicas <= 5'}]",
        forms: &KINDS,
        ..Kind::new(policies::GROUP, "v1", "ValidatingAdmissionPolicy", &ValidatingAdmissionPolicy)
    }
}

struct ValidatingAdmissionPolicy;

impl Strategy for ValidatingAdmissionPolicy {
    fn set_typed_defaults(&self, object: &mut Value) {
        policies::set_policy_defaults(object);
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! {});
        prepare::first_generation(object);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = validate(version.minor, object, None);
        errors.extend(static_names::check_new_name(version, object));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::for_update(subresource, new, old);
        prepare::count_generation(new, old, &["spec"]);
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        match subresource {
            Subresource::Status => validate_status(new),
            _ => validate(version.minor, new, Some(old)),
        }
    }

    fn warnings(&self, version: &ServedVersion, _: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        static_names::warnings(version, new, old)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        reset_beside_status(subresource)
    }

    fn table(&self) -> Option<Table> {
        Some(policies::policy_table("validations", |object| policies::policy_cells(object, "validations")))
    }
}

fn validate(minor: Minor, object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = metadata::validate_plain(object, false, names::name_is_dns1123_subdomain);
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    errors.extend(policies::validate_head(&spec, false));
    let mut compiler = Compiler::new(minor, &spec, old);
    if old.is_none_or(|old| !semantic::equal_untyped(object.at(&["spec"]), old.at(&["spec"]))) {
        errors.extend(compiler.conditions(&spec.field("matchConditions")));
    }
    errors.extend(compiler.variables(&spec.field("variables")));
    let (validations, annotations) = (spec.field("validations"), spec.field("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.push(validations.required(why));
        errors.push(annotations.required(why));
        return errors;
    }
    for validation in validations.items() {
        errors.extend(validate_validation(&compiler, &validation));
    }
    if annotations.len() > ANNOTATIONS_MAX {
        let error = annotations.invalid(format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations"));
        errors.push(error.shown_as(show_annotations(&annotations)));
    }
    let mut seen = BTreeSet::new();
    for annotation in annotations.items() {
        errors.extend(validate_annotation(&compiler, object.str_at(&["metadata", "name"]), &annotation));
        let key = annotation.field("key");
        if !seen.insert(key.text().to_owned()) {
            errors.push(key.duplicate());
        }
    }
    errors
}

/// Formats the audit annotations with the field names of Go's internal type.
fn show_annotations(annotations: &FieldRef<'_>) -> String {
    let shown = annotations.items().map(|annotation| {
        object! { "Key" => annotation.text_of("key"), "ValueExpression" => annotation.text_of("valueExpression") }
    });
    json::encode_to_string(&Value::Array(shown.collect()))
}

fn validate_validation(compiler: &Compiler, validation: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (expression, told, message) =
        (validation.field("expression"), validation.field("messageExpression"), validation.field("message"));
    if expression.text().trim().is_empty() {
        errors.push(expression.required("expression is not specified"));
    } else {
        errors.extend(compiler.fault(&expression, &[Type::Bool]));
    }
    match (told.text().is_empty(), told.text().trim().is_empty()) {
        (true, _) => {}
        (false, true) => errors.push(told.invalid("must be non-empty if specified")),
        (false, false) => errors.extend(compiler.message_fault(&told)),
    }
    let trimmed = message.text().trim();
    if !message.text().is_empty() && trimmed.is_empty() {
        errors.push(message.invalid("must be non-empty if specified"));
    } else if trimmed.contains(['\n', '\r']) {
        errors.push(message.invalid("must not contain line breaks"));
    }
    let reason = validation.field("reason");
    if reason.is_set() && !REASONS.contains(&reason.text()) {
        errors.push(reason.not_supported(&REASONS));
    }
    errors
}

fn validate_annotation(compiler: &Compiler, policy: &str, annotation: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (key, value) = (annotation.field("key"), annotation.field("valueExpression"));
    if policy.is_empty() {
        errors.push(key.invalid("requires metadata.name be non-empty"));
    } else {
        let name = format!("{policy}/{}", key.text());
        let faults = names::is_qualified_name(&name).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(key.path(), name.as_str(), fault)).collect::<ErrorList>());
    }
    let trimmed = value.text().trim();
    if trimmed.is_empty() {
        errors.push(value.required("valueExpression is not specified"));
    } else if trimmed.len() > VALUE_BYTES_MAX {
        errors.push(value.required(format!("must not exceed {VALUE_BYTES_MAX} bytes in length")));
    } else {
        errors.extend(compiler.trimmed_fault(&value, &[Type::String, Type::Null]));
    }
    errors
}

fn validate_status(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let root = FieldRef::root(object);
    let status = root.field("status");
    let checking = status.field("typeChecking");
    for warning in checking.field("expressionWarnings").items() {
        let (text, place) = (warning.field("warning"), warning.field("fieldRef"));
        if text.text().is_empty() {
            errors.push(text.required(""));
        }
        let path = place.text().trim();
        if path.is_empty() {
            errors.push(place.required(""));
        } else if let Err(ParseError(fault)) = JsonPath::parse(path) {
            errors.push(Error::invalid(place.path(), path, format!("invalid JSONPath: {fault}")));
        }
    }
    errors.extend(conditions::validate(&status.field("conditions")));
    errors
}
