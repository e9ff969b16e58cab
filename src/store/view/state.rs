//! All collections in memory, and which of them make room for others.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use crate::meta::Revision;

use super::super::Collection;
use super::super::changes::{Applied, Newest};
use super::super::held::{Dropped, HeldStates, ReplacedState};
use super::loaded::{Loaded, Unpinned};

/// The part of what may stay in memory that stays when memory is short: it would be read again at once.
const KEPT_DIVISOR: usize = 16;

/// How much stays in memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct ViewMax {
    /// How many bytes of current state, beside [`ViewState::large`] ones. Beyond that, collections that nobody watches
    /// are dropped, the least recently read ones first.
    pub object_bytes: usize,
    /// How many bytes a single collection may have and be loaded at all.
    pub collection_bytes: usize,
    /// How many bytes of former states readers may hold.
    pub held_bytes: usize,
    /// How many bytes of former states are kept for pages.
    pub pinned_bytes: usize,
}

impl ViewMax {
    /// How many bytes all collections may have that stay because they are watched.
    pub fn together_bytes(self) -> usize {
        self.object_bytes.saturating_add(self.collection_bytes)
    }
}

#[cfg(test)]
impl ViewMax {
    pub const ENDLESS: ViewMax = ViewMax {
        object_bytes: usize::MAX,
        collection_bytes: usize::MAX,
        held_bytes: usize::MAX,
        pinned_bytes: usize::MAX,
    };
}

/// The collections, and what is known of those that are not loaded.
pub(super) struct ViewState {
    pub revision: Revision,
    pub compacted: Revision,
    pub collections: HashMap<Collection, CollectionState>,
    /// The total of all loaded collections, so that no batch has to add them up.
    pub object_bytes: usize,
    /// The total of what they keep for pages.
    pub pinned_bytes: usize,
    /// Collections that by themselves exceed what may stay in memory.
    pub too_large: HashSet<Collection>,
    /// The newest changes of collections that are watched and not loaded: their watches read the log.
    pub followed: HashMap<Collection, watch::Sender<Revision>>,
    pub newest: Newest,
    pub held: HeldStates,
}

/// What memory holds of a collection.
pub(super) enum CollectionState {
    /// Being read from the database; what is committed meanwhile waits.
    Loading(Vec<Applied>),
    Loaded(Loaded),
}

impl ViewState {
    /// Nothing is loaded.
    pub fn after(revision: Revision, compacted: Revision, held: HeldStates) -> Self {
        let (collections, newest) = (HashMap::new(), Newest::after(revision));
        let (too_large, followed) = (HashSet::new(), HashMap::new());
        ViewState {
            revision,
            compacted,
            collections,
            object_bytes: 0,
            pinned_bytes: 0,
            too_large,
            followed,
            newest,
            held,
        }
    }

    /// Removes a collection; returns what is taken back from its readers, who alone have its objects from now on. Its
    /// watches go on with the log.
    pub fn remove(&mut self, collection: &Collection) -> Vec<Dropped> {
        let Some(CollectionState::Loaded(mut loaded)) = self.collections.remove(collection) else { return Vec::new() };
        if loaded.is_watched() {
            let changed = std::mem::replace(&mut loaded.changed, watch::Sender::new(loaded.revision));
            // They see that the log is theirs to read now.
            changed.send_modify(|_| {});
            self.followed.insert(collection.clone(), changed);
        }
        self.object_bytes = self.object_bytes.saturating_sub(loaded.object_bytes);
        self.pinned_bytes = self.pinned_bytes.saturating_sub(loaded.pinned_bytes());
        let (from, until) = (Revision::default(), self.revision.next());
        let all = ReplacedState { from, until, bytes: loaded.object_bytes };
        let mut dropped = self.held.replaced(collection, all);
        dropped.push(Box::new(loaded));
        dropped
    }

    /// [`ViewState::remove`] for every collection.
    pub fn forget_all(&mut self) -> Vec<Dropped> {
        let all: Vec<_> = self.collections.keys().cloned().collect();
        all.iter().flat_map(|collection| self.remove(collection)).collect()
    }

    pub fn loaded(&self) -> impl Iterator<Item = (&Collection, &Loaded)> {
        self.collections.iter().filter_map(|(collection, state)| match state {
            CollectionState::Loaded(loaded) => Some((collection, loaded)),
            CollectionState::Loading(_) => None,
        })
    }

