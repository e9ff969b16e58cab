//! Changes in order: from memory as far as it reaches back, otherwise from the database.
//!
//! Compaction announces itself before it removes anything, so what was read is complete if its beginning has not been
//! compacted.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::watch;

use crate::meta::Revision;

use super::backend::Store;
use super::changes::{Applied, LogPage};
use super::snapshot::Snapshot;
use super::view::View;
use super::{Change, Collection, StoreError};

/// How many changes are taken at a time.
const PAGE_MAX: usize = 256;

/// The first visible changes of a loaded collection after `after`; `None` if they are gone.
async fn page(
    view: &View,
    store: &dyn Store,
    collection: &Collection,
    after: Revision,
) -> Result<Option<LogPage>, StoreError> {
    if let Some(page) = view.recent(collection, after, PAGE_MAX) {
        return Ok(Some(page));
    }
    let visible = view.revision();
    let log = store.changes_after(collection, after, PAGE_MAX).await?;
    // Another process may have compacted.
    view.set_compacted(log.compacted);
    if after < view.compacted() {
        return Ok(None);
    }
    let last = log.changes.len() < PAGE_MAX || log.changes.last().is_some_and(|change| change.revision >= visible);
    let changes = log.changes.into_iter().filter(|change| change.revision <= visible).map(Arc::new);
    let changes: Vec<_> = changes.collect();
    let end = match changes.last() {
        Some(change) if !last => change.revision,
        _ => visible.max(after),
    };
    Ok(Some(LogPage { changes, end, last }))
}

/// `present` reverted to its own revision by undoing the changes after it; `None` if they are gone.
///
/// `present` holds the objects of some later moment. A key's state at the revision is the state before its first change
/// after the revision.
pub(super) async fn rebuild(
    view: &View,
    store: &dyn Store,
    mut present: Snapshot,
) -> Result<Option<Snapshot>, StoreError> {
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    let mut after = present.revision();
    loop {
        let Some(page) = page(view, store, present.collection(), after).await? else { return Ok(None) };
        for change in page.changes {
            if seen.insert(Arc::clone(&change.object.key)) {
                present.take_back(&change);
            }
        }
        if page.last {
            return Ok(Some(present));
        }
        after = page.end;
    }
}

/// Makes visible what is in the log but not in the view: the changes of other processes.
///
/// The view starts over if the log no longer reaches back to it, because this process was frozen or cut off for longer
/// than states are kept; and if the log is behind the view, because the database crashed and lost what it had
/// acknowledged.
pub(super) async fn poll(view: &View, store: &dyn Store) -> Result<(), StoreError> {
    loop {
        let after = view.revision();
        let log = store.log_after(after, PAGE_MAX).await?;
        if after < log.compacted || log.newest < after {
            let (newest, compacted) = (log.newest, log.compacted);
            tracing::warn!(%after, %newest, %compacted, "changes were missed or lost, all objects are read anew");
            view.start_over(after, log.newest, log.compacted);
            continue;
        }
        let last = log.changes.len() < PAGE_MAX;
        view.publish(log.changes.into_iter().map(|(collection, change)| (collection, Applied::from(change))).collect());
        if last {
            return Ok(());
        }
    }
}

/// The changes of a collection, one after the other.
///
/// A watch has no queue: it continues from its position, in memory, or in the log if it is far behind. A watch that
/// falls behind the log's history ends.
pub struct LogWatch {
    source: Option<ChangeSource>,
    waiting: VecDeque<Arc<Change>>,
    seen: Revision,
}

struct ChangeSource {
    view: Arc<View>,
    store: Arc<dyn Store>,
    collection: Collection,
    position: Revision,
    /// Whether everything has been read that was visible when `changed` was last checked.
    is_read_out: bool,
    changed: watch::Receiver<Revision>,
}

impl LogWatch {
    pub(super) fn new(
        view: Arc<View>,
        store: Arc<dyn Store>,
        collection: Collection,
        position: Revision,
        changed: watch::Receiver<Revision>,
    ) -> Self {
        let source = ChangeSource { view, store, collection, position, is_read_out: false, changed };
        LogWatch { source: Some(source), waiting: VecDeque::new(), seen: position }
    }

