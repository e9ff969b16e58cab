//! Sets of fields: what a manager owns.
//!
//! Input: paths, or the `fieldsV1` of a managedFields entry. Output: the same. A set is a tree; a field can be a member
//! and have members below it. Membership of a field says nothing about its children.
//!
//! Source: structured-merge-diff v6.4.2, package `fieldpath`.

use std::cmp::Ordering;

use super::path::{PathElement, PathElementError};
use super::type_schema::{TypeId, TypeSchema};
use crate::value::{Map, Value, json};
use crate::work;

/// A set of field paths. The root of the object is never a member.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    // INVARIANT: sorted by element, without duplicates; every node is a member or has children.
    nodes: Vec<FieldSetNode>,
}

/// A step of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldSetNode {
    pub element: PathElement,
    pub member: bool,
    pub children: FieldSet,
}

impl FieldSetNode {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl Clone for FieldSet {
    fn clone(&self) -> Self {
        work::steps(self.nodes.len());
        FieldSet { nodes: self.nodes.clone() }
    }
}

impl FieldSet {
    /// An empty set.
    pub const fn new() -> Self {
        FieldSet { nodes: Vec::new() }
    }

    /// The set of these paths of field names.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = FieldSet::new();
        for path in paths {
            let path: Vec<PathElement> = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    /// The set of these nodes, which must be sorted by their elements; empty ones are left out.
    pub(super) fn from_sorted(nodes: Vec<FieldSetNode>) -> Self {
        debug_assert!(nodes.windows(2).all(|pair| pair[0].element < pair[1].element));
        FieldSet { nodes }
    }

    /// A set of nodes in any order; nodes with the same element are merged.
    pub(super) fn from_unsorted(mut nodes: Vec<FieldSetNode>) -> Self {
        if nodes.is_sorted_by(|a, b| a.element < b.element) {
            return FieldSet { nodes };
        }
        work::steps(nodes.len());
        nodes.sort_by(|a, b| a.element.cmp(&b.element));
        nodes.dedup_by(|next, kept| {
            let same = next.element == kept.element;
            if same {
                kept.member |= next.member;
                kept.children = kept.children.union(&next.children);
            }
            same
        });
        FieldSet { nodes }
    }

    /// Whether it holds no field.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn nodes(&self) -> &[FieldSetNode] {
        &self.nodes
    }

    pub(super) fn nodes_mut(&mut self) -> &mut [FieldSetNode] {
        &mut self.nodes
    }

    /// Adds the field at `path`, but none of its parents.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((element, rest)) = path.split_first() else { return };
        let at = match self.nodes.binary_search_by(|node| node.element.cmp(element)) {
            Ok(at) => at,
            Err(at) => {
                let node = FieldSetNode { element: element.clone(), member: false, children: FieldSet::new() };
                self.nodes.insert(at, node);
                at
            }
        };
        if rest.is_empty() { self.nodes[at].member = true } else { self.nodes[at].children.insert(rest) }
    }

