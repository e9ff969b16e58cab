//! Objects and the log of their changes, on one rising revision.
//!
//! Input: writes with the guards that they were decided under. Output: what is stored, at the newest or at an exact revision, and
//! every change in commit order without gaps. This module knows no kinds: bytes, keys and revisions are all it sees.
//!
//! [`Storage`] is the registry's interface: one [`database`], or several that share the collections. In each, one task
//! commits waiting writes in batches ([`writer`]), each collection has its current state and its recent changes in
//! memory ([`view`]), older changes are read from the [`log`]; and a [`backend::Store`] keeps everything on disk, or in
//! memory alone ([`memory`]).
//!
//! # How it is kept
//!
//! - `changes` holds every change with its bytes, `objects` points to the newest one of each live key, `meta` to the
//!   newest and the oldest readable revision. Keys are `namespace/name`, compared byte by byte, since Kubernetes lists
//!   in that order.
//! - The stored JSON is compact, sorted, and has no resourceVersion: that is the row's revision. `store::encoded`
//!   splices it in while an answer is copied.
//! - The view keeps, per collection, a persistent map from key to bytes, and the recent changes. A snapshot is another
//!   handle on the map, so a list and its pages cost no copy of it. Collections are loaded on first use; beyond a
//!   quarter of the memory the least recently read ones are dropped, if nobody watches them. If a single collection is
//!   larger than that, or takes long to load, single objects are read from the database; a list or a watch still loads
//!   it.
//! - A collection of more than half of the memory is never loaded. A list of a namespace, or a page, reads its own part
//!   (`part`), and a watch reads the log. So do the watches of a collection that grows beyond that, or is the largest of
//!   watched ones that together have more than three quarters: it is dropped, and they go on from the log.
//! - An exact revision is the pinned snapshot of a page, or the current state minus the log after it, or 410.
//! - A watch reads from the recent changes, or from the log if it is behind. It is woken by commits and never depends
//!   on being woken. The log is read in parts of few bytes (`PageMax`). What a client of a watch has not read takes
//!   memory that is reserved (`log_watch`); the states that a slow reader of a list or of initial events holds are
//!   taken back once too much has changed since (`held`).
//! - Derived bytes are kept with the row, by served version and schema generation; if deriving changes nothing, they
//!   are the stored bytes themselves.
//! - The event of a change is encoded once for all watches of the same form (`forms`), and kept while the change is one
//!   of the newest. So is what selectors see of its states; and whether it redefines a kind is found out once
//!   (`findings`).
//! - Compaction removes, in small steps between writes, rows superseded more than five minutes ago. Which revision was
//!   the newest at which time is noted twice a minute, or they would stay if the server were restarted more often than
//!   that. Older watches and tokens get 410. Free space beyond a quarter of the file is returned to the system
//!   (`auto_vacuum = INCREMENTAL`).
//! - A batch is decided on the state of the view, if that has the collections it touches (`View::foresee`), and is then
//!   one message that begins, writes and commits. It has a condition: nothing is written unless the newest revision of
//!   the database is the view's. Otherwise the batch is started again, and the state that it depends on is read.
//! - A row that differs from what was written is kept in memory without its bytes: it can't be read, but others can. A
//!   start checks the whole file, or the ends of a large one; once SQLite reports it as damaged, nothing more is
//!   written. A reserve of 2 MiB next to the file is released if a full disk refuses deletions. `/readyz` fails while
//!   the last write failed, and tries one itself.
//! - Each row has a CRC-32 of its revision, key and bytes. SQLite checks the frames of its log, but not the pages of
//!   the file: without it, a flipped bit would be served.
//! - If a database is unreachable, the answer is `ServerTimeout` with Retry-After, after which client-go and others
//!   retry automatically; the reference has that answer for an unreachable store, though etcd's client never reports
//!   one.
//! - `leases` that end later than a new lease would were taken before a clock was set back, and have expired.
//! - `store::copy` saves, restores and checks. The file is the SQLite database of `migrations/sqlite`, so that there is
//!   one format; a restore is built under another name first, or in one transaction.