    /// A watch that is over.
    pub fn empty() -> Self {
        LogWatch { source: None, waiting: VecDeque::new(), seen: Revision::default() }
    }

    /// The revision of the last change that was handed out, or the one at which the watch began.
    pub fn seen(&self) -> Revision {
        self.seen
    }

    /// The newest revision up to which every change of the collection was handed out: it also rises while other
    /// collections change.
    pub fn progress(&self) -> Revision {
        if !self.waiting.is_empty() {
            return self.seen;
        }
        let Some(source) = &self.source else { return self.seen };
        match source.view.recent(&source.collection, source.position, 1) {
            Some(page) if page.changes.is_empty() => self.seen.max(page.end),
            _ => self.seen,
        }
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
            let source = self.source.as_mut()?;
            let page = source.page().await?;
            source.position = page.end;
            if page.changes.is_empty() && page.last {
                return None;
            }
            self.waiting.extend(page.changes);
        }
    }

    /// The next change; `None` at the end. Cancel-safe.
    pub async fn next(&mut self) -> Option<Arc<Change>> {
        loop {
            if let Some(change) = self.waiting.pop_front() {
                self.seen = change.revision;
                return Some(change);
            }
            let source = self.source.as_mut()?;
            if source.is_read_out && source.changed.changed().await.is_err() {
                self.source = None;
                return None;
            }
            source.is_read_out = false;
            // Marked as seen before reading: a change after this wakes the watch again.
            source.changed.borrow_and_update();
            let Some(page) = source.page().await else {
                self.source = None;
                return None;
            };
            source.position = page.end;
            source.is_read_out = page.last;
            self.waiting.extend(page.changes);
        }
    }
}

impl ChangeSource {
    fn is_quiet(&self) -> bool {
        self.is_read_out && matches!(self.changed.has_changed(), Ok(false))
    }

    /// The next changes; `None` if they are gone, or if the database is.
    async fn page(&self) -> Option<LogPage> {
        match page(&self.view, &*self.store, &self.collection, self.position).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, "a watch ends, as the log can't be read");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::store::memory::InMemory;
    use crate::store::{Op, Put, Write};

    use super::*;

    #[tokio::test]
    async fn what_another_process_writes_becomes_visible_in_order() {
        let store = InMemory::default();
        let (revision, compacted) = store.revisions().await.expect("it reads");
        let view = View::new(revision, compacted, usize::MAX);
        let things = Collection::new("", "things");
        view.begin_loading(&things);
        view.finish_loading(&things, Default::default(), revision);
        let put = Op::Put(Put {
            object: crate::store::Encoded::new("{}"),
            uid: "u".into(),
            stored_version: "v1".into(),
            schema_generation: 1,
            expires_at_ms: None,
            served_under: None,
        });
        let write = |key: &str, op: &Op| Write {
            collection: things.clone(),
            key: key.into(),
            op: op.clone(),
            guards: Vec::new(),
        };
        store.commit(&[write("a", &put), write("b", &put)], None).await.expect("it commits");
        store.commit(&[write("a", &Op::Delete)], None).await.expect("it commits");

        // The writer of this process gets the last batch first, and must not show it yet.
        let ahead =
            Applied { key: "a".into(), uid: "u".into(), revision: Revision::new(revision.get() + 3), stored: None };
        assert!(!view.publish_next(vec![(things.clone(), ahead)]));
        assert_eq!(view.revision(), revision);

        poll(&view, &store).await.expect("it polls");
        assert_eq!(view.revision().get(), revision.get() + 3);
        let page = view.recent(&things, revision, PAGE_MAX).expect("it is in memory");
        let seen: Vec<_> = page.changes.iter().map(|change| (&*change.object.key, change.deleted)).collect();
        assert_eq!(seen, [("a", false), ("b", false), ("a", true)]);
    }
}
