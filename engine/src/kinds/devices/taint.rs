//! Taints of devices, and what tolerates them.

use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

use super::labels;

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// A taint; an effect that is as it was in `old` stays.
pub fn taint(field: &FieldRef<'_>, old: Option<&Value>) -> ErrorList {
    let mut errors = labels(&field.field("key"));
    let value = field.field("value");
    errors.extend(label_value(&value));
    let effect = field.field("effect");
    if old.is_some_and(|old| old.str_at(&["effect"]) == effect.text()) {
        return errors;
    }
    if effect.text().is_empty() {
        errors.push(effect.required(""));
    } else if !EFFECTS.contains(&effect.text()) {
        errors.push(effect.not_supported(&EFFECTS));
    }
    errors
}

pub fn toleration(field: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (key, value, operator, effect) =
        (field.field("key"), field.field("value"), field.field("operator"), field.field("effect"));
    if !key.text().is_empty() {
        errors.extend(labels(&key));
    }
    match operator.text() {
        "Exists" if value.text().is_empty() => {}
        "Exists" => errors.push(value.invalid("must be empty for operator `Exists`")),
        "Equal" => errors.extend(label_value(&value)),
        "" => errors.push(operator.required("")),
        _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
    }
    if !effect.text().is_empty() && !EFFECTS.contains(&effect.text()) {
        errors.push(effect.not_supported(&EFFECTS));
    }
    errors
}

fn label_value(value: &FieldRef<'_>) -> ErrorList {
    names::is_valid_label_value(value.text()).into_iter().map(|fault| value.invalid(fault)).collect()
}

/// Sets since when a taint is there.
pub fn set_time(taint: &mut Value, now: &str) {
    let time = taint.make_object().entry("timeAdded");
    if time.is_null() {
        *time = Value::from(now);
    }
}
