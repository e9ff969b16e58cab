//! Compaction in SQLite, in steps that writes wait for: superseded rows are removed, then free pages are returned to
//! the system.

use std::time::Duration;

use jiff::Timestamp;

use crate::meta::Revision;

use super::super::StoreError;
use super::super::rows::{DELETE, read_number, read_revision};
use super::connection::CountedConnection;

/// How many revisions one step of compaction covers: writes wait for a step.
const COMPACT_STEP: i64 = 256;
/// How many free pages a file keeps at least, and as which share of its size: the others are returned to the system.
const FREE_PAGES_MIN: i64 = 1_024;
const FREE_SHARE: i64 = 4;

/// Removes the rows that were superseded by the next revisions up to `to`; true while there is more to do.
pub async fn step(connection: &mut CountedConnection, to: Revision) -> Result<bool, StoreError> {
    connection.begin(sqlx::query("BEGIN IMMEDIATE")).await?;
    let from = connection.fetch_number("SELECT compacted_revision FROM meta").await?;
    let until = to.get().min(from.saturating_add(COMPACT_STEP));
    if until <= from {
        return Ok(false);
    }
    // A row is removed once the change that superseded it is compacted: so no live row is removed, and none that is
    // still the previous state of a readable change.
    let superseded = sqlx::query(
        "DELETE FROM changes WHERE resource_version IN (SELECT previous_version FROM changes \
         WHERE resource_version > ? AND resource_version <= ? AND previous_version IS NOT NULL)",
    );
    connection.execute(superseded.bind(from).bind(until)).await?;
    let deletions =
        sqlx::query("DELETE FROM changes WHERE resource_version > ? AND resource_version <= ? AND operation = ?");
    connection.execute(deletions.bind(from).bind(until).bind(DELETE)).await?;
    connection.execute(sqlx::query("UPDATE meta SET compacted_revision = ?").bind(until)).await?;
    connection.execute(sqlx::query("DELETE FROM revision_times WHERE resource_version <= ?").bind(until)).await?;
    connection.commit(sqlx::query("COMMIT")).await?;
    Ok(until < to.get())
}

/// [`Store::note_time`](super::Store::note_time) by the clock of this machine.
pub async fn note_time(
    connection: &mut CountedConnection,
    revision: Revision,
    age: Duration,
) -> Result<(), StoreError> {
    connection.roll_back().await;
    let age_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    let noted = sqlx::query("INSERT OR IGNORE INTO revision_times (resource_version, at_ms) VALUES (?, ?)");
    let noted = noted.bind(revision.get()).bind(now_ms().saturating_sub(age_ms));
    connection.execute(noted).await.map(drop)
}

/// [`Store::noted_times`](super::Store::noted_times). What was noted before the clock was set back is new.
pub async fn noted_times(connection: &mut CountedConnection) -> Result<Vec<(Revision, Duration)>, StoreError> {
    let noted = sqlx::query(
        "SELECT resource_version, at_ms FROM revision_times \
         WHERE resource_version > (SELECT compacted_revision FROM meta) ORDER BY resource_version",
    );
    let now_ms = now_ms();
    let age = |at_ms| Duration::from_millis(now_ms.saturating_sub(at_ms).max(0).unsigned_abs());
    connection.fetch(noted, |row| Ok((read_revision(row, 0)?, age(read_number(row, 1)?)))).await
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Shortens the file by a few of its free pages; true while there are many left. Some stay: the next writes need them.
pub async fn return_space(connection: &mut CountedConnection) -> Result<bool, StoreError> {
    let free = connection.fetch_number("PRAGMA freelist_count").await?;
    let all = connection.fetch_number("PRAGMA page_count").await?;
    if free <= FREE_PAGES_MIN || free <= all / FREE_SHARE {
        return Ok(false);
    }
    connection.fetch(sqlx::query("PRAGMA incremental_vacuum(256)"), |_| Ok(())).await?;
    let left = connection.fetch_number("PRAGMA freelist_count").await?;
    // A file from before that setting has no map of its pages, and keeps them.
    Ok(left < free)
}
