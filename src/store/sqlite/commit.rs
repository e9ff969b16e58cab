//! A batch of writes in SQLite: one transaction in one message, as a message to SQLite's thread costs two thread
//! switches.
//!
//! If the state that the writes depend on was not foreseen, or wrongly, there are two messages: the first begins the
//! transaction and reads it. The statements' texts come in a few fixed sizes, so that each is prepared once: the
//! smallest that holds the batch, filled up with NULL.

use std::sync::{Arc, OnceLock};

use sqlx::sqlite::SqliteRow;

use crate::meta::Revision;

use super::super::backend::BATCH_MAX;
use super::super::batch::WriteOutcome;
use super::super::batch::{Foreseen, Keys, LiveKey, NewChange, decide, keys_of};
use super::super::rows::{LogRow as _, read_collection, read_revision};
use super::super::{Collection, StoreError, Write};
use super::connection::{CountedConnection, Statement};

/// The numbers of keys in a look-up.
const KEYS: [usize; 4] = [2, 8, 64, 512];
const KEYS_MAX: usize = KEYS[KEYS.len() - 1];
/// The numbers of rows in an insertion.
const ROWS: [usize; 5] = [1, 4, 16, 64, BATCH_MAX];

/// The columns of a change itself.
const COLUMNS: &str = "resource_version, resource, key, operation, uid, created_version, stored_version, \
                       schema_generation, bytes, previous_version, expires_at_ms, checksum";
const COLUMN_COUNT: usize = 12;

/// Points the index to the newest change of each key.
const INDEX: &str = "INSERT INTO objects (resource, key, resource_version) SELECT resource, key, resource_version FROM changes \
                     WHERE resource_version > ? AND resource_version <= ? ORDER BY resource_version \
                     ON CONFLICT (resource, key) DO UPDATE SET resource_version = excluded.resource_version";
/// Then removes the keys whose newest change is a deletion.
const UNINDEX: &str = "DELETE FROM objects WHERE (resource, key, resource_version) IN (SELECT resource, key, resource_version \
                       FROM changes WHERE resource_version > ? AND resource_version <= ? AND operation = 2)";

/// Immediate: the transaction reads what it then writes, and no other writer may come in between.
const BEGIN: &str = "BEGIN IMMEDIATE";
/// Fails unless the newest revision is the one that the batch was decided at: there is no revision NULL.
const COUNT: &str = "UPDATE meta SET current_revision = CASE current_revision WHEN ? THEN ? END";
/// SQLITE_CONSTRAINT_NOTNULL.
const NOT_AS_FORESEEN: &str = "1299";

/// The writer of a batch, and the batch's number.
pub struct Author {
    pub writer: Arc<str>,
    pub batch: i64,
}

