//! Validation of a value by a schema's keywords: everything but list types and rules.
//!
//! Input: a value, already pruned and defaulted, and its schema; for an update also the old value. Output: all errors,
//! in Kubernetes' words and order. Nothing is changed, and a valid value costs no allocation. Source: answers recorded
//! from apiextensions-apiserver 1.37, whose validator is kube-openapi's.

mod node;
mod numbers;
mod outcome;

use super::correlate::Correlated;
use super::format::Format;
use super::pattern::Pattern;
use super::ratchet;
use super::structural::{NestedValueValidation, Structural, ValueValidation};
use crate::meta::field::{ErrorList, Path};
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::value::{Map, Value, go_quote, json};
use crate::work;
use node::{OtherFields, Reading, SchemaNode, Types, ValuePath};
use numbers::{check_number, is_whole, to_int};
use outcome::{FaultKind, ValidationResult, ValueError};

/// The errors of `value` at `path`.
///
/// Some errors name no field all the same (`<nil>` at the root): those of junctors, and of numbers out of their
/// format's range.
pub fn validate(path: &Path<'_>, value: &Value, schema: &Structural) -> ErrorList {
    validate_in(Minor::NEWEST, path, value, schema)
}

/// [`validate`] in that version of Kubernetes.
pub fn validate_in(minor: Minor, path: &Path<'_>, value: &Value, schema: &Structural) -> ErrorList {
    let mut outcome = ValidationResult { minor, ..ValidationResult::default() };
    validate_value(&ValuePath::Root, value, SchemaNode::Whole(schema), None, &mut outcome);
    outcome.into_errors(path)
}

/// Whether `value` is valid; stops at the first fault.
fn is_valid_in(minor: Minor, value: &Value, schema: &Structural) -> bool {
    let mut outcome = ValidationResult { minor, ends_at_first: true, ..ValidationResult::default() };
    validate_value(&ValuePath::Root, value, SchemaNode::Whole(schema), None, &mut outcome);
    outcome.is_valid()
}

/// The errors that `new` has and `old` had not: values that the update does not change pass.
pub fn validate_update(path: &Path<'_>, new: &Value, old: &Value, schema: &Structural) -> ErrorList {
    validate_update_in(Minor::NEWEST, path, new, old, schema)
}

/// [`validate_update`] in that version of Kubernetes: without `CRDValidationRatcheting`, unchanged values get no
/// exemption.
pub fn validate_update_in(minor: Minor, path: &Path<'_>, new: &Value, old: &Value, schema: &Structural) -> ErrorList {
    if !minor.opens(Gate::CrdValidationRatcheting) {
        return validate_in(minor, path, new, schema);
    }
    // A valid object need not be compared with the old one.
    if is_valid_in(minor, new, schema) {
        return ErrorList::new();
    }
    validate_correlated(minor, path, &Correlated::new(new, old, schema))
}

fn validate_correlated(minor: Minor, path: &Path<'_>, correlated: &Correlated<'_>) -> ErrorList {
    let mut outcome = ValidationResult { minor, ..ValidationResult::default() };
    let schema = SchemaNode::Whole(correlated.schema);
    validate_value(&ValuePath::Root, correlated.new, schema, Some(correlated), &mut outcome);
    outcome.into_errors(path)
}

/// The errors of a default of `schema`. The schema is applied literally: formats that are ignored in objects count, and
/// `x-kubernetes-int-or-string` alone means no type.
pub fn validate_default(path: &Path<'_>, default: &Value, schema: &Structural) -> ErrorList {
    let mut outcome = ValidationResult { reading: Reading::Written, ..ValidationResult::default() };
    validate_value(&ValuePath::Root, default, SchemaNode::Whole(schema), None, &mut outcome);
    outcome.into_errors(path)
}

/// Validates `value`; errors are forgiven if `correlated` shows that it did not change.
fn validate_value(
    place: &ValuePath<'_>,
    value: &Value,
    schema: SchemaNode<'_>,
    correlated: Option<&Correlated<'_>>,
    outcome: &mut ValidationResult,
) {
    if outcome.has_ended() {
        return;
    }
    work::step();
    let before = outcome.mark();
    match value {
        Value::Null => validate_null(place, schema, outcome),
        _ => validate_present(place, value, schema, correlated, outcome),
    }
    if outcome.has_found_since(&before) && ratchet::forgives(correlated) {
        outcome.forget_since(&before);
    }
}

