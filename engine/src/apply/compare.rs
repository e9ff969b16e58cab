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
        ObjectComparison { types: self, checks_old: false, old_conforms: true }.run(old, new)
    }

    /// Compares two objects of which the new one conforms; `None` if the old one does not.
    pub(super) fn compare_unchecked(&self, old: &Value, new: &Value) -> Option<Comparison> {
        let mut walk = ObjectComparison { types: self, checks_old: true, old_conforms: true };
        let comparison = walk.run(old, new);
        walk.old_conforms.then_some(comparison)
    }
}

/// The walk through two objects. What they have in common need not be checked twice.
struct ObjectComparison<'t> {
    types: &'t TypeSchema,
    /// Whether the old value here is still to be checked.
    checks_old: bool,
    old_conforms: bool,
}

impl<'t> ObjectComparison<'t> {
    fn run(&mut self, old: &Value, new: &Value) -> Comparison {
        let mut root = Difference::default();
        self.compare_values(self.types.root(), old, Some(new), &mut root);
        Comparison {
            removed: FieldSet::from_unsorted(root.removed.below),
            modified: FieldSet::from_unsorted(root.modified.below),
            added: FieldSet::from_unsorted(root.added.below),
        }
    }

    fn check_old(&mut self, id: TypeId, old: &Value) {
        if self.checks_old {
            self.old_conforms &= self.types.validate_value(id, old, true).is_ok();
        }
    }

    fn difference(&mut self, id: TypeId, old: Option<&Value>, new: Option<&Value>) -> Difference {
        let mut found = Difference::default();
        match (old, new) {
            (Some(old), new) => self.compare_values(id, old, new, &mut found),
            (None, Some(new)) => found.added = added(self.types, id, new),
            (None, None) => {}
        }
        found
    }

    fn compare_values(&mut self, id: TypeId, old: &Value, new: Option<&Value>, out: &mut Difference) {
        work::step();
        let type_ = self.types.get(id);
        let (old_kind, new_kind) = (Candidates::of(type_, Some(old)), Candidates::of(type_, new));
        let checks_old = self.checks_old;
        if new.is_none() || old_kind != new_kind {
            self.check_old(id, old);
            self.checks_old = false;
        }
        let mut compare = |kind: Candidates| match kind.first(type_) {
            Some(TypeKind::Map(map)) => self.compare_maps((id, map), old, new, out),
            Some(TypeKind::Scalar(_)) => self.leaf(id, old, new, out),
            Some(TypeKind::List(list)) => self.compare_lists((id, list), old, new, out),
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
        self.checks_old = checks_old;
        if !is_leaf {
            out.removed.itself |= new.is_none();
        }
    }

    /// Compares the field as a whole. Returns true.
    fn leaf(&mut self, id: TypeId, old: &Value, new: Option<&Value>, out: &mut Difference) -> bool {
        match new {
            None => out.removed.itself = true,
            Some(new) if equal_values(old, new) => {}
            Some(_) => {
                out.modified.itself = true;
                self.check_old(id, old);
            }
        }
        true
    }

    /// Returns whether the field is a leaf: atomic, or empty on both sides.
    fn compare_maps(
        &mut self,
        (id, map): (TypeId, &'t MapType),
        old: &Value,
        new: Option<&Value>,
        out: &mut Difference,
    ) -> bool {
        let (old_fields, new_fields) = (fields_of(Some(old)), fields_of(new));
        if map.atomic || (old_fields.is_none() && new_fields.is_none()) {
            return self.leaf(id, old, new, out);
        }
        if !matches!(old, Value::Object(_) | Value::Null) {
            self.check_old(id, old);
        }
        let mut types = map.in_order();
        for_each_field(old_fields, new_fields, |name, old, new| match types.value(name) {
            Some((id, _)) => self.difference(id, old, new).move_below(out, || PathElement::field(name)),
            None => self.old_conforms &= !self.checks_old || map.passes_over(name),
        });
        false
    }

    fn compare_lists(
        &mut self,
        (id, list): (TypeId, &'t ListType),
        old: &Value,
        new: Option<&Value>,
        out: &mut Difference,
    ) -> bool {
        let old_items = old.as_array().unwrap_or_default();
        let new_items = new.and_then(Value::as_array).unwrap_or_default();
        if matches!(list.items, Items::Atomic) || (old_items.is_empty() && new_items.is_empty()) {
            return self.leaf(id, old, new, out);
        }
        let same =
            old_items.len() == new_items.len() && old_items.iter().zip(new_items).all(|(a, b)| equal_values(a, b));
        if same {
            return false;
        }
        self.check_old(id, old);
        let checks_old = std::mem::take(&mut self.checks_old);
        let (old, new) = (list.sorted_items(old_items), list.sorted_items(new_items));
        join(by_key(&old), by_key(&new), |item, old, new| {
            let found = self.compare_items(list, old.unwrap_or_default(), new.unwrap_or_default());
            found.move_below(out, || item.element());
        });
        self.checks_old = checks_old;
        false
    }

    /// Compares the items that both sides have under one key.
    fn compare_items(&mut self, list: &ListType, old: &[Item<'_>], new: &[Item<'_>]) -> Difference {
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

/// The fields of a value that is new.
fn added(types: &TypeSchema, id: TypeId, new: &Value) -> ComparedNode {
    work::step();
    let Some(kind) = types.kind_of(id, new) else { return ComparedNode::default() };
    let mut below = Vec::new();
    match (kind, new) {
        (TypeKind::Map(map), Value::Object(fields)) if !map.atomic => {
            below.reserve_exact(fields.len());
            let mut of_fields = map.in_order();
            let of_field = |(name, field)| {
                let (id, _) = of_fields.value(name)?;
                added(types, id, field).into_node(|| PathElement::field(name))
            };
            below.extend(fields.iter().filter_map(of_field));
        }
        (TypeKind::List(list), Value::Array(items)) if !matches!(list.items, Items::Atomic) => {
            let of_items = |(item, same): (Item<'_>, &[Item<'_>])| match same {
                [one] => added(types, list.element, one.value).into_node(|| item.element()),
                _ => ComparedNode { itself: true, below: Vec::new() }.into_node(|| item.element()),
            };
            below.extend(by_key(&list.sorted_items(items)).filter_map(of_items));
        }
        _ => {}
    }
    ComparedNode { itself: true, below }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::apply::arbitrary::pairs;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, max_global_rejects: 100_000, ..ProptestConfig::default() })]

        #[test]
        fn what_an_object_has_in_common_with_one_that_conforms_need_not_be_checked((types, old, new) in pairs()) {
            prop_assume!(types.validate(&new, true).is_ok());
            let found = types.compare_unchecked(&old, &new);
            prop_assert_eq!(found.is_some(), types.validate(&old, true).is_ok());
            if let Some(found) = found {
                prop_assert_eq!(found, types.compare(&old, &new));
            }
        }
    }
}
