//! What is known about a value, and about the results of functions.

use std::rc::Rc;

use crate::cel::ast::{Constant, operators};
use crate::crd::validate::expressions::SchemaStep;
use crate::schema::structural::{Structural, ValueValidation};
use crate::value::Value;

/// Integers up to this one are exact as bounds, which are floating-point numbers.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The path of a field, starting with a variable.
pub(super) type FieldPath = Vec<String>;

/// What is known about a value.
#[derive(Clone, Debug)]
pub(super) enum KnownValue<'s> {
    Nothing,
    Null,
    Truth(Truth),
    /// An integer between both ends, inclusive.
    Int {
        min: i128,
        max: i128,
    },
    Double {
        min: f64,
        max: f64,
    },
    Text(TextLength),
    /// An object, a list or a map.
    Node(Rc<SchemaCursor<'s>>),
    /// The elements of a list literal.
    List(Rc<Vec<KnownValue<'s>>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Truth {
    pub(super) may_hold: bool,
    pub(super) may_fail: bool,
}

impl Truth {
    pub(super) const EITHER: Truth = Truth { may_hold: true, may_fail: true };
    pub(super) const NEITHER: Truth = Truth { may_hold: false, may_fail: false };

    pub(super) fn of(truth: bool) -> Truth {
        Truth { may_hold: truth, may_fail: !truth }
    }

    pub(super) fn may_be(self, truth: bool) -> bool {
        if truth { self.may_hold } else { self.may_fail }
    }

    pub(super) fn not(self) -> Truth {
        Truth { may_hold: self.may_fail, may_fail: self.may_hold }
    }
}

/// A string, by its length in characters.
#[derive(Clone, Debug)]
pub(super) struct TextLength {
    pub(super) length_min: i128,
    pub(super) length_max: i128,
    /// All possible values, if they are known.
    pub(super) options: Option<Rc<Vec<String>>>,
}

#[derive(Debug)]
pub(super) struct SchemaCursor<'s> {
    pub(super) schema: &'s Structural,
    pub(super) is_resource: bool,
    pub(super) access: ValueAccess,
}

/// The path of a value: in expressions, and in the schema.
#[derive(Clone, Debug)]
pub(super) struct ValueAccess {
    pub(super) path: FieldPath,
    pub(super) steps: Vec<SchemaStep>,
}

impl ValueAccess {
    pub(super) fn below(&self, field: &str, step: SchemaStep) -> ValueAccess {
        let mut below = self.clone();
        below.path.push(field.to_owned());
        below.steps.push(step);
        below
    }
}

pub(super) fn constant_value<'s>(constant: &Constant) -> KnownValue<'s> {
    match constant {
        Constant::Null => KnownValue::Null,
        Constant::Bool(truth) => KnownValue::Truth(Truth::of(*truth)),
        Constant::Int(number) => KnownValue::Int { min: i128::from(*number), max: i128::from(*number) },
        Constant::String(text) => {
            let length = text.chars().count() as i128;
            KnownValue::Text(TextLength {
                length_min: length,
                length_max: length,
                options: Some(Rc::new(vec![text.clone()])),
            })
        }
        Constant::Double(number) if !number.is_nan() => KnownValue::Double { min: *number, max: *number },
        _ => KnownValue::Nothing,
    }
}

pub(super) fn integers<'s>(values: &ValueValidation) -> KnownValue<'s> {
    let exact = |bound: Option<f64>| bound.filter(|bound| bound.abs() <= EXACT_MAX);
    let min = exact(values.bounds.minimum).map_or(i128::from(i64::MIN), |min| {
        let above = values.bounds.exclusive_minimum && min.fract() == 0.0;
        min.ceil() as i128 + i128::from(above)
    });
    let max = exact(values.bounds.maximum).map_or(i128::from(i64::MAX), |max| {
        let below = values.bounds.exclusive_maximum && max.fract() == 0.0;
        max.floor() as i128 - i128::from(below)
    });
    let options: Option<Vec<i64>> = values.enum_.iter().map(Value::as_i64).collect();
    match options.filter(|options| !options.is_empty()) {
        Some(options) => {
            let least = options.iter().copied().min().map_or(min, i128::from);
            let most = options.iter().copied().max().map_or(max, i128::from);
            KnownValue::Int { min: min.max(least), max: max.min(most) }
        }
        None => KnownValue::Int { min, max },
    }
}

