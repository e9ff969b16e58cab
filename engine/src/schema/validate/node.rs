//! Where validation is: in the value, and in the schema.

use std::fmt;

use super::super::structural::{NestedValueValidation, Structural, StructuralOrBool, ValueValidation};
use crate::value::{InOrder, Key};

/// How a schema is read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Reading {
    /// As for objects.
    #[default]
    Served,
    /// To the letter.
    Written,
}

/// The path from the root of the validated value. It prints as in messages, where the root is empty.
#[derive(Clone, Copy)]
pub(super) enum ValuePath<'p> {
    Root,
    Property(&'p ValuePath<'p>, &'p str),
    /// A field under `additionalProperties`, or a missing one: it begins with a dot even at the root.
    Other(&'p ValuePath<'p>, &'p str),
    Item(&'p ValuePath<'p>, usize),
}

impl ValuePath<'_> {
    /// Whether it prints as nothing: the root, and fields with empty names directly below it.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            ValuePath::Root => true,
            ValuePath::Property(parent, name) => name.is_empty() && parent.is_empty(),
            ValuePath::Other(..) | ValuePath::Item(..) => false,
        }
    }
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePath::Root => Ok(()),
            ValuePath::Property(parent, name) if parent.is_empty() => out.write_str(name),
            ValuePath::Property(parent, name) | ValuePath::Other(parent, name) => write!(out, "{parent}.{name}"),
            ValuePath::Item(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}

/// The types that a schema names.
#[derive(Clone, Copy)]
pub(super) enum Types<'s> {
    Any,
    One(&'s str),
    IntOrString,
}

impl<'s> Types<'s> {
    pub(super) fn contains(self, name: &str) -> bool {
        match self {
            Types::Any => false,
            Types::One(type_) => type_ == name,
            Types::IntOrString => matches!(name, "integer" | "string"),
        }
    }

    /// The type, if there is only one.
    pub(super) fn single(self) -> &'s str {
        match self {
            Types::One(type_) => type_,
            Types::Any | Types::IntOrString => "",
        }
    }
}

impl fmt::Display for Types<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Types::Any => Ok(()),
            Types::One(type_) => out.write_str(type_),
            Types::IntOrString => out.write_str("integer,string"),
        }
    }
}

/// A schema, whole or under a junctor.
#[derive(Clone, Copy)]
pub(super) enum SchemaNode<'s> {
    Whole(&'s Structural),
    Nested(&'s NestedValueValidation),
}

/// The properties of a schema, which are looked up in order.
pub(super) enum Properties<'s> {
    Whole(InOrder<'s, Key, Structural>),
    Nested(InOrder<'s, Key, NestedValueValidation>),
}

impl<'s> Properties<'s> {
    pub(super) fn get(&mut self, name: &str) -> Option<SchemaNode<'s>> {
        match self {
            Properties::Whole(properties) => properties.get(name).map(SchemaNode::Whole),
            Properties::Nested(properties) => properties.get(name).map(SchemaNode::Nested),
        }
    }
}

/// How a schema treats fields that it does not name.
pub(super) enum OtherFields<'s> {
    Ignored,
    Forbidden,
    Validated(SchemaNode<'s>),
}

impl<'s> SchemaNode<'s> {
    pub(super) fn types(self, reading: Reading) -> Types<'s> {
        let (generic, extensions) = match self {
            SchemaNode::Whole(schema) => (&schema.generic, &schema.extensions),
            SchemaNode::Nested(schema) => (&*schema.forbidden_generics, &schema.forbidden_extensions),
        };
        match generic.type_.as_str() {
            _ if extensions.int_or_string && reading == Reading::Served => Types::IntOrString,
            "" => Types::Any,
            type_ => Types::One(type_),
        }
    }

    pub(super) fn nullable(self) -> bool {
        match self {
            SchemaNode::Whole(schema) => schema.generic.nullable,
            SchemaNode::Nested(schema) => schema.forbidden_generics.nullable,
        }
    }

    pub(super) fn value_validation(self) -> Option<&'s ValueValidation> {
        match self {
            SchemaNode::Whole(schema) => schema.value_validation.as_deref(),
            SchemaNode::Nested(schema) => Some(&schema.value_validation),
        }
    }

    pub(super) fn items(self) -> Option<SchemaNode<'s>> {
        match self {
            SchemaNode::Whole(schema) => schema.items.as_deref().map(SchemaNode::Whole),
            SchemaNode::Nested(schema) => schema.items.as_deref().map(SchemaNode::Nested),
        }
    }

    /// For looking up the properties of an object's fields.
    pub(super) fn properties(self) -> Properties<'s> {
        match self {
            SchemaNode::Whole(schema) => Properties::Whole(schema.properties.in_order()),
            SchemaNode::Nested(schema) => Properties::Nested(schema.properties.in_order()),
        }
    }

    pub(super) fn has_properties(self) -> bool {
        match self {
            SchemaNode::Whole(schema) => !schema.properties.is_empty(),
            SchemaNode::Nested(schema) => !schema.properties.is_empty(),
        }
    }

    pub(super) fn other_fields(self) -> OtherFields<'s> {
        match self {
            SchemaNode::Whole(schema) => match &schema.additional_properties {
                None | Some(StructuralOrBool::Bool(true)) => OtherFields::Ignored,
                Some(StructuralOrBool::Bool(false)) => OtherFields::Forbidden,
                Some(StructuralOrBool::Structural(schema)) => OtherFields::Validated(SchemaNode::Whole(schema)),
            },
            SchemaNode::Nested(schema) if schema.forbids_additional_properties => OtherFields::Forbidden,
            SchemaNode::Nested(schema) => match &schema.additional_properties {
                None => OtherFields::Ignored,
                Some(schema) => OtherFields::Validated(SchemaNode::Nested(schema)),
            },
        }
    }
}
