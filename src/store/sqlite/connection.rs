//! A connection to SQLite: its set-up, its transactions, and its statements, which are counted.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Either, Executor as _, Row as _};

use super::super::backend::Stats;
use super::super::{Durability, StoreError};
use super::{FIRST_REVISION, MIGRATIONS};

/// One statement, or several whose texts follow one another.
pub type Statement<'q> = Query<'q, sqlx::Sqlite, SqliteArguments>;

/// A connection whose statements are counted.
pub struct CountedConnection {
    sqlite: SqliteConnection,
    stats: Arc<Stats>,
    /// Whether a transaction was begun and not finished.
    in_transaction: bool,
}

impl CountedConnection {
    pub async fn open(options: &SqliteConnectOptions, stats: &Arc<Stats>) -> Result<Self, StoreError> {
        Ok(CountedConnection { sqlite: options.connect().await?, stats: Arc::clone(stats), in_transaction: false })
    }

    /// Migrates the database to the newest schema, and returns its revision.
    ///
    /// A new file is created without waiting for the disk: until its first write nothing has been acknowledged. That
    /// write waits for everything before it ([`super::Sqlite::sync_new_file`]).
    pub async fn set_up(&mut self, durability: Durability) -> Result<i64, StoreError> {
        let found = self.fetch_number("PRAGMA user_version").await?;
        let known = MIGRATIONS.len() as i64;
        if found > known {
            return Err(StoreError::NewerSchema { found, known });
        }
        if found == 0 {
            self.execute(sqlx::query("PRAGMA synchronous = OFF")).await?;
            // This allows the file to be shortened; it must be set before the first table is created.
            self.execute(sqlx::query("PRAGMA auto_vacuum = INCREMENTAL")).await?;
        }
        self.fetch_one(sqlx::query("PRAGMA journal_mode = WAL")).await?;
        let made = usize::try_from(found).unwrap_or_default();
        if made < MIGRATIONS.len() {
            self.begin(sqlx::query("BEGIN IMMEDIATE")).await?;
            let script = format!("{}\nPRAGMA user_version = {known};", MIGRATIONS[made..].concat());
            let script = sqlx::raw_sql(AssertSqlSafe(script));
            script.execute(&mut self.sqlite).await?;
            self.commit(sqlx::query("COMMIT")).await?;
        }
        let current = self.fetch_number("SELECT current_revision FROM meta").await?;
        let synchronous = match durability {
            Durability::Full if current == FIRST_REVISION => "PRAGMA synchronous = OFF",
            Durability::Full => "PRAGMA synchronous = FULL",
            Durability::Relaxed => "PRAGMA synchronous = NORMAL",
            Durability::Unsynced => "PRAGMA synchronous = OFF",
        };
        self.execute(sqlx::query(synchronous)).await?;
        Ok(current)
    }

    /// Checks a database as far as a start can wait for it: up to 64 MiB as a whole, in a larger one the ends of each
    /// table and index. Returns the faults.
    pub async fn look_over(&mut self) -> Result<Vec<String>, StoreError> {
        /// 64 MiB. A thousand pages take some 5 ms, on a busy machine up to 20.
        const PAGES_WHOLE_MAX: i64 = 16_384;
        const ENDS: &str = "SELECT (SELECT max(resource_version) FROM changes), (SELECT min(resource_version) FROM changes), \
                            (SELECT max(resource) FROM changes), (SELECT min(resource) FROM changes), \
                            (SELECT max(resource) FROM objects), (SELECT min(resource) FROM objects), \
                            (SELECT max(expires_at_ms) FROM changes WHERE expires_at_ms IS NOT NULL)";
        let told = if self.fetch_number("PRAGMA page_count").await? <= PAGES_WHOLE_MAX {
            self.fetch(sqlx::query("PRAGMA quick_check(10)"), |row| Ok(row.try_get::<String, _>(0)?)).await
        } else {
            self.fetch_one(sqlx::query(ENDS)).await.map(|_| Vec::new())
        };
        match told {
            Ok(told) => Ok(told.into_iter().filter(|fault| fault != "ok").collect()),
            Err(StoreError::Malformed) => Ok(vec![StoreError::Malformed.to_string()]),
            Err(error) => Err(error),
        }
    }

