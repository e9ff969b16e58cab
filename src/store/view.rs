//! The current state and the recent changes of each collection, in memory.
//!
//! One lock holds them all, so that a batch becomes visible at once and in order: a reader of a revision sees
//! everything up to it. Nothing is copied under the lock: the maps are persistent, a snapshot is another handle on one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use crate::meta::Revision;

use super::batch::{Foreseen, LiveKey, keys_of};
use super::changes::{Applied, ChangeEvent, LogPage, Newest};
use super::held::{Dropped, HandOut, HeldStates, ReplacedState, Revocable};
use super::objects::Objects;
use super::page_max::PageMax;
use super::snapshot::Snapshot;
use super::{Change, Collection, Stored, Write};

/// How many changes of a collection stay in memory; older ones are read from the log.
const RECENT_MAX: usize = 2_000;
/// How many bytes of former states stay in memory with the recent changes of a collection, in addition to the current
/// state.
const RECENT_BYTES_MAX: usize = 2 << 20;
/// How many changes of a collection keep their encoded events: a watch that keeps up is never further behind.
const WITH_FORMS_MAX: usize = 64;
/// How many states of a collection are kept for pages.
const PINS_MAX: usize = 32;
/// How many bytes of changes a state that is kept for pages may be behind: this limits what it keeps in memory.
const PIN_BYTES_MAX: u64 = 64 << 20;
/// For how many page ends of such a state the number of following objects is remembered.
const PAGE_ENDS_MAX: usize = 32;

/// The part of what may stay in memory that stays when memory is short: it would be read again at once.
const KEPT_DIVISOR: usize = 16;

/// How much stays in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct ViewMax {
    /// How many bytes of current state, beside [`ViewState::large`] ones. Beyond that, collections that nobody watches
    /// are dropped, the least recently read ones first.
    pub object_bytes: usize,
    /// How many bytes a single collection may have and be loaded at all.
    pub collection_bytes: usize,
    /// How many bytes of former states readers may hold.
    pub held_bytes: usize,
}

impl ViewMax {
    /// How many bytes all collections may have that stay because they are watched.
    fn together_bytes(self) -> usize {
        self.object_bytes.saturating_add(self.collection_bytes)
    }
}

#[cfg(test)]
impl ViewMax {
    pub const ENDLESS: ViewMax =
        ViewMax { object_bytes: usize::MAX, collection_bytes: usize::MAX, held_bytes: usize::MAX };
}

/// All collections, at one revision.
pub(super) struct View {
    state: RwLock<ViewState>,
    newest: watch::Sender<Revision>,
    max: ViewMax,
    /// Collections that stay once they are loaded, as all requests read them.
    required: Arc<[Collection]>,
    /// Counts reads, so that each collection knows when it was last read.
    reads: AtomicU64,
}

struct ViewState {
    revision: Revision,
    compacted: Revision,
    collections: HashMap<Collection, CollectionState>,
    /// The total of all loaded collections, so that no batch has to add them up.
    object_bytes: usize,
    /// Collections that by themselves exceed what may stay in memory.
    too_large: HashSet<Collection>,
    /// The newest changes of collections that are watched and not loaded: their watches read the log.
    followed: HashMap<Collection, watch::Sender<Revision>>,
    newest: Newest,
    held: HeldStates,
}

enum CollectionState {
    /// Being read from the database; what is committed meanwhile waits.
    Loading(Vec<Applied>),
    Loaded(Loaded),
}

struct Loaded {
    objects: Objects,
    object_bytes: usize,
    /// The newest change of this collection that is in `objects`, or the revision that it was loaded at.
    revision: Revision,
    recent: VecDeque<Arc<Change>>,
    /// The size of the states that only `recent` still holds: each was replaced or deleted by one of the changes.
    recent_bytes: usize,
    /// Every change after this revision is in `recent`.
    recent_from: Revision,
    pins: VecDeque<Pin>,
    /// Bytes of all changes since loading.
    changed_bytes: u64,
    changed: watch::Sender<Revision>,
    last_read: AtomicU64,
    is_required: bool,
}

/// A state that is kept for the next page of a list.
struct Pin {
    snapshot: Snapshot,
    /// [`Loaded::changed_bytes`] when the state was first read.
    changed_bytes: u64,
    page_ends: VecDeque<PageEnd>,
}

/// The end of a page of a list, and what follows it.
#[derive(Clone, Debug)]
pub struct PageEnd {
    /// The prefix of the list's keys.
    pub prefix: Box<str>,
    /// Where the next page begins.
    pub start: Box<str>,
    /// How many objects of the list the next pages have.
    pub remaining: usize,
}

impl PageEnd {
    fn is_at(&self, prefix: &str, start: &str) -> bool {
        *self.prefix == *prefix && *self.start == *start
    }
}

/// The result of looking up a state in a view.
pub(super) enum StateLookup {
    Snapshot(Snapshot),
    /// The current objects under the requested revision, which still have to be reverted to it.
    Present(Snapshot),
    Expired(Revision),
    NotLoaded,
}

impl View {
    pub fn new(revision: Revision, compacted: Revision, max: ViewMax) -> Self {
        let state = ViewState::after(revision, compacted, HeldStates::within(max.held_bytes));
        let (newest, required) = (watch::Sender::new(revision), Arc::default());
        View { state: RwLock::new(state), newest, max, required, reads: AtomicU64::new(0) }
    }

