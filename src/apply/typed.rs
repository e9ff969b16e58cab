//! Values of a type: whether they conform, and which fields they have.
//!
//! Source: structured-merge-diff v6.4.2, package `typed`; texts recorded from apiextensions-apiserver 1.37.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::field_set::{FieldSet, Node};
use super::path::{KeyField, PathElement};
use super::type_schema::{Items, ListType, MapType, Scalar, Type, TypeId, TypeSchema};
use crate::value::number::format_float_v;
use crate::value::{Map, Value, go_quote};

/// Where a value does not conform to its type; in the words of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeErrors(Vec<TypeError>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct TypeError {
    path: String,
    message: String,
}

impl fmt::Display for TypeErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = self.0.len() != 1;
        if several {
            out.write_str("errors:")?;
        }
        for error in &self.0 {
            if several {
                out.write_str("\n  ")?;
            }
            if !error.path.is_empty() {
                write!(out, "{}: ", error.path)?;
            }
            out.write_str(&error.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for TypeErrors {}

/// The kind of type that a value is handled by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'a> {
    Map(&'a MapType),
    Scalar(Scalar),
    List(&'a ListType),
}

/// The kinds that come into question for a value: its own if the type has it, else all that the type has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidates {
    map: bool,
    scalar: bool,
    list: bool,
}

impl Candidates {
    /// `None` stands for a value that is absent.
    pub fn of(type_: &Type, value: Option<&Value>) -> Self {
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

    /// Maps go before scalars, scalars before lists.
    pub fn first<'a>(self, type_: &'a Type) -> Option<Kind<'a>> {
        match type_ {
            Type { map: Some(map), .. } if self.map => Some(Kind::Map(map)),
            Type { scalar: Some(scalar), .. } if self.scalar => Some(Kind::Scalar(*scalar)),
            Type { list: Some(list), .. } if self.list => Some(Kind::List(list)),
            _ => None,
        }
    }
}

impl TypeSchema {
    /// The kind of type that handles `value`.
    pub(super) fn kind_of(&self, id: TypeId, value: &Value) -> Option<Kind<'_>> {
        let type_ = self.get(id);
        Candidates::of(type_, Some(value)).first(type_)
    }

    /// Whether `object` conforms. Sets and list maps may hold an item twice only if `allow_duplicates`.
    pub fn validate(&self, object: &Value, allow_duplicates: bool) -> Result<(), TypeErrors> {
        let mut walk = Validation { types: self, allow_duplicates, errors: Vec::new() };
        walk.value(self.root(), object, &At::Root);
        match walk.errors.is_empty() {
            true => Ok(()),
            false => Err(TypeErrors(walk.errors)),
        }
    }

    /// Every leaf and every item of `object`, which conforms.
    pub(super) fn field_set(&self, object: &Value) -> FieldSet {
        self.fields_below(self.root(), object).1
    }

    /// Whether the field itself is a member, and the set below it.
    fn fields_below(&self, id: TypeId, value: &Value) -> (bool, FieldSet) {
        match self.kind_of(id, value) {
            None => (false, FieldSet::new()),
            Some(Kind::Scalar(_)) => (true, FieldSet::new()),
            Some(Kind::Map(map)) if map.atomic => (true, FieldSet::new()),
            Some(Kind::Map(map)) => (false, value.as_object().map_or_else(FieldSet::new, |v| self.map_fields(map, v))),
            Some(Kind::List(list)) => match list.items {
                Items::Atomic => (true, FieldSet::new()),
                _ => (false, value.as_array().map_or_else(FieldSet::new, |items| self.item_fields(list, items))),
            },
        }
    }

    fn map_fields(&self, map: &MapType, fields: &Map) -> FieldSet {
        let mut nodes = Vec::with_capacity(fields.len());
        for (name, value) in fields.iter() {
            let declared = map.field(name);
            let Some(id) = declared.or(map.element) else { continue };
            let (member, children) = self.fields_below(id, value);
            let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            let member = member || empty || declared.is_none();
            if member || !children.is_empty() {
                nodes.push(Node { element: PathElement::field(name), member, children });
            }
        }
        FieldSet::from_sorted(nodes)
    }

    fn item_fields(&self, list: &ListType, items: &[Value]) -> FieldSet {
        let mut nodes: BTreeMap<PathElement, Option<&Value>> = BTreeMap::new();
        for item in items {
            if let Ok(element) = list.element_of(item) {
                // An item that stands twice is a leaf: which of them has which field would be unclear.
                nodes.entry(element).and_modify(|once| *once = None).or_insert(Some(item));
            }
        }
        let node = |(element, item): (PathElement, Option<&Value>)| Node {
            element,
            member: true,
            children: item.map_or_else(FieldSet::new, |item| self.fields_below(list.element, item).1),
        };
        FieldSet::from_sorted(nodes.into_iter().map(node).collect())
    }
}

