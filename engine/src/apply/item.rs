//! The identity of items in sets and list maps.
//!
//! Source: structured-merge-diff v6.4.2, `typed/helpers.go`; texts recorded from apiextensions-apiserver 1.37.

use std::cmp::Ordering;
use std::sync::Arc;

use thiserror::Error;

use super::path::{KeyField, PathElement, compare_values, encode_item_key, encode_item_value};
use super::type_schema::{Items, ListKey, ListType};
use crate::value::{Map, Value};

/// Why an item has no identity within its list.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum ItemError {
    #[error("invalid indexing of non-associative list")]
    Atomic,
    #[error("associative list with keys may not have a null element")]
    NullOfMap,
    #[error("associative list with keys may not have non-map elements")]
    NotMap,
    /// The key has that field, and a list of maps has no defaults.
    #[error("couldn't find default value for {0}: associative list may not have non-map types")]
    NoDefault(Arc<str>),
    #[error(
        "associative list with keys has an element that omits all key fields [{keys}] (and doesn't have default values for any \
         key fields)"
    )]
    NoKey { keys: String },
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
}

/// An item with an identity. Items are compared by key; the key of a set's item is the item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub list: &'a ListType,
    pub value: &'a Value,
    /// The first field of the key: looked up once, as it usually suffices to distinguish items.
    first_key: Option<&'a Value>,
}

impl ListType {
    /// `value` as an item of this list, or why it has no identity.
    pub(super) fn item<'a>(&'a self, value: &'a Value) -> Result<Item<'a>, ItemError> {
        match &self.items {
            Items::Atomic => Err(ItemError::Atomic),
            Items::Set => check_set_item(value),
            Items::Map { .. } => self.check_key(value),
        }
        .map(|()| Item { list: self, value, first_key: self.keys().first().and_then(|key| key.of(value)) })
    }

    /// The items of `values` that have an identity, sorted; equal ones keep their order.
    pub(super) fn sorted_items<'a>(&'a self, values: &'a [Value]) -> Vec<Item<'a>> {
        let mut items: Vec<Item<'_>> = values.iter().filter_map(|value| self.item(value).ok()).collect();
        items.sort();
        items
    }

    /// As [`ListType::sorted_items`], each with its position in `values`.
    pub(super) fn sorted_positions<'a>(&'a self, values: &'a [Value]) -> Vec<(Item<'a>, usize)> {
        let positioned = values.iter().enumerate().filter_map(|(at, value)| Some((self.item(value).ok()?, at)));
        let mut items: Vec<(Item<'_>, usize)> = positioned.collect();
        items.sort();
        items
    }

    /// The fields of the key, sorted by name; empty except for list maps.
    fn keys(&self) -> &[ListKey] {
        match &self.items {
            Items::Map { keys, .. } => keys,
            Items::Set | Items::Atomic => &[],
        }
    }

    fn check_key(&self, item: &Value) -> Result<(), ItemError> {
        let Items::Map { keys, declared_keys, of_maps } = &self.items else { return Ok(()) };
        let fields = match item {
            Value::Null => return Err(ItemError::NullOfMap),
            Value::Object(fields) => fields,
            _ => return Err(ItemError::NotMap),
        };
        if let Some(key) = keys.iter().find(|key| !of_maps && !fields.contains_key(&key.name)) {
            return Err(ItemError::NoDefault(Arc::clone(&key.name)));
        }
        let has_key = |fields: &Map| keys.iter().any(|key| fields.contains_key(&key.name) || key.default.is_some());
        if keys.is_empty() || has_key(fields) { Ok(()) } else { Err(ItemError::NoKey { keys: declared_keys.clone() }) }
    }
}

impl ListKey {
    /// The item's value of this key field, or else its default.
    fn of<'a>(&'a self, item: &'a Value) -> Option<&'a Value> {
        item.get(&self.name).or(self.default.as_ref())
    }
}

