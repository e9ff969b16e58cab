//! What clients that are slow to read keep in memory: states of collections that have changed since.
//!
//! Input: what is handed out, and to whom ([`HandOut`]), and each state that is replaced. Output: if all that is handed
//! out keeps more former states in memory than it may, the oldest of the user who holds most is taken back. Its reader
//! finds that out when it goes on. Nothing is copied, and a reader that keeps up never notices.
//!
//! A replaced state is in memory as long as something is held that was handed out after the state was made and before it
//! was replaced: these states are recorded. A reader may hold less than that, as it has a part of the collection, but
//! never more than it was handed out. So each reader keeps at most the lesser of both.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::meta::Revision;

use super::{Collection, Stored};

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

/// What is handed out, and to whom.
pub struct HandOut<'h> {
    pub collection: &'h Collection,
    /// The revision of the state of the collection.
    pub revision: Revision,
    /// How many bytes of it are handed out; `None` for all.
    pub bytes: Option<usize>,
    /// The user who reads it; all for whom this is `None` count as one.
    pub user: Option<&'h str>,
}

/// A state that is not in memory any more but for those who hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplacedState {
    /// Its revision; 0 for states that everyone may hold.
    pub from: Revision,
    /// The revision of the change that replaced it.
    pub until: Revision,
    pub bytes: usize,
}

impl ReplacedState {
    pub fn of(stored: &Stored, until: Revision) -> Self {
        ReplacedState { from: stored.revision, until, bytes: stored.bytes.len() }
    }
}

/// Everything that readers of a database hold.
pub(super) struct HeldStates {
    collections: HashMap<Collection, HeldOfCollection>,
    /// How many bytes it keeps in memory at most.
    bytes: u64,
    bytes_max: u64,
    /// With more bytes than this it is looked at, which counts them anew.
    look_above: u64,
}

/// What readers hold of one collection.
#[derive(Default)]
struct HeldOfCollection {
    /// In the order in which it was handed out.
    entries: VecDeque<Entry>,
    /// The replaced states that tracked entries hold, by [`ReplacedState::until`].
    replaced: Vec<ReplacedState>,
    /// The sums of the entries' bytes: of the tracked ones, and of the others.
    tracked_bytes: u64,
    whole_bytes: u64,
    /// How many bytes of replaced states the tracked entries keep in memory at most.
    kept_bytes: u64,
    /// The newest revision of a tracked entry.
    newest: Revision,
    /// How many entries and states there may be until those that are over are looked for.
    look_at: usize,
}

struct Entry {
    user: Box<str>,
    revision: Revision,
    /// Whether it is known which of its states were replaced; otherwise all of it counts.
    is_tracked: bool,
    bytes: u64,
    /// How many of them are of replaced states, at most, when it was last looked at.
    kept_bytes: u64,
    held: Weak<dyn TakeBack>,
}

impl HeldOfCollection {
    /// How many bytes it keeps in memory at most.
    fn bytes(&self) -> u64 {
        self.tracked_bytes.min(self.kept_bytes) + self.whole_bytes
    }

    fn add(&mut self, of: &HandOut<'_>, (bytes, is_tracked): (u64, bool), held: Weak<dyn TakeBack>) {
        self.look_if_many();
        if is_tracked {
            self.tracked_bytes += bytes;
            self.newest = self.newest.max(of.revision);
        } else {
            self.whole_bytes += bytes;
        }
        let (revision, user) = (of.revision, of.user.unwrap_or_default().into());
        self.entries.push_back(Entry { user, revision, is_tracked, bytes, kept_bytes: 0, held });
    }

    /// Records a state that is replaced by the newest change.
    fn replace(&mut self, state: ReplacedState) {
        if state.from <= self.newest {
            self.look_if_many();
            self.replaced.push(state);
            self.kept_bytes += state.bytes as u64;
        }
    }

    /// Records states that were replaced before they were handed out, unless others held them already.
    fn replaced_before(&mut self, mut states: Vec<ReplacedState>) {
        states.retain(|state| self.replaced.binary_search_by_key(&state.until, |known| known.until).is_err());
        if states.is_empty() {
            return;
        }
        self.kept_bytes += states.iter().map(|state| state.bytes as u64).sum::<u64>();
        self.replaced.append(&mut states);
        self.replaced.sort_by_key(|state| state.until);
    }

    fn look_if_many(&mut self) {
        if self.entries.len() + self.replaced.len() >= self.look_at {
            self.look();
            if self.replaced.len() > REPLACED_MAX {
                self.join_states();
            }
            self.look_at = LOOK_AT_MIN.max(2 * (self.entries.len() + self.replaced.len()));
        }
    }

