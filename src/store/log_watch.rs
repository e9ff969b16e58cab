//! The changes of a collection for one watch, and the memory that they take until its client has read them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch::{self, error::RecvError};
use tokio::time::timeout;

use crate::memory::{Full, Memory, Reservation};
use crate::meta::Revision;

use super::changes::LogPage;
use super::log::PAGE;
use super::log_pages::CollectionLog;
use super::page_max::PageMax;
use super::{Change, StoreError, Stored};

/// How much is taken from memory at a time. So little counts as part of the watch.
const RECENT_PAGE: PageMax = PageMax { bytes: 8 << 10, ..PAGE };
/// How often a watch of a collection that does not change moves on, so that the log need not reach back to where it began.
const ADVANCE_EVERY: Duration = Duration::from_secs(60);
/// What changes from the database take with their events, unless there is a single large one.
const LOG_BYTES: usize = 2 * PAGE.bytes;

/// The changes of a collection, one after the other.
///
/// A watch has no queue: it continues from its position, in memory, or in the log if it is far behind. A watch that
/// falls behind the log's history ends.
pub struct LogWatch {
    source: Option<ChangeSource>,
    waiting: VecDeque<Arc<Change>>,
    /// The memory of the changes that were taken last: their client may still be reading them.
    held: Option<Arc<Reservation>>,
    seen: Revision,
}

struct ChangeSource {
    log: CollectionLog,
    position: Revision,
    /// Whether everything has been read that was visible when `changed` was last checked.
    is_read_out: bool,
    /// Whether the changes that were read last came from the database, as memory does not have them.
    reads_log: bool,
    changed: watch::Receiver<Revision>,
    /// Who reads the changes; `None` if they are dropped at once.
    client: Option<WatchClient>,
}

/// A client that may be slow to read, so that memory is reserved for what it has not read.
struct WatchClient {
    memory: Arc<Memory>,
    /// `None` if its share is not limited.
    user: Option<Box<str>>,
    /// How many bytes the next changes from the database will take, with their events.
    log_bytes: usize,
}

/// Changes of a collection, and their memory.
struct HeldPage {
    page: LogPage,
    held: Option<Arc<Reservation>>,
}

impl LogWatch {
    pub(super) fn new(log: CollectionLog, position: Revision, changed: watch::Receiver<Revision>) -> Self {
        let source = ChangeSource { log, position, is_read_out: false, reads_log: false, changed, client: None };
        LogWatch { source: Some(source), waiting: VecDeque::new(), held: None, seen: position }
    }

    /// The same watch, for a client that may be slow to read: memory is reserved for what it has not read. If there is
    /// none for a while, the watch ends. `user` is `None` if the share of the client is not limited.
    pub fn read_by(mut self, user: Option<&str>, memory: &Arc<Memory>) -> Self {
        if let Some(source) = &mut self.source {
            let memory = Arc::clone(memory);
            source.client = Some(WatchClient { memory, user: user.map(Into::into), log_bytes: LOG_BYTES });
        }
        self
    }

    /// A watch that is over.
    pub fn empty() -> Self {
        LogWatch { source: None, waiting: VecDeque::new(), held: None, seen: Revision::default() }
    }

    /// Reserves memory for an object that is sent beside the changes, if it is large; `None` if it is not, or if the
    /// watch is not for a slow client.
    pub async fn reserve(&self, object: &Stored) -> Result<Option<Reservation>, Full> {
        let client = self.source.as_ref().and_then(|source| source.client.as_ref());
        match client.filter(|_| object.bytes.len() > RECENT_PAGE.bytes) {
            Some(client) => client.reserve(object.bytes.len()).await.map(Some),
            None => Ok(None),
        }
    }

    /// The revision of the last change that was handed out, or the one at which the watch began.
    pub fn seen(&self) -> Revision {
        self.seen
    }

    /// The newest revision up to which every change of the collection was handed out: it also rises while other
    /// collections change.
    pub fn progress(&mut self) -> Revision {
        if !self.waiting.is_empty() {
            return self.seen;
        }
        let progress = self.source.as_mut().and_then(ChangeSource::advance);
        self.seen.max(progress.unwrap_or_default())
    }

