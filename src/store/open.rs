//! Opening a database: the store that keeps it, and the background tasks that run until it is closed.
//!
//! One compacts it, one frees memory, one looks for writes of other processes.

use std::sync::Arc;
use std::time::Duration;

use crate::memory::{Memory, Room};

use super::backend::Store;
use super::database::{Database, WeakDatabase};
use super::memory::InMemory;
use super::postgres::Postgres;
use super::sqlite::{DatabaseLocation, Sqlite};
use super::{Config, Location, StoreError, compact};

/// How often it is checked whether memory is short.
const GIVEN_BACK_EVERY: Duration = Duration::from_millis(250);

/// Opens the database at `location` and starts to write.
pub(super) async fn open(location: &Location, config: &Config) -> Result<Database, StoreError> {
    let store: Arc<dyn Store> = match location {
        Location::Postgres(url) => Arc::new(Postgres::open(url, config.durability).await?),
        Location::Memory => return serve_memory(InMemory::within(config.room()), config).await,
        Location::File(path) => Arc::new(Sqlite::open(DatabaseLocation::Own(path), config.durability).await?),
        Location::Shared(path) => Arc::new(Sqlite::open(DatabaseLocation::Shared(path), config.durability).await?),
    };
    serve(store, None, location, config).await
}

/// Copies the current contents of a database to `location`, which is a new file or in memory. The secrets `without` are
/// not copied. If the database is not in memory, changes before the copy can't be followed in the copy.
///
/// Errors: it can't be read, or the copy can't be written.
pub(super) async fn fork(
    database: &Database,
    location: &Location,
    config: &Config,
    without: &[&str],
) -> Result<Database, StoreError> {
    let room = if *location == Location::Memory { config.room() } else { Room::endless() };
    let _turn = database.turn_to_copy().await;
    let copy = database.copy(room).await?;
    without.iter().for_each(|name| copy.forget_secret(name));
    let store: Arc<dyn Store> = match location {
        Location::Memory => return serve_memory(copy, config).await,
        Location::File(path) => Arc::new(Sqlite::filled(path, config.durability, &copy).await?),
        Location::Shared(_) | Location::Postgres(_) => {
            return Err(StoreError::Url("a copy is in memory or in a file".to_owned()));
        }
    };
    serve(store, None, location, config).await
}

async fn serve_memory(store: InMemory, config: &Config) -> Result<Database, StoreError> {
    let store = Arc::new(store);
    serve(Arc::clone(&store) as _, Some(store), &Location::Memory, config).await
}

async fn serve(
    store: Arc<dyn Store>,
    in_memory: Option<Arc<InMemory>>,
    location: &Location,
    config: &Config,
) -> Result<Database, StoreError> {
    let database = Database::of(store, in_memory, location, config).await?;
    let found = compact::found(&database).await?;
    database.spawn(compact::run(database.downgrade(), config.history, found, config.clock.clone()));
    if *location != Location::Memory {
        database.spawn(give_back(database.downgrade(), Arc::clone(&config.memory)));
    }
    if let Some(every) = database.store().polled_every() {
        database.spawn(poll(database.downgrade(), every));
    }
    Ok(database)
}

/// While memory is short, drops what nobody reads, until the database is closed. For a database in memory this would
/// gain nothing.
async fn give_back(database: WeakDatabase, memory: Arc<Memory>) {
    loop {
        tokio::time::sleep(GIVEN_BACK_EVERY).await;
        let Some(database) = database.upgrade() else { return };
        if memory.is_short() {
            database.give_back();
        }
    }
}

/// Polls the log until the database is closed.
async fn poll(database: WeakDatabase, every: Duration) {
    loop {
        let Some(store) = database.upgrade().map(|database| Arc::clone(database.store())) else { return };
        // Usually there is a notification at once; the timer covers lost ones.
        _ = tokio::time::timeout(every, store.written_elsewhere()).await;
        drop(store);
        let Some(database) = database.upgrade() else { return };
        if let Err(error) = database.poll().await {
            tracing::warn!(%error, "the log can't be polled, it will be tried again");
        }
    }
}
