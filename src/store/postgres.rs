//! The log in Postgres, which several processes share.
//!
//! Isolation is READ COMMITTED. A transaction that writes locks the counter row in its first statement, alone, and reads
//! guards in a later one: one statement that did both would read a snapshot older than the lock. So transactions follow one
//! another, and revisions become visible in their order and without gaps.
//!
//! A process that stops in the middle can't stop the others: the server ends its session once it has been idle in a
//! transaction for [`IDLE_MAX`], while the others wait for the lock up to [`LOCK_WAIT`]. A COMMIT whose answer is lost is
//! looked up, under the lock, so that it can't take place afterwards.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgListener, PgPool, PgPoolOptions, PgRow};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;

use crate::meta::Revision;

use super::batch::{DELETE, Keys, Live, NewChange, decide, keys_of};
use super::rows::{
    LogRow as _, count, read_change, read_collection, read_number, read_revision, read_scanned, read_stored,
};
use super::sql::{Log, Outcome, Scanned, Stats, Store};
use super::{Change, Collection, Durability, StoreError, Stored, Write};

/// Each migration once, in order; `schema_version` counts those made.
const MIGRATIONS: [&str; 1] = [include_str!("../../migrations/postgres/0001_log.sql")];
/// The key of the advisory lock that a process takes while it migrates: "skiff" in ASCII.
const MIGRATION_LOCK: i64 = 0x73_6b_69_66_66;
/// Postgres 15, as the server numbers its versions.
const VERSION_MIN: u32 = 15_00_00;

/// How long a session may do nothing inside a transaction before the server ends it.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// How long a statement waits for a lock: longer than who holds it may do nothing.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// How long a batch is tried again while the database can't be reached.
const RETRY_MAX: Duration = Duration::from_secs(10);
/// How long the outcome of a cut COMMIT is looked up.
const LOOK_UP_MAX: Duration = Duration::from_secs(60);
/// The first and the longest pause before the database is tried again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// How often the log is polled, should a notification be lost.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Where who has written says so; the payload is the writer.
const CHANNEL: &str = "skiff_log";
/// How many connections read at a time, unless the URL says otherwise.
const POOL_MAX: u32 = 8;
/// How long a connection may take to be made, unless the URL says otherwise.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How many revisions one step of compaction looks at.
const COMPACT_STEP: i64 = 256;
/// How many expired objects are looked for at a time.
const EXPIRED_MAX: i64 = 500;

/// Begins a transaction and locks the counter: two statements in one message, each with a snapshot of its own.
const BEGIN: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT current_revision FROM counter WHERE id = 1 FOR UPDATE";
const LIVE: &str = "SELECT o.resource, o.key, o.resource_version, c.created_version, c.uid \
                    FROM unnest($1::text[], $2::text[]) AS wanted (resource, key) \
                    JOIN objects o ON o.resource = wanted.resource COLLATE \"C\" AND o.key = wanted.key COLLATE \"C\" \
                    JOIN changes c ON c.resource_version = o.resource_version";
/// All that a batch changes, in one statement: its parts change different rows.
const WRITE: &str = "\
    WITH logged AS (INSERT INTO changes (resource_version, resource, key, operation, uid, created_version, stored_version, \
        schema_generation, bytes, previous_version, expires_at_ms, checksum, writer, batch) \
        SELECT new.*, $12, $13 FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], \
        $7::text[], $8::bigint[], $9::bytea[], $10::bigint[], $11::bigint[], $20::bigint[]) AS new), \
    indexed AS (INSERT INTO objects (resource, key, resource_version) \
        SELECT * FROM unnest($14::text[], $15::text[], $16::bigint[]) \
        ON CONFLICT (resource, key) DO UPDATE SET resource_version = excluded.resource_version), \
    gone AS (DELETE FROM objects USING unnest($17::text[], $18::text[]) AS deleted (resource, key) \
        WHERE objects.resource = deleted.resource COLLATE \"C\" AND objects.key = deleted.key COLLATE \"C\"), \
    made AS (INSERT INTO writers (writer, batch) VALUES ($12, $13) \
        ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, written_at = now()), \
    told AS (SELECT pg_notify('skiff_log', $12)) \
    UPDATE counter SET current_revision = $19 FROM told WHERE id = 1";

