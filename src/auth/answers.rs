//! A cache of a service's answers.
//!
//! Input: questions as texts, and their answers. Output: the answers that are still valid. Both their
//! number and their size are limited: large answers are not cached, and a new answer evicts the one
//! that would expire first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many answers are cached.
const COUNT_MAX: usize = 8192;
/// The total size of the cached answers and questions, in bytes.
const BYTES_MAX: usize = 16 << 20;
/// The maximum size of one answer with its question, in bytes.
const BYTES_EACH_MAX: usize = 64 << 10;

/// Answers by question.
pub struct Answers<A> {
    known: HashMap<Arc<str>, Remembered<A>>,
    /// The questions in the order in which their answers expire.
    ends: BTreeMap<Expiry, Arc<str>>,
    bytes: usize,
    /// How many answers were ever cached.
    count: u64,
}

/// When an answer expires, and its number, as several may expire at once.
type Expiry = (Instant, u64);

struct Remembered<A> {
    answer: A,
    end: Expiry,
    bytes: usize,
}

impl<A> Default for Answers<A> {
    fn default() -> Self {
        Answers { known: HashMap::new(), ends: BTreeMap::new(), bytes: 0, count: 0 }
    }
}

impl<A: Clone> Answers<A> {
    /// The answer to a question, if a valid one is cached at `now`.
    pub fn recall(&mut self, question: &str, now: Instant) -> Option<A> {
        self.forget_ended(now);
        self.known.get(question).map(|known| known.answer.clone())
    }

    /// Caches an answer of `answer_bytes` for the duration `ttl` from `now` on.
    pub fn remember(&mut self, question: String, answer: A, answer_bytes: usize, (now, ttl): (Instant, Duration)) {
        let bytes = question.len() + answer_bytes;
        let Some(until) = now.checked_add(ttl).filter(|_| !ttl.is_zero() && bytes <= BYTES_EACH_MAX) else { return };
        self.forget_ended(now);
        self.forget(&question);
        while self.known.len() >= COUNT_MAX || self.bytes + bytes > BYTES_MAX {
            let Some((_, first)) = self.ends.pop_first() else { break };
            self.forget(&first);
        }
        let question = Arc::<str>::from(question);
        let end = (until, self.count);
        self.count += 1;
        self.bytes += bytes;
        self.ends.insert(end, Arc::clone(&question));
        self.known.insert(question, Remembered { answer, end, bytes });
    }

    fn forget_ended(&mut self, now: Instant) {
        while let Some(first) = self.ends.first_entry().filter(|first| first.key().0 <= now) {
            let question = first.remove();
            self.forget(&question);
        }
    }

    fn forget(&mut self, question: &str) {
        if let Some(known) = self.known.remove(question) {
            self.bytes -= known.bytes;
            self.ends.remove(&known.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn answers_are_forgotten_once_they_no_longer_hold() {
        let (mut answers, now) = (Answers::default(), Instant::now());
        answers.remember("a".to_owned(), 1, 0, (now, MINUTE));
        answers.remember("b".to_owned(), 2, 0, (now, Duration::ZERO));
        answers.remember("c".to_owned(), 3, 0, (now, MINUTE * 2));
        assert_eq!(["a", "b", "c"].map(|question| answers.recall(question, now)), [Some(1), None, Some(3)]);
        answers.remember("a".to_owned(), 4, 0, (now, MINUTE));
        assert_eq!(answers.recall("a", now), Some(4));
        assert_eq!(["a", "c"].map(|question| answers.recall(question, now + MINUTE)), [None, Some(3)]);
        assert_eq!((answers.known.len(), answers.ends.len(), answers.bytes), (1, 1, 1));
    }

    #[test]
    fn what_is_remembered_is_bounded_in_bytes_and_number() {
        let (mut answers, now) = (Answers::default(), Instant::now());
        answers.remember("a".to_owned(), 1, BYTES_EACH_MAX, (now, MINUTE));
        assert_eq!(answers.recall("a", now), None, "it is large");
        for at in 0..BYTES_MAX / BYTES_EACH_MAX + 1 {
            answers.remember(format!("{at:04}"), at, BYTES_EACH_MAX - 4, (now, MINUTE));
        }
        assert_eq!(answers.bytes, BYTES_MAX);
        assert_eq!((answers.recall("0000", now), answers.recall("0001", now)), (None, Some(1)));
        for at in 0..COUNT_MAX + 10 {
            answers.remember(at.to_string(), at, 0, (now, MINUTE));
        }
        assert_eq!((answers.known.len(), answers.ends.len()), (COUNT_MAX, COUNT_MAX));
    }
}
