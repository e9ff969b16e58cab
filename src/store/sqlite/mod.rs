//! The log in SQLite: a file that one process owns, or that several share.
//!
//! Statements have fixed texts in a few fixed sizes, so that each is prepared once. There are two connections, one that
//! writes and one that reads. There is no pool that would close them.
//!
//! - A new database is not synced before its first write, which waits for everything before it: until then nothing has
//!   been acknowledged, and a start needs no disk sync.
//! - On SQLite (`store::sqlite`) a message costs two thread switches. Between two batches the writer lets clients that
//!   were answered write again, as long as more writes arrive, so that as many clients as possible share a sync. The
//!   log is written back at 8 MiB, not SQLite's 4: the pages of the index change in every batch, and are written back
//!   once for all of them.
//! - A lock file next to the database keeps a second process out; SQLite's own locks would let one in between two
//!   writes.
//! - A file may be shared instead (`peers`): every batch has the condition that no other process has written since it
//!   was decided, a read of the newest state first checks whether another process has written, and leases are in a
//!   table.

mod commit;
mod compact;
mod connection;
mod fill;
mod files;
mod peers;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Row as _};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use uuid::Uuid;

use crate::meta::Revision;

use super::backend::{LogPart, Stats, Store, WholeLog};
use super::batch::Foreseen;
use super::batch::WriteOutcome;
use super::key_range::KeyRange;
use super::leases::{Leases, runs};
use super::objects::{Objects, by_key};
use super::page_max::PageMax;
use super::part::{PartRows, ReadPart};
use super::rows::Scanned;
use super::rows::{
    LogRow as _, count, read_change, read_collection, read_event, read_or_damaged, read_revision, read_scanned,
};
use super::{Collection, Durability, StoreError, Stored, Write};
use commit::Author;
use connection::CountedConnection;
use files::log_of;
use files::unchanged_for;
pub(super) use files::{Files, open_private};
use peers::Peers;

/// The migrations, in order; `user_version` is the number of those that were applied.
pub(super) const MIGRATIONS: [&str; 2] = [
    include_str!("../../../migrations/sqlite/0001_log.sql"),
    include_str!("../../../migrations/sqlite/0002_times.sql"),
];

/// The revision of a database without changes.
const FIRST_REVISION: i64 = 2;

/// How many expired objects are looked for at a time.
const EXPIRED_MAX: i64 = 500;

/// A SQLite database.
pub struct Sqlite {
    writing: Mutex<Option<CountedConnection>>,
    /// Opened on first use, like the next one.
    reading: Mutex<Option<CountedConnection>>,
    /// Reads whole collections, which takes long, so that nothing else has to wait.
    loading: Mutex<Option<CountedConnection>>,
    /// Reads parts of collections that are too large for memory.
    paging: Mutex<Option<CountedConnection>>,
    options: SqliteConnectOptions,
    closed: AtomicBool,
    stats: Arc<Stats>,
    /// Identifies the process that wrote a batch.
    writer: Arc<str>,
    batch: AtomicI64,
    /// If no other process may open the file, leases live as long as the process.
    leases: Leases,
    /// The other processes that may write; `None` if there can be none, and once the database is closed.
    peers: SyncMutex<Option<Arc<Peers>>>,
    /// Whether a new database file may not be on disk yet: SQLite does not check that when it syncs the log.
    unsynced: AtomicBool,
    files: SyncMutex<Option<Files>>,
    age: Duration,
}

/// The location of a database, and whether it is shared.
#[derive(Clone, Copy)]
pub enum DatabaseLocation<'p> {
    /// In a file of this process.
    Own(&'p Path),
    /// In a file that other processes may open, too.
    Shared(&'p Path),
}

impl<'p> DatabaseLocation<'p> {
    fn path(self) -> &'p Path {
        match self {
            DatabaseLocation::Own(path) | DatabaseLocation::Shared(path) => path,
        }
    }

    /// The files besides SQLite's own, and a lock that lets only one process at a time set up a shared database.
    async fn files(self) -> Result<(Files, Option<File>), StoreError> {
        match self {
            DatabaseLocation::Own(path) => Ok((Files::open(path)?, None)),
            DatabaseLocation::Shared(path) => Ok((Files::open_shared(path)?, Some(files::setting_up(path).await?))),
        }
    }
}

