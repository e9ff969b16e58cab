//! The fields of a JSON object, sorted by name in byte order.

use smol_str::SmolStr;

use super::Value;
use crate::work;

/// The name of a field. Names of up to 23 bytes, nearly all, take no memory of their own; copies of longer ones share theirs.
pub type Key = SmolStr;

/// Where `name` stands among `items`, which are sorted by their names in byte order, each name once.
///
/// Few names are looked through from the first on: their lengths and last letters rule out nearly all, where each step of a
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

/// Fields in byte order of their names, each name once. Small objects, the common case, are one allocation.
///
/// The fields are values, or what a schema says of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Map<V = Value> {
    fields: Vec<(Key, V)>,
}

impl<V> Map<V> {
    /// An empty map.
    pub const fn new() -> Self {
        Map { fields: Vec::new() }
    }

    /// None yet, with room for `count`.
    pub fn with_capacity(count: usize) -> Self {
        Map { fields: Vec::with_capacity(count) }
    }

    /// The fields in any order; of a repeated name the last value stays. Sorted fields cost nothing.
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
        Map { fields }
    }

    /// How many fields it has.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether it has no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether it has a field of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.find(name).map(|at| &self.fields[at].1)
    }

    /// The value of a field, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        self.find(name).map(|at| &mut self.fields[at].1)
    }

    /// Sets `name` and returns what it was before.
    pub fn insert(&mut self, name: impl Into<Key>, value: V) -> Option<V> {
        let name = name.into();
        // Sorted input, such as our own encoding, only ever appends.
        if self.fields.last().is_none_or(|(last, _)| *last < name) {
            self.fields.push((name, value));
            return None;
        }
        match self.position(&name) {
            Ok(at) => Some(std::mem::replace(&mut self.fields[at].1, value)),
            Err(at) => {
                self.count_moved(at);
                self.fields.insert(at, (name, value));
                None
            }
        }
    }

    /// Takes out a field.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        let at = self.find(name)?;
        self.count_moved(at);
        Some(self.fields.remove(at).1)
    }

    /// Keeps the fields that `keep` is true for.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut V) -> bool) {
        self.fields.retain_mut(|(name, value)| keep(name, value));
    }

    /// Fields and their values, sorted by name.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &V)> + ExactSizeIterator {
        self.fields.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Fields and their values, sorted by name, to change the values.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&str, &mut V)> + ExactSizeIterator {
        self.fields.iter_mut().map(|(name, value)| (name.as_str(), value))
    }

    /// The names of the fields, sorted.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    /// The values, sorted by the names of their fields.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator {
        self.fields.iter().map(|(_, value)| value)
    }

    /// The values, sorted by the names of their fields, to change them.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.fields.iter_mut().map(|(_, value)| value)
    }

    /// Counts the fields from `at` on as moved, where they are many: elsewhere locks may be held, under which nobody counts.
    fn count_moved(&self, at: usize) {
        const FEW: usize = 256;
        let moved = self.fields.len() - at;
        if moved > FEW {
            work::bytes(moved * size_of::<(Key, V)>());
        }
    }

    /// Where a field stands that is there.
    fn find(&self, name: &str) -> Option<usize> {
        place_of(&self.fields, name, |(field, _)| field)
    }

    /// Where a field stands, or would.
    fn position(&self, name: &str) -> Result<usize, usize> {
        self.fields.binary_search_by(|(field, _)| field.as_str().cmp(name))
    }
}

impl Map {
    /// The field `name`, made as null when absent.
    pub fn entry(&mut self, name: &str) -> &mut Value {
        let at = match self.position(name) {
            Ok(at) => at,
            Err(at) => {
                self.count_moved(at);
                self.fields.insert(at, (Key::new(name), Value::Null));
                at
            }
        };
        &mut self.fields[at].1
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
        self.fields.into_iter()
    }
}

impl<K: Into<Key>, V> FromIterator<(K, V)> for Map<V> {
    /// The last value of a repeated name stays.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(fields: I) -> Self {
        Map::from_fields(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_are_found_where_a_binary_search_finds_them(
            names in prop::collection::btree_set("[ab]{0,6}", 0..40),
            name in "[ab]{0,6}",
        ) {
            let names: Vec<String> = names.into_iter().collect();
            prop_assert_eq!(place_of(&names, &name, |name| name), names.binary_search(&name).ok());
        }
    }
}
