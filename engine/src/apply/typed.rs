//! Values of a type: whether they conform, and which fields they have.
//!
//! Source: structured-merge-diff v6.4.2, package `typed`; texts recorded from apiextensions-apiserver 1.37.

use std::collections::BTreeSet;
use std::fmt;

use thiserror::Error;

use super::field_set::{FieldSet, FieldSetNode};
use super::item::Item;
use super::path::PathElement;
use super::type_schema::{Items, ListType, MapType, ScalarType, SchemaType, TypeId, TypeSchema};
use crate::meta::field::ERRORS_BYTES_MAX;
use crate::value::{Map, Value, go_print, go_syntax, go_type};
use crate::work;

/// Where a value does not conform to its type; in the words of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeErrors {
    errors: Vec<TypeError>,
    /// The length of their texts; stops growing at the limit.
    bytes: usize,
    /// The number of those left out because the answer would be too long.
    untold: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct TypeError {
    path: String,
    message: String,
}

impl fmt::Display for TypeErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = self.errors.len() != 1 || self.untold > 0;
        if several {
            out.write_str("errors:")?;
        }
        for error in &self.errors {
            if several {
                out.write_str("\n  ")?;
            }
            if !error.path.is_empty() {
                write!(out, "{}: ", error.path)?;
            }
            out.write_str(&error.message)?;
        }
        match self.untold {
            0 => Ok(()),
            untold => write!(out, "\n  and {untold} more errors"),
        }
    }
}

impl std::error::Error for TypeErrors {}

/// The part of a type that handles a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum TypeKind<'a> {
    Map(&'a MapType),
    Scalar(ScalarType),
    List(&'a ListType),
}

/// The parts of a type that may handle a value: the one of its own kind if the type has it, else all that the type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidates {
    map: bool,
    scalar: bool,
    list: bool,
}

impl Candidates {
    /// `None` stands for an absent value.
    pub fn of(type_: &SchemaType, value: Option<&Value>) -> Self {
        let none = Candidates { map: false, scalar: false, list: false };
        match value {
            Some(Value::Object(_)) if type_.map.is_some() => Candidates { map: true, ..none },
            Some(Value::Array(_)) if type_.list.is_some() => Candidates { list: true, ..none },
            Some(Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_)) if type_.scalar.is_some() => {
                Candidates { scalar: true, ..none }
            }
            _ => Candidates { map: type_.map.is_some(), scalar: type_.scalar.is_some(), list: type_.list.is_some() },
        }
    }

    /// Maps are tried before scalars, scalars before lists.
    pub fn first<'a>(self, type_: &'a SchemaType) -> Option<TypeKind<'a>> {
        match type_ {
            SchemaType { map: Some(map), .. } if self.map => Some(TypeKind::Map(map)),
            SchemaType { scalar: Some(scalar), .. } if self.scalar => Some(TypeKind::Scalar(*scalar)),
            SchemaType { list: Some(list), .. } if self.list => Some(TypeKind::List(list)),
            _ => None,
        }
    }
}

impl TypeSchema {
    /// The kind of type that handles `value`.
    pub(super) fn kind_of(&self, id: TypeId, value: &Value) -> Option<TypeKind<'_>> {
        let type_ = self.get(id);
        Candidates::of(type_, Some(value)).first(type_)
    }

    /// Whether `object` conforms. Sets and list maps may have duplicate items only if `allow_duplicates`.
    ///
    /// # Errors
    ///
    /// Every value of a wrong type, and duplicate items.
    pub fn validate(&self, object: &Value, allow_duplicates: bool) -> Result<(), TypeErrors> {
        self.validate_value(self.root(), object, allow_duplicates)
    }

    /// [`TypeSchema::validate`] for a `value` of the type `id`.
    pub(super) fn validate_value(&self, id: TypeId, value: &Value, allow_duplicates: bool) -> Result<(), TypeErrors> {
        let found = TypeErrors { errors: Vec::new(), bytes: 0, untold: 0 };
        let mut walk = TypeValidation { types: self, allow_duplicates, found };
        walk.value(id, value, &AtPath::Root);
        if walk.found.errors.is_empty() { Ok(()) } else { Err(walk.found) }
    }

    /// Every leaf and every item of `object`, which must conform.
    pub(super) fn field_set(&self, object: &Value) -> FieldSet {
        self.fields_below(self.root(), object).1
    }

    /// Whether the field itself is a member, and the set below it.
    fn fields_below(&self, id: TypeId, value: &Value) -> (bool, FieldSet) {
        work::step();
        match self.kind_of(id, value) {
            None => (false, FieldSet::new()),
            Some(TypeKind::Scalar(_)) => (true, FieldSet::new()),
            Some(TypeKind::Map(map)) if map.atomic => (true, FieldSet::new()),
            Some(TypeKind::Map(map)) => {
                (false, value.as_object().map_or_else(FieldSet::new, |v| self.map_fields(map, v)))
            }
            Some(TypeKind::List(list)) => match list.items {
                Items::Atomic => (true, FieldSet::new()),
                _ => (false, value.as_array().map_or_else(FieldSet::new, |items| self.item_fields(list, items))),
            },
        }
    }

    fn map_fields(&self, map: &MapType, fields: &Map) -> FieldSet {
        let mut nodes = Vec::with_capacity(fields.len());
        let mut types = map.in_order();
        for (name, value) in fields.iter() {
            let Some((id, is_declared)) = types.value(name) else { continue };
            let (member, children) = self.fields_below(id, value);
            let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            let member = member || empty || !is_declared;
            if member || !children.is_empty() {
                nodes.push(FieldSetNode { element: PathElement::field(name), member, children });
            }
        }
        FieldSet::from_sorted(nodes)
    }

    fn item_fields(&self, list: &ListType, items: &[Value]) -> FieldSet {
        let items = list.sorted_items(items);
        let node = |same: &[Item<'_>]| FieldSetNode {
            element: same[0].element(),
            member: true,
            children: match same {
                [once] => self.fields_below(list.element, once.value).1,
                // Duplicate items are a leaf: it is ambiguous which of them has which field.
                _ => FieldSet::new(),
            },
        };
        FieldSet::from_sorted(items.chunk_by(|a, b| a == b).map(node).collect())
    }
}

