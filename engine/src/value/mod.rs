//! Unstructured JSON values, as Kubernetes holds them.
//!
//! Input: bytes (JSON or YAML). Output: a [`Value`] that distinguishes integers and doubles, sorts objects by key, and
//! prints as Go does. This module does not know schemas.

#[cfg(test)]
pub(crate) mod arbitrary;
pub mod base64;
mod go;
pub mod json;
mod map;
pub(crate) mod path_text;
pub mod pem;
pub(crate) mod number;
mod unread;
pub mod written;
pub mod yaml;

pub(crate) use go::go_syntax;
pub use go::{go_display, go_print, go_quote, go_quote_byte, go_type, is_printable, json_type};
pub(crate) use map::{InOrder, place_of};
pub use map::{Key, Map};

use crate::work;

/// A JSON value. Integers that fit `i64` stay integers; every other number is a double, never NaN or infinite.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number without a point or an exponent that fits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// An object.
    Object(Map),
}

impl Value {
    /// The object's fields, if this is an object.
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Value::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The items of the array at `path`; empty if there is no array.
    pub fn items_at(&self, path: &[&str]) -> &[Value] {
        self.at(path).and_then(Value::as_array).unwrap_or_default()
    }

    /// The object's fields for writing, if this is an object.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// The object's fields for writing; any other value becomes an empty object first.
    pub fn make_object(&mut self) -> &mut Map {
        if !matches!(self, Value::Object(_)) {
            *self = Value::Object(Map::new());
        }
        match self {
            Value::Object(fields) => fields,
            _ => unreachable!("it is an object now"),
        }
    }

    /// The items, if this is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The items for writing, if this is an array.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if this is an integer.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// About its length as text, in bytes.
    pub fn size_bytes(&self) -> usize {
        work::step();
        const NODE_BYTES: usize = 8;
        NODE_BYTES
            + match self {
                Value::String(text) => text.len(),
                Value::Array(items) => items.iter().map(Value::size_bytes).sum(),
                Value::Object(fields) => fields.iter().map(|(name, field)| name.len() + field.size_bytes()).sum(),
                _ => 0,
            }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The field `name` of an object; `None` for an absent field, or if this is not an object.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?.get(name)
    }

    /// The field `name` of an object, for writing.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.as_object_mut()?.get_mut(name)
    }

    /// The value at a path of field names.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// The value at a path of field names, for writing.
    pub fn at_mut(&mut self, path: &[&str]) -> Option<&mut Value> {
        path.iter().try_fold(self, |value, name| value.get_mut(name))
    }

    /// The text at a path of field names; `""` if there is none.
    pub fn str_at(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Value::Bool(truth)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text)
    }
}

impl From<Map> for Value {
    fn from(fields: Map) -> Self {
        Value::Object(fields)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Value::Array(items)
    }
}

/// Builds an object: `object! { "kind" => "List", "items" => vec![] }`.
#[macro_export]
macro_rules! object {
    () => { $crate::value::Value::Object($crate::value::Map::new()) };
    ($($name:expr => $value:expr),+ $(,)?) => {{
        let mut fields = $crate::value::Map::new();
        $(fields.insert($name, $crate::value::Value::from($value));)+
        $crate::value::Value::Object(fields)
    }};
}

/// Runs `test` with a stack as large as those of the server's threads, which deeply nested values need.
#[cfg(test)]
pub(crate) fn with_a_deep_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(test).expect("there is memory for a stack");
    thread.join().expect("the test holds");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values of every shape, without whole doubles, as these become integers when they are written.
    fn values() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>()
                .prop_filter("JSON has no such number", |number| number.is_finite() && number.fract() != 0.0)
                .prop_map(Value::Float),
            any::<String>().prop_map(Value::String),
            "[-yn~ :#'\"\\[{|>&*!%@0-9.ex_\n\t]{0,9}".prop_map(Value::String),
        ];
        scalar.prop_recursive(5, 60, 6, |inner| {
            let fields = prop::collection::vec((any::<String>(), inner.clone()), 0..6);
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(Value::Array),
                fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_as_json_reads_back(value in values()) {
            prop_assert_eq!(json::decode(&json::encode(&value)), Ok(value.clone()));
            prop_assert_eq!(json::decode(&json::indent(&json::encode(&value))), Ok(value));
        }

        #[test]
        fn what_is_written_as_yaml_reads_back(value in values()) {
            prop_assert_eq!(yaml::decode(yaml::encode(&value).as_bytes()), Ok(value));
        }

        #[test]
        fn no_bytes_break_the_readers(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = json::decode_strict(&bytes);
            let _ = yaml::decode_all(&bytes);
        }
    }
}
