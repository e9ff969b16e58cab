//! What differs between two objects of one type, in one walk that only builds what differs.
//!
//! Source: structured-merge-diff v6.4.2, `typed.Compare`.

use std::cmp::Ordering;

use super::field_set::{FieldSet, FieldSetNode};
use super::item::Item;
use super::path::{PathElement, equal_values};
use super::type_schema::{Items, ListType, MapType, TypeId, TypeSchema};
use super::typed::{Candidates, TypeKind};
use crate::value::{Map, Value};
use crate::work;

/// Fields that differ; no field is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Comparison {
    pub removed: FieldSet,
    pub modified: FieldSet,
    pub added: FieldSet,
}

impl Comparison {
    /// Removes the fields of `excluded` and everything below them.
    pub fn excluding(mut self, excluded: &FieldSet) -> Comparison {
        for set in [&mut self.removed, &mut self.modified, &mut self.added] {
            set.exclude(excluded);
        }
        self
    }
}

impl TypeSchema {
    /// Compares two objects that conform.
    pub(super) fn compare(&self, old: &Value, new: &Value) -> Comparison {
        let mut root = Difference::default();
        self.compare_values(self.root(), old, Some(new), &mut root);
        Comparison {
            removed: FieldSet::from_unsorted(root.removed.below),
            modified: FieldSet::from_unsorted(root.modified.below),
            added: FieldSet::from_unsorted(root.added.below),
        }
    }

    fn difference(&self, id: TypeId, old: Option<&Value>, new: Option<&Value>) -> Difference {
        let mut found = Difference::default();
        match (old, new) {
            (Some(old), new) => self.compare_values(id, old, new, &mut found),
            (None, Some(new)) => found.added = self.added(id, new),
            (None, None) => {}
        }
        found
    }

    fn compare_values(&self, id: TypeId, old: &Value, new: Option<&Value>, out: &mut Difference) {
        work::step();
        let type_ = self.get(id);
        let (old_kind, new_kind) = (Candidates::of(type_, Some(old)), Candidates::of(type_, new));
        let mut compare = |kind: Candidates| match kind.first(type_) {
            Some(TypeKind::Map(map)) => self.compare_maps(map, old, new, out),
            Some(TypeKind::Scalar(_)) => out.leaf(old, new),
            Some(TypeKind::List(list)) => self.compare_lists(list, old, new, out),
            None => true,
        };
        let is_leaf = match new {
            None => compare(old_kind),
            Some(_) if old_kind == new_kind => compare(new_kind),
            Some(_) => {
                compare(old_kind);
                compare(new_kind)
            }
        };
        if !is_leaf {
            out.removed.itself |= new.is_none();
        }
    }

    /// The fields of a value that is new.
    fn added(&self, id: TypeId, new: &Value) -> ComparedNode {
        work::step();
        let Some(kind) = self.kind_of(id, new) else { return ComparedNode::default() };
        let mut below = Vec::new();
        match (kind, new) {
            (TypeKind::Map(map), Value::Object(fields)) if !map.atomic => {
                below.reserve_exact(fields.len());
                let mut types = map.in_order();
                let of_field = |(name, field)| {
                    let (id, _) = types.value(name)?;
                    self.added(id, field).into_node(|| PathElement::field(name))
                };
                below.extend(fields.iter().filter_map(of_field));
            }
            (TypeKind::List(list), Value::Array(items)) if !matches!(list.items, Items::Atomic) => {
                let of_items = |(item, same): (Item<'_>, &[Item<'_>])| match same {
                    [one] => self.added(list.element, one.value).into_node(|| item.element()),
                    _ => ComparedNode { itself: true, below: Vec::new() }.into_node(|| item.element()),
                };
                below.extend(by_key(&list.sorted_items(items)).filter_map(of_items));
            }
            _ => {}
        }
        ComparedNode { itself: true, below }
    }

    /// Returns whether the field is a leaf: atomic, or empty on both sides.
    fn compare_maps(&self, map: &MapType, old: &Value, new: Option<&Value>, out: &mut Difference) -> bool {
        let (old_fields, new_fields) = (fields_of(Some(old)), fields_of(new));
        if map.atomic || (old_fields.is_none() && new_fields.is_none()) {
            return out.leaf(old, new);
        }
        let mut types = map.in_order();
        for_each_field(old_fields, new_fields, |name, old, new| {
            if let Some((id, _)) = types.value(name) {
                self.difference(id, old, new).move_below(out, || PathElement::field(name));
            }
        });
        false
    }

    fn compare_lists(&self, list: &ListType, old: &Value, new: Option<&Value>, out: &mut Difference) -> bool {
        let old_items = old.as_array().unwrap_or_default();
        let new_items = new.and_then(Value::as_array).unwrap_or_default();
        if matches!(list.items, Items::Atomic) || (old_items.is_empty() && new_items.is_empty()) {
            return out.leaf(old, new);
        }
        let same =
            old_items.len() == new_items.len() && old_items.iter().zip(new_items).all(|(a, b)| equal_values(a, b));
        if same {
            return false;
        }
        let (old, new) = (list.sorted_items(old_items), list.sorted_items(new_items));
        join(by_key(&old), by_key(&new), |item, old, new| {
            let found = self.compare_items(list, old.unwrap_or_default(), new.unwrap_or_default());
            found.move_below(out, || item.element());
        });
        false
    }

    /// Compares the items that both sides have under one key.
    fn compare_items(&self, list: &ListType, old: &[Item<'_>], new: &[Item<'_>]) -> Difference {
        let mut found;
        match (old, new) {
            ([] | [_], [] | [_]) => found = self.difference(list.element, first(old), first(new)),
            // Items that occur several times on both sides count as one leaf.
            ([_, _, ..], [_, _, ..]) => {
                let same = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| equal_values(a.value, b.value));
                found = Difference::default();
                found.modified.itself = !same;
            }
            ([_, _, ..], _) => {
                found = self.difference(list.element, None, first(new));
                found.removed.itself = true;
            }
            (_, _) => {
                found = self.difference(list.element, first(old), None);
                found.added.itself = true;
            }
        }
        found
    }
}