/// Where a Postgres database is, who asks for it, and how: the URL of libpq, with pgx's names for the pool.
///
/// Shown without what may be secret in it.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

impl PostgresUrl {
    /// Whether a text is meant as such a URL.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    pub fn new(url: &str) -> Self {
        PostgresUrl(url.to_owned())
    }

    /// The options of a connection, and those of the pool.
    fn options(&self) -> Result<(PgConnectOptions, PoolSettings), StoreError> {
        let mut pool = PoolSettings { max: POOL_MAX, connect_max: CONNECT_MAX };
        let (address, query) = self.0.split_once('?').unwrap_or((&self.0, ""));
        let mut rest = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let number = || {
                let number = value.parse::<u32>().ok().filter(|number| *number > 0);
                number.ok_or_else(|| StoreError::Url(format!("`{name}` takes a number above 0, not `{value}`")))
            };
            match name {
                "pool_max_conns" => pool.max = number()?,
                "connect_timeout" => pool.connect_max = Duration::from_secs(number()?.into()),
                _ => rest.push(parameter),
            }
        }
        let options = PgConnectOptions::from_str(&format!("{address}?{}", rest.join("&")));
        let options = options.map_err(|error| StoreError::Url(error.to_string()))?;
        Ok((options.disable_statement_logging(), pool))
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PostgresUrl(..)")
    }
}

struct PoolSettings {
    max: u32,
    connect_max: Duration,
}

/// A Postgres database.
pub struct Postgres {
    options: PgConnectOptions,
    connect_max: Duration,
    /// The connection that writes, while no batch has it: a call that is given up takes it along, and its transaction.
    writing: Mutex<Option<PgConnection>>,
    reading: PgPool,
    stats: Arc<Stats>,
    /// Tells apart who wrote a batch.
    writer: Arc<str>,
    batch: AtomicI64,
    written_elsewhere: Arc<Notify>,
    listening: SyncMutex<Option<JoinHandle<()>>>,
}

/// Why a batch was not made, or may not have been.
enum CommitError {
    NotMade(StoreError),
    /// COMMIT was sent, and its answer lost. These are the outcomes if it took place.
    Unknown(Vec<Outcome>, StoreError),
}

impl<E: Into<StoreError>> From<E> for CommitError {
    fn from(error: E) -> Self {
        CommitError::NotMade(error.into())
    }
}

