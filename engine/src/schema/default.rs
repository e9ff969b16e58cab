//! Defaulting: absent fields take the values that the schema gives them.
//!
//! Input: a schema and a value, or a schema alone for [`prune_defaults`]. Output: the value with defaults, or without
//! nulls that are not allowed. Nothing here validates.

use std::collections::HashMap;
use std::sync::Arc;

use super::coerce;
use super::prune::prune;
use super::structural::{Structural, StructuralOrBool};
use crate::meta::field::Path;
use crate::value::{Map, Value};
use crate::work;

/// The most bytes of JSON that the defaults of an object may take; an object with more could not be stored.
pub const DEFAULTS_BYTES_MAX: usize = 4 << 20;

/// There are more defaults than an object may have. The text is the reference's, which passes it on from etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("etcdserver: request is too large")]
pub struct TooLarge;

/// Sets fields that are absent, or null but not nullable, to their default; items and map values only if they are null.
///
/// # Errors
///
/// The defaults take more than [`DEFAULTS_BYTES_MAX`] bytes; once they do, no more are set.
/// Source: Kubernetes documentation, "Defaulting"; answers recorded from apiextensions-apiserver 1.37.
pub fn apply(value: &mut Value, schema: &Structural) -> Result<(), TooLarge> {
    Defaulting { room: DEFAULTS_BYTES_MAX, remembered: DefaultsIndex::default() }.enter(value, schema)
}

/// Caches which properties of large schemas have defaults: a list may have many nearly empty objects of such a schema.
#[derive(Default)]
pub(super) struct DefaultsIndex<'s> {
    /// By the schema's address in memory.
    of_schemas: HashMap<*const Structural, Arc<[(&'s str, &'s Structural)]>>,
}

impl<'s> DefaultsIndex<'s> {
    /// The least number of properties for which caching pays.
    const PROPERTIES_MIN: usize = 64;

    /// Whether `schema` has many properties.
    pub fn is_worth(schema: &Structural) -> bool {
        schema.properties.len() >= Self::PROPERTIES_MIN
    }

    /// The properties of `schema` that have a default.
    pub fn of(&mut self, schema: &'s Structural) -> Arc<[(&'s str, &'s Structural)]> {
        Arc::clone(self.of_schemas.entry(schema).or_insert_with(|| with_defaults(schema)))
    }
}

struct Defaulting<'s> {
    /// Bytes left for defaults.
    room: usize,
    remembered: DefaultsIndex<'s>,
}

