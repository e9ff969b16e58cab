//! Changes on their way from a commit to their readers: into the view, to the feed of all collections, and to the
//! watches of one collection.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::meta::Revision;

use super::{Change, Collection, Stored};

/// How many changes stay in memory.
const NEWEST_MAX: usize = 2_000;
/// How many bytes of objects stay in memory with them.
const NEWEST_BYTES_MAX: usize = 4 << 20;

/// A change on its way into the view.
pub(super) struct Applied {
    pub key: Arc<str>,
    pub uid: Arc<str>,
    pub revision: Revision,
    /// The new state; `None` for a deletion.
    pub stored: Option<Arc<Stored>>,
}

impl From<Change> for Applied {
    fn from(change: Change) -> Self {
        let Change { revision, object, deleted, .. } = change;
        let (key, uid) = (Arc::clone(&object.key), Arc::clone(&object.uid));
        Applied { key, uid, revision, stored: (!deleted).then_some(object) }
    }
}

/// A change of some collection.
#[derive(Clone, Debug)]
pub struct ChangeEvent {
    pub collection: Collection,
    pub key: Arc<str>,
    pub uid: Arc<str>,
    pub revision: Revision,
    /// The new state; `None` for a deletion.
    pub stored: Option<Arc<Stored>>,
}

impl ChangeEvent {
    pub(super) fn new(collection: &Collection, applied: &Applied) -> Self {
        ChangeEvent {
            collection: collection.clone(),
            key: Arc::clone(&applied.key),
            uid: Arc::clone(&applied.uid),
            revision: applied.revision,
            stored: applied.stored.clone(),
        }
    }

    fn bytes(&self) -> usize {
        self.stored.as_ref().map_or(0, |stored| stored.bytes.len())
    }
}

impl From<(Collection, Change)> for ChangeEvent {
    fn from((collection, change): (Collection, Change)) -> Self {
        ChangeEvent::new(&collection, &Applied::from(change))
    }
}

/// The changes that stay in memory.
pub(super) struct Newest {
    entries: VecDeque<ChangeEvent>,
    bytes: usize,
    /// Every change after this revision is among them.
    from: Revision,
}

impl Newest {
    pub fn after(revision: Revision) -> Self {
        Newest { entries: VecDeque::new(), bytes: 0, from: revision }
    }

    pub fn push(&mut self, entry: ChangeEvent) {
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.entries.len() > NEWEST_MAX || self.bytes > NEWEST_BYTES_MAX {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.bytes();
            self.from = oldest.revision;
        }
    }

    /// The first `max` changes after a revision; `None` if some of them are no longer in memory.
    pub fn after_revision(&self, after: Revision, max: usize) -> Option<Vec<ChangeEvent>> {
        if after < self.from {
            return None;
        }
        let first = self.entries.partition_point(|entry| entry.revision <= after);
        Some(self.entries.range(first..).take(max).cloned().collect())
    }
}

/// Part of the log of a collection.
pub(super) struct LogPage {
    pub changes: Vec<Arc<Change>>,
    /// Up to this revision no change of the collection is missing; the next page begins here.
    pub end: Revision,
    /// Whether everything that was visible has been read.
    pub last: bool,
}