impl Postgres {
    /// Connects, and brings the database to the newest schema.
    ///
    /// Errors: the database can't be reached, is older than Postgres 15, or was written by a newer program.
    pub async fn open(url: &PostgresUrl, durability: Durability) -> Result<Self, StoreError> {
        let (options, pool) = url.options()?;
        let milliseconds = |duration: Duration| duration.as_millis().to_string();
        let options = options.options([
            ("default_transaction_isolation", "read committed"),
            ("lock_timeout", &milliseconds(LOCK_WAIT)),
            ("idle_in_transaction_session_timeout", &milliseconds(IDLE_MAX)),
            (
                "synchronous_commit",
                match durability {
                    Durability::Full => "on",
                    Durability::Relaxed => "off",
                },
            ),
        ]);
        let mut first = connect(&options, pool.connect_max).await?;
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
            options,
            connect_max: pool.connect_max,
            writing: Mutex::new(Some(first)),
            reading,
            stats,
            writer,
            batch: AtomicI64::new(0),
            written_elsewhere,
            listening: SyncMutex::new(Some(tokio::spawn(listening))),
        })
    }

    /// A connection of its own, for what is done once.
    pub async fn connect_once(url: &PostgresUrl) -> Result<PgConnection, StoreError> {
        let (options, pool) = url.options()?;
        connect(&options, pool.connect_max).await
    }

    /// The connection that writes, or a new one where it was lost.
    async fn take(&self, writing: &mut Option<PgConnection>) -> Result<PgConnection, StoreError> {
        if self.reading.is_closed() {
            return Err(StoreError::Closed);
        }
        match writing.take() {
            Some(connection) => Ok(connection),
            None => connect(&self.options, self.connect_max).await,
        }
    }

    /// Decides and makes the writes of a batch, and commits. The connection is kept unless something failed.
    async fn try_commit(
        &self,
        writing: &mut Option<PgConnection>,
        batch: &[Write],
        number: i64,
    ) -> Result<Vec<Outcome>, CommitError> {
        let mut connection = self.take(writing).await?;
        let before = self.begin(&mut connection).await?;
        let mut keys = self.live_keys(&mut connection, batch).await?;
        let (outcomes, changes) = decide(batch, &mut keys, before);
        let Some(last) = changes.last().map(|change| change.revision) else {
            self.simple(&mut connection, "ROLLBACK").await?;
            *writing = Some(connection);
            return Ok(outcomes);
        };
        self.stats.count_statement();
        self.write_statement(&changes, number, last).execute(&mut connection).await?;
        match self.simple(&mut connection, "COMMIT").await {
            Ok(()) => {}
            Err(error) => return Err(CommitError::Unknown(outcomes, error)),
        }
        *writing = Some(connection);
        self.stats.count_commit();
        self.stats.count_batch(changes.len());
        Ok(outcomes)
    }

    /// Begins a transaction that has the counter, and returns the newest revision.
    async fn begin(&self, connection: &mut PgConnection) -> Result<Revision, StoreError> {
        self.stats.count_statement();
        let row = sqlx::raw_sql(BEGIN).fetch_one(connection).await?;
        read_revision(&row, 0)
    }

    async fn simple(&self, connection: &mut PgConnection, statement: &'static str) -> Result<(), StoreError> {
        self.stats.count_statement();
        sqlx::raw_sql(statement).execute(connection).await?;
        Ok(())
    }

    /// The present state of every key that a batch writes or is guarded by.
    async fn live_keys(&self, connection: &mut PgConnection, batch: &[Write]) -> Result<Keys, StoreError> {
        let mut keys = keys_of(batch);
        let (resources, names): (Vec<_>, Vec<_>) =
            keys.keys().map(|(collection, key)| (collection.as_str().to_owned(), key.to_string())).unzip();
        self.stats.count_statement();
        for row in sqlx::query(LIVE).bind(resources).bind(names).fetch_all(connection).await? {
            let live = Live { revision: read_revision(&row, 2)?, created: read_revision(&row, 3)?, uid: row.text(4)? };
            keys.insert((read_collection(&row, 0)?, row.text(1)?), Some(live));
        }
        Ok(keys)
    }

    fn write_statement<'c>(
        &self,
        changes: &'c [NewChange<'c>],
        number: i64,
        last: Revision,
    ) -> Query<'c, sqlx::Postgres, PgArguments> {
        /// A value of each change, as a column.
        fn column<'c, T>(changes: &'c [NewChange<'c>], value: impl Fn(&'c NewChange<'c>) -> T) -> Vec<T> {
            changes.iter().map(value).collect()
        }
        // The newest change of each key says what is in the index.
        let newest: HashMap<_, _> =
            changes.iter().map(|change| ((change.write.collection.as_str(), &*change.write.key), change)).collect();
        let (live, gone): (Vec<_>, Vec<_>) = newest.into_iter().partition(|(_, change)| change.put().is_some());
        sqlx::query(WRITE)
            .bind(column(changes, |change| change.revision.get()))
            .bind(column(changes, |change| change.write.collection.as_str()))
            .bind(column(changes, |change| &*change.write.key))
            .bind(column(changes, NewChange::operation))
            .bind(column(changes, |change| &*change.uid))
            .bind(column(changes, |change| change.created.get()))
            .bind(column(changes, |change| change.put().map_or("", |put| &put.stored_version)))
            .bind(column(changes, |change| change.put().map_or(0, |put| put.schema_generation)))
            .bind(column(changes, |change| change.put().map_or(&[][..], |put| &put.bytes)))
            .bind(column(changes, |change| change.previous.map(Revision::get)))
            .bind(column(changes, |change| change.put().and_then(|put| put.expires_at_ms)))
            .bind(Arc::clone(&self.writer))
            .bind(number)
            .bind(live.iter().map(|((resource, _), _)| *resource).collect::<Vec<_>>())
            .bind(live.iter().map(|((_, key), _)| *key).collect::<Vec<_>>())
            .bind(live.iter().map(|(_, change)| change.revision.get()).collect::<Vec<_>>())
            .bind(gone.iter().map(|((resource, _), _)| *resource).collect::<Vec<_>>())
            .bind(gone.iter().map(|((_, key), _)| *key).collect::<Vec<_>>())
            .bind(last.get())
            .bind(column(changes, NewChange::checksum))
    }

    /// Whether the batch was made. Who is still at it has the counter, so that this waits for its end.
    async fn was_made(&self, writing: &mut Option<PgConnection>, number: i64) -> Result<bool, StoreError> {
        let mut connection = self.take(writing).await?;
        self.begin(&mut connection).await?;
        self.stats.count_statement();
        let newest = sqlx::query("SELECT batch FROM writers WHERE writer = $1").bind(Arc::clone(&self.writer));
        let newest = newest.fetch_optional(&mut connection).await?;
        let made = newest.map(|row| read_number(&row, 0)).transpose()? == Some(number);
        self.simple(&mut connection, "ROLLBACK").await?;
        *writing = Some(connection);
        Ok(made)
    }

    /// Reads rows, each as it comes, so that none is held twice.
    async fn fetch<T>(
        &self,
        statement: Query<'_, sqlx::Postgres, PgArguments>,
        read: impl Fn(&PgRow) -> Result<T, StoreError> + Send,
    ) -> Result<Vec<T>, StoreError> {
        self.stats.count_statement();
        let mut rows = statement.fetch(&self.reading);
        let mut found = Vec::new();
        while let Some(row) = rows.try_next().await? {
            found.push(read(&row)?);
        }
        Ok(found)
    }
}

