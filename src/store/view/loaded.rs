//! One collection in memory: its objects, its recent changes, and the states that are kept for pages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::watch;

use crate::meta::Revision;

use super::super::changes::{Applied, LogPage};
use super::super::held::ReplacedState;
use super::super::objects::Objects;
use super::super::page_max::PageMax;
use super::super::snapshot::Snapshot;
use super::super::{Change, Stored};

/// How many changes of a collection stay in memory; older ones are read from the log.
const RECENT_MAX: usize = 2_000;
/// How many bytes of former states stay in memory with the recent changes of a collection, in addition to the current
/// state.
const RECENT_BYTES_MAX: usize = 2 << 20;
/// How many changes of a collection keep their encoded events: a watch that keeps up is never further behind.
const WITH_FORMS_MAX: usize = 64;
/// How many states of a collection are kept for pages.
const PINS_MAX: usize = 32;
/// How many bytes of changes a state that is kept for pages may be behind: this limits what it keeps in memory.
const PIN_BYTES_MAX: u64 = 64 << 20;
/// For how many page ends of such a state the number of following objects is remembered.
pub(super) const PAGE_ENDS_MAX: usize = 32;

/// A collection that is loaded.
pub(super) struct Loaded {
    pub objects: Objects,
    pub object_bytes: usize,
    /// The newest change of this collection that is in `objects`, or the revision that it was loaded at.
    pub revision: Revision,
    recent: VecDeque<Arc<Change>>,
    /// The size of the states that only `recent` still holds: each was replaced or deleted by one of the changes.
    recent_bytes: usize,
    /// Every change after this revision is in `recent`.
    recent_from: Revision,
    pins: VecDeque<Pin>,
    /// Bytes of all changes since loading.
    changed_bytes: u64,
    pub changed: watch::Sender<Revision>,
    pub last_read: AtomicU64,
    pub is_required: bool,
}

/// A state that is kept for the next page of a list.
pub(super) struct Pin {
    pub snapshot: Snapshot,
    /// [`Loaded::changed_bytes`] when the state was first read.
    changed_bytes: u64,
    page_ends: VecDeque<PageEnd>,
}

/// The end of a page of a list, and what follows it.
#[derive(Clone, Debug)]
pub struct PageEnd {
    /// The prefix of the list's keys.
    pub prefix: Box<str>,
    /// Where the next page begins.
    pub start: Box<str>,
    /// How many objects of the list the next pages have.
    pub remaining: usize,
}

impl PageEnd {
    fn is_at(&self, prefix: &str, start: &str) -> bool {
        *self.prefix == *prefix && *self.start == *start
    }
}

/// States that were kept for pages.
pub(super) type Unpinned = VecDeque<Pin>;

impl Pin {
    /// How many objects whose keys begin with `prefix` follow from the key `start` on, if a page is known to end there.
    pub fn remaining(&self, prefix: &str, start: &str) -> Option<usize> {
        self.page_ends.iter().find(|page_end| page_end.is_at(prefix, start)).map(|page_end| page_end.remaining)
    }

    /// Records the end of a page; if there are too many, the oldest is dropped.
    fn note(&mut self, page_end: Option<PageEnd>) {
        let Some(page_end) = page_end else { return };
        if self.page_ends.iter().any(|known| known.is_at(&page_end.prefix, &page_end.start)) {
            return;
        }
        if self.page_ends.len() == PAGE_ENDS_MAX {
            self.page_ends.pop_front();
        }
        self.page_ends.push_back(page_end);
    }
}

impl Loaded {
    /// The objects of a collection as they were at `revision`; `changed` tells its watches of later changes.
    pub fn new(objects: Objects, revision: Revision, changed: watch::Sender<Revision>) -> Self {
        Loaded {
            object_bytes: objects.values().map(|stored| stored.bytes.len()).sum(),
            objects,
            revision,
            recent: VecDeque::new(),
            recent_bytes: 0,
            recent_from: revision,
            pins: VecDeque::new(),
            changed_bytes: 0,
            changed,
            last_read: AtomicU64::default(),
            is_required: false,
        }
    }

    pub fn is_watched(&self) -> bool {
        self.changed.receiver_count() > 0
    }

