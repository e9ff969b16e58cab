//! The fields of a JSON object, sorted by name in byte order.

use std::sync::Arc;

use smol_str::SmolStr;

use super::Value;
use super::unread::Unread;
use crate::work;

/// The name of a field. Names of up to 23 bytes, which nearly all are, take no extra memory; copies of longer ones
/// share theirs.
pub type Key = SmolStr;

/// The position of `name` among `items`, which are sorted by their names in byte order, without duplicates.
///
/// A few names are scanned from the start: their lengths and last letters rule out nearly all, where each step of a
/// binary search compares texts. In objects of 2 to 13 fields this takes half the time.
pub(crate) fn place_of<T>(items: &[T], name: &str, name_of: impl Fn(&T) -> &str) -> Option<usize> {
    const FEW: usize = 16;
    if items.len() > FEW {
        return items.binary_search_by(|item| name_of(item).cmp(name)).ok();
    }
    let last = name.as_bytes().last();
    items.iter().position(|item| {
        let other = name_of(item);
        other.len() == name.len() && other.as_bytes().last() == last && other == name
    })
}

/// Looks up names that mostly come sorted, as the items are: the next item is usually the one that is sought, or one of
/// the next.
pub(crate) struct InOrder<'i, N, T> {
    items: &'i [(N, T)],
    /// The index after the item that was found last.
    next: usize,
}

impl<'i, N: AsRef<str>, T> InOrder<'i, N, T> {
    /// `items` are sorted by their names in byte order, without duplicates.
    pub fn new(items: &'i [(N, T)]) -> Self {
        InOrder { items, next: 0 }
    }

    /// What the name stands for.
    pub fn get(&mut self, name: &str) -> Option<&'i T> {
        const AHEAD: usize = 3;
        let ahead = self.items[self.next..].iter().take(AHEAD).position(|(other, _)| other.as_ref() == name);
        let at = match ahead {
            Some(ahead) => self.next + ahead,
            None => place_of(self.items, name, |(other, _)| other.as_ref())?,
        };
        self.next = at + 1;
        Some(&self.items[at].1)
    }
}

/// Fields in byte order of their names, without duplicates. Small objects, the common case, take one allocation.
///
/// The fields are values, or what a schema specifies for each. An object may stay JSON until one of its fields is
/// accessed: most of managedFields is only passed on.
#[derive(Clone, Debug)]
pub struct Map<V = Value> {
    fields: Fields<V>,
}

#[derive(Clone, Debug)]
enum Fields<V> {
    Read(Vec<(Key, V)>),
    Unread(Arc<Unread<V>>),
}

impl<V> Map<V> {
    /// An empty map.
    pub const fn new() -> Self {
        Map { fields: Fields::Read(Vec::new()) }
    }

    /// An empty map with room for `count` fields.
    pub fn with_capacity(count: usize) -> Self {
        Map { fields: Fields::Read(Vec::with_capacity(count)) }
    }

    /// The JSON that the map was made from, if it has not changed since.
    pub(crate) fn json_text(&self) -> Option<&str> {
        match &self.fields {
            Fields::Read(_) => None,
            Fields::Unread(unread) => Some(unread.text()),
        }
    }

    fn fields(&self) -> &Vec<(Key, V)> {
        match &self.fields {
            Fields::Read(fields) => fields,
            Fields::Unread(unread) => unread.fields(),
        }
    }

    fn fields_mut(&mut self) -> &mut Vec<(Key, V)> {
        if let Fields::Unread(unread) = &mut self.fields {
            self.fields = Fields::Read(Unread::take(unread));
        }
        match &mut self.fields {
            Fields::Read(fields) => fields,
            Fields::Unread(_) => unreachable!("it is read now"),
        }
    }

    /// Takes fields in any order; the last value of a repeated name wins. Sorted fields cost nothing.
    pub fn from_fields(mut fields: Vec<(Key, V)>) -> Self {
        if !fields.is_sorted_by(|(left, _), (right, _)| left < right) {
            work::steps(fields.len());
            fields.sort_by(|(left, _), (right, _)| left.cmp(right));
            fields.dedup_by(|later, kept| {
                let repeated = later.0 == kept.0;
                if repeated {
                    std::mem::swap(later, kept);
                }
                repeated
            });
        }
        Map { fields: Fields::Read(fields) }
    }

    /// How many fields it has.
    pub fn len(&self) -> usize {
        self.fields().len()
    }

    /// Whether it has no fields.
    pub fn is_empty(&self) -> bool {
        self.fields().is_empty()
    }

