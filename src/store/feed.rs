//! The changes of all collections, one after the other, for readers that must not miss any.
//!
//! Read from memory as far as that reaches back, otherwise from the database. Nothing is loaded for it.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use tokio::sync::watch;

use crate::meta::Revision;

use super::backend::Store;
use super::changes::ChangeEvent;
use super::view::View;
use super::{StoreError, log};

/// How many changes are handed out at a time.
const PAGE_MAX: usize = 256;

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
}

impl DatabaseFeed {
    pub fn new(view: Arc<View>, store: Arc<dyn Store>, position: Revision) -> Self {
        let newest = view.newest();
        DatabaseFeed { view, store, position, newest }
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
        let entries = match self.view.newest_after(self.position, PAGE_MAX) {
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

    /// The next changes from the database, only visible ones; `None` if they have been compacted.
    async fn read(&self) -> Result<Option<Vec<ChangeEvent>>, StoreError> {
        let visible = self.view.revision();
        let log = self.store.log_after(self.position, PAGE_MAX).await?;
        if self.position < log.compacted {
            return Ok(None);
        }
        let entries = log.changes.into_iter().map(ChangeEvent::from);
        Ok(Some(entries.take_while(|entry| entry.revision <= visible).collect()))
    }
}