mod backend;
mod batch;
mod changes;
mod compact;
pub mod continue_token;
pub mod copy;
mod database;
mod encoded;
mod feed;
mod findings;
mod forms;
mod health;
mod held;
mod interned;
mod key_range;
mod leases;
mod log;
mod log_pages;
mod log_watch;
mod memory;
mod objects;
mod open;
mod page_max;
mod part;
mod postgres;
mod rows;
mod signature;
mod snapshot;
mod sqlite;
mod storage;
mod stored;
mod view;
mod writer;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::memory::{Memory, Room};
use crate::meta::Revision;

pub use backend::StoreCounts;
pub use changes::ChangeEvent;
pub use encoded::Encoded;
#[cfg(test)]
pub(crate) use encoded::tally;
pub use feed::{Feed, Moment};
pub use findings::{ChangeFindings, Selectable, SelectableText};
pub use forms::{ClientForm, RowForm};
pub use held::{HandOut, Revocable, TakenBack};
pub use interned::interned;
pub use key_range::KeyRange;
pub use log_watch::LogWatch;
pub use part::{CollectionPart, PartReader, PartRequest, PartSize};
pub use postgres::PostgresUrl;
pub use signature::Signature;
pub use snapshot::Snapshot;
pub use storage::{PAGE_OBJECTS, Pages, Storage};
pub use stored::{Change, Stored};
pub use view::PageEnd;

/// The objects of one resource: `group/plural`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Collection(Arc<str>);

impl Collection {
    pub fn new(group: &str, plural: &str) -> Self {
        Collection([group, "/", plural].concat().into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is [`Collection::new`] of these names.
    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.0.strip_prefix(group).and_then(|rest| rest.strip_prefix('/')) == Some(plural)
    }

    /// Its group and its plural name.
    pub fn names(&self) -> (&str, &str) {
        self.0.split_once('/').unwrap_or(("", &self.0))
    }
}

/// The location of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In memory, gone with the process.
    Memory,
    /// In a file of this process.
    File(PathBuf),
    /// In a file that other processes of this machine may share.
    Shared(PathBuf),
    /// In a Postgres, which other processes may share.
    Postgres(PostgresUrl),
}

/// When a write counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Once it is on disk.
    #[default]
    Full,
    /// Once the operating system has it: a power failure may lose the newest writes, but never their order.
    Relaxed,
    /// Once the operating system has it, and without waiting for the disk at all: after a power failure the database
    /// may be lost.
    Unsynced,
}

/// How a storage is opened.
#[derive(Clone, Debug)]
pub struct Config {
    pub location: Location,
    /// Collections that are kept in other databases.
    pub overrides: Vec<(Collection, Location)>,
    pub durability: Durability,
    /// How long superseded states stay readable.
    pub history: Duration,
    /// Limits the objects that are kept in memory.
    pub memory: Arc<Memory>,
    /// Collections that are read however large they are, stay in memory, and may become half as large as what may stay.
    pub required: Arc<[Collection]>,
    /// The clock by which objects expire.
    pub clock: Clock,
    /// Whether it belongs to a control plane beside the main one, and leaves some memory to that one.
    pub is_beside: bool,
}

impl Write {
    /// The new state; `None` for a deletion.
    fn put(&self) -> Option<&Put> {
        match &self.op {
            Op::Put(put) => Some(put),
            Op::Delete => None,
        }
    }

    /// Whether it is made only together with the one before it.
    fn is_joined(&self) -> bool {
        self.guards.contains(&Guard::Joined)
    }
}

impl Config {
    /// Superseded states stay for five minutes, as kube-apiserver keeps them.
    pub const HISTORY: Duration = Duration::from_secs(5 * 60);

    /// Everything in one place, on disk when it is acknowledged.
    pub fn new(location: Location) -> Self {
        let memory = Arc::new(Memory::of_system());
        Config {
            location,
            overrides: Vec::new(),
            durability: Durability::Full,
            history: Self::HISTORY,
            memory,
            required: Arc::default(),
            clock: Clock::default(),
            is_beside: false,
        }
    }

    pub fn memory() -> Self {
        Config::new(Location::Memory)
    }

    /// The room for a database in memory.
    fn room(&self) -> Arc<Room> {
        if self.is_beside { self.memory.store_room_beside() } else { self.memory.store_room() }
    }