    /// Returns the state that was replaced.
    pub fn apply(&mut self, applied: Applied) -> Option<ReplacedState> {
        // The collection as loaded may already contain a change that is published later.
        if applied.revision <= self.revision {
            return None;
        }
        let Applied { key, revision, stored, .. } = applied;
        let previous = match &stored {
            Some(stored) => self.objects.insert(key, Arc::clone(stored).into()),
            None => self.objects.remove(&key),
        };
        let previous = previous.map(Arc::<Stored>::from);
        let replaced = previous.as_deref().map(|previous| ReplacedState::of(previous, revision));
        let previous_bytes = replaced.map_or(0, |replaced| replaced.bytes);
        self.object_bytes = self.object_bytes.saturating_sub(previous_bytes);
        let change = match (stored, previous) {
            (Some(stored), previous) => {
                self.object_bytes += stored.bytes.len();
                Change::new(revision, stored, previous, false)
            }
            (None, Some(previous)) => {
                let object = Arc::clone(&previous);
                Change::new(revision, object, Some(previous), true)
            }
            // Nothing existed before or after: the store makes no such change.
            (None, None) => return None,
        };
        self.revision = revision;
        self.changed_bytes += previous_bytes as u64;
        let oldest = self.changed_bytes.saturating_sub(PIN_BYTES_MAX);
        self.pins.retain(|pin| pin.changed_bytes >= oldest);
        self.recent_bytes += change.left_behind_bytes();
        self.recent.push_back(Arc::new(change));
        let told = self.recent.len().checked_sub(WITH_FORMS_MAX + 1).and_then(|at| self.recent.get(at));
        if let Some(told) = told {
            told.forget();
        }
        // The newest stays, however large: the watches are about to read it.
        while self.recent.len() > RECENT_MAX || self.recent.len() > 1 && self.recent_bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.recent_bytes -= oldest.left_behind_bytes();
            self.recent_from = oldest.revision;
        }
        self.changed.send_replace(revision);
        replaced
    }

    /// The states that were replaced since a revision, of those that were present then; `None` if that is not known any
    /// more.
    pub fn replaced_since(&self, revision: Revision) -> Option<Vec<ReplacedState>> {
        if self.recent_from > revision {
            return None;
        }
        let from = self.recent.partition_point(|change| change.revision <= revision);
        let replaced = self.recent.range(from..).filter_map(|change| {
            change.previous.as_deref().map(|previous| ReplacedState::of(previous, change.revision))
        });
        Some(replaced.filter(|state| state.from <= revision).collect())
    }

    /// The first recent changes after `after`, of a view at the revision `newest`; `None` if memory does not reach back that
    /// far.
    pub fn changes_after(&self, after: Revision, newest: Revision, max: PageMax) -> Option<LogPage> {
        if self.recent_from > after {
            return None;
        }
        let from = self.recent.partition_point(|change| change.revision <= after);
        let changes = max.first_of(self.recent.range(from..).cloned(), |change| change.size_bytes());
        let last = changes.len() == self.recent.len() - from;
        let end = match changes.last() {
            Some(change) if !last => change.revision,
            _ => newest.max(after),
        };
        Some(LogPage { changes, end, last })
    }

    /// Keeps a state for the next page, which begins after `page_end`.
    pub fn pin(&mut self, snapshot: &Snapshot, page_end: Option<PageEnd>) {
        // A state that is pinned again keeps the age of its objects.
        let known = self.pins.iter().position(|pin| pin.snapshot.revision == snapshot.revision);
        let mut pin = known.and_then(|at| self.pins.remove(at)).unwrap_or_else(|| Pin {
            snapshot: snapshot.clone(),
            changed_bytes: self.changed_bytes,
            page_ends: VecDeque::new(),
        });
        pin.note(page_end);
        if self.pins.len() == PINS_MAX {
            self.pins.pop_front();
        }
        self.pins.push_back(pin);
    }

    /// The state at `revision`, if it is kept for a page.
    pub fn pinned(&self, revision: Revision) -> Option<&Pin> {
        self.pins.iter().find(|pin| pin.snapshot.revision == revision)
    }

    /// Takes the states from before `compacted`.
    pub fn unpin_before(&mut self, compacted: Revision) -> Unpinned {
        let (kept, unpinned) =
            std::mem::take(&mut self.pins).into_iter().partition(|pin| pin.snapshot.revision >= compacted);
        self.pins = kept;
        unpinned
    }

    /// Takes all of them.
    pub fn unpin_all(&mut self) -> Unpinned {
        std::mem::take(&mut self.pins)
    }

    /// How many bytes of former states they keep.
    pub fn pinned_bytes(&self) -> usize {
        let Some(oldest) = self.pins.iter().map(|pin| pin.changed_bytes).min() else { return 0 };
        let replaced = usize::try_from(self.changed_bytes.saturating_sub(oldest)).unwrap_or(usize::MAX);
        let rebuilt = self.pins.iter().map(|pin| pin.snapshot.own_bytes).fold(0, usize::saturating_add);
        replaced.saturating_add(rebuilt)
    }
}
