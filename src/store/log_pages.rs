//! What watches read from the log of collections that are not in memory, shared by those that are at the same place.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, watch};

use crate::meta::Revision;

use super::backend::Store;
use super::changes::LogPage;
use super::log;
use super::view::View;
use super::{Change, Collection, StoreError};

/// For how long a page is shared. The database may crash and continue at an earlier revision, but not in this time.
const SHARED_FOR: Duration = Duration::from_millis(500);

/// The changes of one collection: where they are read.
pub struct CollectionLog {
    pub(super) view: Arc<View>,
    pub(super) store: Arc<dyn Store>,
    pub(super) pages: Arc<LogPages>,
    pub(super) collection: Collection,
}

/// The page that was last read from the log of a collection.
#[derive(Default)]
pub(super) struct LogPages(Mutex<Option<ReadPage>>);

struct ReadPage {
    after: Revision,
    end: Revision,
    last: bool,
    changes: Vec<Weak<Change>>,
    /// The changes, if they are small: large ones stay only as long as a watch has them.
    _kept: Option<LogPage>,
    read_at: Instant,
}

impl ReadPage {
    fn of(after: Revision, page: &LogPage) -> Self {
        let bytes: usize = page.changes.iter().map(|change| change.size_bytes()).sum();
        ReadPage {
            after,
            end: page.end,
            last: page.last,
            changes: page.changes.iter().map(Arc::downgrade).collect(),
            _kept: (bytes <= log::PAGE.bytes).then(|| page.clone()),
            read_at: Instant::now(),
        }
    }

    /// The changes after a position, if they begin in this page and are still there. `newest` is the newest change of the
    /// collection.
    fn after(&self, position: Revision, newest: Revision) -> Option<LogPage> {
        if position < self.after || position >= self.end || self.read_at.elapsed() > SHARED_FOR {
            return None;
        }
        let changes: Option<Vec<_>> = self.changes.iter().map(Weak::upgrade).collect();
        let mut changes = changes?;
        changes.retain(|change| change.revision > position);
        Some(LogPage { changes, end: self.end, last: self.last && self.end >= newest })
    }
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
        if let Some(end) = self.view.unchanged_until(&self.collection, after) {
            return Ok(Some(LogPage { changes: Vec::new(), end, last: true }));
        }
        let newest = *changed.borrow();
        if let Some(page) = last.as_ref().and_then(|read| read.after(after, newest)) {
            return Ok(Some(page));
        }
        let page = log::read_page(&self.view, &*self.store, &self.collection, after).await?;
        *last = page.as_ref().map(|page| ReadPage::of(after, page));
        Ok(page)
    }
}