    /// Runs statements of which the first begins a transaction. A transaction that was left open, since its caller
    /// stopped waiting, is rolled back.
    ///
    /// Not sqlx's transactions: SQLite ends a transaction by itself when the disk is full, but sqlx then believes that
    /// it is still open.
    pub async fn begin(&mut self, statements: Statement<'_>) -> Result<Vec<SqliteRow>, StoreError> {
        self.roll_back().await;
        self.in_transaction = true;
        self.fetch_rows(statements).await
    }

    /// Begins to read one state of the database, and returns its newest revision.
    pub async fn begin_to_read(&mut self) -> Result<i64, StoreError> {
        self.begin(sqlx::query("BEGIN")).await?;
        self.fetch_number("SELECT current_revision FROM meta").await
    }

    /// Runs statements of which the last is COMMIT.
    pub async fn commit(&mut self, statements: Statement<'_>) -> Result<(), StoreError> {
        self.execute(statements).await?;
        self.in_transaction = false;
        self.stats.count_commit();
        Ok(())
    }

    /// Runs the statements of a whole transaction, from BEGIN to COMMIT. If one fails, the transaction stays open.
    pub async fn commit_at_once(&mut self, statements: Statement<'_>) -> Result<(), StoreError> {
        self.roll_back().await;
        self.in_transaction = true;
        self.commit(statements).await
    }

    /// Rolls back an open transaction. The statement fails if SQLite has already ended it.
    pub async fn roll_back(&mut self) {
        if self.in_transaction {
            _ = self.execute(sqlx::query("ROLLBACK")).await;
            self.in_transaction = false;
        }
    }

    /// Returns how many rows were changed.
    pub async fn execute(&mut self, statement: Statement<'_>) -> Result<u64, StoreError> {
        self.run(statement, |_| Ok(())).await
    }

    pub async fn fetch_one(&mut self, statement: Statement<'_>) -> Result<SqliteRow, StoreError> {
        Ok(self.fetch_optional(statement).await?.ok_or(sqlx::Error::RowNotFound)?)
    }

    pub async fn fetch_number(&mut self, statement: &'static str) -> Result<i64, StoreError> {
        Ok(self.fetch_one(sqlx::query(statement)).await?.try_get(0)?)
    }

    /// The sum that a statement selects, which is not negative.
    pub async fn fetch_sum(&mut self, statement: Statement<'_>) -> Result<usize, StoreError> {
        let sum: i64 = self.fetch_one(statement).await?.try_get(0)?;
        Ok(usize::try_from(sum).unwrap_or_default())
    }

    pub async fn fetch_optional(&mut self, statement: Statement<'_>) -> Result<Option<SqliteRow>, StoreError> {
        Ok(self.fetch_rows(statement).await?.into_iter().next())
    }

    async fn fetch_rows(&mut self, statements: Statement<'_>) -> Result<Vec<SqliteRow>, StoreError> {
        let mut rows = Vec::new();
        self.run(statements, |row| {
            rows.push(row);
            Ok(())
        })
        .await?;
        Ok(rows)
    }

    /// Each row is read as it arrives, so that none is in memory twice.
    pub async fn fetch<T>(
        &mut self,
        statement: Statement<'_>,
        read: impl Fn(&SqliteRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.run(statement, |row| {
            found.push(read(&row)?);
            Ok(())
        })
        .await?;
        Ok(found)
    }

    /// [`CountedConnection::fetch`] as long as `read` accepts the rows; `None` if it stops early.
    pub async fn fetch_while<T>(
        &mut self,
        statement: Statement<'_>,
        mut read: impl FnMut(&SqliteRow) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<Vec<T>>, StoreError> {
        let mut found = Vec::new();
        let mut steps = self.sqlite.fetch_many(statement);
        while let Some(step) = steps.try_next().await? {
            match step {
                Either::Left(_) => self.stats.count_statement(),
                Either::Right(row) => match read(&row)? {
                    Some(item) => found.push(item),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(found))
    }

    /// Runs one or several statements, and hands out their rows. Returns how many rows were changed.
    async fn run(
        &mut self,
        statements: Statement<'_>,
        mut each: impl FnMut(SqliteRow) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let mut changed = 0;
        let mut steps = self.sqlite.fetch_many(statements);
        while let Some(step) = steps.try_next().await? {
            match step {
                Either::Left(done) => {
                    self.stats.count_statement();
                    changed += done.rows_affected();
                }
                Either::Right(row) => each(row)?,
            }
        }
        Ok(changed)
    }

    /// Closes it. The last connection to a file writes its log back.
    pub async fn close(mut self) -> Result<(), StoreError> {
        self.roll_back().await;
        Ok(self.sqlite.close().await?)
    }
}