impl<'s> Defaulting<'s> {
    fn enter(&mut self, value: &mut Value, schema: &'s Structural) -> Result<(), TooLarge> {
        work::step();
        if schema.lacks.defaults {
            return Ok(());
        }
        match value {
            Value::Object(fields) => {
                self.set_absent(fields, schema)?;
                let mut properties = schema.properties.in_order();
                for (name, field) in fields.iter_mut() {
                    if let Some(property) = properties.get(name) {
                        self.enter(field, property)?;
                    } else if let Some(StructuralOrBool::Structural(schema)) = &schema.additional_properties {
                        self.replace_null(field, schema)?;
                        self.enter(field, schema)?;
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = schema.items.as_deref() else { return Ok(()) };
                for item in items {
                    self.replace_null(item, schema)?;
                    self.enter(item, schema)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn set_absent(&mut self, fields: &mut Map, schema: &'s Structural) -> Result<(), TooLarge> {
        if !DefaultsIndex::is_worth(schema) {
            work::steps(schema.properties.len());
            for (name, property) in schema.properties.iter() {
                self.set_if_absent(fields, name, property)?;
            }
            return Ok(());
        }
        let defaulted = self.remembered.of(schema);
        work::steps(defaulted.len());
        defaulted.iter().try_for_each(|(name, property)| self.set_if_absent(fields, name, property))
    }

    fn set_if_absent(&mut self, fields: &mut Map, name: &str, property: &Structural) -> Result<(), TooLarge> {
        let Some(default) = default_of(property) else { return Ok(()) };
        match fields.get_mut(name) {
            None => {
                self.take(name.len())?;
                fields.insert(name, self.copy(default)?);
                Ok(())
            }
            Some(field) => self.replace_null(field, property),
        }
    }

    fn replace_null(&mut self, value: &mut Value, schema: &Structural) -> Result<(), TooLarge> {
        if let (Value::Null, false, Some(default)) = (&value, schema.generic.nullable, default_of(schema)) {
            *value = self.copy(default)?;
        }
        Ok(())
    }

    fn copy(&mut self, default: &Value) -> Result<Value, TooLarge> {
        self.measure(default)?;
        Ok(default.clone())
    }

    /// Takes the least size of `value` as JSON off the room that is left.
    fn measure(&mut self, value: &Value) -> Result<(), TooLarge> {
        match value {
            Value::String(text) => self.take(text.len() + 2),
            Value::Array(items) => {
                self.take(2)?;
                items.iter().try_for_each(|item| self.measure(item))
            }
            Value::Object(fields) => {
                self.take(2)?;
                fields.iter().try_for_each(|(name, field)| {
                    self.take(name.len() + 3)?;
                    self.measure(field)
                })
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => self.take(1),
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), TooLarge> {
        work::bytes(bytes);
        self.room = self.room.checked_sub(bytes).ok_or(TooLarge)?;
        Ok(())
    }
}

/// The properties of a schema that have a default.
fn with_defaults(schema: &Structural) -> Arc<[(&str, &Structural)]> {
    work::steps(schema.properties.len());
    schema.properties.iter().filter(|(_, property)| default_of(property).is_some()).collect()
}

fn default_of(schema: &Structural) -> Option<&Value> {
    schema.generic.default.as_deref().filter(|default| !default.is_null())
}

/// Removes null fields that are not nullable and have no default. Null items stay.
///
/// Source: Kubernetes documentation, "Defaulting and Nullable"; answers recorded from apiextensions-apiserver 1.37.
pub fn prune_non_nullable_nulls(value: &mut Value, schema: &Structural) {
    work::step();
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
    let mut pruning = Pruning { root: schema, path: Vec::new(), pruned: Vec::new() };
    pruning.enter(schema, Surroundings { is_resource: true, ..Surroundings::default() });
    let mut pruned = pruning.pruned.into_iter();
    visit_defaults(schema, &mut |default| {
        if let Some(new) = pruned.next() {
            *default = new.map(Box::new);
        }
    });
}

enum DefaultStep<'s> {
    Field(&'s str),
    Item,
}

/// The surroundings of a node, as far as they decide how a default there is pruned.
#[derive(Clone, Copy, Default)]
struct Surroundings {
    /// An object with metadata.
    is_resource: bool,
    /// Below the type or the metadata of such an object.
    is_within_meta: bool,
    /// An item of a list that preserves unknown fields.
    is_preserved_item: bool,
}

/// The pruned form of each default, in the order in which [`visit_defaults`] comes to them.
struct Pruning<'s> {
    root: &'s Structural,
    path: Vec<DefaultStep<'s>>,
    pruned: Vec<Option<Value>>,
}

impl<'s> Pruning<'s> {
    fn enter(&mut self, schema: &'s Structural, around: Surroundings) {
        work::step();
        if let Some(default) = default_of(schema) {
            // Elsewhere the surroundings don't matter for a default, and going through them would be wasted work.
            let pruned = if around.is_within_meta || around.is_preserved_item || self.path.is_empty() {
                prune_in_place(self.root, &self.path, default)
            } else {
                Some(prune_alone(schema, default))
            };
            self.pruned.push(pruned);
        }
        if let Some(StructuralOrBool::Structural(values)) = &schema.additional_properties {
            self.within(DefaultStep::Field("*"), values, around.below(values));
        }
        if let Some(items) = &schema.items {
            let is_preserved_item = schema.extensions.preserve_unknown_fields || around.is_preserved_item;
            self.within(DefaultStep::Item, items, Surroundings { is_preserved_item, ..around.below(items) });
        }
        for (name, property) in schema.properties.iter() {
            let is_meta = around.is_resource && matches!(name, "apiVersion" | "kind" | "metadata");
            let below = around.below(property);
            let is_within_meta = below.is_within_meta || is_meta;
            self.within(DefaultStep::Field(name), property, Surroundings { is_within_meta, ..below });
        }
    }

    fn within(&mut self, step: DefaultStep<'s>, schema: &'s Structural, around: Surroundings) {
        self.path.push(step);
        self.enter(schema, around);
        self.path.pop();
    }
}

impl Surroundings {
    fn below(self, schema: &Structural) -> Self {
        let is_resource = schema.extensions.embedded_resource;
        Surroundings { is_resource, is_within_meta: self.is_within_meta, is_preserved_item: false }
    }
}

fn prune_alone(schema: &Structural, default: &Value) -> Value {
    let mut value = default.clone();
    // Nothing fails, as invalid metadata is dropped.
    let _unknown = coerce::coerce(&Path::ROOT, &mut value, schema, false, true);
    prune(&mut value, schema, false);
    value
}

/// Puts `default` into an otherwise empty object, coerces and prunes it there, and takes it out again.
fn prune_in_place(root: &Structural, path: &[DefaultStep<'_>], default: &Value) -> Option<Value> {
    work::steps(path.len());
    let mut object = path.iter().rev().fold(default.clone(), |inner, step| match step {
        DefaultStep::Field(name) => Map::from_iter([((*name).to_owned(), inner)]).into(),
        DefaultStep::Item => vec![inner].into(),
    });
    // Nothing fails, as invalid metadata is dropped.
    let _unknown = coerce::coerce(&Path::ROOT, &mut object, root, true, true);
    prune(&mut object, root, true);
    path.iter().try_fold(object, |outer, step| match (step, outer) {
        (DefaultStep::Field(name), Value::Object(mut fields)) => fields.remove(name),
        (DefaultStep::Item, Value::Array(items)) => items.into_iter().next(),
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
    use crate::object;
    use crate::schema::convert::to_structural;
    use crate::schema::{arbitrary, json_schema};
    use crate::value::arbitrary::value;
    use crate::value::{json, with_a_deep_stack};

    proptest! {
        #[test]
        fn defaulting_twice_changes_nothing_more(mut value in value(), schema in arbitrary::schema()) {
            prop_assert_eq!(apply(&mut value, &schema), Ok(()));
            let once = value.clone();
            prop_assert_eq!(apply(&mut value, &schema), Ok(()));
            prop_assert_eq!(value, once);
        }

        #[test]
        fn dropping_nulls_twice_drops_nothing_more(mut value in value(), schema in arbitrary::schema()) {
            prune_non_nullable_nulls(&mut value, &schema);
            let once = value.clone();
            prune_non_nullable_nulls(&mut value, &schema);
            prop_assert_eq!(value, once);
        }
    }

    fn schema(text: &str) -> Structural {
        let schema = json::decode(text.as_bytes()).expect("the test is JSON");
        to_structural(&json_schema::decode(&schema).expect("it is a schema").0).expect("it is structural")
    }

    /// An object with a list of so many empty objects, each of which gets a default of so many bytes.
    fn items(count: usize, bytes: usize) -> (Value, Structural) {
        let text = "x".repeat(bytes);
        let item = format!(r#"{{"type":"object","properties":{{"a":{{"type":"string","default":"{text}"}}}}}}"#);
        let list = format!(r#"{{"type":"object","properties":{{"l":{{"type":"array","items":{item}}}}}}}"#);
        (object! { "l" => vec![object! {}; count] }, schema(&list))
    }

    #[test]
    fn defaults_are_made_up_to_a_limit() {
        let (mut value, schema) = items(100_000, 300);
        let ((), steps) = work::counted(|| assert_eq!(apply(&mut value, &schema), Err(TooLarge)));
        let bytes = json::encode(&value).len();
        assert!(bytes < DEFAULTS_BYTES_MAX + (1 << 20), "{bytes}");
        assert!(steps < 1_000_000, "{steps}");
    }

    #[test]
    fn ten_times_the_items_take_ten_times_the_steps() {
        let steps = |count| {
            let (mut value, schema) = items(count, 10);
            work::counted(|| apply(&mut value, &schema)).1
        };
        assert!(steps(10_000) < 13 * steps(1000), "{} {}", steps(1000), steps(10_000));
    }

    #[test]
    fn many_objects_of_a_wide_schema_take_no_more_steps_than_both_have() {
        const COUNT: usize = 2_000;
        let properties: Vec<_> = (0..COUNT).map(|at| format!(r#""p{at}":{{"type":"string"}}"#)).collect();
        let defaulted = r#""a":{"type":"string","default":"b"},"n":{"type":"string","default":"c"}"#;
        let item = format!(r#"{{"type":"object","properties":{{{},{defaulted}}}}}"#, properties.join(","));
        let schema = schema(&format!(r#"{{"type":"object","properties":{{"l":{{"type":"array","items":{item}}}}}}}"#));
        let mut value = object! { "l" => vec![object! { "n" => Value::Null }; COUNT] };
        let (set, steps) = work::counted(|| apply(&mut value, &schema));
        assert_eq!((set, value), (Ok(()), object! { "l" => vec![object! { "n" => "c", "a" => "b" }; COUNT] }));
        assert!(steps < 20 * COUNT as u64, "{steps} steps");
    }

    #[test]
    fn defaults_of_a_deep_schema_are_pruned_where_they_stand() {
        let steps = |depth: usize| {
            let open = r#"{"type":"object","properties":{"d":{"type":"integer","default":1},"p":"#.repeat(depth);
            let mut schema = schema(&format!(r#"{open}{{"type":"object"}}{}"#, "}}".repeat(depth)));
            work::counted(|| prune_defaults(&mut schema)).1
        };
        with_a_deep_stack(move || assert!(steps(200) < 13 * steps(20), "{} {}", steps(20), steps(200)));
    }

    /// A default is pruned alone as it is within an otherwise empty object.
    #[test]
    fn defaults_are_pruned_as_in_an_object() {
        let mut runner = proptest::test_runner::TestRunner::default();
        let outcome = runner.run(&arbitrary::schema(), |schema| {
            let mut pruned = schema.clone();
            prune_defaults(&mut pruned);
            let mut expected = Vec::new();
            collect_in_place(&schema, &schema, &mut Vec::new(), &mut expected);
            let mut found = Vec::new();
            let mut places = schema.clone();
            collect_pruned(&mut places, &mut pruned, &mut found);
            prop_assert_eq!(found, expected);
            Ok(())
        });
        outcome.expect("they are the same");
    }

    fn collect_in_place<'s>(
        root: &Structural,
        schema: &'s Structural,
        path: &mut Vec<DefaultStep<'s>>,
        pruned: &mut Vec<Option<Value>>,
    ) {
        if let Some(default) = default_of(schema) {
            pruned.push(prune_in_place(root, path, default));
        }
        let values = schema.additional_properties.as_ref().and_then(StructuralOrBool::structural);
        let values = values.map(|values| (DefaultStep::Field("*"), values)).into_iter();
        let items = schema.items.as_deref().map(|items| (DefaultStep::Item, items));
        let properties = schema.properties.iter().map(|(name, property)| (DefaultStep::Field(name), property));
        for (step, below) in values.chain(items).chain(properties) {
            path.push(step);
            collect_in_place(root, below, path, pruned);
            path.pop();
        }
    }

    /// What became of the defaults that `before` has.
    fn collect_pruned(before: &mut Structural, after: &mut Structural, found: &mut Vec<Option<Value>>) {
        let mut had = Vec::new();
        visit_all(before, &mut |default| had.push(default.as_deref().is_some_and(|default| !default.is_null())));
        let mut had = had.into_iter();
        visit_all(after, &mut |default| {
            if had.next() == Some(true) {
                found.push(default.as_deref().cloned());
            }
        });
    }

    fn visit_all(schema: &mut Structural, visit: &mut impl FnMut(&mut Option<Box<Value>>)) {
        visit(&mut schema.generic.default);
        if let Some(StructuralOrBool::Structural(values)) = &mut schema.additional_properties {
            visit_all(values, visit);
        }
        if let Some(items) = &mut schema.items {
            visit_all(items, visit);
        }
        for property in schema.properties.values_mut() {
            visit_all(property, visit);
        }
    }
}
