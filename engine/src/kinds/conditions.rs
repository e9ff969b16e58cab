//! Conditions in a status, as `meta.k8s.io` has them for all kinds.
//!
//! Source: `ValidateConditions` of apimachinery 1.37.

use std::collections::HashSet;

use super::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;

const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const REASON_BYTES_MAX: i64 = 1024;
const MESSAGE_BYTES_MAX: i64 = 32 << 10;

const NO_REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
                         alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. \
                         'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used \
                         for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// The errors of a list of conditions.
pub fn validate(conditions: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for condition in conditions.items() {
        let type_ = condition.value().map(|condition| condition.str_at(&["type"])).unwrap_or_default();
        if !seen.insert(type_) {
            errors.push(Error::duplicate(&condition.path().child("type"), type_));
        }
        errors.extend(validate_one(&condition));
    }
    errors
}

fn validate_one(condition: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::named(&condition.field("type"), names::is_qualified_name);
    errors.extend(checks::one_of(&condition.field("status"), &STATUSES));
    let generation = condition.field("observedGeneration");
    if generation.int() < 0 {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
    let time = condition.field("lastTransitionTime");
    if !time.is_set() {
        errors.push(time.required(""));
    }
    errors.extend(validate_reason(&condition.field("reason")));
    errors.extend(too_long(&condition.field("message"), MESSAGE_BYTES_MAX));
    errors
}

fn validate_reason(reason: &FieldRef<'_>) -> Vec<Error> {
    if reason.is_empty() {
        return vec![reason.required("")];
    }
    let odd = (!is_reason(reason.text())).then(|| reason.invalid(NO_REASON));
    odd.into_iter().chain(too_long(reason, REASON_BYTES_MAX)).collect()
}

fn too_long(field: &FieldRef<'_>, bytes_max: i64) -> Option<Error> {
    let bytes = i64::try_from(field.text().len()).unwrap_or(i64::MAX);
    (bytes > bytes_max).then(|| field.too_long(bytes_max))
}

fn is_reason(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(is_word)
        && bytes.iter().all(|byte| is_word(byte) || matches!(byte, b',' | b':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::json;

    #[test]
    fn every_field_of_a_condition_is_looked_at() {
        let text = r#"[{"type":"a","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"It_Is:So"},
            {"type":"a","status":"x","observedGeneration":-1,"reason":"1"}]"#;
        let conditions = json::decode(text.as_bytes()).expect("the test is JSON");
        let path = crate::meta::field::Path::new("c");
        let texts: Vec<_> =
            validate(&FieldRef::new(Some(&conditions), path)).into_vec().iter().map(Error::to_string).collect();
        let expected = [
            "c[1].type: Duplicate value: \"a\"".to_owned(),
            "c[1].status: Unsupported value: \"x\": supported values: \"False\", \"True\", \"Unknown\"".to_owned(),
            "c[1].observedGeneration: Invalid value: -1: must be greater than or equal to zero".to_owned(),
            "c[1].lastTransitionTime: Required value".to_owned(),
            format!("c[1].reason: Invalid value: \"1\": {NO_REASON}"),
        ];
        assert_eq!(texts, expected);
    }
}