    /// The collections that are loaded though each exceeds by itself what stays in memory: none, as long as all fit.
    pub fn large(&self, max: ViewMax) -> impl Iterator<Item = (&Collection, &Loaded)> {
        let loaded = (self.object_bytes > max.object_bytes).then(|| self.loaded()).into_iter().flatten();
        loaded.filter(move |(_, loaded)| {
            loaded.object_bytes > max.object_bytes && loaded.object_bytes <= max.collection_bytes
        })
    }

    /// The bytes of those that are watched.
    pub fn watched_large_bytes(&self, max: ViewMax) -> usize {
        self.large(max).filter(|(_, loaded)| loaded.is_watched()).map(|(_, loaded)| loaded.object_bytes).sum()
    }

    /// The last read one that nobody watches. It stays until another one is loaded, or memory is short: after each write,
    /// the next reader would have to load it again.
    pub fn last_read_large(&self, max: ViewMax) -> Option<Collection> {
        let unwatched = self.large(max).filter(|(_, loaded)| !loaded.is_watched());
        let last_read = unwatched.max_by_key(|(_, loaded)| loaded.last_read.load(Ordering::Relaxed));
        last_read.map(|(collection, _)| collection.clone())
    }

    /// That one, if dropping it would cut off its readers: it also stays when a smaller one is loaded.
    pub fn large_that_is_sent(&self, max: ViewMax) -> Option<Collection> {
        self.last_read_large(max).filter(|last_read| self.held.would_take_back(last_read, self.bytes_of(last_read)))
    }

    /// How many bytes those collections have that are required, or watched and have at most `bytes_max` each.
    pub fn kept_bytes(&self, bytes_max: usize) -> usize {
        let is_kept = |loaded: &Loaded| loaded.is_required || loaded.is_watched() && loaded.object_bytes <= bytes_max;
        self.loaded().filter(|(_, loaded)| is_kept(loaded)).map(|(_, loaded)| loaded.object_bytes).sum()
    }

    /// The newest change of a collection that is loaded or followed.
    pub fn changed(&self, collection: &Collection) -> Option<&watch::Sender<Revision>> {
        match self.collections.get(collection) {
            Some(CollectionState::Loaded(loaded)) => Some(&loaded.changed),
            _ => self.followed.get(collection),
        }
    }

    /// How many bytes a collection has, if it is loaded.
    pub fn bytes_of(&self, collection: &Collection) -> usize {
        match self.collections.get(collection) {
            Some(CollectionState::Loaded(loaded)) => loaded.object_bytes,
            _ => 0,
        }
    }

    /// Drops collections that nobody watches or requires until those that are not spared have at most `bytes_max`: first those whose
    /// loss cuts off no reader, the least recently read ones first. Returns what is to be dropped.
    pub fn forget_unread(&mut self, bytes_max: usize, spared: Option<Collection>) -> Vec<Dropped> {
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

    /// Takes states from each collection that are kept for pages; returns what is to be dropped.
    pub fn unpin(&mut self, mut unpin: impl FnMut(&mut Loaded) -> Unpinned) -> Vec<Dropped> {
        let mut dropped: Vec<Dropped> = Vec::new();
        for state in self.collections.values_mut() {
            let CollectionState::Loaded(loaded) = state else { continue };
            let before = loaded.pinned_bytes();
            let unpinned = unpin(loaded);
            if !unpinned.is_empty() {
                self.pinned_bytes = self.pinned_bytes.saturating_sub(before).saturating_add(loaded.pinned_bytes());
                dropped.push(Box::new(unpinned));
            }
        }
        dropped
    }

    /// Drops all states that are kept for pages once they have more than they may. A page that goes on at one of them
    /// reads the log.
    pub fn unpin_excess(&mut self, max: ViewMax) -> Vec<Dropped> {
        if self.pinned_bytes > max.pinned_bytes { self.unpin(Loaded::unpin_all) } else { Vec::new() }
    }

    /// Drops half of what nobody watches, but for the little that every request may need.
    pub fn forget_half(&mut self, max: ViewMax) -> Vec<Dropped> {
        self.forget_unread((self.object_bytes / 2).max(max.object_bytes / KEPT_DIVISOR), None)
    }

    /// Drops collections that are watched and take too much, the largest first.
    pub fn forget_watched(&mut self, max: ViewMax) -> Vec<Dropped> {
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
