//! What clients that are slow to read keep in memory: states of collections that have changed since.
//!
//! Input: what is handed out ([`HeldStates::hand_out`]), and how many bytes of states are replaced in each collection.
//! Output: if all that is handed out keeps more former states in memory than it may, the oldest is taken back. Its
//! reader finds that out when it goes on. Nothing is copied, and a reader that keeps up never notices.
//!
//! A replaced state is in memory as long as anything is held that was handed out before it was replaced. So what a
//! collection's readers keep is at most what was replaced since the oldest of them began: this is what is counted.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::Collection;

/// Something that is held by a reader until that is too slow.
#[derive(Debug)]
pub struct Revocable<T>(Arc<Mutex<Option<T>>>);

impl<T> Revocable<T> {
    /// Something that is never taken back.
    pub fn own(held: T) -> Self {
        Revocable(Arc::new(Mutex::new(Some(held))))
    }

    /// Uses it, unless it was taken back. Short, as whoever takes it back waits.
    pub fn with<R>(&self, take: impl FnOnce(&mut T) -> R) -> Result<R, TakenBack> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(take).ok_or(TakenBack)
    }
}

/// Its reader was too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too much has changed since the state that was being read")]
pub struct TakenBack;

/// Something that can be taken back, of whatever type.
trait TakeBack: Send + Sync {
    fn take_back(&self) -> Option<Dropped>;
}

impl<T: Send + 'static> TakeBack for Mutex<Option<T>> {
    fn take_back(&self) -> Option<Dropped> {
        self.lock().unwrap_or_else(PoisonError::into_inner).take().map(|held| Box::new(held) as Dropped)
    }
}

/// What was taken back. It may be large, so it is dropped where nobody waits.
pub(super) type Dropped = Box<dyn Any + Send>;

/// Everything that readers of a database hold.
pub(super) struct HeldStates {
    collections: HashMap<Collection, HeldOfCollection>,
    /// How many bytes it keeps in memory.
    bytes: u64,
    bytes_max: u64,
}

/// What readers hold of one collection.
#[derive(Default)]
struct HeldOfCollection {
    /// In the order in which it was handed out.
    entries: VecDeque<Entry>,
    /// How many bytes of states were replaced since the first of all was handed out.
    replaced_bytes: u64,
    /// The sum of the entries'.
    former_bytes: u64,
    /// How many entries there may be until those that are over are looked for.
    look_at: usize,
}

struct Entry {
    /// [`HeldOfCollection::replaced_bytes`] when it was handed out.
    from_bytes: u64,
    /// How many bytes it has that were replaced before.
    former_bytes: u64,
    held: Weak<dyn TakeBack>,
}

impl HeldOfCollection {
    /// How many bytes it keeps in memory.
    fn bytes(&self) -> u64 {
        self.entries.front().map_or(0, |oldest| self.replaced_bytes - oldest.from_bytes + self.former_bytes)
    }

    fn add(&mut self, held: Weak<dyn TakeBack>, former_bytes: u64) {
        if self.entries.len() >= self.look_at {
            self.forget_over();
        }
        self.entries.push_back(Entry { from_bytes: self.replaced_bytes, former_bytes, held });
        self.former_bytes += former_bytes;
    }

    fn take_oldest(&mut self) -> Option<Dropped> {
        let oldest = self.entries.pop_front()?;
        self.former_bytes -= oldest.former_bytes;
        oldest.held.upgrade()?.take_back()
    }

    fn forget_over(&mut self) {
        self.entries.retain(|entry| entry.held.strong_count() > 0);
        self.former_bytes = self.entries.iter().map(|entry| entry.former_bytes).sum();
        self.look_at = LOOK_AT_MIN.max(2 * self.entries.len());
    }
}

/// The least number of entries of a collection at which those that are over are looked for.
const LOOK_AT_MIN: usize = 16;

impl HeldStates {
    pub fn within(bytes_max: usize) -> Self {
        HeldStates { collections: HashMap::new(), bytes: 0, bytes_max: bytes_max as u64 }
    }

