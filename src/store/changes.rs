//! Changes on their way from a commit to their readers: into the view, to the feed of all collections, and to the
//! watches of one collection.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::meta::Revision;

use super::page_max::PageMax;
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

impl From<ChangeEvent> for (Collection, Applied) {
    fn from(change: ChangeEvent) -> Self {
        let ChangeEvent { collection, key, uid, revision, stored } = change;
        (collection, Applied { key, uid, revision, stored })
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

    /// A change in a collection.
    pub(super) fn of(collection: &Collection, change: &Change) -> Self {
        let Change { revision, object, deleted, .. } = change;
        let (key, uid) = (Arc::clone(&object.key), Arc::clone(&object.uid));
        let stored = (!deleted).then(|| Arc::clone(object));
        ChangeEvent { collection: collection.clone(), key, uid, revision: *revision, stored }
    }

    /// The size of the new state.
    pub(super) fn size_bytes(&self) -> usize {
        self.stored.as_ref().map_or(0, |stored| stored.bytes.len())
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
        self.bytes += entry.size_bytes();
        self.entries.push_back(entry);
        while self.entries.len() > NEWEST_MAX || self.bytes > NEWEST_BYTES_MAX {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.size_bytes();
            self.from = oldest.revision;
        }
    }

    /// The first changes after a revision; `None` if some of them are no longer in memory.
    pub fn after_revision(&self, after: Revision, max: PageMax) -> Option<Vec<ChangeEvent>> {
        if after < self.from {
            return None;
        }
        let first = self.entries.partition_point(|entry| entry.revision <= after);
        Some(max.first_of(self.entries.range(first..).cloned(), ChangeEvent::size_bytes))
    }
}

/// Part of the log of a collection.
#[derive(Clone)]
pub(super) struct LogPage {
    pub changes: Vec<Arc<Change>>,
    /// Up to this revision no change of the collection is missing; the next page begins here.
    pub end: Revision,
    /// Whether everything that was visible has been read.
    pub last: bool,
}
