//! Defaulting: absent fields take the values that the schema gives them.
//!
//! In: a schema and a value, or a schema alone for [`prune_defaults`]. Out: the value with defaults, or without nulls
//! that may not stand. Nothing here validates.

use super::coerce;
use super::prune::prune;
use super::structural::{Structural, StructuralOrBool};
use crate::meta::field::Path;
use crate::value::{Map, Value};

/// Sets fields that are absent, or null though not nullable, to their default; items and map values only when null.
///
/// Source: Kubernetes documentation, "Defaulting"; answers recorded from apiextensions-apiserver 1.37.
pub fn apply(value: &mut Value, schema: &Structural) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema.properties.iter() {
                let Some(default) = default_of(property) else { continue };
                match fields.get_mut(name) {
                    None => {
                        fields.insert(name, default.clone());
                    }
                    Some(field) => replace_null(field, property),
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(property) = schema.properties.get(name) {
                    apply(field, property);
                } else if let Some(StructuralOrBool::Structural(schema)) = &schema.additional_properties {
                    replace_null(field, schema);
                    apply(field, schema);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items.as_deref() else { return };
            for item in items {
                replace_null(item, schema);
                apply(item, schema);
            }
        }
        _ => {}
    }
}

fn default_of(schema: &Structural) -> Option<&Value> {
    schema.generic.default.as_deref().filter(|default| !default.is_null())
}

fn replace_null(value: &mut Value, schema: &Structural) {
    if let (Value::Null, false, Some(default)) = (&value, schema.generic.nullable, default_of(schema)) {
        *value = default.clone();
    }
}

/// Removes fields that are null though neither nullable nor with a default. Null items stay.
///
/// Source: Kubernetes documentation, "Defaulting and Nullable"; answers recorded from apiextensions-apiserver 1.37.
pub fn prune_non_nullable_nulls(value: &mut Value, schema: &Structural) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let schema = match (schema.properties.get(name), &schema.additional_properties) {
                (Some(property), _) => property,
                (None, Some(StructuralOrBool::Structural(schema))) => schema,
                _ => return true,
            };
            if field.is_null() {
                return schema.generic.nullable || default_of(schema).is_some();
            }
            prune_non_nullable_nulls(field, schema);
            true
        }),
        Value::Array(items) => {
            let Some(schema) = schema.items.as_deref() else { return };
            for item in items {
                prune_non_nullable_nulls(item, schema);
            }
        }
        _ => {}
    }
}

/// Coerces and prunes the defaults themselves, each where it would stand in an object of the kind.
///
/// Source: answers recorded from apiextensions-apiserver 1.37.
pub fn prune_defaults(schema: &mut Structural) {
    let mut pruned = Vec::new();
    collect_pruned(schema, schema, &mut Vec::new(), &mut pruned);
    let mut pruned = pruned.into_iter();
    visit_defaults(schema, &mut |default| {
        if let Some(new) = pruned.next() {
            *default = new.map(Box::new);
        }
    });
}

enum Step<'s> {
    Field(&'s str),
    Item,
}

/// The pruned form of each default, in the order in which [`visit_defaults`] comes to them.
fn collect_pruned<'s>(
    root: &Structural,
    schema: &'s Structural,
    path: &mut Vec<Step<'s>>,
    pruned: &mut Vec<Option<Value>>,
) {
    if let Some(default) = default_of(schema) {
        pruned.push(prune_in_place(root, path, default));
    }
    if let Some(StructuralOrBool::Structural(values)) = &schema.additional_properties {
        path.push(Step::Field("*"));
        collect_pruned(root, values, path, pruned);
        path.pop();
    }
    if let Some(items) = &schema.items {
        path.push(Step::Item);
        collect_pruned(root, items, path, pruned);
        path.pop();
    }
    for (name, property) in schema.properties.iter() {
        path.push(Step::Field(name));
        collect_pruned(root, property, path, pruned);
        path.pop();
    }
}

/// `default` put into an object that has nothing else, coerced and pruned with it, and taken out again.
fn prune_in_place(root: &Structural, path: &[Step<'_>], default: &Value) -> Option<Value> {
    let mut object = path.iter().rev().fold(default.clone(), |inner, step| match step {
        Step::Field(name) => Map::from_iter([((*name).to_owned(), inner)]).into(),
        Step::Item => vec![inner].into(),
    });
    // Nothing fails, as invalid metadata is dropped.
    let _unknown = coerce::coerce(&Path::ROOT, &mut object, root, true, true);
    prune(&mut object, root, true);
    path.iter().try_fold(object, |outer, step| match (step, outer) {
        (Step::Field(name), Value::Object(mut fields)) => fields.remove(name),
        (Step::Item, Value::Array(items)) => items.into_iter().next(),
        _ => None,
    })
}

fn visit_defaults(schema: &mut Structural, visit: &mut impl FnMut(&mut Option<Box<Value>>)) {
    if default_of(schema).is_some() {
        visit(&mut schema.generic.default);
    }
    if let Some(StructuralOrBool::Structural(values)) = &mut schema.additional_properties {
        visit_defaults(values, visit);
    }
    if let Some(items) = &mut schema.items {
        visit_defaults(items, visit);
    }
    for property in schema.properties.values_mut() {
        visit_defaults(property, visit);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::arbitrary;

    proptest! {
        #[test]
        fn defaulting_twice_changes_nothing_more(mut value in arbitrary::value(), schema in arbitrary::schema()) {
            apply(&mut value, &schema);
            let once = value.clone();
            apply(&mut value, &schema);
            prop_assert_eq!(value, once);
        }

        #[test]
        fn dropping_nulls_twice_drops_nothing_more(mut value in arbitrary::value(), schema in arbitrary::schema()) {
            prune_non_nullable_nulls(&mut value, &schema);
            let once = value.clone();
            prune_non_nullable_nulls(&mut value, &schema);
            prop_assert_eq!(value, once);
        }
    }
}
