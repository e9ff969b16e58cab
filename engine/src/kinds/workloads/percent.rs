//! Amounts that are a number or a percentage: `3`, `25%`.
//!
//! Source: `pkg/apis/apps/validation` of Kubernetes 1.37.

use crate::kinds::checks;
use crate::meta::field::Error;
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

const NO_PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                          regex used for validation is '[0-9]+%')";

/// Checks that a number is not negative, or that a text is a percentage.
pub fn validate(field: &FieldRef<'_>) -> Option<Error> {
    match field.value() {
        Some(Value::String(text)) => digits(text).is_none().then(|| field.invalid_as_json(NO_PERCENT)),
        Some(Value::Int(_)) => checks::not_negative(field),
        // An absent amount is 0.
        _ => None,
    }
}

/// Checks that a percentage is not greater than 100.
pub fn not_above_all(field: &FieldRef<'_>) -> Option<Error> {
    let percentage = digits(field.text()).map(number);
    percentage.is_some_and(|value| value > 100).then(|| shown(field, "must not be greater than 100%"))
}

/// The number before the `%`, or the number itself; 0 for a text that is neither.
pub fn amount(field: &FieldRef<'_>) -> i64 {
    match field.value() {
        Some(Value::String(text)) => digits(text).map_or_else(|| number(text), number),
        _ => field.int(),
    }
}

/// The error that shows the amount, which is 0 if it is absent.
pub fn shown(field: &FieldRef<'_>, detail: &str) -> Error {
    let value = field.value().cloned().unwrap_or(Value::Int(0));
    Error::invalid(field.path(), value, detail)
}

/// The digits of a percentage.
fn digits(text: &str) -> Option<&str> {
    let digits = text.strip_suffix('%')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

/// The number that Go's `Atoi` returns if its error is ignored: one that is too large becomes the largest.
fn number(text: &str) -> i64 {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return 0;
    }
    let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    text.parse().unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: impl Into<Value>, valid: &str, all: &str, expected: i64) {
        let value = value.into();
        let field = FieldRef::root(&value);
        let text = |error: Option<Error>| error.map(|error| error.body()).unwrap_or_default();
        assert_eq!((text(validate(&field)).as_str(), text(not_above_all(&field)).as_str()), (valid, all));
        assert_eq!(amount(&field), expected);
    }

    #[test]
    fn an_amount_is_a_number_or_a_percentage() {
        check(3, "", "", 3);
        check(-3, "Invalid value: -3: must be greater than or equal to 0", "", -3);
        check("25%", "", "", 25);
        check("101%", "", "Invalid value: \"101%\": must not be greater than 100%", 101);
        check("7", &format!("Invalid value: \"7\": {NO_PERCENT}"), "", 7);
        check("-1%", &format!("Invalid value: \"-1%\": {NO_PERCENT}"), "", 0);
        check("%", &format!("Invalid value: \"%\": {NO_PERCENT}"), "", 0);
    }
}