fn validate_null(place: &ValuePath<'_>, schema: SchemaNode<'_>, outcome: &mut ValidationResult) {
    match schema.types(outcome.reading) {
        types @ (Types::One(_) | Types::IntOrString) if !schema.nullable() => outcome.wrong_type(place, types, "null"),
        _ => outcome.matches += 1,
    }
    if let Some(keywords) = schema.value_validation() {
        check_enum(place, &Value::Null, keywords, outcome);
    }
}

/// Each step that applies counts as a match, whether it finds errors or not, as in the reference.
fn validate_present(
    place: &ValuePath<'_>,
    value: &Value,
    schema: SchemaNode<'_>,
    correlated: Option<&Correlated<'_>>,
    outcome: &mut ValidationResult,
) {
    let types = schema.types(outcome.reading);
    let keywords = schema.value_validation();
    let format = keywords.map_or("", |keywords| match outcome.reading {
        Reading::Served => Format::effective_in(outcome.minor, types.single(), &keywords.format),
        Reading::Written => &keywords.format,
    });
    if !matches!(types, Types::Any) || !format.is_empty() {
        outcome.matches += 1;
        check_type(place, value, types, format, outcome);
    }
    outcome.matches += 2;
    if let Some(keywords) = keywords {
        check_junctors(place, value, keywords, outcome);
    }
    match value {
        Value::String(text) => {
            outcome.matches += 1;
            if let Some(keywords) = keywords {
                check_text(place, text, keywords, outcome);
            }
            if !format.is_empty()
                && let Some(known) = Format::named(format)
            {
                outcome.matches += 1;
                if !known.accepts(text) {
                    outcome.wrong_type(place, format, text);
                }
            }
        }
        Value::Int(_) | Value::Float(_) => {
            outcome.matches += 2;
            check_number(place, value, types.single(), format, keywords, outcome);
        }
        Value::Array(items) => {
            outcome.matches += 2;
            check_list(place, items, schema, keywords, correlated, outcome);
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    outcome.matches += 1;
    if let Some(keywords) = keywords {
        check_enum(place, value, keywords, outcome);
    }
    if let Value::Object(fields) = value {
        outcome.matches += 1;
        check_object(place, fields, schema, keywords, correlated, outcome);
    }
    outcome.matches += 1;
}

fn check_type(place: &ValuePath<'_>, value: &Value, types: Types<'_>, format: &str, outcome: &mut ValidationResult) {
    let (type_, value_format) = match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Int(_) => ("integer", "int64"),
        Value::Float(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    };
    let fits = types.contains(type_)
        || match value {
            Value::Float(number) => types.contains("integer") && is_whole(*number),
            Value::Int(_) => types.contains("number"),
            _ => false,
        };
    let text_or_list = matches!(value, Value::String(_) | Value::Array(_));
    if !format.is_empty() && !text_or_list && !fits && format != value_format {
        return outcome.wrong_type(place, format, value_format);
    }
    // A list passes for a text if there is a format.
    let numeric = types.contains("number") || types.contains("integer");
    if fits || !format.is_empty() && text_or_list && !numeric {
        outcome.matches += 1;
        return;
    }
    outcome.wrong_type(place, types, type_);
}

fn check_junctors(place: &ValuePath<'_>, value: &Value, keywords: &ValueValidation, outcome: &mut ValidationResult) {
    let Some(junctors) = keywords.junctors.get() else { return };
    // Nothing is forgiven under a junctor.
    let (reading, minor) = (outcome.reading, outcome.minor);
    let attempt = |schema: &NestedValueValidation| {
        let mut attempt = ValidationResult { reading, minor, ..ValidationResult::default() };
        validate_value(place, value, SchemaNode::Nested(schema), None, &mut attempt);
        attempt
    };
    if !junctors.any_of.is_empty() {
        check_any_of(place, &junctors.any_of, attempt, outcome);
    }
    if !junctors.one_of.is_empty() {
        check_one_of(place, &junctors.one_of, attempt, outcome);
    }
    if !junctors.all_of.is_empty() {
        check_all_of(place, &junctors.all_of, attempt, outcome);
    }
    if let Some(schema) = &junctors.not
        && attempt(schema).is_valid()
    {
        outcome.placeless(format!("{} must not validate the schema (not)", go_quote(&place.to_string())));
    }
}

/// Checks `anyOf`. If no schema is valid, the errors of the one that matches best are reported.
fn check_any_of(
    place: &ValuePath<'_>,
    schemas: &[NestedValueValidation],
    attempt: impl Fn(&NestedValueValidation) -> ValidationResult,
    outcome: &mut ValidationResult,
) {
    let mut best: Option<ValidationResult> = None;
    for schema in schemas {
        let result = attempt(schema);
        let found = result.is_valid();
        if found || best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
        if found {
            break;
        }
    }
    let Some(best) = best else { return };
    if !best.is_valid() {
        let place = go_quote(&place.to_string());
        outcome.placeless(format!("{place} must validate at least one schema (anyOf)"));
    }
    outcome.merge(best);
}

fn check_one_of(
    place: &ValuePath<'_>,
    schemas: &[NestedValueValidation],
    attempt: impl Fn(&NestedValueValidation) -> ValidationResult,
    outcome: &mut ValidationResult,
) {
    let mut best_failure: Option<ValidationResult> = None;
    let mut first_success: Option<ValidationResult> = None;
    let mut valid = 0;
    for schema in schemas {
        let result = attempt(schema);
        if result.is_valid() {
            valid += 1;
            best_failure = None;
            first_success.get_or_insert(result);
        } else if valid == 0 && best_failure.as_ref().is_none_or(|best| result.matches > best.matches) {
            best_failure = Some(result);
        }
    }
    if valid != 1 {
        let found = match valid {
            0 => "Found none valid".to_owned(),
            _ => format!("Found {valid} valid alternatives"),
        };
        let place = go_quote(&place.to_string());
        outcome.placeless(format!("{place} must validate one and only one schema (oneOf). {found}"));
    }
    let told = if valid == 1 { first_success } else { best_failure };
    outcome.merge(told.unwrap_or_default());
}

fn check_all_of(
    place: &ValuePath<'_>,
    schemas: &[NestedValueValidation],
    attempt: impl Fn(&NestedValueValidation) -> ValidationResult,
    outcome: &mut ValidationResult,
) {
    let mut valid = 0;
    for schema in schemas {
        let result = attempt(schema);
        valid += usize::from(result.is_valid());
        outcome.merge(result);
    }
    if valid != schemas.len() {
        let (place, none) = (go_quote(&place.to_string()), if valid == 0 { ". None validated" } else { "" });
        outcome.placeless(format!("{place} must validate all the schemas (allOf){none}"));
    }
}

/// Only the first fault of a text is reported.
fn check_text(place: &ValuePath<'_>, text: &str, keywords: &ValueValidation, outcome: &mut ValidationResult) {
    // A character has one to four bytes, so mostly the characters need not be counted.
    if let Some(bounds) = keywords.bounds.get()
        && (bounds.max_length.is_some_and(|max| length(text.len()) > max)
            || bounds.min_length.is_some_and(|min| length(text.len() / 4) < min))
    {
        let length = length(text.chars().count());
        if let Some(max) = bounds.max_length.filter(|max| length > *max) {
            let what = format!("should be at most {max} chars long");
            return outcome.fault(place, what, FaultKind::TooLong { max });
        }
        if let Some(min) = bounds.min_length.filter(|min| length < *min) {
            return outcome.invalid(place, text, format_args!("should be at least {min} chars long"));
        }
    }
    let pattern = &keywords.pattern;
    match &keywords.compiled_pattern {
        _ if pattern.is_empty() => {}
        Some(compiled) if compiled.is_match(text) => {}
        Some(_) => outcome.invalid(place, text, format_args!("should match '{pattern}'")),
        None => {
            if let Err(error) = Pattern::new(pattern) {
                outcome.invalid(place, text, format_args!("should match '{pattern}, but pattern is invalid: {error}'"));
            }
        }
    }
}

fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn check_list(
    place: &ValuePath<'_>,
    items: &[Value],
    schema: SchemaNode<'_>,
    keywords: Option<&ValueValidation>,
    correlated: Option<&Correlated<'_>>,
    outcome: &mut ValidationResult,
) {
    if let Some(schema) = schema.items() {
        for (index, item) in items.iter().enumerate() {
            let correlated = ratchet::item(correlated, index);
            validate_value(&ValuePath::Item(place, index), item, schema, correlated.as_ref(), outcome);
        }
    }
    let Some(bounds) = keywords.and_then(|keywords| keywords.bounds.get()) else { return };
    let size = length(items.len());
    if let Some(min) = bounds.min_items.filter(|min| size < *min) {
        outcome.invalid(place, size, format_args!("should have at least {min} items"));
    }
    if let Some(max) = bounds.max_items.filter(|max| size > *max) {
        let kind = FaultKind::TooMany { actual: items.len(), max };
        outcome.fault(place, format_args!("should have at most {max} items"), kind);
    }
    // Quadratic, which is why definitions may not use it.
    let is_repeated = |(index, item): (usize, &Value)| {
        work::steps(index);
        items[..index].contains(item)
    };
    if bounds.unique_items && items.iter().enumerate().any(is_repeated) {
        outcome.invalid(place, "", "shouldn't contain duplicates");
    }
}

fn check_enum(place: &ValuePath<'_>, value: &Value, keywords: &ValueValidation, outcome: &mut ValidationResult) {
    let allowed = &keywords.enum_;
    if allowed.is_empty() || is_allowed(value, keywords) || outcome.is_full() {
        return;
    }
    work::steps(allowed.len());
    let supported: Vec<String> = allowed
        .iter()
        .map(|value| match value {
            Value::String(text) => text.clone(),
            _ => json::encode_to_string(value),
        })
        .collect();
    let what = format!("should be one of [{}]", supported.join(" "));
    outcome.fault(place, what, FaultKind::NotSupported { value: value.clone(), supported });
}

/// Whether `value` is enumerated. Only texts and numbers are looked up, other values are compared one by one.
fn is_allowed(value: &Value, keywords: &ValueValidation) -> bool {
    let has = |value: &Value| keywords.enum_index.as_ref().map(|index| index.contains(value));
    let known = match value {
        Value::String(_) => has(value),
        Value::Int(number) => has(value).map(|found| {
            found || has(&Value::Float(*number as f64)) == Some(true) || has(&character(*number)) == Some(true)
        }),
        Value::Float(number) => has(value).map(|found| found || has(&Value::Int(to_int(*number))) == Some(true)),
        _ => None,
    };
    known.unwrap_or_else(|| {
        work::steps(keywords.enum_.len());
        keywords.enum_.iter().any(|allowed| is_same(value, allowed))
    })
}

/// The text of the character with this number, as Go converts it.
fn character(number: i64) -> Value {
    let char = u32::try_from(number).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
    Value::from(&*char.encode_utf8(&mut [0; 4]))
}

/// Whether `value` is `allowed` once Go has converted it to its type: doubles lose their fraction, integers become the
/// character that they number. Null is never equal.
fn is_same(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) => false,
        (Value::Int(number), Value::Float(allowed)) => *number as f64 == *allowed,
        (Value::Float(number), Value::Int(allowed)) => to_int(*number) == *allowed,
        (Value::Int(number), Value::String(_)) => character(*number) == *allowed,
        _ => value == allowed,
    }
}

