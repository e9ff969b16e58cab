//! Decodes rows of the log, in the same way for every database.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use sqlx::{ColumnIndex, Decode, Row, Type};

use crate::meta::Revision;

use super::changes::ChangeEvent;
use super::interned::interned;
use super::{Change, Collection, StoreError, Stored};

/// The values of the column `operation`.
pub(super) const CREATE: i64 = 0;
pub(super) const UPDATE: i64 = 1;
pub(super) const DELETE: i64 = 2;

/// A row of the log that was scanned.
#[derive(Debug)]
pub struct Scanned {
    pub revision: Revision,
    /// Its state, if the scan was looking for it.
    pub found: Option<(Collection, Arc<Stored>)>,
}

/// A row of a database that has the log's types.
pub(super) trait LogRow<'r>: Row {
    fn text(&'r self, at: usize) -> Result<Arc<str>, StoreError>;
    /// A text that many rows have in common.
    fn common_text(&'r self, at: usize) -> Result<Arc<str>, StoreError>;
    fn number(&'r self, at: usize) -> Result<Option<i64>, StoreError>;
    fn blob(&'r self, at: usize) -> Result<Bytes, StoreError>;
}

impl<'r, R: Row> LogRow<'r> for R
where
    usize: ColumnIndex<R>,
    i64: Type<R::Database> + Decode<'r, R::Database>,
    &'r str: Type<R::Database> + Decode<'r, R::Database>,
    Vec<u8>: Type<R::Database> + Decode<'r, R::Database>,
{
    fn text(&'r self, at: usize) -> Result<Arc<str>, StoreError> {
        Ok(self.try_get::<&str, _>(at)?.into())
    }

    fn common_text(&'r self, at: usize) -> Result<Arc<str>, StoreError> {
        Ok(interned(self.try_get(at)?))
    }

    fn number(&'r self, at: usize) -> Result<Option<i64>, StoreError> {
        Ok(self.try_get(at)?)
    }

    fn blob(&'r self, at: usize) -> Result<Bytes, StoreError> {
        Ok(Bytes::from(self.try_get::<Vec<u8>, _>(at)?))
    }
}

pub(super) fn read_collection<'r>(row: &'r impl LogRow<'r>, at: usize) -> Result<Collection, StoreError> {
    Ok(Collection(row.text(at)?))
}

/// A number that is never NULL.
pub(super) fn read_number<'r>(row: &'r impl LogRow<'r>, at: usize) -> Result<i64, StoreError> {
    let missing = || StoreError::Statement(Arc::new(sqlx::Error::ColumnNotFound(at.to_string())));
    row.number(at)?.ok_or_else(missing)
}

pub(super) fn read_revision<'r>(row: &'r impl LogRow<'r>, at: usize) -> Result<Revision, StoreError> {
    Ok(Revision::new(read_number(row, at)?))
}

/// The checksum of a row, which shows whether a disk returns what was written: CRC-32 over revision, key and bytes.
pub(super) fn checksum(revision: Revision, key: &str, bytes: &[u8]) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&revision.get().to_le_bytes());
    hasher.update(key.as_bytes());
    hasher.update(&[0]);
    hasher.update(bytes);
    hasher.finalize().into()
}

/// Reads a state from nine columns, starting at `at`.
///
/// Errors: it differs from what was written.
pub(super) fn read_stored<'r>(row: &'r impl LogRow<'r>, at: usize) -> Result<Stored, StoreError> {
    let stored = read_unchecked(row, at)?;
    if is_whole(&stored, read_number(row, at + 8)?) { Ok(stored) } else { Err(stored.garbled()) }
}

/// [`read_stored`], but a state that differs from what was written gets no bytes, so that it can be recognized, replaced
/// and removed, and the others can be read.
pub(super) fn read_or_damaged<'r>(row: &'r impl LogRow<'r>, at: usize) -> Result<Stored, StoreError> {
    let mut stored = read_unchecked(row, at)?;
    if !is_whole(&stored, read_number(row, at + 8)?) {
        tracing::error!(error = %stored.garbled(), "an object can't be read");
        stored.bytes = Bytes::new();
    }
    Ok(stored)
}

fn is_whole(stored: &Stored, expected: i64) -> bool {
    checksum(stored.revision, &stored.key, &stored.bytes) == expected
}

fn read_unchecked<'r>(row: &'r impl LogRow<'r>, at: usize) -> Result<Stored, StoreError> {
    Ok(Stored {
        key: row.text(at)?,
        revision: read_revision(row, at + 1)?,
        created: read_revision(row, at + 2)?,
        uid: row.text(at + 3)?,
        stored_version: row.common_text(at + 4)?,
        schema_generation: read_number(row, at + 5)?,
        bytes: row.blob(at + 6)?,
        expires_at_ms: row.number(at + 7)?,
        served_under: None.into(),
        splice: OnceLock::new(),
        labels: OnceLock::new(),
        derived: OnceLock::new(),
    })
}

/// A change from its state, the operation, and the state before, which is NULL if there was none.
pub(super) fn read_change<'r>(row: &'r impl LogRow<'r>) -> Result<Change, StoreError> {
    let after = Arc::new(read_stored(row, 0)?);
    let deleted = read_number(row, 9)? == DELETE;
    let previous = match row.number(11)? {
        Some(_) => Some(Arc::new(read_or_damaged(row, 10)?)),
        None => None,
    };
    let revision = after.revision;
    let object = match (&previous, deleted) {
        (Some(previous), true) => Arc::clone(previous),
        _ => after,
    };
    Ok(Change::new(revision, object, previous, deleted))
}

/// A change from its state, the operation and the collection; a deletion has no state.
pub(super) fn read_event<'r>(row: &'r impl LogRow<'r>) -> Result<ChangeEvent, StoreError> {
    let stored = Arc::new(read_stored(row, 0)?);
    let is_deletion = read_number(row, 9)? == DELETE;
    Ok(ChangeEvent {
        collection: read_collection(row, 10)?,
        key: Arc::clone(&stored.key),
        uid: Arc::clone(&stored.uid),
        revision: stored.revision,
        stored: (!is_deletion).then_some(stored),
    })
}

/// A row of the log from its state, its collection, and whether the scan was looking for it.
pub(super) fn read_scanned<'r>(row: &'r impl LogRow<'r>) -> Result<Scanned, StoreError> {
    let found = if read_number(row, 10)? != 0 {
        Some((read_collection(row, 9)?, Arc::new(read_or_damaged(row, 0)?)))
    } else {
        None
    };
    Ok(Scanned { revision: read_revision(row, 1)?, found })
}

/// The maximum number of rows, as a parameter.
pub(super) fn count(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}
