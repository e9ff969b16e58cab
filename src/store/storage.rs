//! The registry's interface to the store: the main database, and those that some collections are kept in instead.
//!
//! Revisions are comparable only within a database. So everything that concerns a revision concerns one collection, and
//! what belongs to all collections, secrets and leases, is in the main database.
//!
//! - `store::storage` sends collections to databases (`--store-override`); each of them (`store::database`) has its
//!   log, its view, its writer and its compaction, and does not know about the others. No transaction spans two. So a
//!   guard on an object in another database is read at the newest before the write, and again after it. An object that
//!   was created while its definition or namespace changed is deleted again, and the request runs again; watches may
//!   see it come and go, and if the process is killed between the two it stays, as it can with kube-apiserver, whose
//!   admission reads a cache. An update that overtakes a change of its definition stays: it is as if it had come just
//!   before. Definitions and namespaces themselves stay in the main database, and so do secrets and leases.
//! - A `Moment` is the revision of each database. Controllers read a feed of all databases, which is in order within
//!   each. With each change, the other databases are polled, so that everything that any process had acknowledged there
//!   before is included.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;

use crate::meta::Revision;

use crate::clock::Clock;
use crate::work;

use super::database::Database;
use super::{
    At, Collection, CollectionPart, Committed, Config, Feed, Guard, HandOut, KeyRange, Location, LogWatch, Moment, Op,
    PageEnd, PartReader, PartRequest, PartSize, Revocable, Snapshot, SnapshotError, StoreCounts, StoreError, Stored,
    WatchError, Write, WriteError, open,
};

/// How many objects the server itself reads at a time of a collection that is too large for memory.
pub const PAGE_OBJECTS: usize = 1_000;
/// How often it waits for the memory for a page, some seconds each.
const PAGE_TRIES: usize = 12;

/// Every database that objects are kept in. Cheap to clone.
#[derive(Clone)]
pub struct Storage {
    databases: Arc<Databases>,
}

struct Databases {
    main: Database,
    /// Each once.
    others: Vec<Database>,
    /// Which of `others` has the objects of a collection; those of all others are in `main`.
    overrides: Vec<(Collection, usize)>,
    clock: Clock,
}

impl Storage {
    /// Opens the databases and starts to write.
    pub async fn open(config: &Config) -> Result<Self, StoreError> {
        let locations = config.other_locations();
        let main = open::open(&config.location, config).await?;
        let others = try_join_all(locations.iter().map(|location| open::open(location, config))).await;
        let others = match others {
            Ok(others) => others,
            Err(error) => {
                main.close().await;
                return Err(error);
            }
        };
        let place = |location: &Location| locations.iter().position(|known| *known == location);
        let clock = config.clock.clone();
        let overrides = config.overrides.iter().filter_map(|(of, location)| Some((of.clone(), place(location)?)));
        Ok(Storage { databases: Arc::new(Databases { main, others, overrides: overrides.collect(), clock }) })
    }

    /// Copies the current contents to the location in `config`, which is a new file or memory. The secrets `without`
    /// are not copied.
    ///
    /// Errors: objects are kept in several databases, whose revisions have no common order; [`open::fork`].
    pub async fn fork(&self, config: &Config, without: &[&str]) -> Result<Self, StoreError> {
        if !self.databases.others.is_empty() || !config.overrides.is_empty() {
            return Err(StoreError::Several);
        }
        let main = open::fork(&self.databases.main, &config.location, config, without).await?;
        Ok(Storage {
            databases: Arc::new(Databases {
                main,
                others: Vec::new(),
                overrides: Vec::new(),
                clock: config.clock.clone(),
            }),
        })
    }

    /// Makes a write if its guards hold in its transaction. When this returns, the write is visible, and as durable as
    /// requested. It is made even if the caller stops waiting.
    ///
    /// A guard on an object in another database is checked as described at [`Storage::write_apart`].
    pub async fn write(&self, mut write: Write) -> Result<Committed, WriteError> {
        work::commit();
        let database = self.databases.of(&write.collection);
        if self.databases.others.is_empty() {
            return database.write(write).await;
        }
        let is_apart = |guard: &mut Guard| match guard {
            Guard::Other { collection, .. } => !std::ptr::eq(self.databases.of(collection), database),
            Guard::Absent | Guard::At { .. } | Guard::Joined => false,
        };
        let apart: Vec<_> = write.guards.extract_if(.., is_apart).collect();
        if apart.is_empty() {
            return database.write(write).await;
        }
        let storage = self.clone();
        let made = tokio::spawn(async move { storage.write_apart(write, &apart).await });
        made.await.unwrap_or(Err(WriteError::Store(StoreError::Closed)))
    }

