//! Validation of a value by a schema's keywords: everything but list types and rules.
//!
//! In: a value, already pruned and defaulted, and its schema; for an update also the old value. Out: all errors, in
//! Kubernetes' words and order. Nothing is changed, and a valid value costs no allocation.
//! Source: answers recorded from apiextensions-apiserver 1.37, whose validator is kube-openapi's.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;

use super::correlate::Correlated;
use super::format::Format;
use super::pattern::Pattern;
use super::ratchet;
use super::structural::{NestedValueValidation, Structural, StructuralOrBool, ValueValidation};
use crate::meta::field::{Error, ErrorList, ErrorType, Path};
use crate::meta::gates::Gate;
use crate::meta::minor::Minor;
use crate::value::{Map, Value, go_quote, json, number};
use crate::work;

/// Bytes of the faults of a value that are kept; more are only counted. Each of them may quote much of the value or schema.
const FAULTS_BYTES_MAX: usize = 2 << 20;

/// What is wrong with `value`, which stands at `path`.
///
/// Some errors name no field even so (`<nil>` at the root): junctors and numbers out of their format's range.
pub fn validate(path: &Path<'_>, value: &Value, schema: &Structural) -> ErrorList {
    validate_in(Minor::NEWEST, path, value, schema)
}

/// [`validate`] in that version of Kubernetes.
pub fn validate_in(minor: Minor, path: &Path<'_>, value: &Value, schema: &Structural) -> ErrorList {
    let mut outcome = ValidationResult { minor, ..ValidationResult::default() };
    validate_value(&ValuePath::Root, value, SchemaNode::Whole(schema), None, &mut outcome);
    outcome.into_errors(path)
}

/// What is wrong with `new` that was not so before: values that the update leaves as they are pass.
pub fn validate_update(path: &Path<'_>, new: &Value, old: &Value, schema: &Structural) -> ErrorList {
    validate_update_in(Minor::NEWEST, path, new, old, schema)
}

/// [`validate_update`] in that version of Kubernetes: without `CRDValidationRatcheting` nothing passes because it was so before.
pub fn validate_update_in(minor: Minor, path: &Path<'_>, new: &Value, old: &Value, schema: &Structural) -> ErrorList {
    if !minor.opens(Gate::CrdValidationRatcheting) {
        return validate_in(minor, path, new, schema);
    }
    let correlated = Correlated::new(new, old, schema);
    let mut outcome = ValidationResult { minor, ..ValidationResult::default() };
    validate_value(&ValuePath::Root, new, SchemaNode::Whole(schema), Some(&correlated), &mut outcome);
    outcome.into_errors(path)
}

/// What is wrong with a default of `schema`, which is held against the schema as it is written: formats that are ignored
/// in objects count, and `x-kubernetes-int-or-string` alone means no type.
pub fn validate_default(path: &Path<'_>, default: &Value, schema: &Structural) -> ErrorList {
    let mut outcome = ValidationResult { reading: Reading::Written, ..ValidationResult::default() };
    validate_value(&ValuePath::Root, default, SchemaNode::Whole(schema), None, &mut outcome);
    outcome.into_errors(path)
}

/// How a schema is taken.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Reading {
    /// As for objects.
    #[default]
    Served,
    /// To the letter.
    Written,
}

/// Where the walk is, from the value that is validated. It prints as in messages, where the root is empty.
#[derive(Clone, Copy)]
enum ValuePath<'p> {
    Root,
    Property(&'p ValuePath<'p>, &'p str),
    /// A field of `additionalProperties`, and one that is missing: it begins with a point even at the root.
    Other(&'p ValuePath<'p>, &'p str),
    Item(&'p ValuePath<'p>, usize),
}

impl ValuePath<'_> {
    /// Whether it prints as nothing, as only the root and nameless fields of it do.
    fn is_empty(&self) -> bool {
        match self {
            ValuePath::Root => true,
            ValuePath::Property(parent, name) => name.is_empty() && parent.is_empty(),
            ValuePath::Other(..) | ValuePath::Item(..) => false,
        }
    }
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePath::Root => Ok(()),
            ValuePath::Property(parent, name) if parent.is_empty() => out.write_str(name),
            ValuePath::Property(parent, name) | ValuePath::Other(parent, name) => write!(out, "{parent}.{name}"),
            ValuePath::Item(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}

/// The types that a schema names.
#[derive(Clone, Copy)]
enum Types<'s> {
    Any,
    One(&'s str),
    IntOrString,
}

impl<'s> Types<'s> {
    fn contains(self, name: &str) -> bool {
        match self {
            Types::Any => false,
            Types::One(type_) => type_ == name,
            Types::IntOrString => matches!(name, "integer" | "string"),
        }
    }

    /// The type, if there is but one.
    fn single(self) -> &'s str {
        match self {
            Types::One(type_) => type_,
            Types::Any | Types::IntOrString => "",
        }
    }
}

