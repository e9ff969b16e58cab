//! Values by their keys, of which only the most recently used are kept.

use std::collections::{BTreeMap, HashMap};

/// At most a fixed number of values; beyond it, the least recently used one is forgotten. A key is a hash.
pub(super) struct Recent<V> {
    most: usize,
    /// The values, each with the number of its last use.
    values: HashMap<u64, (u64, V)>,
    /// The keys, by the numbers of their last uses.
    used: BTreeMap<u64, u64>,
    uses: u64,
}

impl<V> Recent<V> {
    /// Keeps `most` values.
    pub fn of(most: usize) -> Self {
        Recent { most, values: HashMap::new(), used: BTreeMap::new(), uses: 0 }
    }

    /// The value of a key, which is used now; one that is unknown, or was forgotten, is made.
    pub fn get_or(&mut self, key: u64, make: impl FnOnce() -> V) -> &mut V {
        self.uses += 1;
        match self.values.get(&key) {
            Some((last, _)) => _ = self.used.remove(last),
            None if self.values.len() >= self.most => {
                _ = self.used.pop_first().and_then(|(_, oldest)| self.values.remove(&oldest));
            }
            None => {}
        }
        self.used.insert(self.uses, key);
        let (last, value) = self.values.entry(key).or_insert_with(|| (0, make()));
        *last = self.uses;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_is_forgotten() {
        let mut recent = Recent::of(2);
        let mut value = |key: u64, fresh: &'static str| *recent.get_or(key, || fresh);
        assert_eq!([value(1, "a"), value(2, "b"), value(1, "again")], ["a", "b", "a"]);
        // The third takes the place of the second.
        assert_eq!([value(3, "c"), value(1, "again"), value(2, "new")], ["c", "a", "new"]);
        assert_eq!((recent.values.len(), recent.used.len()), (2, 2));
    }
}
