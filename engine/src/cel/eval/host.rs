//! The host's JSON as values, read in place.
//!
//! A [`HostForm`] describes how expressions see a node of an object. It follows from the schema and is made once;
//! reading a node does not touch anything below it. A value that does not fit its form is an error with the reference's
//! message, because objects may be evaluated that were never validated.

use std::sync::Arc;

use super::error::EvalError;
use super::list::List;
use super::map::Map;
use super::strfmt;
use super::value::Value;
use crate::value::{Map as Fields, Value as Json, go_type};

/// How expressions see a node of the host's object. The forms below it are shared: rules are at many nodes of one
/// schema.
#[derive(Clone, Debug, Default)]
pub struct HostForm {
    /// Whether null is one of its values.
    pub nullable: bool,
    /// Whether a field that is null makes objects differ, even from themselves.
    pub nulls_differ: bool,
    pub shape: HostShape,
}

/// The kind of a node by its schema.
#[derive(Clone, Debug, Default)]
pub enum HostShape {
    Boolean,
    Integer,
    Number,
    String,
    /// A string that is a duration.
    Duration,
    /// A string that is a day.
    Date,
    /// A string that is a timestamp.
    DateTime,
    /// A string that is bytes in base64.
    Bytes,
    IntOrString,
    List(Box<ListForm>),
    /// A list of an unknown type.
    UnknownList(String),
    /// A list whose items are unknown.
    BareList,
    Map(MapForm),
    /// Any value; it only has equality.
    #[default]
    Preserved,
    /// An unknown type.
    Unknown(String),
}

/// A list, with its `x-kubernetes-list-type`.
#[derive(Clone, Debug)]
pub struct ListForm {
    pub item: Arc<HostForm>,
    pub kind: ListKind,
}

/// The equality and the sum of lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ListKind {
    /// Equality by items in order; the sum is the concatenation.
    #[default]
    Atomic,
    /// Equality by items in any order; the sum is the union.
    Set,
    /// Equality by items in any order; the sum replaces items with the same keys.
    Map(ListKeys),
}

/// The keys of a list whose items have keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListKeys {
    /// The escaped names, by which Go looks the keys up in the items themselves.
    pub escaped: Vec<String>,
    /// The names by which sums look them up in items of the host: the properties' own names since 1.37, escaped before.
    pub of_sums: Vec<String>,
}

/// An object with fields, or a map.
#[derive(Clone, Debug)]
pub enum MapForm {
    /// The fields, by the properties' own names.
    Fields(Fields<HostField>),
    Values(Arc<HostForm>),
    /// Neither fields nor values are known.
    Bare,
}

/// A field of an object.
#[derive(Clone, Debug)]
pub struct HostField {
    pub form: Arc<HostForm>,
    /// The name in expressions; if the name cannot be one, the name itself.
    pub escaped: String,
}

impl HostForm {
    /// The form of the items of a list, or of the values of a map, if it is known.
    pub fn element(&self) -> Option<&Arc<HostForm>> {
        match &self.shape {
            HostShape::List(list) => Some(&list.item),
            HostShape::Map(MapForm::Values(values)) => Some(values),
            _ => None,
        }
    }

    /// The form of the field `name` of an object, if it has one.
    pub fn field(&self, name: &str) -> Option<&Arc<HostForm>> {
        match &self.shape {
            HostShape::Map(MapForm::Fields(fields)) => fields.get(name).map(|field| &field.form),
            _ => None,
        }
    }
}

impl<'a> Value<'a> {
    /// The value of `json`, read through `form`.
    ///
    /// # Errors
    /// `json` does not fit `form`.
    pub fn host(json: &'a Json, form: &'a HostForm) -> Result<Value<'a>, EvalError> {
        if json.is_null() {
            return if form.nullable {
                Ok(Value::Null)
            } else {
                Err(EvalError::new("invalid data, got null for schema with nullable=false"))
            };
        }
        match (&form.shape, json) {
            (HostShape::Boolean, Json::Bool(truth)) => Ok(Value::Bool(*truth)),
            (HostShape::Boolean, other) => Err(unfit("invalid data, expected bool, got", other)),
            (HostShape::Integer, Json::Int(number)) => Ok(Value::Int(*number)),
            (HostShape::Integer, other) => Err(unfit("invalid data, expected int, got", other)),
            (HostShape::Number, Json::Int(number)) => Ok(Value::Double(*number as f64)),
            (HostShape::Number, Json::Float(number)) => Ok(Value::Double(*number)),
            (HostShape::Number, other) => Err(unfit("invalid data, expected float, got", other)),
            (HostShape::String, Json::String(text)) => Ok(Value::borrowed(text)),
            (HostShape::Duration, Json::String(text)) => strfmt::duration(text).map(Value::Duration),
            (HostShape::Date, Json::String(text)) => strfmt::date(text).map(Value::Timestamp),
            (HostShape::DateTime, Json::String(text)) => strfmt::date_time(text).map(Value::Timestamp),
            (HostShape::Bytes, Json::String(text)) => strfmt::bytes(text).map(Value::bytes),
            (
                HostShape::String | HostShape::Duration | HostShape::Date | HostShape::DateTime | HostShape::Bytes,
                other,
            ) => Err(unfit("invalid data, expected string, got", other)),
            (HostShape::IntOrString, Json::String(text)) => Ok(Value::borrowed(text)),
            (HostShape::IntOrString, Json::Int(number)) => Ok(Value::Int(*number)),
            (HostShape::IntOrString, _) => {
                Err(EvalError::new("invalid data, expected XIntOrString value to be either a string or integer"))
            }
            (HostShape::List(form), Json::Array(items)) => Ok(Value::List(List::Host { items, form })),
            (HostShape::UnknownList(kind), Json::Array(_)) => Err(EvalError::new(format!(
                "invalid x-kubernetes-list-type, expected 'map', 'set' or 'atomic' but got {kind}"
            ))),
            (HostShape::BareList, Json::Array(_)) => {
                Err(EvalError::new("invalid array type, expected Items with a non-empty Schema"))
            }
            (HostShape::List(_) | HostShape::UnknownList(_) | HostShape::BareList, _) => {
                Err(EvalError::new("invalid data, expected an array for the provided schema with type=array"))
            }
            (HostShape::Map(form), Json::Object(fields)) => Ok(Value::Map(Map::Host { fields, form })),
            (HostShape::Map(_), _) => {
                Err(EvalError::new("invalid data, expected a map for the provided schema with type=object"))
            }
            (HostShape::Preserved, json) => Ok(Value::Preserved(json)),
            (HostShape::Unknown(name), _) => Err(EvalError::new(format!(
                "invalid type, expected object, array, number, integer, boolean or string, or no type with \
                 x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got {name}"
            ))),
        }
    }
}

fn unfit(expected: &str, json: &Json) -> EvalError {
    EvalError::new(format!("{expected} {}", go_type(json)))
}