    /// The same, where these collections stay once they are loaded.
    pub fn requiring(self, required: Arc<[Collection]>) -> Self {
        View { required, ..self }
    }

    fn read(&self) -> RwLockReadGuard<'_, ViewState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, ViewState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn revision(&self) -> Revision {
        self.read().revision
    }

    pub fn compacted(&self) -> Revision {
        self.read().compacted
    }

    /// From now on the log reaches back to `compacted` only.
    pub fn set_compacted(&self, compacted: Revision) {
        let mut state = self.write();
        state.compacted = state.compacted.max(compacted);
        let compacted = state.compacted;
        for collection in state.collections.values_mut() {
            if let CollectionState::Loaded(loaded) = collection {
                loaded.pins.retain(|pin| pin.snapshot.revision >= compacted);
            }
        }
    }

    /// Follows the newest revision.
    pub fn newest(&self) -> watch::Receiver<Revision> {
        self.newest.subscribe()
    }

    /// Announces that a collection is about to be loaded; false if it is already loaded.
    pub fn begin_loading(&self, collection: &Collection) -> bool {
        let mut state = self.write();
        if matches!(state.collections.get(collection), Some(CollectionState::Loaded(_))) {
            return false;
        }
        state.collections.insert(collection.clone(), CollectionState::Loading(Vec::new()));
        true
    }

    /// Adds a collection, as it was at `revision`, and what was committed meanwhile; unless the view has started over
    /// since the loading began.
    ///
    /// `revision` must be visible: no reader may find an object that is newer than the revision it reads at.
    pub fn finish_loading(&self, collection: &Collection, objects: Objects, revision: Revision) {
        let object_bytes = objects.values().map(|stored| stored.bytes.len()).sum();
        let mut state = self.write();
        // If the view has started over meanwhile, changes may be missing.
        let Some(CollectionState::Loading(waiting)) = state.collections.remove(collection) else { return };
        let changed = state.followed.remove(collection).unwrap_or_else(|| watch::Sender::new(revision));
        let mut loaded = Loaded {
            objects,
            object_bytes,
            revision,
            recent: VecDeque::new(),
            recent_bytes: 0,
            recent_from: revision,
            pins: VecDeque::new(),
            changed_bytes: 0,
            changed,
            last_read: AtomicU64::new(self.reads.fetch_add(1, Ordering::Relaxed)),
            is_required: self.required.contains(collection),
        };
        waiting.into_iter().for_each(|applied| _ = loaded.apply(applied));
        if loaded.object_bytes > self.max.object_bytes {
            state.too_large.insert(collection.clone());
        } else {
            state.too_large.remove(collection);
        }
        let is_large = loaded.object_bytes > self.max.object_bytes;
        let (spared, watched_bytes) = if is_large {
            (None, 0)
        } else {
            (state.large_that_is_sent(self.max), state.watched_large_bytes(self.max))
        };
        let others_max = self.max.object_bytes.saturating_sub(loaded.object_bytes).saturating_add(watched_bytes);
        let dropped = state.forget_unread(others_max, spared);
        state.object_bytes += loaded.object_bytes;
        state.collections.insert(collection.clone(), CollectionState::Loaded(loaded));
        let watched = state.forget_watched(self.max);
        drop(state);
        drop((dropped, watched));
    }

    /// Forgets a collection that could not be loaded.
    pub fn abandon_loading(&self, collection: &Collection) {
        let mut state = self.write();
        if matches!(state.collections.get(collection), Some(CollectionState::Loading(_))) {
            state.collections.remove(collection);
        }
    }

    /// Records that a collection exceeds what may stay in memory.
    pub fn note_too_large(&self, collection: &Collection) {
        self.write().too_large.insert(collection.clone());
    }

    /// Whether a collection exceeded what may stay in memory when it was last loaded.
    pub fn is_too_large(&self, collection: &Collection) -> bool {
        self.read().too_large.contains(collection)
    }

    /// How many bytes of current state of these collections are in memory.
    pub fn bytes_of(&self, collections: &[Collection]) -> usize {
        let state = self.read();
        collections.iter().map(|collection| state.bytes_of(collection)).sum()
    }

    /// How many bytes of current state stay in memory.
    pub fn object_bytes_max(&self) -> usize {
        self.max.object_bytes
    }

    /// Makes a batch visible if it is next in the log; false, without any effect, if other changes come before it.
    pub fn publish_next(&self, batch: Vec<(Collection, Applied)>) -> bool {
        let mut state = self.write();
        let first = batch.first().map(|(_, applied)| applied.revision);
        if first.is_some_and(|first| first > state.revision.next()) {
            return false;
        }
        let dropped = self.apply(&mut state, batch);
        drop(state);
        drop(dropped);
        true
    }

    /// Makes visible what was read from the log.
    pub fn publish(&self, changes: Vec<(Collection, Applied)>) {
        let dropped = self.apply(&mut self.write(), changes);
        drop(dropped);
    }

    /// Drops every collection, and continues at the revision `newest`: no log leads there from `present`. Watches of
    /// the collections end. Does nothing if `present` is no longer the view's revision.
    pub fn start_over(&self, present: Revision, newest: Revision, compacted: Revision) {
        let mut state = self.write();
        if state.revision != present {
            return;
        }
        let compacted = compacted.max(state.compacted);
        let dropped = state.forget_all();
        let held = std::mem::replace(&mut state.held, HeldStates::within(0));
        *state = ViewState::after(newest, compacted, held);
        self.newest.send_replace(newest);
        drop(state);
        drop(dropped);
    }

    /// Returns what is to be dropped once the view is no longer locked.
    fn apply(&self, state: &mut ViewState, changes: Vec<(Collection, Applied)>) -> Vec<Dropped> {
        let mut dropped = Vec::new();
        for (collection, applied) in changes {
            // The writer and the poll may both deliver a change.
            if applied.revision <= state.revision {
                continue;
            }
            state.revision = applied.revision;
            state.newest.push(ChangeEvent::new(&collection, &applied));
            match state.collections.get_mut(&collection) {
                Some(CollectionState::Loaded(loaded)) => {
                    let before = loaded.object_bytes;
                    let replaced = loaded.apply(applied);
                    state.object_bytes = state.object_bytes.saturating_add(loaded.object_bytes).saturating_sub(before);
                    dropped
                        .extend(replaced.into_iter().flat_map(|replaced| state.held.replaced(&collection, replaced)));
                }
                other => {
                    if let Some(changed) = state.followed.get(&collection) {
                        changed.send_replace(applied.revision);
                    }
                    if let Some(CollectionState::Loading(waiting)) = other {
                        waiting.push(applied);
                    }
                }
            }
        }
        let (spared, watched_bytes) = (state.last_read_large(self.max), state.watched_large_bytes(self.max));
        dropped.extend(state.forget_unread(self.max.object_bytes.saturating_add(watched_bytes), spared));
        dropped.extend(state.forget_watched(self.max));
        // Still under the lock, so that the newest revision never seems to decrease.
        self.newest.send_if_modified(|newest| std::mem::replace(newest, state.revision) != state.revision);
        dropped
    }

    /// Hands out something of a state of a collection to a reader that may be slow: it is taken back once too much has
    /// changed since.
    pub fn hand_out<T: Send + 'static>(&self, of: &HandOut<'_>, held: T) -> Revocable<T> {
        let mut state = self.write();
        let (known, dropped) = match state.collections.get(of.collection) {
            Some(CollectionState::Loaded(loaded)) => {
                ((loaded.object_bytes, loaded.replaced_since(of.revision)), Vec::new())
            }
            // All that is handed out of it is in memory for its readers alone.
            _ => ((0, None), state.held.take_back_excess()),
        };
        let handed_out = state.held.hand_out(of, known, held);
        drop(state);
        drop(dropped);
        handed_out
    }

    /// Drops half of what nobody watches, but for the little that every request may need.
    pub fn give_back(&self) {
        let mut state = self.write();
        let bytes_max = (state.object_bytes / 2).max(self.max.object_bytes / KEPT_DIVISOR);
        let dropped = state.forget_unread(bytes_max, None);
        drop(state);
        drop(dropped);
    }

    /// Drops a collection unless it is being watched.
    pub fn forget(&self, collection: &Collection) {
        let mut state = self.write();
        let is_unwatched = |state: &CollectionState| match state {
            CollectionState::Loaded(loaded) => !loaded.is_watched(),
            CollectionState::Loading(_) => false,
        };
        if state.collections.get(collection).is_some_and(is_unwatched) {
            let dropped = state.remove(collection);
            drop(state);
            drop(dropped);
        }
    }

    /// The object under `key`; the outer `None` if the collection is not loaded.
    pub fn get(&self, collection: &Collection, key: &str) -> Option<Option<Arc<Stored>>> {
        let state = self.read();
        let loaded = self.loaded(&state, collection)?;
        Some(loaded.objects.get(key).map(|held| Arc::clone(held)))
    }

    /// What is known of the keys of a batch; `None` if one of their collections is not loaded.
    pub fn foresee(&self, batch: &[Write]) -> Option<Foreseen> {
        let state = self.read();
        let mut keys = keys_of(batch);
        for ((collection, key), live) in &mut keys {
            *live = self.loaded(&state, collection)?.objects.get(key).map(|stored| LiveKey::from(&***stored));
        }
        Some(Foreseen { before: state.revision, keys })
    }

    /// The state of a collection at `revision`, or the newest.
    pub fn find(&self, collection: &Collection, revision: Option<Revision>) -> StateLookup {
        let state = self.read();
        let Some(loaded) = self.loaded(&state, collection) else { return StateLookup::NotLoaded };
        let present = |revision| Snapshot { collection: collection.clone(), objects: loaded.objects.clone(), revision };
        let Some(revision) = revision else { return StateLookup::Snapshot(present(state.revision)) };
        if revision < state.compacted {
            return StateLookup::Expired(state.compacted);
        }
        if revision >= loaded.revision {
            return StateLookup::Snapshot(present(revision));
        }
        match loaded.pins.iter().find(|pin| pin.snapshot.revision == revision) {
            Some(pin) => StateLookup::Snapshot(pin.snapshot.clone()),
            None => StateLookup::Present(present(revision)),
        }
    }

    /// Keeps a state for the next page, which begins after `page_end`.
    pub fn pin(&self, snapshot: &Snapshot, page_end: Option<PageEnd>) {
        let mut state = self.write();
        let compacted = state.compacted;
        let Some(CollectionState::Loaded(loaded)) = state.collections.get_mut(&snapshot.collection) else { return };
        if snapshot.revision < compacted {
            return;
        }
        // A state that is pinned again keeps the age of its objects.
        let known = loaded.pins.iter().position(|pin| pin.snapshot.revision == snapshot.revision);
        let known = known.and_then(|at| loaded.pins.remove(at));
        let mut pin = known.unwrap_or_else(|| Pin {
            snapshot: snapshot.clone(),
            changed_bytes: loaded.changed_bytes,
            page_ends: VecDeque::new(),
        });
        pin.note(page_end);
        if loaded.pins.len() == PINS_MAX {
            loaded.pins.pop_front();
        }
        loaded.pins.push_back(pin);
    }

    /// How many objects of `snapshot` whose keys begin with `prefix` follow from the key `start` on, if a page is known
    /// to end there.
    pub fn remaining(&self, snapshot: &Snapshot, prefix: &str, start: &str) -> Option<usize> {
        let state = self.read();
        let Some(CollectionState::Loaded(loaded)) = state.collections.get(&snapshot.collection) else { return None };
        let pin = loaded.pins.iter().find(|pin| pin.snapshot.revision == snapshot.revision)?;
        pin.page_ends.iter().find(|page_end| page_end.is_at(prefix, start)).map(|page_end| page_end.remaining)
    }

    /// The first recent changes of a collection after `after`; `None` if memory does not reach back that far.
    pub fn recent(&self, collection: &Collection, after: Revision, max: PageMax) -> Option<LogPage> {
        let state = self.read();
        let loaded = self.loaded(&state, collection)?;
        if loaded.recent_from > after {
            return None;
        }
        let from = loaded.recent.partition_point(|change| change.revision <= after);
        let changes = max.first_of(loaded.recent.range(from..).cloned(), |change| change.size_bytes());
        let last = changes.len() == loaded.recent.len() - from;
        let end = match changes.last() {
            Some(change) if !last => change.revision,
            _ => state.revision.max(after),
        };
        Some(LogPage { changes, end, last })
    }

    /// The first of the newest changes of all collections after `after`; `None` if memory does not reach back that far.
    pub fn newest_after(&self, after: Revision, max: PageMax) -> Option<Vec<ChangeEvent>> {
        self.read().newest.after_revision(after, max)
    }

    /// How many objects each loaded collection has.
    pub fn object_counts(&self) -> Vec<(Collection, usize)> {
        let state = self.read();
        let counts = state.collections.iter().filter_map(|(collection, state)| match state {
            CollectionState::Loaded(loaded) => Some((collection.clone(), loaded.objects.len())),
            CollectionState::Loading(_) => None,
        });
        counts.collect()
    }

    /// Follows the revision of a loaded collection.
    pub fn follow(&self, collection: &Collection) -> Option<watch::Receiver<Revision>> {
        let state = self.read();
        let loaded = self.loaded(&state, collection)?;
        Some(loaded.changed.subscribe())
    }

    /// Follows the revision of a collection that is too large to be loaded.
    pub fn follow_log(&self, collection: &Collection) -> watch::Receiver<Revision> {
        let mut state = self.write();
        state.followed.retain(|_, changed| changed.receiver_count() > 0);
        if let Some(CollectionState::Loaded(loaded)) = state.collections.get(collection) {
            return loaded.changed.subscribe();
        }
        let revision = state.revision;
        state.followed.entry(collection.clone()).or_insert_with(|| watch::Sender::new(revision)).subscribe()
    }

    /// The newest revision, if a collection that is watched has not changed after `position`.
    pub fn unchanged_until(&self, collection: &Collection, position: Revision) -> Option<Revision> {
        let state = self.read();
        let changed = state.changed(collection)?;
        (*changed.borrow() <= position).then(|| state.revision.max(position))
    }

    pub fn is_loaded(&self, collection: &Collection) -> bool {
        matches!(self.read().collections.get(collection), Some(CollectionState::Loaded(_)))
    }

    /// Whether those that are watched or required may leave no room for another collection, so that it has to be measured.
    pub fn is_crowded(&self) -> bool {
        self.read().kept_bytes(usize::MAX) > self.max.object_bytes
    }

    /// Whether there is room for a collection of so many bytes, if those that are watched and larger make room.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.max.collection_bytes
            && self.read().kept_bytes(bytes).saturating_add(bytes) <= self.max.together_bytes()
    }

    /// The newest change of a collection that somebody watches; `None` if nobody does.
    pub fn watched_revision(&self, collection: &Collection) -> Option<Revision> {
        let state = self.read();
        let changed = state.changed(collection)?;
        (changed.receiver_count() > 0).then(|| *changed.borrow())
    }

    fn loaded<'s>(&self, state: &'s ViewState, collection: &Collection) -> Option<&'s Loaded> {
        match state.collections.get(collection) {
            Some(CollectionState::Loaded(loaded)) => {
                loaded.last_read.store(self.reads.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
                Some(loaded)
            }
            _ => None,
        }
    }
}

