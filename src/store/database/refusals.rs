//! Which collections memory could not hold when they were last measured.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::super::Collection;
use super::super::key_range::KeyRange;

/// For how long a collection that was too large for memory is not measured again: so many times as long as that took, but
/// at least and at most so long.
const REFUSED_TIMES: u32 = 10;
pub(super) const REFUSED_FOR: Duration = Duration::from_secs(1);
const REFUSED_FOR_MAX: Duration = Duration::from_secs(30);

/// Collections, or ranges of them, and until when each is not measured again.
#[derive(Default)]
pub(super) struct Refusals {
    until: Mutex<HashMap<(Collection, KeyRange), Instant>>,
}

impl Refusals {
    /// Whether memory could not hold a range of a collection a short time ago.
    pub fn has(&self, collection: &Collection, range: &KeyRange) -> bool {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.retain(|_, until| *until > Instant::now());
        !until.is_empty() && until.contains_key(&(collection.clone(), range.clone()))
    }

    /// Notes that memory can't hold a range of a collection, which it took some time to measure.
    pub fn add(&self, collection: &Collection, range: KeyRange, measured: Duration) {
        let until = Instant::now() + (measured * REFUSED_TIMES).clamp(REFUSED_FOR, REFUSED_FOR_MAX);
        self.until.lock().unwrap_or_else(PoisonError::into_inner).insert((collection.clone(), range), until);
    }
}
