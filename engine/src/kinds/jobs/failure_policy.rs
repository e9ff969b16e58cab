//! The treatment of failed pods of a job.
//!
//! Source: `validatePodFailurePolicy` of Kubernetes 1.37.

use std::collections::HashSet;

use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

const RULES_MAX: i64 = 20;
const EXIT_CODES_MAX: i64 = 255;
const PATTERNS_MAX: i64 = 20;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// The errors of the policy of a job's spec.
pub fn validate(spec: &FieldRef<'_>, policy: &FieldRef<'_>) -> ErrorList {
    let rules = policy.field("rules");
    let mut errors: ErrorList = too_many(&rules, RULES_MAX).into_iter().collect();
    let pod = spec.field("template").value().and_then(|template| template.get("spec"));
    let containers = ["containers", "initContainers"].into_iter().flat_map(|list| {
        let containers = pod.map(|pod| pod.items_at(&[list])).unwrap_or_default();
        containers.iter().map(|container| container.str_at(&["name"]))
    });
    let containers: HashSet<&str> = containers.collect();
    let per_index = spec.field("backoffLimitPerIndex").is_set();
    for rule in rules.items() {
        errors.extend(validate_rule(&rule, per_index, &containers));
    }
    errors
}

fn too_many(list: &FieldRef<'_>, max: i64) -> Option<Error> {
    let count = i64::try_from(list.len()).unwrap_or(i64::MAX);
    (count > max).then(|| list.too_many(max))
}

fn validate_rule(rule: &FieldRef<'_>, per_index: bool, containers: &HashSet<&str>) -> ErrorList {
    let mut errors = ErrorList::new();
    let action = rule.field("action");
    match action.text() {
        "FailIndex" if per_index => {}
        "FailIndex" => errors.push(action.invalid("requires the backoffLimitPerIndex to be set")),
        _ => errors.extend(required_one_of(&action, &ACTIONS)),
    }
    let (codes, patterns) = (rule.field("onExitCodes"), rule.field("onPodConditions"));
    if codes.is_set() {
        errors.extend(validate_codes(&codes, containers));
    }
    errors.extend(validate_patterns(&patterns));
    let why = match (codes.is_set(), !patterns.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return errors,
    };
    errors.push(Error::invalid_omitted(rule.path(), why));
    errors
}

/// A text that must be there and be one of several, which Go lists as it prints them.
fn required_one_of(field: &FieldRef<'_>, supported: &[&str]) -> Option<Error> {
    if !field.is_empty() {
        return checks::one_of(field, supported);
    }
    let values: Vec<String> = supported.iter().map(|value| format!("\"{value}\"")).collect();
    Some(field.required(format!("valid values: [{}]", values.join(" "))))
}

fn validate_patterns(patterns: &FieldRef<'_>) -> ErrorList {
    let mut errors: ErrorList = too_many(patterns, PATTERNS_MAX).into_iter().collect();
    for pattern in patterns.items() {
        errors.extend(checks::named(&pattern.field("type"), names::is_qualified_name));
        errors.extend(required_one_of(&pattern.field("status"), &STATUSES));
    }
    errors
}

fn validate_codes(codes: &FieldRef<'_>, containers: &HashSet<&str>) -> ErrorList {
    let mut errors = ErrorList::new();
    let operator = codes.field("operator");
    errors.extend(required_one_of(&operator, &OPERATORS));
    let container = codes.field("containerName");
    if container.is_set() && !containers.contains(container.text()) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.push(container.invalid(why));
    }
    let values = codes.field("values");
    let shown = |why: &str| Error::invalid(values.path(), values.value().cloned().unwrap_or(Value::Null), why);
    if values.is_empty() {
        errors.push(shown("at least one value is required"));
    }
    errors.extend(too_many(&values, EXIT_CODES_MAX));
    let mut seen = HashSet::new();
    for value in values.items() {
        if operator.text() == "In" && value.int() == 0 {
            errors.push(value.invalid("must not be 0 for the In operator"));
        }
        if !seen.insert(value.int()) {
            errors.push(value.duplicate());
        }
    }
    let numbers: Vec<i64> = values.items().map(|value| value.int()).collect();
    if !numbers.is_sorted() {
        errors.push(shown("must be ordered"));
    }
    errors
}
