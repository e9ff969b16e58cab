//! The schemas of values that a schema does not name: entries of maps, unknown fields, items of possible lists.
//!
//! Input: a node. Output: the schema that applies to such a value; `None` if it can't exist, as it is dropped. This
//! allows two nodes to be compared field by field, whatever form each of them has.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::schema::structural::{Extensions, Generic, Structural, StructuralOrBool};

/// Any value with all its fields: the schema of unknown fields that are preserved.
static ANY: LazyLock<Structural> = LazyLock::new(|| any(true));

/// Any value without the fields of its objects: the result of `additionalProperties: true`.
static ANY_WITHOUT_FIELDS: LazyLock<Structural> = LazyLock::new(|| any(false));

fn any(preserve_unknown_fields: bool) -> Structural {
    Structural {
        generic: Generic { nullable: true, ..Generic::default() },
        extensions: Extensions { preserve_unknown_fields, ..Extensions::default() }.into(),
        ..Structural::default()
    }
}

fn any_of(schema: &Structural) -> &'static Structural {
    if schema.extensions.preserve_unknown_fields { &ANY } else { &ANY_WITHOUT_FIELDS }
}

/// Whether `schema` stands for a value without a schema.
pub fn is_undescribed(schema: &Structural) -> bool {
    std::ptr::eq(schema, &raw const *ANY) || std::ptr::eq(schema, &raw const *ANY_WITHOUT_FIELDS)
}

/// Whether values of all types pass.
pub fn takes_all_types(schema: &Structural) -> bool {
    schema.generic.type_.is_empty() && !schema.extensions.int_or_string
}

/// Whether objects pass.
pub fn takes_objects(schema: &Structural) -> bool {
    takes_all_types(schema) || schema.generic.type_ == "object"
}

/// The schema for fields of an object that `properties` does not name.
pub fn others(schema: &Structural) -> Option<&Structural> {
    if !takes_objects(schema) {
        return None;
    }
    match &schema.additional_properties {
        Some(StructuralOrBool::Structural(entries)) => Some(entries),
        _ if schema.extensions.preserve_unknown_fields => Some(&ANY),
        Some(StructuralOrBool::Bool(true)) => Some(&ANY_WITHOUT_FIELDS),
        _ => None,
    }
}

/// The schema for the items of a list; `None` if there can't be a list.
pub fn items(schema: &Structural) -> Option<&Structural> {
    match &schema.items {
        Some(items) => Some(items),
        None => takes_all_types(schema).then(|| any_of(schema)),
    }
}

/// Whether a field of a resource is kept and checked without being specified.
pub fn is_meta_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// The server's schema for such a field, given the one in the definition.
pub fn meta_field<'s>(name: &str, schema: Option<&'s Structural>) -> Cow<'s, Structural> {
    let of_type = |type_: &str| Structural {
        generic: Generic { type_: type_.to_owned(), ..Generic::default() },
        ..Structural::default()
    };
    if name != "metadata" {
        return schema.map_or_else(|| Cow::Owned(of_type("string")), Cow::Borrowed);
    }
    // Metadata is read by its own type: nothing of it is pruned, whatever is specified.
    let mut metadata = schema.cloned().unwrap_or_else(|| of_type("object"));
    metadata.extensions.preserve_unknown_fields = true;
    for name in ["name", "generateName"] {
        if !metadata.properties.contains_key(name) {
            metadata.properties.insert(name, of_type("string"));
        }
    }
    Cow::Owned(metadata)
}