/// Pauses that grow, until a time has passed.
struct Retry {
    until: Instant,
    pause: Duration,
}

impl Retry {
    fn within(time: Duration) -> Self {
        Retry { until: Instant::now() + time, pause: PAUSES.0 }
    }

    /// Waits before the next attempt; false where it is too late for one.
    async fn wait(&mut self) -> bool {
        if Instant::now() + self.pause > self.until {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
        true
    }
}

async fn connect(options: &PgConnectOptions, within: Duration) -> Result<PgConnection, StoreError> {
    match tokio::time::timeout(within, options.connect()).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(StoreError::Connect(Arc::new(error))),
        Err(_) => Err(StoreError::Unreachable(Arc::new(sqlx::Error::PoolTimedOut))),
    }
}

/// Brings the database to the newest schema, in one transaction; other processes that start meanwhile wait for it.
async fn migrate(connection: &mut PgConnection, stats: &Stats) -> Result<(), StoreError> {
    let known = MIGRATIONS.len() as i64;
    let mut transaction = connection.begin().await?;
    stats.count_statement();
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(MIGRATION_LOCK).execute(&mut *transaction).await?;
    let exists = sqlx::query("SELECT count(*) FROM pg_class WHERE oid = to_regclass('schema_version')");
    let found = match read_number(&exists.fetch_one(&mut *transaction).await?, 0)? {
        0 => 0,
        _ => read_number(&sqlx::query("SELECT version FROM schema_version").fetch_one(&mut *transaction).await?, 0)?,
    };
    if found > known {
        return Err(StoreError::NewerSchema { found, known });
    }
    let made = usize::try_from(found).unwrap_or_default();
    if made < MIGRATIONS.len() {
        let script = format!("{}\nUPDATE schema_version SET version = {known};", MIGRATIONS[made..].concat());
        sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut *transaction).await?;
        stats.count_commit();
    }
    // Whoever wrote last so long ago has no COMMIT to look up any more.
    sqlx::query("DELETE FROM writers WHERE written_at < now() - interval '1 day'").execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// Wakes the poll whenever another process has written, and whenever it may have been missed.
