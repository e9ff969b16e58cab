//! A batch of writes in Postgres: one statement if the state that it depends on was foreseen, otherwise one transaction
//! under the lock of the counter. Its outcome is known even if the connection is cut.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::{PgArguments, PgConnection, PgDatabaseError, PgSeverity};
use sqlx::query::Query;
use tokio::time::Instant;

use crate::meta::Revision;

use super::super::batch::WriteOutcome;
use super::super::batch::{Foreseen, Keys, LiveKey, NewChange, decide, keys_of};
use super::super::rows::{LogRow as _, read_collection, read_number, read_revision};
use super::super::{StoreError, Write};
use super::Postgres;
use super::session::{PAUSES, connect};

/// How long a batch is retried while the database is unreachable.
const RETRY_MAX: Duration = Duration::from_secs(10);
/// How long the database may take to answer a statement of a batch, longer than it waits for a lock: a connection may be
/// lost without a sign.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// How long the outcome of a cut COMMIT is looked up.
const LOOK_UP_MAX: Duration = Duration::from_secs(60);

/// Begins a transaction and locks the counter: two statements in one message, each with its own snapshot.
const BEGIN: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT current_revision, fence FROM counter WHERE id = 1 FOR UPDATE";
const LIVE: &str = "SELECT o.resource, o.key, o.resource_version, c.created_version, c.uid \
                    FROM unnest($1::text[], $2::text[]) AS wanted (resource, key) \
                    JOIN objects o ON o.resource = wanted.resource COLLATE \"C\" AND o.key = wanted.key COLLATE \"C\" \
                    JOIN changes c ON c.resource_version = o.resource_version";
/// All changes of a batch in one statement: its parts change different rows. It returns a row if the batch was made,
/// that is, if the locked counter is the foreseen one. Then the snapshot of this statement, which may be older than the
/// lock, lacks nothing.
const WRITE: &str = "\
    WITH counted AS (UPDATE counter SET current_revision = $19 \
        WHERE id = 1 AND current_revision = $21 AND fence = $22 RETURNING id), \
    logged AS (INSERT INTO changes (resource_version, resource, key, operation, uid, created_version, stored_version, \
        schema_generation, bytes, previous_version, expires_at_ms, checksum, writer, batch) \
        SELECT new.*, $12, $13 FROM counted, unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], \
        $6::bigint[], $7::text[], $8::bigint[], $9::bytea[], $10::bigint[], $11::bigint[], $20::bigint[]) AS new), \
    indexed AS (INSERT INTO objects (resource, key, resource_version) \
        SELECT live.* FROM counted, unnest($14::text[], $15::text[], $16::bigint[]) AS live \
        ON CONFLICT (resource, key) DO UPDATE SET resource_version = excluded.resource_version), \
    gone AS (DELETE FROM objects USING counted, unnest($17::text[], $18::text[]) AS deleted (resource, key) \
        WHERE objects.resource = deleted.resource COLLATE \"C\" AND objects.key = deleted.key COLLATE \"C\"), \
    made AS (INSERT INTO writers (writer, batch) SELECT $12, $13 FROM counted \
        ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, written_at = now()) \
    SELECT pg_notify('skiff_log', $12) FROM counted";

/// Ends the transaction of a look-up.
const FENCE: &str = "UPDATE counter SET fence = fence + 1 WHERE id = 1; COMMIT";

/// The state of the writing connection.
pub struct Writing {
    /// `None` while a batch uses it: a call that is cancelled drops it, together with its transaction.
    connection: Option<PgConnection>,
    /// The fence of the counter, set while this process seems to be the only writer: then batches are foreseen.
    fence: Option<i64>,
    /// The counter after the last batch.
    newest: Option<Revision>,
}

impl Writing {
    pub fn new(connection: PgConnection) -> Self {
        Writing { connection: Some(connection), fence: None, newest: None }
    }

    pub async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            _ = connection.close().await;
        }
    }
}

/// The counter, locked by a transaction.
struct Counter {
    revision: Revision,
    fence: i64,
}

/// Why a batch was not made, or may not have been.
enum CommitError {
    NotMade(StoreError),
    /// COMMIT was sent, but its answer was lost. These are the outcomes if it took place.
    Unknown(Vec<WriteOutcome>, StoreError),
}

impl<E: Into<StoreError>> From<E> for CommitError {
    fn from(error: E) -> Self {
        CommitError::NotMade(error.into())
    }
}