    /// Whether the field at `path` is a member.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path.split_first() {
            None => false,
            Some((element, [])) => self.node(element).is_some_and(|node| node.member),
            Some((element, rest)) => self.node(element).is_some_and(|node| node.children.contains(rest)),
        }
    }

    pub(super) fn node(&self, element: &PathElement) -> Option<&FieldSetNode> {
        self.nodes.binary_search_by(|node| node.element.cmp(element)).ok().map(|at| &self.nodes[at])
    }

    /// Whether every node is a field: fields sort before every other kind of element.
    pub(super) fn is_of_fields(&self) -> bool {
        self.nodes.last().is_none_or(|last| matches!(last.element, PathElement::Field(_)))
    }

    /// The node of a field by its name.
    pub(super) fn field(&self, name: &str) -> Option<&FieldSetNode> {
        let order = |node: &FieldSetNode| match &node.element {
            PathElement::Field(field) => field.as_str().cmp(name),
            // Fields come before every other kind of element.
            _ => Ordering::Greater,
        };
        self.nodes.binary_search_by(order).ok().map(|at| &self.nodes[at])
    }

    /// The members of `self` or of `other`.
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        if other.is_empty() {
            return self.clone();
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        for pair in Pairs::of(self, other) {
            nodes.push(match pair {
                Pair::Left(node) | Pair::Right(node) => node.clone(),
                Pair::Both(left, right) => FieldSetNode {
                    element: left.element.clone(),
                    member: left.member || right.member,
                    children: left.children.union(&right.children),
                },
            });
        }
        FieldSet { nodes }
    }

    /// [`FieldSet::union`] without copying if either is empty.
    pub(super) fn united(self, other: FieldSet) -> FieldSet {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => self.union(&other),
        }
    }

    /// The union of `sets`.
    pub(super) fn union_of(mut sets: Vec<FieldSet>) -> FieldSet {
        // In pairs, as adding one after the other would copy the first over and over.
        while sets.len() > 1 {
            sets = sets
                .chunks(2)
                .map(|pair| pair.iter().skip(1).fold(pair[0].clone(), |left, right| left.union(right)))
                .collect();
        }
        sets.pop().unwrap_or_default()
    }

    /// The members of both.
    ///
    /// The members of the smaller one are looked up in the larger one.
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        let is_smaller = self.nodes.len() < other.nodes.len();
        let (few, many) = if is_smaller { (self, other) } else { (other, self) };
        work::steps(few.nodes.len());
        let mut nodes = Vec::new();
        for (one, another) in few.nodes.iter().filter_map(|node| Some((node, many.node(&node.element)?))) {
            let (left, right) = if is_smaller { (one, another) } else { (another, one) };
            let member = left.member && right.member;
            let children = left.children.intersection(&right.children);
            if member || !children.is_empty() {
                nodes.push(FieldSetNode { element: left.element.clone(), member, children });
            }
        }
        FieldSet { nodes }
    }

    /// The members of `self` that are not in `other`. Children of fields in `other` stay.
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        self.without(other, false)
    }

    /// The members of `self` that are neither in `other` nor below a field of it.
    pub fn recursive_difference(&self, other: &FieldSet) -> FieldSet {
        self.without(other, true)
    }

    /// Removes the members that are in `other` or below a field of it.
    pub(super) fn exclude(&mut self, other: &FieldSet) {
        if other.is_empty() {
            return;
        }
        work::steps(self.nodes.len());
        self.nodes.retain_mut(|node| match other.node(&node.element) {
            None => true,
            Some(excluded) if excluded.member => false,
            Some(excluded) => {
                node.children.exclude(&excluded.children);
                !node.is_empty()
            }
        });
    }

    fn without(&self, other: &FieldSet, recursive: bool) -> FieldSet {
        if other.is_empty() {
            return self.clone();
        }
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for pair in Pairs::of(self, other) {
            match pair {
                Pair::Left(node) => nodes.push(node.clone()),
                Pair::Right(_) => {}
                Pair::Both(_, right) if recursive && right.member => {}
                Pair::Both(left, right) => {
                    let rest = FieldSetNode {
                        element: left.element.clone(),
                        member: left.member && !right.member,
                        children: left.children.without(&right.children, recursive),
                    };
                    if !rest.is_empty() {
                        nodes.push(rest);
                    }
                }
            }
        }
        FieldSet { nodes }
    }

    /// Whether every member is a member of `other`.
    pub fn is_subset(&self, other: &FieldSet) -> bool {
        Pairs::of(self, other).all(|pair| match pair {
            Pair::Left(_) => false,
            Pair::Right(_) => true,
            Pair::Both(left, right) => (right.member || !left.member) && left.children.is_subset(&right.children),
        })
    }

    /// Adds the declared fields above each member: owning `.a.b` counts as owning `.a` where the schema declares `a`,
    /// not where it is a key of a map.
    pub(super) fn with_declared_parents(&self, types: &TypeSchema, type_id: Option<TypeId>) -> FieldSet {
        let (map, list) = match type_id {
            Some(id) => (types.get(id).map.as_ref(), types.get(id).list.as_ref()),
            None => (None, None),
        };
        let ensure = |node: &FieldSetNode| {
            if node.children.is_empty() {
                return node.clone();
            }
            let (declared, child) = match &node.element {
                PathElement::Field(name) => match map {
                    Some(map) => match map.field(name) {
                        Some((_, id)) => (true, Some(id)),
                        None => (false, map.element),
                    },
                    None => (false, None),
                },
                PathElement::Key(_) => (false, list.map(|list| list.element)),
                PathElement::Value(_) | PathElement::Index(_) => (false, None),
            };
            FieldSetNode {
                element: node.element.clone(),
                member: node.member || declared,
                children: node.children.with_declared_parents(types, child),
            }
        };
        FieldSet { nodes: self.nodes.iter().map(ensure).collect() }
    }

    /// Calls `visit` with each member's path: the members of a level first, then those below them.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[PathElement])) {
        self.for_each_below(&mut Vec::new(), visit);
    }

    fn for_each_below(&self, path: &mut Vec<PathElement>, visit: &mut dyn FnMut(&[PathElement])) {
        for node in self.nodes.iter().filter(|node| node.member) {
            work::step();
            path.push(node.element.clone());
            visit(path);
            path.pop();
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            path.push(node.element.clone());
            node.children.for_each_below(path, visit);
            path.pop();
        }
    }

    /// Reads the `fieldsV1` of a managedFields entry. Elements of unknown kinds are left out.
    ///
    /// # Errors
    ///
    /// An element that can't be read; Go's text.
    pub fn decode(fields: &Value) -> Result<FieldSet, PathElementError> {
        Self::decode_node(fields).map(|(set, _)| set)
    }

    /// The set below, and whether the field itself is a member.
    fn decode_node(fields: &Value) -> Result<(FieldSet, bool), PathElementError> {
        let fields = match fields {
            Value::Object(fields) => fields,
            Value::Null => return Ok((FieldSet::new(), true)),
            _ => return Err(PathElementError::Malformed("expect { or n".to_owned())),
        };
        let mut nodes = Vec::with_capacity(fields.len());
        let mut member = false;
        let mut sorted = true;
        for (name, below) in fields.iter() {
            work::bytes(name.len());
            if name == "." {
                member = true;
                continue;
            }
            let element = match PathElement::decode(name) {
                Ok(element) => element,
                Err(PathElementError::UnknownKind) => continue,
                Err(malformed) => return Err(malformed),
            };
            let (children, member) = Self::decode_node(below)?;
            sorted &= nodes.last().is_none_or(|last: &FieldSetNode| last.element < element);
            nodes.push(FieldSetNode { element, member, children });
        }
        let set = if sorted { FieldSet { nodes } } else { Self::from_unsorted(nodes) };
        let member = member || set.is_empty();
        Ok((set, member))
    }

    /// Removes the fields of the top level with such names; their children stay.
    pub(super) fn remove_members(&mut self, is_removed: impl Fn(&str) -> bool) {
        self.nodes.retain_mut(|node| {
            if let PathElement::Field(name) = &node.element {
                node.member &= !is_removed(name);
            }
            !node.is_empty()
        });
    }

    /// Changes the set below the field `name`; the node is removed if it ends up empty.
    pub(super) fn change_below(&mut self, name: &str, change: impl Fn(&mut FieldSet)) {
        self.nodes.retain_mut(|node| {
            if matches!(&node.element, PathElement::Field(field) if **field == *name) {
                change(&mut node.children);
            }
            !node.is_empty()
        });
    }

    /// The `fieldsV1` form.
    pub fn encode(&self) -> Value {
        Value::Object(Map::of_json(self.encode_text()))
    }

    /// The `fieldsV1` form as compact JSON.
    pub(super) fn encode_text(&self) -> String {
        let mut out = Vec::with_capacity(256);
        self.encode_below(false, &mut out);
        String::from_utf8(out).expect("names and their escapes are UTF-8")
    }

    fn encode_below(&self, member: bool, out: &mut Vec<u8>) {
        out.push(b'{');
        let start = out.len();
        if member && !self.is_empty() {
            out.extend_from_slice(b"\".\":{}");
        }
        let mut encode = |node: &FieldSetNode, prefix: &[u8], text: &str| {
            work::step();
            if out.len() > start {
                out.push(b',');
            }
            out.push(b'"');
            out.extend_from_slice(prefix);
            json::encode_text(text, out);
            out.extend_from_slice(b"\":");
            node.children.encode_below(node.member, out);
        };
        if self.is_of_fields() {
            for node in &self.nodes {
                if let PathElement::Field(name) = &node.element {
                    encode(node, b"f:", name);
                }
            }
        } else {
            // The order of the texts differs from that of the elements.
            let mut texts: Vec<_> = self.nodes.iter().map(|node| (node.element.encode(), node)).collect();
            texts.sort_by(|(left, _), (right, _)| left.cmp(right));
            texts.dedup_by(|(later, _), (kept, _)| later == kept);
            texts.iter().for_each(|(text, node)| encode(node, b"", text));
        }
        out.push(b'}');
    }
}