pub(super) fn text(values: &ValueValidation) -> TextLength {
    let options: Option<Vec<String>> = values.enum_.iter().map(|value| value.as_str().map(str::to_owned)).collect();
    TextLength {
        length_min: values.bounds.min_length.map_or(0, i128::from),
        length_max: values.bounds.max_length.map_or(i128::MAX, i128::from),
        options: options.filter(|options| !options.is_empty()).map(Rc::new),
    }
}

/// The minimum and the maximum number of elements or characters.
pub(super) fn size(known: &KnownValue<'_>) -> Option<(i128, i128)> {
    match known {
        KnownValue::Text(text) => Some((text.length_min.max(0), text.length_max)),
        KnownValue::List(elements) => Some((elements.len() as i128, elements.len() as i128)),
        KnownValue::Node(node) => {
            let values = node.schema.value_validation.as_deref();
            let (min, max) = match node.schema.generic.type_.as_str() {
                "array" => (
                    values.and_then(|values| values.bounds.min_items),
                    values.and_then(|values| values.bounds.max_items),
                ),
                _ => (
                    values.and_then(|values| values.bounds.min_properties),
                    values.and_then(|values| values.bounds.max_properties),
                ),
            };
            Some((min.map_or(0, i128::from).max(0), max.map_or(i128::MAX, i128::from)))
        }
        _ => None,
    }
}

/// The result of a strict function, and whether it may end in an error; `None` if nothing is known about it.
pub(super) fn apply<'s>(function: &str, arguments: &[&KnownValue<'s>]) -> Option<(KnownValue<'s>, bool)> {
    let truth = |truth: Truth| Some((KnownValue::Truth(truth), false));
    match (function, arguments) {
        (operators::EQUALS, [left, right]) => truth(equal(left, right)),
        (operators::NOT_EQUALS, [left, right]) => truth(equal(left, right).not()),
        (operators::LESS, [left, right]) => less(left, right).and_then(truth),
        (operators::GREATER, [left, right]) => less(right, left).and_then(truth),
        (operators::LESS_EQUALS, [left, right]) => less(right, left).and_then(|less| truth(less.not())),
        (operators::GREATER_EQUALS, [left, right]) => less(left, right).and_then(|less| truth(less.not())),
        (operators::IN, [value, KnownValue::List(elements)]) => truth(is_among(value, elements)),
        (operators::IN, [_, KnownValue::Node(_)]) => truth(Truth::EITHER),
        ("size", [of]) => {
            let (min, max) = size(of)?;
            Some((KnownValue::Int { min, max: max.min(i128::from(i64::MAX)) }, false))
        }
        (operators::NEGATE, [KnownValue::Int { min, max }]) => Some(integer(-max, -min)),
        (_, [KnownValue::Int { min, max }, KnownValue::Int { min: other_min, max: other_max }]) => match function {
            operators::ADD => Some(integer(min + other_min, max + other_max)),
            operators::SUBTRACT => Some(integer(min - other_max, max - other_min)),
            operators::MULTIPLY => {
                // Neither is larger than 2^63, so no product overflows.
                let corners = [min * other_min, min * other_max, max * other_min, max * other_max];
                let least = corners.iter().copied().min().unwrap_or(i128::MIN);
                Some(integer(least, corners.iter().copied().max().unwrap_or(i128::MAX)))
            }
            _ => None,
        },
        _ => None,
    }
}

/// An integer between these bounds, and whether the result may exceed 64 bits, which is an error.
pub(super) fn integer<'s>(min: i128, max: i128) -> (KnownValue<'s>, bool) {
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    (KnownValue::Int { min: min.clamp(least, most), max: max.clamp(least, most) }, min < least || max > most)
}

