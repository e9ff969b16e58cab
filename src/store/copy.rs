//! Saves a database to a file, restores it from one, and checks it.
//!
//! The file is a SQLite database with the tables of `migrations/sqlite`, whichever database it was saved from.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Database, Executor, IntoArguments};

use crate::meta::Revision;

use super::postgres::Postgres;
use super::rows::{LogRow, checksum, read_number, read_revision};
use super::sqlite::{self, Files, named_file};
use super::{Durability, Location, StoreError};

/// By how much the revision of a restored database is ahead of the saved one, by default: more than any client can have
/// seen since.
pub const RAISED_BY: i64 = 1_000_000_000;

/// How many rows are sent to Postgres at a time.
const ROWS_MAX: usize = 500;

/// The live objects: what a file contains of a Postgres, and what is restored.
const LIVE: &str = "SELECT c.resource_version, c.resource, c.key, c.uid, c.created_version, c.stored_version, \
                    c.schema_generation, c.bytes, c.expires_at_ms, c.checksum FROM objects o \
                    JOIN changes c ON c.resource_version = o.resource_version";

/// Faults that databases do not find themselves: a name for each, and a query for their number. The newest and the
/// compacted revision are placeholders in braces.
const FAULTS: [(&str, &str); 5] = [
    (
        "objects without the change that holds their state",
        "SELECT count(*) FROM objects o LEFT JOIN changes c ON c.resource_version = o.resource_version \
         AND c.resource = o.resource AND c.key = o.key WHERE c.resource_version IS NULL OR c.operation = 2",
    ),
    (
        "keys whose newest change is not what the index says",
        "SELECT count(*) FROM (SELECT resource, key, max(resource_version) AS newest FROM changes GROUP BY resource, key) n \
         JOIN changes c ON c.resource_version = n.newest \
         LEFT JOIN objects o ON o.resource = n.resource AND o.key = n.key \
         WHERE (c.operation = 2) <> (o.resource_version IS NULL) OR o.resource_version <> n.newest",
    ),
    ("changes beyond the newest revision", "SELECT count(*) FROM changes WHERE resource_version > {current}"),
    (
        "revisions missing in the log",
        "SELECT {current} - {compacted} - count(*) FROM changes WHERE resource_version > {compacted} \
         AND resource_version <= {current}",
    ),
    (
        "changes without the state before them",
        "SELECT count(*) FROM changes c LEFT JOIN changes p ON p.resource_version = c.previous_version \
         WHERE c.resource_version > {compacted} AND c.previous_version IS NOT NULL AND p.resource_version IS NULL",
    ),
];

/// The fault that is found only by reading every row.
const GARBLED: &str = "changes that are not what was written";

/// Saves the contents of a database to the new file `to`, as of one moment; a server may go on using it. Returns that
/// moment's revision.
///
/// The file holds the keys that the server signs with: only its owner may read it.
///
/// Errors: the file is not empty; the database can't be read.
pub async fn save(location: &Location, to: &Path) -> Result<Revision, StoreError> {
    let failed = |source| StoreError::Open { path: to.to_owned(), source: Arc::new(source) };
    let file = sqlite::open_private(to).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() > 0 {
        return Err(StoreError::Exists(to.to_owned()));
    }
    match location {
        Location::Memory => return Err(StoreError::NothingKept),
        Location::File(path) | Location::Shared(path) => copy_file(path, to).await?,
        Location::Postgres(url) => {
            let mut source = Postgres::connect_once(url).await?;
            let mut target = SqliteConnectOptions::new().filename(named_file(to)).connect().await?;
            fill_file(&mut source, &mut target).await?;
            target.close().await?;
        }
    }
    file.sync_all().map_err(failed)?;
    let mut saved = open_file(to).await?;
    read_revision(&sqlx::query("SELECT current_revision FROM meta").fetch_one(&mut saved).await?, 0)
}