impl Pin {
    /// Records the end of a page; if there are too many, the oldest is dropped.
    fn note(&mut self, page_end: Option<PageEnd>) {
        let Some(page_end) = page_end else { return };
        if self.page_ends.iter().any(|known| known.is_at(&page_end.prefix, &page_end.start)) {
            return;
        }
        if self.page_ends.len() == PAGE_ENDS_MAX {
            self.page_ends.pop_front();
        }
        self.page_ends.push_back(page_end);
    }
}

impl ViewState {
    /// Nothing is loaded.
    fn after(revision: Revision, compacted: Revision, held: HeldStates) -> Self {
        let (collections, newest) = (HashMap::new(), Newest::after(revision));
        let (too_large, followed) = (HashSet::new(), HashMap::new());
        ViewState { revision, compacted, collections, object_bytes: 0, too_large, followed, newest, held }
    }

    /// Removes a collection; returns what is taken back from its readers, who alone have its objects from now on. Its
    /// watches go on with the log.
    fn remove(&mut self, collection: &Collection) -> Vec<Dropped> {
        let Some(CollectionState::Loaded(mut loaded)) = self.collections.remove(collection) else { return Vec::new() };
        if loaded.is_watched() {
            let changed = std::mem::replace(&mut loaded.changed, watch::Sender::new(loaded.revision));
            // They see that the log is theirs to read now.
            changed.send_modify(|_| {});
            self.followed.insert(collection.clone(), changed);
        }
        self.object_bytes = self.object_bytes.saturating_sub(loaded.object_bytes);
        let (from, until) = (Revision::default(), self.revision.next());
        let all = ReplacedState { from, until, bytes: loaded.object_bytes };
        let mut dropped = self.held.replaced(collection, all);
        dropped.push(Box::new(loaded));
        dropped
    }