    /// [`Storage::write`] of an object with others that depend on it, one write per key: all are made, or none.
    ///
    /// In one transaction, unless some are in another database. Those are then made one after another: first the new
    /// ones, which are undone if the object is not written, and last the deletions. If the process ends in between,
    /// some objects are left over that nothing refers to.
    pub async fn write_together(&self, write: Write, others: Vec<Write>) -> Result<Committed, WriteError> {
        work::commit();
        let database = self.databases.of(&write.collection);
        let is_apart = |other: &Write| !std::ptr::eq(self.databases.of(&other.collection), database);
        if others.is_empty() {
            return self.write(write).await;
        }
        if self.databases.others.is_empty() {
            let joined = others.into_iter().map(|mut other| {
                other.guards.push(Guard::Joined);
                other
            });
            return database.write_together(std::iter::once(write).chain(joined).collect()).await;
        }
        let (apart, mut joined): (Vec<_>, Vec<_>) = others.into_iter().partition(is_apart);
        joined.iter_mut().for_each(|other| other.guards.push(Guard::Joined));
        let storage = self.clone();
        let made = tokio::spawn(async move { storage.write_around(write, joined, apart).await });
        made.await.unwrap_or(Err(WriteError::Store(StoreError::Closed)))
    }

    /// Makes a write together with the joined ones, and the writes `apart` before and after it.
    async fn write_around(&self, write: Write, joined: Vec<Write>, apart: Vec<Write>) -> Result<Committed, WriteError> {
        let (puts, deletions): (Vec<_>, Vec<_>) = apart.into_iter().partition(|other| other.put().is_some());
        let mut made = Vec::with_capacity(puts.len());
        let mut outcome =
            self.hold(&write.guards).await.and_then(|held| held.then_some(()).ok_or(WriteError::GuardFailed));
        for put in puts {
            if outcome.is_ok() {
                let (collection, key) = (put.collection.clone(), Arc::clone(&put.key));
                let is_new = put.guards.contains(&Guard::Absent);
                outcome =
                    self.write(put).await.map(|committed| made.extend(is_new.then_some((collection, key, committed))));
            }
        }
        let outcome = match outcome {
            Ok(()) => {
                let database = self.databases.of(&write.collection);
                database.write_together(std::iter::once(write).chain(joined).collect()).await
            }
            Err(error) => Err(error),
        };
        let undone = made.into_iter().filter(|_| outcome.is_err()).map(|(collection, key, committed)| Write {
            collection,
            key,
            op: Op::Delete,
            guards: vec![Guard::At { revision: committed.revision }],
        });
        let undone: Vec<_> = undone.collect();
        let deletions = if outcome.is_ok() { deletions } else { undone };
        for deletion in deletions {
            // Another request may have it by now.
            _ = self.write(deletion).await;
        }
        outcome
    }

    /// Makes a write that `apart` guards: objects in another database, which no transaction spans.
    ///
    /// Their newest states are read before the write, and again after it. An object that was created while one of them
    /// changed is deleted again, unless it has been changed since; watches see it come and go, and if the process ends
    /// between the two it stays. An update stays: it is as if it had come just before.
    async fn write_apart(&self, write: Write, apart: &[Guard]) -> Result<Committed, WriteError> {
        if !self.hold(apart).await? {
            return Err(WriteError::GuardFailed);
        }
        let database = self.databases.of(&write.collection);
        let creates = write.guards.contains(&Guard::Absent);
        let (collection, key) = (write.collection.clone(), Arc::clone(&write.key));
        let committed = database.write(write).await?;
        if !creates || self.hold(apart).await? {
            return Ok(committed);
        }
        let guards = vec![Guard::At { revision: committed.revision }];
        match database.write(Write { collection, key, op: Op::Delete, guards }).await {
            Ok(_) => Err(WriteError::GuardFailed),
            Err(WriteError::GuardFailed) => Ok(committed),
            Err(error) => Err(error),
        }
    }

