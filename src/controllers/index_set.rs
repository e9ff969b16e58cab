//! Indexes of a Job as a set of ranges: `0-2,4,7-9`.
//!
//! A list of a few characters may contain two billion indexes, so ranges are never expanded: the size of a set is
//! bounded by the length of the text that it was read from and the number of pods that were added.

use std::fmt;

/// Indexes from 0 up to the completions of a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexSet {
    /// The first and the last of each range, in order; between two of them there is a gap of at least one index.
    ranges: Vec<(i64, i64)>,
    completions: i64,
}

impl IndexSet {
    /// An empty set of the indexes below `completions`.
    pub fn new(completions: i64) -> Self {
        IndexSet { ranges: Vec::new(), completions }
    }

    /// The indexes in `1,3-5` that are below `completions`; anything else is ignored.
    pub fn read(text: &str, completions: i64) -> Self {
        let mut set = IndexSet::new(completions);
        let ranges = text.split(',').filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.parse().ok()?, last.parse().ok()?))
        });
        set.add_ranges(ranges);
        set
    }

    /// Adds those of `indexes` that are below the completions.
    pub fn extend(&mut self, indexes: impl IntoIterator<Item = i64>) {
        self.add_ranges(indexes.into_iter().map(|index| (index, index)));
    }

    /// The union of this set and `other`.
    pub fn union(mut self, other: &IndexSet) -> Self {
        self.add_ranges(other.ranges.iter().copied());
        self
    }

    pub fn contains(&self, index: i64) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= index);
        after.checked_sub(1).is_some_and(|at| index <= self.ranges[at].1)
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many indexes are in it.
    pub fn len(&self) -> i64 {
        self.ranges.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// How many indexes are both in it and in `other`.
    pub fn common(&self, other: &IndexSet) -> i64 {
        let (mut own, mut others) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        let mut count = 0;
        while let (Some(&&(first, last)), Some(&&(other_first, other_last))) = (own.peek(), others.peek()) {
            count += (last.min(other_last) - first.max(other_first) + 1).max(0);
            _ = if last <= other_last { own.next() } else { others.next() };
        }
        count
    }

    /// The indexes below the completions that are not in it, in order.
    pub fn missing(&self) -> impl Iterator<Item = i64> {
        let begins = [0].into_iter().chain(self.ranges.iter().map(|(_, last)| last + 1));
        let ends = self.ranges.iter().map(|(first, _)| *first).chain([self.completions]);
        begins.zip(ends).flat_map(|(begin, end)| begin..end)
    }

    fn add_ranges(&mut self, ranges: impl Iterator<Item = (i64, i64)>) {
        let last_index = self.completions - 1;
        let clipped = ranges.map(|(first, last)| (first.max(0), last.min(last_index)));
        self.ranges.extend(clipped.filter(|(first, last)| first <= last));
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|(first, last), (_, end)| {
            let is_joined = *first <= *end + 1;
            if is_joined {
                *end = (*end).max(*last);
            }
            is_joined
        });
    }
}

/// The form in a Job's status: `1,3-5`; two in a row are `3,4`.
impl fmt::Display for IndexSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.ranges.iter().enumerate() {
            let separator = if at > 0 { "," } else { "" };
            match last - first {
                0 => write!(out, "{separator}{first}")?,
                1 => write!(out, "{separator}{first},{last}")?,
                _ => write!(out, "{separator}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: i64 = i32::MAX as i64;

    #[track_caller]
    fn check(text: &str, completions: i64, expected: &str, count: i64) {
        let set = IndexSet::read(text, completions);
        assert_eq!((set.to_string().as_str(), set.len(), set.is_empty()), (expected, count, count == 0));
    }

    #[test]
    fn indexes_are_read_as_they_are_written() {
        check("", 9, "", 0);
        check("1", 9, "1", 1);
        check("1,3-5", 9, "1,3-5", 4);
        check("0,1", 9, "0,1", 2);
        check("5-7,0-1,2,6-8,x,3-,7-4", 9, "0-2,5-8", 7);
    }

    #[test]
    fn no_index_reaches_the_completions() {
        check("0-2147483646", MANY, "0-2147483646", MANY);
        check("-3,0-9223372036854775807", 5, "0-4", 5);
        check("7,9-12", 5, "", 0);
        check("0-3", 0, "", 0);
    }

    #[test]
    fn sets_are_compared_by_their_ranges() {
        let set = |text: &str| IndexSet::read(text, MANY);
        assert_eq!(set("0-9,20-29").common(&set("5-24,29,40")), 11);
        assert_eq!(set("0-2147483646").common(&set("1-2147483646")), MANY - 1);
        assert_eq!(set("0-3,9").union(&set("4,6")).to_string(), "0-4,6,9");
        let some = set("2-4,7");
        assert_eq!([1, 2, 4, 5, 7, 8].map(|index| some.contains(index)), [false, true, true, false, true, false]);
    }

    #[test]
    fn what_is_missing_is_found_without_looking_at_what_is_there() {
        let missing = |text: &str| IndexSet::read(text, MANY).missing().take(3).collect::<Vec<_>>();
        assert_eq!(missing("0-2147483640"), [2_147_483_641, 2_147_483_642, 2_147_483_643]);
        assert_eq!(missing("1-2,4"), [0, 3, 5]);
        assert!(missing("0-2147483646").is_empty());
        assert_eq!(IndexSet::new(2).missing().collect::<Vec<_>>(), [0, 1]);
    }
}
