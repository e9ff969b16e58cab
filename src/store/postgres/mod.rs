//! The log in Postgres, which several processes share.
//!
//! Isolation is READ COMMITTED. A transaction that writes locks the counter row in its first statement, alone, and
//! reads guards in a later one: a single statement for both would read a snapshot older than the lock. Or it is a
//! single statement that changes nothing unless the counter is the one that its writes were decided at, and needs no
//! newer snapshot. So transactions follow one another, and revisions become visible in their order and without gaps.
//!
//! A process that stops in the middle can't stop the others: the server ends its session once it has been idle in a
//! transaction for [`IDLE_MAX`], while the others wait for the lock up to [`LOCK_WAIT`]. A COMMIT whose answer is lost
//! is looked up, under the lock and with a new fence, so that it can't take place afterwards.
//!
//! # How a batch is committed
//!
//! - On Postgres (`store::postgres`) transactions follow one another, so a snapshot of the database shows a prefix of
//!   the log. A writer updates the counter's row under the condition above. One statement does that and all the rest,
//!   in one round trip and as its own transaction: it may read a snapshot from before it waited for the row, but if the
//!   counter is still the one that it was sent with, that snapshot lacks nothing. A frozen process then holds no locks.
//! - If other processes write as well, the condition would usually fail. A process for which it failed sends batches of
//!   four messages: BEGIN with the counter's lock, first and alone; a read of the current state, as a later statement,
//!   since a statement reads a snapshot from before it waited; the writing statement; COMMIT. Once it finds that no
//!   other process has written since its last batch, it returns to one message. A session that is idle in a transaction
//!   for 5 s is ended by the server; the others wait for the lock up to 10 s.
//! - If the answer is lost, the batch is looked up in `writers`, under the counter's lock: a session that still holds
//!   it ends first. The message may still be on its way, or waiting for the lock: so a look-up that finds nothing
//!   raises `fence`, which is part of the condition.
//! - On Postgres, writing statements are planned once (`plan_cache_mode`): planning each time took as long as
//!   executing. Reads of the end of the log are planned for the actual revision, or a poll would scan a third of the
//!   table. The bytes are compressed by lz4 if the server has it, several times faster than by pglz; pages of `objects`
//!   are half empty, so that an update does not touch the index.
//! - A process that shares its database polls the log when it is notified of a write (NOTIFY), and each second. A
//!   request for the newest state, and one whose guard failed, polls first (`Storage::catch_up`); those that arrive
//!   meanwhile share the next poll. A read with a revision does not poll. If the log no longer reaches back to the
//!   view, because the process was frozen or cut off for longer than states are kept, a deletion may be missing: the
//!   view starts over, and watches end. The same happens if the log ends before the view, because the database lost
//!   what it had acknowledged (`--durability relaxed`, or a standby that was behind). If another process writes as many
//!   changes again before that is noticed, it remains hidden: revisions have no identity besides their number.
//! - The compacted revision has its own row, separate from the counter: compaction and writers never wait for one
//!   another.

mod commit;
mod session;
mod url;

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::query::Query;
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::meta::Revision;

use super::backend::{LogPart, Stats, Store, WholeLog};
use super::batch::Foreseen;
use super::batch::WriteOutcome;
use super::key_range::KeyRange;
use super::objects::{Objects, by_key};
use super::page_max::PageMax;
use super::part::{PartRows, ReadPart};
use super::rows::DELETE;
use super::rows::Scanned;
use super::rows::{
    LogRow as _, count, read_change, read_collection, read_event, read_number, read_or_damaged, read_revision,
    read_scanned,
};
use super::{Collection, Durability, Guard, StoreError, Stored, Write};
use commit::Writing;
use session::{connect, listen, migrate};
pub use url::PostgresUrl;

/// Postgres 15, in the server's own version numbers.
const VERSION_MIN: u32 = 15_00_00;

/// How long a session may do nothing inside a transaction before the server ends it.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// How long a statement waits for a lock: longer than the holder of the lock may be idle.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// How often the log is polled, in case a notification is lost.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// How many revisions one step of compaction covers.
const COMPACT_STEP: i64 = 256;
/// How long the resource and the key of an object may be together: an entry of an index has at most 2,704 bytes.
const KEY_BYTES_MAX: usize = 2_500;
/// How many expired objects are looked for at a time.
const EXPIRED_MAX: i64 = 500;