fn check_object(
    place: &ValuePath<'_>,
    fields: &Map,
    schema: SchemaNode<'_>,
    keywords: Option<&ValueValidation>,
    correlated: Option<&Correlated<'_>>,
    outcome: &mut ValidationResult,
) {
    if let Some(bounds) = keywords.and_then(|keywords| keywords.bounds.get()) {
        let size = length(fields.len());
        if let Some(min) = bounds.min_properties.filter(|min| size < *min) {
            outcome.invalid(place, size, format_args!("should have at least {min} properties"));
        }
        if let Some(max) = bounds.max_properties.filter(|max| size > *max) {
            let kind = FaultKind::TooMany { actual: fields.len(), max };
            outcome.fault(place, format_args!("should have at most {max} properties"), kind);
        }
    }
    let mut properties = schema.properties();
    match schema.other_fields() {
        OtherFields::Ignored => {}
        OtherFields::Forbidden => {
            for name in fields.keys().filter(|name| properties.get(name).is_none()) {
                work::step();
                if outcome.is_full() {
                    continue;
                }
                let message = format!("{place}.{name} in body is a forbidden property");
                let kind = FaultKind::Invalid { value: name.into() };
                outcome.push(ValueError { place: Some(place.to_string()), message, kind });
            }
        }
        OtherFields::Validated(other) => {
            for (name, field) in fields.iter().filter(|(name, _)| properties.get(name).is_none()) {
                let correlated = ratchet::field(correlated, name, place.is_empty());
                validate_value(&ValuePath::Other(place, name), field, other, correlated.as_ref(), outcome);
            }
        }
    }
    if schema.has_properties() {
        let mut properties = schema.properties();
        for (name, field) in fields.iter() {
            let Some(property) = properties.get(name) else { continue };
            let correlated = ratchet::field(correlated, name, place.is_empty());
            validate_value(&ValuePath::Property(place, name), field, property, correlated.as_ref(), outcome);
        }
    }
    let mut present = fields.in_order();
    for name in keywords.into_iter().flat_map(|keywords| &keywords.required) {
        work::step();
        if present.get(name).is_none() {
            outcome.fault(&ValuePath::Other(place, name), "is required", FaultKind::Required);
        }
    }
}

#[cfg(test)]
mod tests;