    /// [`ViewState::remove`] for every collection.
    fn forget_all(&mut self) -> Vec<Dropped> {
        let all: Vec<_> = self.collections.keys().cloned().collect();
        all.iter().flat_map(|collection| self.remove(collection)).collect()
    }

    fn loaded(&self) -> impl Iterator<Item = (&Collection, &Loaded)> {
        self.collections.iter().filter_map(|(collection, state)| match state {
            CollectionState::Loaded(loaded) => Some((collection, loaded)),
            CollectionState::Loading(_) => None,
        })
    }

    /// The collections that are loaded though each exceeds by itself what stays in memory: none, as long as all fit.
    fn large(&self, max: ViewMax) -> impl Iterator<Item = (&Collection, &Loaded)> {
        let loaded = (self.object_bytes > max.object_bytes).then(|| self.loaded()).into_iter().flatten();
        loaded.filter(move |(_, loaded)| {
            loaded.object_bytes > max.object_bytes && loaded.object_bytes <= max.collection_bytes
        })
    }

    /// The bytes of those that are watched.
    fn watched_large_bytes(&self, max: ViewMax) -> usize {
        self.large(max).filter(|(_, loaded)| loaded.is_watched()).map(|(_, loaded)| loaded.object_bytes).sum()
    }

    /// The last read one that nobody watches. It stays until another one is loaded, or memory is short: after each write,
    /// the next reader would have to load it again.
    fn last_read_large(&self, max: ViewMax) -> Option<Collection> {
        let unwatched = self.large(max).filter(|(_, loaded)| !loaded.is_watched());
        let last_read = unwatched.max_by_key(|(_, loaded)| loaded.last_read.load(Ordering::Relaxed));
        last_read.map(|(collection, _)| collection.clone())
    }

