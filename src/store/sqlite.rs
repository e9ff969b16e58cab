//! The log in SQLite: a file that one process owns, or a database in memory.
//!
//! Statements have fixed texts in a few fixed sizes, so that each is prepared once. There are two connections, one that
//! writes and one that reads; a database in memory has one that does both. No pool ever reaps them.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as SyncMutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use uuid::Uuid;

use crate::meta::Revision;

use super::batch::{DELETE, Keys, Live, NewChange, decide, keys_of};
use super::rows::{LogRow as _, count, read_change, read_collection, read_revision, read_scanned, read_stored};
use super::sql::{Log, Outcome, Scanned, Stats, Store};
use super::{Change, Collection, Durability, StoreError, Stored, Write};

/// Each migration once, in order; `user_version` counts those made.
pub(super) const MIGRATIONS: [&str; 1] = [include_str!("../../migrations/sqlite/0001_log.sql")];

/// The revision of a database without changes.
const FIRST_REVISION: i64 = 2;

/// Rows per statement: what is left over goes in the next smaller size.
const ROWS: [usize; 4] = [64, 16, 4, 1];
/// Keys per look-up: the smallest size that holds them all, filled up with NULL.
const KEYS: [usize; 4] = [512, 64, 8, 2];

/// How many revisions one step of compaction looks at: writes wait for a step.
const COMPACT_STEP: i64 = 256;
/// How many free pages a file keeps at least, and which share of it: the others go back to the system.
const FREE_PAGES_MIN: i64 = 1_024;
const FREE_SHARE: i64 = 4;
/// How many expired objects are looked for at a time.
const EXPIRED_MAX: i64 = 500;

const CHANGE_COLUMNS: &str = "resource_version, resource, key, operation, uid, created_version, stored_version, \
                              schema_generation, writer, batch, bytes, previous_version, expires_at_ms, checksum";
const CHANGE_COLUMN_COUNT: usize = 14;

/// Points the index at the newest change of each key that was changed between two revisions.
const INDEX: &str = "INSERT INTO objects (resource, key, resource_version) SELECT resource, key, max(resource_version) \
                     FROM changes WHERE resource_version > ? AND resource_version <= ? GROUP BY resource, key \
                     ON CONFLICT (resource, key) DO UPDATE SET resource_version = excluded.resource_version";
/// Then takes out the keys whose newest change is a deletion.
const UNINDEX: &str = "DELETE FROM objects WHERE (resource, key, resource_version) IN (SELECT resource, key, \
                       resource_version FROM changes WHERE resource_version > ? AND resource_version <= ? AND operation = ?)";

/// A SQLite database.
pub struct Sqlite {
    writing: Mutex<Option<Connection>>,
    /// `None` in memory, where the connection that writes reads as well. Opened when it is first needed.
    reading: Option<Mutex<Option<Connection>>>,
    options: SqliteConnectOptions,
    closed: AtomicBool,
    stats: Arc<Stats>,
    /// Tells apart who wrote a batch.
    writer: Arc<str>,
    batch: SyncMutex<i64>,
    /// Nobody else may open the file, so that leases live as long as the process.
    leases: SyncMutex<HashMap<String, Lease>>,
    /// A new database file may not be on disk yet, which SQLite does not care for when its log is.
    unsynced: AtomicBool,
    files: SyncMutex<Option<Files>>,
}

/// What is open beside SQLite.
pub(super) struct Files {
    database: Arc<File>,
    _lock: File,
}

struct Lease {
    holder: String,
    expires_at_ms: i64,
}

