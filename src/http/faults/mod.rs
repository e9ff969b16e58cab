//! Faults on demand: requests that fail, wait or are answered with old states because a test asks for that.
//!
//! Input: faults, each with the requests that it is for, how often it occurs, and what it does. Output: the fault that
//! applies to a request or a watch, if any. Each [`App`](super::App) has a set of its own, in memory alone. A request
//! costs one atomic load if there are none.
//!
//! At most one fault applies to a request: the first matching one, in the order in which they were created. The
//! controllers of this process send no requests, so faults do not affect them.

mod decode;
mod error;
mod fault;
mod inject;
mod matching;
mod stream;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use crate::memory::Portion;

pub(super) use decode::decode;
pub(super) use error::watch_expired;
pub(super) use fault::Fault;
pub(super) use fault::WatchEnd;
pub use inject::Cut;
pub(super) use inject::answer;
pub(super) use matching::FaultSubject;
pub(super) use stream::{WatchFault, WatchFaults};

/// How many faults there may be at once.
pub(super) const FAULTS_MAX: usize = 1000;

/// The faults of a control plane.
#[derive(Default)]
pub(super) struct Faults {
    /// The number of active faults.
    count: AtomicUsize,
    last_id: AtomicU64,
    /// In the order in which they were created.
    active: RwLock<Vec<Arc<Active>>>,
    /// Tells open watches that the set of faults has changed.
    changed: watch::Sender<()>,
}

/// A fault that is active.
pub(super) struct Active {
    id: u64,
    fault: Fault,
    /// The memory that it takes.
    _counted: Portion,
    is_deleted: AtomicBool,
    counts: Mutex<FaultCounts>,
}

/// How often a fault was applied.
#[derive(Default)]
struct FaultCounts {
    /// Requests that it matched.
    seen: u64,
    /// Those for which it was chosen.
    taken: u64,
    /// Those on which it has taken effect.
    hits: u64,
    /// The state of the sequence of random numbers.
    random: u64,
}

/// The limit of faults has been reached.
#[derive(Debug)]
pub(super) struct TooMany;

/// The outcome for a request that a fault matches.
enum Draw {
    Taken,
    /// Not this request: it is one of those to skip, or chance decided against it.
    Passed,
    /// The fault has occurred as often as it should.
    Exhausted,
}

impl Faults {
    /// Adds a fault, whose memory is counted; it applies to requests from now on.
    ///
    /// # Errors
    ///
    /// There are already [`FAULTS_MAX`].
    pub fn add(&self, fault: Fault, counted: Portion) -> Result<Arc<Active>, TooMany> {
        let mut active = self.write();
        if active.len() >= FAULTS_MAX {
            return Err(TooMany);
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let random = fault.seed.unwrap_or(id);
        let counts = Mutex::new(FaultCounts { random, ..FaultCounts::default() });
        let added = Arc::new(Active { id, fault, _counted: counted, is_deleted: AtomicBool::new(false), counts });
        active.push(Arc::clone(&added));
        self.publish(active);
        Ok(added)
    }

    /// All faults, in the order in which they were made.
    pub fn list(&self) -> Vec<Arc<Active>> {
        self.read().clone()
    }

    /// The fault of this id.
    pub fn get(&self, id: u64) -> Option<Arc<Active>> {
        self.read().iter().find(|active| active.id == id).cloned()
    }

    /// Removes the faults that `which` selects, and returns them: they no longer apply to any request, and stalled
    /// watches continue.
    pub fn remove(&self, mut which: impl FnMut(&Active) -> bool) -> Vec<Arc<Active>> {
        let mut active = self.write();
        let removed: Vec<_> = active.extract_if(.., |active| which(active)).collect();
        removed.iter().for_each(|removed| removed.is_deleted.store(true, Ordering::Release));
        self.publish(active);
        removed
    }

    /// The fault that applies to the request that `subject` describes. Faults of open watches are found by
    /// [`Faults::follow`].
    fn meet(&self, subject: impl FnOnce() -> FaultSubject) -> Option<Arc<Active>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let subject = subject();
        let active = self.read();
        let met = active.iter().find(|active| active.fault.meets_request(&subject) && active.draws());
        met.cloned()
    }

