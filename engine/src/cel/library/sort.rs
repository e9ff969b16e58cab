//! Sorting that leaves equal items in the order in which Go's `sort.Slice` leaves them.
//!
//! That is the pattern-defeating quicksort of Go 1.19 and later: not stable, but deterministic, so the order of equal
//! items is visible when a list is sorted by a key. It takes `n log n` time.

/// Ranges up to this length are sorted by insertion.
const INSERTION_MAX: usize = 12;
/// From this length on the pivot is a median of medians, and a nearly sorted range may be repaired.
const LONG: usize = 50;

/// Returns the numbers below `count`, sorted by `is_less`, which need not be consistent.
pub fn sort_indices(count: usize, is_less: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut sorter = Sorter { items: (0..count).collect(), is_less };
    let limit = usize::BITS - count.leading_zeros();
    sorter.sort(0, count, limit);
    sorter.items
}

struct Sorter<F> {
    items: Vec<usize>,
    is_less: F,
}

/// What the search for a pivot found about the order of the range.
#[derive(PartialEq)]
enum Hint {
    Unknown,
    Increasing,
    Decreasing,
}

impl<F: Fn(usize, usize) -> bool> Sorter<F> {
    fn less(&self, left: usize, right: usize) -> bool {
        (self.is_less)(self.items[left], self.items[right])
    }

    fn swap(&mut self, left: usize, right: usize) {
        self.items.swap(left, right);
    }

    /// Sorts `start..end`; after `limit` unbalanced partitions, by heapsort. The recursion goes into the shorter part
    /// and the loop continues with the longer one, so the stack stays shallow.
    fn sort(&mut self, mut start: usize, mut end: usize, mut limit: u32) {
        let mut was_balanced = true;
        let mut was_partitioned = true;
        loop {
            let length = end - start;
            if length <= INSERTION_MAX {
                return self.sort_by_insertion(start, end);
            }
            if limit == 0 {
                return self.sort_by_heap(start, end);
            }
            if !was_balanced {
                self.break_patterns(start, end);
                limit -= 1;
            }
            let (mut pivot, mut hint) = self.choose_pivot(start, end);
            if hint == Hint::Decreasing {
                self.items[start..end].reverse();
                pivot = end - 1 - (pivot - start);
                hint = Hint::Increasing;
            }
            if was_balanced && was_partitioned && hint == Hint::Increasing && self.repair(start, end) {
                return;
            }
            // No item is less than the one before the range: split off the items that equal the pivot.
            if start > 0 && !self.less(start - 1, pivot) {
                start = self.partition_equal(start, end, pivot);
                continue;
            }
            let (middle, already) = self.partition(start, end, pivot);
            was_partitioned = already;
            let (left, right) = (middle - start, end - middle);
            if left < right {
                was_balanced = left >= length / 8;
                self.sort(start, middle, limit);
                start = middle + 1;
            } else {
                was_balanced = right >= length / 8;
                self.sort(middle + 1, end, limit);
                end = middle;
            }
        }
    }

    fn sort_by_insertion(&mut self, start: usize, end: usize) {
        for next in start + 1..end {
            let mut at = next;
            while at > start && self.less(at, at - 1) {
                self.swap(at, at - 1);
                at -= 1;
            }
        }
    }

    fn sort_by_heap(&mut self, start: usize, end: usize) {
        let length = end - start;
        for root in (0..=(length - 1) / 2).rev() {
            self.sift_down(root, length, start);
        }
        for last in (0..length).rev() {
            self.swap(start, start + last);
            self.sift_down(0, last, start);
        }
    }

