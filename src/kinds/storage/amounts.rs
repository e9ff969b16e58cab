//! Amounts of storage.

use crate::meta::field::Error;
use crate::meta::field_ref::FieldRef;
use crate::meta::quantity::Quantity;
use crate::value::{Map, Value};
use crate::work;

/// The amount at a field; zero if there is none.
pub fn of(field: &FieldRef<'_>) -> Quantity {
    Quantity::parse(field.text()).unwrap_or_else(|_| Quantity::from_i64(0))
}

/// An amount of whole bytes that fit into 64 bits must not be negative.
pub fn basic(field: &FieldRef<'_>) -> Option<Error> {
    let bytes = of(field).value();
    (bytes < 0).then(|| Error::invalid(field.path(), bytes, "must be a valid resource quantity"))
}

/// An amount must be above zero.
pub fn positive(field: &FieldRef<'_>) -> Option<Error> {
    (of(field).signum() <= 0).then(|| field.invalid("must be greater than zero"))
}

/// An amount must not be below zero.
pub fn not_negative(field: &FieldRef<'_>) -> Option<Error> {
    (of(field).signum() < 0).then(|| field.invalid("must be greater than or equal to 0"))
}

/// Rounds the amounts of a list up to thousandths, as Kubernetes holds resources.
pub fn round_list(object: &mut Value, name: &str) {
    let list = object.get_mut(name).and_then(Value::as_object_mut);
    for amount in list.into_iter().flat_map(Map::values_mut) {
        work::step();
        if let Ok(quantity) = Quantity::parse(amount.as_str().unwrap_or_default()) {
            *amount = Value::String(quantity.round_up_to_milli().to_string());
        }
    }
}