    /// The faults that apply to an open watch.
    pub fn follow(self: &Arc<Self>, subject: FaultSubject) -> WatchFaults {
        WatchFaults::new(Arc::clone(self), subject, self.changed.subscribe())
    }

    fn publish(&self, active: RwLockWriteGuard<'_, Vec<Arc<Active>>>) {
        self.count.store(active.len(), Ordering::Release);
        drop(active);
        self.changed.send_replace(());
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<Arc<Active>>> {
        self.active.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Arc<Active>>> {
        self.active.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Active {
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// How often it took effect.
    pub fn hits(&self) -> u64 {
        self.counts().hits
    }

    /// `3: error 409`, for logs.
    fn label(&self) -> String {
        format!("{}: {}", self.id, self.fault.label())
    }

    fn is_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::Acquire)
    }

    /// Whether the fault applies to the next request that it matches; that request is counted.
    fn draws(&self) -> bool {
        let taken = matches!(self.draw(), Draw::Taken);
        if taken {
            self.hit();
        }
        taken
    }

    fn draw(&self) -> Draw {
        let mut counts = self.counts();
        if self.fault.times.is_some_and(|times| counts.taken >= times) {
            return Draw::Exhausted;
        }
        counts.seen += 1;
        let is_skipped = counts.seen <= self.fault.skip;
        if is_skipped || self.fault.probability.is_some_and(|wanted| counts.chance() >= wanted) {
            return Draw::Passed;
        }
        counts.taken += 1;
        Draw::Taken
    }

    fn hit(&self) {
        self.counts().hits += 1;
    }

    /// Undoes the choice: the watch ended before the fault took effect.
    fn give_back(&self) {
        self.counts().taken -= 1;
    }

    fn counts(&self) -> MutexGuard<'_, FaultCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultCounts {
    /// The next number of the sequence, from 0 to 1.
    ///
    /// Source: splitmix64, Steele, Lea and Flood, "Fast splittable pseudorandom number generators".
    fn chance(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::Room;
    use crate::value::json;

    use super::*;

    fn fault(text: &str) -> Fault {
        decode(&json::decode(text.as_bytes()).expect("it is JSON")).expect("it is a fault")
    }

    fn uncounted() -> Portion {
        Room::endless().take(0)
    }

    fn update(name: &str) -> FaultSubject {
        FaultSubject { verb: "update".into(), resource: "widgets".into(), name: name.into(), ..FaultSubject::default() }
    }

    /// Which of ten updates `fault` applies to.
    fn met(fault: Fault) -> Vec<usize> {
        let faults = Faults::default();
        faults.add(fault, uncounted()).expect("there is room");
        (0..10).filter(|_| faults.meet(|| update("a")).is_some()).collect()
    }

    #[test]
    fn a_fault_comes_as_often_as_it_says_after_those_it_skips() {
        assert_eq!(met(fault(r#"{"error":{"code":500}}"#)).len(), 10);
        assert_eq!(met(fault(r#"{"error":{"code":500},"times":2}"#)), [0, 1]);
        assert_eq!(met(fault(r#"{"error":{"code":500},"skip":3,"times":2}"#)), [3, 4]);
    }

    #[test]
    fn chance_is_the_same_for_the_same_seed() {
        let one = || met(fault(r#"{"error":{"code":500},"probability":0.5,"seed":7}"#));
        assert_eq!(one(), one());
        assert!((1..10).contains(&one().len()));
        assert_ne!(one(), met(fault(r#"{"error":{"code":500},"probability":0.5,"seed":8}"#)));
    }

    #[test]
    fn the_first_fault_that_is_left_counts() {
        let faults = Faults::default();
        let ids: Vec<u64> = [r#"{"match":{"name":"b"},"error":{"code":500}}"#, r#"{"error":{"code":503},"times":1}"#]
            .map(|text| faults.add(fault(text), uncounted()).expect("there is room").id())
            .into();
        let meet = |name: &str| faults.meet(|| update(name)).map(|met| met.id());
        assert_eq!([meet("a"), meet("a"), meet("b")], [Some(ids[1]), None, Some(ids[0])]);
        let hits: Vec<u64> = faults.list().iter().map(|active| active.hits()).collect();
        assert_eq!(hits, [1, 1]);
        faults.remove(|_| true);
        assert_eq!(meet("b"), None);
    }
}