    fn sift_down(&mut self, mut root: usize, length: usize, start: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= length {
                return;
            }
            if child + 1 < length && self.less(start + child, start + child + 1) {
                child += 1;
            }
            if !self.less(start + root, start + child) {
                return;
            }
            self.swap(start + root, start + child);
            root = child;
        }
    }

    /// Swaps three items in the middle with others that a shift register, seeded with the length, chooses.
    fn break_patterns(&mut self, start: usize, end: usize) {
        let length = end - start;
        let mut register = length as u64;
        let mask = (1_u64 << (u64::BITS - register.leading_zeros())) - 1;
        let middle = start + length / 4 * 2;
        for at in middle - 1..=middle + 1 {
            register ^= register << 13;
            register ^= register >> 7;
            register ^= register << 17;
            let other = (register & mask) as usize;
            let other = if other >= length { other - length } else { other };
            self.swap(at, start + other);
        }
    }

    fn choose_pivot(&self, start: usize, end: usize) -> (usize, Hint) {
        const SWAPS_MAX: u32 = 12;
        let quarter = (end - start) / 4;
        let [mut low, mut middle, mut high] = [start + quarter, start + quarter * 2, start + quarter * 3];
        let mut swaps = 0;
        if end - start >= LONG {
            low = self.median([low - 1, low, low + 1], &mut swaps);
            middle = self.median([middle - 1, middle, middle + 1], &mut swaps);
            high = self.median([high - 1, high, high + 1], &mut swaps);
        }
        let pivot = self.median([low, middle, high], &mut swaps);
        let hint = match swaps {
            0 => Hint::Increasing,
            SWAPS_MAX => Hint::Decreasing,
            _ => Hint::Unknown,
        };
        (pivot, hint)
    }

    fn median(&self, [mut low, mut middle, mut high]: [usize; 3], swaps: &mut u32) -> usize {
        let mut order = |left: &mut usize, right: &mut usize| {
            if self.less(*right, *left) {
                std::mem::swap(left, right);
                *swaps += 1;
            }
        };
        order(&mut low, &mut middle);
        order(&mut middle, &mut high);
        order(&mut low, &mut middle);
        middle
    }

    /// Moves a few items that are out of order. Returns whether the range is sorted then.
    fn repair(&mut self, start: usize, end: usize) -> bool {
        const STEPS_MAX: usize = 5;
        let mut at = start + 1;
        for _ in 0..STEPS_MAX {
            while at < end && !self.less(at, at - 1) {
                at += 1;
            }
            if at == end {
                return true;
            }
            if end - start < LONG {
                return false;
            }
            self.swap(at, at - 1);
            if at - start >= 2 {
                let mut back = at - 1;
                while back >= 1 && self.less(back, back - 1) {
                    self.swap(back, back - 1);
                    back -= 1;
                }
            }
            if end - at >= 2 {
                let mut on = at + 1;
                while on < end && self.less(on, on - 1) {
                    self.swap(on, on - 1);
                    on += 1;
                }
            }
        }
        false
    }

    /// Moves the items that are less than the pivot before it. Returns the pivot's new index, and whether the range was
    /// partitioned already.
    fn partition(&mut self, start: usize, end: usize, pivot: usize) -> (usize, bool) {
        self.swap(start, pivot);
        let (mut left, mut right) = (start + 1, end - 1);
        let mut already = true;
        loop {
            while left <= right && self.less(left, start) {
                left += 1;
            }
            while left <= right && !self.less(right, start) {
                right -= 1;
            }
            if left > right {
                self.swap(right, start);
                return (right, already);
            }
            already = false;
            self.swap(left, right);
            left += 1;
            right -= 1;
        }
    }

    /// Moves the items that equal the pivot to the front. Returns the index where the rest begins.
    fn partition_equal(&mut self, start: usize, end: usize, pivot: usize) -> usize {
        self.swap(start, pivot);
        let (mut left, mut right) = (start + 1, end - 1);
        loop {
            while left <= right && !self.less(start, left) {
                left += 1;
            }
            while left <= right && self.less(start, right) {
                right -= 1;
            }
            if left > right {
                return left;
            }
            self.swap(left, right);
            left += 1;
            right -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_come_as_go_1_26_leaves_them() {
        let keys: Vec<usize> = (0..40).map(|number| number * 7 % 3).collect();
        let sorted = sort_indices(keys.len(), |left, right| keys[left] < keys[right]);
        assert_eq!(
            sorted,
            [
                15, 39, 36, 3, 33, 30, 6, 27, 24, 9, 0, 21, 12, 18, 10, 4, 16, 1, 13, 19, 37, 34, 22, 31, 28, 25, 7,
                14, 8, 29, 5, 23, 32, 26, 11, 35, 2, 20, 38, 17
            ]
        );
    }

    #[test]
    fn long_ranges_are_sorted_as_go_1_26_does() {
        let mut seed = 1_u32;
        let keys: Vec<u32> = (0..3000)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) % 50
            })
            .collect();
        let sorted = sort_indices(keys.len(), |left, right| keys[left] < keys[right]);
        let hash = sorted.iter().fold(0_u64, |hash, at| hash.wrapping_mul(31).wrapping_add(*at as u64));
        assert_eq!(hash, 8_419_514_904_210_387_874);
    }

    #[test]
    fn an_order_that_contradicts_itself_does_no_harm() {
        for count in [0, 1, 12, 13, 50, 200] {
            for is_less in [|_, _| true, |_, _| false, |left: usize, right: usize| (left ^ right) % 3 == 1] {
                let mut sorted = sort_indices(count, is_less);
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..count));
            }
        }
    }
}
