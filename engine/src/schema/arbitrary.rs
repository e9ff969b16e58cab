//! Random schemas for property tests.

use proptest::collection::btree_map;
use proptest::prelude::*;

use super::structural::{Extensions, Generic, Structural, StructuralOrBool};
use crate::value::arbitrary::{name, value};

/// A schema with every kind of structure, and with defaults anywhere.
pub fn schema() -> impl Strategy<Value = Structural> {
    let bare = || (any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(value()));
    let leaf = bare().prop_map(|(nullable, preserve_unknown_fields, embedded_resource, default)| Structural {
        generic: Generic { nullable, default: default.map(Box::new), ..Generic::default() },
        extensions: Extensions { preserve_unknown_fields, embedded_resource, ..Extensions::default() }.into(),
        ..Structural::default()
    });
    let leaf = leaf.prop_map(noted);
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let additional = prop_oneof![
            any::<bool>().prop_map(StructuralOrBool::Bool),
            inner.clone().prop_map(|schema| StructuralOrBool::Structural(Box::new(schema))),
        ];
        let parts =
            (btree_map(name(), inner.clone(), 0..4), prop::option::of(inner), prop::option::of(additional), bare());
        parts.prop_map(|(properties, items, additional_properties, (nullable, preserve, embedded, default))| {
            noted(Structural {
                properties: properties.into_iter().collect(),
                items: items.map(Box::new),
                additional_properties,
                generic: Generic { nullable, default: default.map(Box::new), ..Generic::default() },
                extensions: Extensions {
                    preserve_unknown_fields: preserve,
                    embedded_resource: embedded,
                    ..Extensions::default()
                }
                .into(),
                ..Structural::default()
            })
        })
    })
}

fn noted(mut schema: Structural) -> Structural {
    schema.note_lacks();
    schema
}
