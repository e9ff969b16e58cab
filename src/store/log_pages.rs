//! What watches read from the log of collections that are not in memory, shared by those that are at the same place.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, watch};

use crate::meta::Revision;

use super::backend::Store;
use super::changes::LogPage;
use super::log;
use super::view::View;
use super::{Collection, StoreError};

/// For how long a page is shared. The database may crash and continue at an earlier revision, but not in this time.
const SHARED_FOR: Duration = Duration::from_millis(500);

/// The changes of one collection: where they are read.
pub struct CollectionLog {
    pub(super) view: Arc<View>,
    pub(super) store: Arc<dyn Store>,
    pub(super) pages: Arc<LogPages>,
    pub(super) collection: Collection,
}

/// The page that was last read from the log of a database.
#[derive(Default)]
pub(super) struct LogPages(Mutex<Option<ReadPage>>);

struct ReadPage {
    collection: Collection,
    after: Revision,
    page: LogPage,
    read_at: Instant,
}

impl CollectionLog {
    /// The first visible changes after `after`, from the database; `None` if they are gone. `changed` is the newest change
    /// of the collection, as far as its watches were told.
    pub async fn read_page(
        &self,
        after: Revision,
        changed: &watch::Receiver<Revision>,
    ) -> Result<Option<LogPage>, StoreError> {
        // Watches that were woken together take turns: the first one reads.
        let mut last = self.pages.0.lock().await;
        let is_current = |read: &&ReadPage| {
            read.collection == self.collection
                && read.after == after
                && read.read_at.elapsed() < SHARED_FOR
                && read.page.end >= *changed.borrow()
        };
        if let Some(read) = last.as_ref().filter(is_current) {
            return Ok(Some(read.page.clone()));
        }
        let page = log::read_page(&self.view, &*self.store, &self.collection, after).await?;
        // A large change would stay in memory.
        let is_small =
            |page: &LogPage| page.changes.iter().map(|change| change.size_bytes()).sum::<usize>() <= log::PAGE.bytes;
        *last = page.clone().filter(is_small).map(|page| ReadPage {
            collection: self.collection.clone(),
            after,
            page,
            read_at: Instant::now(),
        });
        Ok(page)
    }
}
