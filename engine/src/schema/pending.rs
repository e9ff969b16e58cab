//! Whether the passes over a value would change anything: mostly they would not, and one walk finds out.
//!
//! Input: a schema and a value. Output: what pruning, dropping of nulls, coercion of embedded objects and defaulting
//! would still do. It may report work where there is none, but never misses any.

use std::iter::Peekable;

use super::default::DefaultsIndex;
use super::structural::{Structural, StructuralOrBool};
use crate::value::{Map, Value};
use crate::work;

/// What the passes would still do to a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Something may have to be removed: an unknown field, a null that is not allowed, a part of an embedded object.
    pub removals: bool,
    /// A default may be missing. Not looked for beyond the first removal.
    pub defaults: bool,
}

impl Pending {
    /// Where nobody has looked.
    pub const UNKNOWN: Pending = Pending { removals: true, defaults: true };

    /// Whether no pass would change the value.
    pub fn is_none(self) -> bool {
        !self.removals && !self.defaults
    }
}

/// What is still to be done to `value`, a whole object. Its own `apiVersion`, `kind` and `metadata` are not unknown.
pub fn pending(value: &Value, schema: &Structural) -> Pending {
    let mut look = PendingFindings::default();
    let removals = match value {
        Value::Object(fields) if !is_special(schema) => {
            fields_remove(fields, schema, NodeSurroundings::ROOT, &mut look)
        }
        _ => true,
    };
    Pending { removals, defaults: look.lacks_defaults }
}

/// What the walk has found.
#[derive(Default)]
struct PendingFindings<'s> {
    lacks_defaults: bool,
    remembered: DefaultsIndex<'s>,
}

impl<'s> PendingFindings<'s> {
    /// In an object with many properties, notes whether a field with a default is absent.
    fn note_absent(&mut self, fields: &Map, schema: &'s Structural) {
        if self.lacks_defaults {
            return;
        }
        let defaulted = self.remembered.of(schema);
        work::steps(defaulted.len());
        self.lacks_defaults = defaulted.iter().any(|(name, _)| !fields.contains_key(name));
    }
}

/// The properties of an object, looked up by its fields in order.
enum Properties<'s, I: Iterator<Item = (&'s str, &'s Structural)>> {
    /// Few properties: those that are skipped are absent.
    Few(Peekable<I>),
    /// So many properties that the ones with a default are indexed.
    Many(&'s Map<Structural>),
}

impl<'s, I: Iterator<Item = (&'s str, &'s Structural)>> Properties<'s, I> {
    fn next(&mut self, name: &str, look: &mut PendingFindings<'s>) -> Option<&'s Structural> {
        match self {
            Properties::Few(properties) => {
                // Both come sorted, and mostly no property is absent.
                if let Some((_, property)) = properties.next_if(|(property, _)| *property == name) {
                    return Some(property);
                }
                while let Some((_, absent)) = properties.next_if(|(property, _)| *property < name) {
                    look.lacks_defaults |= has_default(absent);
                }
                properties.next_if(|(property, _)| *property == name).map(|(_, property)| property)
            }
            Properties::Many(properties) => properties.get(name),
        }
    }

    /// Notes the remaining properties, which are absent.
    fn end(self, look: &mut PendingFindings<'s>) {
        if let Properties::Few(mut properties) = self {
            look.lacks_defaults |= properties.any(|(_, absent)| has_default(absent));
        }
    }
}

/// Where a node stands.
#[derive(Clone, Copy)]
struct NodeSurroundings {
    is_root: bool,
    /// Whether unknown fields of this very node stay.
    preserves: bool,
    /// Whether nothing here or below is pruned: within metadata.
    is_within_meta: bool,
}

impl NodeSurroundings {
    const ROOT: NodeSurroundings = NodeSurroundings { is_root: true, preserves: false, is_within_meta: false };

    fn below(self, is_meta: bool) -> Self {
        NodeSurroundings { is_root: false, preserves: false, is_within_meta: self.is_within_meta || is_meta }
    }

    fn preserves(self, schema: &Structural) -> bool {
        self.preserves || self.is_within_meta || schema.extensions.preserve_unknown_fields
    }
}

/// Embedded objects need more checks than this walk makes.
fn is_special(schema: &Structural) -> bool {
    schema.extensions.embedded_resource
}

/// Whether anything within `value` would be removed. The parent checks null fields and items.
fn removes<'s>(
    value: &Value,
    schema: &'s Structural,
    around: NodeSurroundings,
    look: &mut PendingFindings<'s>,
) -> bool {
    work::step();
    if is_special(schema) {
        return true;
    }
    match value {
        Value::Object(fields) => fields_remove(fields, schema, around, look),
        Value::Array(items) => items_remove(items, schema, around, look),
        _ => false,
    }
}

fn items_remove<'s>(
    items: &[Value],
    schema: &'s Structural,
    around: NodeSurroundings,
    look: &mut PendingFindings<'s>,
) -> bool {
    // Items of a list that preserves unknown fields preserve them, too.
    let preserves = around.preserves(schema);
    let Some(schema) = schema.items.as_deref() else { return !preserves && !items.iter().all(is_plain) };
    items.iter().any(|item| {
        look.lacks_defaults |= item.is_null() && has_default(schema) && !schema.generic.nullable;
        removes(item, schema, NodeSurroundings { preserves, ..around.below(false) }, look)
    })
}

