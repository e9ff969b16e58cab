//! Numbers: their limits, and the ranges of their types.

use std::cmp::Ordering;

use super::super::format::Format;
use super::super::structural::ValueValidation;
use super::node::ValuePath;
use super::outcome::{FaultKind, ValidationResult, ValueError};
use crate::meta::minor::Minor;
use crate::value::{Value, number};

/// Whether a double counts as an integer: nearly whole is enough, and 2^53 is too large.
pub(super) fn is_whole(number: f64) -> bool {
    const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;
    if !(-WHOLE_MAX..=WHOLE_MAX).contains(&number) {
        return false;
    }
    let rounded = number.round();
    number == rounded || (rounded != 0.0 && (number - rounded).abs() < 1e-9 * rounded.abs())
}

/// What a number is compared with: integers are compared as such unless the limit does not fit the schema's type.
pub(super) enum NumberBound {
    /// The number and its limit.
    Int(i64, i64),
    /// The limit alone.
    Float(f64),
}

impl NumberBound {
    /// The number, the limit and how they compare; `data` is the number as a double.
    pub(super) fn compare(self, data: f64) -> (Value, Value, Ordering) {
        match self {
            NumberBound::Int(number, limit) => (Value::Int(number), Value::Int(limit), number.cmp(&limit)),
            NumberBound::Float(limit) => {
                let order = data.partial_cmp(&limit).expect("JSON has no NaN");
                (Value::Float(data), Value::Float(limit), order)
            }
        }
    }
}

/// The version of Kubernetes since which the error for a number beyond the range of its type differs from that of a
/// wrong type.
pub(super) const TELLS_RANGES: Minor = Minor::of(36);

pub(super) fn check_number(
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

pub(super) fn check_multiple(place: &ValuePath<'_>, data: f64, factor: NumberBound, outcome: &mut ValidationResult) {
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

pub(super) fn range_fault(
    place: &ValuePath<'_>,
    name: &str,
    type_: &str,
    format: &str,
    outcome: &mut ValidationResult,
) {
    let format = match Format::effective(type_, format) {
        "" => " (default format)".to_owned(),
        format => format!(" with format {format}"),
    };
    outcome.placeless(format!("{name} value must be of type {type_}{format} in {place}"));
}

pub(super) fn fits_type(number: f64, type_: &str, format: &str) -> bool {
    let within = |low: f64, end: f64| number.fract() == 0.0 && (low..end).contains(&number);
    match (type_, format) {
        ("integer", "int32") => within(-2_147_483_648.0, 2_147_483_648.0),
        // The reference parses the shortest text of the double, and for the least integer that is below the integer's
        // range.
        ("integer", _) => {
            number != -9_223_372_036_854_775_808.0 && within(-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0)
        }
        ("number", "float") => (number as f32).is_finite(),
        _ => true,
    }
}

/// A double as an integer, as Go converts it: without its fraction, and the least integer when out of range.
pub(super) fn to_int(number: f64) -> i64 {
    if fits_type(number.trunc(), "integer", "") { number as i64 } else { i64::MIN }
}

/// A number in a message.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Float(number) => number::format_float_v(*number),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    }
}