impl fmt::Display for Types<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Types::Any => Ok(()),
            Types::One(type_) => out.write_str(type_),
            Types::IntOrString => out.write_str("integer,string"),
        }
    }
}

/// A schema, whole or under a junctor.
#[derive(Clone, Copy)]
enum SchemaNode<'s> {
    Whole(&'s Structural),
    Nested(&'s NestedValueValidation),
}

/// What a schema says of fields that it does not name.
enum OtherFields<'s> {
    Ignored,
    Forbidden,
    Validated(SchemaNode<'s>),
}

impl<'s> SchemaNode<'s> {
    fn types(self, reading: Reading) -> Types<'s> {
        let (generic, extensions) = match self {
            SchemaNode::Whole(schema) => (&schema.generic, &schema.extensions),
            SchemaNode::Nested(schema) => (&*schema.forbidden_generics, &schema.forbidden_extensions),
        };
        match generic.type_.as_str() {
            _ if extensions.int_or_string && reading == Reading::Served => Types::IntOrString,
            "" => Types::Any,
            type_ => Types::One(type_),
        }
    }

    fn nullable(self) -> bool {
        match self {
            SchemaNode::Whole(schema) => schema.generic.nullable,
            SchemaNode::Nested(schema) => schema.forbidden_generics.nullable,
        }
    }

    fn value_validation(self) -> Option<&'s ValueValidation> {
        match self {
            SchemaNode::Whole(schema) => schema.value_validation.as_deref(),
            SchemaNode::Nested(schema) => Some(&schema.value_validation),
        }
    }

    fn items(self) -> Option<SchemaNode<'s>> {
        match self {
            SchemaNode::Whole(schema) => schema.items.as_deref().map(SchemaNode::Whole),
            SchemaNode::Nested(schema) => schema.items.as_deref().map(SchemaNode::Nested),
        }
    }

    fn property(self, name: &str) -> Option<SchemaNode<'s>> {
        match self {
            SchemaNode::Whole(schema) => schema.properties.get(name).map(SchemaNode::Whole),
            SchemaNode::Nested(schema) => schema.properties.get(name).map(SchemaNode::Nested),
        }
    }

    fn has_properties(self) -> bool {
        match self {
            SchemaNode::Whole(schema) => !schema.properties.is_empty(),
            SchemaNode::Nested(schema) => !schema.properties.is_empty(),
        }
    }

    fn other_fields(self) -> OtherFields<'s> {
        match self {
            SchemaNode::Whole(schema) => match &schema.additional_properties {
                None | Some(StructuralOrBool::Bool(true)) => OtherFields::Ignored,
                Some(StructuralOrBool::Bool(false)) => OtherFields::Forbidden,
                Some(StructuralOrBool::Structural(schema)) => OtherFields::Validated(SchemaNode::Whole(schema)),
            },
            SchemaNode::Nested(schema) if schema.forbids_additional_properties => OtherFields::Forbidden,
            SchemaNode::Nested(schema) => match &schema.additional_properties {
                None => OtherFields::Ignored,
                Some(schema) => OtherFields::Validated(SchemaNode::Nested(schema)),
            },
        }
    }
}

/// What validation found, and how much it matched: of several alternatives that fail, the one that matched most is told.
#[derive(Default)]
struct ValidationResult {
    faults: Vec<ValueError>,
    /// Of their texts.
    bytes: usize,
    /// Faults beyond [`FAULTS_BYTES_MAX`].
    untold: usize,
    matches: u64,
    reading: Reading,
    minor: Minor,
}

/// An error before it is one of a field.
struct ValueError {
    /// The place; `None` where Kubernetes does not say.
    place: Option<String>,
    message: String,
    kind: FaultKind,
}

enum FaultKind {
    Required,
    NotSupported { value: Value, supported: Vec<String> },
    TooLong { max: i64 },
    TooMany { actual: usize, max: i64 },
    Type { value: Value },
    Invalid { value: Value },
}