    /// Every location that outlives the process, after the main one, which is always included.
    pub fn kept_locations(&self) -> impl Iterator<Item = &Location> {
        let others = self.other_locations().into_iter().filter(|location| **location != Location::Memory);
        std::iter::once(&self.location).chain(others)
    }

    /// The locations other than the main one, each once.
    fn other_locations(&self) -> Vec<&Location> {
        let mut others = Vec::new();
        for (_, location) in &self.overrides {
            if *location != self.location && !others.contains(&location) {
                others.push(location);
            }
        }
        others
    }
}

/// One change to be made, and the conditions for it.
#[derive(Clone, Debug)]
pub struct Write {
    pub collection: Collection,
    /// `namespace/name`, or the name alone in cluster scope.
    pub key: Arc<str>,
    pub op: Op,
    pub guards: Vec<Guard>,
}

#[derive(Clone, Debug)]
pub enum Op {
    Put(Put),
    Delete,
}

/// A new state.
#[derive(Clone, Debug)]
pub struct Put {
    /// Compact canonical JSON without `metadata.resourceVersion`, except for fields whose text Go keeps as it was sent.
    pub object: Encoded,
    pub uid: Arc<str>,
    /// The version of the bytes.
    pub stored_version: Arc<str>,
    pub schema_generation: i64,
    /// When the object expires, in milliseconds since 1970.
    pub expires_at_ms: Option<i64>,
    /// The generation of the schemas for which clients get the bytes unchanged, in their stored version.
    pub served_under: Option<i64>,
}

/// A condition that must hold in the transaction of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// There is no object under the key.
    Absent,
    /// The object under the key is at this revision.
    At { revision: Revision },
    /// Another object, which the write depends on, is at this revision.
    Other { collection: Collection, key: Arc<str>, revision: Revision },
    /// The previous write is made: both are made, or neither. For [`Storage::write_together`].
    Joined,
}

/// The maximum number of writes that are made together or not at all.
pub const TOGETHER_MAX: usize = 64;

/// A write that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    pub revision: Revision,
}

/// Why a write was not made. Nothing of it is stored.
#[derive(Clone, Debug)]
pub enum WriteError {
    /// A condition of the write no longer holds; it may be decided again.
    GuardFailed,
    /// Too many writes are waiting.
    Busy,
    Store(StoreError),
}

/// The state that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Newest,
    Exact(Revision),
}

/// Why a state can't be shown.
#[derive(Clone, Debug)]
pub enum SnapshotError {
    /// The log only reaches back to this revision.
    Expired {
        compacted: Revision,
    },
    Store(StoreError),
}

impl From<StoreError> for SnapshotError {
    fn from(error: StoreError) -> Self {
        SnapshotError::Store(error)
    }
}

/// Why changes can't be followed.
#[derive(Clone, Debug)]
pub enum WatchError {
    /// The log only reaches back to this revision.
    Expired {
        compacted: Revision,
    },
    Store(StoreError),
}

