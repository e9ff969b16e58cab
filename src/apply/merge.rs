//! Merging an applied object into the live one, and taking fields out again.
//!
//! Source: structured-merge-diff v6.4.2, `typed.Merge` and `typed.RemoveItems`.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::for_each_field;
use super::field_set::FieldSet;
use super::item::Item;
use super::type_schema::{Items, ListType, MapType, TypeId, TypeSchema};
use super::typed::{Candidates, Kind};
use crate::value::{Map, Value};

impl TypeSchema {
    /// `live` with what `applied` sets. Nothing is removed. Both conform; only `live` may hold an item twice.
    ///
    /// Lists come in the order of `live` where `applied` agrees with it, else in the order of `applied`.
    pub(super) fn merge(&self, live: &Value, applied: &Value) -> Value {
        self.merge_values(self.root(), Some(live), Some(applied)).unwrap_or(Value::Null)
    }

    fn merge_values(&self, id: TypeId, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
        let Some(applied) = applied else { return live.cloned() };
        let Some(live) = live else { return Some(applied.clone()) };
        let type_ = self.get(id);
        match Candidates::of(type_, Some(applied)).first(type_)? {
            Kind::Scalar(_) => Some(applied.clone()),
            Kind::Map(map) => self.merge_maps(map, live, applied),
            Kind::List(list) => self.merge_lists(list, live, applied),
        }
    }

    fn merge_maps(&self, map: &MapType, live: &Value, applied: &Value) -> Option<Value> {
        let (live_fields, applied_fields) = (live.as_object(), applied.as_object());
        let both_empty = live_fields.is_none_or(Map::is_empty) && applied_fields.is_none_or(Map::is_empty);
        if map.atomic || both_empty {
            return Some(applied.clone());
        }
        let mut merged = Vec::with_capacity(live_fields.map_or(0, Map::len).max(applied_fields.map_or(0, Map::len)));
        for_each_field(live_fields, applied_fields, |name, live, applied| {
            if let Some(id) = map.value(name)
                && let Some(value) = self.merge_values(id, live, applied)
            {
                merged.push((name.to_owned(), value));
            }
        });
        (!merged.is_empty()).then(|| Value::Object(merged.into_iter().collect()))
    }

    fn merge_lists(&self, list: &ListType, live: &Value, applied: &Value) -> Option<Value> {
        let live_items = live.as_array().unwrap_or_default();
        let applied_items = applied.as_array().unwrap_or_default();
        if matches!(list.items, Items::Atomic) || (live_items.is_empty() && applied_items.is_empty()) {
            return Some(applied.clone());
        }
        let merged = ListMerge::new(self, list, live_items, applied_items).run();
        (!merged.is_empty()).then_some(Value::Array(merged))
    }

    /// `object` without the fields and items of `taken`. A container left empty becomes null.
    pub(super) fn without(&self, object: &Value, taken: &FieldSet) -> Value {
        self.value_without(self.root(), object, taken)
    }

    fn value_without(&self, id: TypeId, value: &Value, taken: &FieldSet) -> Value {
        match (self.kind_of(id, value), value) {
            (Some(Kind::Scalar(_)), _) => value.clone(),
            (Some(Kind::Map(map)), Value::Object(fields)) if !map.atomic => {
                let keep = |(name, value): (&str, &Value)| {
                    let value = match taken.field(name) {
                        Some(node) if node.member => return None,
                        Some(node) => {
                            map.value(name).map_or(Value::Null, |id| self.value_without(id, value, &node.children))
                        }
                        None => value.clone(),
                    };
                    Some((name.to_owned(), value))
                };
                let rest: Map = fields.iter().filter_map(keep).collect();
                if rest.is_empty() { Value::Null } else { Value::Object(rest) }
            }
            (Some(Kind::List(list)), Value::Array(items)) if !matches!(list.items, Items::Atomic) => {
                let taken_of = |item: &Value| taken.node(&list.item(item).ok()?.element());
                let keep = |item: &Value| match taken_of(item) {
                    Some(node) if node.member => None,
                    Some(node) => Some(self.value_without(list.element, item, &node.children)),
                    None => Some(item.clone()),
                };
                let rest: Vec<Value> = items.iter().filter_map(keep).collect();
                if rest.is_empty() { Value::Null } else { Value::Array(rest) }
            }
            _ => Value::Null,
        }
    }
}

/// The merge of two lists whose items have keys.
struct ListMerge<'a> {
    types: &'a TypeSchema,
    list: &'a ListType,
    live: Vec<Item<'a>>,
    applied: Vec<Item<'a>>,
    merged: Vec<Value>,
}

impl<'a> ListMerge<'a> {
    fn new(types: &'a TypeSchema, list: &'a ListType, live: &'a [Value], applied: &'a [Value]) -> Self {
        let items = |values: &'a [Value]| values.iter().filter_map(|value| list.item(value).ok()).collect();
        let merged = Vec::with_capacity(live.len().max(applied.len()));
        ListMerge { types, list, live: items(live), applied: items(applied), merged }
    }

    fn run(mut self) -> Vec<Value> {
        let (live, applied) = (std::mem::take(&mut self.live), std::mem::take(&mut self.applied));
        let mut in_live: BTreeMap<Item<'_>, &Value> = BTreeMap::new();
        for item in &live {
            // Which of several to merge with is unclear: the applied item then replaces them all.
            in_live.entry(*item).and_modify(|once| *once = &Value::Null).or_insert(item.value);
        }
        let in_applied: BTreeSet<&Item<'_>> = applied.iter().collect();
        // Items of both lists, in the order that the result has.
        let mut shared = applied.iter().filter(|item| in_live.contains_key(item));
        let mut next_shared = shared.next();
        let mut done: BTreeSet<&Item<'_>> = BTreeSet::new();
        let (mut at_live, mut at_applied) = (0, 0);
        loop {
            let (from_live, from_applied) = (live.get(at_live), applied.get(at_applied));
            if let (Some(item), Some(applied_item)) = (from_live, from_applied) {
                if item == applied_item {
                    done.insert(item);
                    self.push(in_live.get(item).copied(), Some(applied_item.value));
                    at_live += 1;
                    at_applied += 1;
                    next_shared = shared.next();
                    continue;
                }
                if in_applied.contains(item) && next_shared.is_some_and(|shared| shared != item) {
                    // A shared item, but not yet its turn.
                    at_live += 1;
                    continue;
                }
            }
            if let Some(item) = from_live {
                if !in_applied.contains(item) {
                    self.push(Some(item.value), None);
                    at_live += 1;
                    continue;
                }
                if done.contains(item) {
                    at_live += 1;
                }
            }
            match from_applied {
                Some(item) => {
                    done.insert(item);
                    self.push(in_live.get(item).copied(), Some(item.value));
                    at_applied += 1;
                    if next_shared == Some(item) {
                        next_shared = shared.next();
                    }
                }
                None if from_live.is_none() => return self.merged,
                // Every applied item is done by now, so the live one was just passed.
                None => {}
            }
        }
    }

    fn push(&mut self, live: Option<&Value>, applied: Option<&Value>) {
        self.merged.extend(self.types.merge_values(self.list.element, live, applied));
    }
}
