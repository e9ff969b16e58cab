//! Some objects of a collection that is too large for memory, read from the database for one request.

use std::sync::Arc;

use crate::memory::Reservation;
use crate::meta::Revision;

use super::Stored;
use super::key_range::KeyRange;
use super::page_max::PageMax;
use super::snapshot::Snapshot;

/// How many bytes a page has at most, unless it has a single object.
const PAGE_BYTES: usize = 4 << 20;
/// What an object takes in memory beside its text, in bytes.
const OBJECT_BYTES: usize = 400;

/// What a database returns of a range.
pub(super) struct ReadPart {
    /// In the order of their keys.
    pub objects: Vec<Arc<Stored>>,
    /// The newest revision of the database when they were read.
    pub revision: Revision,
    /// Whether others of the range follow.
    pub is_cut: bool,
}

impl ReadPart {
    /// The last key, if others of the range follow.
    pub fn last_of_cut(&self) -> Option<Arc<str>> {
        self.objects.last().filter(|_| self.is_cut).map(|last| Arc::clone(&last.key))
    }
}

/// Takes objects, in the order of their keys, until they are as many as a part may have.
pub(super) struct PartReader {
    max: PageMax,
    bytes: usize,
    pub objects: Vec<Arc<Stored>>,
}

impl PartReader {
    pub fn new(max: PageMax) -> Self {
        PartReader { max, bytes: 0, objects: Vec::new() }
    }

    /// Takes the next object; `None` if the part has enough. There is always room for one.
    pub fn take(&mut self, stored: Arc<Stored>) -> Option<()> {
        self.bytes = self.bytes.saturating_add(stored.bytes.len());
        let has_room = self.objects.len() < self.max.changes && self.bytes <= self.max.bytes;
        (has_room || self.objects.is_empty()).then(|| self.objects.push(stored))
    }
}

/// How much of a range is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartSize {
    All,
    /// So many objects, or fewer if they are large.
    First(usize),
}

impl PartSize {
    /// How much is read, where all of the range has so many bytes, or that is not known; `None` if that is more than the
    /// maximum.
    pub(super) fn max(self, bytes: Option<usize>, bytes_max: usize) -> Option<PageMax> {
        match self {
            PartSize::All => {
                let bytes = bytes.unwrap_or(bytes_max);
                (bytes <= bytes_max).then_some(PageMax { changes: usize::MAX, bytes })
            }
            PartSize::First(objects) => Some(PageMax { changes: objects, bytes: PAGE_BYTES.min(bytes_max) }),
        }
    }
}

/// How much memory a part takes that has at most so much.
pub(super) fn memory_of(max: PageMax) -> usize {
    const TEXT_BYTES_MIN: usize = 128;
    let objects = max.changes.min(max.bytes / TEXT_BYTES_MIN + 1);
    max.bytes.saturating_add(objects.saturating_mul(OBJECT_BYTES))
}

/// Objects of a collection at one revision: those of a range of keys, or the first of them, if the collection is too
/// large for memory, otherwise all.
pub struct CollectionPart {
    snapshot: Snapshot,
    range: KeyRange,
    extent: PartExtent,
    /// The memory of what this part has alone.
    _reserved: Option<Reservation>,
}

enum PartExtent {
    Collection,
    Range,
    /// The range up to and including this key; others follow.
    Until(Arc<str>),
}

impl CollectionPart {
    pub(super) fn whole(snapshot: Snapshot, range: KeyRange) -> Self {
        CollectionPart { snapshot, range, extent: PartExtent::Collection, _reserved: None }
    }

    /// `last` is the last key of the range that was read, if others follow.
    pub(super) fn read(snapshot: Snapshot, (range, last): (KeyRange, Option<Arc<str>>), reserved: Reservation) -> Self {
        let extent = last.map_or(PartExtent::Range, PartExtent::Until);
        CollectionPart { snapshot, range, extent, _reserved: Some(reserved) }
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The snapshot alone, for a reader whose memory is counted elsewhere.
    pub fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    /// Whether the snapshot has all objects of the collection, which others share.
    pub fn is_whole(&self) -> bool {
        matches!(self.extent, PartExtent::Collection)
    }

    /// The key of the range after which others follow that are not in the snapshot.
    pub fn cut_at(&self) -> Option<&str> {
        match &self.extent {
            PartExtent::Until(last) => Some(last),
            PartExtent::Collection | PartExtent::Range => None,
        }
    }

    /// The objects of the range that the snapshot has.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.snapshot.within(&self.range)
    }

    /// How many bytes they have.
    pub fn size_bytes(&self) -> usize {
        self.objects().map(|stored| stored.bytes.len()).sum()
    }
}