    /// Whether every change was handed out, as far as that is known without looking for changes.
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.source.as_ref().is_some_and(ChangeSource::is_quiet)
    }

    /// The next change that is already visible; `None` if all of them were handed out, and at the end.
    pub async fn next_visible(&mut self) -> Option<Arc<Change>> {
        loop {
            if let Some(change) = self.waiting.pop_front() {
                self.seen = change.revision;
                return Some(change);
            }
            self.held = None;
            let source = self.source.as_mut()?;
            let HeldPage { page, held } = source.page().await?;
            source.position = page.end;
            if page.changes.is_empty() && page.last {
                return None;
            }
            self.waiting.extend(page.changes);
            self.held = held;
        }
    }

    /// The next change; `None` at the end. Cancel-safe.
    pub async fn next(&mut self) -> Option<Arc<Change>> {
        loop {
            if let Some(change) = self.waiting.pop_front() {
                self.seen = change.revision;
                return Some(change);
            }
            self.held = None;
            let source = self.source.as_mut()?;
            if source.is_read_out && source.wait().await.is_err() {
                self.source = None;
                return None;
            }
            source.is_read_out = false;
            // Marked as seen before reading: a change after this wakes the watch again.
            source.changed.borrow_and_update();
            let Some(HeldPage { page, held }) = source.page().await else {
                self.source = None;
                return None;
            };
            source.position = page.end;
            source.is_read_out = page.last;
            self.waiting.extend(page.changes);
            self.held = held;
        }
    }
}

impl ChangeSource {
    fn is_quiet(&self) -> bool {
        self.is_read_out && matches!(self.changed.has_changed(), Ok(false))
    }

    /// Waits until the collection changes, or is dropped from memory. Cancel-safe.
    async fn wait(&mut self) -> Result<(), RecvError> {
        if !self.reads_log {
            return self.changed.changed().await;
        }
        loop {
            match timeout(ADVANCE_EVERY, self.changed.changed()).await {
                Ok(changed) => return changed,
                Err(_) => _ = self.advance(),
            }
        }
    }

    /// Moves on to the newest revision, which is returned, if the collection has not changed since the position: the log
    /// need not reach back further.
    fn advance(&mut self) -> Option<Revision> {
        let end = self.log.view.unchanged_until(&self.log.collection, self.position)?;
        self.position = end;
        Some(end)
    }

    /// The next changes; `None` if they are gone, or if the database or the memory is. Cancel-safe.
    async fn page(&mut self) -> Option<HeldPage> {
        let recent = self.log.view.recent(&self.log.collection, self.position, RECENT_PAGE);
        self.reads_log = recent.is_none();
        let found = match recent {
            Some(page) => self.hold(page).await,
            None => self.read_page().await,
        };
        match found {
            Ok(found) => return Some(found),
            Err(NoPage::Gone) => {}
            Err(NoPage::Full) => tracing::debug!("a watch ends, as there is no memory for its next change"),
            Err(NoPage::Store(error)) => tracing::warn!(%error, "a watch ends, as the log can't be read"),
        }
        None
    }

    /// Changes that are in memory. Watches share them, and the memory of a large one.
    async fn hold(&self, page: LogPage) -> Result<HeldPage, NoPage> {
        let held = match (&self.client, large_change(&page)) {
            (Some(client), Some(change)) => Some(client.share(change).await?),
            _ => None,
        };
        Ok(HeldPage { page, held })
    }

    /// Changes from the database. Watches share a large one and its memory.
    async fn read_page(&mut self) -> Result<HeldPage, NoPage> {
        loop {
            let held = match &self.client {
                Some(client) => Some(client.reserve(client.log_bytes).await?),
                None => None,
            };
            let page = self.log.read_page(self.position, &self.changed).await?.ok_or(NoPage::Gone)?;
            let Some(client) = &mut self.client else { return Ok(HeldPage { page, held: None }) };
            let large = large_change(&page);
            if let Some(shared) = large.and_then(|change| change.reserved()) {
                client.log_bytes = LOG_BYTES;
                return Ok(HeldPage { page, held: Some(shared) });
            }
            let bytes = page.changes.iter().map(|change| held_bytes(change)).sum();
            let reserved = std::mem::replace(&mut client.log_bytes, LOG_BYTES.max(bytes));
            if bytes <= reserved {
                let held = match (large, held) {
                    (Some(change), Some(held)) => Some(change.keep_reserved(held)),
                    (_, held) => held.map(Arc::new),
                };
                return Ok(HeldPage { page, held });
            }
            // A single large change: it is read again once there is memory for it.
        }
    }
}

