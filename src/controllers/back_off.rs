//! Exponential back-off: pauses that grow with each retry.
//!
//! Input: what is done, by a key, and the time. Output: how long it has to wait.
//!
//! Source: `k8s.io/client-go/util/flowcontrol/backoff.go`, release 1.37.

use std::collections::HashMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Pauses by keys: each is twice as long as the one before, up to the longest. A key that is unused for twice the
/// longest pause starts over.
pub(super) struct BackOff {
    first: SignedDuration,
    longest: SignedDuration,
    pauses: HashMap<String, Pause>,
    /// When unused keys were last removed.
    swept: Timestamp,
}

struct Pause {
    length: SignedDuration,
    since: Timestamp,
}

impl BackOff {
    /// No pauses yet.
    pub(super) fn new(first_s: i64, longest_s: i64) -> Self {
        let (first, longest) = (SignedDuration::from_secs(first_s), SignedDuration::from_secs(longest_s));
        BackOff { first, longest, pauses: HashMap::new(), swept: Timestamp::MIN }
    }

    /// How long `key` still has to wait; `None` if it may continue.
    pub(super) fn left(&self, key: &str, now: Timestamp) -> Option<Duration> {
        let pause = self.pauses.get(key)?;
        let left = pause.length - now.duration_since(pause.since);
        Duration::try_from(left).ok().filter(|left| !left.is_zero())
    }

    /// Begins the next pause of `key`.
    pub(super) fn begin(&mut self, key: String, now: Timestamp) {
        let rests = self.longest + self.longest;
        let is_new = |pause: &Pause| now.duration_since(pause.since) > rests;
        // Now and then, as all are looked at.
        if now.duration_since(self.swept) > rests {
            self.pauses.retain(|_, pause| !is_new(pause));
            self.swept = now;
        }
        let length = match self.pauses.get(&key).filter(|pause| !is_new(pause)) {
            Some(before) => (before.length + before.length).min(self.longest),
            None => self.first,
        };
        self.pauses.insert(key, Pause { length, since: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_are_forgotten() {
        let mut back_off = BackOff::new(1, 5);
        let mut now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        assert_eq!(back_off.left("a", now), None);
        for seconds in [1, 2, 4, 5, 5] {
            back_off.begin("a".to_owned(), now);
            assert_eq!(back_off.left("a", now), Some(Duration::from_secs(seconds)));
            assert_eq!(back_off.left("b", now), None);
            now += SignedDuration::from_secs(seconds as i64);
            assert_eq!(back_off.left("a", now), None);
        }
        now += SignedDuration::from_secs(6);
        back_off.begin("a".to_owned(), now);
        assert_eq!(back_off.left("a", now), Some(Duration::from_secs(1)));
    }
}
