//! Which events are written: those that repeat are counted, those of an object that are alike but for their texts are
//! combined, and those of a source about an object have a limit of rate.
//!
//! Pure: the time is a parameter. What is remembered is bounded, in number and in size: hashes stand for texts.
//!
//! DIFFERS: events in the form of `events.k8s.io` have the limit of rate, too; there the recorder of that form counts them
//! whatever their texts.
//!
//! Source: `EventCorrelator` of client-go 0.37 (`tools/record/events_cache.go`), with its defaults.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, Hash, RandomState};

use jiff::{SignedDuration, Timestamp};

use super::event::RecordedEvent;
use super::recent::Recent;

/// How many events, kinds of events and objects are remembered.
const REMEMBERED_MAX: usize = 4_096;
/// With how many texts events that are else alike are combined.
const ALIKE_MAX: usize = 10;
/// How long after the last one events are no longer alike.
const ALIKE_WITHIN: SignedDuration = SignedDuration::from_secs(600);
/// How many events of a source about an object are written at once, and how long each one of them counts.
const BURST: i32 = 25;
const PERIOD: SignedDuration = SignedDuration::from_secs(300);
/// What the text of a combined event begins with.
const COMBINED: &str = "(combined from similar events): ";

/// The events that were told before.
pub(super) struct Correlator {
    hasher: RandomState,
    alike: Recent<AlikeEvents>,
    observed: Recent<Observation>,
    rates: Recent<Timestamp>,
    count: i128,
}

/// Events that are alike but for their texts.
struct AlikeEvents {
    last: Timestamp,
    texts: BTreeSet<u64>,
}

/// What is known of an event.
struct Observation {
    name: String,
    first: Timestamp,
    count: i64,
}

/// An event that is to be written.
pub(super) struct CorrelatedEvent {
    pub recorded: RecordedEvent,
    pub name: String,
    pub first: Timestamp,
    /// How often it was told; it is new if this is 1.
    pub count: i64,
    /// Whether it stands for several, by its text.
    pub is_combined: bool,
}

impl Default for Correlator {
    fn default() -> Self {
        Correlator {
            hasher: RandomState::new(),
            alike: Recent::of(REMEMBERED_MAX),
            observed: Recent::of(REMEMBERED_MAX),
            rates: Recent::of(REMEMBERED_MAX),
            count: 0,
        }
    }
}

impl Correlator {
    /// Takes an event that is told now; `None` if it is not written, as too many were told about the object.
    pub fn take(&mut self, mut recorded: RecordedEvent, now: Timestamp) -> Option<CorrelatedEvent> {
        let fields = ["kind", "namespace", "name", "uid", "apiVersion"];
        let about = self.hash((recorded.component, fields.map(|field| recorded.involved.str_at(&[field]))));
        let kind = self.hash((about, recorded.type_, &recorded.reason));
        let text = self.hash(&recorded.message);
        // The recorder of `events.k8s.io` combines nothing.
        let is_combined = recorded.action.is_none() && self.is_one_of_many(kind, text, now);
        if is_combined {
            recorded.message.insert_str(0, COMBINED);
        }
        let key = if is_combined { kind } else { self.hash((kind, text)) };
        self.count += 1;
        let number = self.count;
        let observed = self.observed.get_or(key, || {
            let name = recorded.involved.str_at(&["name"]);
            let name = format!("{name}.{:x}", now.as_nanosecond().wrapping_add(number));
            Observation { name, first: now, count: 0 }
        });
        observed.count += 1;
        let Observation { name, first, count } = observed;
        let (name, first, count) = (name.clone(), *first, *count);
        self.has_room(about, now).then_some(CorrelatedEvent { recorded, name, first, count, is_combined })
    }

    fn hash(&self, value: impl Hash) -> u64 {
        self.hasher.hash_one(value)
    }

    /// Whether so many events are alike but for their texts that this one is combined with others.
    fn is_one_of_many(&mut self, kind: u64, text: u64, now: Timestamp) -> bool {
        let alike = self.alike.get_or(kind, || AlikeEvents { last: now, texts: BTreeSet::new() });
        if now.duration_since(alike.last) > ALIKE_WITHIN {
            alike.texts.clear();
        }
        alike.last = now;
        alike.texts.insert(text);
        let is_one_of_many = alike.texts.len() >= ALIKE_MAX;
        if is_one_of_many {
            // Any of them: what is remembered does not grow.
            alike.texts.pop_first();
        }
        is_one_of_many
    }

    /// Whether one more event about an object may be written; then it is counted.
    fn has_room(&mut self, about: u64, now: Timestamp) -> bool {
        // When all that was written no longer counts; never later than the burst takes, wherever the clock was moved.
        let free = self.rates.get_or(about, || now);
        let whole = PERIOD * BURST;
        let busy = free.duration_since(now).clamp(SignedDuration::ZERO, whole);
        let has_room = busy + PERIOD <= whole;
        *free = now.checked_add(if has_room { busy + PERIOD } else { busy }).unwrap_or(now);
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    fn told(name: &str, message: &str) -> RecordedEvent {
        let metadata = object! { "name" => name, "namespace" => "d", "uid" => name };
        let object = object! { "kind" => "Pod", "apiVersion" => "v1", "metadata" => metadata };
        RecordedEvent::new("c", &object, "Normal", "R".into(), message.to_owned())
    }

    fn after(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(seconds)).expect("a time")
    }

    #[test]
    fn ten_texts_are_combined_and_one_that_is_known_is_counted() {
        let mut correlator = Correlator::default();
        let mut take = |message: &str, seconds: i64| {
            let taken = correlator.take(told("p", message), after(seconds)).expect("it is written");
            (taken.recorded.message, taken.count)
        };
        for at in 1..ALIKE_MAX {
            assert_eq!(take(&at.to_string(), 0), (at.to_string(), 1));
        }
        assert_eq!(take("10", 0), (format!("{COMBINED}10"), 1));
        assert_eq!(take("11", 0), (format!("{COMBINED}11"), 2));
        // After a while of silence they begin anew.
        assert_eq!(take("12", 601), ("12".to_owned(), 1));
    }

    #[test]
    fn of_a_source_about_an_object_few_events_are_written() {
        let mut correlator = Correlator::default();
        let mut written = |name: &str, seconds: i64| {
            let tell = |at: i32| correlator.take(told(name, &at.to_string()), after(seconds)).is_some();
            (0..10_000).map(tell).filter(|is_written| *is_written).count()
        };
        assert_eq!([written("p", 0), written("q", 0)], [25, 25]);
        assert_eq!([written("p", 15), written("p", 299), written("p", 300), written("p", 301)], [0, 0, 1, 0]);
        assert_eq!([written("p", 901), written("q", 100_000)], [2, 25]);
        // A clock that is put back does not silence it for longer.
        assert_eq!([written("q", 0), written("q", 300)], [0, 1]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut correlator = Correlator::default();
        for at in 0..2 * REMEMBERED_MAX {
            assert!(correlator.take(told(&at.to_string(), "x"), after(0)).is_some());
        }
        assert_eq!(correlator.take(told("0", "x"), after(0)).map(|taken| taken.count), Some(1));
        let last = (2 * REMEMBERED_MAX - 1).to_string();
        assert_eq!(correlator.take(told(&last, "x"), after(0)).map(|taken| taken.count), Some(2));
    }
}