fn check_set_item(item: &Value) -> Result<(), ItemError> {
    match item {
        Value::Object(_) => Err(ItemError::MapInSet),
        Value::Array(_) => Err(ItemError::ListInSet),
        Value::Null => Err(ItemError::NullInSet),
        _ => Ok(()),
    }
}

fn is_plain_value(value: &Value) -> bool {
    matches!(value, Value::String(text) if is_plain_text(text))
}

/// Whether nothing in `text` is escaped, and everything sorts after the quote that ends it.
fn is_plain_text(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'#'..=b'~') && !matches!(byte, b'\\' | b'<' | b'>' | b'&'))
}

impl<'a> Item<'a> {
    /// The step of a path that leads to this item.
    pub fn element(self) -> PathElement {
        match &self.list.items {
            Items::Map { .. } => PathElement::Key(
                self.key().map(|(name, value)| KeyField { name: Arc::clone(name), value: value.clone() }).collect(),
            ),
            Items::Set | Items::Atomic => PathElement::Value(Arc::new(self.value.clone())),
        }
    }

    /// The text of [`Item::element`].
    pub fn encode(self) -> String {
        match &self.list.items {
            Items::Map { .. } => encode_item_key(self.key().map(|(name, value)| (&**name, value))),
            Items::Set | Items::Atomic => encode_item_value(self.value),
        }
    }

    /// Whether [`Item::encode`] is spelled in one way only, from texts that sort as their spelling does: such items of a
    /// list are in the order of their spelling.
    pub fn is_plain(self) -> bool {
        match &self.list.items {
            Items::Map { keys, .. } => {
                keys.iter().all(|key| is_plain_text(&key.name) && key.of(self.value).is_some_and(is_plain_value))
            }
            Items::Set | Items::Atomic => is_plain_value(self.value),
        }
    }

    /// Appends [`Item::encode`] of a plain item as it stands in a JSON string.
    pub fn write_plain(self, out: &mut Vec<u8>) {
        const QUOTE: &[u8] = b"\\\"";
        let mut write = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
        let text = |value: &'a Value| value.as_str().unwrap_or_default().as_bytes();
        match &self.list.items {
            Items::Map { .. } => {
                write(&[b"k:{"]);
                for (at, (name, value)) in self.key().enumerate() {
                    let comma: &[u8] = if at > 0 { b"," } else { b"" };
                    write(&[comma, QUOTE, name.as_bytes(), QUOTE, b":", QUOTE, text(value), QUOTE]);
                }
                write(&[b"}"]);
            }
            Items::Set | Items::Atomic => write(&[b"v:", QUOTE, text(self.value), QUOTE]),
        }
    }

    /// The fields of the key that the item has.
    fn key(self) -> impl Iterator<Item = (&'a Arc<str>, &'a Value)> {
        self.list.keys().iter().filter_map(move |key| Some((&key.name, key.of(self.value)?)))
    }

    fn compare_keys(self, other: Self) -> Ordering {
        let (mut left, mut right) = (self.key(), other.key());
        loop {
            return match (left.next(), right.next()) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Less,
                (Some(_), None) => Ordering::Greater,
                (Some((left_name, left_value)), Some((right_name, right_value))) => {
                    match left_name.cmp(right_name).then_with(|| compare_values(left_value, right_value)) {
                        Ordering::Equal => continue,
                        unequal => unequal,
                    }
                }
            };
        }
    }
}

/// The order of the elements.
impl Ord for Item<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.list.items, self.first_key, other.first_key) {
            (Items::Set | Items::Atomic, _, _) => compare_values(self.value, other.value),
            (Items::Map { keys, .. }, Some(left), Some(right)) => match compare_values(left, right) {
                Ordering::Equal if keys.len() > 1 => self.compare_keys(*other),
                order => order,
            },
            (Items::Map { .. }, _, _) => self.compare_keys(*other),
        }
    }
}

impl PartialOrd for Item<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Item<'_> {}