/// Why a database can't be used. Its contents are unchanged, and a failed write is not in it.
#[derive(Clone, Debug)]
pub enum StoreError {
    /// The file is open, in another process or in this one.
    InUse(PathBuf),
    /// The file could not be opened or made.
    Open { path: PathBuf, source: Arc<dyn Error + Send + Sync> },
    /// The URL of the database can't be parsed.
    Url(String),
    /// No connection can be made: there is no answer, or the database refuses.
    Connect(Arc<dyn Error + Send + Sync>),
    /// The connection is lost, or none is available.
    Unreachable(Arc<dyn Error + Send + Sync>),
    /// The major version of the database is lower than the minimum.
    TooOld { found: u32, least: u32 },
    /// A newer program has written the database.
    NewerSchema { found: i64, known: i64 },
    /// The target already exists, and would be overwritten.
    Exists(PathBuf),
    /// A database in memory can't be saved, restored or checked.
    NothingKept,
    /// A row differs from what was written: the disk or the file is damaged.
    Garbled { key: Arc<str>, revision: Revision },
    /// A saved database is damaged.
    Damaged { path: PathBuf, faults: Vec<String> },
    /// The disk is full. Reads still work, and writes do once there is space again.
    DiskFull,
    /// The memory limit for stored objects has been reached. Reads and deletions still work.
    NoSpace,
    /// The collections that all requests depend on have reached their part of the memory limit.
    NoSpaceForRequired,
    /// A collection, or the part of it that is asked for, is larger than the process may hold in memory.
    NoMemory,
    /// Others have the memory for such parts at the moment.
    NoMemoryNow,
    /// The file is not a database any more: nothing is written to it.
    Malformed,
    /// The file may be read only.
    ReadOnly,
    /// The database can't keep an object of this name.
    Name(&'static str),
    /// A statement failed for another reason: the disk or the file is damaged.
    Statement(Arc<dyn Error + Send + Sync>),
    /// The objects are in several databases, and can't be copied as one.
    Several,
    /// The storage was closed.
    Closed,
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::InUse(path) => write!(out, "the database `{}` is open already", path.display()),
            StoreError::Open { path, source } => {
                write!(out, "the database `{}` can't be opened: {source}", path.display())
            }
            StoreError::Url(why) => write!(out, "the URL of the database is not understood: {why}"),
            StoreError::Connect(source) => write!(out, "the database can't be reached: {source}"),
            StoreError::Unreachable(source) => write!(out, "the connection to the database is lost: {source}"),
            StoreError::TooOld { found, least } => {
                write!(out, "the database is Postgres {found}, this program needs {least} or later")
            }
            StoreError::NewerSchema { found, known } => {
                write!(out, "the database has schema {found}, this program knows schemas up to {known}")
            }
            StoreError::Exists(path) => write!(out, "`{}` holds something already", path.display()),
            StoreError::NothingKept => out.write_str("a database in memory is gone with its process"),
            StoreError::Damaged { path, faults } => {
                write!(out, "`{}` is damaged: {}", path.display(), faults.join("; "))
            }
            StoreError::Garbled { key, revision } => {
                write!(out, "the database is damaged: `{key}` at revision {revision} is not what was written")
            }
            StoreError::DiskFull => out.write_str("the database is full"),
            // etcd's message when its quota is exceeded: people search for these words.
            StoreError::NoSpace => out.write_str("etcdserver: mvcc: database space exceeded"),
            StoreError::NoSpaceForRequired => out.write_str(
                "etcdserver: mvcc: database space exceeded: definitions, namespaces, roles and others that all requests \
                 depend on have taken an eighth of --memory-limit",
            ),
            StoreError::NoMemoryNow => out.write_str("there is no memory for the objects at the moment"),
            StoreError::NoMemory => out.write_str(
                "the collection is too large for the memory that the server may use (--memory-limit): ask for it in pages, or \
                 for a small namespace",
            ),
            StoreError::Malformed => out.write_str("the database is damaged: `skiff check` tells where"),
            StoreError::ReadOnly => out.write_str("the database is read-only"),
            StoreError::Name(why) => write!(out, "the database can't keep an object of this name: {why}"),
            StoreError::Statement(source) => write!(out, "the database failed: {source}"),
            StoreError::Several => out.write_str("objects that are kept in several databases can't be copied as one"),
            StoreError::Closed => out.write_str("the database is closed"),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StoreError::Open { source, .. }
            | StoreError::Connect(source)
            | StoreError::Unreachable(source)
            | StoreError::Statement(source) => Some(&**source),
            StoreError::InUse(_)
            | StoreError::Url(_)
            | StoreError::Exists(_)
            | StoreError::NothingKept
            | StoreError::Damaged { .. }
            | StoreError::Garbled { .. }
            | StoreError::TooOld { .. }
            | StoreError::NewerSchema { .. }
            | StoreError::DiskFull
            | StoreError::NoSpace
            | StoreError::NoSpaceForRequired
            | StoreError::NoMemory
            | StoreError::NoMemoryNow
            | StoreError::Malformed
            | StoreError::ReadOnly
            | StoreError::Name(_)
            | StoreError::Several
            | StoreError::Closed => None,
        }
    }
}

impl StoreError {
    /// Whether a retry may succeed a little later: the database is currently unreachable.
    pub fn may_pass(&self) -> bool {
        matches!(self, StoreError::Connect(_) | StoreError::Unreachable(_))
    }
}
