//! The changes of all collections, one after the other, for readers that must not miss any.
//!
//! Read from memory as far as that reaches back, otherwise from the database. Nothing is loaded for it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::meta::Revision;

use super::backend::Store;
use super::changes::ChangeEvent;
use super::page_max::PageMax;
use super::view::View;
use super::{StoreError, log};

/// For how long a part of the log that was read for one feed is handed to others.
const READ_VALID: Duration = Duration::from_secs(1);

/// The newest revision of each database at a moment, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment(pub(super) Vec<Revision>);

/// The changes of all collections; those of one database are in order.
pub struct Feed {
    databases: Vec<DatabaseFeed>,
    /// Changes that have been read and not handed out yet.
    gathered: Vec<ChangeEvent>,
}

impl Feed {
    pub(super) fn new(databases: Vec<DatabaseFeed>) -> Self {
        Feed { databases, gathered: Vec::new() }
    }

    /// Waits for changes, and returns some of them, those of each database in order; `None` if they are gone, or if a
    /// database is. A change comes with, or after, everything that was acknowledged in other databases before it: an
    /// owner is known before objects that refer to it. Cancel-safe.
    pub async fn next(&mut self) -> Option<Vec<ChangeEvent>> {
        if let [database] = &mut *self.databases {
            return database.next().await;
        }
        if self.gathered.is_empty() {
            // The database that came first comes last the next time: one with many changes does not starve the others.
            // INVARIANT: there is at least the main database.
            self.databases.rotate_left(1);
            let nexts = self.databases.iter_mut().map(|database| database.next().boxed());
            self.gathered = select_all(nexts).await.0?;
        }
        for database in &mut self.databases {
            database.catch_up().await?;
            loop {
                let more = database.visible().await?;
                if more.is_empty() {
                    break;
                }
                self.gathered.extend(more);
            }
        }
        Some(std::mem::take(&mut self.gathered))
    }
}

/// The changes of one database. It has no queue: a feed that falls behind the log's history ends.
pub(super) struct DatabaseFeed {
    view: Arc<View>,
    store: Arc<dyn Store>,
    position: Revision,
    newest: watch::Receiver<Revision>,
    last_read: Arc<LastRead>,
}

/// The part of the log that was last read from the database. After a burst of large changes every controller is behind
/// by the same ones.
#[derive(Default)]
pub(super) struct LastRead(Mutex<Option<ReadPart>>);

struct ReadPart {
    after: Revision,
    changes: Vec<ChangeEvent>,
    /// The database may crash and continue at an earlier revision, but not in the time for which this is used.
    read_at: Instant,
}

impl ReadPart {
    /// The changes after a revision, if they are among these.
    fn after(&self, revision: Revision) -> Option<Vec<ChangeEvent>> {
        let last = self.changes.last()?;
        if revision < self.after || revision >= last.revision || self.read_at.elapsed() > READ_VALID {
            return None;
        }
        let first = self.changes.partition_point(|change| change.revision <= revision);
        self.changes.get(first..).map(<[_]>::to_vec)
    }
}

impl DatabaseFeed {
    pub fn new(view: Arc<View>, store: Arc<dyn Store>, position: Revision, last_read: Arc<LastRead>) -> Self {
        let newest = view.newest();
        DatabaseFeed { view, store, position, newest, last_read }
    }

    /// As [`Feed::next`].
    async fn next(&mut self) -> Option<Vec<ChangeEvent>> {
        loop {
            // Marked as seen before reading: a change after this wakes the feed again.
            self.newest.borrow_and_update();
            let entries = self.visible().await?;
            if !entries.is_empty() {
                return Some(entries);
            }
            self.newest.changed().await.ok()?;
        }
    }

    /// Makes visible what other processes have written; `None` if the database is gone.
    async fn catch_up(&self) -> Option<()> {
        if self.store.polled_every().is_none() {
            return Some(());
        }
        let caught_up = log::poll(&self.view, &*self.store).await;
        caught_up.inspect_err(|error| tracing::warn!(%error, "a feed ends, as a database can't be read")).ok()
    }

    /// The next changes that are already visible, in order; `None` at the end. Cancel-safe.
    async fn visible(&mut self) -> Option<Vec<ChangeEvent>> {
        if self.view.revision() < self.position {
            tracing::warn!("a feed ends, as the database has lost what it was told");
            return None;
        }
        let entries = match self.view.newest_after(self.position, PageMax::USUAL) {
            Some(entries) => entries,
            None => match self.read().await {
                Ok(entries) => entries?,
                Err(error) => {
                    tracing::warn!(%error, "a feed ends, as the log can't be read");
                    return None;
                }
            },
        };
        self.position = entries.last().map_or(self.position, |last| last.revision);
        Some(entries)
    }

    /// The next changes from the database, only visible ones; `None` if they have been compacted. Feeds take turns, so
    /// that each part is read once for all of them.
    async fn read(&self) -> Result<Option<Vec<ChangeEvent>>, StoreError> {
        let mut last_read = self.last_read.0.lock().await;
        if let Some(changes) = last_read.as_ref().and_then(|part| part.after(self.position)) {
            return Ok(Some(changes));
        }
        let visible = self.view.revision();
        let log = self.store.log_after(self.position, PageMax::USUAL).await?;
        if self.position < log.compacted {
            return Ok(None);
        }
        let mut changes = log.changes;
        changes.truncate(changes.partition_point(|change| change.revision <= visible));
        *last_read = Some(ReadPart { after: self.position, changes: changes.clone(), read_at: Instant::now() });
        Ok(Some(changes))
    }
}