/// Decides on the writes of a batch, makes them, and commits unless there are none. Also returns how many there were.
pub async fn commit(
    connection: &mut CountedConnection,
    batch: &[Write],
    author: &Author,
    foreseen: Option<Foreseen>,
) -> Result<(Vec<WriteOutcome>, usize), StoreError> {
    if let Some(Foreseen { before, mut keys }) = foreseen {
        let (outcomes, changes) = decide(batch, &mut keys, before);
        // If there is nothing to write, nothing would show whether that is still so.
        if !changes.is_empty() {
            match connection.commit_at_once(making(&changes, before, author, true)).await {
                Ok(()) => return Ok((outcomes, changes.len())),
                Err(StoreError::Statement(error)) if is_not_as_foreseen(&*error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let (before, mut keys) = begin(connection, batch).await?;
    let (outcomes, changes) = decide(batch, &mut keys, before);
    if !changes.is_empty() {
        connection.commit(making(&changes, before, author, false)).await?;
    }
    Ok((outcomes, changes.len()))
}

fn is_not_as_foreseen(error: &(dyn std::error::Error + 'static)) -> bool {
    let reported = error.downcast_ref::<sqlx::Error>().and_then(sqlx::Error::as_database_error);
    reported.and_then(|error| error.code()).is_some_and(|code| code == NOT_AS_FORESEEN)
}

/// Begins the transaction. Returns the newest revision, and the current state of every key that a batch writes or is
/// guarded by.
async fn begin(connection: &mut CountedConnection, batch: &[Write]) -> Result<(Revision, Keys), StoreError> {
    let mut keys = keys_of(batch);
    let wanted: Vec<_> = keys.keys().cloned().collect();
    let mut chunks = wanted.chunks(KEYS_MAX);
    let mut rows = connection.begin(looking_up(begin_text, chunks.next().unwrap_or_default())).await?.into_iter();
    let newest = rows.next().ok_or_else(|| StoreError::from(sqlx::Error::RowNotFound))?;
    let mut found = rows.map(|row| read_live(&row)).collect::<Result<Vec<_>, _>>()?;
    for chunk in chunks {
        found.extend(connection.fetch(looking_up(live_text, chunk), read_live).await?);
    }
    keys.extend(found);
    Ok((read_revision(&newest, 0)?, keys))
}

type RowKey = (Collection, Arc<str>);

fn read_live(row: &SqliteRow) -> Result<(RowKey, Option<LiveKey>), StoreError> {
    let live = LiveKey { revision: read_revision(row, 2)?, created: read_revision(row, 3)?, uid: row.text(4)? };
    Ok(((read_collection(row, 0)?, row.text(1)?), Some(live)))
}

/// Statements with keys as parameters; unused parameters stay NULL.
fn looking_up(text: fn(usize) -> &'static str, keys: &[RowKey]) -> Statement<'static> {
    keys.iter().fold(sqlx::query(text(keys.len())), |statements, (collection, key)| {
        statements.bind(Arc::clone(&collection.0)).bind(Arc::clone(key))
    })
}

/// The statements that make the changes of a batch and commit; also those that begin, if `begins`.
fn making<'c>(changes: &'c [NewChange<'c>], before: Revision, author: &Author, begins: bool) -> Statement<'c> {
    let deletes = changes.iter().any(|change| change.put().is_none());
    let (text, rows) = making_text(begins, deletes, changes.len());
    let last = changes.last().map_or(before, |change| change.revision);
    let between = |statements: Statement<'c>| statements.bind(before.get()).bind(last.get());
    let mut statements = between(sqlx::query(text)).bind(Arc::clone(&author.writer)).bind(author.batch);
    for change in changes {
        statements = bind(statements, change);
    }
    for _ in changes.len()..rows {
        statements = (0..COLUMN_COUNT).fold(statements, |statements, _| statements.bind(None::<i64>));
    }
    statements = between(statements);
    if deletes { between(statements) } else { statements }
}

fn bind<'c>(statements: Statement<'c>, change: &'c NewChange<'c>) -> Statement<'c> {
    let (write, put) = (change.write, change.put());
    statements
        .bind(change.revision.get())
        .bind(Arc::clone(&write.collection.0))
        .bind(Arc::clone(&write.key))
        .bind(change.operation())
        .bind(Arc::clone(&change.uid))
        .bind(change.created.get())
        .bind(put.map_or("", |put| &put.stored_version))
        .bind(put.map_or(0, |put| put.schema_generation))
        .bind(put.map_or(&[][..], |put| put.object.bytes()))
        .bind(change.previous.map(Revision::get))
        .bind(put.and_then(|put| put.expires_at_ms))
        .bind(change.checksum())
}

fn begin_text(keys: usize) -> &'static str {
    static TEXTS: Texts<{ KEYS.len() }> = OnceLock::new();
    let text = |keys| format!("{BEGIN}; SELECT current_revision FROM meta; {}", live_text(keys));
    sized(&TEXTS, KEYS, keys, text).0
}

fn live_text(keys: usize) -> &'static str {
    static TEXTS: Texts<{ KEYS.len() }> = OnceLock::new();
    // A cross join keeps its order: there is one index look-up for each wanted key, never a scan.
    let text = |keys| {
        format!(
            "WITH wanted (resource, key) AS (VALUES {}) \
             SELECT o.resource, o.key, o.resource_version, c.created_version, c.uid FROM wanted w \
             CROSS JOIN objects o ON o.resource = w.resource AND o.key = w.key \
             CROSS JOIN changes c ON c.resource_version = o.resource_version",
            tuples(keys, 2)
        )
    };
    sized(&TEXTS, KEYS, keys, text).0
}

/// The text for this number of changes, with or without deletions, and the number of rows in it.
fn making_text(begins: bool, deletes: bool, rows: usize) -> (&'static str, usize) {
    static TEXTS: [[Texts<{ ROWS.len() }>; 2]; 2] = [const { [const { OnceLock::new() }; 2] }; 2];
    sized(&TEXTS[usize::from(begins)][usize::from(deletes)], ROWS, rows, |rows| {
        let insert = insert_text(rows);
        let mut statements = vec![COUNT, &insert, INDEX];
        if begins {
            statements.insert(0, BEGIN);
        }
        if deletes {
            statements.push(UNINDEX);
        }
        statements.push("COMMIT");
        statements.join("; ")
    })
}

fn insert_text(rows: usize) -> String {
    format!(
        "INSERT INTO changes (writer, batch, {COLUMNS}) SELECT ?, ?, new.* FROM (VALUES {}) AS new \
         WHERE new.column1 IS NOT NULL",
        tuples(rows, COLUMN_COUNT)
    )
}

/// The parameters have no numbers: SQLite searches all numbered parameters for each one that is bound.
fn tuples(rows: usize, columns: usize) -> String {
    let tuple = format!("({})", vec!["?"; columns].join(","));
    vec![tuple; rows].join(",")
}

type Texts<const N: usize> = OnceLock<[String; N]>;

/// The text for the smallest of some sizes that holds `count` items, built once; and that size.
///
/// INVARIANT: callers never exceed the largest size.
fn sized<const N: usize>(
    texts: &'static Texts<N>,
    sizes: [usize; N],
    count: usize,
    text: impl Fn(usize) -> String,
) -> (&'static str, usize) {
    let texts = texts.get_or_init(|| sizes.map(text));
    let at = sizes.iter().position(|size| *size >= count).expect("callers take the largest size at most");
    (&texts[at], sizes[at])
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Row as _};

    use super::super::fixture;
    use super::*;
    use crate::store::backend::Store as _;
    use crate::store::{Guard, Op, Put};

    #[tokio::test]
    async fn what_was_foreseen_wrongly_is_read() {
        let sqlite = fixture::sqlite("foreseen").await;
        let mut connection = sqlite.writing().await.expect("it is open");
        let put = Put {
            object: crate::store::Encoded::new("{}"),
            uid: "u".into(),
            stored_version: "v1".into(),
            schema_generation: 1,
            expires_at_ms: None,
            served_under: None,
        };
        let things = Collection::new("", "things");
        let batch = [Write { collection: things, key: "a".into(), op: Op::Put(put), guards: vec![Guard::Absent] }];
        let author = Author { writer: "w".into(), batch: 1 };
        let mut made = async |before| {
            let foreseen = Foreseen { before, keys: keys_of(&batch) };
            let begun = sqlite.stats().counts().statements;
            let (outcomes, _) = commit(&mut connection, &batch, &author, Some(foreseen)).await.expect("it commits");
            connection.roll_back().await;
            (outcomes == [WriteOutcome::GuardFailed], sqlite.stats().counts().statements - begun)
        };
        let known = Revision::new(2);
        // BEGIN, the counter, the change, its index, COMMIT.
        assert_eq!(made(known).await, (false, 5));
        // The object exists now: BEGIN, then ROLLBACK as the counter is different; BEGIN, the counter, the keys,
        // ROLLBACK.
        assert_eq!(made(known).await, (true, 6));
    }

    #[tokio::test]
    async fn no_statement_of_a_commit_scans_the_index() {
        let sqlite = fixture::sqlite("plans").await;
        let mut connection = sqlite.writing().await.expect("it is open");
        for statement in KEYS.map(live_text).into_iter().chain([INDEX, UNINDEX]) {
            let explain = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}")));
            let plan = connection.fetch(explain, |row| Ok(row.try_get::<String, _>(3)?)).await.expect("it explains");
            let scans = plan.iter().any(|step| step.starts_with("SCAN o") || step.starts_with("SCAN changes"));
            assert!(!scans, "{statement}: {plan:?}");
        }
    }
}