    /// Whether all of `guards`, which are on other objects, hold now.
    async fn hold(&self, guards: &[Guard]) -> Result<bool, WriteError> {
        for guard in guards {
            let Guard::Other { collection, key, revision } = guard else { continue };
            let database = self.databases.of(collection);
            database.catch_up().await.map_err(WriteError::Store)?;
            let stored = database.get(collection, key).await.map_err(WriteError::Store)?;
            if stored.is_none_or(|stored| stored.revision != *revision) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The newest state of the object under `key`.
    pub async fn get(&self, collection: &Collection, key: &str) -> Result<Option<Arc<Stored>>, StoreError> {
        self.databases.of(collection).get(collection, key).await
    }

    /// The newest state of the object under `key`, without loading its collection for it.
    pub async fn peek(&self, collection: &Collection, key: &str) -> Result<Option<Arc<Stored>>, StoreError> {
        self.databases.of(collection).peek(collection, key).await
    }

    /// Passes every object whose stored bytes contain one of `texts` to `each`; others are not decoded. Returns the
    /// moment as of which they are complete, except for later changes.
    pub async fn scan(
        &self,
        texts: &[&str; 3],
        mut each: impl FnMut(Collection, Arc<Stored>) + Send,
    ) -> Result<Moment, StoreError> {
        let mut moment = Vec::new();
        for database in self.databases.all() {
            moment.push(database.scan(texts, &mut each).await?);
        }
        Ok(Moment(moment))
    }

    /// The clock by which objects expire.
    pub fn clock(&self) -> &Clock {
        &self.databases.clock
    }

    /// The newest moment that is visible.
    pub fn now(&self) -> Moment {
        Moment(self.databases.all().map(Database::revision).collect())
    }

    /// The changes of all collections after a moment.
    pub fn feed(&self, after: &Moment) -> Feed {
        Feed::new(self.databases.all().zip(&after.0).map(|(database, after)| database.feed(*after)).collect())
    }

    /// The objects of a collection at one revision.
    pub async fn snapshot(&self, collection: &Collection, at: At) -> Result<Snapshot, SnapshotError> {
        self.databases.of(collection).snapshot(collection, at).await
    }

    /// The objects of a collection at one revision, or those of a range of keys if the collection is too large for memory.
    ///
    /// Errors: among others, memory can't hold those of the range, though all of them are wanted.
    pub async fn part(&self, collection: &Collection, of: PartRequest) -> Result<CollectionPart, SnapshotError> {
        self.databases.of(collection).part(collection, of).await
    }

    /// The newest objects of a collection whose keys begin with a prefix, page by page if the collection is too large for
    /// memory.
    pub fn pages<'s>(&'s self, collection: &'s Collection, prefix: &str) -> Pages<'s> {
        Pages::new(self, collection, prefix)
    }

    /// Keeps a state for the next page of a list, within bounds of number and time, and how many objects follow.
    pub fn pin(&self, snapshot: &Snapshot, page_end: Option<PageEnd>) {
        self.databases.of(snapshot.collection()).pin(snapshot, page_end);
    }

    /// Hands out something of the state of a collection at a revision to a reader that may be slow: it is taken back once
    /// too much has changed since.
    pub fn hand_out<T: Send + 'static>(&self, of: &HandOut<'_>, held: T) -> Revocable<T> {
        self.databases.of(of.collection).hand_out(of, held)
    }

    /// How many objects of `snapshot` whose keys begin with `prefix` follow from the key `start` on, if that was
    /// recorded with the previous page ([`Storage::pin`]) and is still known.
    pub fn remaining(&self, snapshot: &Snapshot, prefix: &str, start: &str) -> Option<usize> {
        self.databases.of(snapshot.collection()).remaining(snapshot, prefix, start)
    }

    /// As [`Database::check_growth`].
    pub fn check_growth(
        &self,
        (collection, is_namespaced): (&Collection, bool),
        bytes: impl FnOnce() -> usize,
    ) -> Result<(), StoreError> {
        self.databases.of(collection).check_growth((collection, is_namespaced), bytes)
    }

    /// Drops a collection from memory if nobody watches it; it is loaded again on its next use.
    pub fn forget(&self, collection: &Collection) {
        self.databases.of(collection).forget(collection);
    }

    /// The changes of a collection after a revision, which may be in the future.
    pub async fn watch(&self, collection: &Collection, after: Revision) -> Result<LogWatch, WatchError> {
        self.databases.of(collection).watch(collection, after).await
    }

    /// The newest change of a collection that somebody watches in this process; `None` if nobody does.
    pub fn watched_revision(&self, collection: &Collection) -> Option<Revision> {
        self.databases.of(collection).watched_revision(collection)
    }

    /// The newest revision that is visible to readers of a collection.
    pub fn revision(&self, collection: &Collection) -> Revision {
        self.databases.of(collection).revision()
    }

    /// The revision that the log of a collection reaches back to.
    pub fn compacted(&self, collection: &Collection) -> Revision {
        self.databases.of(collection).compacted()
    }

    /// Waits until everything in the main database is visible that was acknowledged anywhere before this was called.
    /// Returns at once if no other process can write.
    ///
    /// Errors: the database does not answer. What is visible can still be read.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        self.databases.main.catch_up().await
    }

