//! Connections to a Postgres: how they are made, the migrations at the start, and the listener for notifications.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::sync::Notify;

use super::super::StoreError;
use super::super::backend::Stats;
use super::super::rows::read_number;

/// The migrations, in order; `schema_version` is the number of those that were applied.
const MIGRATIONS: [&str; 3] = [
    include_str!("../../../migrations/postgres/0001_log.sql"),
    include_str!("../../../migrations/postgres/0002_one_message.sql"),
    include_str!("../../../migrations/postgres/0003_times.sql"),
];
/// The key of the advisory lock that a process takes while it migrates: "skiff" in ASCII.
const MIGRATION_LOCK: i64 = 0x73_6b_69_66_66;
/// The first and the longest pause before the database is tried again.
pub const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// The channel on which a writer announces its writes; the payload is the writer.
const CHANNEL: &str = "skiff_log";

pub async fn connect(options: &PgConnectOptions, within: Duration) -> Result<PgConnection, StoreError> {
    match tokio::time::timeout(within, options.connect()).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(StoreError::Connect(Arc::new(error))),
        Err(_) => Err(StoreError::Unreachable(Arc::new(sqlx::Error::PoolTimedOut))),
    }
}

/// Migrates the database to the newest schema, in one transaction; other processes that start meanwhile wait for it.
pub async fn migrate(connection: &mut PgConnection, stats: &Stats) -> Result<(), StoreError> {
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
    // A writer whose last write is so old no longer looks up a COMMIT.
    sqlx::query("DELETE FROM writers WHERE written_at < now() - interval '1 day'").execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// Wakes the poll whenever another process has written, and whenever a notification may have been missed.
pub async fn listen(options: PgConnectOptions, writer: Arc<str>, written: Arc<Notify>) {
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