/// The path as SQLite takes it for a file whatever its name is: not for its database in memory (`:memory:`), nor for a
/// URI (`file:…`).
pub(super) fn named_file(path: &Path) -> PathBuf {
    Path::new(".").join(path)
}

impl Sqlite {
    /// Opens or creates the database at `place`.
    ///
    /// Errors: the file belongs to another process, can't be opened, or was written by a newer program.
    pub async fn open(place: DatabaseLocation<'_>, durability: Durability) -> Result<Self, StoreError> {
        let path = place.path();
        let stats = Arc::new(Stats::default());
        let options = SqliteConnectOptions::new().disable_statement_logging();
        let (files, _setting_up) = place.files().await?;
        // Other processes continue to write a shared one.
        let age = match place {
            DatabaseLocation::Own(path) => unchanged_for(path),
            DatabaseLocation::Shared(_) => Duration::ZERO,
        };
        // SQLite otherwise never shrinks its log file.
        let options = options.filename(named_file(path)).pragma("journal_size_limit", "67108864");
        // In pages of 4 KiB. Pages that change repeatedly are written back once, and a sync waits for that less often.
        let options = options.pragma("wal_autocheckpoint", "2000");
        let open_failed = |error| match error {
            StoreError::Statement(source) => StoreError::Open { path: path.to_owned(), source },
            StoreError::Malformed => {
                StoreError::Open { path: path.to_owned(), source: Arc::new(StoreError::Malformed) }
            }
            error => error,
        };
        // A process that closes a database writes its log back and removes it.
        let unclosed = log_of(path).metadata().is_ok_and(|log| log.len() > 0);
        let mut writing = CountedConnection::open(&options, &stats).await.map_err(open_failed)?;
        let current = writing.set_up(durability).await.map_err(open_failed)?;
        let peers = match place {
            DatabaseLocation::Shared(path) => {
                writing.execute(sqlx::query(LEASES)).await.map_err(open_failed)?;
                Some(Arc::new(Peers::join(path)?))
            }
            DatabaseLocation::Own(_) => None,
        };
        let faults = writing.look_over().await.map_err(open_failed)?;
        if !faults.is_empty() {
            return Err(StoreError::Damaged { path: path.to_owned(), faults });
        }
        if unclosed && durability != Durability::Unsynced {
            tracing::warn!("the database was not closed, it goes on at revision {current}");
        }
        Ok(Sqlite {
            writing: Mutex::new(Some(writing)),
            reading: Mutex::default(),
            loading: Mutex::default(),
            paging: Mutex::default(),
            options,
            closed: AtomicBool::new(false),
            stats,
            writer: Uuid::new_v4().to_string().into(),
            batch: AtomicI64::new(0),
            leases: Leases::default(),
            peers: SyncMutex::new(peers),
            unsynced: AtomicBool::new(current == FIRST_REVISION && durability == Durability::Full),
            files: SyncMutex::new(Some(files)),
            age,
        })
    }