/// A point in the search for faults.
struct Mark {
    faults: usize,
    bytes: usize,
    untold: usize,
}

impl FaultKind {
    /// Of the texts and values that it quotes, about.
    fn bytes(&self) -> usize {
        match self {
            FaultKind::NotSupported { value, supported } => {
                value.as_str().map_or(8, str::len) + supported.iter().map(|text| text.len() + 24).sum::<usize>()
            }
            FaultKind::Type { value } | FaultKind::Invalid { value } => value.as_str().map_or(8, str::len),
            FaultKind::Required | FaultKind::TooLong { .. } | FaultKind::TooMany { .. } => 0,
        }
    }
}

impl ValidationResult {
    fn push(&mut self, fault: ValueError) {
        let bytes = fault.message.len() + fault.place.as_ref().map_or(0, String::len) + fault.kind.bytes();
        work::bytes(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        self.faults.push(fault);
    }

    /// Whether there is no room for another fault, which is then counted.
    fn is_full(&mut self) -> bool {
        let is_full = self.bytes >= FAULTS_BYTES_MAX;
        self.untold += usize::from(is_full);
        is_full
    }

    /// How much was found up to now.
    fn mark(&self) -> Mark {
        Mark { faults: self.faults.len(), bytes: self.bytes, untold: self.untold }
    }

    fn has_found_since(&self, mark: &Mark) -> bool {
        self.faults.len() > mark.faults || self.untold > mark.untold
    }

    fn forget_since(&mut self, mark: &Mark) {
        self.faults.truncate(mark.faults);
        (self.bytes, self.untold) = (mark.bytes, mark.untold);
    }

    fn fault(&mut self, place: &ValuePath<'_>, what: impl fmt::Display, kind: FaultKind) {
        if self.is_full() {
            return;
        }
        let place = place.to_string();
        let message = format!("{place} in body {what}");
        self.push(ValueError { place: Some(place), message, kind });
    }

    fn invalid(&mut self, place: &ValuePath<'_>, value: impl Into<Value>, what: impl fmt::Display) {
        self.fault(place, what, FaultKind::Invalid { value: value.into() });
    }

    /// `given` is the type or the text that was found instead.
    fn wrong_type(&mut self, place: &ValuePath<'_>, expected: impl fmt::Display, given: &str) {
        let what = format!("must be of type {expected}: {}", go_quote(given));
        self.fault(place, what, FaultKind::Type { value: given.into() });
    }

    fn placeless(&mut self, message: String) {
        if !self.is_full() {
            self.push(ValueError { place: None, message, kind: FaultKind::Invalid { value: "".into() } });
        }
    }

    fn is_valid(&self) -> bool {
        self.faults.is_empty() && self.untold == 0
    }

    fn merge(&mut self, mut other: ValidationResult) {
        self.faults.append(&mut other.faults);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.untold += other.untold;
        self.matches += other.matches;
    }

    /// Errors of the same message are one.
    fn into_errors(self, path: &Path<'_>) -> ErrorList {
        let mut seen = HashSet::new();
        let distinct = self.faults.into_iter().filter(|fault| seen.insert(fault.message.clone()));
        distinct.map(|fault| fault.into_error(path, self.minor)).collect()
    }
}

impl ValueError {
    fn into_error(self, path: &Path<'_>, minor: Minor) -> Error {
        let child;
        let path = match self.place.as_deref() {
            None | Some("" | ".") => path,
            Some(place) => {
                child = path.child(place.strip_prefix('.').unwrap_or(place));
                &child
            }
        };
        match self.kind {
            FaultKind::Required => Error::required(path, ""),
            FaultKind::NotSupported { value, supported } => {
                let supported: Vec<&str> = supported.iter().map(String::as_str).collect();
                Error::not_supported(path, value, &supported)
            }
            FaultKind::TooLong { max } => in_words_of(minor, Error::too_long(path, max), max),
            FaultKind::TooMany { actual, max } => {
                let error = Error::too_many(path, i64::try_from(actual).unwrap_or(i64::MAX), max);
                in_words_of(minor, error, max)
            }
            FaultKind::Type { value } => Error::type_invalid(path, value, self.message),
            FaultKind::Invalid { value } => Error::invalid(path, value, self.message),
        }
    }
}

/// The error that something is longer than `max`, as that version says it: the newest one tells one byte from several.
///
/// Source: `field.TooLong`, `field.TooMany` of apimachinery, releases 1.29 to 1.37.
fn in_words_of(minor: Minor, mut error: Error, max: i64) -> Error {
    if minor < Minor::of(32) && error.kind == ErrorType::TooLong {
        error.detail = format!("may not be longer than {max}");
    } else if minor < Minor::of(34) && max == 1 {
        error.detail.push('s');
    }
    error
}

/// Validates `value`; errors are forgiven if `correlated` tells that it did not change.
fn validate_value(
    place: &ValuePath<'_>,
    value: &Value,
    schema: SchemaNode<'_>,
    correlated: Option<&Correlated<'_>>,
    outcome: &mut ValidationResult,
) {
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
            if let Some(known) = Format::named(format) {
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
    // A format makes lists pass for texts here.
    let numeric = types.contains("number") || types.contains("integer");
    if fits || !format.is_empty() && text_or_list && !numeric {
        outcome.matches += 1;
        return;
    }
    outcome.wrong_type(place, types, type_);
}

/// Whether a double counts as an integer: nearly whole is enough, and 2^53 is too large.
fn is_whole(number: f64) -> bool {
    const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;
    if !(-WHOLE_MAX..=WHOLE_MAX).contains(&number) {
        return false;
    }
    let rounded = number.round();
    number == rounded || (rounded != 0.0 && (number - rounded).abs() < 1e-9 * rounded.abs())
}

fn check_junctors(place: &ValuePath<'_>, value: &Value, keywords: &ValueValidation, outcome: &mut ValidationResult) {
    let Some(junctors) = keywords.junctors.get() else { return };
    // Nothing is forgiven under a junctor.
    let reading = outcome.reading;
    let attempt = |schema: &NestedValueValidation| {
        let mut attempt = ValidationResult { reading, ..ValidationResult::default() };
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

/// Checks `anyOf`. Where no schema is valid, the errors of the one that matches best are told.
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

/// Only the first fault of a text is told.
fn check_text(place: &ValuePath<'_>, text: &str, keywords: &ValueValidation, outcome: &mut ValidationResult) {
    if let Some(bounds) = keywords.bounds.get()
        && (bounds.max_length.is_some() || bounds.min_length.is_some())
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

/// What a number is compared with: integers are compared as such unless the limit does not fit the schema's type.
enum NumberBound {
    /// The number and its limit.
    Int(i64, i64),
    /// The limit alone.
    Float(f64),
}

impl NumberBound {
    /// The number, the limit and how they compare; `data` is the number as a double.
    fn compare(self, data: f64) -> (Value, Value, Ordering) {
        match self {
            NumberBound::Int(number, limit) => (Value::Int(number), Value::Int(limit), number.cmp(&limit)),
            NumberBound::Float(limit) => {
                let order = data.partial_cmp(&limit).expect("JSON has no NaN");
                (Value::Float(data), Value::Float(limit), order)
            }
        }
    }
}

/// Since then it is told apart from its type that a number is beyond the range of it.
const TELLS_RANGES: Minor = Minor::of(36);

fn check_number(
    place: &ValuePath<'_>,
    value: &Value,
    type_: &str,
    format: &str,
    keywords: Option<&ValueValidation>,
    outcome: &mut ValidationResult,
) {
    let data = match value {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        _ => return,
    };
    let fits = match value {
        Value::Int(number) => type_ != "integer" || format != "int32" || i32::try_from(*number).is_ok(),
        _ => fits_type(data, type_, format),
    };
    if !fits && outcome.minor >= TELLS_RANGES {
        range_fault(place, "Checked", type_, format, outcome);
    }
    let Some(bounds) = keywords.and_then(|keywords| keywords.bounds.get()) else { return };
    let bound = |limit: f64, name: &str, outcome: &mut ValidationResult| {
        let fits = fits_type(limit, type_, format);
        if !fits {
            range_fault(place, name, type_, format, outcome);
        }
        match value {
            Value::Int(number) if fits => NumberBound::Int(*number, to_int(limit)),
            _ => NumberBound::Float(limit),
        }
    };

    if let Some(factor) = bounds.multiple_of {
        let factor = bound(factor, "MultipleOf", outcome);
        check_multiple(place, data, factor, outcome);
    }
    if let Some(min) = bounds.minimum {
        let or_equal = if bounds.exclusive_minimum { "" } else { " or equal to" };
        let (number, min, order) = bound(min, "Minimum boundary", outcome).compare(data);
        if order.is_lt() || order.is_eq() && bounds.exclusive_minimum {
            outcome.invalid(place, number, format_args!("should be greater than{or_equal} {}", plain(&min)));
        }
    }
    if let Some(max) = bounds.maximum {
        let or_equal = if bounds.exclusive_maximum { "" } else { " or equal to" };
        let (number, max, order) = bound(max, "Maximum boundary", outcome).compare(data);
        if order.is_gt() || order.is_eq() && bounds.exclusive_maximum {
            outcome.invalid(place, number, format_args!("should be less than{or_equal} {}", plain(&max)));
        }
    }
}

fn check_multiple(place: &ValuePath<'_>, data: f64, factor: NumberBound, outcome: &mut ValidationResult) {
    let (number, factor, positive, multiple) = match factor {
        NumberBound::Int(number, factor) => {
            (Value::Int(number), Value::Int(factor), factor > 0, factor > 0 && number % factor == 0)
        }
        NumberBound::Float(factor) => {
            let quotient = if factor < 1.0 { 1.0 / factor * data } else { data / factor };
            (Value::Float(data), Value::Float(factor), factor > 0.0, factor > 0.0 && is_whole(quotient))
        }
    };
    if !positive {
        let message = format!("factor MultipleOf declared for {place} must be positive: {}", plain(&factor));
        let kind = FaultKind::Invalid { value: factor };
        outcome.push(ValueError { place: Some(place.to_string()), message, kind });
    } else if !multiple {
        outcome.invalid(place, number, format_args!("should be a multiple of {}", plain(&factor)));
    }
}

fn range_fault(place: &ValuePath<'_>, name: &str, type_: &str, format: &str, outcome: &mut ValidationResult) {
    let format = match Format::effective(type_, format) {
        "" => " (default format)".to_owned(),
        format => format!(" with format {format}"),
    };
    outcome.placeless(format!("{name} value must be of type {type_}{format} in {place}"));
}

fn fits_type(number: f64, type_: &str, format: &str) -> bool {
    let within = |low: f64, end: f64| number.fract() == 0.0 && (low..end).contains(&number);
    match (type_, format) {
        ("integer", "int32") => within(-2_147_483_648.0, 2_147_483_648.0),
        // The reference reads the shortest text of the double, and that of the least integer is below it.
        ("integer", _) => {
            number != -9_223_372_036_854_775_808.0 && within(-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0)
        }
        ("number", "float") => (number as f32).is_finite(),
        _ => true,
    }
}

/// A double as an integer, as Go converts it: without its fraction, and the least integer when out of range.
fn to_int(number: f64) -> i64 {
    if fits_type(number.trunc(), "integer", "") { number as i64 } else { i64::MIN }
}

/// A number in a message.
fn plain(value: &Value) -> String {
    match value {
        Value::Float(number) => number::format_float_v(*number),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    }
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
    // Quadratic, which is why no definition may ask for it.
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

/// The text of the character that a number stands for in Go.
fn character(number: i64) -> Value {
    let char = u32::try_from(number).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
    Value::from(&*char.encode_utf8(&mut [0; 4]))
}

/// Whether `value` is `allowed` once Go has converted it to its type: doubles lose their fraction, integers become the
/// character that they number. Null is never the same.
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
    match schema.other_fields() {
        OtherFields::Ignored => {}
        OtherFields::Forbidden => {
            for name in fields.keys().filter(|name| schema.property(name).is_none()) {
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
            for (name, field) in fields.iter().filter(|(name, _)| schema.property(name).is_none()) {
                let correlated = ratchet::field(correlated, name, place.is_empty());
                validate_value(&ValuePath::Other(place, name), field, other, correlated.as_ref(), outcome);
            }
        }
    }
    if schema.has_properties() {
        for (name, field) in fields.iter() {
            let Some(property) = schema.property(name) else { continue };
            let correlated = ratchet::field(correlated, name, place.is_empty());
            validate_value(&ValuePath::Property(place, name), field, property, correlated.as_ref(), outcome);
        }
    }
    for name in keywords.into_iter().flat_map(|keywords| &keywords.required) {
        work::step();
        if !fields.contains_key(name) {
            outcome.fault(&ValuePath::Other(place, name), "is required", FaultKind::Required);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::{arbitrary, convert, json_schema};
    use crate::value::arbitrary::value;
    use crate::value::with_a_deep_stack;

    proptest! {
        #[test]
        fn an_update_has_no_errors_that_a_creation_has_not(
            new in value(), old in value(), schema in arbitrary::schema(),
        ) {
            let create = validate(&Path::ROOT, &new, &schema);
            for error in validate_update(&Path::ROOT, &new, &old, &schema).into_vec() {
                prop_assert!(create.contains(&error));
            }
        }
    }

    #[track_caller]
    fn check(schema: &str, value: &str, expected: &[&str]) {
        let (schema, value) = (json::decode(schema.as_bytes()).unwrap(), json::decode(value.as_bytes()).unwrap());
        let schema = convert::to_structural(&json_schema::decode(&schema).unwrap().0).unwrap();
        let errors: Vec<String> = validate(&Path::ROOT, &value, &schema).iter().map(Error::to_string).collect();
        assert_eq!(errors, expected);
    }

    #[test]
    fn a_fraction_for_an_integer_is_two_errors() {
        let expected = [
            r#"a: Invalid value: "number": a in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in a"#,
        ];
        check(r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#, r#"{"a":1.5}"#, &expected);
    }

    #[test]
    fn null_is_in_no_enum() {
        let expected = [r#"a: Unsupported value: null: supported values: "x""#];
        check(r#"{"properties":{"a":{"type":"string","nullable":true,"enum":["x"]}}}"#, r#"{"a":null}"#, &expected);
    }

    #[test]
    fn additional_properties_may_be_forbidden_under_a_junctor() {
        let expected = [
            r#"<nil>: Invalid value: "b": .b in body is a forbidden property"#,
            r#"<nil>: Invalid value: "": "" must validate all the schemas (allOf). None validated"#,
        ];
        check(
            r#"{"type":"object","allOf":[{"properties":{"a":{}},"additionalProperties":false}]}"#,
            r#"{"a":1,"b":1}"#,
            &expected,
        );
    }

    fn schema(text: &str) -> Structural {
        let schema = json::decode(text.as_bytes()).expect("the test is JSON");
        convert::to_structural(&json_schema::decode(&schema).expect("it is a schema").0).expect("it is structural")
    }

    /// Steps of validating a list of so many items, new and as an update that changes nothing, and bytes of the faults.
    fn steps(item: &str, items: Vec<Value>) -> (u64, usize) {
        let schema = schema(&format!(r#"{{"type":"array","items":{item}}}"#));
        let value = Value::Array(items);
        let (bytes, steps) = work::counted(|| {
            let errors = validate(&Path::ROOT, &value, &schema);
            assert!(validate_update(&Path::ROOT, &value, &value, &schema).is_empty());
            errors.iter().map(|error| error.to_string().len()).sum()
        });
        (steps, bytes)
    }

    #[test]
    fn ten_times_the_items_take_ten_times_the_steps() {
        let long = |count: usize| (0..count).map(|at| format!(r#""v{at}""#)).collect::<Vec<_>>().join(",");
        for (item, make) in [
            (r#"{"type":"string"}"#, &(|_| Value::Int(1)) as &dyn Fn(usize) -> Value),
            (r#"{"type":"object","required":["a","b"]}"#, &|_| Value::Object(Map::new())),
            (&format!(r#"{{"type":"string","enum":[{}]}}"#, long(5000)), &|at| format!("v{}", at % 5000).into()),
            (&format!(r#"{{"type":"string","enum":[{}]}}"#, long(5000)), &|at| format!("w{at}").into()),
            (r#"{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}"#, &|_| Value::Object(Map::new())),
        ] {
            let of = |count| steps(item, (0..count).map(make).collect());
            let (small, large) = (of(2000), of(20_000));
            assert!(large.0 < 13 * small.0 && large.1 < 2 * FAULTS_BYTES_MAX + (1 << 20), "{small:?} {large:?}");
        }
    }

    #[test]
    fn an_update_compares_each_part_of_a_deep_object_once() {
        let of = |depth: usize| {
            let open = r#"{"type":"object","required":["x"],"properties":{"x":{"type":"string"},"p":"#.repeat(depth);
            let schema = schema(&format!(r#"{open}{{"type":"object"}}{}"#, "}}".repeat(depth)));
            let value = (0..depth).fold(Value::Object(Map::new()), |inner, _| crate::object! { "p" => inner });
            let errors = || validate_update(&Path::ROOT, &value, &value, &schema).len();
            let (count, steps) = work::counted(errors);
            assert_eq!(count, 0);
            steps
        };
        // The paths of what is forgiven are longer, too.
        with_a_deep_stack(move || assert!(of(150) < 25 * of(15), "{} {}", of(15), of(150)));
    }
}
