//! Pruning: fields that a schema does not specify are removed.
//!
//! Input: a schema and a value. Output: the value without its unknown fields, and the paths of these. Values of known
//! fields are never changed, whatever their type.

use super::structural::{Structural, StructuralOrBool};
use crate::value::Value;
use crate::work;

/// Removes fields that `schema` does not specify, and returns their paths (`spec.items[0].x`), sorted.
///
/// `apiVersion`, `kind` and `metadata` stay in embedded resources, and in `value` itself if `is_resource_root`. Under
/// `x-kubernetes-preserve-unknown-fields` unknown fields stay; specified ones are still pruned within.
/// Source: Kubernetes documentation, "Field pruning"; answers recorded from apiextensions-apiserver 1.37.
pub fn prune(value: &mut Value, schema: &Structural, is_resource_root: bool) -> Vec<String> {
    let mut unknown = UnknownFields::default();
    prune_value(value, Some(schema), is_resource_root || schema.extensions.embedded_resource, &mut unknown);
    unknown.found.sort_unstable();
    unknown.found
}

/// The most bytes of paths of unknown fields that are reported: in a deeply nested value the paths are longer than the
/// value.
const PATHS_BYTES_MAX: usize = 32 << 20;

/// The current path of the walk, and the unknown fields found so far.
#[derive(Default)]
struct UnknownFields {
    path: String,
    depth: usize,
    found: Vec<String>,
    /// Of `found`.
    bytes: usize,
}

impl UnknownFields {
    fn within_field(&mut self, name: &str, walk: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if self.depth > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        self.depth += 1;
        walk(self);
        self.depth -= 1;
        self.path.truncate(length);
    }

    fn within_item(&mut self, index: usize, walk: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(&format!("[{index}]"));
        self.depth += 1;
        walk(self);
        self.depth -= 1;
        self.path.truncate(length);
    }

    fn record(&mut self, name: &str) {
        if self.bytes >= PATHS_BYTES_MAX {
            return;
        }
        self.within_field(name, |unknown| {
            work::bytes(unknown.path.len());
            unknown.bytes += unknown.path.len();
            unknown.found.push(unknown.path.clone());
        });
    }
}

fn is_meta_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn is_embedded(schema: Option<&Structural>) -> bool {
    schema.is_some_and(|schema| schema.extensions.embedded_resource)
}

/// The schema of the field `name`: `None` if it is not specified, `Some(None)` if anything may stand there.
fn field_schema<'s>(schema: &'s Structural, name: &str) -> Option<Option<&'s Structural>> {
    match schema.properties.get(name) {
        Some(property) => Some(Some(property)),
        None => schema.additional_properties.as_ref().map(StructuralOrBool::structural),
    }
}

/// Without a schema, all fields of objects are unknown.
fn prune_value(value: &mut Value, schema: Option<&Structural>, embedded: bool, unknown: &mut UnknownFields) {
    work::step();
    if let Some(schema) = schema.filter(|schema| schema.extensions.preserve_unknown_fields) {
        return enter_preserved(value, schema, embedded, unknown);
    }
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            if embedded && is_meta_field(name) {
                return true;
            }
            match schema.and_then(|schema| field_schema(schema, name)) {
                Some(schema) => {
                    unknown.within_field(name, |unknown| prune_value(field, schema, is_embedded(schema), unknown));
                    true
                }
                None => {
                    if schema.is_none() || unknown.depth > 0 || !is_meta_field(name) {
                        unknown.record(name);
                    }
                    false
                }
            }
        }),
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.items.as_deref());
            for (index, item) in items.iter_mut().enumerate() {
                unknown.within_item(index, |unknown| prune_value(item, schema, is_embedded(schema), unknown));
            }
        }
        _ => {}
    }
}

/// Keeps unknown fields, and prunes within specified ones.
fn enter_preserved(value: &mut Value, schema: &Structural, embedded: bool, unknown: &mut UnknownFields) {
    work::step();
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if embedded && is_meta_field(name) {
                    continue;
                }
                if let Some(schema) = field_schema(schema, name) {
                    unknown.within_field(name, |unknown| prune_value(field, schema, is_embedded(schema), unknown));
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items.as_deref() else { return };
            for (index, item) in items.iter_mut().enumerate() {
                unknown.within_item(index, |unknown| {
                    enter_preserved(item, schema, schema.extensions.embedded_resource, unknown);
                });
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::arbitrary;
    use crate::value::arbitrary::value;

    proptest! {
        #[test]
        fn pruning_twice_prunes_nothing_more(mut value in value(), schema in arbitrary::schema(), root: bool) {
            prune(&mut value, &schema, root);
            let once = value.clone();
            let unknown = prune(&mut value, &schema, root);
            prop_assert_eq!(value, once);
            prop_assert!(unknown.is_empty(), "{unknown:?}");
        }
    }
}
