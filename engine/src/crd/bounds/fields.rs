//! The fields of a schema whose size can be limited by a keyword, and their paths.

use std::fmt;

use crate::crd::validate::expressions::SchemaStep;
use crate::schema::structural::{Structural, StructuralOrBool, ValueValidation};

/// A list, a map or a text, and the keyword that limits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizedField {
    /// The path from the schema's root.
    pub steps: Vec<SchemaStep>,
    /// Which bound it is.
    pub keyword: Keyword,
}

/// The keywords that bound the size of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// `maxItems`
    MaxItems,
    /// `maxProperties`
    MaxProperties,
    /// `maxLength`
    MaxLength,
}

impl fmt::Display for SizedField {
    /// As a path into objects: `spec.ports[*].name`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return out.write_str("the object itself");
        }
        for (index, step) in self.steps.iter().enumerate() {
            match step {
                SchemaStep::Property(name) if index == 0 => out.write_str(name)?,
                SchemaStep::Property(name) => write!(out, ".{name}")?,
                SchemaStep::Items | SchemaStep::Values => out.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Keyword {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Keyword::MaxItems => "maxItems",
            Keyword::MaxProperties => "maxProperties",
            Keyword::MaxLength => "maxLength",
        })
    }
}

/// The node that `steps` lead to.
pub fn descend<'s>(root: &'s Structural, steps: &[SchemaStep]) -> Option<&'s Structural> {
    steps.iter().try_fold(root, child)
}

/// Collects the fields in and below a node whose size can be limited by a keyword.
pub(super) fn collect(node: &Structural, steps: &mut Vec<SchemaStep>, places: &mut Vec<SizedField>) {
    if let Some(keyword) = keyword(node) {
        places.push(SizedField { steps: steps.clone(), keyword });
    }
    for (step, below) in children(node) {
        steps.push(step);
        collect(below, steps, places);
        steps.pop();
    }
}

/// [`collect`] restricted to the nodes on `ways`.
pub(super) fn collect_among(
    node: &Structural,
    ways: &[&[SchemaStep]],
    steps: &mut Vec<SchemaStep>,
    places: &mut Vec<SizedField>,
) {
    if let Some(keyword) = keyword(node).filter(|_| ways.iter().any(|way| way.is_empty())) {
        places.push(SizedField { steps: steps.clone(), keyword });
    }
    if ways.iter().all(|way| way.is_empty()) {
        return;
    }
    for (step, below) in children(node) {
        let on: Vec<&[SchemaStep]> = ways
            .iter()
            .filter_map(|way| way.split_first().filter(|(first, _)| **first == step))
            .map(|(_, rest)| rest)
            .collect();
        if !on.is_empty() {
            steps.push(step);
            collect_among(below, &on, steps, places);
            steps.pop();
        }
    }
}

fn children(node: &Structural) -> impl Iterator<Item = (SchemaStep, &Structural)> {
    let values = node.additional_properties.as_ref().and_then(StructuralOrBool::structural);
    let items = node.items.as_deref().map(|items| (SchemaStep::Items, items));
    let properties = node.properties.iter().map(|(name, property)| (SchemaStep::Property(name.to_owned()), property));
    items.into_iter().chain(values.map(|values| (SchemaStep::Values, values))).chain(properties)
}

/// The keyword that limits the values of a node; `None` if their size is known anyway.
pub(super) fn keyword(node: &Structural) -> Option<Keyword> {
    let limits = node.value_validation.as_deref();
    let has_size = || {
        let is_enumerated = limits.is_some_and(|limits| !limits.enum_.is_empty());
        let format = limits.map_or("", |limits| limits.format.as_str());
        is_enumerated || matches!(format, "date" | "date-time" | "duration")
    };
    match node.generic.type_.as_str() {
        _ if node.extensions.int_or_string => Some(Keyword::MaxLength),
        "array" => Some(Keyword::MaxItems),
        "object" if node.additional_properties.is_some() => Some(Keyword::MaxProperties),
        "string" if !has_size() => Some(Keyword::MaxLength),
        _ => None,
    }
}

pub(super) fn limit(node: &Structural, keyword: Keyword) -> Option<i64> {
    let limits = node.value_validation.as_deref()?;
    match keyword {
        Keyword::MaxItems => limits.bounds.max_items,
        Keyword::MaxProperties => limits.bounds.max_properties,
        Keyword::MaxLength => limits.bounds.max_length,
    }
}

pub(super) fn limit_mut(limits: &mut ValueValidation, keyword: Keyword) -> &mut Option<i64> {
    match keyword {
        Keyword::MaxItems => &mut limits.bounds.max_items,
        Keyword::MaxProperties => &mut limits.bounds.max_properties,
        Keyword::MaxLength => &mut limits.bounds.max_length,
    }
}

pub(super) fn child<'s>(node: &'s Structural, step: &SchemaStep) -> Option<&'s Structural> {
    match step {
        SchemaStep::Property(name) => node.properties.get(name),
        SchemaStep::Items => node.items.as_deref(),
        SchemaStep::Values => node.additional_properties.as_ref().and_then(StructuralOrBool::structural),
    }
}

pub(super) fn descend_mut<'s>(node: &'s mut Structural, steps: &[SchemaStep]) -> Option<&'s mut Structural> {
    let Some((step, rest)) = steps.split_first() else { return Some(node) };
    let below = match step {
        SchemaStep::Property(name) => node.properties.get_mut(name),
        SchemaStep::Items => node.items.as_deref_mut(),
        SchemaStep::Values => match node.additional_properties.as_mut()? {
            StructuralOrBool::Structural(values) => Some(&mut **values),
            StructuralOrBool::Bool(_) => None,
        },
    };
    descend_mut(below?, rest)
}