impl ListType {
    /// What tells `item` from the others, in a set or list map; or why nothing does.
    pub(super) fn element_of(&self, item: &Value) -> Result<PathElement, String> {
        self.check(item)?;
        match &self.items {
            Items::Map { keys, .. } => {
                let fields = keys.iter().filter_map(|key| {
                    let value = item.get(&key.name).or(key.default.as_ref())?;
                    Some(KeyField { name: Arc::from(&*key.name), value: value.clone() })
                });
                Ok(PathElement::key(fields.collect()))
            }
            Items::Set | Items::Atomic => Ok(PathElement::Value(Arc::new(item.clone()))),
        }
    }

    /// The error of [`ListType::element_of`].
    fn check(&self, item: &Value) -> Result<(), String> {
        match &self.items {
            Items::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Items::Set => match item {
                Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
                _ => Ok(()),
            },
            Items::Map { keys, of_maps } => {
                let fields = match item {
                    Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
                    Value::Object(fields) => fields,
                    _ => return Err("associative list with keys may not have non-map elements".to_owned()),
                };
                let mut found = keys.is_empty();
                for key in keys {
                    let present = fields.contains_key(&key.name);
                    if !present && !of_maps {
                        return Err(format!(
                            "couldn't find default value for {}: associative list may not have non-map types",
                            key.name
                        ));
                    }
                    found |= present || key.default.is_some();
                }
                if found {
                    return Ok(());
                }
                let names: Vec<String> = keys.iter().map(|key| go_quote(&key.name)).collect();
                Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
                     values for any key fields)",
                    names.join(" ")
                ))
            }
        }
    }
}

struct Validation<'a> {
    types: &'a TypeSchema,
    allow_duplicates: bool,
    errors: Vec<TypeError>,
}

/// Where validation stands; made into text for an error only.
enum At<'a> {
    Root,
    Field(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
    Item(&'a At<'a>, &'a ListType, &'a Value),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Root => Ok(()),
            At::Field(parent, name) => write!(out, "{parent}.{name}"),
            At::Index(parent, index) => write!(out, "{parent}[{index}]"),
            At::Item(parent, list, item) => match list.element_of(item) {
                Ok(element) => write!(out, "{parent}{element}"),
                Err(_) => parent.fmt(out),
            },
        }
    }
}

impl Validation<'_> {
    fn error(&mut self, at: &At<'_>, message: String) {
        self.errors.push(TypeError { path: at.to_string(), message });
    }

    fn value(&mut self, id: TypeId, value: &Value, at: &At<'_>) {
        let types = self.types;
        match types.kind_of(id, value) {
            None => self.error(at, "schema error: invalid atom: inlined".to_owned()),
            Some(Kind::Scalar(scalar)) => {
                if let Err(message) = scalar.validate(value) {
                    self.error(at, message);
                }
            }
            Some(Kind::Map(map)) => match value {
                Value::Null => {}
                Value::Object(fields) => {
                    for (name, value) in fields.iter() {
                        let at = At::Field(at, name);
                        match map.value(name) {
                            Some(id) => self.value(id, value, &at),
                            // The reference looks no further, either.
                            None => return self.error(&at, "field not declared in schema".to_owned()),
                        }
                    }
                }
                _ => self.error(at, format!("expected map, got &{{{}}}", go_plain(value))),
            },
            Some(Kind::List(list)) => match value {
                Value::Null => {}
                Value::Array(items) => self.items(list, items, at),
                _ => self.error(at, format!("expected list, got &{{{}}}", go_plain(value))),
            },
        }
    }

    fn items(&mut self, list: &ListType, items: &[Value], at: &At<'_>) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let item_at = match list.items {
                Items::Atomic => At::Index(at, index),
                _ => At::Item(at, list, item),
            };
            if !matches!(list.items, Items::Atomic) {
                // An item that can't be named can't be reported on, and ends the walk.
                if let Err(message) = list.check(item) {
                    return self.error(at, format!("element {index}: {message}"));
                }
                if !self.allow_duplicates
                    && let Ok(element) = list.element_of(item)
                    && let Some(element) = seen.replace(element)
                {
                    self.error(at, format!("duplicate entries for key {element}"));
                }
            }
            self.value(list.element, item, &item_at);
        }
    }
}

impl Scalar {
    fn validate(self, value: &Value) -> Result<(), String> {
        match (self, value) {
            (_, Value::Null)
            | (Scalar::Numeric, Value::Int(_) | Value::Float(_))
            | (Scalar::String, Value::String(_))
            | (Scalar::Boolean, Value::Bool(_))
            | (Scalar::Untyped, Value::Int(_) | Value::Float(_) | Value::String(_) | Value::Bool(_)) => Ok(()),
            (Scalar::Numeric, _) => Err(format!("expected numeric (int or float), got {}", go_type(value))),
            (Scalar::String, _) => {
                Err(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value)))
            }
            (Scalar::Boolean, _) => Err(format!("expected boolean, got &{{{}}}", go_plain(value))),
            (Scalar::Untyped, _) => Err(format!("expected any scalar, got &{{{}}}", go_plain(value))),
        }
    }
}

/// Go's `%T`.
const fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Go's `%v`.
fn go_plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format_float_v(*number),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_plain).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}:{}", go_plain(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// Go's `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => go_quote(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let field = |(name, value)| format!("{}:{}", go_quote(name), go_syntax(value));
            format!("map[string]interface {{}}{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => go_plain(value),
    }
}
