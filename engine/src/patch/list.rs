//! The items of a list that is being patched.
//!
//! Input: positions to insert at and to remove from, in any order. Output: the items. Each operation only moves a few
//! items, wherever it is: a patch may have ten thousand operations at the front of a million items.

use crate::work;

/// The items per chunk of a new list; a chunk has at most twice as many.
const CHUNK_ITEMS: usize = 512;
/// How many chunks may be skipped per step.
const CHUNKS_PER_STEP: usize = 32;

/// A list in chunks.
#[derive(Clone, Debug)]
pub(super) struct ChunkedList<T> {
    /// No chunk is empty.
    chunks: Vec<Vec<T>>,
    length: usize,
}

impl<T> ChunkedList<T> {
    pub fn len(&self) -> usize {
        self.length
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    pub fn get(&self, at: usize) -> Option<&T> {
        let (chunk, at) = self.place(at);
        self.chunks.get(chunk)?.get(at)
    }

    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let (chunk, at) = self.place(at);
        self.chunks.get_mut(chunk)?.get_mut(at)
    }

    pub fn push(&mut self, item: T) {
        self.insert(self.length, item);
    }

    /// Inserts an item before the one at `at`, or after the last.
    pub fn insert(&mut self, at: usize, item: T) {
        let (mut chunk, mut at) = self.place(at);
        // An item between two chunks goes to the end of the first.
        if at == 0 && chunk > 0 {
            chunk -= 1;
            at = self.chunks[chunk].len();
        }
        if self.chunks.is_empty() {
            self.chunks.push(Vec::new());
        }
        let items = &mut self.chunks[chunk];
        work::bytes((items.len() - at) * size_of::<T>());
        items.insert(at, item);
        self.length += 1;
        if items.len() > 2 * CHUNK_ITEMS {
            let rest = items.split_off(CHUNK_ITEMS);
            self.chunks.insert(chunk + 1, rest);
        }
    }

    /// Takes the item at `at`, if there is one.
    pub fn remove(&mut self, at: usize) -> Option<T> {
        let (chunk, at) = self.place(at);
        let items = self.chunks.get_mut(chunk).filter(|items| at < items.len())?;
        work::bytes((items.len() - at) * size_of::<T>());
        let item = items.remove(at);
        self.length -= 1;
        if items.is_empty() {
            self.chunks.remove(chunk);
        }
        Some(item)
    }

    /// The chunk of an item, and its position there; for the position after the last item, it is after the last chunk.
    fn place(&self, mut at: usize) -> (usize, usize) {
        work::steps(1 + self.chunks.len() / CHUNKS_PER_STEP);
        for (chunk, items) in self.chunks.iter().enumerate() {
            if at < items.len() {
                return (chunk, at);
            }
            at -= items.len();
        }
        (self.chunks.len(), at)
    }
}

impl<T> FromIterator<T> for ChunkedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        let mut list = ChunkedList { chunks: Vec::new(), length: 0 };
        loop {
            let chunk: Vec<T> = items.by_ref().take(CHUNK_ITEMS).collect();
            if chunk.is_empty() {
                return list;
            }
            work::steps(chunk.len());
            list.length += chunk.len();
            list.chunks.push(chunk);
        }
    }
}

impl<T> IntoIterator for ChunkedList<T> {
    type Item = T;
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.chunks.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_list(start in 0..2000_usize, operations in prop::collection::vec((any::<bool>(), any::<u16>()), 0..400)) {
            let mut plain: Vec<usize> = (0..start).collect();
            let mut list: ChunkedList<usize> = plain.iter().copied().collect();
            for (number, (inserts, at)) in operations.into_iter().enumerate() {
                let at = usize::from(at) % (plain.len() + 1);
                if inserts {
                    plain.insert(at, number);
                    list.insert(at, number);
                } else {
                    let removed = if at < plain.len() { Some(plain.remove(at)) } else { None };
                    prop_assert_eq!(list.remove(at), removed);
                }
                prop_assert_eq!((list.len(), list.get(at)), (plain.len(), plain.get(at)));
            }
            prop_assert_eq!(list.into_iter().collect::<Vec<_>>(), plain);
        }
    }

    #[test]
    fn an_operation_on_ten_times_the_items_takes_few_steps_more() {
        let steps = |count: usize| {
            let mut list: ChunkedList<usize> = (0..count).collect();
            work::counted(|| (0..1000).for_each(|number| list.insert(0, number))).1 / 1000
        };
        assert!(steps(1_000_000) < 1000, "{}", steps(1_000_000));
    }
}