    /// [`Storage::catch_up`] with the database of a collection that is not in the main one; at once if it is.
    pub async fn catch_up_apart(&self, collection: &Collection) -> Result<(), StoreError> {
        match self.databases.other(collection) {
            Some(other) => other.catch_up().await,
            None => Ok(()),
        }
    }

    /// Waits until `revision` of a collection is visible, for at most `timeout`; false if it is not visible by then.
    pub async fn wait_for(&self, collection: &Collection, revision: Revision, timeout: Duration) -> bool {
        self.databases.of(collection).wait_for(revision, timeout).await
    }

    /// The value that every process on the main database has under `name`.
    pub async fn read_secret(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.databases.main.read_secret(name).await
    }

    /// Stores `made` under `name` unless there already is a value; returns the stored value.
    pub async fn insert_secret(&self, name: &str, made: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.databases.main.insert_secret(name, made).await
    }

    /// Takes or keeps the lease `name`; false while another process has it.
    pub async fn lease(&self, name: &str, holder: &str, ttl: Duration) -> Result<bool, StoreError> {
        self.databases.main.lease(name, holder, ttl).await
    }

    /// The newest revision of the main database, and the one that its log reaches back to.
    pub fn main_revisions(&self) -> (Revision, Revision) {
        (self.databases.main.revision(), self.databases.main.compacted())
    }

    /// The costs of all databases so far.
    pub fn counts(&self) -> StoreCounts {
        self.databases.all().map(|database| database.stats().counts()).sum()
    }

    /// How many objects each collection in memory has.
    pub fn object_counts(&self) -> Vec<(Collection, usize)> {
        self.databases.all().flat_map(Database::object_counts).collect()
    }

    /// How many databases there are beside the main one.
    pub fn other_count(&self) -> usize {
        self.databases.others.len()
    }

    /// Whether the main database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.databases.main.ping().await
    }

    /// Whether the other database of that number answers.
    pub async fn ping_other(&self, number: usize) -> Result<(), StoreError> {
        match self.databases.others.get(number) {
            Some(other) => other.ping().await,
            None => Ok(()),
        }
    }

    /// Commits what is waiting and closes; later writes fail.
    pub async fn close(&self) {
        for other in &self.databases.others {
            other.close().await;
        }
        self.databases.main.close().await;
    }

    /// Makes everything superseded at or before `to` unreadable in the database of a collection, then removes it in small
    /// steps, between which writes go on.
    pub async fn compact(&self, collection: &Collection, to: Revision) -> Result<(), StoreError> {
        self.databases.of(collection).compact(to).await
    }

    /// Whether other processes may write to the main database.
    pub fn is_shared(&self) -> bool {
        self.databases.main.is_shared()
    }

    /// Deletes what expires at or before `now_ms`, in milliseconds since 1970.
    pub async fn expire(&self, now_ms: i64) -> Result<(), StoreError> {
        try_join_all(self.databases.all().map(|database| database.expire(now_ms))).await.map(drop)
    }
}

/// The newest objects whose keys begin with a prefix: all at once, at one revision, if the collection fits into memory;
/// otherwise page by page, each at its own.
pub struct Pages<'s> {
    storage: &'s Storage,
    collection: &'s Collection,
    rest: Option<KeyRange>,
}

impl<'s> Pages<'s> {
    pub(super) fn new(storage: &'s Storage, collection: &'s Collection, prefix: &str) -> Self {
        Pages { storage, collection, rest: Some(KeyRange::of(prefix)) }
    }

    /// The next page; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<CollectionPart>, SnapshotError> {
        let Some(range) = self.rest.take() else { return Ok(None) };
        let mut tries = PAGE_TRIES;
        let part = loop {
            let (size, reader) = (PartSize::First(PAGE_OBJECTS), PartReader::Server);
            let request = PartRequest { at: At::Newest, range: range.clone(), size, reader };
            tries -= 1;
            match self.storage.part(self.collection, request).await {
                Err(SnapshotError::Store(StoreError::NoMemoryNow)) if tries > 0 => {}
                part => break part?,
            }
        };
        self.rest = part.next_key().map(|next| range.starting(next));
        Ok(Some(part))
    }
}

impl Databases {
    /// The database that the objects of a collection are in.
    fn of(&self, collection: &Collection) -> &Database {
        self.other(collection).unwrap_or(&self.main)
    }

    /// The same if that is not the main one.
    fn other(&self, collection: &Collection) -> Option<&Database> {
        let (_, at) = self.overrides.iter().find(|(overridden, _)| overridden == collection)?;
        self.others.get(*at)
    }

    fn all(&self) -> impl Iterator<Item = &Database> {
        std::iter::once(&self.main).chain(&self.others)
    }
}