/// Fills an empty database with the contents of the file `from`. Its revision is `raised_by` ahead of the saved one,
/// and everything before is compacted: clients start over instead of missing changes. Returns that revision.
///
/// Errors: the database is not empty; the file is damaged, or is not a saved database.
pub async fn restore(location: &Location, from: &Path, raised_by: i64) -> Result<Revision, StoreError> {
    let mut source = open_file(from).await?;
    let faults = check_sqlite(&mut source).await?;
    if !faults.is_empty() {
        return Err(StoreError::Damaged { path: from.to_owned(), faults });
    }
    let saved = read_number(&sqlx::query("SELECT current_revision FROM meta").fetch_one(&mut source).await?, 0)?;
    let raised = saved.saturating_add(raised_by);
    match location {
        Location::Memory => return Err(StoreError::NothingKept),
        Location::File(path) | Location::Shared(path) => restore_file(&mut source, path, raised).await?,
        Location::Postgres(url) => {
            // Creates the tables.
            Postgres::open(url, Durability::Full).await?;
            restore_postgres(&mut source, &mut Postgres::connect_once(url).await?, raised).await?;
        }
    }
    Ok(Revision::new(raised))
}

/// Looks for faults in a database, and returns their names; an empty list if there are none. A server may go on using
/// it.
pub async fn check(location: &Location) -> Result<Vec<String>, StoreError> {
    match location {
        Location::Memory => Err(StoreError::NothingKept),
        Location::File(path) | Location::Shared(path) => check_sqlite(&mut open_file(path).await?).await,
        Location::Postgres(url) => {
            let mut connection = Postgres::connect_once(url).await?;
            let mut transaction = connection.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
            let mut faults = Vec::new();
            for (what, count) in FAULTS {
                let count = count
                    .replace("{current}", "(SELECT current_revision FROM counter)")
                    .replace("{compacted}", "(SELECT compacted_revision FROM compaction)");
                let row = sqlx::query(AssertSqlSafe(count)).fetch_one(&mut *transaction).await?;
                faults.extend(fault(what, read_number(&row, 0)?));
            }
            faults.extend(fault(GARBLED, count_garbled(&mut *transaction).await?));
            Ok(faults)
        }
    }
}

/// How many objects a database holds, and its newest revision, both at one moment; a server may go on using it.
pub async fn holdings(location: &Location) -> Result<(i64, Revision), StoreError> {
    const SQLITE: &str = "SELECT (SELECT count(*) FROM objects), current_revision FROM meta";
    const POSTGRES: &str = "SELECT (SELECT count(*) FROM objects), current_revision FROM counter";
    match location {
        Location::Memory => Err(StoreError::NothingKept),
        Location::File(path) | Location::Shared(path) => {
            let row = sqlx::query(SQLITE).fetch_one(&mut open_file(path).await?).await?;
            Ok((read_number(&row, 0)?, read_revision(&row, 1)?))
        }
        Location::Postgres(url) => {
            let row = sqlx::query(POSTGRES).fetch_one(&mut Postgres::connect_once(url).await?).await?;
            Ok((read_number(&row, 0)?, read_revision(&row, 1)?))
        }
    }
}

async fn check_sqlite(connection: &mut SqliteConnection) -> Result<Vec<String>, StoreError> {
    let mut faults = Vec::new();
    for row in sqlx::query("PRAGMA integrity_check").fetch_all(&mut *connection).await? {
        let told = row.text(0)?;
        faults.extend((&*told != "ok").then(|| told.to_string()));
    }
    if !faults.is_empty() {
        return Ok(faults);
    }
    let mut transaction = connection.begin().await?;
    for (what, count) in FAULTS {
        let count = count
            .replace("{current}", "(SELECT current_revision FROM meta)")
            .replace("{compacted}", "(SELECT compacted_revision FROM meta)");
        let row = sqlx::query(AssertSqlSafe(count)).fetch_one(&mut *transaction).await?;
        faults.extend(fault(what, read_number(&row, 0)?));
    }
    faults.extend(fault(GARBLED, count_garbled(&mut *transaction).await?));
    Ok(faults)
}

/// How many rows differ from what was written.
async fn count_garbled<'c, D>(connection: impl Executor<'c, Database = D>) -> Result<i64, StoreError>
where
    D: Database,
    for<'q> D::Arguments: IntoArguments<D>,
    for<'r> D::Row: LogRow<'r>,
{
    let mut rows = sqlx::query("SELECT resource_version, key, bytes, checksum FROM changes").fetch(connection);
    let mut garbled = 0;
    while let Some(row) = rows.try_next().await? {
        let found = checksum(read_revision(&row, 0)?, &row.text(1)?, &row.blob(2)?);
        garbled += i64::from(found != read_number(&row, 3)?);
    }
    Ok(garbled)
}