    /// Whether it has a field of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&V> {
        let fields = self.fields();
        place_of(fields, name, |(field, _)| field).map(|at| &fields[at].1)
    }

    /// For looking up fields whose names mostly come sorted.
    pub(crate) fn in_order(&self) -> InOrder<'_, Key, V> {
        InOrder::new(self.fields())
    }

    /// The value of a field, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        self.find(name).map(|at| &mut self.fields_mut()[at].1)
    }

    /// Sets `name` and returns its previous value.
    pub fn insert(&mut self, name: impl Into<Key>, value: V) -> Option<V> {
        let name = name.into();
        let fields = self.fields_mut();
        // Sorted input, such as our own encoding, only ever appends.
        if fields.last().is_none_or(|(last, _)| *last < name) {
            fields.push((name, value));
            return None;
        }
        match position(fields, &name) {
            Ok(at) => Some(std::mem::replace(&mut fields[at].1, value)),
            Err(at) => {
                count_moved(fields, at);
                fields.insert(at, (name, value));
                None
            }
        }
    }

    /// Takes out a field.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        let at = self.find(name)?;
        let fields = self.fields_mut();
        count_moved(fields, at);
        Some(fields.remove(at).1)
    }

    /// Keeps the fields that `keep` is true for.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut V) -> bool) {
        self.fields_mut().retain_mut(|(name, value)| keep(name, value));
    }

    /// Fields and their values, sorted by name.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &V)> + ExactSizeIterator {
        self.fields().iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Fields and their values, sorted by name, to change the values.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&str, &mut V)> + ExactSizeIterator {
        self.fields_mut().iter_mut().map(|(name, value)| (name.as_str(), value))
    }

    /// The names of the fields, sorted.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.fields().iter().map(|(name, _)| name.as_str())
    }

    /// The values, sorted by the names of their fields.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator {
        self.fields().iter().map(|(_, value)| value)
    }

    /// The values, sorted by the names of their fields, to change them.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.fields_mut().iter_mut().map(|(_, value)| value)
    }

    /// The position of an existing field.
    fn find(&self, name: &str) -> Option<usize> {
        place_of(self.fields(), name, |(field, _)| field)
    }
}

/// Counts the fields from `at` on as moved, if they are many; otherwise nothing is counted, as locks may be held.
fn count_moved<V>(fields: &[(Key, V)], at: usize) {
    const FEW: usize = 256;
    let moved = fields.len() - at;
    if moved > FEW {
        work::bytes(moved * size_of::<(Key, V)>());
    }
}

/// The position of a field, or where it would be inserted.
fn position<V>(fields: &[(Key, V)], name: &str) -> Result<usize, usize> {
    fields.binary_search_by(|(field, _)| field.as_str().cmp(name))
}

impl Map {
    /// The object of this JSON, which must be compact with sorted fields, and is read when a field is first accessed.
    /// It has no fields if the JSON is not an object.
    pub(crate) fn of_json(text: impl Into<Box<str>>) -> Self {
        Map { fields: Fields::Unread(Arc::new(Unread::new(text.into()))) }
    }

    /// The field `name`, inserted as null if absent.
    pub fn entry(&mut self, name: &str) -> &mut Value {
        let fields = self.fields_mut();
        let at = match position(fields, name) {
            Ok(at) => at,
            Err(at) => {
                count_moved(fields, at);
                fields.insert(at, (Key::new(name), Value::Null));
                at
            }
        };
        &mut fields[at].1
    }
}

/// Compares the fields; the same text need not be read for that.
impl<V: PartialEq> PartialEq for Map<V> {
    fn eq(&self, other: &Self) -> bool {
        match (self.json_text(), other.json_text()) {
            (Some(text), Some(other)) if text == other => true,
            _ => self.fields() == other.fields(),
        }
    }
}

impl<V> Default for Map<V> {
    fn default() -> Self {
        Map::new()
    }
}

impl<V> IntoIterator for Map<V> {
    type Item = (Key, V);
    type IntoIter = std::vec::IntoIter<(Key, V)>;

    fn into_iter(self) -> Self::IntoIter {
        match self.fields {
            Fields::Read(fields) => fields.into_iter(),
            Fields::Unread(mut unread) => Unread::take(&mut unread).into_iter(),
        }
    }
}

impl<K: Into<Key>, V> FromIterator<(K, V)> for Map<V> {
    /// The last value of a repeated name wins.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(fields: I) -> Self {
        Map::from_fields(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::json;

    proptest! {
        #[test]
        fn names_are_found_in_any_order(
            fields in prop::collection::vec("[a-d]{0,2}", 0..24),
            sought in prop::collection::vec("[a-d]{0,2}", 0..24),
        ) {
            let map: Map<usize> = fields.into_iter().enumerate().map(|(at, name)| (name, at)).collect();
            let mut in_order = map.in_order();
            for name in map.keys().map(str::to_owned).chain(sought) {
                prop_assert_eq!(in_order.get(&name), map.get(&name));
            }
        }

        #[test]
        fn names_are_found_where_a_binary_search_finds_them(
            names in prop::collection::btree_set("[ab]{0,6}", 0..40),
            name in "[ab]{0,6}",
        ) {
            let names: Vec<String> = names.into_iter().collect();
            prop_assert_eq!(place_of(&names, &name, |name| name), names.binary_search(&name).ok());
        }
    }

    #[test]
    fn an_object_that_is_not_read_is_like_one_that_is() {
        const TEXT: &str = r#"{"a":{"b":1},"c":[]}"#;
        let read = json::decode(TEXT.as_bytes()).expect("it is JSON");
        let unread = Value::Object(Map::of_json(TEXT));
        assert_eq!(json::encode_to_string(&unread), TEXT);
        assert_eq!(unread, read);
        assert_eq!(unread.at(&["a", "b"]), Some(&Value::Int(1)));
        let mut changed = unread.clone();
        changed.make_object().insert("a", Value::Null);
        assert_eq!(json::encode_to_string(&changed), r#"{"a":null,"c":[]}"#);
        assert_eq!(unread, read);
        assert_ne!(unread, changed);
        assert_eq!(Map::of_json("[]").len(), 0);
    }
}
