//! Creates a new file with the contents of a database in memory.

use std::path::Path;
use std::sync::Arc;

use crate::meta::Revision;

use super::super::memory::{Contents, InMemory};
use super::super::rows::checksum;
use super::super::{Collection, Durability, StoreError, Stored};
use super::connection::CountedConnection;
use super::{DatabaseLocation, Sqlite, revisions};

impl Sqlite {
    /// Creates the database file `path` with the live objects of `source`, at its revision; earlier changes count as
    /// compacted.
    ///
    /// Errors: the file is not empty, or can't be written.
    pub async fn filled(path: &Path, durability: Durability, source: &InMemory) -> Result<Self, StoreError> {
        let sqlite = Sqlite::open(DatabaseLocation::Own(path), durability).await?;
        {
            let mut connection = sqlite.writing().await?;
            let (current, _) = revisions(&mut connection).await?;
            if current.get() != super::FIRST_REVISION {
                return Err(StoreError::Exists(path.to_owned()));
            }
            sqlite.sync_new_file(&mut connection).await?;
            let filled = fill(&mut connection, source).await;
            connection.roll_back().await;
            filled?;
        }
        Ok(sqlite)
    }
}

/// In one transaction.
async fn fill(connection: &mut CountedConnection, source: &InMemory) -> Result<(), StoreError> {
    let Contents { objects, secrets, current } = source.contents();
    connection.begin(sqlx::query("BEGIN IMMEDIATE")).await?;
    for (collection, stored) in &objects {
        insert(connection, collection, stored).await?;
    }
    for (name, value) in secrets {
        let secret = sqlx::query("INSERT INTO secrets (name, value) VALUES (?, ?)");
        connection.execute(secret.bind(name).bind(value)).await?;
    }
    set_revision(connection, current).await?;
    connection.commit(sqlx::query("COMMIT")).await
}

async fn insert(
    connection: &mut CountedConnection,
    collection: &Collection,
    stored: &Stored,
) -> Result<(), StoreError> {
    let change = sqlx::query(
        "INSERT INTO changes (resource_version, resource, key, operation, uid, created_version, stored_version, \
         schema_generation, writer, batch, bytes, expires_at_ms, checksum) VALUES (?, ?, ?, 0, ?, ?, ?, ?, '', 0, ?, ?, ?)",
    );
    let revision = stored.revision;
    let change = change.bind(revision.get()).bind(Arc::clone(&collection.0)).bind(Arc::clone(&stored.key));
    let change = change.bind(Arc::clone(&stored.uid)).bind(stored.created.get());
    let change = change.bind(Arc::clone(&stored.stored_version)).bind(stored.schema_generation);
    let change = change.bind(stored.bytes.to_vec()).bind(stored.expires_at_ms);
    connection.execute(change.bind(checksum(revision, &stored.key, &stored.bytes))).await?;
    let object = sqlx::query("INSERT INTO objects (resource_version, resource, key) VALUES (?, ?, ?)");
    let object = object.bind(revision.get()).bind(Arc::clone(&collection.0)).bind(Arc::clone(&stored.key));
    connection.execute(object).await.map(drop)
}

async fn set_revision(connection: &mut CountedConnection, current: Revision) -> Result<(), StoreError> {
    let meta = sqlx::query("UPDATE meta SET current_revision = ?, compacted_revision = ?");
    connection.execute(meta.bind(current.get()).bind(current.get())).await.map(drop)
}