struct TypeValidation<'a> {
    types: &'a TypeSchema,
    allow_duplicates: bool,
    found: TypeErrors,
}

/// The path of the value that is validated; only made into text for an error.
enum AtPath<'a> {
    Root,
    Field(&'a AtPath<'a>, &'a str),
    Index(&'a AtPath<'a>, usize),
    Item(&'a AtPath<'a>, Item<'a>),
}

impl fmt::Display for AtPath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AtPath::Root => Ok(()),
            AtPath::Field(parent, name) => write!(out, "{parent}.{name}"),
            AtPath::Index(parent, index) => write!(out, "{parent}[{index}]"),
            AtPath::Item(parent, item) => write!(out, "{parent}{}", item.element()),
        }
    }
}

impl TypeValidation<'_> {
    fn error(&mut self, at: &AtPath<'_>, message: String) {
        if self.found.bytes >= ERRORS_BYTES_MAX {
            self.found.untold += 1;
            return;
        }
        let path = at.to_string();
        work::bytes(path.len());
        self.found.bytes += path.len() + message.len();
        self.found.errors.push(TypeError { path, message });
    }

    fn value(&mut self, id: TypeId, value: &Value, at: &AtPath<'_>) {
        work::step();
        let types = self.types;
        match types.kind_of(id, value) {
            None => self.error(at, "schema error: invalid atom: inlined".to_owned()),
            Some(TypeKind::Scalar(scalar)) => {
                if let Err(error) = scalar.validate(value) {
                    self.error(at, error.to_string());
                }
            }
            Some(TypeKind::Map(map)) => match value {
                Value::Null => {}
                Value::Object(fields) => {
                    let mut types = map.in_order();
                    for (name, value) in fields.iter() {
                        let at = AtPath::Field(at, name);
                        match types.value(name) {
                            Some((id, _)) => self.value(id, value, &at),
                            None if map.passes_over(name) => {}
                            // The reference stops here, too.
                            None => return self.error(&at, "field not declared in schema".to_owned()),
                        }
                    }
                }
                _ => self.error(at, format!("expected map, got &{{{}}}", go_print(value))),
            },
            Some(TypeKind::List(list)) => match value {
                Value::Null => {}
                Value::Array(items) => self.items(list, items, at),
                _ => self.error(at, format!("expected list, got &{{{}}}", go_print(value))),
            },
        }
    }

    fn items(&mut self, list: &ListType, items: &[Value], at: &AtPath<'_>) {
        let mut seen = BTreeSet::new();
        for (index, value) in items.iter().enumerate() {
            if matches!(list.items, Items::Atomic) {
                self.value(list.element, value, &AtPath::Index(at, index));
                continue;
            }
            let item = match list.item(value) {
                Ok(item) => item,
                // Errors can't name an item without a key: report that, and stop.
                Err(message) => return self.error(at, format!("element {index}: {message}")),
            };
            if !self.allow_duplicates
                && let Some(first) = seen.replace(item)
            {
                self.error(at, format!("duplicate entries for key {}", first.element()));
            }
            self.value(list.element, value, &AtPath::Item(at, item));
        }
    }
}

/// The Go type of a value that is not of its schema's type.
#[derive(Debug, Error)]
pub(super) enum ScalarError {
    #[error("expected numeric (int or float), got {0}")]
    Numeric(&'static str),
    #[error("expected string, got &value.valueUnstructured{{Value:{0}}}")]
    String(String),
    #[error("expected boolean, got &{{{0}}}")]
    Boolean(String),
    #[error("expected any scalar, got &{{{0}}}")]
    Untyped(String),
}

impl ScalarType {
    pub(super) fn validate(self, value: &Value) -> Result<(), ScalarError> {
        match (self, value) {
            (_, Value::Null)
            | (ScalarType::Numeric, Value::Int(_) | Value::Float(_))
            | (ScalarType::String, Value::String(_))
            | (ScalarType::Boolean, Value::Bool(_))
            | (ScalarType::Untyped, Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Bool(_)) => Ok(()),
            (ScalarType::Numeric, _) => Err(ScalarError::Numeric(go_type(value))),
            (ScalarType::String, _) => Err(ScalarError::String(go_syntax(value, "map[string]interface {}"))),
            (ScalarType::Boolean, _) => Err(ScalarError::Boolean(go_print(value))),
            (ScalarType::Untyped, _) => Err(ScalarError::Untyped(go_print(value))),
        }
    }
}
