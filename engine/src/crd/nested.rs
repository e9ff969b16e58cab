//! Reading and setting nested fields, with Go's words for values of another type.
//!
//! Source: `k8s.io/apimachinery/pkg/apis/meta/v1/unstructured`, release 1.37: messages that clients see quote Go's types.

use thiserror::Error;

use crate::value::{Map, Value, go_print, go_type};

/// A field that can't be read or set at its path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NestedError {
    /// A value of the wrong type.
    #[error("{path} accessor error: {value} is of the type {found}, expected {expected}")]
    WrongType {
        /// `.spec.replicas`.
        path: String,
        /// The value as Go prints it.
        value: String,
        /// Its type in Go.
        found: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// The value to set the field in is not an object.
    #[error("value cannot be set because {path} is not a map[string]interface{{}}")]
    NotAMap {
        /// `.spec`.
        path: String,
    },
}

/// The integer at the path `fields`; `None` if a field on the path is absent.
///
/// # Errors
///
/// A field on the path is not an object, or the last one not an integer.
pub fn nested_int(object: &Value, fields: &[&str]) -> Result<Option<i64>, NestedError> {
    match nested(object, fields)? {
        None => Ok(None),
        Some(Value::Int(number)) => Ok(Some(*number)),
        Some(other) => Err(wrong_type(fields, other, "int64")),
    }
}

/// The text at the path `fields`; `None` if a field on the path is absent.
///
/// # Errors
///
/// A field on the path is not an object, or the last one not a text.
pub fn nested_str<'v>(object: &'v Value, fields: &[&str]) -> Result<Option<&'v str>, NestedError> {
    match nested(object, fields)? {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong_type(fields, other, "string")),
    }
}

/// Sets the field at the path `fields`, and adds the objects on the path.
///
/// # Errors
///
/// A field on the path is not an object.
pub fn set_nested(object: &mut Value, fields: &[&str], value: Value) -> Result<(), NestedError> {
    let Some((last, way)) = fields.split_last() else { return Ok(()) };
    let mut at = object;
    for (depth, name) in way.iter().enumerate() {
        let Value::Object(map) = at else {
            return Err(NestedError::NotAMap { path: json_path(&fields[..depth]) });
        };
        at = map.entry(name);
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
    }
    match at {
        Value::Object(map) => {
            map.insert(*last, value);
            Ok(())
        }
        _ => Err(NestedError::NotAMap { path: json_path(way) }),
    }
}

/// The parts of a simple path such as `.spec.replicas`.
pub fn split_path(path: &str) -> Vec<&str> {
    path.strip_prefix('.').unwrap_or(path).split('.').collect()
}

fn nested<'v>(object: &'v Value, fields: &[&str]) -> Result<Option<&'v Value>, NestedError> {
    let mut at = object;
    for (depth, name) in fields.iter().enumerate() {
        match at {
            Value::Object(map) => match map.get(name) {
                Some(value) => at = value,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return Err(wrong_type(&fields[..=depth], other, "map[string]interface{}")),
        }
    }
    Ok(Some(at))
}

fn wrong_type(fields: &[&str], value: &Value, expected: &'static str) -> NestedError {
    NestedError::WrongType { path: json_path(fields), value: go_print(value), found: go_type(value), expected }
}

fn json_path(fields: &[&str]) -> String {
    format!(".{}", fields.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn a_value_of_another_type_is_named_with_its_type_in_go() {
        let object = object! { "spec" => object! { "replicas" => "three" } };
        let error = nested_int(&object, &["spec", "replicas"]).expect_err("a string is not an integer");
        assert_eq!(error.to_string(), ".spec.replicas accessor error: three is of the type string, expected int64");
    }

    #[test]
    fn setting_makes_the_objects_on_the_way() {
        let mut object = object! {};
        set_nested(&mut object, &["spec", "replicas"], Value::Int(3)).expect("nothing stands in the way");
        assert_eq!(nested_int(&object, &["spec", "replicas"]), Ok(Some(3)));
    }
}