    async fn writing(&self) -> Result<MappedMutexGuard<'_, CountedConnection>, StoreError> {
        MutexGuard::try_map(self.writing.lock().await, Option::as_mut).map_err(|_| StoreError::Closed)
    }

    async fn reading(&self) -> Result<MappedMutexGuard<'_, CountedConnection>, StoreError> {
        self.opened(&self.reading, &self.options).await
    }

    async fn loading(&self) -> Result<MappedMutexGuard<'_, CountedConnection>, StoreError> {
        self.opened(&self.loading, &self.options).await
    }

    async fn paging(&self) -> Result<MappedMutexGuard<'_, CountedConnection>, StoreError> {
        // Rows may be large, and those that were read ahead are not counted as memory.
        self.opened(&self.paging, &self.options.clone().row_buffer_size(1)).await
    }

    /// One of the reading connections, opened if it isn't open.
    async fn opened<'c>(
        &self,
        connection: &'c Mutex<Option<CountedConnection>>,
        options: &SqliteConnectOptions,
    ) -> Result<MappedMutexGuard<'c, CountedConnection>, StoreError> {
        let mut connection = connection.lock().await;
        if connection.is_none() && !self.is_closed() {
            *connection =
                Some(CountedConnection::open(&options.clone().pragma("query_only", "ON"), &self.stats).await?);
        }
        MutexGuard::try_map(connection, Option::as_mut).map_err(|_| StoreError::Closed)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn peers(&self) -> Option<Arc<Peers>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn database_file(&self) -> Option<Arc<File>> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.as_ref().map(|files| Arc::clone(&files.database))
    }

    /// Before the first write of a new database is acknowledged, the database file itself must be on disk.
    async fn sync_new_file(&self, connection: &mut CountedConnection) -> Result<(), StoreError> {
        if !self.unsynced.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Some(database) = self.database_file() {
            let synced = tokio::task::spawn_blocking(move || database.sync_all()).await;
            synced.map_err(|_| StoreError::Closed)?.map_err(|source| StoreError::Statement(Arc::new(source)))?;
        }
        // The setting can't be changed inside a transaction that was left open.
        connection.roll_back().await;
        connection.execute(sqlx::query("PRAGMA synchronous = FULL")).await?;
        self.unsynced.store(false, Ordering::Relaxed);
        Ok(())
    }
}

/// The newest and the compacted revision.
async fn revisions(connection: &mut CountedConnection) -> Result<(Revision, Revision), StoreError> {
    let row = connection.fetch_one(sqlx::query("SELECT current_revision, compacted_revision FROM meta")).await?;
    Ok((Revision::new(row.try_get(0)?), Revision::new(row.try_get(1)?)))
}

/// The leases of the processes that share a file, each with the slot of its holder: it ends with that process.
const LEASES: &str = "CREATE TABLE IF NOT EXISTS leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, slot INTEGER NOT NULL, \
                      expires_at_ms INTEGER NOT NULL)";

/// [`Store::lease`] if processes share the file.
async fn lease_among(
    connection: &mut CountedConnection,
    peers: &Peers,
    (name, holder): (&str, &str),
    now_ms: i64,
    expires_at_ms: i64,
) -> Result<bool, StoreError> {
    connection.begin(sqlx::query("BEGIN IMMEDIATE")).await?;
    let found = sqlx::query("SELECT holder, slot, expires_at_ms FROM leases WHERE name = ?").bind(name);
    if let Some(row) = connection.fetch_optional(found).await? {
        let (current, slot): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        if current != holder && runs(row.try_get(2)?, now_ms, expires_at_ms) && peers.is_alive(slot) {
            return Ok(false);
        }
    }
    let take = sqlx::query("INSERT OR REPLACE INTO leases (name, holder, slot, expires_at_ms) VALUES (?, ?, ?, ?)");
    let take = take.bind(name).bind(holder).bind(peers.own_slot()).bind(expires_at_ms);
    connection.execute(take).await?;
    connection.commit(sqlx::query("COMMIT")).await?;
    Ok(true)
}

#[async_trait]
impl Store for Sqlite {
    async fn commit(&self, batch: &[Write], foreseen: Option<Foreseen>) -> Result<Vec<WriteOutcome>, StoreError> {
        let mut connection = self.writing().await?;
        self.sync_new_file(&mut connection).await?;
        let author = Author { writer: Arc::clone(&self.writer), batch: self.batch.fetch_add(1, Ordering::Relaxed) + 1 };
        let committed = commit::commit(&mut connection, batch, &author, foreseen).await;
        connection.roll_back().await;
        let (outcomes, writes) = committed?;
        if writes > 0 {
            if let (Some(peers), Some(newest)) = (self.peers(), outcomes.iter().rev().find_map(WriteOutcome::revision))
            {
                peers.tell(newest);
            }
            self.stats.count_batch(writes);
        }
        Ok(outcomes)
    }