async fn listen(options: PgConnectOptions, writer: Arc<str>, written: Arc<Notify>) {
    let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let pool = pool.connect_lazy_with(options);
    let mut pause = PAUSES.0;
    loop {
        let listener = async {
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.listen(CHANNEL).await?;
            Ok::<_, sqlx::Error>(listener)
        };
        if let Ok(mut listener) = listener.await {
            pause = PAUSES.0;
            written.notify_one();
            while let Ok(Some(notification)) = listener.try_recv().await {
                if notification.payload() != &*writer {
                    written.notify_one();
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

#[async_trait]
impl Store for Postgres {
    async fn commit(&self, batch: &[Write]) -> Result<Vec<Outcome>, StoreError> {
        let mut writing = self.writing.lock().await;
        let number = self.batch.fetch_add(1, Ordering::Relaxed) + 1;
        let mut retry = Retry::within(RETRY_MAX);
        loop {
            match self.try_commit(&mut writing, batch, number).await {
                Ok(outcomes) => return Ok(outcomes),
                Err(CommitError::NotMade(error)) => {
                    if !error.may_pass() || !retry.wait().await {
                        return Err(error);
                    }
                }
                Err(CommitError::Unknown(outcomes, error)) => {
                    tracing::warn!(%error, "the answer to a COMMIT was lost, its outcome is looked up");
                    let mut look_up = Retry::within(LOOK_UP_MAX);
                    let made = loop {
                        match self.was_made(&mut writing, number).await {
                            Ok(made) => break made,
                            Err(error) if error.may_pass() && look_up.wait().await => {}
                            Err(error) => return Err(error),
                        }
                    };
                    if made {
                        return Ok(outcomes);
                    }
                }
            }
        }
    }

    async fn revisions(&self) -> Result<(Revision, Revision), StoreError> {
        let revisions = sqlx::query("SELECT current_revision, compacted_revision FROM counter, compaction");
        let read = |row: &PgRow| Ok((read_revision(row, 0)?, read_revision(row, 1)?));
        let revisions = self.fetch(revisions, read).await?;
        revisions.first().copied().ok_or_else(|| StoreError::Statement(Arc::new(sqlx::Error::RowNotFound)))
    }

    async fn load(&self, collection: &Collection) -> Result<(Vec<Stored>, Revision), StoreError> {
        // One statement reads one state of the database. Without objects there is a row with the revision alone.
        let objects = sqlx::query(
            "SELECT live.*, counter.current_revision FROM counter LEFT JOIN (SELECT c.key, c.resource_version, \
             c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, c.expires_at_ms, c.checksum FROM objects o \
             JOIN changes c ON c.resource_version = o.resource_version WHERE o.resource = $1) live ON true",
        );
        let rows = self.fetch(objects.bind(collection.as_str()), |row| {
            let stored = match row.number(1)? {
                Some(_) => Some(read_stored(row, 0)?),
                None => None,
            };
            Ok((stored, read_revision(row, 9)?))
        });
        let rows = rows.await?;
        let revision = rows.first().map(|(_, revision)| *revision).unwrap_or_default();
        Ok((rows.into_iter().filter_map(|(stored, _)| stored).collect(), revision))
    }

    async fn changes_after(&self, collection: &Collection, after: Revision, max: usize) -> Result<Log, StoreError> {
        let changes = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum, c.operation, p.key, p.resource_version, p.created_version, p.uid, p.stored_version, \
             p.schema_generation, p.bytes, p.expires_at_ms, p.checksum \
             FROM changes c LEFT JOIN changes p ON p.resource_version = c.previous_version \
             WHERE c.resource = $1 AND c.resource_version > $2 ORDER BY c.resource_version LIMIT $3",
        );
        let changes = changes.bind(collection.as_str()).bind(after.get()).bind(count(max));
        let changes = self.fetch(changes, |row| read_change(row)).await?;
        let (_, compacted) = self.revisions().await?;
        Ok(Log { changes, compacted })
    }

    async fn log_after(&self, after: Revision, max: usize) -> Result<Vec<(Collection, Change)>, StoreError> {
        let changes = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum, c.operation, p.key, p.resource_version, p.created_version, p.uid, p.stored_version, \
             p.schema_generation, p.bytes, p.expires_at_ms, p.checksum, c.resource \
             FROM changes c LEFT JOIN changes p ON p.resource_version = c.previous_version \
             WHERE c.resource_version > $1 ORDER BY c.resource_version LIMIT $2",
        );
        let changes = changes.bind(after.get()).bind(count(max));
        self.fetch(changes, |row| Ok((read_collection(row, 19)?, read_change(row)?))).await
    }

    async fn read(&self, collection: &Collection, key: &str) -> Result<Option<Stored>, StoreError> {
        let object = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum FROM objects o JOIN changes c ON c.resource_version = o.resource_version \
             WHERE o.resource = $1 AND o.key = $2",
        );
        let found = self.fetch(object.bind(collection.as_str()).bind(key), |row| read_stored(row, 0)).await?;
        Ok(found.into_iter().next())
    }

    async fn scan(
        &self,
        texts: &[&str; 3],
        after: Revision,
        until: Revision,
        max: usize,
    ) -> Result<Vec<Scanned>, StoreError> {
        let rows = sqlx::query(
            "SELECT key, resource_version, created_version, uid, stored_version, schema_generation, \
             CASE WHEN found THEN bytes ELSE ''::bytea END, expires_at_ms, checksum, resource, found::int::bigint FROM (SELECT c.*, \
             CASE WHEN o.key IS NULL THEN false \
             ELSE position($1 in c.bytes) > 0 OR position($2 in c.bytes) > 0 OR position($3 in c.bytes) > 0 END AS found \
             FROM changes c LEFT JOIN objects o \
             ON o.resource = c.resource AND o.key = c.key AND o.resource_version = c.resource_version \
             WHERE c.resource_version > $4 AND c.resource_version <= $5 ORDER BY c.resource_version LIMIT $6) page \
             ORDER BY resource_version",
        );
        let rows = texts.iter().fold(rows, |rows, text| rows.bind(text.as_bytes()));
        let rows = rows.bind(after.get()).bind(until.get()).bind(count(max));
        self.fetch(rows, |row| read_scanned(row)).await
    }

    fn polled_every(&self) -> Option<Duration> {
        Some(POLL_EVERY)
    }

    async fn written_elsewhere(&self) {
        self.written_elsewhere.notified().await;
    }

    async fn expired(&self, now_ms: i64) -> Result<Vec<(Collection, Stored)>, StoreError> {
        let expired = sqlx::query(
            "SELECT c.key, c.resource_version, c.created_version, c.uid, c.stored_version, c.schema_generation, c.bytes, \
             c.expires_at_ms, c.checksum, c.resource FROM changes c JOIN objects o ON o.resource = c.resource AND o.key = c.key \
             WHERE c.expires_at_ms <= $1 AND o.resource_version = c.resource_version ORDER BY c.expires_at_ms LIMIT $2",
        );
        let expired = expired.bind(now_ms).bind(EXPIRED_MAX);
        self.fetch(expired, |row| Ok((read_collection(row, 9)?, read_stored(row, 0)?))).await
    }

    async fn compact(&self, to: Revision) -> Result<bool, StoreError> {
        let mut transaction = self.reading.begin().await?;
        // Who finds the row locked leaves the work to who has it.
        let from = sqlx::query("SELECT compacted_revision FROM compaction WHERE id = 1 FOR UPDATE SKIP LOCKED");
        let Some(from) = from.fetch_optional(&mut *transaction).await? else { return Ok(false) };
        let from = read_number(&from, 0)?;
        let until = to.get().min(from.saturating_add(COMPACT_STEP));
        if until <= from {
            return Ok(false);
        }
        // A row goes once the change that superseded it is compacted: so no live row goes, nor one that a change which is
        // still to be read names as its previous.
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

    async fn lease(&self, name: &str, holder: &str, now_ms: i64, expires_at_ms: i64) -> Result<bool, StoreError> {
        // By the clock of the database: those of its clients differ. A lease that ends later than it may was taken before
        // that clock was set back.
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

    async fn close(&self) {
        if let Some(listening) = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take() {
            listening.abort();
        }
        // The next process need not wait for leases to run out.
        let leases = sqlx::query("DELETE FROM leases WHERE writer = $1").bind(Arc::clone(&self.writer));
        if let Err(error) = leases.execute(&self.reading).await {
            tracing::warn!(%error, "leases could not be given back, they run out by themselves");
        }
        self.reading.close().await;
        if let Some(connection) = self.writing.lock().await.take() {
            _ = connection.close().await;
        }
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(listening) = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take() {
            listening.abort();
        }
    }
}