/// The nodes of two sets side by side, in order.
struct Pairs<'a> {
    left: &'a [FieldSetNode],
    right: &'a [FieldSetNode],
}

enum Pair<'a> {
    Left(&'a FieldSetNode),
    Right(&'a FieldSetNode),
    Both(&'a FieldSetNode, &'a FieldSetNode),
}

impl<'a> Pairs<'a> {
    fn of(left: &'a FieldSet, right: &'a FieldSet) -> Self {
        Pairs { left: &left.nodes, right: &right.nodes }
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Pair<'a>;

    fn next(&mut self) -> Option<Pair<'a>> {
        work::step();
        let order = match (self.left.first(), self.right.first()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(left), Some(right)) => left.element.cmp(&right.element),
        };
        let left = self.left.first().filter(|_| order.is_le());
        let right = self.right.first().filter(|_| order.is_ge());
        self.left = &self.left[usize::from(left.is_some())..];
        self.right = &self.right[usize::from(right.is_some())..];
        match (left, right) {
            (Some(left), Some(right)) => Some(Pair::Both(left, right)),
            (Some(left), None) => Some(Pair::Left(left)),
            (None, Some(right)) => Some(Pair::Right(right)),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
pub(super) mod arbitrary {
    use proptest::prelude::*;

    use super::super::path::KeyField;
    use super::*;

    fn element() -> impl Strategy<Value = PathElement> {
        let scalar = prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i32>().prop_map(|number| Value::Int(number.into())),
            ".{0,6}".prop_map(Value::String),
            Just(Value::Null),
        ];
        prop_oneof![
            4 => "[a-d]{1,2}".prop_map(|name| PathElement::field(&name)),
            1 => ".{0,4}".prop_map(|name| PathElement::field(&name)),
            1 => scalar.clone().prop_map(|value| PathElement::Value(value.into())),
            1 => any::<u8>().prop_map(|index| PathElement::Index(index.into())),
            1 => scalar.prop_map(|value| PathElement::key(vec![
                KeyField { name: "name".into(), value },
            ])),
        ]
    }

    pub fn sets() -> impl Strategy<Value = FieldSet> {
        prop::collection::vec(prop::collection::vec(element(), 1..4), 0..8).prop_map(|paths| {
            let mut set = FieldSet::new();
            paths.iter().for_each(|path| set.insert(path));
            set
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::arbitrary::sets;
    use super::*;

    fn set(fields: &str) -> FieldSet {
        FieldSet::decode(&json::decode(fields.as_bytes()).unwrap()).unwrap()
    }

    fn check(actual: &FieldSet, expected: &str) {
        assert_eq!(json::encode_to_string(&actual.encode()), expected);
    }

    #[test]
    fn a_field_without_children_is_a_member() {
        check(&set(r#"{"f:a":{},"f:b":{"f:c":null}}"#), r#"{"f:a":{},"f:b":{"f:c":{}}}"#);
    }

    #[test]
    fn a_dot_makes_a_parent_a_member() {
        let owned = set(r#"{"f:a":{".":{},"f:b":{}}}"#);
        assert!(owned.contains(&[PathElement::field("a")]));
        assert!(!set(r#"{"f:a":{"f:b":{}}}"#).contains(&[PathElement::field("a")]));
        check(&owned, r#"{"f:a":{".":{},"f:b":{}}}"#);
    }

    #[test]
    fn elements_of_unknown_kinds_are_left_out() {
        check(&set(r#"{"f:a":{"x:?":{"f:b":{}}},"z:1":1}"#), r#"{"f:a":{}}"#);
    }

    #[test]
    fn malformed_sets_are_refused() {
        for fields in [r#"{"f:a":1}"#, r#"{"a":{}}"#, r#"{"":{}}"#, "[]", r#""f:a""#] {
            assert!(FieldSet::decode(&json::decode(fields.as_bytes()).unwrap()).is_err(), "{fields}");
        }
    }

    #[test]
    fn difference_keeps_children_of_removed_parents() {
        let all = set(r#"{"f:a":{".":{},"f:b":{}},"f:c":{}}"#);
        check(&all.difference(&set(r#"{"f:a":{}}"#)), r#"{"f:a":{"f:b":{}},"f:c":{}}"#);
        check(&all.recursive_difference(&set(r#"{"f:a":{}}"#)), r#"{"f:c":{}}"#);
    }

    #[test]
    fn members_of_a_level_come_before_what_is_below() {
        let mut paths = Vec::new();
        set(r#"{"f:a":{"f:x":{}},"f:b":{},"f:c":{".":{},"f:y":{}}}"#)
            .for_each(&mut |path| paths.push(path.iter().map(ToString::to_string).collect::<String>()));
        assert_eq!(paths, [".b", ".c", ".a.x", ".c.y"]);
    }

    proptest! {
        #[test]
        fn sets_survive_encoding(set in sets()) {
            prop_assert_eq!(FieldSet::decode(&set.encode()).unwrap(), set);
        }

        #[test]
        fn difference_and_intersection_part_a_set(a in sets(), b in sets()) {
            let (rest, common) = (a.difference(&b), a.intersection(&b));
            prop_assert_eq!(rest.union(&common), a.clone());
            prop_assert!(rest.intersection(&b).is_empty());
            prop_assert!(common.is_subset(&b));
            prop_assert_eq!(a.difference(&b).is_empty(), a.is_subset(&b));
            let mut excluded = a.clone();
            excluded.exclude(&b);
            prop_assert_eq!(excluded, a.recursive_difference(&b));
            prop_assert_eq!(a.clone().united(b.clone()), a.union(&b));
            prop_assert_eq!(a.union(&b), b.union(&a));
        }
    }
}