    /// That one, if dropping it would cut off its readers: it also stays when a smaller one is loaded.
    fn large_that_is_sent(&self, max: ViewMax) -> Option<Collection> {
        self.last_read_large(max).filter(|last_read| self.held.would_take_back(last_read, self.bytes_of(last_read)))
    }

    /// How many bytes those collections have that are required, or watched and have at most `bytes_max` each.
    fn kept_bytes(&self, bytes_max: usize) -> usize {
        let is_kept = |loaded: &Loaded| loaded.is_required || loaded.is_watched() && loaded.object_bytes <= bytes_max;
        self.loaded().filter(|(_, loaded)| is_kept(loaded)).map(|(_, loaded)| loaded.object_bytes).sum()
    }

    /// The newest change of a collection that is loaded or followed.
    fn changed(&self, collection: &Collection) -> Option<&watch::Sender<Revision>> {
        match self.collections.get(collection) {
            Some(CollectionState::Loaded(loaded)) => Some(&loaded.changed),
            _ => self.followed.get(collection),
        }
    }

    /// How many bytes a collection has, if it is loaded.
    fn bytes_of(&self, collection: &Collection) -> usize {
        match self.collections.get(collection) {
            Some(CollectionState::Loaded(loaded)) => loaded.object_bytes,
            _ => 0,
        }
    }

    /// Drops collections that nobody watches or requires until those that are not spared have at most `bytes_max`: first those whose
    /// loss cuts off no reader, the least recently read ones first. Returns what is to be dropped.
    fn forget_unread(&mut self, bytes_max: usize, spared: Option<Collection>) -> Vec<Dropped> {
        let mut dropped = Vec::new();
        let spared_bytes = spared.as_ref().map_or(0, |spared| self.bytes_of(spared));
        let bytes_max = bytes_max.saturating_add(spared_bytes);
        while self.object_bytes > bytes_max {
            let droppable = self.loaded().filter(|(collection, loaded)| {
                !loaded.is_watched() && !loaded.is_required && Some(*collection) != spared.as_ref()
            });
            let next = droppable.min_by_key(|(collection, loaded)| {
                let is_sent = self.held.would_take_back(collection, loaded.object_bytes);
                (is_sent, loaded.last_read.load(Ordering::Relaxed))
            });
            let Some(next) = next.map(|(collection, _)| collection.clone()) else { break };
            dropped.extend(self.remove(&next));
        }
        dropped
    }

