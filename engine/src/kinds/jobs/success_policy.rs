//! When an indexed job has succeeded.
//!
//! Source: `validateSuccessPolicy` of Kubernetes 1.37.

use super::indexes;
use crate::kinds::checks;
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;

const RULES_MAX: i64 = 20;
const INDEXES_BYTES_MAX: i64 = 64 << 10;

/// The errors of the policy of an indexed job's spec.
pub fn validate(spec: &FieldRef<'_>, policy: &FieldRef<'_>) -> ErrorList {
    let rules = policy.field("rules");
    let mut errors = ErrorList::new();
    if rules.is_empty() {
        errors.push(rules.required("at least one rules must be specified when the successPolicy is specified"));
    }
    if i64::try_from(rules.len()).is_ok_and(|count| count > RULES_MAX) {
        errors.push(rules.too_many(RULES_MAX));
    }
    let completions = spec.field("completions").int();
    for rule in rules.items() {
        errors.extend(validate_rule(&rule, completions));
    }
    errors
}

fn validate_rule(rule: &FieldRef<'_>, completions: i64) -> ErrorList {
    let mut errors = ErrorList::new();
    let (count, listed) = (rule.field("succeededCount"), rule.field("succeededIndexes"));
    if !count.is_set() && !listed.is_set() {
        errors.push(rule.required("at least one of succeededCount or succeededIndexes must be specified"));
    }
    let mut total = 0;
    if listed.is_set() {
        if i64::try_from(listed.text().len()).is_ok_and(|bytes| bytes > INDEXES_BYTES_MAX) {
            errors.push(listed.too_long(INDEXES_BYTES_MAX));
        }
        match indexes::count(listed.text(), completions) {
            Ok(count) => total = count,
            Err(error) => errors.push(listed.invalid(format!("error parsing succeededIndexes: {error}"))),
        }
    }
    if !count.is_set() {
        return errors;
    }
    errors.extend(checks::not_negative(&count));
    if count.int() > completions {
        let why = format!("must be less than or equal to {completions} (the number of specified completions)");
        errors.push(count.invalid(why));
    }
    if listed.is_set() && count.int() > total {
        let why = format!(
            "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.push(count.invalid(why));
    }
    errors
}