/// A Postgres database.
pub struct Postgres {
    /// For the connection that writes.
    options: PgConnectOptions,
    connect_max: Duration,
    writing: Mutex<Writing>,
    reading: PgPool,
    stats: Arc<Stats>,
    /// Identifies the process that wrote a batch.
    writer: Arc<str>,
    batch: AtomicI64,
    written_elsewhere: Arc<Notify>,
    listening: SyncMutex<Option<JoinHandle<()>>>,
}

impl Postgres {
    /// Connects, and migrates the database to the newest schema.
    ///
    /// Errors: the database can't be reached, is older than Postgres 15, or was written by a newer program.
    pub async fn open(url: &PostgresUrl, durability: Durability) -> Result<Self, StoreError> {
        let (options, pool) = url.options()?;
        let milliseconds = |duration: Duration| duration.as_millis().to_string();
        let options = options.options([
            ("default_transaction_isolation", "read committed"),
            // No statement runs so long that compiling it would pay off.
            ("jit", "off"),
            ("lock_timeout", &milliseconds(LOCK_WAIT)),
            ("idle_in_transaction_session_timeout", &milliseconds(IDLE_MAX)),
            (
                "synchronous_commit",
                match durability {
                    Durability::Full => "on",
                    Durability::Relaxed | Durability::Unsynced => "off",
                },
            ),
        ]);
        let writing = options.clone().options([
            // The plans of writing statements don't depend on their parameters, and take longer to make than to
            // execute. Those of reads do: the log after its end is empty, but after an unknown revision the planner
            // assumes a third of the table.
            ("plan_cache_mode", "force_generic_plan"),
            // A batch looks up rows by their keys, however small a table was when the plan was made.
            ("enable_seqscan", "off"),
        ]);
        let mut first = connect(&writing, pool.connect_max).await?;
        let found = first.server_version_num().unwrap_or_default();
        if found < VERSION_MIN {
            return Err(StoreError::TooOld { found: found / 10_000, least: VERSION_MIN / 10_000 });
        }
        let stats = Arc::new(Stats::default());
        migrate(&mut first, &stats).await?;
        let reading = PgPoolOptions::new()
            .max_connections(pool.max)
            .acquire_timeout(pool.connect_max)
            .connect_lazy_with(options.clone());
        let writer: Arc<str> = Uuid::new_v4().to_string().into();
        let written_elsewhere = Arc::new(Notify::new());
        let listening = listen(options.clone(), Arc::clone(&writer), Arc::clone(&written_elsewhere));
        Ok(Postgres {
            options: writing,
            connect_max: pool.connect_max,
            writing: Mutex::new(Writing::new(first)),
            reading,
            stats,
            writer,
            batch: AtomicI64::new(0),
            written_elsewhere,
            listening: SyncMutex::new(Some(tokio::spawn(listening))),
        })
    }

    /// A separate connection, for one-time operations.
    pub async fn connect_once(url: &PostgresUrl) -> Result<PgConnection, StoreError> {
        let (options, pool) = url.options()?;
        connect(&options, pool.connect_max).await
    }

    /// Reads rows one by one as they arrive, so that none is in memory twice.
    async fn fetch<T>(
        &self,
        statement: Query<'_, sqlx::Postgres, PgArguments>,
        read: impl Fn(&PgRow) -> Result<T, StoreError> + Send,
    ) -> Result<Vec<T>, StoreError> {
        let all = self.fetch_while(statement, move |row| read(row).map(Some)).await?;
        Ok(all.unwrap_or_default())
    }

