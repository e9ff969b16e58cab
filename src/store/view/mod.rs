//! The current state and the recent changes of each collection, in memory.
//!
//! One lock holds them all, so that a batch becomes visible at once and in order: a reader of a revision sees
//! everything up to it. Nothing is copied under the lock: the maps are persistent, a snapshot is another handle on one.

mod loaded;
mod state;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use crate::meta::Revision;

use super::batch::{Foreseen, LiveKey, keys_of};
use super::changes::{Applied, ChangeEvent, LogPage};
use super::held::{Dropped, HandOut, HeldStates, Revocable};
use super::objects::Objects;
use super::page_max::PageMax;
use super::snapshot::Snapshot;
use super::{Collection, Stored, Write};

use loaded::Loaded;
use state::{CollectionState, ViewState};

pub use loaded::PageEnd;
pub(super) use state::ViewMax;

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
        let dropped = state.unpin(|loaded| loaded.unpin_before(compacted));
        drop(state);
        drop(dropped);
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
        let mut state = self.write();
        // If the view has started over meanwhile, changes may be missing.
        let Some(CollectionState::Loading(waiting)) = state.collections.remove(collection) else { return };
        let changed = state.followed.remove(collection).unwrap_or_else(|| watch::Sender::new(revision));
        let mut loaded = Loaded::new(objects, revision, changed);
        loaded.is_required = self.required.contains(collection);
        self.note_read(&loaded);
        waiting.into_iter().for_each(|applied| _ = loaded.apply(applied));
        let is_large = loaded.object_bytes > self.max.object_bytes;
        let (spared, watched_bytes) = if is_large {
            state.too_large.insert(collection.clone());
            (None, 0)
        } else {
            state.too_large.remove(collection);
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
                    let (before, pinned_before) = (loaded.object_bytes, loaded.pinned_bytes());
                    let replaced = loaded.apply(applied);
                    let pinned = loaded.pinned_bytes();
                    state.object_bytes = state.object_bytes.saturating_add(loaded.object_bytes).saturating_sub(before);
                    state.pinned_bytes = state.pinned_bytes.saturating_add(pinned).saturating_sub(pinned_before);
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
        dropped.extend(state.unpin_excess(self.max));
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

    /// Drops the states that are kept for pages, and half of what nobody watches, but for the little that every request may
    /// need.
    pub fn give_back(&self) {
        let mut state = self.write();
        let mut dropped = state.unpin(Loaded::unpin_all);
        dropped.extend(state.forget_half(self.max));
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
        let present = |revision| Snapshot {
            collection: collection.clone(),
            objects: loaded.objects.clone(),
            revision,
            own_bytes: 0,
        };
        let Some(revision) = revision else { return StateLookup::Snapshot(present(state.revision)) };
        if revision < state.compacted {
            return StateLookup::Expired(state.compacted);
        }
        if revision >= loaded.revision {
            return StateLookup::Snapshot(present(revision));
        }
        match loaded.pinned(revision) {
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
        let before = loaded.pinned_bytes();
        loaded.pin(snapshot, page_end);
        let after = loaded.pinned_bytes();
        state.pinned_bytes = state.pinned_bytes.saturating_add(after).saturating_sub(before);
        let dropped = state.unpin_excess(self.max);
        drop(state);
        drop(dropped);
    }

    /// How many objects of `snapshot` whose keys begin with `prefix` follow from the key `start` on, if a page is known
    /// to end there.
    pub fn remaining(&self, snapshot: &Snapshot, prefix: &str, start: &str) -> Option<usize> {
        let state = self.read();
        let Some(CollectionState::Loaded(loaded)) = state.collections.get(&snapshot.collection) else { return None };
        loaded.pinned(snapshot.revision)?.remaining(prefix, start)
    }

    /// The first recent changes of a collection after `after`; `None` if memory does not reach back that far.
    pub fn recent(&self, collection: &Collection, after: Revision, max: PageMax) -> Option<LogPage> {
        let state = self.read();
        let loaded = self.loaded(&state, collection)?;
        loaded.changes_after(after, state.revision, max)
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
                self.note_read(loaded);
                Some(loaded)
            }
            _ => None,
        }
    }

    fn note_read(&self, loaded: &Loaded) {
        loaded.last_read.store(self.reads.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }
}
