//! Reading: from the view, which a collection is loaded into where memory can hold it, or from the store.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::meta::Revision;

use super::super::key_range::KeyRange;
use super::super::log::{self, Reverted};
use super::super::objects::{Objects, by_key};
use super::super::page_max::PageMax;
use super::super::part::{self, CollectionPart, PartRequest, PartSize};
use super::super::snapshot::Snapshot;
use super::super::view::StateLookup;
use super::super::{At, Collection, SnapshotError, StoreError, Stored};
use super::{Database, Inner};

/// The part of what readers may hold that a part of a collection may have at most.
const PART_DIVISOR: usize = 2;
/// The part that a page may have, and what has changed in it since an exact revision: with both, it can be answered in any
/// form, which takes twelve times as much.
const PAGE_DIVISOR: usize = 8;
/// The part of what readers may hold that former states may have which are rebuilt without a reservation, or so many bytes
/// if that is more.
const REBUILT_DIVISOR: usize = 32;
const REBUILT_BYTES_MIN: usize = 1 << 20;
/// How long a read of one object waits for its collection to be loaded, which makes later reads fast.
const LOADED_WITHIN: Duration = Duration::from_millis(20);

impl Database {
    /// The newest state of the object under `key`.
    pub async fn get(&self, collection: &Collection, key: &str) -> Result<Option<Arc<Stored>>, StoreError> {
        loop {
            if let Some(found) = self.inner.view.get(collection, key) {
                return Ok(found);
            }
            // Loading it would push everything else out of memory, and it would stay there only for a moment.
            let is_too_large = self.inner.view.is_too_large(collection);
            // Loading a million objects takes many seconds, and beside much that is watched there may be no room.
            if is_too_large || self.is_loading() || self.inner.view.is_crowded() {
                return self.peek(collection, key).await;
            }
            let load = self.load(collection, self.inner.view.object_bytes_max());
            if let Ok(loaded) = tokio::time::timeout(LOADED_WITHIN, load).await {
                loaded?;
            }
        }
    }

    /// The newest state of the object under `key`, without loading its collection for it.
    pub async fn peek(&self, collection: &Collection, key: &str) -> Result<Option<Arc<Stored>>, StoreError> {
        if let Some(found) = self.inner.view.get(collection, key) {
            return Ok(found);
        }
        let found = self.inner.store.read(collection, key).await?;
        if found.as_ref().is_none_or(|stored| stored.revision > self.revision()) {
            // Later reads must not return anything older; if the object is gone, the deletion may not be visible yet.
            log::poll(&self.inner.view, &*self.inner.store).await?;
        }
        Ok(found)
    }

    /// Passes every object whose stored bytes contain one of `texts` to `each`; others are not decoded. Returns the
    /// revision as of which they are complete, except for later changes.
    pub async fn scan(
        &self,
        texts: &[&str; 3],
        each: &mut (dyn FnMut(Collection, Arc<Stored>) + Send),
    ) -> Result<Revision, StoreError> {
        /// How much is scanned before other readers get a turn.
        const PAGE: PageMax = PageMax { changes: 128, ..PageMax::USUAL };
        let until = self.revision();
        let mut after = Revision::default();
        loop {
            let rows = self.inner.store.scan(texts, after, until, PAGE).await?;
            let Some(last) = rows.last().map(|row| row.revision) else { return Ok(until) };
            after = last;
            rows.into_iter().filter_map(|row| row.found).for_each(|(collection, stored)| each(collection, stored));
        }
    }

    /// The objects of a collection at one revision.
    ///
    /// Errors: among others, memory can't hold them.
    pub async fn snapshot(&self, collection: &Collection, at: At) -> Result<Snapshot, SnapshotError> {
        let revision = match at {
            At::Newest => None,
            At::Exact(revision) => Some(revision),
        };
        loop {
            match self.inner.view.find(collection, revision) {
                StateLookup::Snapshot(snapshot) => return Ok(snapshot),
                StateLookup::Expired(compacted) => return Err(SnapshotError::Expired { compacted }),
                StateLookup::NotLoaded => self.load_whole(collection).await.map_err(SnapshotError::Store)?,
                StateLookup::Present(present) => {
                    let reverted = Reverted::All { bytes_max: self.inner.rebuilt_bytes_max() };
                    let rebuilt = log::rebuild(&self.inner.view, &*self.inner.store, present, reverted).await;
                    // If it can't be rebuilt, it was compacted meanwhile, and the view reports that.
                    if let Some((snapshot, _)) = rebuilt.map_err(SnapshotError::Store)? {
                        return Ok(snapshot);
                    }
                }
            }
        }
    }

