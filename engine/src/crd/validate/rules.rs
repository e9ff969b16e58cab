//! `x-kubernetes-validations`: everything about a rule but its expressions.

use std::cell::LazyCell;

use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::minor::Minor;
use crate::schema::convert::to_structural;
use crate::schema::field_path::{Brackets, resolve};
use crate::schema::json_schema::{JsonSchema, ValidationRule};
use crate::schema::structural::Structural;
use crate::work;

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The errors in the rules of `schema`, which are at `path`.
///
/// `structural` is its structural form, if that is known.
pub fn validate_rules(
    minor: Minor,
    schema: &JsonSchema,
    structural: Option<&Structural>,
    path: &Path<'_>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    // Nothing can be said about a schema that is not structural.
    let converted = LazyCell::new(|| to_structural(schema).ok());
    let structural = || structural.or_else(|| converted.as_ref());
    for (index, rule) in schema.validations.iter().enumerate() {
        work::bytes(rule.rule.len() + rule.message.len());
        let path = path.index(index);
        errors.extend(validate_texts(minor, rule, &path));
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(Error::required(&path.child("messageExpression"), detail));
        }
        if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
            let error = Error::not_supported(&path.child("reason"), reason, &REASONS);
            errors.push(error.shown_as_json());
        }
        errors.extend(validate_field_path(minor, &rule.field_path, structural, &path.child("fieldPath")));
    }
    errors
}

/// The first error in the texts of the rule and of its message.
fn validate_texts(minor: Minor, rule: &ValidationRule, path: &Path<'_>) -> Option<Error> {
    let message_path = path.child("message");
    let (expression, message) = (rule.rule.trim(), rule.message.trim());
    let invalid = |detail: &str| {
        let detail = named(minor, "message", detail);
        Some(Error::invalid(&message_path, rule.message.as_str(), detail))
    };
    if expression.is_empty() {
        Some(Error::required(&path.child("rule"), "rule is not specified"))
    } else if !rule.message.is_empty() && message.is_empty() {
        invalid("must be non-empty if specified")
    } else if has_line_break(message) {
        invalid("must not contain line breaks")
    } else if has_line_break(expression) && message.is_empty() {
        Some(Error::required(&message_path, "message must be specified if rule contains line breaks"))
    } else {
        None
    }
}

fn validate_field_path<'s>(
    minor: Minor,
    field_path: &str,
    structural: impl FnOnce() -> Option<&'s Structural>,
    path: &Path<'_>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if field_path.is_empty() {
        return errors;
    }
    let mut refuse = |detail: &str| errors.push(Error::invalid(path, field_path, named(minor, "fieldPath", detail)));
    if field_path.trim().is_empty() {
        refuse("must be non-empty if specified");
    }
    if has_line_break(field_path) {
        refuse("must not contain line breaks");
    }
    let leads_nowhere = |schema| resolve(field_path, schema, Brackets::Allowed).is_err();
    if structural().is_some_and(leads_nowhere) {
        refuse("must be a valid path");
    }
    errors
}

/// `detail`; before 1.34, it was preceded by the name of the field.
fn named(minor: Minor, field: &str, detail: &str) -> String {
    if minor < Minor::of(34) { format!("{field} {detail}") } else { detail.to_owned() }
}

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}