fn fields_remove<'s>(
    fields: &Map,
    schema: &'s Structural,
    around: NodeSurroundings,
    look: &mut PendingFindings<'s>,
) -> bool {
    let preserves = around.preserves(schema);
    let mut properties = if DefaultsIndex::is_worth(schema) {
        look.note_absent(fields, schema);
        Properties::Many(&schema.properties)
    } else {
        work::steps(schema.properties.len());
        Properties::Few(schema.properties.iter().peekable())
    };
    for (name, field) in fields.iter() {
        let property = properties.next(name, look);
        let is_meta = around.is_root && matches!(name, "apiVersion" | "kind" | "metadata");
        let removed = match (property, &schema.additional_properties) {
            (Some(of), _) => field_removes(field, of, around.below(is_meta), look),
            (None, Some(StructuralOrBool::Structural(of))) => field_removes(field, of, around.below(is_meta), look),
            // Any value may stand here, and no field is known.
            (None, Some(StructuralOrBool::Bool(_))) => !is_meta && !around.is_within_meta && !is_plain(field),
            (None, None) => !preserves && !is_meta,
        };
        if removed {
            return true;
        }
    }
    properties.end(look);
    false
}

fn field_removes<'s>(
    field: &Value,
    schema: &'s Structural,
    around: NodeSurroundings,
    look: &mut PendingFindings<'s>,
) -> bool {
    if field.is_null() && !schema.generic.nullable {
        look.lacks_defaults |= has_default(schema);
        return !has_default(schema);
    }
    removes(field, schema, around, look)
}

/// Whether the value can't contain unknown fields.
fn is_plain(value: &Value) -> bool {
    !matches!(value, Value::Object(_) | Value::Array(_))
}

fn has_default(schema: &Structural) -> bool {
    schema.generic.default.as_deref().is_some_and(|default| !default.is_null())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::meta::field::Path;
    use crate::schema::convert::to_structural;
    use crate::schema::{arbitrary, coerce, default, json_schema, prune};
    use crate::value::arbitrary::value;
    use crate::value::json;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn what_is_settled_stays_as_it_is(value in value(), schema in arbitrary::schema(), drops: bool) {
            let found = pending(&value, &schema);
            let mut passed = value.clone();
            if !found.removals {
                prop_assert_eq!(prune::prune(&mut passed, &schema, true), Vec::<String>::new());
                default::prune_non_nullable_nulls(&mut passed, &schema);
                prop_assert_eq!(coerce::coerce(&Path::ROOT, &mut passed, &schema, false, drops), Ok(Vec::new()));
                prop_assert_eq!(&passed, &value);
            }
            if found.is_none() {
                prop_assert_eq!(default::apply(&mut passed, &schema), Ok(()));
                prop_assert_eq!(&passed, &value);
            }
        }
    }

    /// Walking a list of nearly empty objects takes time in proportion to the fields they have, not those they might
    /// have.
    #[test]
    fn properties_that_nobody_sets_are_looked_at_once() {
        const COUNT: u64 = 2_000;
        let properties: Vec<_> = (0..COUNT).map(|at| format!(r#""p{at}":{{"type":"string"}}"#)).collect();
        let items = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
        let text = format!(r#"{{"type":"object","properties":{{"l":{{"type":"array","items":{items}}}}}}}"#);
        let schema = json_schema::decode(&json::decode(text.as_bytes()).expect("it is JSON"));
        let schema = to_structural(&schema.expect("it is a schema").0).expect("it is structural");
        let objects: Vec<_> = (0..COUNT).map(|at| format!(r#"{{"p{at}":""}}"#)).collect();
        let value = json::decode(format!(r#"{{"l":[{}]}}"#, objects.join(",")).as_bytes()).expect("it is JSON");
        let (found, steps) = work::counted(|| pending(&value, &schema));
        assert!(found.is_none());
        assert!(steps < 10 * COUNT, "{steps} steps");
    }

    #[test]
    fn what_the_passes_have_been_over_is_settled() {
        let text = r#"{"type":"object","properties":{"spec":{"type":"object","properties":{
            "ports":{"type":"array","items":{"type":"object","properties":{
                "name":{"type":"string"},"protocol":{"type":"string","default":"TCP"}}}},
            "labels":{"type":"object","additionalProperties":{"type":"string"}},
            "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}"#;
        let schema =
            json_schema::decode(&json::decode(text.as_bytes()).expect("it is JSON")).expect("it is a schema").0;
        let schema = to_structural(&schema).expect("it is structural");
        let sent = r#"{"kind":"A","metadata":{"name":"a"},"spec":{"labels":{"a":"b"},"free":{"x":[{}]},
            "ports":[{"name":"http"},{"name":"https","protocol":"UDP"}]}}"#;
        let mut value = json::decode(sent.as_bytes()).expect("it is JSON");
        assert_eq!(pending(&value, &schema), Pending { removals: false, defaults: true });
        default::apply(&mut value, &schema).expect("there are few defaults");
        assert!(pending(&value, &schema).is_none());
        value.make_object().insert("unknown", Value::Int(1));
        assert!(pending(&value, &schema).removals);
    }
}