    /// Forgets what is over, and the states that nobody holds any more; counts the others.
    fn look(&mut self) {
        self.entries.retain(|entry| entry.held.strong_count() > 0);
        let tracked = self.entries.iter().filter(|entry| entry.is_tracked);
        let mut revisions: Vec<Revision> = tracked.map(|entry| entry.revision).collect();
        revisions.sort_unstable();
        self.replaced.retain(|state| {
            let first = revisions.partition_point(|revision| *revision < state.from);
            revisions.get(first).is_some_and(|revision| *revision < state.until)
        });
        self.newest = revisions.last().copied().unwrap_or_default();
        self.count();
    }

    /// Counts what each entry keeps: no more than was replaced since its revision, and no more than it has.
    fn count(&mut self) {
        // How many bytes were replaced from each state on.
        let mut replaced_since = vec![0; self.replaced.len() + 1];
        for (at, state) in self.replaced.iter().enumerate().rev() {
            replaced_since[at] = replaced_since[at + 1] + state.bytes as u64;
        }
        (self.tracked_bytes, self.whole_bytes) = (0, 0);
        let mut tracked = Vec::new();
        for entry in &mut self.entries {
            if entry.is_tracked {
                let first = self.replaced.partition_point(|state| state.until <= entry.revision);
                let since = replaced_since[first];
                entry.kept_bytes = entry.bytes.min(since);
                self.tracked_bytes += entry.bytes;
                tracked.push((entry.revision, since, entry.kept_bytes));
            } else {
                entry.kept_bytes = entry.bytes;
                self.whole_bytes += entry.bytes;
            }
        }
        tracked.sort_unstable();
        // Those up to some revision keep at most what each keeps, and all later ones together what was replaced since.
        let (mut of_older, mut least) = (0, u64::MAX);
        for (_, since, kept) in tracked {
            least = least.min(of_older + since);
            of_older += kept;
        }
        self.kept_bytes = least.min(of_older);
    }

    /// Halves the number of states: two become one, which is held as long as either might be.
    fn join_states(&mut self) {
        let joined = self.replaced.chunks(2).map(|states| ReplacedState {
            from: states.iter().map(|state| state.from).min().unwrap_or_default(),
            until: states.iter().map(|state| state.until).max().unwrap_or_default(),
            bytes: states.iter().map(|state| state.bytes).sum(),
        });
        self.replaced = joined.collect();
    }

    /// Takes back a part of what keeps replaced states: first of the user who keeps most, the oldest first.
    fn take_back(&mut self) -> Vec<Dropped> {
        let mut users: HashMap<&str, u64> = HashMap::new();
        for entry in &self.entries {
            *users.entry(&entry.user).or_default() += entry.kept_bytes;
        }
        let keeping = self.entries.iter().enumerate().filter(|(_, entry)| entry.kept_bytes > 0);
        let mut keeping: Vec<(Reverse<u64>, &str, usize)> =
            keeping.map(|(at, entry)| (Reverse(users[&*entry.user]), &*entry.user, at)).collect();
        keeping.sort_unstable();
        let taken: HashSet<usize> =
            keeping.iter().take(keeping.len().div_ceil(TAKEN_BACK_DIVISOR)).map(|(_, _, at)| *at).collect();
        let (mut at, mut dropped) = (0, Vec::new());
        self.entries.retain(|entry| {
            let is_taken = taken.contains(&at);
            at += 1;
            if is_taken {
                dropped.extend(entry.held.upgrade().and_then(|held| held.take_back()));
            }
            !is_taken
        });
        self.look();
        dropped
    }
}

/// The least number of entries and states of a collection at which those that are over are looked for.
const LOOK_AT_MIN: usize = 16;
/// With more states than this, two become one.
const REPLACED_MAX: usize = 1 << 16;
/// The part of what keeps states that is taken back at a time.
const TAKEN_BACK_DIVISOR: usize = 8;
/// The part of the limit that is free once something was taken back, and that may be added until the next look: so not
/// every change leads to one.
const LOOK_DIVISOR: u64 = 8;

impl HeldStates {
    pub fn within(bytes_max: usize) -> Self {
        let bytes_max = bytes_max as u64;
        HeldStates { collections: HashMap::new(), bytes: 0, bytes_max, look_above: bytes_max }
    }

