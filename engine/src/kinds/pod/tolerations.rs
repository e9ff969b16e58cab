//! Validation of the taints of nodes that a pod tolerates.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use super::PodValidationOptions;
use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::go_quote;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The tolerations of a pod, or of a runtime class.
pub fn validate(tolerations: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    for toleration in tolerations.items() {
        let [key, operator, value, effect] = ["key", "operator", "value", "effect"].map(|name| toleration.field(name));
        if !key.is_empty() {
            errors.extend(checks::named(&key, names::is_qualified_name));
        } else if operator.text() != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(operator.invalid_as_json(why));
        }
        if toleration.field("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            errors.push(effect.invalid_as_json("effect must be 'NoExecute' when `tolerationSeconds` is set"));
        }
        errors.extend(validate_operator(&operator, &value, options));
        if !effect.is_empty() {
            errors.extend(checks::one_of(&effect, &EFFECTS));
        }
    }
    errors
}

/// How the value is compared; an empty operator means `Equal`. Errors of a text are reported at the operator.
fn validate_operator(operator: &FieldRef<'_>, value: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let refuse = |why: String| Error::invalid(operator.path(), value.text(), why);
    match operator.text() {
        "Equal" | "" => {
            let faults = names::is_valid_label_value(value.text());
            (!faults.is_empty()).then(|| refuse(faults.join(";"))).into_iter().collect()
        }
        "Exists" => {
            let why = "value must be empty when `operator` is 'Exists'";
            (!value.is_empty()).then(|| refuse(why.to_owned())).into_iter().collect()
        }
        "Lt" | "Gt" if options.allow_taint_toleration_comparison_operators => validate_number(value),
        "Lt" | "Gt" => [operator.not_supported(&["Equal", "Exists", "Lt", "Gt"])].into_iter().collect(),
        _ => [operator.not_supported(&["Equal", "Exists"])].into_iter().collect(),
    }
}

/// A whole number as people write it.
fn validate_number(value: &FieldRef<'_>) -> ErrorList {
    let text = value.text();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_canonical = text == "0"
        || digits.starts_with(|first: char| matches!(first, '1'..='9'))
            && digits.bytes().all(|byte| byte.is_ascii_digit());
    let mut errors = ErrorList::new();
    let invalid = |why: String| Error::invalid(value.path(), text, why);
    if text.is_empty() {
        errors.push(invalid("must be non-empty".to_owned()));
    } else if !is_canonical {
        errors.push(invalid("must be a valid decimal integer in canonical form".to_owned()));
    }
    if text.parse::<i64>().is_err() {
        let why = if is_canonical { "value out of range" } else { "invalid syntax" };
        errors.push(invalid(format!("strconv.ParseInt: parsing {}: {why}", go_quote(text))));
    }
    errors
}