/// Groups sorted items by key.
fn by_key<'i, 'v>(items: &'i [Item<'v>]) -> impl Iterator<Item = (Item<'v>, &'i [Item<'v>])> {
    items.chunk_by(|a, b| a == b).map(|same| (same[0], same))
}

fn first<'v>(items: &[Item<'v>]) -> Option<&'v Value> {
    items.first().map(|item| item.value)
}

/// The fields of a map, if it is not empty.
fn fields_of(value: Option<&Value>) -> Option<&Map> {
    value.and_then(Value::as_object).filter(|fields| !fields.is_empty())
}

/// Calls `visit` with every field of either side, in order.
pub(super) fn for_each_field<'a>(
    left: Option<&'a Map>,
    right: Option<&'a Map>,
    visit: impl FnMut(&'a str, Option<&'a Value>, Option<&'a Value>),
) {
    join(left.into_iter().flat_map(Map::iter), right.into_iter().flat_map(Map::iter), visit);
}

/// Calls `visit` with every key of either side, in order. Both sides are sorted, without duplicate keys.
pub(super) fn join<K: Ord, L, R>(
    left: impl Iterator<Item = (K, L)>,
    right: impl Iterator<Item = (K, R)>,
    mut visit: impl FnMut(K, Option<L>, Option<R>),
) {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((left_key, _)), Some((right_key, _))) => left_key.cmp(right_key),
        };
        let left = left.next_if(|_| order.is_le());
        let right = right.next_if(|_| order.is_ge());
        match (left, right) {
            (Some((key, left)), right) => visit(key, Some(left), right.map(|(_, right)| right)),
            (None, Some((key, right))) => visit(key, None, Some(right)),
            (None, None) => {}
        }
    }
}

/// The differences at a field and below it.
#[derive(Default)]
struct Difference {
    removed: ComparedNode,
    modified: ComparedNode,
    added: ComparedNode,
}

#[derive(Default)]
struct ComparedNode {
    itself: bool,
    below: Vec<FieldSetNode>,
}

impl Difference {
    /// Compares the field as a whole. Returns true.
    fn leaf(&mut self, old: &Value, new: Option<&Value>) -> bool {
        match new {
            None => self.removed.itself = true,
            Some(new) => self.modified.itself |= !equal_values(old, new),
        }
        true
    }

    fn move_below(self, parent: &mut Difference, element: impl Fn() -> PathElement) {
        let parts = [
            (self.removed, &mut parent.removed),
            (self.modified, &mut parent.modified),
            (self.added, &mut parent.added),
        ];
        for (part, parent) in parts {
            parent.below.extend(part.into_node(&element));
        }
    }
}

impl ComparedNode {
    /// The node of the parent for this step, if it has any differences.
    fn into_node(self, element: impl FnOnce() -> PathElement) -> Option<FieldSetNode> {
        (self.itself || !self.below.is_empty()).then(|| FieldSetNode {
            element: element(),
            member: self.itself,
            children: FieldSet::from_unsorted(self.below),
        })
    }
}
