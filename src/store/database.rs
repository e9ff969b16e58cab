//! One database: what is stored in it, its view, and the task that writes.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::{Mutex, MutexGuard, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::memory::{Memory, Room};
use crate::meta::Revision;

use super::backend::{Stats, Store};
use super::feed::{DatabaseFeed, LastRead};
use super::health::Health;
use super::held::{HandOut, Revocable};
use super::key_range::KeyRange;
use super::log_pages::{CollectionLog, LogPages};
use super::memory::InMemory;
use super::objects::{Objects, by_key};
use super::page_max::PageMax;
use super::part::{self, CollectionPart, PartRequest, PartSize};
use super::snapshot::Snapshot;
use super::view::{PageEnd, StateLookup, View, ViewMax};
use super::writer::{self, QUEUE_KIB_MAX, QUEUE_MAX, WaitingWrites};
use super::{
    At, Collection, Committed, Config, Guard, Location, LogWatch, Op, SnapshotError, StoreError, Stored, TOGETHER_MAX,
    WatchError, Write, WriteError, log,
};

/// How old the answer to a ping may be if nothing has failed.
const PING_AGE_MAX: Duration = Duration::from_millis(50);
/// For how long a collection that was too large for memory is not measured again: so many times as long as that took, but
/// at least and at most so long.
const REFUSED_TIMES: u32 = 10;
const REFUSED_FOR: Duration = Duration::from_secs(1);
const REFUSED_FOR_MAX: Duration = Duration::from_secs(30);
/// The part of what readers may hold that a part of a collection may have at most.
const PART_DIVISOR: usize = 2;
/// How long a read of one object waits for its collection to be loaded, which makes later reads fast.
const LOADED_WITHIN: Duration = Duration::from_millis(20);

/// A database that is open. Cheap to clone.
#[derive(Clone)]
pub(super) struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    /// The same store, if it is in memory: it can be copied without reading.
    in_memory: Option<Arc<InMemory>>,
    view: Arc<View>,
    queue: SyncMutex<Option<mpsc::Sender<WaitingWrites>>>,
    /// The free space of the queue, in KiB of objects.
    queue_kib: Arc<Semaphore>,
    /// Collections are loaded one at a time.
    loading: Mutex<()>,
    /// A database that is not in memory is read for one copy at a time.
    copying: Mutex<()>,
    tasks: SyncMutex<Vec<JoinHandle<()>>>,
    probe: Probe,
    pinged: Mutex<Option<Ping>>,
    /// What feeds have read from the store.
    last_read: Arc<LastRead>,
    health: Arc<Health>,
    /// The maximum size of a collection that is loaded for a list or watch, if the store knows the size.
    collection_bytes_max: usize,
    /// Until when each collection, or a range of it, that was found to be larger than memory can hold is not measured again.
    refused: SyncMutex<HashMap<(Collection, KeyRange), Instant>>,
    /// Collections are measured one at a time.
    measuring: Mutex<()>,
    memory: Arc<Memory>,
    /// What the watches of each collection share of its log.
    log_pages: SyncMutex<HashMap<Collection, std::sync::Weak<LogPages>>>,
    /// Those that are read however large they are.
    required: Arc<[Collection]>,
}

/// When the database was last asked whether it is well, and its answer.
struct Ping {
    asked: Instant,
    answer: Result<(), StoreError>,
}

/// Reads of the newest revision: callers that arrive while one runs share the next.
#[derive(Default)]
struct Probe {
    begun: AtomicU64,
    /// The number of the last one that succeeded, counted from 1.
    done: Mutex<u64>,
}