fn fault(what: &str, count: i64) -> Option<String> {
    (count != 0).then(|| format!("{count} {what}"))
}

/// Opens a file that exists, and contains a database with a schema that this program knows.
async fn open_file(path: &Path) -> Result<SqliteConnection, StoreError> {
    let failed = |source| StoreError::Open { path: path.to_owned(), source: Arc::new(source) };
    File::open(path).map_err(failed)?;
    let failed = |source: sqlx::Error| StoreError::Open { path: path.to_owned(), source: Arc::new(source) };
    let options = SqliteConnectOptions::new().filename(named_file(path)).disable_statement_logging();
    let mut connection = options.connect().await.map_err(failed)?;
    let version = sqlx::query("PRAGMA user_version").fetch_one(&mut connection).await.map_err(failed)?;
    let (found, known) = (read_number(&version, 0)?, sqlite::MIGRATIONS.len() as i64);
    match found {
        0 => Err(failed(sqlx::Error::RowNotFound)),
        _ if found > known => Err(StoreError::NewerSchema { found, known }),
        _ => Ok(connection),
    }
}

/// Copies the database in the file `from` to `to`, which is empty.
async fn copy_file(from: &Path, to: &Path) -> Result<(), StoreError> {
    let mut source = open_file(from).await?;
    let to = named_file(to).to_string_lossy().into_owned();
    sqlx::query("VACUUM INTO ?").bind(to).execute(&mut source).await?;
    Ok(source.close().await?)
}

/// Fills a new file with the live objects of a Postgres, as of one moment.
async fn fill_file(source: &mut PgConnection, target: &mut SqliteConnection) -> Result<(), StoreError> {
    let script = format!("{}\nPRAGMA user_version = {};", sqlite::MIGRATIONS.concat(), sqlite::MIGRATIONS.len());
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut *target).await?;
    let mut target = target.begin().await?;
    let mut source = source.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let current = sqlx::query("SELECT current_revision FROM counter").fetch_one(&mut *source).await?;
    let current = read_number(&current, 0)?;
    let mut rows = sqlx::query(LIVE).fetch(&mut *source);
    while let Some(row) = rows.try_next().await? {
        let change = sqlx::query(
            "INSERT INTO changes (resource_version, resource, key, operation, uid, created_version, stored_version, \
             schema_generation, writer, batch, bytes, expires_at_ms, checksum) VALUES (?, ?, ?, 0, ?, ?, ?, ?, '', 0, ?, ?, ?)",
        );
        let change = change.bind(row.number(0)?).bind(row.text(1)?).bind(row.text(2)?).bind(row.text(3)?);
        let change = change.bind(row.number(4)?).bind(row.text(5)?).bind(row.number(6)?);
        let change = change.bind(row.blob(7)?.to_vec()).bind(row.number(8)?).bind(row.number(9)?);
        change.execute(&mut *target).await?;
        let object = sqlx::query("INSERT INTO objects (resource_version, resource, key) VALUES (?, ?, ?)");
        object.bind(row.number(0)?).bind(row.text(1)?).bind(row.text(2)?).execute(&mut *target).await?;
    }
    drop(rows);
    for row in sqlx::query("SELECT name, value FROM secrets").fetch_all(&mut *source).await? {
        let secret = sqlx::query("INSERT INTO secrets (name, value) VALUES (?, ?)").bind(row.text(0)?);
        secret.bind(row.blob(1)?.to_vec()).execute(&mut *target).await?;
    }
    let meta = sqlx::query("UPDATE meta SET current_revision = ?, compacted_revision = ?");
    meta.bind(current).bind(current).execute(&mut *target).await?;
    target.commit().await?;
    Ok(())
}