    /// Drops collections that are watched and take too much, the largest first.
    fn forget_watched(&mut self, max: ViewMax) -> Vec<Dropped> {
        let mut dropped = Vec::new();
        while self.object_bytes > max.collection_bytes {
            let is_over = self.object_bytes > max.together_bytes();
            let droppable = self.loaded().filter(|(_, loaded)| {
                loaded.is_watched() && !loaded.is_required && (is_over || loaded.object_bytes > max.collection_bytes)
            });
            let largest = droppable.max_by_key(|(_, loaded)| loaded.object_bytes);
            let Some(largest) = largest.map(|(collection, _)| collection.clone()) else { break };
            if self.bytes_of(&largest) > max.object_bytes {
                self.too_large.insert(largest.clone());
            }
            dropped.extend(self.remove(&largest));
        }
        dropped
    }
}

impl Loaded {
    fn is_watched(&self) -> bool {
        self.changed.receiver_count() > 0
    }

    /// Returns the state that was replaced.
    fn apply(&mut self, applied: Applied) -> Option<ReplacedState> {
        // The collection as loaded may already contain a change that is published later.
        if applied.revision <= self.revision {
            return None;
        }
        let Applied { key, revision, stored, .. } = applied;
        let previous = match &stored {
            Some(stored) => self.objects.insert(key, Arc::clone(stored).into()),
            None => self.objects.remove(&key),
        };
        let previous = previous.map(Arc::<Stored>::from);
        let replaced = previous.as_deref().map(|previous| ReplacedState::of(previous, revision));
        let previous_bytes = replaced.map_or(0, |replaced| replaced.bytes);
        self.object_bytes = self.object_bytes.saturating_sub(previous_bytes);
        let change = match (stored, previous) {
            (Some(stored), previous) => {
                self.object_bytes += stored.bytes.len();
                Change::new(revision, stored, previous, false)
            }
            (None, Some(previous)) => {
                let object = Arc::clone(&previous);
                Change::new(revision, object, Some(previous), true)
            }
            // Nothing existed before or after: the store makes no such change.
            (None, None) => return None,
        };
        self.revision = revision;
        self.changed_bytes += previous_bytes as u64;
        let oldest = self.changed_bytes.saturating_sub(PIN_BYTES_MAX);
        self.pins.retain(|pin| pin.changed_bytes >= oldest);
        self.recent_bytes += change.left_behind_bytes();
        self.recent.push_back(Arc::new(change));
        let told = self.recent.len().checked_sub(WITH_FORMS_MAX + 1).and_then(|at| self.recent.get(at));
        if let Some(told) = told {
            told.forget();
        }
        // The newest stays, however large: the watches are about to read it.
        while self.recent.len() > RECENT_MAX || self.recent.len() > 1 && self.recent_bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.recent_bytes -= oldest.left_behind_bytes();
            self.recent_from = oldest.revision;
        }
        self.changed.send_replace(revision);
        replaced
    }

    /// The states that were replaced since a revision, of those that were present then; `None` if that is not known any
    /// more.
    fn replaced_since(&self, revision: Revision) -> Option<Vec<ReplacedState>> {
        if self.recent_from > revision {
            return None;
        }
        let from = self.recent.partition_point(|change| change.revision <= revision);
        let replaced = self.recent.range(from..).filter_map(|change| {
            change.previous.as_deref().map(|previous| ReplacedState::of(previous, change.revision))
        });
        Some(replaced.filter(|state| state.from <= revision).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::meta::Revision;
    use crate::store::objects::by_key;
    use crate::store::{Collection, Stored};

    use super::{Applied, HandOut, PAGE_ENDS_MAX, PageEnd, Revocable, StateLookup, View, ViewMax};

    const MAX: ViewMax = ViewMax { object_bytes: 250, collection_bytes: 500, held_bytes: 100 };

    #[test]
    fn collections_that_nobody_reads_or_watches_make_room() {
        const REVISION: Revision = Revision::new(1);
        let view = View::new(REVISION, REVISION, MAX);
        let collections = ["watched", "read", "unread", "new"].map(|name| Collection::new("", name));
        let [watched, read, unread, new] = &collections;
        let load = |collection: &Collection| {
            let object = Stored::fixture("a", "u", vec![b' '; 80]);
            assert!(view.begin_loading(collection));
            view.finish_loading(collection, by_key(vec![object]), REVISION);
        };
        load(watched);
        let _watching = view.follow(watched);
        load(read);
        load(unread);
        assert!(view.get(read, "a").is_some());
        load(new);
        let kept = collections.each_ref().map(|collection| view.get(collection, "a").is_some());
        assert_eq!(kept, [true, true, false, true]);
    }

    #[test]
    fn the_bytes_of_all_that_is_loaded_are_known_whatever_happens() {
        const BEGUN: Revision = Revision::new(1);
        let view = View::new(BEGUN, BEGUN, MAX);
        let check = |expected: usize| {
            let state = view.read();
            let counted: usize = state.loaded().map(|(_, loaded)| loaded.object_bytes).sum();
            assert_eq!((state.object_bytes, counted), (expected, expected));
        };
        let [things, others] = ["things", "others"].map(|name| Collection::new("", name));
        for collection in [&things, &others] {
            assert!(view.begin_loading(collection));
            let object = Stored::fixture("a", "u", vec![b' '; 80]);
            view.finish_loading(collection, by_key(vec![object]), BEGUN);
        }
        check(160);
        let change = |revision, bytes: Option<usize>| {
            let stored = bytes.map(|bytes| Arc::new(Stored::fixture("a", "u", vec![b' '; bytes])));
            let applied = Applied { key: "a".into(), uid: "u".into(), revision: Revision::new(revision), stored };
            view.publish(vec![(things.clone(), applied)]);
        };
        change(2, Some(100));
        check(180);
        change(3, None);
        check(80);
        change(4, Some(200));
        // More than the limit: the least recently read collections are gone.
        check(80);
        view.forget(&others);
        check(0);
        view.start_over(Revision::new(4), Revision::new(9), BEGUN);
        check(0);
    }

    #[test]
    fn a_collection_that_is_larger_than_all_may_be_is_not_loaded_again_after_each_write() {
        const BEGUN: Revision = Revision::new(1);
        let view = View::new(BEGUN, BEGUN, MAX);
        let [large, small, other] = ["large", "small", "other"].map(|name| Collection::new("", name));
        let load = |collection: &Collection, bytes: usize| {
            assert!(view.begin_loading(collection));
            view.finish_loading(
                collection,
                by_key(vec![Stored::fixture("a", "u", vec![b' '; bytes])]),
                view.revision(),
            );
        };
        let change = |collection: &Collection, bytes: usize| {
            let (revision, stored) = (view.revision().next(), Arc::new(Stored::fixture("a", "u", vec![b' '; bytes])));
            let applied = Applied { key: "a".into(), uid: "u".into(), revision, stored: Some(stored) };
            view.publish(vec![(collection.clone(), applied)]);
        };
        let is_loaded = |collection: &Collection| view.get(collection, "a").is_some();
        load(&large, 400);
        load(&small, 80);
        assert!(!is_loaded(&large), "another one is loaded");
        load(&large, 400);
        change(&small, 100);
        change(&large, 500);
        assert!(is_loaded(&large));
        change(&large, 501);
        assert!(!is_loaded(&large), "it would not be loaded any more");
        load(&large, 400);
        view.give_back();
        assert!(!is_loaded(&large), "memory is short");
        load(&other, 80);
        change(&other, 100);
        assert!(is_loaded(&other));
    }

    #[test]
    fn what_is_small_stays_when_memory_is_short() {
        const BEGUN: Revision = Revision::new(1);
        let view = View::new(BEGUN, BEGUN, MAX);
        let [small, other] = ["small", "other"].map(|name| Collection::new("", name));
        for (collection, bytes) in [(&small, 5), (&other, 100)] {
            assert!(view.begin_loading(collection));
            let object = Stored::fixture("a", "u", vec![b' '; bytes]);
            view.finish_loading(collection, by_key(vec![object]), BEGUN);
        }
        let is_loaded = |collection: &Collection| view.get(collection, "a").is_some();
        for _ in 0..9 {
            assert!(is_loaded(&small), "it is read");
            view.give_back();
        }
        assert!(is_loaded(&small) && !is_loaded(&other));
    }

    #[test]
    fn what_is_being_sent_is_dropped_last() {
        const BEGUN: Revision = Revision::new(1);
        let view = View::new(BEGUN, BEGUN, MAX);
        let names = ["first", "second", "third", "large", "larger"];
        let [first, second, third, large, larger] = names.map(|name| Collection::new("", name));
        let load = |collection: &Collection, bytes: usize| {
            assert!(view.begin_loading(collection));
            let object = Stored::fixture("a", "u", vec![b' '; bytes]);
            view.finish_loading(collection, by_key(vec![object]), view.revision());
        };
        let hand_out = |collection: &Collection| {
            view.hand_out(&HandOut { collection, revision: view.revision(), bytes: None, user: None }, ())
        };
        let is_loaded = |collection: &Collection| view.get(collection, "a").is_some();
        let is_held = |held: &Revocable<()>| held.with(|()| ()).is_ok();
        load(&first, 110);
        let list = hand_out(&first);
        load(&second, 110);
        load(&third, 110);
        assert!(is_held(&list) && is_loaded(&first) && !is_loaded(&second));
        load(&large, 400);
        assert!(!is_held(&list), "there is no room for both");

        let list = hand_out(&large);
        load(&first, 110);
        assert!(is_held(&list) && is_loaded(&large) && is_loaded(&first));
        load(&larger, 410);
        assert!(!is_held(&list) && !is_loaded(&large) && !is_loaded(&first));
        drop(hand_out(&larger));
        load(&first, 110);
        assert!(!is_loaded(&larger), "nobody reads it any more");

        load(&large, 400);
        let of = HandOut { collection: &large, revision: view.revision(), bytes: Some(50), user: None };
        let part = view.hand_out(&of, ());
        load(&first, 110);
        assert!(!is_loaded(&large) && is_held(&part), "it is kept in memory by its reader, who may");
    }

    #[test]
    fn of_two_lists_that_readers_may_hold_one_by_one_the_second_is_not_cut_off() {
        const BEGUN: Revision = Revision::new(1);
        let view = View::new(BEGUN, BEGUN, MAX);
        let [first, second, third, other] = ["first", "second", "third", "other"].map(|name| Collection::new("", name));
        let load = |collection: &Collection, bytes: usize| {
            assert!(view.begin_loading(collection));
            let object = Stored::fixture("a", "u", vec![b' '; bytes]);
            view.finish_loading(collection, by_key(vec![object]), view.revision());
        };
        let lists = [&first, &second].map(|collection| {
            load(collection, 70);
            view.hand_out(&HandOut { collection, revision: view.revision(), bytes: None, user: None }, ())
        });
        load(&third, 70);
        load(&other, 120);
        assert!(lists.iter().all(|list| list.with(|()| ()).is_ok()));
        assert_eq!([&first, &second, &third].map(|of| view.get(of, "a").is_some()), [false, true, false]);
    }

    #[test]
    fn one_large_collection_stays_whoever_reads_others() {
        const BEGUN: Revision = Revision::new(1);
        let view = View::new(BEGUN, BEGUN, MAX);
        let collections = ["first", "second", "third"].map(|name| Collection::new("", name));
        let put = |collection: &Collection, bytes: usize| {
            let (revision, stored) = (view.revision().next(), Arc::new(Stored::fixture("a", "u", vec![b' '; bytes])));
            let applied = Applied { key: "a".into(), uid: "u".into(), revision, stored: Some(stored) };
            view.publish(vec![(collection.clone(), applied)]);
        };
        let mut lists = Vec::new();
        for collection in &collections {
            assert!(view.begin_loading(collection));
            let object = Stored::fixture("a", "u", vec![b' '; 110]);
            view.finish_loading(collection, by_key(vec![object]), view.revision());
            put(collection, 450);
            let of = HandOut { collection, revision: view.revision(), bytes: None, user: None };
            lists.push(view.hand_out(&of, ()));
            put(collection, 460);
        }
        let state = view.read();
        assert!(state.object_bytes <= MAX.object_bytes + MAX.collection_bytes, "{}", state.object_bytes);
    }

    #[test]
    fn what_slow_readers_hold_is_taken_back() {
        const BEGUN: Revision = Revision::new(1);
        let view = View::new(BEGUN, BEGUN, MAX);
        let [things, others] = ["things", "others"].map(|name| Collection::new("", name));
        let load = |collection: &Collection, bytes: usize| {
            assert!(view.begin_loading(collection));
            let object = Stored::fixture("a", "u", vec![b' '; bytes]);
            view.finish_loading(collection, by_key(vec![object]), view.revision());
        };
        let change = || {
            let revision = view.revision().next();
            let stored = Stored { revision, ..Stored::fixture("a", "u", vec![b' '; 60]) };
            let applied = Applied { key: "a".into(), uid: "u".into(), revision, stored: Some(Arc::new(stored)) };
            view.publish(vec![(things.clone(), applied)]);
        };
        let is_held = |held: &Revocable<()>| held.with(|()| ()).is_ok();
        load(&things, 60);
        let hand_out = |collection: &Collection, revision: Revision| {
            view.hand_out(&HandOut { collection, revision, bytes: None, user: None }, ())
        };
        let first = hand_out(&things, view.revision());
        change();
        let second = hand_out(&things, view.revision());
        assert!(is_held(&first) && is_held(&second));
        change();
        assert!(!is_held(&first) && is_held(&second), "two states of 60 bytes were replaced since the first");
        (0..9).for_each(|_| change());
        assert!(is_held(&second), "states that came after it and are gone are not held");
        // A state whose collection is unloaded counts as a whole.
        let former = hand_out(&things, BEGUN);
        load(&others, 240);
        assert!(!is_held(&second) && is_held(&former));
        let last = hand_out(&others, view.revision());
        view.start_over(view.revision(), Revision::new(9), BEGUN);
        assert!(!is_held(&last));
    }

    #[test]
    fn what_follows_a_page_is_known_of_the_last_places() {
        const BEGUN: Revision = Revision::new(1);
        let view = View::new(BEGUN, BEGUN, MAX);
        let things = Collection::new("", "things");
        assert!(view.begin_loading(&things));
        view.finish_loading(&things, by_key(vec![Stored::fixture("a", "u", b"{}".to_vec())]), BEGUN);
        let StateLookup::Snapshot(snapshot) = view.find(&things, None) else { unreachable!("it is loaded") };
        for remaining in 0..=PAGE_ENDS_MAX {
            let start = remaining.to_string().into();
            view.pin(&snapshot, Some(PageEnd { prefix: "team/".into(), start, remaining }));
        }
        let known = |prefix: &str, start: &str| view.remaining(&snapshot, prefix, start);
        assert_eq!([known("team/", "0"), known("team/", "1"), known("", "1")], [None, Some(1), None]);
        assert_eq!(known("team/", &PAGE_ENDS_MAX.to_string()), Some(PAGE_ENDS_MAX));
    }

    #[test]
    fn what_was_being_loaded_when_the_view_started_over_is_to_be_loaded_anew() {
        let (begun, missed) = (Revision::new(1), Revision::new(9));
        let view = View::new(begun, begun, MAX);
        let things = Collection::new("", "things");
        assert!(view.begin_loading(&things));
        view.start_over(begun, missed, missed);
        view.finish_loading(&things, by_key(vec![Stored::fixture("a", "u", b"{}".to_vec())]), begun);
        assert!(view.get(&things, "a").is_none(), "it is not loaded");
        assert_eq!((view.revision(), view.compacted()), (missed, missed));
        // Another poll with the same result comes too late.
        view.start_over(begun, begun, begun);
        assert_eq!(view.revision(), missed);
    }
}