    async fn revisions(&self) -> Result<(Revision, Revision), StoreError> {
        // The writing connection is already open at the start, but it is busy for as long as a commit takes, and others
        // may be waiting for the reading one. Two are never busy for long at the same time.
        for connection in [&self.writing, &self.loading] {
            if let Ok(connection) = connection.try_lock()
                && let Ok(mut connection) = MutexGuard::try_map(connection, Option::as_mut)
            {
                return revisions(&mut connection).await;
            }
        }
        revisions(&mut *self.reading().await?).await
    }

    async fn load_within(
        &self,
        collection: &Collection,
        bytes_max: usize,
    ) -> Result<Option<(Objects, Revision)>, StoreError> {
        let mut connection = self.loading().await?;
        let current = connection.begin_to_read().await?;
        // In the order of the keys: sorting a million of them costs more than random disk reads.
        let objects = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum FROM objects o JOIN changes c ON c.resource_version = o.resource_version \
             WHERE o.resource = ?",
        );
        let mut bytes = 0_usize;
        let within = connection.fetch_while(objects.bind(collection.as_str()), |row| {
            if self.is_closed() {
                return Err(StoreError::Closed);
            }
            let stored = read_or_damaged(row, 0)?;
            bytes = bytes.saturating_add(stored.bytes.len());
            Ok((bytes <= bytes_max).then_some(stored))
        });
        let objects = within.await;
        connection.roll_back().await;
        Ok(objects?.map(|objects| (by_key(objects), Revision::new(current))))
    }

    async fn read_part(&self, collection: &Collection, range: &KeyRange, max: PageMax) -> Result<ReadPart, StoreError> {
        let mut connection = self.paging().await?;
        let current = connection.begin_to_read().await?;
        // Any blob is greater than any text.
        let objects = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum FROM objects o JOIN changes c ON c.resource_version = o.resource_version \
             WHERE o.resource = ?1 AND o.key >= ?2 AND o.key < COALESCE(?3, x'') ORDER BY o.key",
        );
        let mut part = PartRows::new(max);
        let objects = objects.bind(collection.as_str()).bind(range.from()).bind(range.end());
        let read = connection.fetch_while(objects, |row| Ok(part.take(read_or_damaged(row, 0)?.into()))).await;
        connection.roll_back().await;
        let is_cut = read?.is_none();
        Ok(ReadPart { objects: part.objects, revision: Revision::new(current), is_cut })
    }

    async fn size_bytes(&self, collection: &Collection, range: &KeyRange) -> Result<Option<usize>, StoreError> {
        let mut connection = self.paging().await?;
        // The length of a value is stored with it, so no value is read.
        let size = sqlx::query(
            "SELECT COALESCE(SUM(length(c.bytes)), 0) FROM objects o JOIN changes c ON c.resource_version = o.resource_version \
             WHERE o.resource = ?1 AND o.key >= ?2 AND o.key < COALESCE(?3, x'')",
        );
        let size = size.bind(collection.as_str()).bind(range.from()).bind(range.end());
        connection.fetch_sum(size).await.map(Some)
    }

    async fn changes_after(
        &self,
        collection: &Collection,
        after: Revision,
        max: PageMax,
    ) -> Result<LogPart, StoreError> {
        let mut connection = self.reading().await?;
        let changes = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum, c.operation, p.key, p.resource_version, p.created_version, p.uid, p.stored_version, \
             p.schema_generation, p.bytes, p.expires_at_ms, p.checksum \
             FROM changes c LEFT JOIN changes p ON p.resource_version = c.previous_version \
             WHERE c.resource = ?1 AND c.resource_version > ?2 AND c.resource_version <= (SELECT max(revision) FROM \
             (SELECT c.resource_version AS revision, sum(length(c.bytes) + coalesce(length(p.bytes), 0)) OVER \
             (ORDER BY c.resource_version ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before \
             FROM changes c LEFT JOIN changes p ON p.resource_version = c.previous_version \
             WHERE c.resource = ?1 AND c.resource_version > ?2 ORDER BY c.resource_version LIMIT ?3) \
             WHERE coalesce(bytes_before, 0) < ?4) ORDER BY c.resource_version",
        );
        let changes = changes.bind(collection.as_str()).bind(after.get());
        let changes = changes.bind(count(max.changes)).bind(count(max.bytes));
        let changes = connection.fetch(changes, |row| read_change(row)).await?;
        let compacted = connection.fetch_number("SELECT compacted_revision FROM meta").await?;
        Ok(LogPart { changes, compacted: Revision::new(compacted) })
    }

    async fn log_after(&self, after: Revision, max: PageMax) -> Result<WholeLog, StoreError> {
        let mut connection = self.reading().await?;
        let changes = sqlx::query(
            "SELECT key, resource_version, created_version, uid, stored_version, schema_generation, bytes, expires_at_ms, \
             checksum, operation, resource FROM changes \
             WHERE resource_version > ?1 AND resource_version <= (SELECT max(resource_version) FROM \
             (SELECT resource_version, sum(length(bytes)) OVER \
             (ORDER BY resource_version ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before \
             FROM changes WHERE resource_version > ?1 ORDER BY resource_version LIMIT ?2) \
             WHERE coalesce(bytes_before, 0) < ?3) ORDER BY resource_version",
        );
        let changes = changes.bind(after.get()).bind(count(max.changes)).bind(count(max.bytes));
        let changes = connection.fetch(changes, |row| read_event(row)).await?;
        let (newest, compacted) = revisions(&mut connection).await?;
        Ok(WholeLog { changes, newest, compacted })
    }

    async fn read(&self, collection: &Collection, key: &str) -> Result<Option<Arc<Stored>>, StoreError> {
        let mut connection = self.reading().await?;
        let object = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum FROM objects o JOIN changes c ON c.resource_version = o.resource_version \
             WHERE o.resource = ? AND o.key = ?",
        );
        let row = connection.fetch_optional(object.bind(collection.as_str()).bind(key)).await?;
        row.map(|row| read_or_damaged(&row, 0).map(Arc::new)).transpose()
    }

    async fn scan(
        &self,
        texts: &[&str; 3],
        after: Revision,
        until: Revision,
        max: PageMax,
    ) -> Result<Vec<Scanned>, StoreError> {
        let mut connection = self.reading().await?;
        let rows = sqlx::query(
            "SELECT key, resource_version, created_version, uid, stored_version, schema_generation, \
             CASE WHEN found THEN bytes ELSE x'' END, expires_at_ms, checksum, resource, found FROM (SELECT c.*, o.key IS NOT NULL \
             AND (instr(c.bytes, ?1) > 0 OR instr(c.bytes, ?2) > 0 OR instr(c.bytes, ?3) > 0) AS found \
             FROM (SELECT *, sum(length(bytes)) OVER \
             (ORDER BY resource_version ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before FROM changes \
             WHERE resource_version > ?4 AND resource_version <= ?5 ORDER BY resource_version LIMIT ?6) c \
             LEFT JOIN objects o \
             ON o.resource = c.resource AND o.key = c.key AND o.resource_version = c.resource_version \
             WHERE coalesce(c.bytes_before, 0) < ?7 ORDER BY c.resource_version)",
        );
        let rows = texts.iter().fold(rows, |rows, text| rows.bind(text.as_bytes()));
        let rows = rows.bind(after.get()).bind(until.get());
        let rows = rows.bind(count(max.changes)).bind(count(max.bytes));
        connection.fetch(rows, |row| read_scanned(row)).await
    }

    fn polled_every(&self) -> Option<Duration> {
        self.peers().map(|peers| peers.look_every())
    }

    fn may_be_ahead_of(&self, revision: Revision) -> bool {
        self.peers().is_some_and(|peers| peers.are_ahead_of(revision))
    }

    async fn written_elsewhere(&self) {
        match self.peers() {
            Some(peers) => peers.told().await,
            None => std::future::pending().await,
        }
    }

    async fn expired(&self, now_ms: i64) -> Result<Vec<(Collection, Arc<str>, Revision)>, StoreError> {
        let mut connection = self.reading().await?;
        let expired = sqlx::query(
            "SELECT c.resource, c.key, c.resource_version FROM changes c \
             JOIN objects o ON o.resource = c.resource AND o.key = c.key WHERE c.expires_at_ms <= ? AND o.resource_version = c.resource_version ORDER BY c.expires_at_ms LIMIT ?",
        );
        let expired = expired.bind(now_ms).bind(EXPIRED_MAX);
        connection.fetch(expired, |row| Ok((read_collection(row, 0)?, row.text(1)?, read_revision(row, 2)?))).await
    }

    fn age(&self) -> Duration {
        self.age
    }

    async fn note_time(&self, revision: Revision, age: Duration) -> Result<(), StoreError> {
        let mut connection = self.writing().await?;
        compact::note_time(&mut connection, revision, age).await?;
        self.stats.count_commit();
        Ok(())
    }

    async fn noted_times(&self) -> Result<Vec<(Revision, Duration)>, StoreError> {
        let mut connection = self.writing().await?;
        compact::noted_times(&mut connection).await
    }

    async fn compact(&self, to: Revision) -> Result<bool, StoreError> {
        let mut connection = self.writing().await?;
        let more = compact::step(&mut connection, to).await;
        connection.roll_back().await;
        Ok(more? || compact::return_space(&mut connection).await?)
    }

    async fn secret(&self, name: &str, made: &[u8]) -> Result<Vec<u8>, StoreError> {
        let mut connection = self.writing().await?;
        let insert = sqlx::query("INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING");
        if connection.execute(insert.bind(name).bind(made)).await? > 0 {
            self.stats.count_commit();
        }
        let value = sqlx::query("SELECT value FROM secrets WHERE name = ?").bind(name);
        Ok(connection.fetch_one(value).await?.try_get(0)?)
    }

    async fn read_secret(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        // The writing connection is already open at the start.
        let mut connection = self.writing().await?;
        let value = sqlx::query("SELECT value FROM secrets WHERE name = ?").bind(name);
        let row = connection.fetch_optional(value).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    async fn secrets(&self) -> Result<Vec<(Arc<str>, Vec<u8>)>, StoreError> {
        let mut connection = self.writing().await?;
        let all = sqlx::query("SELECT name, value FROM secrets");
        connection.fetch(all, |row| Ok((row.text(0)?, row.try_get(1)?))).await
    }

    async fn lease(&self, name: &str, holder: &str, now_ms: i64, expires_at_ms: i64) -> Result<bool, StoreError> {
        if let Some(peers) = self.peers() {
            let mut connection = self.writing().await?;
            let taken = lease_among(&mut connection, &peers, (name, holder), now_ms, expires_at_ms).await;
            connection.roll_back().await;
            return taken;
        }
        Ok(self.leases.take(name, holder, now_ms, expires_at_ms))
    }

    async fn make_room(&self) -> bool {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.as_ref().is_some_and(Files::release_reserve)
    }

    async fn keep_room(&self) {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = files.as_ref() {
            files.keep_reserve();
        }
    }

    async fn try_writing(&self) -> Result<(), StoreError> {
        let mut connection = self.writing().await?;
        connection.begin(sqlx::query("BEGIN IMMEDIATE")).await?;
        // Data that is overwritten with itself does not reach the disk.
        let touch = "INSERT INTO objects VALUES ('', '', 0); DELETE FROM objects WHERE resource = '' AND key = ''";
        let written = connection.execute(sqlx::query(touch)).await;
        match written {
            Ok(_) => connection.commit(sqlx::query("COMMIT")).await,
            Err(error) => {
                connection.roll_back().await;
                Err(error)
            }
        }
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let loading = self.loading.lock().await.take();
        let reading = self.reading.lock().await.take();
        let writing = self.writing.lock().await.take();
        // What the last connection can't write back stays in the log, and is read from there.
        let paging = self.paging.lock().await.take();
        for connection in loading.into_iter().chain(paging).chain(reading).chain(writing) {
            if let Err(error) = connection.close().await {
                tracing::warn!(%error, "the database could not be closed");
            }
        }
        drop(self.peers.lock().unwrap_or_else(PoisonError::into_inner).take());
        drop(self.files.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

#[cfg(test)]
pub mod fixture {
    use super::*;

    /// A new database in its own file, in the directory for temporary files.
    pub async fn sqlite(name: &str) -> Sqlite {
        let path = std::env::temp_dir().join(format!("skiff-sqlite-{name}-{}.db", std::process::id()));
        for beside in ["db", "db-wal", "db-shm", "db.lock"] {
            _ = std::fs::remove_file(path.with_extension(beside));
        }
        Sqlite::open(DatabaseLocation::Own(&path), Durability::Relaxed).await.expect("the file can be made")
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::super::feed::{DatabaseFeed, Feed};
    use super::super::view::{View, ViewMax};
    use super::*;

    async fn new_file(name: &str) -> Sqlite {
        fixture::sqlite(name).await
    }

    #[test]
    fn a_path_is_a_file_whatever_its_name_is() {
        for (path, named) in
            [(":memory:", "./:memory:"), ("file:a?mode=memory", "./file:a?mode=memory"), ("/a/b", "/a/b")]
        {
            assert_eq!(named_file(Path::new(path)), Path::new(named));
        }
    }

    fn put(key: &str, bytes: usize) -> Write {
        let op = crate::store::Op::Put(crate::store::Put {
            object: crate::store::Encoded::new(vec![b' '; bytes]),
            uid: "u".into(),
            stored_version: "v1".into(),
            schema_generation: 1,
            expires_at_ms: None,
            served_under: None,
        });
        Write { collection: Collection::new("", "things"), key: key.into(), op, guards: Vec::new() }
    }

    #[tokio::test]
    async fn nothing_waits_while_a_collection_is_read() {
        let sqlite = new_file("loading").await;
        sqlite.commit(&[put("a", 10)], None).await.expect("there is room");
        let things = Collection::new("", "things");
        let loading = sqlite.loading().await.expect("it is open");
        let found = sqlite.read(&things, "a").await.expect("it reads");
        assert_eq!(found.map(|found| found.bytes.len()), Some(10));
        let (newest, _) = sqlite.revisions().await.expect("it reads");
        assert_eq!(sqlite.log_after(Revision::default(), PageMax::USUAL).await.expect("it reads").newest, newest);
        drop(loading);

        sqlite.closed.store(true, Ordering::Relaxed);
        let stopped = sqlite.load_within(&things, usize::MAX).await;
        assert!(matches!(stopped, Err(StoreError::Closed)), "a server that ends does not wait for it");
        sqlite.close().await;
    }

    #[tokio::test]
    async fn a_part_of_the_log_has_few_changes_or_few_bytes() {
        const MAX: PageMax = PageMax { changes: 4, bytes: 1_000 };
        let sqlite = new_file("parts").await;
        for (key, bytes) in [("a", 999), ("b", 1), ("a", 10), ("c", 5_000), ("d", 1), ("e", 1), ("f", 1), ("g", 1)] {
            sqlite.commit(&[put(key, bytes)], None).await.expect("there is room");
        }
        let things = Collection::new("", "things");
        let of_things = async |after| sqlite.changes_after(&things, after, MAX).await.expect("it reads").changes;
        let of_all = async |after| sqlite.log_after(after, MAX).await.expect("it reads").changes;
        let scanned =
            async |after| sqlite.scan(&["  "; 3], after, Revision::new(i64::MAX), MAX).await.expect("it reads");
        let counts = async |after: i64| {
            let after = Revision::new(FIRST_REVISION + after);
            (of_things(after).await.len(), of_all(after).await.len(), scanned(after).await.len())
        };
        // The third change also has the state before it.
        assert_eq!(counts(0).await, (2, 2, 2));
        assert_eq!(counts(1).await, (2, 3, 3));
        assert_eq!(counts(3).await, (1, 1, 1), "a large one comes alone");
        assert_eq!(counts(4).await, (4, 4, 4));
        assert_eq!(counts(8).await, (0, 0, 0));
        sqlite.close().await;
    }

    #[tokio::test]
    async fn feeds_that_are_behind_share_what_is_read() {
        const FEEDS: usize = 20;
        let sqlite = Arc::new(new_file("feeds").await);
        let writes: Vec<_> = (0..40).map(|at| put(&format!("{at}"), 200_000)).collect();
        sqlite.commit(&writes, None).await.expect("there is room");
        let (newest, compacted) = sqlite.revisions().await.expect("it reads");
        let view = Arc::new(View::new(newest, compacted, ViewMax::ENDLESS));
        let last_read = Arc::default();
        let before = sqlite.stats().counts().statements;
        let feeds = (0..FEEDS).map(async |_| {
            let store: Arc<dyn Store> = Arc::<Sqlite>::clone(&sqlite);
            let begun = Revision::new(FIRST_REVISION);
            let feed = DatabaseFeed::new(Arc::clone(&view), store, begun, Arc::clone(&last_read));
            let (mut feed, mut seen) = (Feed::new(vec![feed]), 0);
            while seen < writes.len() {
                seen += feed.next().await.expect("it goes on").len();
            }
        });
        join_all(feeds).await;
        // Each part has six changes, and takes two statements.
        assert_eq!(sqlite.stats().counts().statements - before, 2 * 7);
    }

    #[tokio::test]
    async fn the_newest_revision_is_known_while_something_is_written() {
        let sqlite = new_file("newest").await;
        sqlite.commit(&[put("a", 10)], None).await.expect("there is room");
        let free = sqlite.revisions().await.expect("it reads");
        let writing = sqlite.writing().await.expect("it is open");
        assert_eq!(sqlite.revisions().await.expect("it reads"), free);
        drop(writing);
        sqlite.close().await;
    }

    #[tokio::test]
    async fn writing_goes_on_once_there_is_room_again() {
        let sqlite = new_file("room").await;
        let limit = async |statement: &'static str| {
            let mut connection = sqlite.writing().await.expect("it is open");
            connection.fetch_one(sqlx::query(statement)).await.expect("the limit is set");
        };
        sqlite.commit(&[put("a", 10)], None).await.expect("there is room");
        let before = sqlite.revisions().await.expect("it reads");
        limit("PRAGMA max_page_count = 20").await;
        let full = sqlite.commit(&[put("b", 10), put("c", 200_000)], None).await.expect_err("there is no room");
        assert!(matches!(full, StoreError::DiskFull), "{full}");
        assert_eq!(sqlite.revisions().await.expect("it reads"), before);
        limit("PRAGMA max_page_count = 1000").await;
        sqlite.commit(&[put("b", 10), put("c", 200_000)], None).await.expect("there is room");
        let things = sqlite.load_within(&Collection::new("", "things"), usize::MAX).await.expect("it reads");
        let (things, _) = things.expect("no objects have more");
        assert_eq!(things.len(), 3);
    }

    #[tokio::test]
    async fn a_database_that_is_read_only_says_so() {
        let sqlite = new_file("read-only").await;
        sqlite
            .writing()
            .await
            .expect("it is open")
            .execute(sqlx::query("PRAGMA query_only = ON"))
            .await
            .expect("it is set");
        let refused = sqlite.commit(&[put("a", 10)], None).await.expect_err("nothing can be written");
        assert!(matches!(refused, StoreError::ReadOnly), "{refused}");
    }

    #[tokio::test]
    async fn a_transaction_that_was_left_open_is_taken_back() {
        let sqlite = new_file("left-open").await;
        {
            let mut connection = sqlite.writing().await.expect("it is open");
            connection.begin(sqlx::query("BEGIN IMMEDIATE")).await.expect("it begins");
            connection.execute(sqlx::query("UPDATE meta SET current_revision = 99")).await.expect("it updates");
        }
        let outcomes = sqlite.commit(&[put("a", 10)], None).await.expect("it commits");
        let revision = Revision::new(FIRST_REVISION).next();
        assert_eq!(outcomes, [WriteOutcome::Committed { revision, created: revision, uid: "u".into() }]);
    }
}
