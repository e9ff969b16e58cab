//! Some objects of a collection that is too large for memory, read from the database for one request.

use std::sync::Arc;

use crate::memory::{Full, Memory, Reservation};
use crate::meta::Revision;

use super::key_range::{self, KeyRange};
use super::page_max::PageMax;
use super::snapshot::Snapshot;
use super::{At, Stored};

/// How many bytes a page has at most, unless it has a single object.
pub(super) const PAGE_BYTES: usize = 4 << 20;
/// How many objects a page has at most.
const PAGE_OBJECTS_MAX: usize = 10_000;
/// How many bytes may be added to a range between when it is measured and read.
const ADDED_BYTES: usize = 64 << 10;
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
    /// How much memory it takes.
    pub fn memory_bytes(&self) -> usize {
        memory_of_objects(self.objects.len(), self.objects.iter().map(|stored| stored.bytes.len()).sum())
    }

    /// The first key that it does not reach, if others of the range follow.
    pub fn next_key(&self) -> Option<String> {
        self.objects.last().filter(|_| self.is_cut).map(|last| key_range::after(&last.key))
    }
}

/// Takes objects, in the order of their keys, until they are as many as a part may have.
pub(super) struct PartRows {
    max: PageMax,
    bytes: usize,
    pub objects: Vec<Arc<Stored>>,
}

impl PartRows {
    pub fn new(max: PageMax) -> Self {
        PartRows { max, bytes: 0, objects: Vec::new() }
    }

    /// Takes the next object; `None` if the part has enough. There is always room for one.
    pub fn take(&mut self, stored: Arc<Stored>) -> Option<()> {
        self.bytes = self.bytes.saturating_add(stored.bytes.len());
        let has_room = self.objects.len() < self.max.changes && self.bytes <= self.max.bytes;
        (has_room || self.objects.is_empty()).then(|| self.objects.push(stored))
    }
}

/// What is read where a collection is too large for memory.
pub struct PartRequest {
    pub at: At,
    pub range: KeyRange,
    pub size: PartSize,
    pub reader: PartReader,
}

/// How much of a range is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartSize {
    All,
    /// So many objects, or fewer if they are large.
    First(usize),
}

/// Who reads a part, and so whose memory it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PartReader {
    /// The server itself.
    #[default]
    Server,
    /// A client; `None` if its share is not limited.
    Client(Option<Arc<str>>),
    /// A request that is checked against it, and has memory for its own work.
    Check,
}

impl PartReader {
    pub(super) async fn reserve(&self, memory: &Memory, bytes: usize) -> Result<Reservation, Full> {
        /// No user has such a name.
        const SERVER: &str = "";
        match self {
            PartReader::Server => memory.for_part(Some(SERVER), bytes).await,
            PartReader::Client(user) => memory.for_part(user.as_deref(), bytes).await,
            PartReader::Check => memory.for_listed(bytes).await,
        }
    }
}

impl PartSize {
    /// How much is read, where all of the range has so many bytes, or that is not known; `None` if that is more than
    /// `bytes_max`.
    pub(super) fn max(self, bytes: Option<usize>, bytes_max: usize, page_bytes_max: usize) -> Option<PageMax> {
        match self {
            PartSize::All => {
                // Others may write until it is read.
                let more = |bytes: usize| (bytes + bytes / 4 + ADDED_BYTES).min(bytes_max);
                let bytes = bytes.unwrap_or(bytes_max);
                (bytes <= bytes_max).then(|| PageMax { changes: usize::MAX, bytes: more(bytes) })
            }
            PartSize::First(objects) => Some(PageMax { changes: objects.min(PAGE_OBJECTS_MAX), bytes: page_bytes_max }),
        }
    }
}

/// How much memory a part takes that has at most so much.
pub(super) fn memory_of(max: PageMax) -> usize {
    const TEXT_BYTES_MIN: usize = 128;
    memory_of_objects(max.changes.min(max.bytes / TEXT_BYTES_MIN + 1), max.bytes)
}

fn memory_of_objects(objects: usize, bytes: usize) -> usize {
    bytes.saturating_add(objects.saturating_mul(OBJECT_BYTES))
}

/// Objects of a collection at one revision: those of a range of keys, or the first of them, if the collection is too
/// large for memory, otherwise all.
pub struct CollectionPart {
    snapshot: Snapshot,
    range: KeyRange,
    extent: PartExtent,
    /// The memory of what this part has alone.
    reserved: Option<Reservation>,
}

enum PartExtent {
    Collection,
    Range,
    /// The range before this key, from which on others follow.
    Before(Box<str>),
}

impl CollectionPart {
    pub(super) fn whole(snapshot: Snapshot, range: KeyRange) -> Self {
        CollectionPart { snapshot, range, extent: PartExtent::Collection, reserved: None }
    }

    /// `next` is the first key that was not read, if others of the range follow.
    pub(super) fn read(snapshot: Snapshot, (range, next): (KeyRange, Option<Box<str>>), reserved: Reservation) -> Self {
        let extent = next.map_or(PartExtent::Range, PartExtent::Before);
        CollectionPart { snapshot, range, extent, reserved: Some(reserved) }
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The snapshot, and the memory that is reserved for what it has alone.
    pub fn into_snapshot(self) -> (Snapshot, Option<Reservation>) {
        (self.snapshot, self.reserved)
    }

    /// Takes over the memory that is reserved for it.
    pub fn take_reserved(&mut self) -> Option<Reservation> {
        self.reserved.take()
    }

    /// Whether the snapshot has all objects of the collection, which others share.
    pub fn is_whole(&self) -> bool {
        matches!(self.extent, PartExtent::Collection)
    }

    /// The key from which on others of the range follow that are not in the snapshot.
    pub fn next_key(&self) -> Option<&str> {
        match &self.extent {
            PartExtent::Before(next) => Some(next),
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
