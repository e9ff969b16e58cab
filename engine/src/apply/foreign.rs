//! Values that JSON can't represent, in an object that is being made.
//!
//! Source: structured-merge-diff v6.4.2, package `typed`; texts recorded from kube-apiserver 1.37.

use super::type_schema::{Items, ScalarType, TypeSchema};
use super::typed::{Candidates, TypeKind};
use crate::value::Value;
use crate::work;

/// A Go value that JSON can't represent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Where it should have been. A field is absent there; an item is `false`.
    pub path: Vec<ForeignStep>,
    /// As Go prints it with `%T`.
    pub go_type: String,
    /// As Go prints it with `%v`.
    pub printed: String,
    /// As Go prints it with `%#v`.
    pub syntax: String,
}

/// A step from a value to one within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignStep {
    /// A field of an object, by its name.
    Field(String),
    /// An item of a list, by its index.
    Item(usize),
}

impl TypeSchema {
    /// Why `foreign` can't be in `object`; `None` if its type allows any value there.
    pub fn foreign_fault(&self, object: &Value, foreign: &Foreign) -> Option<String> {
        let (mut id, mut value, mut at) = (self.root(), object, String::new());
        for step in &foreign.path {
            work::step();
            let type_ = self.get(id);
            match step {
                ForeignStep::Field(name) => {
                    at.push('.');
                    at.push_str(name);
                    let Some(field) = type_.map.as_ref()?.value(name) else {
                        return Some(format!("{at}: field not declared in schema"));
                    };
                    (id, value) = (field, value.get(name).unwrap_or(&Value::Null));
                }
                ForeignStep::Item(index) => {
                    let list = type_.list.as_ref()?;
                    value = value.as_array()?.get(*index)?;
                    id = list.element;
                    match (&list.items, list.item(value)) {
                        (Items::Atomic, _) => at.push_str(&format!("[{index}]")),
                        (Items::Set, _) => at.push_str("[={{undefined}}]"),
                        (Items::Map { .. }, Ok(item)) => at.push_str(&item.element().to_string()),
                        (Items::Map { .. }, Err(why)) => return Some(format!("{at}: element {index}: {why}")),
                    }
                }
            }
        }
        let type_ = self.get(id);
        let Foreign { go_type, printed, syntax, .. } = foreign;
        let why = match Candidates::of(type_, None).first(type_)? {
            TypeKind::Map(_) => format!("expected map, got &{{{printed}}}"),
            TypeKind::List(_) => format!("expected list, got &{{{printed}}}"),
            TypeKind::Scalar(ScalarType::Numeric) => format!("expected numeric (int or float), got {go_type}"),
            TypeKind::Scalar(ScalarType::String) => {
                format!("expected string, got &value.valueUnstructured{{Value:{syntax}}}")
            }
            TypeKind::Scalar(ScalarType::Boolean) => format!("expected boolean, got &{{{printed}}}"),
            TypeKind::Scalar(ScalarType::Untyped) => format!("expected any scalar, got &{{{printed}}}"),
        };
        Some(format!("{at}: {why}"))
    }
}
