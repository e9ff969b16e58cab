//! Merging an applied object into the live one, and taking fields out again.
//!
//! Source: structured-merge-diff v6.4.2, `typed.Merge` and `typed.RemoveItems`.

use super::compare::{for_each_field, join};
use super::field_set::FieldSet;
use super::item::Item;
use super::type_schema::{Items, ListType, MapType, TypeId, TypeSchema};
use super::typed::{Candidates, TypeKind};
use crate::value::{Key, Map, Value};
use crate::work;

impl TypeSchema {
    /// `live` with the fields that `applied` sets. Nothing is removed. Both conform to the type; only `live` may have
    /// duplicate items.
    ///
    /// Lists are in the order of `live` if `applied` agrees with it, else in the order of `applied`.
    pub fn merge(&self, live: &Value, applied: &Value) -> Value {
        self.merge_values(self.root(), Some(live), Some(applied)).unwrap_or(Value::Null)
    }

    fn merge_values(&self, id: TypeId, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
        work::step();
        let Some(applied) = applied else { return live.cloned() };
        let Some(live) = live else { return Some(applied.clone()) };
        let type_ = self.get(id);
        match Candidates::of(type_, Some(applied)).first(type_)? {
            TypeKind::Scalar(_) => Some(applied.clone()),
            TypeKind::Map(map) => self.merge_maps(map, live, applied),
            TypeKind::List(list) => self.merge_lists(list, live, applied),
        }
    }

    fn merge_maps(&self, map: &MapType, live: &Value, applied: &Value) -> Option<Value> {
        let (live_fields, applied_fields) = (live.as_object(), applied.as_object());
        let both_empty = live_fields.is_none_or(Map::is_empty) && applied_fields.is_none_or(Map::is_empty);
        if map.atomic || both_empty {
            return Some(applied.clone());
        }
        let mut merged = Vec::with_capacity(live_fields.map_or(0, Map::len).max(applied_fields.map_or(0, Map::len)));
        let mut types = map.in_order();
        for_each_field(live_fields, applied_fields, |name, live, applied| {
            if let Some((id, _)) = types.value(name)
                && let Some(value) = self.merge_values(id, live, applied)
            {
                merged.push((Key::new(name), value));
            }
        });
        (!merged.is_empty()).then(|| Value::Object(Map::from_fields(merged)))
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
        work::step();
        match (self.kind_of(id, value), value) {
            (Some(TypeKind::Scalar(_)), _) => value.clone(),
            (Some(TypeKind::Map(map)), Value::Object(fields)) if !map.atomic => {
                let keep = |(name, value): (&str, &Value)| {
                    let value = match taken.field(name) {
                        Some(node) if node.member => return None,
                        Some(node) => {
                            map.value(name).map_or(Value::Null, |id| self.value_without(id, value, &node.children))
                        }
                        None => value.clone(),
                    };
                    Some((Key::new(name), value))
                };
                let rest = Map::from_fields(fields.iter().filter_map(keep).collect());
                if rest.is_empty() { Value::Null } else { Value::Object(rest) }
            }
            (Some(TypeKind::List(list)), Value::Array(items)) if !matches!(list.items, Items::Atomic) => {
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
    element: TypeId,
    live: Vec<LiveItem<'a>>,
    applied: Vec<AppliedItem<'a>>,
    merged: Vec<Value>,
}

struct LiveItem<'a> {
    value: &'a Value,
    /// The position of the applied item with the same key.
    applied_at: Option<usize>,
}

struct AppliedItem<'a> {
    value: &'a Value,
    /// The live item with the same key.
    live: Option<&'a Value>,
}

impl<'a> ListMerge<'a> {
    fn new(types: &'a TypeSchema, list: &'a ListType, live: &'a [Value], applied: &'a [Value]) -> Self {
        let mut merge = ListMerge {
            types,
            element: list.element,
            live: live.iter().map(|value| LiveItem { value, applied_at: None }).collect(),
            applied: applied.iter().map(|value| AppliedItem { value, live: None }).collect(),
            merged: Vec::with_capacity(live.len().max(applied.len())),
        };
        let (live, applied) = (list.sorted_positions(live), list.sorted_positions(applied));
        let by_key = |(a, _): &(Item<'_>, usize), (b, _): &(Item<'_>, usize)| a == b;
        join(live.chunk_by(by_key).map(|same| (same[0].0, same)), applied.iter().copied(), |_, in_live, in_applied| {
            if let (Some(same), Some(applied_at)) = (in_live, in_applied) {
                merge.pair(same, applied_at);
            }
        });
        merge
    }

    fn pair(&mut self, live: &[(Item<'a>, usize)], applied_at: usize) {
        for (_, at) in live {
            self.live[*at].applied_at = Some(applied_at);
        }
        self.applied[applied_at].live = match live {
            [(once, _)] => Some(once.value),
            // Which one of several to merge with is ambiguous: the applied item replaces them all.
            _ => Some(&Value::Null),
        };
    }

    /// All applied items in their order. A common item is preceded by the live items before it, any other by those
    /// before the next common item; of these live items, only the ones that are not applied are added.
    fn run(mut self) -> Vec<Value> {
        let (live, applied) = (std::mem::take(&mut self.live), std::mem::take(&mut self.applied));
        let mut live = live.into_iter().peekable();
        let mut shared = (0..applied.len()).filter(|at| applied[*at].live.is_some()).peekable();
        for (at, item) in applied.iter().enumerate() {
            let next_shared = shared.peek().copied();
            while let Some(passed) = live.next_if(|live| live.applied_at.is_none() || live.applied_at != next_shared) {
                match passed.applied_at {
                    None => self.push(Some(passed.value), None),
                    // It is out of order, or a duplicate.
                    Some(_) if next_shared.is_some() => {}
                    Some(_) => break,
                }
            }
            if next_shared == Some(at) {
                live.next_if(|live| live.applied_at == next_shared);
                shared.next();
            }
            self.push(item.live, Some(item.value));
        }
        for rest in live.filter(|live| live.applied_at.is_none()) {
            self.push(Some(rest.value), None);
        }
        self.merged
    }

    fn push(&mut self, live: Option<&Value>, applied: Option<&Value>) {
        self.merged.extend(self.types.merge_values(self.element, live, applied));
    }
}