    /// All rows; `None` if `read` stops early. The rest is then discarded by the next user of the connection.
    async fn fetch_while<T>(
        &self,
        statement: Query<'_, sqlx::Postgres, PgArguments>,
        mut read: impl FnMut(&PgRow) -> Result<Option<T>, StoreError> + Send,
    ) -> Result<Option<Vec<T>>, StoreError> {
        self.stats.count_statement();
        let mut rows = statement.fetch(&self.reading);
        let mut found = Vec::new();
        while let Some(row) = rows.try_next().await? {
            match read(&row)? {
                Some(value) => found.push(value),
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }
}

/// A statement about the live objects of a collection in a range of keys, with the parameters of [`bind_range`]: one text
/// for ranges with an end and one for others, so that either is found by the index.
macro_rules! in_range {
    ($range:expr, $before:literal, $after:literal) => {
        match $range.end() {
            Some(_) => concat!(
                $before,
                "o.resource = $1 AND o.key >= $2 AND (NOT $3 OR o.key <> $2) AND o.key <= $4 AND (NOT $5 OR o.key <> $4)",
                $after
            ),
            None => concat!(
                $before,
                "o.resource = $1 AND o.key >= $2 AND (NOT $3 OR o.key <> $2) AND $4::text IS NULL AND NOT $5",
                $after
            ),
        }
    };
}

#[async_trait]
impl Store for Postgres {
    async fn commit(&self, batch: &[Write], foreseen: Option<Foreseen>) -> Result<Vec<WriteOutcome>, StoreError> {
        self.commit_batch(batch, foreseen).await
    }

    fn check_key(&self, write: &Write) -> Result<(), StoreError> {
        if !is_text(&write.key) {
            return Err(StoreError::Name("Postgres takes no U+0000 in texts"));
        }
        // An object may be there under a longer key, which Postgres could compress.
        let is_long = write.collection.as_str().len() + write.key.len() > KEY_BYTES_MAX;
        if is_long && write.guards.contains(&Guard::Absent) {
            return Err(StoreError::Name("it is longer than Postgres can index"));
        }
        Ok(())
    }

    async fn revisions(&self) -> Result<(Revision, Revision), StoreError> {
        let revisions = sqlx::query("SELECT current_revision, compacted_revision FROM counter, compaction");
        let read = |row: &PgRow| Ok((read_revision(row, 0)?, read_revision(row, 1)?));
        let revisions = self.fetch(revisions, read).await?;
        revisions.first().copied().ok_or_else(|| StoreError::Statement(Arc::new(sqlx::Error::RowNotFound)))
    }

    async fn load_within(
        &self,
        collection: &Collection,
        bytes_max: usize,
    ) -> Result<Option<(Objects, Revision)>, StoreError> {
        // One statement reads one state of the database. If there are no objects, there is one row with only the
        // revision.
        let objects = sqlx::query(
            "SELECT live.*, counter.current_revision FROM counter LEFT JOIN (SELECT c.key, c.resource_version, \
             c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, c.expires_at_ms, c.checksum FROM objects o \
             JOIN changes c ON c.resource_version = o.resource_version WHERE o.resource = $1) live ON true",
        );
        let mut bytes = 0_usize;
        let rows = self.fetch_while(objects.bind(collection.as_str()), |row| {
            let stored = match row.number(1)? {
                Some(_) => Some(read_or_damaged(row, 0)?),
                None => None,
            };
            bytes = bytes.saturating_add(stored.as_ref().map_or(0, |stored| stored.bytes.len()));
            let revision = read_revision(row, 9)?;
            Ok((bytes <= bytes_max).then_some((stored, revision)))
        });
        let Some(rows) = rows.await? else { return Ok(None) };
        let revision = rows.first().map(|(_, revision)| *revision).unwrap_or_default();
        Ok(Some((by_key(rows.into_iter().filter_map(|(stored, _)| stored).collect()), revision)))
    }

    async fn read_part(&self, collection: &Collection, range: &KeyRange, max: PageMax) -> Result<ReadPart, StoreError> {
        // One statement reads one state of the database, as when all is loaded. It returns the objects until they have more
        // bytes than wanted, and at least two: the second shows that others follow, and those after that are not sent.
        let objects = in_range!(
            range,
            "SELECT live.*, counter.current_revision FROM counter LEFT JOIN (SELECT c.key, c.resource_version, \
             c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, c.expires_at_ms, c.checksum FROM \
             (SELECT o.key, o.resource_version, row_number() OVER (ORDER BY o.key) AS number, sum(octet_length(c.bytes)) \
             OVER (ORDER BY o.key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before \
             FROM objects o JOIN changes c ON c.resource_version = o.resource_version WHERE ",
            " ORDER BY o.key LIMIT $6) o JOIN changes c ON c.resource_version = o.resource_version \
             WHERE o.number <= 2 OR o.bytes_before <= $7) live ON true ORDER BY live.key"
        );
        // One more than wanted shows that others follow.
        let rows_max = i64::try_from(max.changes).unwrap_or(i64::MAX).saturating_add(1);
        let bytes_max = i64::try_from(max.bytes).unwrap_or(i64::MAX);
        let objects = bind_range(sqlx::query(objects), collection, range).bind(rows_max).bind(bytes_max);
        let (mut part, mut revision) = (PartRows::new(max), Revision::default());
        let rows = self.fetch_while(objects, |row| {
            revision = read_revision(row, 9)?;
            match row.number(1)? {
                Some(_) => Ok(part.take(read_or_damaged(row, 0)?.into())),
                None => Ok(Some(())),
            }
        });
        let is_cut = rows.await?.is_none();
        Ok(ReadPart { objects: part.objects, revision, is_cut })
    }

    async fn size_bytes(&self, collection: &Collection, range: &KeyRange) -> Result<Option<usize>, StoreError> {
        // The length of a value is stored with it, so no value is read.
        let size = in_range!(
            range,
            "SELECT COALESCE(SUM(octet_length(c.bytes)), 0)::bigint FROM objects o \
             JOIN changes c ON c.resource_version = o.resource_version WHERE ",
            ""
        );
        let sizes = self.fetch(bind_range(sqlx::query(size), collection, range), |row| row.number(0)).await?;
        Ok(sizes.first().copied().flatten().and_then(|size| usize::try_from(size).ok()))
    }

    async fn changes_after(
        &self,
        collection: &Collection,
        after: Revision,
        max: PageMax,
    ) -> Result<LogPart, StoreError> {
        let changes = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum, c.operation, p.key, p.resource_version, p.created_version, p.uid, p.stored_version, \
             p.schema_generation, p.bytes, p.expires_at_ms, p.checksum \
             FROM changes c LEFT JOIN changes p ON p.resource_version = c.previous_version \
             WHERE c.resource = $1 AND c.resource_version > $2 AND c.resource_version <= (SELECT max(revision) FROM \
             (SELECT c.resource_version AS revision, sum(octet_length(c.bytes) + coalesce(octet_length(p.bytes), 0)) OVER \
             (ORDER BY c.resource_version ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before \
             FROM changes c LEFT JOIN changes p ON p.resource_version = c.previous_version \
             WHERE c.resource = $1 AND c.resource_version > $2 ORDER BY c.resource_version LIMIT $3) sizes \
             WHERE coalesce(bytes_before, 0) < $4) ORDER BY c.resource_version",
        );
        let changes = changes.bind(collection.as_str()).bind(after.get());
        let changes = changes.bind(count(max.changes)).bind(count(max.bytes));
        let changes = self.fetch(changes, |row| read_change(row)).await?;
        let (_, compacted) = self.revisions().await?;
        Ok(LogPart { changes, compacted })
    }

    async fn log_after(&self, after: Revision, max: PageMax) -> Result<WholeLog, StoreError> {
        // One statement reads one state of the database. If there are no changes, there is one row with only the
        // revisions.
        let log = sqlx::query(
            "SELECT log.*, current_revision, compacted_revision FROM counter CROSS JOIN compaction LEFT JOIN \
             (SELECT key, resource_version, created_version, uid, stored_version, schema_generation, bytes, expires_at_ms, \
             checksum, operation, resource FROM changes \
             WHERE resource_version > $1 AND resource_version <= (SELECT max(resource_version) FROM \
             (SELECT resource_version, sum(octet_length(bytes)) OVER \
             (ORDER BY resource_version ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before \
             FROM changes WHERE resource_version > $1 ORDER BY resource_version LIMIT $2) sizes \
             WHERE coalesce(bytes_before, 0) < $3)) log ON true \
             WHERE counter.id = 1 AND compaction.id = 1 ORDER BY log.resource_version",
        );
        let log = log.bind(after.get()).bind(count(max.changes)).bind(count(max.bytes));
        let rows = self.fetch(log, |row| {
            let change = match row.number(1)? {
                Some(_) => Some(read_event(row)?),
                None => None,
            };
            Ok((change, read_revision(row, 11)?, read_revision(row, 12)?))
        });
        let rows = rows.await?;
        let &(_, newest, compacted) =
            rows.first().ok_or_else(|| StoreError::Statement(Arc::new(sqlx::Error::RowNotFound)))?;
        Ok(WholeLog { changes: rows.into_iter().filter_map(|(change, ..)| change).collect(), newest, compacted })
    }

    async fn read(&self, collection: &Collection, key: &str) -> Result<Option<Arc<Stored>>, StoreError> {
        if !is_text(key) {
            return Ok(None);
        }
        let object = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum FROM objects o JOIN changes c ON c.resource_version = o.resource_version \
             WHERE o.resource = $1 AND o.key = $2",
        );
        let found = self.fetch(object.bind(collection.as_str()).bind(key), |row| read_or_damaged(row, 0)).await?;
        Ok(found.into_iter().next().map(Arc::new))
    }

    async fn scan(
        &self,
        texts: &[&str; 3],
        after: Revision,
        until: Revision,
        max: PageMax,
    ) -> Result<Vec<Scanned>, StoreError> {
        let rows = sqlx::query(
            "SELECT key, resource_version, created_version, uid, stored_version, schema_generation, \
             CASE WHEN found THEN bytes ELSE ''::bytea END, expires_at_ms, checksum, resource, found::int::bigint FROM (SELECT c.*, \
             CASE WHEN o.key IS NULL THEN false \
             ELSE position($1 in c.bytes) > 0 OR position($2 in c.bytes) > 0 OR position($3 in c.bytes) > 0 END AS found \
             FROM (SELECT *, sum(octet_length(bytes)) OVER \
             (ORDER BY resource_version ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before FROM changes \
             WHERE resource_version > $4 AND resource_version <= $5 ORDER BY resource_version LIMIT $6) c \
             LEFT JOIN objects o \
             ON o.resource = c.resource AND o.key = c.key AND o.resource_version = c.resource_version \
             WHERE coalesce(c.bytes_before, 0) < $7) page ORDER BY resource_version",
        );
        let rows = texts.iter().fold(rows, |rows, text| rows.bind(text.as_bytes()));
        let rows = rows.bind(after.get()).bind(until.get());
        let rows = rows.bind(count(max.changes)).bind(count(max.bytes));
        self.fetch(rows, |row| read_scanned(row)).await
    }

    fn polled_every(&self) -> Option<Duration> {
        Some(POLL_EVERY)
    }

    async fn written_elsewhere(&self) {
        self.written_elsewhere.notified().await;
    }

    async fn expired(&self, now_ms: i64) -> Result<Vec<(Collection, Arc<str>, Revision)>, StoreError> {
        let expired = sqlx::query(
            "SELECT c.resource, c.key, c.resource_version FROM changes c \
             JOIN objects o ON o.resource = c.resource AND o.key = c.key WHERE c.expires_at_ms <= $1 AND o.resource_version = c.resource_version ORDER BY c.expires_at_ms LIMIT $2",
        );
        let expired = expired.bind(now_ms).bind(EXPIRED_MAX);
        self.fetch(expired, |row| Ok((read_collection(row, 0)?, row.text(1)?, read_revision(row, 2)?))).await
    }

    async fn note_time(&self, revision: Revision, age: Duration) -> Result<(), StoreError> {
        let noted = sqlx::query(
            "INSERT INTO revision_times (resource_version, newest_at) \
             VALUES ($1, clock_timestamp() - $2 * interval '1 millisecond') ON CONFLICT DO NOTHING",
        );
        let age_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        noted.bind(revision.get()).bind(age_ms).execute(&self.reading).await?;
        self.stats.count_commit();
        Ok(())
    }

    async fn noted_times(&self) -> Result<Vec<(Revision, Duration)>, StoreError> {
        // By the database's clock. What was noted before it was set back is new.
        let noted = sqlx::query(
            "SELECT resource_version, \
             greatest(0, extract(epoch FROM clock_timestamp() - newest_at) * 1000)::bigint \
             FROM revision_times WHERE resource_version > (SELECT compacted_revision FROM compaction) \
             ORDER BY resource_version",
        );
        let age = |ms: i64| Duration::from_millis(ms.unsigned_abs());
        self.fetch(noted, |row| Ok((read_revision(row, 0)?, age(read_number(row, 1)?)))).await
    }

    async fn compact(&self, to: Revision) -> Result<bool, StoreError> {
        let mut transaction = self.reading.begin().await?;
        // A process that finds the row locked leaves the work to the holder of the lock.
        let from = sqlx::query("SELECT compacted_revision FROM compaction WHERE id = 1 FOR UPDATE SKIP LOCKED");
        let Some(from) = from.fetch_optional(&mut *transaction).await? else { return Ok(false) };
        let from = read_number(&from, 0)?;
        let until = to.get().min(from.saturating_add(COMPACT_STEP));
        if until <= from {
            return Ok(false);
        }
        // A row is removed once the change that superseded it is compacted: so no live row is removed, and none that is
        // still the previous state of a readable change.
        let superseded = sqlx::query(
            "DELETE FROM changes WHERE resource_version IN (SELECT previous_version FROM changes \
             WHERE resource_version > $1 AND resource_version <= $2 AND previous_version IS NOT NULL)",
        );
        superseded.bind(from).bind(until).execute(&mut *transaction).await?;
        let deletions = sqlx::query(
            "DELETE FROM changes WHERE resource_version > $1 AND resource_version <= $2 AND operation = $3",
        );
        deletions.bind(from).bind(until).bind(DELETE).execute(&mut *transaction).await?;
        let compacted = sqlx::query("UPDATE compaction SET compacted_revision = $1");
        compacted.bind(until).execute(&mut *transaction).await?;
        let noted = sqlx::query("DELETE FROM revision_times WHERE resource_version <= $1");
        noted.bind(until).execute(&mut *transaction).await?;
        transaction.commit().await?;
        self.stats.count_commit();
        Ok(until < to.get())
    }

    async fn secret(&self, name: &str, made: &[u8]) -> Result<Vec<u8>, StoreError> {
        let insert = sqlx::query("INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING");
        insert.bind(name).bind(made).execute(&self.reading).await?;
        let value = self.read_secret(name).await?;
        value.ok_or_else(|| StoreError::Statement(Arc::new(sqlx::Error::RowNotFound)))
    }

    async fn read_secret(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let value = sqlx::query("SELECT value FROM secrets WHERE name = $1").bind(name);
        let values = self.fetch(value, |row| Ok(row.blob(0)?.to_vec())).await?;
        Ok(values.into_iter().next())
    }

    async fn secrets(&self) -> Result<Vec<(Arc<str>, Vec<u8>)>, StoreError> {
        let all = sqlx::query("SELECT name, value FROM secrets");
        self.fetch(all, |row| Ok((row.text(0)?, row.blob(1)?.to_vec()))).await
    }

    async fn lease(&self, name: &str, holder: &str, now_ms: i64, expires_at_ms: i64) -> Result<bool, StoreError> {
        // By the database's clock, as the clients' clocks differ. A lease that ends later than a new one would was
        // taken before that clock was set back.
        let taken = sqlx::query(
            "INSERT INTO leases (name, holder, writer, expires_at) \
             VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond') \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, writer = excluded.writer, \
             expires_at = excluded.expires_at \
             WHERE leases.holder = excluded.holder OR leases.expires_at <= clock_timestamp() \
             OR leases.expires_at > clock_timestamp() + $4 * interval '2 milliseconds'",
        );
        let ttl_ms = expires_at_ms.saturating_sub(now_ms);
        let taken = taken.bind(name).bind(holder).bind(Arc::clone(&self.writer)).bind(ttl_ms);
        self.stats.count_statement();
        Ok(taken.execute(&self.reading).await?.rows_affected() > 0)
    }

    async fn try_writing(&self) -> Result<(), StoreError> {
        let written = sqlx::query("UPDATE compaction SET compacted_revision = compacted_revision");
        written.execute(&self.reading).await?;
        Ok(())
    }

    async fn close(&self) {
        if let Some(listening) = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take() {
            listening.abort();
        }
        // So the next process need not wait for leases to expire.
        let leases = sqlx::query("DELETE FROM leases WHERE writer = $1").bind(Arc::clone(&self.writer));
        if let Err(error) = leases.execute(&self.reading).await {
            tracing::warn!(%error, "leases could not be given back, they run out by themselves");
        }
        self.reading.close().await;
        self.writing.lock().await.close().await;
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

/// Whether Postgres takes a text as such.
fn is_text(key: &str) -> bool {
    !key.contains('\0')
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(listening) = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take() {
            listening.abort();
        }
    }
}

/// Binds a collection and the ends of a range of its keys, each with whether its key is outside the range.
fn bind_range<'q>(
    statement: Query<'q, sqlx::Postgres, PgArguments>,
    collection: &'q Collection,
    range: &'q KeyRange,
) -> Query<'q, sqlx::Postgres, PgArguments> {
    // No key and no text of Postgres has a U+0000: the first key after `a` and before `a\0` is that after `a`.
    let cut = |bound: &'q str| bound.split_once('\0').map_or((bound, false), |(before, _)| (before, true));
    let (from, is_after) = cut(range.from());
    let end = range.end().map(cut);
    let is_before = end.is_some_and(|(_, is_cut)| !is_cut);
    let statement = statement.bind(collection.as_str()).bind(from).bind(is_after);
    statement.bind(end.map(|(end, _)| end)).bind(is_before)
}
