//! The Rust values for fields of published types that have a Rust struct.
//!
//! Input: a value that [`Message::check`] accepts, or its fields in Rust. Output: the other. Such a struct only says
//! where each field is kept: its Go name, its type, and whether its zero is written come from the published type.

use std::sync::Arc;

use super::Message;
use crate::value::{Map, Value};
use crate::work;

/// How empty lists and maps that were given are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenEmpty {
    /// They are omitted, as in the API.
    LeftOut,
    /// They are written, as Go distinguishes them from absent ones.
    Written,
}

/// The Rust type of a field's value.
pub trait FieldValue: Sized {
    /// Reads it. [`Message::check`] must have accepted the value: the result for a value of the wrong type has no
    /// meaning.
    fn read(value: &Value) -> Self;

    /// Whether there is nothing to write.
    fn is_empty(&self) -> bool;

    /// The value in JSON.
    fn write(&self, given_empty: GivenEmpty) -> Value;
}

/// Reads the field `name` of an object.
pub fn read<T: FieldValue + Default>(object: &Value, name: &str) -> T {
    object.get(name).map(T::read).unwrap_or_default()
}

/// The fields of an object under construction.
#[derive(Debug)]
pub struct WrittenFields {
    fields: Map,
    given_empty: GivenEmpty,
}

impl WrittenFields {
    /// None yet.
    pub const fn new(given_empty: GivenEmpty) -> Self {
        WrittenFields { fields: Map::new(), given_empty }
    }

    /// Sets a field, unless it is empty.
    pub fn put(&mut self, name: &str, value: &impl FieldValue) {
        if !value.is_empty() {
            self.set(name, value.write(self.given_empty));
        }
    }

    /// Whether a field is set.
    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Sets a field.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name, value.into());
    }

    /// The object, as Go writes it for this type.
    pub fn of(self, message: &Message) -> Value {
        message.with_zeros(self.fields)
    }
}

impl FieldValue for String {
    fn read(value: &Value) -> Self {
        let text = value.as_str().unwrap_or_default();
        work::bytes(text.len());
        text.to_owned()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, _: GivenEmpty) -> Value {
        self.as_str().into()
    }
}

impl FieldValue for bool {
    fn read(value: &Value) -> Self {
        matches!(value, Value::Bool(true))
    }

    fn is_empty(&self) -> bool {
        !self
    }

    fn write(&self, _: GivenEmpty) -> Value {
        Value::Bool(*self)
    }
}

impl FieldValue for i64 {
    fn read(value: &Value) -> Self {
        value.as_i64().unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        *self == 0
    }

    fn write(&self, _: GivenEmpty) -> Value {
        Value::Int(*self)
    }
}

impl FieldValue for i32 {
    fn read(value: &Value) -> Self {
        value.as_i64().and_then(|number| number.try_into().ok()).unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        *self == 0
    }

    fn write(&self, _: GivenEmpty) -> Value {
        Value::Int((*self).into())
    }
}

impl FieldValue for f64 {
    fn read(value: &Value) -> Self {
        match value {
            Value::Int(number) => *number as f64,
            Value::Float(number) => *number,
            _ => 0.0,
        }
    }

    fn is_empty(&self) -> bool {
        *self == 0.0
    }

    /// A whole number is written as an integer, which is how it will be read again.
    fn write(&self, _: GivenEmpty) -> Value {
        const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
        if self.fract() == 0.0 && self.abs() <= EXACT_MAX && !(*self == 0.0 && self.is_sign_negative()) {
            Value::Int(*self as i64)
        } else {
            Value::Float(*self)
        }
    }
}

/// Any JSON, which Go keeps raw.
impl FieldValue for Value {
    fn read(value: &Value) -> Self {
        value.clone()
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, _: GivenEmpty) -> Value {
        self.clone()
    }
}

/// A pointer.
impl<T: FieldValue> FieldValue for Option<T> {
    fn read(value: &Value) -> Self {
        if value.is_null() { None } else { Some(T::read(value)) }
    }

    fn is_empty(&self) -> bool {
        self.is_none()
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        self.as_ref().map_or(Value::Null, |value| value.write(given_empty))
    }
}

impl<T: FieldValue> FieldValue for Box<T> {
    fn read(value: &Value) -> Self {
        Box::new(T::read(value))
    }

    fn is_empty(&self) -> bool {
        T::is_empty(self)
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        T::write(self, given_empty)
    }
}

impl<T: FieldValue> FieldValue for Arc<T> {
    fn read(value: &Value) -> Self {
        Arc::new(T::read(value))
    }

    fn is_empty(&self) -> bool {
        T::is_empty(self)
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        T::write(self, given_empty)
    }
}

impl<T: FieldValue> FieldValue for Vec<T> {
    fn read(value: &Value) -> Self {
        let items = value.as_array().unwrap_or_default();
        work::steps(items.len());
        items.iter().map(T::read).collect()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        Value::Array(self.iter().map(|item| item.write(given_empty)).collect())
    }
}

impl<T: FieldValue> FieldValue for Map<T> {
    fn read(value: &Value) -> Self {
        let entries = value.as_object().into_iter().flat_map(Map::iter);
        entries.map(|(key, entry)| (key.to_owned(), T::read(entry))).collect()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        Value::Object(self.iter().map(|(key, entry)| (key.to_owned(), entry.write(given_empty))).collect())
    }
}