/// Creates the database file `path` from a saved one: first under another name, then by a rename.
async fn restore_file(source: &mut SqliteConnection, path: &Path, raised: i64) -> Result<(), StoreError> {
    let failed = |source| StoreError::Open { path: path.to_owned(), source: Arc::new(source) };
    if path.exists() {
        return Err(StoreError::Exists(path.to_owned()));
    }
    let beside = path.with_extension("restoring");
    // This takes the lock of the database.
    let _owned = Files::open(&beside)?;
    let file = sqlite::open_private(&beside).map_err(failed)?;
    // Left over from an interrupted restore.
    file.set_len(0).map_err(failed)?;
    let name = named_file(&beside).to_string_lossy().into_owned();
    sqlx::query("VACUUM INTO ?").bind(name).execute(&mut *source).await?;
    let mut target = SqliteConnectOptions::new().filename(named_file(&beside)).connect().await?;
    let mut transaction = target.begin().await?;
    for statement in [
        "DELETE FROM changes WHERE resource_version NOT IN (SELECT resource_version FROM objects)",
        "UPDATE changes SET previous_version = NULL",
    ] {
        sqlx::query(statement).execute(&mut *transaction).await?;
    }
    let meta = sqlx::query("UPDATE meta SET current_revision = ?, compacted_revision = ?");
    meta.bind(raised).bind(raised).execute(&mut *transaction).await?;
    transaction.commit().await?;
    target.close().await?;
    file.sync_all().map_err(failed)?;
    std::fs::rename(&beside, path).map_err(failed)?;
    sync_folder_of(path).map_err(failed)
}

/// Syncs the name of a new file to the disk, too. Windows can't open folders; there, NTFS logs the names.
fn sync_folder_of(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) && !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Fills an empty Postgres in one transaction, which locks the counter.
async fn restore_postgres(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
    raised: i64,
) -> Result<(), StoreError> {
    let mut target = target.begin().await?;
    sqlx::query("SELECT current_revision FROM counter WHERE id = 1 FOR UPDATE").execute(&mut *target).await?;
    let held = sqlx::query("SELECT (SELECT count(*) FROM changes) + (SELECT count(*) FROM secrets)");
    if read_number(&held.fetch_one(&mut *target).await?, 0)? > 0 {
        return Err(StoreError::Exists("the Postgres database".into()));
    }
    let mut rows = sqlx::query(LIVE).fetch(&mut *source);
    let mut chunk = Vec::with_capacity(ROWS_MAX);
    loop {
        let row = rows.try_next().await?;
        let ended = row.is_none();
        chunk.extend(row);
        if chunk.len() == ROWS_MAX || ended {
            insert_live(&mut target, &chunk).await?;
            chunk.clear();
        }
        if ended {
            break;
        }
    }
    drop(rows);
    for row in sqlx::query("SELECT name, value FROM secrets").fetch_all(&mut *source).await? {
        let secret = sqlx::query("INSERT INTO secrets (name, value) VALUES ($1, $2)").bind(row.text(0)?);
        secret.bind(row.blob(1)?.to_vec()).execute(&mut *target).await?;
    }
    for statement in ["UPDATE counter SET current_revision = $1", "UPDATE compaction SET compacted_revision = $1"] {
        sqlx::query(statement).bind(raised).execute(&mut *target).await?;
    }
    target.commit().await?;
    Ok(())
}

async fn insert_live(target: &mut PgConnection, rows: &[sqlx::sqlite::SqliteRow]) -> Result<(), StoreError> {
    let numbers = |at| rows.iter().map(|row| row.number(at)).collect::<Result<Vec<_>, _>>();
    let texts = |at| rows.iter().map(|row| Ok(row.text(at)?.to_string())).collect::<Result<Vec<_>, StoreError>>();
    let blobs = rows.iter().map(|row| Ok(row.blob(7)?.to_vec())).collect::<Result<Vec<_>, StoreError>>()?;
    let insert = sqlx::query(
        "WITH live AS (SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], \
         $7::bigint[], $8::bytea[], $9::bigint[], $10::bigint[]) AS live (resource_version, resource, key, uid, created_version, \
         stored_version, schema_generation, bytes, expires_at_ms, checksum)), \
         indexed AS (INSERT INTO objects (resource, key, resource_version) SELECT resource, key, resource_version FROM live) \
         INSERT INTO changes (resource_version, resource, key, uid, created_version, stored_version, schema_generation, \
         bytes, expires_at_ms, checksum, operation, writer, batch) SELECT live.*, 0, '', 0 FROM live",
    );
    let insert = insert.bind(numbers(0)?).bind(texts(1)?).bind(texts(2)?).bind(texts(3)?).bind(numbers(4)?);
    let insert = insert.bind(texts(5)?).bind(numbers(6)?).bind(blobs).bind(numbers(8)?).bind(numbers(9)?);
    insert.execute(target).await?;
    Ok(())
}