impl Postgres {
    /// Commits a batch; retries it if the connection was lost before COMMIT, and looks up whether it was made if the
    /// connection was lost during COMMIT.
    pub(super) async fn commit_batch(
        &self,
        batch: &[Write],
        mut foreseen: Option<Foreseen>,
    ) -> Result<Vec<WriteOutcome>, StoreError> {
        let mut writing = self.writing.lock().await;
        let number = self.batch.fetch_add(1, Ordering::Relaxed) + 1;
        let mut retry = Retry::within(RETRY_MAX);
        loop {
            match self.try_commit(&mut writing, batch, number, foreseen.take()).await {
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
                    retry = Retry::within(RETRY_MAX);
                }
            }
        }
    }

    /// The connection that writes, or a new one if it was lost.
    async fn take(&self, writing: &mut Writing) -> Result<PgConnection, StoreError> {
        if self.reading.is_closed() {
            return Err(StoreError::Closed);
        }
        match writing.connection.take() {
            Some(connection) => Ok(connection),
            None => connect(&self.options, self.connect_max).await,
        }
    }

    /// Decides on the writes of a batch, makes them, and commits. The connection is kept unless something failed.
    async fn try_commit(
        &self,
        writing: &mut Writing,
        batch: &[Write],
        number: i64,
        foreseen: Option<Foreseen>,
    ) -> Result<Vec<WriteOutcome>, CommitError> {
        let mut connection = self.take(writing).await?;
        let outcomes = match (writing.fence, foreseen) {
            (Some(fence), Some(foreseen)) => {
                self.commit_at_once(&mut connection, batch, number, fence, foreseen).await?
            }
            _ => None,
        };
        let outcomes = match outcomes {
            Some(outcomes) => outcomes,
            None => {
                let counter = self.begin(&mut connection).await?;
                // This is not the view's revision: the view may have what another process wrote just before, and that
                // one then writes again.
                let alone = writing.newest.is_none_or(|newest| newest == counter.revision);
                writing.fence = alone.then_some(counter.fence);
                self.commit_under_lock(&mut connection, batch, number, &counter).await?
            }
        };
        writing.newest = outcomes.iter().rev().find_map(WriteOutcome::revision).or(writing.newest);
        writing.connection = Some(connection);
        Ok(outcomes)
    }

    /// Commits a batch in one message; `None`, without any change, if the foreseen state was wrong.
    async fn commit_at_once(
        &self,
        connection: &mut PgConnection,
        batch: &[Write],
        number: i64,
        fence: i64,
        foreseen: Foreseen,
    ) -> Result<Option<Vec<WriteOutcome>>, CommitError> {
        let Foreseen { before, mut keys } = foreseen;
        let (outcomes, changes) = decide(batch, &mut keys, before);
        // If there is nothing to write, nothing would show whether that is still so.
        if changes.is_empty() {
            return Ok(None);
        }
        match self.make(connection, &changes, number, &Counter { revision: before, fence }).await {
            Ok(false) => Ok(None),
            Ok(true) => {
                self.count_made(changes.len());
                Ok(Some(outcomes))
            }
            Err(error) if was_refused(&error) => Err(error.into()),
            Err(error) => Err(CommitError::Unknown(outcomes, error.into())),
        }
    }

    /// Commits a batch in a transaction that locks the counter.
    async fn commit_under_lock(
        &self,
        connection: &mut PgConnection,
        batch: &[Write],
        number: i64,
        counter: &Counter,
    ) -> Result<Vec<WriteOutcome>, CommitError> {
        let mut keys = self.live_keys(connection, batch).await?;
        let (outcomes, changes) = decide(batch, &mut keys, counter.revision);
        if changes.is_empty() {
            self.simple(connection, "ROLLBACK").await?;
            return Ok(outcomes);
        }
        if !self.make(connection, &changes, number, counter).await? {
            return Err(sqlx::Error::RowNotFound.into());
        }
        if let Err(error) = self.simple(connection, "COMMIT").await {
            return Err(CommitError::Unknown(outcomes, error));
        }
        self.count_made(changes.len());
        Ok(outcomes)
    }

    fn count_made(&self, changes: usize) {
        self.stats.count_commit();
        self.stats.count_batch(changes);
    }

    /// Begins a transaction that locks the counter.
    async fn begin(&self, connection: &mut PgConnection) -> Result<Counter, StoreError> {
        self.stats.count_statement();
        let row = in_time(sqlx::raw_sql(BEGIN).fetch_one(connection)).await?;
        Ok(Counter { revision: read_revision(&row, 0)?, fence: read_number(&row, 1)? })
    }

    async fn simple(&self, connection: &mut PgConnection, statement: &'static str) -> Result<(), StoreError> {
        self.stats.count_statement();
        in_time(sqlx::raw_sql(statement).execute(connection)).await?;
        Ok(())
    }

    /// The current state of every key that a batch writes or is guarded by.
    async fn live_keys(&self, connection: &mut PgConnection, batch: &[Write]) -> Result<Keys, StoreError> {
        let mut keys = keys_of(batch);
        let (resources, names): (Vec<_>, Vec<_>) =
            keys.keys().map(|(collection, key)| (collection.as_str().to_owned(), key.to_string())).unzip();
        self.stats.count_statement();
        for row in in_time(sqlx::query(LIVE).bind(resources).bind(names).fetch_all(connection)).await? {
            let live =
                LiveKey { revision: read_revision(&row, 2)?, created: read_revision(&row, 3)?, uid: row.text(4)? };
            keys.insert((read_collection(&row, 0)?, row.text(1)?), Some(live));
        }
        Ok(keys)
    }

    /// Makes changes unless the counter is different; returns whether it did. Outside a transaction it also commits.
    async fn make(
        &self,
        connection: &mut PgConnection,
        changes: &[NewChange<'_>],
        number: i64,
        counter: &Counter,
    ) -> Result<bool, sqlx::Error> {
        self.stats.count_statement();
        // Read to the end of the answer: the server commits after it has sent the row.
        let made = in_time(self.write_statement(changes, number, counter).fetch_all(connection)).await?;
        Ok(!made.is_empty())
    }

    fn write_statement<'c>(
        &self,
        changes: &'c [NewChange<'c>],
        number: i64,
        counter: &Counter,
    ) -> Query<'c, sqlx::Postgres, PgArguments> {
        /// One value of each change, as a column.
        fn column<'c, T>(changes: &'c [NewChange<'c>], value: impl Fn(&'c NewChange<'c>) -> T) -> Vec<T> {
            changes.iter().map(value).collect()
        }
        // The newest change of each key determines the index.
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
            .bind(column(changes, |change| change.put().map_or(&[][..], |put| put.object.bytes())))
            .bind(column(changes, |change| change.previous.map(Revision::get)))
            .bind(column(changes, |change| change.put().and_then(|put| put.expires_at_ms)))
            .bind(Arc::clone(&self.writer))
            .bind(number)
            .bind(live.iter().map(|((resource, _), _)| *resource).collect::<Vec<_>>())
            .bind(live.iter().map(|((_, key), _)| *key).collect::<Vec<_>>())
            .bind(live.iter().map(|(_, change)| change.revision.get()).collect::<Vec<_>>())
            .bind(gone.iter().map(|((resource, _), _)| *resource).collect::<Vec<_>>())
            .bind(gone.iter().map(|((_, key), _)| *key).collect::<Vec<_>>())
            .bind(changes.last().map_or(counter.revision, |change| change.revision).get())
            .bind(column(changes, NewChange::checksum))
            .bind(counter.revision.get())
            .bind(counter.fence)
    }

    /// Whether the batch was made. A transaction that has locked the counter may still commit, so this waits for its
    /// end; one that has not locked it yet will find a different fence.
    async fn was_made(&self, writing: &mut Writing, number: i64) -> Result<bool, StoreError> {
        let mut connection = self.take(writing).await?;
        self.begin(&mut connection).await?;
        self.stats.count_statement();
        let newest = sqlx::query("SELECT batch FROM writers WHERE writer = $1").bind(Arc::clone(&self.writer));
        let newest = in_time(newest.fetch_optional(&mut connection)).await?;
        let made = newest.map(|row| read_number(&row, 0)).transpose()? == Some(number);
        writing.fence = None;
        self.simple(&mut connection, if made { "ROLLBACK" } else { FENCE }).await?;
        writing.connection = Some(connection);
        Ok(made)
    }
}

/// Whether the server itself reports that it did not execute a statement, and stays usable.
fn was_refused(error: &sqlx::Error) -> bool {
    let reported = error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    reported.is_some_and(|error| error.severity() == PgSeverity::Error)
}

/// The answer of the database, or an error of the connection if there is none in [`ANSWER_MAX`].
async fn in_time<T>(answer: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(ANSWER_MAX, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
    }
}

/// Growing pauses, until a time limit. One retry is always made, as the first attempt may have taken longer than that.
struct Retry {
    until: Instant,
    pause: Duration,
    is_first: bool,
}

impl Retry {
    fn within(time: Duration) -> Self {
        Retry { until: Instant::now() + time, pause: PAUSES.0, is_first: true }
    }

    /// Waits before the next attempt; false if it is too late for one.
    async fn wait(&mut self) -> bool {
        if Instant::now() + self.pause > self.until && !self.is_first {
            return false;
        }
        self.is_first = false;
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
        true
    }
}