    /// The objects of a collection at one revision, or those of a range if the collection is too large for memory.
    ///
    /// Errors: among others, memory can't hold those of the range, though all of them are wanted.
    pub async fn part(&self, collection: &Collection, of: PartRequest) -> Result<CollectionPart, SnapshotError> {
        match self.snapshot(collection, of.at).await {
            Err(SnapshotError::Store(StoreError::NoMemory)) => self.read_part(collection, of).await,
            snapshot => snapshot.map(|snapshot| CollectionPart::whole(snapshot, of.range)),
        }
    }

    async fn read_part(&self, collection: &Collection, of: PartRequest) -> Result<CollectionPart, SnapshotError> {
        let Inner { view, store, memory, .. } = &*self.inner;
        let PartRequest { at, range, size, reader } = of;
        if let At::Exact(revision) = at
            && revision < view.compacted()
        {
            return Err(SnapshotError::Expired { compacted: view.compacted() });
        }
        let (bytes_max, begun) = (memory.held_bytes_max() / PART_DIVISOR, Instant::now());
        let page_bytes_max = part::PAGE_BYTES.min(memory.held_bytes_max() / PAGE_DIVISOR);
        // What has changed since an exact revision comes on top.
        let reverted_bytes = if matches!(at, At::Exact(_)) { page_bytes_max } else { 0 };
        let bytes = match size {
            PartSize::All if at == At::Newest && self.inner.refusals.has(collection, &range) => {
                return Err(StoreError::NoMemory.into());
            }
            PartSize::All => {
                let (store, collection, range) = (Arc::clone(store), collection.clone(), range.clone());
                to_the_end(async move { store.size_bytes(&collection, &range).await }).await?
            }
            PartSize::First(_) => None,
        };
        let Some(max) = size.max(bytes, bytes_max, page_bytes_max) else {
            if at == At::Newest {
                self.inner.refusals.add(collection, range, begun.elapsed());
            }
            return Err(StoreError::NoMemory.into());
        };
        let reserved = reader.reserve(memory, part::memory_of(max) + reverted_bytes).await;
        let mut reserved = reserved.map_err(|_| StoreError::NoMemoryNow)?;
        let read = {
            let (store, collection, range) = (Arc::clone(store), collection.clone(), range.clone());
            to_the_end(async move { store.read_part(&collection, &range, max).await }).await?
        };
        reserved.shrink(read.memory_bytes() + reverted_bytes);
        if read.revision > view.revision() {
            // It is committed, and about to be made visible, by the writer or by this call.
            log::poll(view, &**store).await?;
        }
        let mut next = read.next_key().map(Box::from);
        let (objects, revision) = (by_key(read.objects), read.revision);
        let mut snapshot = Snapshot { collection: collection.clone(), objects, revision, own_bytes: 0 };
        if let At::Exact(exact) = at
            && exact < revision
        {
            snapshot.revision = exact;
            let covered = next.as_deref().map_or_else(|| range.clone(), |next| range.clone().before(next));
            let reverted = Reverted::Range { range: covered, bytes_max: reverted_bytes };
            let rebuilt = log::rebuild(view, &**store, snapshot, reverted).await?;
            let (rebuilt, cut) = rebuilt.ok_or_else(|| SnapshotError::Expired { compacted: view.compacted() })?;
            snapshot = rebuilt;
            next = cut.map(|cut| (*cut).into()).or(next);
        }
        if next.is_some() && size == PartSize::All {
            return Err(StoreError::NoMemory.into());
        }
        Ok(CollectionPart::read(snapshot, (range, next), reserved))
    }