/// A number as a range of floating-point numbers, if that is exact.
pub(super) fn range(known: &KnownValue<'_>) -> Option<(f64, f64)> {
    match known {
        KnownValue::Double { min, max } => Some((*min, *max)),
        KnownValue::Int { min, max } => {
            let (min, max) = (*min as f64, *max as f64);
            (min.abs() <= EXACT_MAX && max.abs() <= EXACT_MAX).then_some((min, max))
        }
        _ => None,
    }
}

fn less(left: &KnownValue<'_>, right: &KnownValue<'_>) -> Option<Truth> {
    if let (KnownValue::Int { min, max }, KnownValue::Int { min: other_min, max: other_max }) = (left, right) {
        return Some(Truth { may_hold: min < other_max, may_fail: max >= other_min });
    }
    let ((min, max), (other_min, other_max)) = (range(left)?, range(right)?);
    Some(Truth { may_hold: min < other_max, may_fail: max >= other_min })
}

fn equal(left: &KnownValue<'_>, right: &KnownValue<'_>) -> Truth {
    match (left, right) {
        (KnownValue::Nothing, _) | (_, KnownValue::Nothing) => Truth::EITHER,
        (KnownValue::Null, KnownValue::Null) => Truth::of(true),
        // A value that may be null is never `Null` here: nothing is known about it.
        (KnownValue::Null, _) | (_, KnownValue::Null) => Truth::of(false),
        (KnownValue::Truth(left), KnownValue::Truth(right)) => Truth {
            may_hold: (left.may_hold && right.may_hold) || (left.may_fail && right.may_fail),
            may_fail: (left.may_hold && right.may_fail) || (left.may_fail && right.may_hold),
        },
        (KnownValue::Text(left), KnownValue::Text(right)) => equal_texts(left, right),
        _ => match (less(left, right), less(right, left)) {
            (Some(below), Some(above)) => {
                Truth { may_hold: below.may_fail && above.may_fail, may_fail: below.may_hold || above.may_hold }
            }
            _ => Truth::EITHER,
        },
    }
}

fn equal_texts(left: &TextLength, right: &TextLength) -> Truth {
    if let (Some(left), Some(right)) = (&left.options, &right.options) {
        return Truth {
            may_hold: left.iter().any(|option| right.contains(option)),
            may_fail: left.len() > 1 || right.len() > 1 || left != right,
        };
    }
    let overlap = left.length_min <= right.length_max && right.length_min <= left.length_max;
    Truth { may_hold: overlap, may_fail: true }
}

fn is_among(value: &KnownValue<'_>, elements: &[KnownValue<'_>]) -> Truth {
    let each: Vec<Truth> = elements.iter().map(|element| equal(value, element)).collect();
    let truth =
        Truth { may_hold: each.iter().any(|equal| equal.may_hold), may_fail: each.iter().all(|equal| equal.may_fail) };
    // If all possible values are in the list, so is the value.
    let KnownValue::Text(TextLength { options: Some(options), .. }) = value else { return truth };
    let is_there = |option: &String| {
        elements.iter().any(|element| match element {
            KnownValue::Text(TextLength { options: Some(only), .. }) => only.as_slice() == std::slice::from_ref(option),
            _ => false,
        })
    };
    Truth { may_fail: truth.may_fail && !options.iter().all(is_there), ..truth }
}

/// What is known about a value that is one of the two.
pub(super) fn joined<'s>(left: &KnownValue<'s>, right: &KnownValue<'s>) -> KnownValue<'s> {
    match (left, right) {
        (KnownValue::Truth(left), KnownValue::Truth(right)) => KnownValue::Truth(Truth {
            may_hold: left.may_hold || right.may_hold,
            may_fail: left.may_fail || right.may_fail,
        }),
        (KnownValue::Int { min, max }, KnownValue::Int { min: other_min, max: other_max }) => {
            KnownValue::Int { min: *min.min(other_min), max: *max.max(other_max) }
        }
        _ => KnownValue::Nothing,
    }
}