impl Database {
    /// The database in `store`, with a running writer; `in_memory` is the same store, if it is in memory.
    pub async fn of(
        store: Arc<dyn Store>,
        in_memory: Option<Arc<InMemory>>,
        location: &Location,
        config: &Config,
    ) -> Result<Self, StoreError> {
        let (revision, compacted) = store.revisions().await?;
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        let collection_bytes_max = match location {
            // They are in memory anyway.
            Location::Memory => usize::MAX,
            Location::File(_) | Location::Shared(_) | Location::Postgres(_) => config.memory.collection_bytes_max(),
        };
        let max = ViewMax {
            object_bytes: config.memory.view_bytes_max(),
            collection_bytes: collection_bytes_max,
            held_bytes: config.memory.held_bytes_max(),
        };
        let view = Arc::new(View::new(revision, compacted, max).requiring(Arc::clone(&config.required)));
        let health = Arc::new(Health::default());
        let writing = writer::run(waiting, Arc::clone(&store), Arc::clone(&view), Arc::clone(&health));
        let writing = tokio::spawn(writing);
        let inner = Arc::new(Inner {
            store,
            in_memory,
            view,
            queue: SyncMutex::new(Some(queue)),
            queue_kib: Arc::new(Semaphore::new(QUEUE_KIB_MAX)),
            loading: Mutex::new(()),
            copying: Mutex::new(()),
            tasks: SyncMutex::new(vec![writing]),
            probe: Probe::default(),
            pinged: Mutex::default(),
            last_read: Arc::default(),
            health,
            collection_bytes_max,
            refused: SyncMutex::default(),
            memory: Arc::clone(&config.memory),
            log_pages: SyncMutex::default(),
            measuring: Mutex::new(()),
            required: Arc::clone(&config.required),
        });
        Ok(Database { inner })
    }

