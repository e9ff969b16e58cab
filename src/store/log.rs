//! Changes in order: from memory as far as it reaches back, otherwise from the database.
//!
//! Compaction announces itself before it removes anything, so what was read is complete if its beginning has not been
//! compacted.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::meta::Revision;

use super::backend::Store;
use super::changes::LogPage;
use super::key_range::KeyRange;
use super::page_max::PageMax;
use super::snapshot::Snapshot;
use super::view::View;
use super::{Collection, StoreError};

/// How much is read at a time of the changes of a collection: a watch has it in memory until its client has read it.
pub(super) const PAGE: PageMax = PageMax { bytes: 64 << 10, ..PageMax::USUAL };

/// What a key that was reverted takes beside its text, in bytes.
const KEY_BYTES: usize = 100;
/// The same in a state that shares the rest with the present one: parts of its map are copied.
const SHARED_KEY_BYTES: usize = 1 << 10;

/// The first visible changes of a loaded collection after `after`, from the database; `None` if they are gone.
pub(super) async fn read_page(
    view: &View,
    store: &dyn Store,
    collection: &Collection,
    after: Revision,
) -> Result<Option<LogPage>, StoreError> {
    let visible = view.revision();
    let log = store.changes_after(collection, after, PAGE).await?;
    // Another process may have compacted.
    view.set_compacted(log.compacted);
    if after < view.compacted() {
        return Ok(None);
    }
    let last = log.changes.last().is_none_or(|change| change.revision >= visible);
    let changes = log.changes.into_iter().filter(|change| change.revision <= visible).map(Arc::new);
    let changes: Vec<_> = changes.collect();
    let end = match changes.last() {
        Some(change) if !last => change.revision,
        _ => visible.max(after),
    };
    Ok(Some(LogPage { changes, end, last }))
}

/// What is reverted, and what happens if the states before the changes have more bytes than they may.
pub(super) enum Reverted {
    /// All of it: that is an error.
    All { bytes_max: usize },
    /// Those of a range: it is cut off.
    Range { range: KeyRange, bytes_max: usize },
}

/// `present` reverted to its own revision by undoing the changes after it, and the key from which on it is cut off;
/// `None` if they are gone.
///
/// `present` holds the objects of some later moment, or those of a range. A key's state at the revision is the state
/// before its first change after the revision.
///
/// Errors: among others, all of it takes more than it may.
pub(super) async fn rebuild(
    view: &View,
    store: &dyn Store,
    mut present: Snapshot,
    reverted: Reverted,
) -> Result<Option<(Snapshot, Option<Arc<str>>)>, StoreError> {
    let (mut range, bytes_max, is_whole) = match reverted {
        Reverted::All { bytes_max } => (KeyRange::of(""), bytes_max, true),
        Reverted::Range { range, bytes_max } => (range, bytes_max, false),
    };
    let mut seen: HashSet<Arc<str>> = HashSet::new();
    let (mut reverted, mut bytes, mut cut) = (BTreeMap::new(), 0_usize, None);
    let mut after = present.revision();
    loop {
        let page = match view.recent(present.collection(), after, PAGE) {
            Some(page) => page,
            None => match read_page(view, store, present.collection(), after).await? {
                Some(page) => page,
                None => return Ok(None),
            },
        };
        for change in page.changes {
            let key = &change.object.key;
            if !range.has(key) || !seen.insert(Arc::clone(key)) {
                continue;
            }
            present.take_back(&change);
            let key_bytes = key.len() + if is_whole { SHARED_KEY_BYTES } else { KEY_BYTES };
            let its_bytes = change.previous.as_ref().map_or(0, |previous| previous.bytes.len()) + key_bytes;
            bytes = bytes.saturating_add(its_bytes);
            if is_whole {
                if bytes > bytes_max {
                    return Err(StoreError::NoMemory);
                }
                continue;
            }
            reverted.insert(Arc::clone(key), its_bytes);
            while bytes > bytes_max && reverted.len() > 1 {
                let Some((last, its_bytes)) = reverted.pop_last() else { break };
                bytes = bytes.saturating_sub(its_bytes);
                present.remove(&last);
                range = range.before(&last);
                cut = Some(last);
            }
        }
        if page.last {
            cut.iter().for_each(|cut: &Arc<str>| present.cut(cut));
            present.own_bytes = bytes;
            return Ok(Some((present, cut)));
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
        let log = store.log_after(after, PageMax::USUAL).await?;
        if after < log.compacted || log.newest < after {
            let (newest, compacted) = (log.newest, log.compacted);
            tracing::warn!(%after, %newest, %compacted, "changes were missed or lost, all objects are read anew");
            view.start_over(after, log.newest, log.compacted);
            continue;
        }
        let last = log.changes.last().is_none_or(|last| last.revision >= log.newest);
        view.publish(log.changes.into_iter().map(Into::into).collect());
        if last {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::store::memory::InMemory;
    use crate::store::{Op, Put, Write};

    use super::super::changes::Applied;
    use super::super::view::ViewMax;
    use super::*;

    #[tokio::test]
    async fn what_another_process_writes_becomes_visible_in_order() {
        let store = InMemory::default();
        let (revision, compacted) = store.revisions().await.expect("it reads");
        let view = View::new(revision, compacted, ViewMax::ENDLESS);
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
        let page = view.recent(&things, revision, PAGE).expect("it is in memory");
        let seen: Vec<_> = page.changes.iter().map(|change| (&*change.object.key, change.deleted)).collect();
        assert_eq!(seen, [("a", false), ("b", false), ("a", true)]);
    }
}
