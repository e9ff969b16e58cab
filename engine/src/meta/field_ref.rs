//! A field of an object: its value and its path, so that validation code is easy to read.
//!
//! An absent field reads as Go's zero value: an empty text, 0, false, no items. A value of a wrong type reads as
//! absent, since objects are decoded by their type before they are validated.

use super::field::{Error, Path};
use crate::value::Value;
use crate::work;

/// A field, which may be absent. Cheap to copy; the fields of a field borrow it, as a [`Path`] borrows its parent.
#[derive(Clone, Copy, Debug)]
pub struct FieldRef<'a> {
    value: Option<&'a Value>,
    path: Path<'a>,
}

impl<'a> FieldRef<'a> {
    /// A whole object; its fields have paths of one step: `spec`.
    pub const fn root(object: &'a Value) -> Self {
        FieldRef { value: Some(object), path: Path::ROOT }
    }

    /// `value`, at `path`. Null counts as absent.
    pub fn new(value: Option<&'a Value>, path: Path<'a>) -> Self {
        FieldRef { value: value.filter(|value| !value.is_null()), path }
    }

    pub const fn path(&self) -> &Path<'a> {
        &self.path
    }

    /// The value, if there is one that is not null.
    pub const fn value(&self) -> Option<&'a Value> {
        self.value
    }

    /// The field `name` of this.
    pub fn field(&'a self, name: &'a str) -> FieldRef<'a> {
        work::step();
        let path = if self.path.is_root() { Path::new(name) } else { self.path.child(name) };
        FieldRef::new(self.value.and_then(|value| value.get(name)), path)
    }

    /// The items of a list, in their order.
    pub fn items(&'a self) -> impl Iterator<Item = FieldRef<'a>> + use<'a> {
        let items = self.value.and_then(Value::as_array).unwrap_or_default();
        items.iter().enumerate().map(|(index, item)| {
            work::step();
            FieldRef { value: Some(item), path: self.path.index(index) }
        })
    }

    /// The entries of a map in the order of their keys, each with its key.
    pub fn entries(&'a self) -> impl Iterator<Item = (&'a str, FieldRef<'a>)> + use<'a> {
        let entries = self.value.and_then(Value::as_object);
        entries.into_iter().flat_map(|entries| entries.iter()).map(|(key, value)| {
            work::step();
            (key, FieldRef { value: Some(value), path: self.path.key(key) })
        })
    }

    /// Whether the field is set: a pointer that is not nil.
    pub const fn is_set(&self) -> bool {
        self.value.is_some()
    }

    /// How many items or entries it has.
    pub fn len(&self) -> usize {
        match self.value {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(fields)) => fields.len(),
            _ => 0,
        }
    }

    /// Whether it has no items, no entries and no text.
    pub fn is_empty(&self) -> bool {
        self.text().is_empty() && self.len() == 0
    }

    /// The text; empty if there is none.
    pub fn text(&self) -> &'a str {
        self.value.and_then(Value::as_str).unwrap_or_default()
    }

    /// The text of the field `name`, for as long as the object lives.
    pub fn text_of(&self, name: &str) -> &'a str {
        self.value.map(|value| value.str_at(&[name])).unwrap_or_default()
    }

    /// The number; 0 if there is none.
    pub fn int(&self) -> i64 {
        self.value.and_then(Value::as_i64).unwrap_or_default()
    }

    /// The boolean; false if there is none.
    pub fn is_true(&self) -> bool {
        self.value.and_then(Value::as_bool).unwrap_or_default()
    }

    /// The texts of a list.
    pub fn texts(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let items = self.value.and_then(Value::as_array).unwrap_or_default();
        items.iter().map(|item| item.as_str().unwrap_or_default())
    }

    /// The value as errors show it: `""` if it is absent.
    fn shown(&self) -> Value {
        self.value.cloned().unwrap_or_else(|| Value::from(""))
    }

    /// The error that the field's value is invalid; `detail` gives the reason.
    pub fn invalid(&self, detail: impl Into<String>) -> Error {
        Error::invalid(&self.path, self.shown(), detail)
    }

    /// [`FieldRef::invalid`] for a pointer or a named type, which Go shows as JSON, even if it is a text.
    pub fn invalid_as_json(&self, detail: impl Into<String>) -> Error {
        self.invalid(detail).shown_as_json()
    }

    /// [`FieldRef::invalid_as_json`] for a pointer: `null` if it is nil.
    pub fn invalid_or_null(&self, detail: impl Into<String>) -> Error {
        Error::invalid(&self.path, self.value.cloned().unwrap_or(Value::Null), detail).shown_as_json()
    }

    /// The error that the field is required.
    pub fn required(&self, detail: impl Into<String>) -> Error {
        Error::required(&self.path, detail)
    }

    /// The error that the field must not be set, or must not change.
    pub fn forbidden(&self, detail: impl Into<String>) -> Error {
        Error::forbidden(&self.path, detail)
    }

    /// The error that the value, which has a named type, is not one of `supported`.
    pub fn not_supported(&self, supported: &[&str]) -> Error {
        Error::not_supported(&self.path, self.shown(), supported).shown_as_json()
    }

    /// The error that the value is a duplicate.
    pub fn duplicate(&self) -> Error {
        Error::duplicate(&self.path, self.shown())
    }

    /// [`FieldRef::duplicate`] for a named type, which Go shows as JSON, even if it is a text.
    pub fn duplicate_as_json(&self) -> Error {
        self.duplicate().shown_as_json()
    }

    /// The error that the object named by the value does not exist.
    pub fn not_found(&self) -> Error {
        Error::not_found(&self.path, self.shown())
    }

    /// The error that the text has too many characters.
    pub fn too_long_in_characters(&self, characters_max: i64) -> Error {
        Error::too_long_in_characters(&self.path, characters_max)
    }

    /// The error that the value is longer than `bytes_max` bytes.
    pub fn too_long(&self, bytes_max: i64) -> Error {
        Error::too_long(&self.path, bytes_max)
    }

    /// The error that there are more than `max` items.
    pub fn too_many(&self, max: i64) -> Error {
        Error::too_many(&self.path, i64::try_from(self.len()).unwrap_or(i64::MAX), max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn a_field_knows_where_it_stands() {
        let object = object! {
            "spec" => object! { "ports" => Value::Array(vec![object! { "port" => 0 }]), "selector" => object! { "a" => "b" } },
        };
        let root = FieldRef::root(&object);
        let spec = root.field("spec");
        let ports = spec.field("ports");
        let port = ports.items().next().expect("there is one");
        assert_eq!(
            port.field("port").invalid("must be 1").to_string(),
            "spec.ports[0].port: Invalid value: 0: must be 1"
        );
        let selector = spec.field("selector");
        let (key, value) = selector.entries().next().expect("there is one");
        assert_eq!((key, value.text(), value.path().to_string()), ("a", "b", "spec.selector[a]".to_owned()));
        let absent = spec.field("type");
        assert!(!absent.is_set() && absent.is_empty());
        assert_eq!(absent.required("").to_string(), "spec.type: Required value");
    }
}