impl WatchClient {
    async fn reserve(&self, bytes: usize) -> Result<Reservation, Full> {
        self.memory.for_changes(self.user.as_deref(), bytes).await
    }

    /// The memory of a change, which the first of its readers reserves for all.
    async fn share(&self, change: &Change) -> Result<Arc<Reservation>, Full> {
        match change.reserved() {
            Some(reserved) => Ok(reserved),
            None => Ok(change.keep_reserved(self.reserve(held_bytes(change)).await?)),
        }
    }
}

/// The change of a page that has a single large one.
fn large_change(page: &LogPage) -> Option<&Arc<Change>> {
    match page.changes.as_slice() {
        [change] if change.size_bytes() > RECENT_PAGE.bytes => Some(change),
        _ => None,
    }
}

/// What a change takes with its event.
fn held_bytes(change: &Change) -> usize {
    change.size_bytes() + change.object.bytes.len()
}

/// Why there are no changes.
enum NoPage {
    /// There is no memory for them.
    Full,
    /// They have been compacted.
    Gone,
    Store(StoreError),
}

impl From<Full> for NoPage {
    fn from(_: Full) -> Self {
        NoPage::Full
    }
}

impl From<StoreError> for NoPage {
    fn from(error: StoreError) -> Self {
        NoPage::Store(error)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::super::database::Database;
    use super::super::{Collection, Config, Encoded, Location, Op, Put, Write};
    use super::*;
    use crate::store::memory::InMemory;

    const CHANGE_BYTES: usize = 400 << 10;
    /// Four changes of a user with both their states and an event, for an eighth of it is half the user's.
    const LIMIT_BYTES: usize = 16 * 4 * 3 * CHANGE_BYTES;

    async fn database() -> Database {
        let store = Arc::new(InMemory::default());
        Database::of(store, None, &Location::Memory, &Config::memory()).await.expect("it opens")
    }

    fn things() -> Collection {
        Collection::new("", "things")
    }

    async fn change(database: &Database) {
        let put = Put {
            object: Encoded::new(vec![b' '; CHANGE_BYTES]),
            uid: "u".into(),
            stored_version: "v1".into(),
            schema_generation: 1,
            expires_at_ms: None,
            served_under: None,
        };
        let write = Write { collection: things(), key: "a".into(), op: Op::Put(put), guards: Vec::new() };
        database.write(write).await.expect("it is written");
    }

    async fn watch(database: &Database, after: Revision, user: &str, memory: &Arc<Memory>) -> LogWatch {
        database.watch(&things(), after).await.expect("it is in the log").read_by(Some(user), memory)
    }

    #[tokio::test(start_paused = true)]
    async fn slow_clients_share_a_large_change_and_its_memory() {
        let (database, memory) = (database().await, Arc::new(Memory::new(LIMIT_BYTES)));
        change(&database).await;
        let begun = database.revision();
        let watches = (0..100).map(|_| watch(&database, begun, "jane", &memory));
        let mut watches = join_all(watches).await;
        change(&database).await;
        let changes = join_all(watches.iter_mut().map(LogWatch::next)).await;
        assert!(changes.iter().all(Option::is_some));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_ends_if_there_is_no_memory_for_what_its_client_is_to_read() {
        let (database, memory) = (database().await, Arc::new(Memory::new(LIMIT_BYTES)));
        change(&database).await;
        let begun = database.revision();
        let mut watches = Vec::new();
        for at in 0..20 {
            change(&database).await;
            let after = Revision::new(begun.get() + at);
            watches.push(watch(&database, after, "jane", &memory).await);
        }
        // Each at another change: those from the database and those in memory.
        let changes = join_all(watches.iter_mut().map(LogWatch::next)).await;
        assert_eq!(changes.iter().flatten().count(), 4);
        let mut other = watch(&database, begun, "joe", &memory).await;
        for _ in 0..20 {
            assert!(other.next().await.is_some(), "a change is read after the one before it");
        }
        drop(watches);
        assert!(watch(&database, begun, "jane", &memory).await.next().await.is_some());
    }
}