impl Sqlite {
    /// Opens or makes the database in the file `path`, or in memory.
    ///
    /// Errors: the file is another process's, can't be opened, or was written by a newer program.
    pub async fn open(path: Option<&Path>, durability: Durability) -> Result<Self, StoreError> {
        let stats = Arc::new(Stats::default());
        let mut options = SqliteConnectOptions::new().disable_statement_logging();
        let mut files = None;
        match path {
            None => options = options.in_memory(true),
            Some(path) => {
                files = Some(Files::open(path)?);
                // SQLite keeps the size of its log file otherwise, whatever it has grown to.
                options = options.filename(path).pragma("journal_size_limit", "67108864");
            }
        }
        let open_failed = |error| match (path, error) {
            (Some(path), StoreError::Statement(source)) => StoreError::Open { path: path.to_owned(), source },
            (_, error) => error,
        };
        // Who closes a database writes its log back and removes it.
        let unclosed = path.is_some_and(|path| log_of(path).metadata().is_ok_and(|log| log.len() > 0));
        let mut writing = Connection::open(&options, &stats).await.map_err(open_failed)?;
        let current = writing.set_up(path.is_some(), durability).await.map_err(open_failed)?;
        if unclosed {
            tracing::warn!("the database was not closed, it goes on at revision {current}");
        }
        Ok(Sqlite {
            writing: Mutex::new(Some(writing)),
            reading: files.is_some().then(Mutex::default),
            options,
            closed: AtomicBool::new(false),
            stats,
            writer: Uuid::new_v4().to_string().into(),
            batch: SyncMutex::new(0),
            leases: SyncMutex::default(),
            unsynced: AtomicBool::new(files.is_some() && current == FIRST_REVISION && durability == Durability::Full),
            files: SyncMutex::new(files),
        })
    }

