//! Remembers which kinds of requests took long the last time.
//!
//! A table of fixed size, indexed by a hash: entries in the same slot replace each other, which at worst leads to one
//! wrong expectation.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ExpectedWork;

const PLACES: usize = 4096;
/// The bit of an entry that marks a long request; the other bits are the hash.
const LONG: u64 = 1;

pub(super) struct Record(Box<[AtomicU64]>);

impl Default for Record {
    fn default() -> Self {
        Record((0..PLACES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Record {
    /// What is known about a kind of requests, by its hash.
    pub fn expected(&self, kind: u64) -> Option<ExpectedWork> {
        let entry = self.place(kind).load(Ordering::Relaxed);
        (entry | LONG == kind | LONG).then_some(if entry & LONG == LONG {
            ExpectedWork::Long
        } else {
            ExpectedWork::Short
        })
    }

    pub fn note(&self, kind: u64, was: ExpectedWork) {
        let entry = match was {
            ExpectedWork::Long => kind | LONG,
            ExpectedWork::Short => kind & !LONG,
        };
        self.place(kind).store(entry, Ordering::Relaxed);
    }

    fn place(&self, kind: u64) -> &AtomicU64 {
        // The lowest bit is the flag.
        &self.0[(kind >> 1) as usize % PLACES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_a_kind_counts() {
        let record = Record::default();
        assert_eq!(record.expected(0xabc), None);
        record.note(0xabc, ExpectedWork::Long);
        assert_eq!(record.expected(0xabc), Some(ExpectedWork::Long));
        assert_eq!(record.expected(0xabc + ((PLACES as u64) << 1)), None, "another in the same place");
        record.note(0xabc, ExpectedWork::Short);
        assert_eq!(record.expected(0xabc), Some(ExpectedWork::Short));
    }
}
