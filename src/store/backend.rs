//! The interface between the storage and a database: SQLite, Postgres and memory implement it. Nothing here is specific
//! to one of them.

use std::iter::Sum;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::meta::Revision;

use super::batch::{Foreseen, WriteOutcome};
use super::changes::ChangeEvent;
use super::key_range::KeyRange;
use super::objects::Objects;
use super::page_max::PageMax;
use super::part::ReadPart;
use super::rows::Scanned;
use super::{Change, Collection, StoreError, Stored, Write};

/// The maximum number of writes in one transaction.
pub const BATCH_MAX: usize = 256;

/// Part of a collection's log.
#[derive(Debug)]
pub struct LogPart {
    /// In order, without gaps from the requested revision on.
    pub changes: Vec<Change>,
    /// The compacted revision, read after the changes: they are complete if it is not above the revision at which they
    /// begin.
    pub compacted: Revision,
}

/// Part of the log of a database.
pub struct WholeLog {
    /// In order, without gaps from the requested revision on.
    pub changes: Vec<ChangeEvent>,
    /// The newest and the compacted revision, read with the changes or after them: they are complete if the latter is
    /// not above the revision at which they begin.
    pub newest: Revision,
    pub compacted: Revision,
}

/// Counts what costs time, for the tests of the budgets.
#[derive(Debug, Default)]
pub struct Stats {
    batches: AtomicU64,
    writes: AtomicU64,
    statements: AtomicU64,
    commits: AtomicU64,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCounts {
    /// Batches of writes that were committed.
    pub batches: u64,
    /// Writes in those batches.
    pub writes: u64,
    /// Statements of any kind, including those that begin and end transactions.
    pub statements: u64,
    /// Transactions that changed something: under full durability, each costs a disk sync.
    pub commits: u64,
}

impl Sum for StoreCounts {
    fn sum<I: Iterator<Item = StoreCounts>>(all: I) -> StoreCounts {
        all.fold(StoreCounts::default(), |sum, one| StoreCounts {
            batches: sum.batches + one.batches,
            writes: sum.writes + one.writes,
            statements: sum.statements + one.statements,
            commits: sum.commits + one.commits,
        })
    }
}

impl Stats {
    pub(super) fn count_batch(&self, writes: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_statement(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_commit(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    pub fn counts(&self) -> StoreCounts {
        StoreCounts {
            batches: self.batches.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            statements: self.statements.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
        }
    }
}

/// A database: one transaction per batch, the log, and the index of live objects.
///
/// Every call is safe to cancel: a transaction that was begun and not finished is rolled back.
#[async_trait]
pub trait Store: Send + Sync {
    /// Makes those writes of a batch, at most [`BATCH_MAX`], whose guards hold, in one transaction and in their order;
    /// each sees the effects of those before it. Each takes the next revision, so there are no gaps.
    ///
    /// Returns one outcome per write, once they are as durable as requested. After an error only the log shows whether
    /// the batch was made. `foreseen` may be out of date, and saves reading if it is not.
    async fn commit(&self, batch: &[Write], foreseen: Option<Foreseen>) -> Result<Vec<WriteOutcome>, StoreError>;

    /// Whether the database can keep the key of a write; an error otherwise. Any other write of its batch would fail with
    /// it.
    fn check_key(&self, _write: &Write) -> Result<(), StoreError> {
        Ok(())
    }

    /// The newest and the compacted revision.
    async fn revisions(&self) -> Result<(Revision, Revision), StoreError>;

    /// The live objects of a collection, by key, and the newest revision of the database at that moment; `None` if they
    /// have more than `bytes_max`. A database in memory holds them anyway, and ignores the bound.
    async fn load_within(
        &self,
        collection: &Collection,
        bytes_max: usize,
    ) -> Result<Option<(Objects, Revision)>, StoreError>;

    /// The first live objects of a collection in a range of keys: as many as `max` allows, but at least one.
    async fn read_part(&self, collection: &Collection, range: &KeyRange, max: PageMax) -> Result<ReadPart, StoreError>;

    /// How many bytes the live objects of a collection in a range of keys have, if that is known without reading them.
    async fn size_bytes(&self, _collection: &Collection, _range: &KeyRange) -> Result<Option<usize>, StoreError> {
        Ok(None)
    }

    /// The first changes of a collection after a revision, each with the state before it.
    async fn changes_after(
        &self,
        collection: &Collection,
        after: Revision,
        max: PageMax,
    ) -> Result<LogPart, StoreError>;

    /// The first changes of the database after a revision, in order.
    async fn log_after(&self, after: Revision, max: PageMax) -> Result<WholeLog, StoreError>;

    /// The newest state of the object under `key`.
    async fn read(&self, collection: &Collection, key: &str) -> Result<Option<Arc<Stored>>, StoreError>;

    /// The first rows of the log after a revision and up to `until`. Rows that hold the current state of an object whose
    /// bytes contain one of `texts` come with the state.
    async fn scan(
        &self,
        texts: &[&str; 3],
        after: Revision,
        until: Revision,
        max: PageMax,
    ) -> Result<Vec<Scanned>, StoreError>;

    /// How often the log is to be polled; `None` if no other process can write.
    fn polled_every(&self) -> Option<Duration>;

    /// Whether another process may have acknowledged something after `revision`; true if that isn't known without
    /// asking the database.
    fn may_be_ahead_of(&self, _revision: Revision) -> bool {
        self.polled_every().is_some()
    }

    /// Waits until another process seems to have written. It may miss a write, and may wake up without one.
    /// Cancel-safe.
    async fn written_elsewhere(&self);

    /// The live objects of all collections that expire at or before `now_ms`, a bounded number per call: the key and the
    /// revision of each.
    async fn expired(&self, now_ms: i64) -> Result<Vec<(Collection, Arc<str>, Revision)>, StoreError>;

    /// Whether anything that is stored may ever expire; true if that isn't known without asking the database.
    fn may_expire(&self) -> bool {
        true
    }

    /// The minimum age of the contents at the time the database was opened.
    fn age(&self) -> Duration {
        Duration::ZERO
    }

    /// Notes that `revision` was the newest one so long ago. Not for a database that is gone with the process.
    async fn note_time(&self, _revision: Revision, _age: Duration) -> Result<(), StoreError> {
        Ok(())
    }

    /// The noted revisions that are not compacted yet, in rising order, and how long ago each was the newest.
    async fn noted_times(&self) -> Result<Vec<(Revision, Duration)>, StoreError> {
        Ok(Vec::new())
    }

    /// Removes superseded rows up to `to`, a bounded number per call; true while there is more to do.
    async fn compact(&self, to: Revision) -> Result<bool, StoreError>;

    /// The value under `name`; stores `made` if there is none. It is as durable as the first write after it.
    async fn secret(&self, name: &str, made: &[u8]) -> Result<Vec<u8>, StoreError>;

    /// The value under `name`.
    async fn read_secret(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Every value with its name.
    async fn secrets(&self) -> Result<Vec<(Arc<str>, Vec<u8>)>, StoreError>;

    /// Takes or keeps the lease `name` until `expires_at_ms`; false while another holder has it.
    async fn lease(&self, name: &str, holder: &str, now_ms: i64, expires_at_ms: i64) -> Result<bool, StoreError>;

    /// Frees some space on a full disk, for the operations that free more; false if that is not possible.
    async fn make_room(&self) -> bool {
        false
    }

    /// Reserves some space for the case that the disk becomes full.
    async fn keep_room(&self) {}

    /// Makes a write without effect. Errors: nothing can be written.
    async fn try_writing(&self) -> Result<(), StoreError>;

    /// Writes back what can be written back, and closes.
    async fn close(&self);

    fn stats(&self) -> &Stats;
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        const SQLITE_READ_ONLY: u32 = 8;
        const SQLITE_FULL: u32 = 13;
        const SQLITE_CORRUPT: u32 = 11;
        const SQLITE_NOT_A_DATABASE: u32 = 26;
        let Some(reported) = error.as_database_error() else {
            return match error {
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed => StoreError::Unreachable(Arc::new(error)),
                error => StoreError::Statement(Arc::new(error)),
            };
        };
        let code = reported.code().unwrap_or_default();
        if reported.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().is_some() {
            return match &*code {
                "53100" => StoreError::DiskFull,
                "25006" => StoreError::ReadOnly,
                // The connection ended, by itself or because the server is stopping or was told to end it; the server
                // has too many connections; or another process holds a lock for too long.
                code if code.starts_with("08")
                    || code.starts_with("57P")
                    || matches!(code, "25P03" | "53300" | "55P03") =>
                {
                    StoreError::Unreachable(Arc::new(error))
                }
                _ => StoreError::Statement(Arc::new(error)),
            };
        }
        // The low byte of an extended result code is the kind of the error.
        match code.parse::<u32>().ok().map(|code| code & 0xff) {
            Some(SQLITE_READ_ONLY) => StoreError::ReadOnly,
            Some(SQLITE_FULL) => StoreError::DiskFull,
            Some(SQLITE_CORRUPT | SQLITE_NOT_A_DATABASE) => StoreError::Malformed,
            _ => StoreError::Statement(Arc::new(error)),
        }
    }
}
