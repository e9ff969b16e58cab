//! A batch of writes in Postgres: one transaction under the lock of the counter, its outcome known also where the connection
//! is cut.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::query::Query;
use tokio::time::Instant;

use crate::meta::Revision;

use super::super::batch::{Keys, Live, NewChange, decide, keys_of};
use super::super::rows::{LogRow as _, read_collection, read_number, read_revision};
use super::super::sql::Outcome;
use super::super::{StoreError, Write};
use super::Postgres;
use super::session::{PAUSES, connect};

/// How long a batch is tried again while the database can't be reached.
const RETRY_MAX: Duration = Duration::from_secs(10);
/// How long the outcome of a cut COMMIT is looked up.
const LOOK_UP_MAX: Duration = Duration::from_secs(60);

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
    /// Commits a batch, again where the connection was lost before, and looks up whether it was made where it was lost in between.
    pub(super) async fn commit_batch(&self, batch: &[Write]) -> Result<Vec<Outcome>, StoreError> {
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
