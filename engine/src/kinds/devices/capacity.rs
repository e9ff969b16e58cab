//! The capacity of a device, and the rules for requesting parts of it.

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::quantity::Quantity;
use crate::value::Value;

use super::set;

const VALUES_MAX: usize = 10;

/// A `DeviceCapacity`; parts are for devices that several claims share.
pub fn validate(capacity: &FieldRef<'_>, is_shared: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let policy = capacity.field("requestPolicy");
    if !policy.is_set() {
        return errors;
    }
    if !is_shared {
        errors.push(policy.forbidden("allowMultipleAllocations must be true"));
        return errors;
    }
    let (values, range, default) = (policy.field("validValues"), policy.field("validRange"), policy.field("default"));
    let whole = quantity(&capacity.field("value"));
    let (parts, name) = match (!values.is_empty(), range.is_set()) {
        (true, true) => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
            errors.push(policy.forbidden(why));
            return errors;
        }
        (true, false) => (validate_values as CapacityCheck, &values),
        (false, true) => (validate_range as CapacityCheck, &range),
        (false, false) => return errors,
    };
    if !default.is_set() {
        let which = if range.is_set() { "validRange" } else { "validValues" };
        errors.push(default.required(format!("required when {which} is defined")));
        return errors;
    }
    if let (Some(whole), Some(default)) = (whole, quantity(&default)) {
        errors.extend(parts(name, &default, &whole));
    }
    errors
}

type CapacityCheck = fn(&FieldRef<'_>, &Quantity, &Quantity) -> ErrorList;

fn quantity(field: &FieldRef<'_>) -> Option<Quantity> {
    Quantity::parse(field.text()).ok()
}

fn invalid(field: &FieldRef<'_>, value: &Quantity, why: String) -> Error {
    Error::invalid(field.path(), value.to_string(), why)
}

fn validate_values(values: &FieldRef<'_>, default: &Quantity, whole: &Quantity) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut before: Option<Quantity> = None;
    for value in values.items() {
        let Some(own) = quantity(&value) else { continue };
        if before.is_some_and(|before| before > own) {
            errors.push(invalid(&value, &own, "values must be sorted in ascending order".to_owned()));
        }
        before = Some(own);
    }
    let key = |value: &Value| {
        let whole = Quantity::parse(value.as_str().unwrap_or_default()).ok().and_then(|value| value.as_i64());
        whole.unwrap_or_default().to_string()
    };
    errors.extend(set(values, VALUES_MAX, key, |value| {
        let too_large = quantity(value).filter(|own| own > whole);
        let told = |own: Quantity| invalid(value, &own, format!("option is larger than capacity value: {whole}"));
        too_large.map(told).into_iter().collect()
    }));
    if values.len() > VALUES_MAX || !values.items().any(|value| quantity(&value).as_ref() == Some(default)) {
        errors.push(invalid(values, default, "default value is not valid according to the requestPolicy".to_owned()));
    }
    errors
}

fn validate_range(range: &FieldRef<'_>, default: &Quantity, whole: &Quantity) -> ErrorList {
    let mut errors = ErrorList::new();
    let (min_field, max_field, step_field) = (range.field("min"), range.field("max"), range.field("step"));
    let Some(min) = quantity(&min_field) else {
        errors.push(min_field.required("required when validRange is defined"));
        return errors;
    };
    if min > *whole {
        errors.push(invalid(&min_field, &min, format!("min is larger than capacity value: {whole}")));
    }
    if *default < min {
        errors.push(invalid(&min_field, default, format!("default is less than min: {min}")));
    }
    let max = quantity(&max_field);
    if let Some(max) = &max {
        if min > *max {
            errors.push(invalid(&max_field, &min, format!("min is larger than max: {max}")));
        }
        if max > whole {
            errors.push(invalid(&max_field, max, format!("max is larger than capacity value: {whole}")));
        }
        if default > max {
            errors.push(invalid(&max_field, default, format!("default is more than max: {max}")));
        }
    }
    if let Some(step) = quantity(&step_field) {
        errors.extend(validate_step(&step_field, &step, &min, whole));
        for value in [Some(default), max.as_ref()].into_iter().flatten() {
            errors.extend(validate_multiple(&step_field, value, &min, &step));
        }
    }
    errors
}

fn validate_step(field: &FieldRef<'_>, step: &Quantity, min: &Quantity, whole: &Quantity) -> Option<Error> {
    let one = min.add(step).ok()?;
    (one > *whole).then(|| invalid(field, step, format!("one step {one} is larger than capacity value: {whole}")))
}

fn validate_multiple(field: &FieldRef<'_>, value: &Quantity, min: &Quantity, step: &Quantity) -> Option<Error> {
    let number = |quantity: &Quantity| quantity.as_i64().unwrap_or_default();
    let rest = number(value).wrapping_sub(number(min)).checked_rem(number(step)).unwrap_or_default();
    let why = || format!("value is not a multiple of a given step ({step}) from ({min})");
    (rest != 0).then(|| invalid(field, value, why()))
}