    /// Hands out something of a collection that has so many bytes, and of which these states were replaced since the
    /// revision of what is handed out. If that is not known (`None`), it counts as a whole.
    pub fn hand_out<T: Send + 'static>(
        &mut self,
        of: &HandOut<'_>,
        (collection_bytes, replaced): (usize, Option<Vec<ReplacedState>>),
        held: T,
    ) -> Revocable<T> {
        let held = Arc::new(Mutex::new(Some(held)));
        let revocable: Weak<dyn TakeBack> = Arc::downgrade(&(Arc::clone(&held) as Arc<dyn TakeBack>));
        let bytes = of.bytes.unwrap_or(collection_bytes) as u64;
        self.change(of.collection, |of_collection| {
            of_collection.add(of, (bytes, replaced.is_some()), revocable);
            of_collection.replaced_before(replaced.unwrap_or_default());
        });
        Revocable(held)
    }

    /// Whether readers would be cut off if all of a collection, of so many bytes, was dropped.
    pub fn would_take_back(&self, collection: &Collection, bytes: usize) -> bool {
        let Some(of_collection) = self.collections.get(collection) else { return false };
        let (mut tracked_bytes, mut whole_bytes) = (0, 0);
        for entry in of_collection.entries.iter().filter(|entry| entry.held.strong_count() > 0) {
            *(if entry.is_tracked { &mut tracked_bytes } else { &mut whole_bytes }) += entry.bytes;
        }
        let after = tracked_bytes.min(of_collection.kept_bytes + bytes as u64) + whole_bytes;
        after > 0 && self.bytes - of_collection.bytes() + after > self.bytes_max
    }

    /// Counts a state of a collection that was replaced or dropped; returns what is taken back for it.
    pub fn replaced(&mut self, collection: &Collection, state: ReplacedState) -> Vec<Dropped> {
        if !self.collections.contains_key(collection) {
            return Vec::new();
        }
        self.change(collection, |of_collection| of_collection.replace(state));
        self.take_back_excess()
    }

    /// Takes back what is held beyond the maximum, and returns it.
    pub fn take_back_excess(&mut self) -> Vec<Dropped> {
        if self.bytes <= self.look_above {
            return Vec::new();
        }
        self.collections.values_mut().for_each(HeldOfCollection::look);
        self.bytes = self.collections.values().map(HeldOfCollection::bytes).sum();
        let slack = self.bytes_max / LOOK_DIVISOR;
        let mut dropped = Vec::new();
        if self.bytes > self.bytes_max {
            while self.bytes > self.bytes_max - slack
                && let Some(of) = self.collections.values_mut().max_by_key(|of| of.bytes())
            {
                let before = of.bytes();
                dropped.extend(of.take_back());
                self.bytes = self.bytes - before + of.bytes();
            }
        }
        self.collections.retain(|_, of| !of.entries.is_empty());
        self.look_above = self.bytes_max.max(self.bytes + slack);
        dropped
    }

    /// Changes what is known of a collection, and the sum of all.
    fn change(&mut self, collection: &Collection, change: impl FnOnce(&mut HeldOfCollection)) {
        let of_collection = self.collections.entry(collection.clone()).or_default();
        let before = of_collection.bytes();
        change(of_collection);
        self.bytes = self.bytes - before + of_collection.bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_held<T>(held: &Revocable<T>) -> bool {
        held.with(|_| ()).is_ok()
    }

    /// A state of the revision `from` that is replaced at `until`.
    fn state((from, until): (i64, i64), bytes: usize) -> ReplacedState {
        ReplacedState { from: Revision::new(from), until: Revision::new(until), bytes }
    }

    /// Hands out so many bytes of the present state, at a revision.
    fn hand_out(
        states: &mut HeldStates,
        (collection, revision): (&Collection, i64),
        (user, bytes): (&str, usize),
    ) -> Revocable<()> {
        let of = HandOut { collection, revision: Revision::new(revision), bytes: Some(bytes), user: Some(user) };
        states.hand_out(&of, (0, Some(Vec::new())), ())
    }

    #[test]
    fn the_oldest_is_taken_back_once_too_much_was_replaced() {
        let things = Collection::new("", "things");
        let mut states = HeldStates::within(100);
        let first = hand_out(&mut states, (&things, 1), ("jane", 60));
        assert!(states.replaced(&things, state((1, 2), 60)).is_empty());
        let second = hand_out(&mut states, (&things, 2), ("jane", 60));
        assert!(states.replaced(&things, state((2, 3), 40)).is_empty());
        assert_eq!(states.replaced(&things, state((2, 4), 10)).len(), 1);
        assert_eq!((is_held(&first), is_held(&second), states.bytes), (false, true, 50));
        drop(second);
        let third = hand_out(&mut states, (&things, 4), ("jane", 60));
        assert!(states.replaced(&things, state((1, 5), 60)).is_empty(), "nobody holds the others any more");
        assert!(is_held(&third) && states.bytes <= 60);
    }

    #[test]
    fn what_came_later_and_what_was_not_handed_out_does_not_count() {
        let things = Collection::new("", "things");
        let mut states = HeldStates::within(100);
        let held = hand_out(&mut states, (&things, 1), ("joe", 60));
        for revision in 2..1_000 {
            assert!(states.replaced(&things, state((revision, revision + 1), 1_000)).is_empty());
        }
        assert_eq!(states.bytes, 0);
        assert!(states.replaced(&things, state((1, 1_001), 1_000)).is_empty());
        assert_eq!((states.bytes, is_held(&held)), (60, true));
    }

    #[test]
    fn what_was_replaced_before_counts_once_and_all_of_it_if_that_is_not_known() {
        let things = Collection::new("", "things");
        let mut states = HeldStates::within(1_000);
        let of = HandOut { collection: &things, revision: Revision::new(1), bytes: Some(30), user: None };
        let before = || Some(vec![state((1, 2), 10), state((1, 3), 10)]);
        let late = [(); 9].map(|()| states.hand_out(&of, (0, before()), ()));
        assert_eq!(states.bytes, 20);
        let whole = states.hand_out(&of, (0, None), ());
        assert_eq!(states.bytes, 20 + 30);
        drop((late, whole));
    }

    #[test]
    fn those_who_keep_up_are_left_alone_beside_one_who_does_not() {
        let things = Collection::new("", "things");
        let mut states = HeldStates::within(100);
        let slow = hand_out(&mut states, (&things, 1), ("joe", 10));
        for until in 2..100 {
            assert!(states.replaced(&things, state((1, until), 50)).is_empty());
        }
        let fast: Vec<_> = (0..50).map(|_| hand_out(&mut states, (&things, 100), ("jane", 1_000))).collect();
        assert!(states.replaced(&things, state((100, 101), 50)).is_empty());
        assert!(is_held(&slow) && fast.iter().all(is_held));
        assert_eq!(states.replaced(&things, state((100, 102), 60)).len(), 50, "these keep what is too much");
        assert!(is_held(&slow));
    }

    #[test]
    fn the_user_who_keeps_most_gives_way() {
        let things = Collection::new("", "things");
        let mut states = HeldStates::within(100);
        let of_joe = hand_out(&mut states, (&things, 1), ("joe", 50));
        let of_jane = [(); 4].map(|()| hand_out(&mut states, (&things, 1), ("jane", 30)));
        assert_eq!(states.replaced(&things, state((1, 2), 200)).len(), 3);
        let held = of_jane.each_ref().map(is_held);
        assert_eq!((held, is_held(&of_joe), states.bytes), ([false, false, false, true], true, 80));
    }

    #[test]
    fn collections_share_what_may_be_kept_and_the_one_with_most_gives_way() {
        let (small, large) = (Collection::new("", "small"), Collection::new("", "large"));
        let mut states = HeldStates::within(100);
        let of_small = hand_out(&mut states, (&small, 1), ("joe", 30));
        let of_large = [1, 2].map(|revision| hand_out(&mut states, (&large, revision), ("joe", 40)));
        assert!(states.replaced(&large, state((1, 3), 70)).is_empty());
        assert!(states.replaced(&Collection::new("", "other"), state((1, 4), 1_000)).is_empty());
        assert_eq!(states.replaced(&small, state((1, 5), 40)).len(), 0);
        assert_eq!(states.replaced(&large, state((2, 6), 10)).len(), 1);
        let held = of_large.each_ref().map(is_held);
        assert_eq!((held, is_held(&of_small), states.bytes), ([false, true], true, 70));
    }

    #[test]
    fn what_is_over_is_forgotten_in_time() {
        let things = Collection::new("", "things");
        let mut states = HeldStates::within(1 << 20);
        let kept = hand_out(&mut states, (&things, 1), ("joe", 1 << 19));
        for revision in 1..10_000 {
            hand_out(&mut states, (&things, revision), ("jane", 1));
        }
        let of = |states: &HeldStates| states.collections.get(&things).map(|of| (of.entries.len(), of.replaced.len()));
        assert!(of(&states).is_some_and(|(entries, _)| entries <= LOOK_AT_MIN));
        for until in 0..300_000 {
            states.replaced(&things, state((1, 10_000 + until), 1));
        }
        assert!(of(&states).is_some_and(|(_, replaced)| replaced <= 2 * (REPLACED_MAX + LOOK_AT_MIN)));
        assert_eq!((states.bytes, is_held(&kept)), (300_000, true));
    }
}