    /// Runs a task until the database is closed.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks().push(tokio::spawn(task));
    }

    /// The store that keeps it.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// A copy in memory of the current contents.
    ///
    /// Errors: it can't be read, or `room` can't hold it.
    pub async fn copy(&self, room: Arc<Room>) -> Result<InMemory, StoreError> {
        match &self.inner.in_memory {
            Some(store) => Ok(store.copy(room)),
            None => InMemory::copy_of(&*self.inner.store, room).await,
        }
    }

    /// Waits until no other copy is made of a database that is not in memory: it takes as much memory as all objects.
    pub async fn turn_to_copy(&self) -> Option<MutexGuard<'_, ()>> {
        match self.inner.in_memory {
            Some(_) => None,
            None => Some(self.inner.copying.lock().await),
        }
    }

    fn tasks(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle that does not keep the database open.
    pub fn downgrade(&self) -> WeakDatabase {
        WeakDatabase(Arc::downgrade(&self.inner))
    }

    /// Makes a write if its guards hold in its transaction. When this returns, the write is visible, and as durable as
    /// requested. It is made even if the caller stops waiting.
    pub async fn write(&self, write: Write) -> Result<Committed, WriteError> {
        self.write_together(vec![write]).await
    }

    /// [`Database::write`] of several writes, at most [`TOGETHER_MAX`]; all but the first are joined: all are made in
    /// one transaction, or none. Returns the revision of the first.
    pub async fn write_together(&self, writes: Vec<Write>) -> Result<Committed, WriteError> {
        if writes.len() > TOGETHER_MAX {
            return Err(WriteError::Busy);
        }
        for write in &writes {
            self.inner.store.check_key(write).map_err(WriteError::Store)?;
        }
        let (done, result) = oneshot::channel();
        let closed = || WriteError::Store(StoreError::Closed);
        self.inner.health.check_writable().map_err(WriteError::Store)?;
        let share = Arc::clone(&self.inner.queue_kib).try_acquire_many_owned(writer::share_kib(&writes));
        let share = share.map_err(|_| WriteError::Busy)?;
        {
            let queue = self.inner.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let queue = queue.as_ref().ok_or_else(closed)?;
            queue.try_send(WaitingWrites { writes, done, _share: share }).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => WriteError::Busy,
                mpsc::error::TrySendError::Closed(_) => closed(),
            })?;
        }
        let result = result.await.unwrap_or_else(|_| Err(closed()));
        if matches!(result, Err(WriteError::GuardFailed)) {
            // A writer that tries again must see what it failed on, even if another process wrote that.
            self.catch_up().await.map_err(WriteError::Store)?;
        }
        result
    }

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

    /// The changes of all collections after a revision.
    pub fn feed(&self, after: Revision) -> DatabaseFeed {
        let Inner { view, store, last_read, .. } = &*self.inner;
        DatabaseFeed::new(Arc::clone(view), Arc::clone(store), after, Arc::clone(last_read))
    }

    /// The objects of a collection at one revision.
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
                    let rebuilt = log::rebuild(&self.inner.view, &*self.inner.store, present).await;
                    // If it can't be rebuilt, it was compacted meanwhile, and the view reports that.
                    if let Some(snapshot) = rebuilt.map_err(SnapshotError::Store)? {
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
        // What has changed since an exact revision comes on top.
        let reverted_bytes = if matches!(at, At::Exact(_)) { part::PAGE_BYTES.min(bytes_max) } else { 0 };
        let bytes = match size {
            PartSize::All if self.inner.is_refused(collection, &range) => return Err(StoreError::NoMemory.into()),
            PartSize::All => {
                let (store, collection, range) = (Arc::clone(store), collection.clone(), range.clone());
                to_the_end(async move { store.size_bytes(&collection, &range).await }).await?
            }
            PartSize::First(_) => None,
        };
        let Some(max) = size.max(bytes, bytes_max) else {
            self.inner.refuse(collection, range, begun.elapsed());
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
        let mut snapshot = Snapshot { collection: collection.clone(), objects, revision };
        if let At::Exact(exact) = at
            && exact < revision
        {
            snapshot.revision = exact;
            let covered = next.as_deref().map_or_else(|| range.clone(), |next| range.clone().before(next));
            let rebuilt = log::rebuild_part(view, &**store, snapshot, (covered, reverted_bytes)).await?;
            let (rebuilt, cut) = rebuilt.ok_or_else(|| SnapshotError::Expired { compacted: view.compacted() })?;
            snapshot = rebuilt;
            next = cut.map(|cut| (*cut).into()).or(next);
        }
        if next.is_some() && size == PartSize::All {
            return Err(StoreError::NoMemory.into());
        }
        Ok(CollectionPart::read(snapshot, (range, next), reserved))
    }

    /// Keeps a state for the next page of a list, within bounds of number and time.
    pub fn pin(&self, snapshot: &Snapshot, page_end: Option<PageEnd>) {
        self.inner.view.pin(snapshot, page_end);
    }

    /// As [`View::hand_out`].
    pub fn hand_out<T: Send + 'static>(&self, of: &HandOut<'_>, held: T) -> Revocable<T> {
        self.inner.view.hand_out(of, held)
    }

    /// How many objects follow in a list of `snapshot`, if a page is known to end there.
    pub fn remaining(&self, snapshot: &Snapshot, prefix: &str, start: &str) -> Option<usize> {
        self.inner.view.remaining(snapshot, prefix, start)
    }

    /// Drops a collection from memory if nobody watches it.
    pub fn forget(&self, collection: &Collection) {
        self.inner.view.forget(collection);
    }

    /// The changes of a collection after a revision, which may be in the future.
    pub async fn watch(&self, collection: &Collection, after: Revision) -> Result<LogWatch, WatchError> {
        let compacted = self.inner.view.compacted();
        if after < compacted {
            return Err(WatchError::Expired { compacted });
        }
        loop {
            if let Some(changed) = self.inner.view.follow(collection) {
                return Ok(self.log_watch(collection, after, changed));
            }
            match self.load_whole(collection).await {
                Ok(()) => {}
                Err(StoreError::NoMemory) => {
                    let changed = self.inner.view.follow_log(collection);
                    return Ok(self.log_watch(collection, after, changed));
                }
                Err(error) => return Err(WatchError::Store(error)),
            }
        }
    }

    fn log_watch(&self, collection: &Collection, after: Revision, changed: watch::Receiver<Revision>) -> LogWatch {
        let (view, store) = (Arc::clone(&self.inner.view), Arc::clone(&self.inner.store));
        let log = CollectionLog { view, store, pages: self.log_pages(collection), collection: collection.clone() };
        LogWatch::new(log, after, changed)
    }

    /// What the watches of a collection share of its log.
    fn log_pages(&self, collection: &Collection) -> Arc<LogPages> {
        let mut log_pages = self.inner.log_pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pages) = log_pages.get(collection).and_then(std::sync::Weak::upgrade) {
            return pages;
        }
        log_pages.retain(|_, pages| pages.strong_count() > 0);
        let pages = Arc::default();
        log_pages.insert(collection.clone(), Arc::downgrade(&pages));
        pages
    }

    /// As [`View::watched_revision`].
    pub fn watched_revision(&self, collection: &Collection) -> Option<Revision> {
        self.inner.view.watched_revision(collection)
    }

    /// The newest revision that is visible.
    pub fn revision(&self) -> Revision {
        self.inner.view.revision()
    }

    /// Waits until everything is visible that was acknowledged anywhere before this was called. Returns at once if no
    /// other process can write.
    ///
    /// Errors: the database does not answer. What is visible can still be read.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        if !self.inner.store.may_be_ahead_of(self.revision()) {
            return Ok(());
        }
        let probe = &self.inner.probe;
        let wanted = probe.begun.load(Ordering::SeqCst) + 1;
        let mut done = probe.done.lock().await;
        if *done >= wanted {
            return Ok(());
        }
        let number = probe.begun.fetch_add(1, Ordering::SeqCst) + 1;
        log::poll(&self.inner.view, &*self.inner.store).await?;
        *done = number;
        Ok(())
    }

    /// Follows the newest revision.
    pub fn newest(&self) -> watch::Receiver<Revision> {
        self.inner.view.newest()
    }

    /// Whether anything may ever expire.
    pub fn may_expire(&self) -> bool {
        self.inner.store.may_expire()
    }

    /// The revision that the log reaches back to.
    pub fn compacted(&self) -> Revision {
        self.inner.view.compacted()
    }

    /// Waits until `revision` is visible, for at most `timeout`; false if it is not visible by then.
    pub async fn wait_for(&self, revision: Revision, timeout: Duration) -> bool {
        let mut newest = self.inner.view.newest();
        let reached = newest.wait_for(|newest| *newest >= revision);
        matches!(tokio::time::timeout(timeout, reached).await, Ok(Ok(_)))
    }

    /// The value that every process on this database has under `name`.
    pub async fn read_secret(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.store.read_secret(name).await
    }

    /// Stores `made` under `name` unless there already is a value; returns the stored value.
    pub async fn insert_secret(&self, name: &str, made: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.inner.store.secret(name, made).await
    }

    /// Takes or keeps the lease `name`; false while another process has it.
    pub async fn lease(&self, name: &str, holder: &str, ttl: Duration) -> Result<bool, StoreError> {
        let now_ms = Timestamp::now().as_millisecond();
        let expires_at_ms = now_ms.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        self.inner.store.lease(name, holder, now_ms, expires_at_ms).await
    }

    /// Whether other processes may write to it.
    pub fn is_shared(&self) -> bool {
        self.inner.store.polled_every().is_some()
    }

    pub fn stats(&self) -> &Stats {
        self.inner.store.stats()
    }

    /// How many objects each collection in memory has.
    pub fn object_counts(&self) -> Vec<(Collection, usize)> {
        self.inner.view.object_counts()
    }

    /// Whether the database answers, and accepts writes again if the last one failed.
    ///
    /// Anybody may ask, so many callers share one answer.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let arrived = Instant::now();
        let mut last = self.inner.pinged.lock().await;
        let is_well = |answer: &Result<_, _>| answer.is_ok() && self.inner.health.fault().is_none();
        if let Some(Ping { asked, answer }) = &*last
            && (*asked >= arrived || is_well(answer) && asked.elapsed() < PING_AGE_MAX)
        {
            return answer.clone();
        }
        let asked = Instant::now();
        let answer = self.ask().await;
        *last = Some(Ping { asked, answer: answer.clone() });
        answer
    }

    async fn ask(&self) -> Result<(), StoreError> {
        self.inner.store.revisions().await?;
        if self.inner.health.fault().is_some() {
            self.inner.health.check_writable()?;
            let written = self.inner.store.try_writing().await;
            self.inner.health.note(written.as_ref().err());
            written?;
        }
        Ok(())
    }

    /// Commits what is waiting and closes; later writes fail.
    pub async fn close(&self) {
        drop(self.inner.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let tasks = std::mem::take(&mut *self.tasks());
        for (at, task) in tasks.into_iter().enumerate() {
            // The first is the writer, which ends by itself; the others are waiting for timers.
            if at > 0 {
                task.abort();
            }
            _ = task.await;
        }
        self.inner.store.close().await;
    }

    /// Makes everything superseded at or before `to` unreadable, then removes it in small steps, between which writes go on.
    pub async fn compact(&self, to: Revision) -> Result<(), StoreError> {
        let to = to.min(self.revision());
        self.inner.view.set_compacted(to);
        while self.inner.store.compact(to).await? {}
        self.inner.store.keep_room().await;
        Ok(())
    }

    /// Deletes what expires at or before `now_ms`, in milliseconds since 1970.
    pub async fn expire(&self, now_ms: i64) -> Result<(), StoreError> {
        for (collection, key, revision) in self.inner.store.expired(now_ms).await? {
            // An object that has changed meanwhile stays.
            let guards = vec![Guard::At { revision }];
            let write = Write { collection, key, op: Op::Delete, guards };
            match self.write(write).await {
                Ok(_) | Err(WriteError::GuardFailed) => {}
                // The others are deleted the next time.
                Err(WriteError::Busy) => return Ok(()),
                Err(WriteError::Store(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes visible what other processes have written, if anything.
    pub async fn poll(&self) -> Result<(), StoreError> {
        if self.inner.store.may_be_ahead_of(self.revision()) {
            log::poll(&self.inner.view, &*self.inner.store).await?;
        }
        Ok(())
    }

    /// Whether an object may grow by so many bytes: those of collections that all requests depend on may only take half of what
    /// may stay in memory, as they always do. The growth of others is not asked for.
    ///
    /// Errors: they have taken it.
    pub fn check_growth(&self, collection: &Collection, bytes: impl FnOnce() -> usize) -> Result<(), StoreError> {
        let (view, required) = (&self.inner.view, &self.inner.required);
        if self.inner.collection_bytes_max == usize::MAX || !required.contains(collection) {
            return Ok(());
        }
        let bytes = bytes();
        // One that is too large by itself is in memory only while it is read.
        let is_small = || !required.iter().any(|collection| view.is_too_large(collection));
        let fits = || is_small() && view.bytes_of(required).saturating_add(bytes) <= view.object_bytes_max() / 2;
        if bytes == 0 || fits() { Ok(()) } else { Err(StoreError::NoSpaceForRequired) }
    }

    /// Drops from memory what nobody reads.
    pub fn give_back(&self) {
        self.inner.view.give_back();
    }

    /// Loads a collection into the view, even if that pushes much else out of it.
    ///
    /// Errors: among others, memory can't hold it.
    async fn load_whole(&self, collection: &Collection) -> Result<(), StoreError> {
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
        if self.inner.is_refused(collection, &all) {
            return Ok(false);
        }
        let _one_at_a_time = self.inner.measuring.lock().await;
        if view.is_loaded(collection) || !view.is_too_large(collection) && !view.is_crowded() {
            return Ok(true);
        }
        if self.inner.is_refused(collection, &all) {
            return Ok(false);
        }
        let begun = Instant::now();
        let bytes = self.inner.store.size_bytes(collection, &all).await?;
        let fits = bytes.is_none_or(|bytes| view.has_room_for(bytes));
        if !fits {
            self.inner.refuse(collection, all, begun.elapsed());
        }
        Ok(fits)
    }

    /// Whether some collection is being loaded.
    fn is_loading(&self) -> bool {
        self.inner.loading.try_lock().is_err()
    }

    /// Loads a collection into the view, unless its objects have more than `bytes_max`: returns whether it is loaded.
    /// Loading continues if the caller stops waiting, since others may be waiting as well.
    async fn load(&self, collection: &Collection, bytes_max: usize) -> Result<bool, StoreError> {
        let (inner, collection) = (Arc::clone(&self.inner), collection.clone());
        let loading = tokio::spawn(async move { inner.load(&collection, bytes_max).await });
        loading.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl Inner {
    /// Whether memory could not hold a range of a collection a short time ago.
    fn is_refused(&self, collection: &Collection, range: &KeyRange) -> bool {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|_, until| *until > Instant::now());
        !refused.is_empty() && refused.contains_key(&(collection.clone(), range.clone()))
    }

    /// Notes that memory can't hold a range of a collection, which it took some time to measure.
    fn refuse(&self, collection: &Collection, range: KeyRange, measured: Duration) {
        let until = Instant::now() + (measured * REFUSED_TIMES).clamp(REFUSED_FOR, REFUSED_FOR_MAX);
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert((collection.clone(), range), until);
    }

    async fn load(&self, collection: &Collection, bytes_max: usize) -> Result<bool, StoreError> {
        let _one_at_a_time = self.loading.lock().await;
        let is_whole = bytes_max == self.collection_bytes_max && bytes_max < usize::MAX;
        // While others waited for this.
        if is_whole && self.is_refused(collection, &KeyRange::of("")) {
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
                    self.refuse(collection, KeyRange::of(""), Duration::ZERO);
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

/// A handle for tasks that end with the database.
pub(super) struct WeakDatabase(std::sync::Weak<Inner>);

impl WeakDatabase {
    pub fn upgrade(&self) -> Option<Database> {
        self.0.upgrade().map(|inner| Database { inner })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::sqlite::fixture;
    use super::super::{PartReader, Put};
    use super::*;

    #[tokio::test]
    async fn many_who_ask_whether_the_database_is_well_share_an_answer() {
        let store = Arc::new(fixture::sqlite("ping").await);
        let location = Location::File(PathBuf::new());
        let database = Database::of(store, None, &location, &Config::memory()).await.expect("it opens");
        let before = database.stats().counts().statements;
        let pings = futures_util::future::join_all((0..1_000).map(|_| database.ping())).await;
        assert!(pings.iter().all(Result::is_ok));
        let asked = database.stats().counts().statements - before;
        assert!((1..100).contains(&asked), "{asked} statements");
        tokio::time::sleep(PING_AGE_MAX).await;
        database.ping().await.expect("it is well");
        assert!(database.stats().counts().statements - before > asked, "it is asked anew");
    }

    /// The least limit: half of it is for one collection.
    const LIMIT_BYTES: usize = 32 << 20;
    const LARGE_BYTES: usize = 2 << 20;

    fn put_of(bytes: usize) -> Op {
        Op::Put(Put {
            object: crate::store::Encoded::new(vec![b' '; bytes]),
            uid: "uid".into(),
            stored_version: "v1".into(),
            schema_generation: 0,
            expires_at_ms: None,
            served_under: None,
        })
    }

    async fn write(database: &Database, key: &str, op: Op) -> Revision {
        let write = Write { collection: things(), key: key.into(), op, guards: Vec::new() };
        database.write(write).await.expect("it is written").revision
    }

    fn things() -> Collection {
        Collection::new("", "things")
    }

    /// A database with ten large objects in the namespace `large` and ten small ones each in `a` and `z`.
    async fn with_a_large_collection(name: &str) -> Database {
        let config = Config { memory: Arc::new(Memory::new(LIMIT_BYTES)), ..Config::memory() };
        let store = Arc::new(fixture::sqlite(name).await);
        let database = Database::of(store, None, &Location::File(PathBuf::new()), &config).await.expect("it opens");
        for at in 0..10 {
            write(&database, &format!("large/{at}"), put_of(LARGE_BYTES)).await;
            write(&database, &format!("a/{at}"), put_of(100)).await;
            write(&database, &format!("z/{at}"), put_of(100)).await;
        }
        database
    }

    /// Keys, how many bytes their objects have, and the next key if others follow. The memory is given back.
    type Read = (Vec<String>, usize, Option<String>);

    async fn read(database: &Database, at: At, range: KeyRange, size: PartSize) -> Result<Read, SnapshotError> {
        let request = PartRequest { at, range, size, reader: PartReader::Client(None) };
        let part = database.part(&things(), request).await?;
        assert!(!part.is_whole());
        let keys = part.objects().map(|stored| stored.key.to_string()).collect();
        Ok((keys, part.size_bytes(), part.next_key().map(str::to_owned)))
    }

    fn names(keys: &[&str]) -> Vec<String> {
        keys.iter().copied().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn parts_of_a_collection_are_read_that_is_too_large() {
        let database = with_a_large_collection("parts-of-large").await;
        let whole = database.snapshot(&things(), At::Newest).await;
        assert!(matches!(whole, Err(SnapshotError::Store(StoreError::NoMemory))));
        let newest = async |range: KeyRange, wanted| read(&database, At::Newest, range, wanted).await;
        let (keys, bytes, cut) = newest(KeyRange::of("z/"), PartSize::All).await.expect("it fits");
        assert_eq!((keys.len(), bytes, cut), (10, 1_000, None));
        let all_large = newest(KeyRange::of("large/"), PartSize::All).await;
        assert!(matches!(all_large, Err(SnapshotError::Store(StoreError::NoMemory))));
        let first = newest(KeyRange::of(""), PartSize::First(4)).await.expect("it fits");
        assert_eq!(first, (names(&["a/0", "a/1", "a/2", "a/3"]), 400, Some("a/3\0".to_owned())));
        let large = newest(KeyRange::of("large/"), PartSize::First(4)).await.expect("there is room for one");
        assert_eq!(large, (names(&["large/0"]), LARGE_BYTES, Some("large/0\0".to_owned())));

        let last = newest(KeyRange::of("z/").starting("z/8\0"), PartSize::All).await.expect("it fits");
        assert_eq!(last, (names(&["z/9"]), 100, None));
        let one = newest(KeyRange::one("z/7"), PartSize::All).await.expect("it fits");
        assert_eq!(one, (names(&["z/7"]), 100, None));
        database.close().await;
    }

    #[tokio::test]
    async fn a_part_shows_the_state_at_an_exact_revision() {
        let database = with_a_large_collection("exact-parts").await;
        let before = database.revision();
        write(&database, "z/0", Op::Delete).await;
        write(&database, "z/1", put_of(7)).await;
        write(&database, "z/10", put_of(7)).await;
        write(&database, "large/0", Op::Delete).await;
        let of_z = async |at, wanted| read(&database, at, KeyRange::of("z/"), wanted).await;
        let (keys, bytes, _) = of_z(At::Newest, PartSize::All).await.expect("it fits");
        assert_eq!((keys.len(), bytes), (10, 8 * 100 + 2 * 7));
        let (keys, bytes, _) = of_z(At::Exact(before), PartSize::All).await.expect("it fits");
        assert_eq!((keys.len(), bytes), (10, 1_000));
        let first = of_z(At::Exact(before), PartSize::First(2)).await.expect("it fits");
        assert_eq!(
            first,
            (names(&["z/0", "z/1"]), 200, Some("z/10\0".to_owned())),
            "up to what was read, which is newer"
        );

        database.compact(database.revision()).await.expect("it compacts");
        let gone = of_z(At::Exact(before), PartSize::All).await;
        assert!(matches!(gone, Err(SnapshotError::Expired { .. })));
        database.close().await;
    }

    #[tokio::test]
    async fn exact_pages_are_short_where_much_has_changed_since() {
        let database = with_a_large_collection("changed-parts").await;
        for at in 0..10 {
            write(&database, &format!("other/{at}"), put_of(LARGE_BYTES)).await;
        }
        let before = database.revision();
        for at in 0..10 {
            write(&database, &format!("large/{at}"), put_of(1)).await;
        }
        let mut range = KeyRange::of("large/");
        let mut seen = Vec::new();
        loop {
            let page = read(&database, At::Exact(before), range.clone(), PartSize::First(20)).await;
            let (keys, bytes, next) = page.expect("it fits");
            assert_eq!(bytes, keys.len() * LARGE_BYTES);
            seen.extend(keys);
            let Some(next) = next else { break };
            range = range.starting(&next);
        }
        assert_eq!(seen, (0..10).map(|at| format!("large/{at}")).collect::<Vec<_>>());
        database.close().await;
    }

    #[tokio::test]
    async fn a_collection_is_not_loaded_beside_those_that_are_watched_and_leave_no_room() {
        const COUNT: usize = 7;
        let config = Config { memory: Arc::new(Memory::new(LIMIT_BYTES)), ..Config::memory() };
        let store = Arc::new(fixture::sqlite("no-room").await);
        let database = Database::of(store, None, &Location::File(PathBuf::new()), &config).await.expect("it opens");
        let collections = ["as", "bs"].map(|plural| Collection::new("", plural));
        for collection in &collections {
            for at in 0..COUNT {
                let (key, op) = (at.to_string().into(), put_of(LARGE_BYTES));
                let write = Write { collection: collection.clone(), key, op, guards: Vec::new() };
                database.write(write).await.expect("it is written");
            }
        }
        let [watched, other] = &collections;
        database.snapshot(other, At::Newest).await.expect("it is loaded");
        let watch = database.watch(watched, database.revision()).await.expect("it is loaded");
        let refused = database.snapshot(other, At::Newest).await;
        assert!(matches!(refused, Err(SnapshotError::Store(StoreError::NoMemory))));
        // One that is smaller gets room: the watch of the larger one goes on from the log.
        tokio::time::sleep(REFUSED_FOR).await;
        let deletion = Write { collection: other.clone(), key: "0".into(), op: Op::Delete, guards: Vec::new() };
        database.write(deletion).await.expect("it is written");
        let loaded = futures_util::future::join_all([(); 9].map(|()| database.snapshot(other, At::Newest))).await;
        assert!(loaded.iter().all(Result::is_ok));
        assert!(!database.inner.view.is_loaded(watched));
        let _other = database.watch(other, database.revision()).await.expect("it is loaded");
        let refused = database.snapshot(watched, At::Newest).await;
        assert!(matches!(refused, Err(SnapshotError::Store(StoreError::NoMemory))), "nor do they take turns");
        assert!(database.get(watched, "0").await.expect("it reads").is_some());
        drop(watch);
        database.close().await;
    }

    #[tokio::test]
    async fn watches_of_a_collection_that_is_or_becomes_too_large_go_on() {
        let database = with_a_large_collection("watched").await;
        let mut watches = Vec::new();
        for _ in 0..3 {
            watches.push(database.watch(&things(), database.revision()).await.expect("the log is there"));
        }
        for watch in &mut watches {
            assert!(watch.next_visible().await.is_none());
        }
        let before = database.stats().counts().statements;
        let changed = write(&database, "z/0", put_of(7)).await;
        let writing = database.stats().counts().statements - before;
        for watch in &mut watches {
            let change = watch.next().await.expect("it changed");
            assert_eq!((change.revision, change.previous.as_ref().map(|it| it.bytes.len())), (changed, Some(100)));
        }
        let read = database.stats().counts().statements - before - writing;
        assert!(read <= 2, "{read} statements for {} watches", watches.len());
        let other =
            Write { collection: Collection::new("", "others"), key: "a".into(), op: put_of(7), guards: Vec::new() };
        let other = database.write(other).await.expect("it is written").revision;
        assert!(watches[0].next_visible().await.is_none());
        assert_eq!(watches[0].progress(), other);

        // It fits again, and grows.
        for at in 0..9 {
            write(&database, &format!("large/{at}"), Op::Delete).await;
        }
        database.load(&things(), usize::MAX).await.expect("it loads");
        for _ in 0..10 {
            assert!(watches[1].next().await.is_some());
            watches[1].next_visible().await;
            if watches[1].seen() == database.revision() {
                break;
            }
        }
        for at in 0..9 {
            write(&database, &format!("large/{at}"), put_of(LARGE_BYTES)).await;
        }
        let last = write(&database, "z/last", put_of(7)).await;
        assert!(database.inner.view.get(&things(), "z/last").is_none(), "it is not in memory any more");
        for watch in &mut watches {
            while watch.seen() < last {
                assert!(watch.next().await.is_some());
            }
        }
        database.close().await;
    }

    #[tokio::test]
    async fn an_object_is_read_while_collections_are_loaded() {
        let store = Arc::new(fixture::sqlite("get-while-loading").await);
        let location = Location::File(PathBuf::new());
        let things = Collection::new("", "things");
        let database = Database::of(store, None, &location, &Config::memory()).await.expect("it opens");
        let put = Put {
            object: crate::store::Encoded::new("{}"),
            uid: "uid".into(),
            stored_version: "v1".into(),
            schema_generation: 0,
            expires_at_ms: None,
            served_under: None,
        };
        let write = Write { collection: things.clone(), key: "a".into(), op: Op::Put(put), guards: Vec::new() };
        database.write(write).await.expect("it is written");

        let loading = database.inner.loading.lock().await;
        let found = database.get(&things, "a").await.expect("it reads").expect("it is there");
        assert!(database.get(&things, "b").await.expect("it reads").is_none());
        assert!(database.inner.view.get(&things, "a").is_none(), "it is not loaded");
        drop(loading);

        assert!(database.load(&things, usize::MAX).await.expect("it loads"));
        assert_eq!(database.inner.view.get(&things, "a"), Some(Some(found)));
        database.close().await;
    }
}