    /// Loads a collection into the view, even if that pushes much else out of it.
    ///
    /// Errors: among others, memory can't hold it.
    pub(super) async fn load_whole(&self, collection: &Collection) -> Result<(), StoreError> {
        if self.inner.required.contains(collection) {
            return self.load(collection, usize::MAX).await.map(drop);
        }
        if !self.fits(collection).await? {
            return Err(StoreError::NoMemory);
        }
        let is_loaded = self.load(collection, self.inner.collection_bytes_max).await?;
        if is_loaded { Ok(()) } else { Err(StoreError::NoMemory) }
    }

    /// Whether there may be room for a collection, which is measured if that is in question.
    async fn fits(&self, collection: &Collection) -> Result<bool, StoreError> {
        let (view, all) = (&self.inner.view, KeyRange::of(""));
        if self.inner.refusals.has(collection, &all) {
            return Ok(false);
        }
        let _one_at_a_time = self.inner.measuring.lock().await;
        if view.is_loaded(collection) || !view.is_too_large(collection) && !view.is_crowded() {
            return Ok(true);
        }
        if self.inner.refusals.has(collection, &all) {
            return Ok(false);
        }
        let begun = Instant::now();
        let bytes = self.inner.store.size_bytes(collection, &all).await?;
        let fits = bytes.is_none_or(|bytes| view.has_room_for(bytes));
        if !fits {
            self.inner.refusals.add(collection, all, begun.elapsed());
        }
        Ok(fits)
    }

    /// Whether some collection is being loaded.
    fn is_loading(&self) -> bool {
        self.inner.loading.try_lock().is_err()
    }

    /// Loads a collection into the view, unless its objects have more than `bytes_max`: returns whether it is loaded.
    /// Loading continues if the caller stops waiting, since others may be waiting as well.
    pub(super) async fn load(&self, collection: &Collection, bytes_max: usize) -> Result<bool, StoreError> {
        let (inner, collection) = (Arc::clone(&self.inner), collection.clone());
        let loading = tokio::spawn(async move { inner.load(&collection, bytes_max).await });
        loading.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl Inner {
    /// How many bytes of former states are rebuilt for a request that has asked for no memory.
    fn rebuilt_bytes_max(&self) -> usize {
        if self.collection_bytes_max == usize::MAX {
            // The log is in memory, too.
            return usize::MAX;
        }
        (self.memory.held_bytes_max() / REBUILT_DIVISOR).max(REBUILT_BYTES_MIN)
    }

    async fn load(&self, collection: &Collection, bytes_max: usize) -> Result<bool, StoreError> {
        let _one_at_a_time = self.loading.lock().await;
        let is_whole = bytes_max == self.collection_bytes_max && bytes_max < usize::MAX;
        // While others waited for this.
        if is_whole && self.refusals.has(collection, &KeyRange::of("")) {
            return Ok(false);
        }
        if !self.view.begin_loading(collection) {
            return Ok(true);
        }
        match self.read(collection, bytes_max).await {
            Ok(Some((objects, revision))) => {
                self.view.finish_loading(collection, objects, revision);
                Ok(true)
            }
            Ok(None) => {
                self.view.abandon_loading(collection);
                self.view.note_too_large(collection);
                if is_whole {
                    self.refusals.add(collection, KeyRange::of(""), Duration::ZERO);
                }
                Ok(false)
            }
            Err(error) => {
                self.view.abandon_loading(collection);
                Err(error)
            }
        }
    }

    /// The objects of a collection at a visible revision; `None` if they have more than `bytes_max`.
    async fn read(&self, collection: &Collection, bytes_max: usize) -> Result<Option<(Objects, Revision)>, StoreError> {
        let Some((objects, revision)) = self.store.load_within(collection, bytes_max).await? else { return Ok(None) };
        if revision > self.view.revision() {
            // It is committed, and about to be made visible, by the writer or by this call.
            log::poll(&self.view, &*self.store).await?;
        }
        Ok(Some((objects, revision)))
    }
}

/// Reads something even if its reader stops waiting: a transaction that is left open keeps the log from being written back.
async fn to_the_end<T: Send + 'static>(
    read: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::spawn(read).await.unwrap_or(Err(StoreError::Closed))
}
