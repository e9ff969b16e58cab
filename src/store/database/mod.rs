//! One database: what is stored in it, its view, and the task that writes.

mod answers;
mod reading;
mod refusals;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Mutex, MutexGuard, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::memory::{Memory, Room};
use crate::meta::Revision;

use super::backend::{Stats, Store};
use super::feed::{DatabaseFeed, LastRead};
use super::health::Health;
use super::held::{HandOut, Revocable};
use super::log_pages::{CollectionLog, LogPages};
use super::memory::InMemory;
use super::snapshot::Snapshot;
use super::view::{PageEnd, View, ViewMax};
use super::writer::{self, QUEUE_KIB_MAX, QUEUE_MAX, WaitingWrites};
use super::{
    Collection, Committed, Config, Guard, Location, LogWatch, Op, StoreError, TOGETHER_MAX, WatchError, Write,
    WriteError, log,
};
use answers::{Pings, Probe};
use refusals::Refusals;

/// The part of what readers may hold that is kept for the pages of lists.
const PINNED_DIVISOR: usize = 4;

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
    pings: Pings,
    /// What feeds have read from the store.
    last_read: Arc<LastRead>,
    health: Arc<Health>,
    /// The maximum size of a collection that is loaded for a list or watch, if the store knows the size.
    collection_bytes_max: usize,
    refusals: Refusals,
    /// Collections are measured one at a time.
    measuring: Mutex<()>,
    memory: Arc<Memory>,
    /// What the watches of each collection share of its log.
    log_pages: SyncMutex<HashMap<Collection, std::sync::Weak<LogPages>>>,
    /// Those that are read however large they are.
    required: Arc<[Collection]>,
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
            pinned_bytes: match location {
                Location::Memory => usize::MAX,
                _ => config.memory.held_bytes_max() / PINNED_DIVISOR,
            },
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
            pings: Pings::default(),
            last_read: Arc::default(),
            health,
            collection_bytes_max,
            refusals: Refusals::default(),
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

    /// The changes of all collections after a revision.
    pub fn feed(&self, after: Revision) -> DatabaseFeed {
        let Inner { view, store, last_read, .. } = &*self.inner;
        DatabaseFeed::new(Arc::clone(view), Arc::clone(store), after, Arc::clone(last_read))
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
        self.inner.probe.share(log::poll(&self.inner.view, &*self.inner.store)).await
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
        self.inner.pings.share(self.ask(), || self.inner.health.fault().is_some()).await
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
    /// may stay in memory, as they always do, and those in namespaces three quarters of that: who may write in one does not
    /// take it from the whole cluster. The growth of others is not asked for.
    ///
    /// Errors: they have taken it.
    pub fn check_growth(
        &self,
        (collection, is_namespaced): (&Collection, bool),
        bytes: impl FnOnce() -> usize,
    ) -> Result<(), StoreError> {
        let (view, required) = (&self.inner.view, &self.inner.required);
        if self.inner.collection_bytes_max == usize::MAX || !required.contains(collection) {
            return Ok(());
        }
        let bytes = bytes();
        // One that is too large by itself is in memory only while it is read.
        let is_small = || !required.iter().any(|collection| view.is_too_large(collection));
        let all_max = view.object_bytes_max() / 2;
        let bytes_max = if is_namespaced { all_max / 4 * 3 } else { all_max };
        let fits = || is_small() && view.bytes_of(required).saturating_add(bytes) <= bytes_max;
        if bytes == 0 || fits() { Ok(()) } else { Err(StoreError::NoSpaceForRequired) }
    }

    /// Drops from memory what nobody reads.
    pub fn give_back(&self) {
        self.inner.view.give_back();
    }
}

/// A handle for tasks that end with the database.
pub(super) struct WeakDatabase(std::sync::Weak<Inner>);

impl WeakDatabase {
    pub fn upgrade(&self) -> Option<Database> {
        self.0.upgrade().map(|inner| Database { inner })
    }
}