    /// Hands out something of a collection. `former_bytes` is the size of those of its states that are no longer the
    /// present ones.
    pub fn hand_out<T: Send + 'static>(
        &mut self,
        collection: &Collection,
        held: T,
        former_bytes: usize,
    ) -> Revocable<T> {
        let held = Arc::new(Mutex::new(Some(held)));
        let revocable: Weak<dyn TakeBack> = Arc::downgrade(&(Arc::clone(&held) as Arc<dyn TakeBack>));
        let of = self.collections.entry(collection.clone()).or_default();
        let before = of.bytes();
        of.add(revocable, former_bytes as u64);
        self.bytes = self.bytes - before + of.bytes();
        Revocable(held)
    }

    /// Counts states of a collection that were replaced or dropped; returns what is taken back for it.
    pub fn replaced(&mut self, collection: &Collection, bytes: usize) -> Vec<Dropped> {
        let Some(of) = self.collections.get_mut(collection) else { return Vec::new() };
        of.replaced_bytes += bytes as u64;
        self.bytes += bytes as u64;
        if self.bytes <= self.bytes_max {
            return Vec::new();
        }
        self.look();
        let mut dropped = Vec::new();
        while self.bytes > self.bytes_max
            && let Some(of) = self.collections.values_mut().max_by_key(|of| of.bytes())
        {
            let before = of.bytes();
            dropped.extend(of.take_oldest());
            self.bytes -= before - of.bytes();
        }
        self.collections.retain(|_, of| !of.entries.is_empty());
        dropped
    }

    /// Forgets what is over, and counts the rest.
    fn look(&mut self) {
        self.collections.values_mut().for_each(HeldOfCollection::forget_over);
        self.collections.retain(|_, of| !of.entries.is_empty());
        self.bytes = self.collections.values().map(HeldOfCollection::bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_held<T>(held: &Revocable<T>) -> bool {
        held.with(|_| ()).is_ok()
    }

    #[test]
    fn the_oldest_is_taken_back_once_too_much_was_replaced() {
        let things = Collection::new("", "things");
        let mut states = HeldStates::within(100);
        let first = states.hand_out(&things, "first", 0);
        assert!(states.replaced(&things, 60).is_empty());
        let second = states.hand_out(&things, "second", 0);
        assert!(states.replaced(&things, 40).is_empty());
        assert_eq!(states.replaced(&things, 10).len(), 1);
        assert_eq!((is_held(&first), is_held(&second), states.bytes), (false, true, 50));
        drop(second);
        assert!(states.replaced(&things, 60).is_empty(), "nobody holds it any more");
        assert_eq!((states.bytes, states.collections.len()), (0, 0));
    }

    #[test]
    fn collections_share_what_may_be_kept_and_the_one_with_most_gives_way() {
        let (small, large) = (Collection::new("", "small"), Collection::new("", "large"));
        let mut states = HeldStates::within(100);
        let of_small = states.hand_out(&small, (), 30);
        let of_large = [states.hand_out(&large, (), 20), states.hand_out(&large, (), 20)];
        assert!(states.replaced(&large, 30).is_empty());
        assert!(states.replaced(&Collection::new("", "other"), 1_000).is_empty());
        assert_eq!(states.replaced(&small, 1).len(), 1);
        let held = of_large.each_ref().map(is_held);
        assert_eq!((held, is_held(&of_small), states.bytes), ([false, true], true, 81));
    }

    #[test]
    fn what_is_over_is_forgotten_in_time() {
        let things = Collection::new("", "things");
        let mut states = HeldStates::within(100);
        let kept = states.hand_out(&things, (), 0);
        for _ in 0..10_000 {
            states.hand_out(&things, (), 1);
        }
        assert!(states.collections.values().all(|of| of.entries.len() <= LOOK_AT_MIN) && states.bytes <= 16);
        assert!(is_held(&kept));
    }
}