    async fn writing(&self) -> Result<MappedMutexGuard<'_, Connection>, StoreError> {
        MutexGuard::try_map(self.writing.lock().await, Option::as_mut).map_err(|_| StoreError::Closed)
    }

    async fn reading(&self) -> Result<MappedMutexGuard<'_, Connection>, StoreError> {
        let Some(reading) = &self.reading else { return self.writing().await };
        let mut reading = reading.lock().await;
        if reading.is_none() && !self.closed.load(Ordering::Relaxed) {
            *reading = Some(Connection::open(&self.options.clone().pragma("query_only", "ON"), &self.stats).await?);
        }
        MutexGuard::try_map(reading, Option::as_mut).map_err(|_| StoreError::Closed)
    }

    fn database_file(&self) -> Option<Arc<File>> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.as_ref().map(|files| Arc::clone(&files.database))
    }

    fn next_batch(&self) -> i64 {
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        *batch += 1;
        *batch
    }

    /// Before the first write of a new database is acknowledged, the file that its log belongs to must be on disk.
    async fn sync_new_file(&self, connection: &mut Connection) -> Result<(), StoreError> {
        if !self.unsynced.load(Ordering::Relaxed) {
            return Ok(());
        }
        if let Some(database) = self.database_file() {
            let synced = tokio::task::spawn_blocking(move || database.sync_all()).await;
            synced.map_err(|_| StoreError::Closed)?.map_err(|source| StoreError::Statement(Arc::new(source)))?;
        }
        // Inside a transaction that was left open it could not be changed.
        connection.roll_back().await;
        connection.execute(sqlx::query("PRAGMA synchronous = FULL")).await?;
        self.unsynced.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl Files {
    /// Opens or makes the file `path`, and keeps other processes from it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Open { path: path.to_owned(), source: Arc::new(source) };
        // A lock beside the database: SQLite's own locks let a second process in between two writes.
        let lock = open_private(&path.with_extension("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Stays open for as long as SQLite has the file: on POSIX systems, closing it would take SQLite's locks away.
        let database = Arc::new(open_private(path).map_err(failed)?);
        Ok(Files { database, _lock: lock })
    }
}

/// Opens or makes a file that its owner alone may read: the keys that the server signs with are in the database. SQLite's
/// other files take over its mode.
pub(super) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).read(true).write(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The file of the log that SQLite keeps beside the database.
fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

type Statement<'q> = Query<'q, sqlx::Sqlite, SqliteArguments>;

/// A connection whose statements are counted.
struct Connection {
    sqlite: SqliteConnection,
    stats: Arc<Stats>,
    /// A transaction was begun and not finished.
    in_transaction: bool,
}

impl Connection {
    async fn open(options: &SqliteConnectOptions, stats: &Arc<Stats>) -> Result<Self, StoreError> {
        Ok(Connection { sqlite: options.connect().await?, stats: Arc::clone(stats), in_transaction: false })
    }

    /// Brings the database to the newest schema, and returns its revision.
    ///
    /// A new file is made without waiting for the disk: until its first write nobody was promised anything. That write
    /// waits for all before it ([`Sqlite::sync_new_file`]).
    async fn set_up(&mut self, in_file: bool, durability: Durability) -> Result<i64, StoreError> {
        let found = self.fetch_number("PRAGMA user_version").await?;
        let known = MIGRATIONS.len() as i64;
        if found > known {
            return Err(StoreError::NewerSchema { found, known });
        }
        if in_file {
            if found == 0 {
                self.execute(sqlx::query("PRAGMA synchronous = OFF")).await?;
                // So that the file can be shortened; it must be known before the first table.
                self.execute(sqlx::query("PRAGMA auto_vacuum = INCREMENTAL")).await?;
            }
            self.fetch_one(sqlx::query("PRAGMA journal_mode = WAL")).await?;
        }
        let made = usize::try_from(found).unwrap_or_default();
        if made < MIGRATIONS.len() {
            self.begin("BEGIN IMMEDIATE").await?;
            let script = format!("{}\nPRAGMA user_version = {known};", MIGRATIONS[made..].concat());
            let migrated = sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut self.sqlite).await;
            migrated?;
            self.commit().await?;
        }
        let current = self.fetch_number("SELECT current_revision FROM meta").await?;
        let synchronous = match durability {
            Durability::Full if current == FIRST_REVISION => "PRAGMA synchronous = OFF",
            Durability::Full => "PRAGMA synchronous = FULL",
            Durability::Relaxed => "PRAGMA synchronous = NORMAL",
        };
        self.execute(sqlx::query(synchronous)).await?;
        Ok(current)
    }

    /// Begins a transaction. One that was left open, since its caller stopped waiting, is rolled back.
    ///
    /// Not sqlx's transactions: SQLite ends one by itself when the disk is full, after which sqlx believes to be inside it.
    async fn begin(&mut self, statement: &'static str) -> Result<(), StoreError> {
        self.roll_back().await;
        self.in_transaction = true;
        self.execute(sqlx::query(statement)).await?;
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        self.execute(sqlx::query("COMMIT")).await?;
        self.in_transaction = false;
        self.stats.count_commit();
        Ok(())
    }

    /// Ends a transaction that is open. It fails where SQLite has ended it already.
    async fn roll_back(&mut self) {
        if self.in_transaction {
            _ = self.execute(sqlx::query("ROLLBACK")).await;
            self.in_transaction = false;
        }
    }

    /// Returns how many rows were changed.
    async fn execute(&mut self, statement: Statement<'_>) -> Result<u64, StoreError> {
        self.stats.count_statement();
        Ok(statement.execute(&mut self.sqlite).await?.rows_affected())
    }

    async fn fetch_one(&mut self, statement: Statement<'_>) -> Result<SqliteRow, StoreError> {
        self.stats.count_statement();
        Ok(statement.fetch_one(&mut self.sqlite).await?)
    }

    async fn fetch_number(&mut self, statement: &'static str) -> Result<i64, StoreError> {
        Ok(self.fetch_one(sqlx::query(statement)).await?.try_get(0)?)
    }

    async fn fetch_optional(&mut self, statement: Statement<'_>) -> Result<Option<SqliteRow>, StoreError> {
        self.stats.count_statement();
        Ok(statement.fetch_optional(&mut self.sqlite).await?)
    }

    /// Each row is read as it comes, so that none is held twice.
    async fn fetch<T>(
        &mut self,
        statement: Statement<'_>,
        read: impl Fn(&SqliteRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.stats.count_statement();
        let mut rows = statement.fetch(&mut self.sqlite);
        let mut found = Vec::new();
        while let Some(row) = rows.try_next().await? {
            found.push(read(&row)?);
        }
        Ok(found)
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn commit(&self, batch: &[Write]) -> Result<Vec<Outcome>, StoreError> {
        let mut connection = self.writing().await?;
        self.sync_new_file(&mut connection).await?;
        // Immediate: the transaction reads what it then writes, and must not find another writer in between.
        connection.begin("BEGIN IMMEDIATE").await?;
        let outcomes = self.commit_batch(&mut connection, batch).await;
        connection.roll_back().await;
        outcomes
    }

    async fn revisions(&self) -> Result<(Revision, Revision), StoreError> {
        // The connection that writes is there already when a start asks.
        let mut connection = self.writing().await?;
        let row = connection.fetch_one(sqlx::query("SELECT current_revision, compacted_revision FROM meta")).await?;
        Ok((Revision::new(row.try_get(0)?), Revision::new(row.try_get(1)?)))
    }

    async fn load(&self, collection: &Collection) -> Result<(Vec<Stored>, Revision), StoreError> {
        let mut connection = self.reading().await?;
        // Both statements read the same state of the database.
        connection.begin("BEGIN").await?;
        let current = connection.fetch_number("SELECT current_revision FROM meta").await?;
        let objects = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum FROM objects o JOIN changes c ON c.resource_version = o.resource_version \
             WHERE o.resource = ?",
        );
        let objects = connection.fetch(objects.bind(collection.as_str()), |row| read_stored(row, 0)).await;
        connection.roll_back().await;
        Ok((objects?, Revision::new(current)))
    }

    async fn changes_after(&self, collection: &Collection, after: Revision, max: usize) -> Result<Log, StoreError> {
        let mut connection = self.reading().await?;
        let changes = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum, c.operation, p.key, p.resource_version, p.created_version, p.uid, p.stored_version, \
             p.schema_generation, p.bytes, p.expires_at_ms, p.checksum \
             FROM changes c LEFT JOIN changes p ON p.resource_version = c.previous_version \
             WHERE c.resource = ? AND c.resource_version > ? ORDER BY c.resource_version LIMIT ?",
        );
        let changes = changes.bind(collection.as_str()).bind(after.get()).bind(count(max));
        let changes = connection.fetch(changes, |row| read_change(row)).await?;
        let compacted = connection.fetch_number("SELECT compacted_revision FROM meta").await?;
        Ok(Log { changes, compacted: Revision::new(compacted) })
    }

    async fn log_after(&self, after: Revision, max: usize) -> Result<Vec<(Collection, Change)>, StoreError> {
        let mut connection = self.reading().await?;
        let changes = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum, c.operation, p.key, p.resource_version, p.created_version, p.uid, p.stored_version, \
             p.schema_generation, p.bytes, p.expires_at_ms, p.checksum, c.resource \
             FROM changes c LEFT JOIN changes p ON p.resource_version = c.previous_version \
             WHERE c.resource_version > ? ORDER BY c.resource_version LIMIT ?",
        );
        let changes = changes.bind(after.get()).bind(count(max));
        connection.fetch(changes, |row| Ok((read_collection(row, 19)?, read_change(row)?))).await
    }

    async fn read(&self, collection: &Collection, key: &str) -> Result<Option<Stored>, StoreError> {
        let mut connection = self.reading().await?;
        let object = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum FROM objects o JOIN changes c ON c.resource_version = o.resource_version \
             WHERE o.resource = ? AND o.key = ?",
        );
        let row = connection.fetch_optional(object.bind(collection.as_str()).bind(key)).await?;
        row.map(|row| read_stored(&row, 0)).transpose()
    }

    async fn scan(
        &self,
        texts: &[&str; 3],
        after: Revision,
        until: Revision,
        max: usize,
    ) -> Result<Vec<Scanned>, StoreError> {
        let mut connection = self.reading().await?;
        let rows = sqlx::query(
            "SELECT key, resource_version, created_version, uid, stored_version, schema_generation, \
             CASE WHEN found THEN bytes ELSE x'' END, expires_at_ms, checksum, resource, found FROM (SELECT c.*, o.key IS NOT NULL \
             AND (instr(c.bytes, ?) > 0 OR instr(c.bytes, ?) > 0 OR instr(c.bytes, ?) > 0) AS found \
             FROM changes c LEFT JOIN objects o \
             ON o.resource = c.resource AND o.key = c.key AND o.resource_version = c.resource_version \
             WHERE c.resource_version > ? AND c.resource_version <= ? ORDER BY c.resource_version LIMIT ?)",
        );
        let rows = texts.iter().fold(rows, |rows, text| rows.bind(text.as_bytes()));
        let rows = rows.bind(after.get()).bind(until.get()).bind(count(max));
        connection.fetch(rows, |row| read_scanned(row)).await
    }

    fn polled_every(&self) -> Option<Duration> {
        // One process owns the file.
        None
    }

    async fn written_elsewhere(&self) {
        std::future::pending().await
    }

    async fn expired(&self, now_ms: i64) -> Result<Vec<(Collection, Stored)>, StoreError> {
        let mut connection = self.reading().await?;
        let expired = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum, c.resource FROM changes c JOIN objects o ON o.resource = c.resource AND o.key = c.key \
             WHERE c.expires_at_ms <= ? AND o.resource_version = c.resource_version ORDER BY c.expires_at_ms LIMIT ?",
        );
        let expired = expired.bind(now_ms).bind(EXPIRED_MAX);
        connection.fetch(expired, |row| Ok((read_collection(row, 9)?, read_stored(row, 0)?))).await
    }

    async fn compact(&self, to: Revision) -> Result<bool, StoreError> {
        let mut connection = self.writing().await?;
        connection.begin("BEGIN IMMEDIATE").await?;
        let more = compact_step(&mut connection, to).await;
        connection.roll_back().await;
        Ok(more? || return_space(&mut connection).await?)
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
        // The connection that writes is there already when a start asks.
        let mut connection = self.writing().await?;
        let value = sqlx::query("SELECT value FROM secrets WHERE name = ?").bind(name);
        let row = connection.fetch_optional(value).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    async fn lease(&self, name: &str, holder: &str, now_ms: i64, expires_at_ms: i64) -> Result<bool, StoreError> {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        // One that ends later than it may was taken before the clock was set back.
        let latest_ms = expires_at_ms.saturating_add(expires_at_ms.saturating_sub(now_ms));
        let runs = |lease: &Lease| (now_ms + 1..=latest_ms).contains(&lease.expires_at_ms);
        if leases.get(name).is_some_and(|lease| lease.holder != holder && runs(lease)) {
            return Ok(false);
        }
        leases.insert(name.to_owned(), Lease { holder: holder.to_owned(), expires_at_ms });
        Ok(true)
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let reading = match &self.reading {
            Some(reading) => reading.lock().await.take(),
            None => None,
        };
        let writing = self.writing.lock().await.take();
        // The last connection that closes writes the log back into the file. What it does not get to stays in the log, and
        // is read from there.
        for mut connection in reading.into_iter().chain(writing) {
            connection.roll_back().await;
            if let Err(error) = connection.sqlite.close().await {
                tracing::warn!(%error, "the database could not be closed");
            }
        }
        drop(self.files.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl Sqlite {
    /// Decides and makes the writes of a batch, and commits.
    async fn commit_batch(&self, connection: &mut Connection, batch: &[Write]) -> Result<Vec<Outcome>, StoreError> {
        let before = Revision::new(connection.fetch_number("SELECT current_revision FROM meta").await?);
        let mut keys = live_keys(connection, batch).await?;
        let (outcomes, changes) = decide(batch, &mut keys, before);
        let Some(last) = changes.last().map(|change| change.revision) else { return Ok(outcomes) };
        self.insert_changes(connection, &changes).await?;
        let between = |statement: &'static str| sqlx::query(statement).bind(before.get()).bind(last.get());
        connection.execute(between(INDEX)).await?;
        if changes.iter().any(|change| change.put().is_none()) {
            connection.execute(between(UNINDEX).bind(DELETE)).await?;
        }
        connection.execute(sqlx::query("UPDATE meta SET current_revision = ?").bind(last.get())).await?;
        connection.commit().await?;
        self.stats.count_batch(changes.len());
        Ok(outcomes)
    }

    async fn insert_changes(&self, connection: &mut Connection, changes: &[NewChange<'_>]) -> Result<(), StoreError> {
        let batch = self.next_batch();
        for chunk in chunks(changes) {
            let mut statement = sqlx::query(insert_statement(chunk.len()));
            for change in chunk {
                let (write, put) = (change.write, change.put());
                statement = statement
                    .bind(change.revision.get())
                    .bind(Arc::clone(&write.collection.0))
                    .bind(Arc::clone(&write.key))
                    .bind(change.operation())
                    .bind(Arc::clone(&change.uid))
                    .bind(change.created.get())
                    .bind(put.map_or("", |put| &put.stored_version))
                    .bind(put.map_or(0, |put| put.schema_generation))
                    .bind(Arc::clone(&self.writer))
                    .bind(batch)
                    .bind(put.map_or(&[][..], |put| &put.bytes))
                    .bind(change.previous.map(Revision::get))
                    .bind(put.and_then(|put| put.expires_at_ms))
                    .bind(change.checksum());
            }
            connection.execute(statement).await?;
        }
        Ok(())
    }
}

/// The present state of every key that a batch writes or is guarded by.
async fn live_keys(connection: &mut Connection, batch: &[Write]) -> Result<Keys, StoreError> {
    let mut keys = keys_of(batch);
    let wanted: Vec<_> = keys.keys().cloned().collect();
    for chunk in wanted.chunks(KEYS[0]) {
        let size = KEYS.into_iter().rev().find(|size| *size >= chunk.len()).unwrap_or(KEYS[0]);
        let mut statement = sqlx::query(live_statement(size));
        for at in 0..size {
            let wanted = chunk.get(at);
            statement = statement
                .bind(wanted.map(|(collection, _)| Arc::clone(&collection.0)))
                .bind(wanted.map(|(_, key)| Arc::clone(key)));
        }
        let found = connection.fetch(statement, |row| {
            let live = Live { revision: read_revision(row, 2)?, created: read_revision(row, 3)?, uid: row.text(4)? };
            Ok(((read_collection(row, 0)?, row.text(1)?), Some(live)))
        });
        keys.extend(found.await?);
    }
    Ok(keys)
}

/// Removes what was superseded by the next revisions up to `to`; true while there is more to do.
async fn compact_step(connection: &mut Connection, to: Revision) -> Result<bool, StoreError> {
    let from = connection.fetch_number("SELECT compacted_revision FROM meta").await?;
    let until = to.get().min(from.saturating_add(COMPACT_STEP));
    if until <= from {
        return Ok(false);
    }
    // A row goes once the change that superseded it is compacted: so no live row goes, nor one that a change which is still
    // to be read names as its previous.
    let superseded = sqlx::query(
        "DELETE FROM changes WHERE resource_version IN (SELECT previous_version FROM changes \
         WHERE resource_version > ? AND resource_version <= ? AND previous_version IS NOT NULL)",
    );
    connection.execute(superseded.bind(from).bind(until)).await?;
    let deletions =
        sqlx::query("DELETE FROM changes WHERE resource_version > ? AND resource_version <= ? AND operation = ?");
    connection.execute(deletions.bind(from).bind(until).bind(DELETE)).await?;
    connection.execute(sqlx::query("UPDATE meta SET compacted_revision = ?").bind(until)).await?;
    connection.commit().await?;
    Ok(until < to.get())
}

/// Shortens the file by a few of its free pages; true while there are many left. Some stay: the next writes need them.
async fn return_space(connection: &mut Connection) -> Result<bool, StoreError> {
    let free = connection.fetch_number("PRAGMA freelist_count").await?;
    let all = connection.fetch_number("PRAGMA page_count").await?;
    if free <= FREE_PAGES_MIN || free <= all / FREE_SHARE {
        return Ok(false);
    }
    connection.fetch(sqlx::query("PRAGMA incremental_vacuum(256)"), |_| Ok(())).await?;
    let left = connection.fetch_number("PRAGMA freelist_count").await?;
    // A file of before has no map of its pages, and keeps them.
    Ok(left < free)
}

/// `items` in runs of the fixed sizes, largest first.
fn chunks<T>(items: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = items;
    std::iter::from_fn(move || {
        let size = ROWS.into_iter().find(|size| *size <= rest.len())?;
        let (chunk, behind) = rest.split_at(size);
        rest = behind;
        Some(chunk)
    })
}

fn tuples(rows: usize, columns: usize) -> String {
    let tuple = format!("({})", vec!["?"; columns].join(","));
    vec![tuple; rows].join(",")
}

/// The text for one of the fixed sizes, made once.
fn sized(
    texts: &'static OnceLock<[String; 4]>,
    sizes: [usize; 4],
    size: usize,
    text: impl Fn(usize) -> String,
) -> &'static str {
    let texts = texts.get_or_init(|| sizes.map(text));
    let at = sizes.iter().position(|known| *known == size).expect("callers take one of the sizes");
    &texts[at]
}

fn live_statement(keys: usize) -> &'static str {
    static TEXTS: OnceLock<[String; 4]> = OnceLock::new();
    // A cross join keeps its order: for each wanted key one look-up in the index, never a scan of it.
    sized(&TEXTS, KEYS, keys, |keys| {
        format!(
            "WITH wanted (resource, key) AS (VALUES {}) \
             SELECT o.resource, o.key, o.resource_version, c.created_version, c.uid FROM wanted w \
             CROSS JOIN objects o ON o.resource = w.resource AND o.key = w.key \
             CROSS JOIN changes c ON c.resource_version = o.resource_version",
            tuples(keys, 2)
        )
    })
}

fn insert_statement(rows: usize) -> &'static str {
    static TEXTS: OnceLock<[String; 4]> = OnceLock::new();
    sized(&TEXTS, ROWS, rows, |rows| {
        format!("INSERT INTO changes ({CHANGE_COLUMNS}) VALUES {}", tuples(rows, CHANGE_COLUMN_COUNT))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn in_memory() -> Sqlite {
        Sqlite::open(None, Durability::Full).await.expect("a database in memory opens")
    }

    #[tokio::test]
    async fn no_statement_of_a_commit_scans_the_index() {
        let sqlite = in_memory().await;
        let mut connection = sqlite.writing().await.expect("it is open");
        for statement in KEYS.map(live_statement).into_iter().chain([INDEX, UNINDEX]) {
            let explain = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}")));
            let plan = connection.fetch(explain, |row| Ok(row.try_get::<String, _>(3)?)).await.expect("it explains");
            let scans = plan.iter().any(|step| step.starts_with("SCAN o") || step.starts_with("SCAN changes"));
            assert!(!scans, "{statement}: {plan:?}");
        }
    }

    fn put(key: &str, bytes: usize) -> Write {
        let op = crate::store::Op::Put(crate::store::Put {
            bytes: vec![b' '; bytes].into(),
            uid: "u".into(),
            stored_version: "v1".into(),
            schema_generation: 1,
            expires_at_ms: None,
        });
        Write { collection: Collection::new("", "things"), key: key.into(), op, guards: Vec::new() }
    }

    #[tokio::test]
    async fn writing_goes_on_once_there_is_room_again() {
        let sqlite = in_memory().await;
        let limit = async |statement: &'static str| {
            let mut connection = sqlite.writing().await.expect("it is open");
            connection.fetch_one(sqlx::query(statement)).await.expect("the limit is set");
        };
        sqlite.commit(&[put("a", 10)]).await.expect("there is room");
        let before = sqlite.revisions().await.expect("it reads");
        limit("PRAGMA max_page_count = 20").await;
        let full = sqlite.commit(&[put("b", 10), put("c", 200_000)]).await.expect_err("there is no room");
        assert!(matches!(full, StoreError::DiskFull), "{full}");
        assert_eq!(sqlite.revisions().await.expect("it reads"), before);
        limit("PRAGMA max_page_count = 1000").await;
        sqlite.commit(&[put("b", 10), put("c", 200_000)]).await.expect("there is room");
        let (things, _) = sqlite.load(&Collection::new("", "things")).await.expect("it reads");
        assert_eq!(things.len(), 3);
    }

    #[tokio::test]
    async fn a_transaction_that_was_left_open_is_taken_back() {
        let sqlite = in_memory().await;
        {
            let mut connection = sqlite.writing().await.expect("it is open");
            connection.begin("BEGIN IMMEDIATE").await.expect("it begins");
            connection.execute(sqlx::query("UPDATE meta SET current_revision = 99")).await.expect("it updates");
        }
        let outcomes = sqlite.commit(&[put("a", 10)]).await.expect("it commits");
        let revision = Revision::new(FIRST_REVISION).next();
        assert_eq!(outcomes, [Outcome::Committed { revision, created: revision, uid: "u".into() }]);
    }

    #[tokio::test]
    async fn a_lease_from_before_the_clock_was_set_back_is_over() {
        let sqlite = in_memory().await;
        let take = async |holder: &str, now_ms: i64| {
            sqlite.lease("controllers", holder, now_ms, now_ms + 15_000).await.expect("it answers")
        };
        assert!(take("one", 7_200_000).await);
        assert!(!take("two", 7_201_000).await);
        assert!(!take("two", 7_199_000).await, "a second is no reason");
        assert!(take("two", 0).await);
    }
}
